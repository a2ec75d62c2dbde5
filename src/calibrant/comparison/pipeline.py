"""From blocks of questions to the views of every pair: in memory, in parts, on a cluster.

Two passes over the questions. The survey counts answers and finds the accuracies; the sums need
both to know bins and shifts. What a part gives does not depend on where or when it is read, and
parts are added up in order, so every engine gives the same numbers. Models are taken up a few at
a time where the sums of all of them would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from calibrant.comparison.footings import Footings, all_footings
from calibrant.comparison.odds import MASS_BINS
from calibrant.comparison.questions import QuestionBlock, Resamples, resample_counts
from calibrant.comparison.sums import ModelSums, model_sums
from calibrant.comparison.survey import Survey, survey_block

Each: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
# Sums that are held at a time, in bytes, where questions come in several parts.
_HELD = 1 << 30


class PairOptions(TypedDict):
    """What the views of a pair depend on, see `compare_models`."""

    bins: int
    target: str | float
    resamples: int


class Options(PairOptions):
    """What a comparison is asked for, see `compare_models`."""

    level: float
    lipschitz: float
    margin: float


@dataclass(frozen=True)
class Questions:
    """A block of questions of one comparison.

    `stream` gives the generator of its resamples anew; with `keep` the resamples are drawn once
    and held, where the questions stay in memory too.
    """

    comparison: int
    block: QuestionBlock
    stream: Callable[[], np.random.Generator]
    keep: bool = False
    _drawn: dict[int, Resamples] = field(default_factory=dict)

    def resamples(self, number: int) -> Resamples:
        """Return the resampled questions, the same at every call."""
        found = self._drawn.get(number)
        if found is None:
            found = resample_counts(self.block.size, number, self.stream(), self.block.cluster)
            if self.keep:
                self._drawn[number] = found
        return found


class BlockReader(Protocol):
    """Reads one part of the questions: blocks of any of the comparisons.

    `kept` says that all questions are one part in memory, with their resamples.
    """

    @property
    def kept(self) -> bool:
        """Whether reading again costs nothing."""
        ...

    def __call__(self, part: int) -> Iterable[Questions]:
        """Yield the blocks of a part."""
        ...


@dataclass(frozen=True, slots=True)
class PairViews:
    """Both models of a pair on the questions that both have."""

    a: int
    b: int
    first: Footings
    second: Footings


def surveys(
    read: BlockReader, parts: int, *, resamples: int, each: Each = map
) -> dict[int, Survey]:
    """Return the survey of every comparison; one without questions has none."""
    found: dict[int, Survey] = {}
    for part in each(partial(_survey_part, read, resamples), range(parts)):
        for comparison, survey in part.items():
            _take_in(found, comparison, survey)
    return found


def pair_views(
    read: BlockReader,
    parts: int,
    surveyed: dict[int, Survey],
    options: PairOptions,
    each: Each = map,
) -> Iterator[tuple[int, int, Footings, list[PairViews]]]:
    """Yield, model by model, its own views and those pairs of it whose other model came before.

    Parameters
    ----------
    read, parts
        The questions.
    surveyed
        Surveys by comparison, see `surveys`.
    options
        Options of the comparison.
    each
        Maps a function over tasks, in order: threads of this process or tasks of a cluster.

    Yields
    ------
    tuple
        Comparison, model, its views on all its questions, and its finished pairs.
    """
    alone = read.kept and parts == 1
    work = _batches(surveyed, options, alone=alone)
    one = partial(_batch_part, read, surveyed, options, alone)
    tasks = [(batch, part) for batch in work for part in range(parts)]
    waiting: dict[tuple[int, int, int], Footings] = {}
    results = iter(each(one, tasks))
    for batch in work:
        for comparison, model, views in _finished(batch, results, parts, surveyed, options, alone):
            pairs = []
            for partner, seen in enumerate(views):
                if partner == model or not seen.n:
                    continue
                other = waiting.pop((comparison, partner, model), None)
                if other is None:
                    waiting[comparison, model, partner] = seen
                elif partner < model:
                    pairs.append(PairViews(partner, model, other, seen))
                else:
                    pairs.append(PairViews(model, partner, seen, other))
            yield comparison, model, views[model], pairs


Key = TypeVar("Key", bound=Hashable)
Sums = TypeVar("Sums", Survey, ModelSums)


def _take_in(found: dict[Key, Sums], key: Key, more: Sums) -> None:
    """Add what a further part gives."""
    found[key] = found[key].add(more) if key in found else more


def _survey_part(read: BlockReader, resamples: int, part: int) -> dict[int, Survey]:
    found: dict[int, Survey] = {}
    with threadpool_limits(1):
        for one in read(part):
            survey = survey_block(one.block, one.resamples(resamples))
            _take_in(found, one.comparison, survey)
    return found


Batch: TypeAlias = tuple[tuple[int, int], ...]


def _batches(surveyed: dict[int, Survey], options: PairOptions, *, alone: bool) -> list[Batch]:
    """Return which models of which comparisons are summed up together."""
    batches: list[Batch] = []
    held = 0
    for comparison, survey in surveyed.items():
        models = len(survey.moments)
        rows = models * (8 * MASS_BINS + 3 * options["bins"] + 180)
        size = rows * (options["resamples"] + 1) * 4
        for model in range(models):
            held += size
            # What is in memory is read again for nothing: threads take one model each.
            if not batches or alone or held > _HELD:
                batches.append(())
                held = size
            batches[-1] += ((comparison, model),)
    return batches


def _batch_part(
    read: BlockReader,
    surveyed: dict[int, Survey],
    options: PairOptions,
    alone: bool,
    task: tuple[Batch, int],
) -> dict[tuple[int, int], Any]:
    """Return the sums of some models over one part; their views, where it is the only part."""
    batch, part = task
    found: dict[tuple[int, int], ModelSums] = {}
    # One thread per product: the threads of the linear algebra library would fight over cores.
    with threadpool_limits(1):
        for one in read(part):
            for comparison, model in batch:
                if comparison != one.comparison:
                    continue
                drawn, survey = one.resamples(options["resamples"]), surveyed[comparison]
                sums = model_sums(one.block, drawn, survey, model, bins=options["bins"])
                _take_in(found, (comparison, model), sums)
        if not alone:
            return dict(found)
        return {key: _views(sums, surveyed, key, options) for key, sums in found.items()}


def _views(
    sums: ModelSums, surveyed: dict[int, Survey], key: tuple[int, int], options: PairOptions
) -> list[Footings]:
    comparison, model = key
    return all_footings(sums, surveyed[comparison], model, target=options["target"])


def _finished(
    batch: Batch,
    results: Iterator[dict[tuple[int, int], Any]],
    parts: int,
    surveyed: dict[int, Survey],
    options: PairOptions,
    alone: bool,
) -> Iterator[tuple[int, int, list[Footings]]]:
    """Add up the parts of a batch and yield the views of its models."""
    if alone:
        for (comparison, model), views in next(results).items():
            yield comparison, model, views
        return
    held: dict[tuple[int, int], ModelSums] = {}
    for found in (next(results) for _ in range(parts)):
        for key, sums in found.items():
            _take_in(held, key, sums)
    for key in batch:
        if key in held:
            yield (*key, _views(held.pop(key), surveyed, key, options))
