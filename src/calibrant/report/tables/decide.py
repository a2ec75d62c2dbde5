"""Tables of decisions: `decide`, `mend` and `cascade`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.documents.decisions import CascadeEntry, DecideEntry
from calibrant.findings.documents.fields import CascadeFields, DecideFields, MendFields
from calibrant.report import cells
from calibrant.report.cells import Block, Columns, Paragraph, Table, entry_name, table_of

_SHOWN = 10


# -- decide -----------------------------------------------------------------------------------


def blocks(document: DecideFields) -> Iterator[Block]:
    """Yield the curve of each model and method."""
    if len(document.results) > 1:
        yield _overview(document.results)
    for entry in document.results:
        words, step = ThresholdWords.of_entry(entry), max(1, len(entry.curve) // _SHOWN)
        answers: Columns = {words.share: lambda e: cells.share_cell(e.share)}
        columns: Columns = {
            words.threshold: partial(ThresholdWords.of_point, words),
            **answers,
            words.error: lambda e: cells.percent_cell(e.error),
        }
        labels: Columns = {words.label: lambda e: cells.number_cell(e.labels, missing="no limit")}
        title = f"{entry_name(entry)}: error by threshold"
        if entry.curve:
            yield table_of(entry.curve[step - 1 :: step], columns, title)
        if entry.sets:
            sizes = list(enumerate(entry.sets.sizes, start=1))
            holding: Columns = {"classes in the set": lambda e: e[0], "answers": lambda e: e[1]}
            yield table_of(sizes, holding, "How large the sets are", main=True)
        if entry.unit and entry.unit.fields:
            fields: Columns = {
                "field": "field",
                "rows": "n",
                "says": lambda e: cells.share_cell(e.says),
                "right": lambda e: cells.percent_cell(e.right),
                "gap, points": lambda e: cells.Number(e.gap, unit="points", digits=1),
            }
            title = f"Fields of one {entry.unit.column}, the most over-confident first"
            yield table_of(entry.unit.fields, fields, title)
        if entry.more_labels:
            title = f"What more {words.label} would likely allow"
            yield table_of(entry.more_labels, {**labels, **answers}, title)


class ThresholdWords(NamedTuple):
    """What a threshold is of, which share it gives, and what is wrong in it.

    `doubt`: the threshold is of one minus the confidence.
    """

    threshold: str
    share: str
    error: str
    label: str = "labelled units"
    doubt: bool = False

    @classmethod
    def of_entry(cls, entry: DecideEntry) -> ThresholdWords:
        """Return the words of a decision."""
        if not entry.unit:
            return cls("threshold", "answered", "wrong among answered", "labels")
        if entry.unit.score == "stop":
            words = "confidence at most", "runs stopped", "would have succeeded"
            return cls(*words, "labelled runs", doubt=True)
        if entry.unit.score == "drop":
            return cls("confidence above", "rows kept", "units that keep a wrong row")
        return cls(f"{entry.unit.score} at least", "units that pass", "wrong among these")

    def of_point(self, point: Any) -> cells.Number:
        """Return the threshold of a point of the curve."""
        return self.cell(point.threshold)

    def cell(self, threshold: float) -> cells.Number:
        """Return a threshold; products of many rows are small, and nought has no digits to show."""
        value = 1 - threshold if self.doubt else threshold
        return cells.number_cell(
            value, digits=max(3, 2 - math.floor(math.log10(max(value, 1e-9) if value else 1)))
        )


def _overview(entries: list[DecideEntry]) -> Table:
    """Return one row per model and method: what each may answer alone, most first."""
    keys = [key for key in ("model", "method") if len({getattr(e, key) for e in entries}) > 1]
    keys = keys or ["model"]
    return table_of(
        sorted(entries, key=lambda entry: -_share(entry)),
        {
            " / ".join(keys): lambda e: " / ".join(getattr(e, key) for key in keys),
            "answers from": lambda e: cells.number_cell(e.threshold, missing="never"),
            "answered": lambda e: cells.share_cell(_share(e)),
            "wrong among answered": lambda e: cells.percent_cell(e.error) if _share(e) else "",
        },
        "Who may answer alone",
        main=True,
    )


def _share(entry: DecideEntry) -> float:
    return 0.0 if entry.threshold is None else entry.answered.value or 0.0


# -- mend -------------------------------------------------------------------------------------


def mend_blocks(document: MendFields) -> Iterator[Block]:
    """Yield what stated values mean, of each model and method."""
    if len(document.results) > 1:
        columns: Columns = {
            "model / method": entry_name,
            "verdict": lambda e: "corrected" if e.verdict == "mended" else e.verdict,
            "off by at most, points": lambda e: cells.Number(
                e.promise.off_by, unit="points", digits=1, missing="no promise"
            ),
            "gain in Brier score": lambda e: cells.Number(e.promise.gain),
            "labels": "n",
        }
        yield table_of(document.results, columns, "What mending does", labels=2, main=True)
    columns = {
        "says": lambda e: cells.share_cell(e.says, digits=int(0.99 < e.says < 1)),
        "means": lambda e: cells.Number(e.means, e.low, e.high, "share", 0),
        "right": lambda e: cells.share_cell(e.right),
        "labels": "n",
    }
    note = "Right: the share among the labels nearest to that value."
    for entry in document.results:
        name = f"{entry_name(entry)}: " if entry.model else ""
        title = f"{name}what it says, and what that means"
        yield table_of(entry.table, columns, title, note=note)


# -- cascade ----------------------------------------------------------------------------------

_NOTE = (
    "Expected gain: asks the next model while the right answers that it should add are worth their "
    "price. Risk: asks on while the answer is too likely to be wrong. Chosen per question: one "
    "model is picked before any is asked. Differences in points."
)
_POINTS = {
    "best": "most accurate setting",
    "match": "as accurate as the largest",
    "budget_0.5": "half its cost",
}


def cascade_blocks(document: CascadeFields) -> Iterator[Block]:
    """Yield the models, the strategies and their chosen points."""
    columns: Columns = {
        "model alone": "model",
        "right": lambda e: cells.percent_cell(e.accuracy),
        "cost, largest = 100 %": lambda e: cells.share_cell(e.relative_cost.value),
    }
    for entry in document.results:
        note = (
            f"{entry.n:,} questions, {entry.n_test:,} held out in each of {entry.splits} splits; "
            "intervals correct for the overlap of the splits"
        )
        yield table_of(entry.models, columns, "Models", note=note)
        yield _areas(entry)
        yield _points(entry)
        yield from _policy(entry)


def _areas(entry: CascadeEntry) -> Table:
    against: dict[str, cells.Cell] = {
        pair.b: cells.points_cell(pair.area) for pair in entry.comparisons
    }
    lead: Columns = {"first is ahead by": lambda e: against.get(e.name, "")}
    return table_of(
        entry.strategies,
        {
            "rule": "words",
            "right on average": lambda e: cells.percent_cell(e.area),
            **(lead if against else {}),
        },
        "When to ask the next model, by budgets from the cheapest to the largest model",
        note=_NOTE,
        main=True,
    )


def _points(entry: CascadeEntry) -> Table:
    points = [
        (name, strategy.words, strategy.points[name])
        for name in _POINTS
        for strategy in entry.strategies
        if strategy.points[name].gain.value is not None
    ]
    columns: Columns = {
        "setting": lambda e: _POINTS[e[0]],
        "rule": lambda e: e[1],
        f"points against {entry.largest}": lambda e: cells.points_cell(e[2].gain),
        "cost, largest = 100 %": lambda e: _cost(e[2].relative_cost, e[0]),
    }
    title = "Settings, picked on one part of the questions and measured on another"
    return table_of(points, columns, title, labels=2)


def _cost(cost: EstimateEntry, point: str) -> cells.Number:
    return cells.share_cell(cost.value) if point.startswith("budget") else cells.percent_cell(cost)


def _policy(entry: CascadeEntry) -> Iterator[Block]:
    """Yield the rule that is ready to be used, where its strategy was measured."""
    policy, promise = entry.policy, entry.policy.promise
    words = {strategy.name: strategy.words for strategy in entry.strategies}
    if policy.rule in words and promise is not None:
        yield Paragraph(
            f"Policy: {words[policy.rule]} ({policy.chosen}): right in "
            f"{cells.percent_cell(promise.accuracy)} at "
            f"{cells.percent_cell(promise.relative_cost)} of the largest model's "
            "cost, on questions it had not seen."
            f"{'' if policy.path is None else f' Saved to {policy.path}.'}"
        )
