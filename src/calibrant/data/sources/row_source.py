"""Arrays, tables, studies and logs as blocks of rows, read into memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Estimate, Stream, named_stream
from calibrant.core.errors import error_source
from calibrant.data import ScoreBlock, Scores
from calibrant.data.label_schema import SPREAD
from calibrant.data.reading.scales import RANKS
from calibrant.data.sources.coverage import table_coverage
from calibrant.data.sources.draws import drawn_again
from calibrant.data.sources.input import Input
from calibrant.data.sources.options import (
    REPEATED,
    AuditOptions,
    AuditSource,
    SourceBlock,
    graded_by_others,
    not_searched,
)
from calibrant.findings.claims.data import coverage_document
from calibrant.findings.claims.margins import Missing
from calibrant.metrics.blocks.row_block import RowBlock

if TYPE_CHECKING:
    from calibrant.data.sources.drawn_labels import Grades
    from calibrant.metrics.stats.dependence import Dependence

_IN_MEMORY = {"way": "in memory"}
# Model and method: a group has a key of its own.
_WHOLE_KEYS = 2
_PLACE = "_place"
_GRADED = "grades between 0 and 1 have no law of right and wrong: tests are between rows"


def row_source(opened: Input, options: AuditOptions) -> AuditSource:
    """Return what was opened as blocks of rows.

    Parameters
    ----------
    opened
        Arrays, tables, a study or logs, see `calibrant.verbs.opening.open_input`.
    options
        The options of `audit`.
    """
    if options.recalibrate is not None:
        # Loaded here, as below: most audits recalibrate nothing.
        from calibrant.metrics import calibrator_from_dict

        calibrator_from_dict({"calibrator": options.recalibrate})
    options = opened.with_rules(options)
    draws = opened.draws(options.table, options.by)
    texts = None if draws is None else opened.question_texts(draws)
    record = {"whole_record": True} if opened.whole_record else {}
    head = opened.head("audit", seed=options.seed, settings={**options.settings, **record})
    opened.require_usable()
    if draws is not None and not opened.has_scores(options.table.confidence):
        nothing = partial(coverage_document, [], rows=0, rows_read=0)
        return AuditSource(head, _IN_MEMORY, lambda: iter(()), nothing, draws=draws, texts=texts)
    draws = None if draws is None else drawn_again(draws)
    raw = opened.scores_outside(options.table, options.recalibrate) if options.recalibrate else {}
    head["settings"] |= {"raw_scores": sorted(raw)} if raw else {}
    rankings = opened.non_probability | raw.keys()
    if opened.names_methods(options.table):
        # Loaded here: a table of one plain confidence needs no method.
        from calibrant.core.names import ranking_methods

        rankings |= ranking_methods()
    scores = opened.scores(options, rankings)
    if scores.reading.scale in RANKS:
        rankings |= {*scores.frame["method"].unique()}
    if options.recalibrate is not None:
        with error_source(head["source"]):
            scores = _recalibrated(scores, options.recalibrate, options.seed, raw)
        rankings = frozenset()
    sample = {} if opened.pool_rows is None else {"drawn_from": opened.pool_rows}
    return AuditSource(
        head,
        {**_IN_MEMORY, **sample, **scores.reading.to_dict()},
        partial(
            _blocks,
            scores,
            options,
            rankings,
            raw,
            opened.notes,
            opened.grades(),
            searched=scores.reading.cluster is None and opened.pool_rows is None,
        ),
        partial(table_coverage, scores),
        dict(scores.dropped),
        dict(scores.dropped_rows),
        scores.emptied,
        draws,
        texts,
    )


def _blocks(
    scores: Scores,
    options: AuditOptions,
    rankings: Collection[str],
    raw: Mapping[str, int],
    notes: Sequence[str],
    grades: Grades | None,
    *,
    searched: bool,
) -> Iterator[SourceBlock]:
    search = None
    if searched:
        scores = replace(scores, frame=scores.frame.with_row_index(_PLACE))
    for block in scores.blocks(by=options.by):
        method = block.keys["method"]
        probability = method not in rankings
        own: list[str] = []
        # Tests are between rows: these are no independent right or wrong answers.
        if probability and block.units is not None:
            own.append(REPEATED)
        elif probability and bool(((block.correct > 0) & (block.correct < 1)).any()):
            own.append(_GRADED)
        if options.bins_of(method) != options.bins:
            own.append(f"its calibration error has {options.bins_of(method)} bins, as Sem-ECE has")
        own += notes
        if method in raw:
            own.append(
                f"{raw[method]:,} of the scores of {method} lie outside [0, 1]: they are taken as "
                f"scores, and {options.recalibrate} turns them into probabilities"
            )
        if len(block.keys) == _WHOLE_KEYS and searched:
            # Its groups come after it: one search serves them all.
            search = _Search(scores, block)
        make = partial(_block, block, options, probability)
        yield SourceBlock(
            block.keys,
            partial(make, block.units),
            own,
            int(block.confidence.size),
            missing := _missing(block),
            not_searched if search is None else partial(search.of_rows, block),
            make,
            None if missing is None else partial(_accuracy, block, options),
            graded_by_others if grades is None else partial(grades.of, block.frame),
        )


class _Search:
    """The search for rows of one model and method that hang together, made when first asked."""

    def __init__(self, scores: Scores, whole: ScoreBlock) -> None:
        self.scores, self.whole = scores, whole
        self._beyond: dict[str, Dependence | None] = {}

    @cached_property
    def _dependence(self) -> Dependence | None:
        # Loaded here: small tables are not searched.
        from calibrant.data.groupings import block_dependence

        return block_dependence(self.scores, self.whole)

    def of_rows(self, block: ScoreBlock) -> Dependence | None:
        """Return what was found, for the rows of a group or for all."""
        if self._dependence is None or block is self.whole:
            return self._dependence
        (column,) = [*block.keys][_WHOLE_KEYS:]
        dependence = self._dependence
        if column in dependence.columns:
            from calibrant.data.groupings import block_dependence

            # What is said of one topic is not said of others: topics are no clusters in it.
            if column not in self._beyond:
                self._beyond[column] = block_dependence(self.scores, self.whole, (column,))
            dependence = self._beyond[column] or dependence
        whole, part = self.whole.frame[_PLACE], block.frame[_PLACE]
        return dependence.of_rows(whole.search_sorted(part).to_numpy().astype(np.intp))


def _missing(block: ScoreBlock) -> Missing | None:
    """Return how many answers were graded but have no confidence."""
    if not block.unscored.height:
        return None
    right = float(block.unscored["correct"].sum())
    return Missing(right, block.unscored.height - right)


def _accuracy(block: ScoreBlock, options: AuditOptions) -> Estimate:
    """Return the share of right answers among all that are graded; it draws nothing."""
    graded = block.graded
    rng = np.random.default_rng(options.seed)
    whole = _block(graded, options, False, graded.units, rng)
    return whole.estimates(["accuracy"])["accuracy"]


def _block(
    block: ScoreBlock, options: AuditOptions, probability: bool, units: Any, rng: Stream
) -> RowBlock:
    how: dict[str, Any] = {
        "probability": probability,
        "bins": options.bins_of(block.keys["method"]),
        "level": options.level,
        "resamples": options.resamples,
        "rng": rng,
    }
    if SPREAD in block.frame.columns:
        # Loaded here: few tables are labels that were drawn.
        from calibrant.data.sources.drawn_labels import block_of

        return block_of(block, **how)
    return RowBlock(block.confidence, block.correct, block.weights, units, **how)


def _recalibrated(scores: Scores, name: str, seed: int, raw: Collection[str]) -> Scores:
    """Replace each (model, method)'s score by its cross-fitted probability."""
    from calibrant.metrics import PlattCalibrator, cross_fitted

    parts = []
    for block in scores.blocks():
        # A fold may hold none of the scores outside [0, 1]: the scale is that of all folds.
        on_scores = name == "platt" and block.keys["method"] in raw
        calibrator = PlattCalibrator(scale="score") if on_scores else name
        rng = named_stream(seed, "recalibrate", *block.keys.values())
        values = (calibrator, block.confidence, block.correct)
        fitted = cross_fitted(*values, units=block.units, weights=block.weights, rng=rng)
        parts.append(block.frame.with_columns(confidence=pl.Series(fitted)))
    return replace(scores, frame=pl.concat(parts))
