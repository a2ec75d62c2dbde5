"""Charts of a judge: models by people and by the judge, what a score means, flips."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.findings.claims.judge import in_units
from calibrant.findings.documents.fields import JudgeFields
from calibrant.findings.documents.labels import JudgedModel, JudgeEntry, ScoreMeaning
from calibrant.report.charts.chart import (
    Axis,
    Band,
    Chart,
    Dot,
    Item,
    Legend,
    Line,
    Mark,
    Names,
    ReferenceLine,
)

_MOST_ROWS = 30
_LEGEND: Legend = [("first", "dot", "people"), ("second", "diamond", "judge")]


def charts(document: JudgeFields) -> Iterator[Chart]:
    """Yield the models of the first judge, then the map and the flips of each."""
    first = True
    for n, entry in enumerate(document.results, 1):
        owner = f", {entry.judge}" if len(document.results) > 1 else ""
        for what, describe in (("models", _models), ("map", _map), ("flips", _flips)):
            chart = describe(entry, "answer" if first else f"judge-{what}-{n}", owner)
            if chart is not None:
                yield chart
                first = False


def _tick(entry: JudgeEntry, value: float) -> str:
    return in_units(entry, value) if entry.scale.kind != "ratings" else f"{value:g}"


def _models(entry: JudgeEntry, name: str, owner: str) -> Chart | None:
    """Return people's means of models beside the judge's, on one scale."""
    known_names = [model for model in entry.models if model.combined.value is not None]
    if not known_names:
        return None
    known_names.sort(key=lambda model: -(model.combined.value or 0.0))
    visible = known_names[:_MOST_ROWS]
    equal = entry.scale.same
    low, high = entry.scale.people
    marks: list[Mark] = [_model_item(entry, model, same=equal) for model in visible]
    if entry.people_mean.combined.value is not None and entry.scale.kind != "pairs":
        marks.append(
            ReferenceLine(entry.people_mean.combined.value, "x", "people, all", dashed=True)
        )
    return Chart(
        name,
        f"Models by people's standard{owner}",
        "Dot: the mean that people would give all rows, with its 95 % interval. "
        + ("Diamond: what the judge says." if equal else ""),
        Axis("people's mean" if entry.scale.kind != "pairs" else "share of pairs won",
             lambda value: _tick(entry, value), low=low, high=high),
        Names([model.name for model in visible], left_out=len(known_names) - len(visible)),
        marks,
        legend=_LEGEND[: 1 + equal],
    )  # fmt: skip


def _model_item(entry: JudgeEntry, model: JudgedModel, *, same: bool) -> Item:
    value, low, high = model.combined.ends
    statement = (
        f"people {in_units(entry, value)} ({in_units(entry, low)} to {in_units(entry, high)})"
    )
    judge = in_units(entry, model.judge_only)
    tip = f"{model.name}: {statement}, judge {judge}, {model.labels:,} rated"
    dots = [Dot(value, low=low, high=high, tip=tip)]
    if same:
        dots.append(Dot(model.judge_only, tone="second", shape="diamond", tip=tip))
    return Item(
        model.name, dots=dots, words=in_units(entry, value), tip=tip, key=f"model:{model.name}"
    )


def _map(entry: JudgeEntry, name: str, owner: str) -> Chart | None:
    """Return people's mean at each score, with the means of the ratings there."""
    if len(entry.map) < 2 or entry.scale.kind == "pairs":
        return None
    rows, most = entry.map, max(row.labels for row in entry.map) or 1
    low, high = entry.scale.people
    start, end = entry.scale.judge
    dots = [
        Dot(row.score, row.people, tone="second", size=row.labels / most,
            tip=_means(entry, row), key=f"score:{row.score:g}")
        for row in rows if row.people is not None
    ]  # fmt: skip
    line = Line([(row.score, row.value) for row in rows], tips=[_means(entry, row) for row in rows])
    return Chart(
        name,
        f"What a score means{owner}",
        "Line: people's mean behind a score, with its 95 % interval. Dots: the ratings nearest to "
        "that score, larger where there are more. Dashed: the judge rates as people do.",
        Axis("the judge says", lambda value: f"{value:.3g}", low=start, high=end),
        Axis("people's mean", lambda value: _tick(entry, value), low=low, high=high),
        [
            Line([(start, low), (end, high)], "plain", look="dashed"),
            Band([(row.score, row.low, row.high) for row in rows], "first"),
            line,
            *dots,
        ],
    )


def _means(entry: JudgeEntry, row: ScoreMeaning) -> str:
    words = " to ".join(in_units(entry, end) for end in (row.low, row.high))
    return f"{row.score:.3g} means {in_units(entry, row.value)} ({words}), {row.labels:,} rated"


def _flips(entry: JudgeEntry, name: str, owner: str) -> Chart | None:
    """Return to which place the verdicts go that flip with the order."""
    lean = next((lean for lean in entry.bias if lean.flips), None)
    if lean is None or lean.flips is None or lean.judge_share is None:
        return None
    first = round(lean.judge_share * lean.flips)
    rows = (("shown first", first), ("shown second", lean.flips - first),
            ("the same in both orders", lean.labels - lean.flips))  # fmt: skip
    return Chart(
        name,
        f"Verdicts on the same pair in both orders{owner}",
        "Pairs by what the verdict follows: a place, or the answer.",
        Axis("pairs", lambda value: f"{value:,.0f}", low=0),
        Names([words for words, _ in rows]),
        [
            Item(words, "second" if place < 2 else "first", bar=(0.0, count), words=f"{count:,}")
            for place, (words, count) in enumerate(rows)
        ],
    )
