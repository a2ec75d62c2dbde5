"""From blocks of questions to the views of every pair: in memory, in parts, on a cluster.

Two passes over the questions. The survey counts answers and finds the accuracies; the sums need
both to know bins and shifts. What a part gives does not depend on where or when it is read, and
parts are added up in order, so every engine gives the same numbers. Models are taken up a few at
a time where the sums of all of them would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
from msgspec import Struct
from threadpoolctl import threadpool_limits

from calibrant.comparison.footings import SharedViews, all_footings
from calibrant.comparison.questions import QuestionBlock, Resamples, resample_counts
from calibrant.comparison.statements import MASS_BINS
from calibrant.comparison.sums import ModelSums, model_sums
from calibrant.comparison.survey import AnswerCounts, survey_block

Each: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
# Sums that are held at a time, in bytes, where questions come in several parts.
_HELD = 1 << 30


class ComparisonOptions(TypedDict, total=False):
    """What a comparison is asked for, see `compare_models`; views of pairs take the first three."""

    bins: int
    target: str | float
    resamples: int
    level: float
    lipschitz: float
    margin: float


class Questions(Struct, frozen=True):
    """A block of questions of one comparison.

    `stream` gives the generator of its resamples anew; with `keep` the resamples are drawn once
    and held, where the questions stay in memory too.
    """

    comparison: int
    block: QuestionBlock
    stream: Callable[[], np.random.Generator]
    keep: bool = False
    _drawn: dict[int, Resamples] = {}

    def resamples(self, number: int) -> Resamples:
        """Return the resampled questions, the same at every call."""
        draws = self._drawn.get(number)
        if draws is None:
            draws = resample_counts(self.block.size, number, self.stream(), self.block.cluster)
            if self.keep:
                self._drawn[number] = draws
        return draws


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


class PairViews(Struct, frozen=True):
    """Both models of a pair on the questions that both have."""

    a: int
    b: int
    first: SharedViews
    second: SharedViews


def surveys(
    read: BlockReader, parts: int, *, resamples: int, each: Each = map
) -> dict[int, AnswerCounts]:
    """Return the survey of every comparison; one without questions has none."""
    surveyed = each(partial(_survey_part, read, resamples), range(parts))
    return _added_up(piece for part in surveyed for piece in part.items())


def pair_views(
    read: BlockReader,
    parts: int,
    surveyed: dict[int, AnswerCounts],
    options: ComparisonOptions,
    each: Each = map,
) -> Iterator[tuple[int, int, SharedViews, list[PairViews]]]:
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
    work = _SecondPass(read, parts, surveyed, options)
    batches = work.batches()
    waiting: dict[tuple[int, int, int], SharedViews] = {}
    results = iter(each(work.part, [(batch, part) for batch in batches for part in range(parts)]))
    for batch in batches:
        for (comparison, model), views in work.finished(batch, results):
            pairs = []
            for partner, observed in enumerate(views):
                if observed.n and partner < model:
                    first = waiting.pop((comparison, partner, model))
                    pairs.append(PairViews(partner, model, first, observed))
                elif observed.n and partner > model:
                    waiting[comparison, model, partner] = observed
            yield comparison, model, views[model], pairs


Key = TypeVar("Key", bound=Hashable)
Sums = TypeVar("Sums", AnswerCounts, ModelSums)


def _added_up(pieces: Iterable[tuple[Key, Sums]]) -> dict[Key, Sums]:
    """Return the sums of all questions by key, from those of blocks or parts."""
    total: dict[Key, Sums] = {}
    for key, more in pieces:
        total[key] = total[key] + more if key in total else more
    return total


def _survey_part(read: BlockReader, resamples: int, part: int) -> dict[int, AnswerCounts]:
    with threadpool_limits(1):
        return _added_up(
            (item.comparison, survey_block(item.block, item.resamples(resamples)))
            for item in read(part)
        )


# A comparison and one of its models.
ModelKey: TypeAlias = tuple[int, int]
Batch: TypeAlias = tuple[ModelKey, ...]


class _SecondPass(Struct, frozen=True):
    """From surveyed questions to the views of every model, for some models at a time."""

    read: BlockReader
    parts: int
    surveyed: dict[int, AnswerCounts]
    options: ComparisonOptions

    @property
    def alone(self) -> bool:
        """Whether every model is taken by itself: what is in memory is read again for nothing."""
        return self.read.kept and self.parts == 1

    def batches(self) -> list[Batch]:
        """Return which models of which comparisons are summed up together."""
        batches: list[Batch] = []
        memory = 0
        for comparison, survey in self.surveyed.items():
            models = len(survey.moments)
            rows = models * (8 * MASS_BINS + 3 * self.options["bins"] + 180)
            size = rows * (self.options["resamples"] + 1) * 4
            for model in range(models):
                memory += size
                if not batches or self.alone or memory > _HELD:
                    batches.append(())
                    memory = size
                batches[-1] += ((comparison, model),)
        return batches

    def part(self, task: tuple[Batch, int]) -> dict[ModelKey, Any]:
        """Return the sums of some models over one part; their views, where it is the only part."""
        # One thread per product: the threads of the linear algebra library would fight over cores.
        with threadpool_limits(1):
            sums = _added_up(self._block_sums(*task))
            return {key: self._views(key, sums[key]) for key in sums} if self.alone else sums

    def _block_sums(self, batch: Batch, part: int) -> Iterator[tuple[ModelKey, ModelSums]]:
        resamples, bins = self.options["resamples"], self.options["bins"]
        for item in self.read(part):
            for comparison, model in batch:
                if comparison == item.comparison:
                    draws, survey = item.resamples(resamples), self.surveyed[comparison]
                    sums = model_sums(item.block, draws, survey, model, bins=bins)
                    yield (comparison, model), sums

    def _views(self, key: ModelKey, sums: ModelSums) -> list[SharedViews]:
        comparison, model = key
        return all_footings(sums, self.surveyed[comparison], model, target=self.options["target"])

    def finished(
        self, batch: Batch, results: Iterator[dict[ModelKey, Any]]
    ) -> Iterator[tuple[ModelKey, list[SharedViews]]]:
        """Add up the parts of a batch and yield the views of its models."""
        if self.alone:
            yield from next(results).items()
            return
        parts = islice(results, self.parts)
        total: dict[ModelKey, ModelSums] = _added_up(
            sums for part in parts for sums in part.items()
        )
        for key in batch:
            if key in total:
                yield key, self._views(key, total.pop(key))
