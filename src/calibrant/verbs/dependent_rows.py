"""Numbers and tests of an audit where rows hang together: between groups, and for these alone."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Estimate, Stream
from calibrant.data.sources.options import SourceBlock
from calibrant.findings.claims.dependence import (
    MOST_MEANT,
    dependence_entry,
    dependence_notes,
    dependence_warnings,
    withheld_sentence,
)
from calibrant.findings.claims.significance import (
    adjust_p_values,
    block_tests,
    of_these_alone,
    stricter_tests,
    without_within,
)
from calibrant.metrics.blocks.families import Metric
from calibrant.metrics.registry import METRICS
from calibrant.metrics.stats.clusters import FEWEST, two_way_p_value
from calibrant.metrics.stats.dependence import Dependence

if TYPE_CHECKING:
    from calibrant.data.score_table import ScoreBlock, Scores
    from calibrant.findings.documents.audits import DependenceEntry, MissingEntry, Significance
    from calibrant.metrics.blocks.cell_block import CellBlock
    from calibrant.metrics.blocks.row_block import RowBlock

_TESTED = ("confidence_gap", "auroc")


class AuditedBlock(Struct, frozen=True, dict=True):
    """A block of an audit with the groups in which its rows hang together.

    Parameters
    ----------
    block
        What numbers are of: between the groups, where there are enough of them.
    plain
        The same with independent rows; the block itself where nothing was found.
    second
        Between the groups of a second grouping.
    dependence
        What was searched and found; None where that was not searched.
    summed
        Whether groups were found in a stream, whose sums know no groups: what is said is true of
        these rows.
    """

    block: RowBlock | CellBlock
    plain: RowBlock | CellBlock
    second: RowBlock | None = None
    dependence: Dependence | None = None
    summed: bool = False

    @classmethod
    def of_source(cls, source: SourceBlock, stream: Stream) -> AuditedBlock:
        """Return the numbers of a source, between groups where its rows hang together."""
        plain, dependence = source.made(stream), source.dependence()
        groups = [] if dependence is None else dependence.groups
        enough = [each.grouping.codes for each in groups if each.count >= FEWEST]
        if not enough or source.clustered is None:
            summed = bool(groups) and source.clustered is None
            return cls(plain, plain, None, dependence, summed)
        between = [source.clustered(codes, stream) for codes in enough]
        return cls(between[0], plain, between[1] if len(between) > 1 else None, dependence)

    @cached_property
    def _alone(self) -> dict[str, Estimate]:
        """Estimates with independent rows: all of them, or what tests of these groups need."""
        if self.block is self.plain:
            return self.plain.estimates()
        # Only rows are looked at between groups.
        return cast("RowBlock", self.plain).estimates(_TESTED)

    @property
    def wider(self) -> list[float]:
        """By how much each grouping widens the interval of the mean gap."""
        between = [self.block, self.second] if self.together else []
        lengths = [_gap_length(block) for block in between if block not in (None, self.plain)]
        alone = _gap_length(self.plain) if lengths else math.nan
        return [length / alone for length in lengths if length > alone > 0]

    @property
    def together(self) -> bool:
        """Whether rows hang together."""
        return self.dependence is not None and bool(self.dependence.groups)

    def estimates(self) -> dict[str, Estimate]:
        """Return all metrics; of two groupings the wider interval of each."""
        metrics = self.block.estimates() if self.block is not self.plain else self._alone
        if self.summed:
            assert self.dependence is not None
            ratio = self.dependence.inflation
            return {name: _widened(item, METRICS[name], ratio) for name, item in metrics.items()}
        if self.second is not None:
            metrics = {
                name: replace(item, low=min(item.low, peer.low), high=max(item.high, peer.high))
                for (name, item), peer in zip(
                    metrics.items(), self.second.estimates().values(), strict=True
                )
            }
        few = self.block is not self.plain and self.dependence is not None and self.dependence.few
        if not few or (error := metrics.get("error")) is None:
            return metrics
        # What chance may add between so few groups hides any error (it came out as 0): that of the
        # rows as they are is told, of which claims are here.
        value = cast("RowBlock", self.plain).estimates(("error",))["error"].value
        low, high = min(error.low, value), max(error.high, value)
        return {**metrics, "error": replace(error, value=value, low=low, high=high)}

    def tests(
        self, metrics: Mapping[str, Estimate], margin: float, lost: MissingEntry | None
    ) -> Significance:
        """Return the tests of what holds for other groups like these, too."""
        tests = block_tests(self.block, metrics, margin, lost)
        if not self.together:
            return tests
        assert self.dependence is not None
        groups = self.dependence.groups
        if self.second is not None:
            peer = self.second.estimates(_TESTED)
            tests = stricter_tests(tests, block_tests(self.second, peer, margin, lost))
            data = self.block.data
            excess = data.confidence - data.correct
            p_value = two_way_p_value(excess, *(each.grouping.codes for each in groups))
            tests = _at_least(tests, p_value)
        if lost is not None:
            # What is assumed of missing confidences takes rows as independent.
            alone = block_tests(self.block, metrics, margin)["gap"]
            tests = _at_least(tests, 1.0 if alone is None else alone["p_value"])
        if self.summed or any(each.count < FEWEST for each in groups):
            return of_these_alone(tests)
        return without_within(tests) if self.dependence.few else tests

    def tests_of_these(self, margin: float, lost: MissingEntry | None) -> Significance | None:
        """Return the tests of what holds for these very groups; None where they are many."""
        if not self.together or self.dependence is None:
            return None
        if not self.summed and max(g.count for g in self.dependence.groups) > MOST_MEANT:
            return None
        return block_tests(self.plain, self._alone, margin, lost)


class DependentBlocks(NamedTuple):
    """Blocks of a table whose units are the groups in which their rows hang together.

    Parameters
    ----------
    scores
        The table.
    blocks
        As they are, but for their units: what counts one label counts these once.
    searches
        What was searched for each, None where nothing was.
    """

    scores: Scores
    blocks: list[ScoreBlock]
    searches: list[Dependence | None]

    @classmethod
    def of_scores(
        cls, scores: Scores, blocks: Iterable[ScoreBlock], skip: Collection[str] = ()
    ) -> DependentBlocks:
        """Search each block; columns in `skip` are what the verb is asked about."""
        # Loaded here: few rows are not searched.
        from calibrant.data.groupings import block_dependence

        matches = [(block, block_dependence(scores, block, skip)) for block in blocks]
        return cls(
            scores,
            [
                dataclasses.replace(block, units=dep.enough)
                if dep and dep.enough is not None
                else block
                for block, dep in matches
            ],
            [dep for _, dep in matches],
        )

    @property
    def entries(self) -> list[DependenceEntry | None]:
        """What a document holds of each search."""
        return [None if item is None else dependence_entry(item) for item in self.searches]

    @property
    def words(self) -> list[str]:
        """What rows that hang together share, by block."""
        names = self.scores.reading.cluster or "question"
        return [item.groups[0].words if item and item.groups else names for item in self.entries]

    def withheld(self, number: int, *, mixed: bool = False) -> str | None:
        """Say why nothing is promised of a block, see `withheld_sentence`."""
        entry = self.entries[number]
        sentences = [withheld_sentence(item, mixed=mixed) for item in entry.groups] if entry else []
        return next(filter(None, sentences), None)

    def tell(self, document: dict[str, Any]) -> None:
        """Say in a document which rows hang together, or what was searched without a find."""
        pairs = zip(self.blocks, self.entries, strict=True)
        told_dependence(
            document, [(b.keys["model"], item) for b, item in pairs if item is not None]
        )


def told_dependence(
    document: dict[str, Any], searches: Sequence[tuple[str, DependenceEntry]]
) -> None:
    """Say in a document what was searched by model, and found or not, in place."""
    data = document["data"]
    warnings = dependence_warnings(searches, typed=bool(document.get("input")))
    data["warnings"] = [*data.get("warnings", ()), *warnings]
    notes = dependence_notes(entry for _, entry in searches)
    if notes:
        data["notes"] = [*data.get("notes", ()), *notes]


def _widened(estimate: Estimate, metric: Metric, ratio: float) -> Estimate:
    """Return an estimate with an interval so many times as long, inside the metric's range."""
    least, most = metric.range
    low = max(estimate.value - ratio * (estimate.value - estimate.low), least)
    high = min(estimate.value + ratio * (estimate.high - estimate.value), most)
    return replace(estimate, low=low, high=high)


def _gap_length(block: RowBlock | CellBlock | None) -> float:
    assert block is not None
    gap = block.mean_gap
    return gap.high - gap.low


def _at_least(tests: Significance, p_value: float) -> Significance:
    gap = tests["gap"]
    if gap is None:
        return tests
    return {**tests, "gap": {**gap, "p_value": max(gap["p_value"], p_value)}}


def add_of_these(entries: list[dict[str, Any]]) -> None:
    """Correct the tests of these very groups as those of all entries are, in place."""
    meant = [entry.pop("of_these", None) for entry in entries]
    if not any(meant):
        return
    equal = [
        {**entry, "significance": tests if tests else copy.deepcopy(entry.get("significance"))}
        for entry, tests in zip(entries, meant, strict=True)
    ]
    adjust_p_values(equal)
    for entry, tests, notes in zip(entries, meant, equal, strict=True):
        if tests:
            entry["dependence"]["of_these"] = {
                name: test["p_adjusted"]
                for name in ("calibration", "gap", "separation")
                if (test := notes["significance"][name]) is not None
            }
