"""Charts of a judge: models by people and by the judge, what a score means, flips."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.claims.judge import in_units
from calibrant.findings.documents.fields import JudgeFields
from calibrant.findings.documents.labels import JudgedModel, JudgeEntry, ScoreMeaning
from calibrant.report.charts import chart

_MOST_ROWS = 30
_LEGEND: chart.Legend = [("first", "dot", "people"), ("second", "diamond", "judge")]


def charts(document: JudgeFields) -> Iterator[chart.Chart]:
    """Yield the models of the first judge, then the map and the flips of each."""
    first = True
    for n, entry in enumerate(document.results, 1):
        owner = f", {entry.judge}" if len(document.results) > 1 else ""
        for what, describe in (("models", _models), ("map", _map), ("flips", _flips)):
            picture = describe(entry, "answer" if first else f"judge-{what}-{n}", owner)
            if picture is not None:
                yield picture
                first = False


def _people_axis(entry: JudgeEntry, title: str = "people's mean") -> chart.Axis:
    def words(value: float) -> str:
        return in_units(entry, value) if entry.scale.kind != "ratings" else f"{value:g}"

    low, high = entry.scale.people
    return chart.Axis(title, words, low=low, high=high)


def _models(entry: JudgeEntry, name: str, owner: str) -> chart.Chart | None:
    """Return people's means of models beside the judge's, on one scale."""
    known_names = [model for model in entry.models if model.combined.value is not None]
    if not known_names:
        return None
    known_names.sort(key=lambda model: -model.combined.number)
    visible = known_names[:_MOST_ROWS]
    pairs, equal = entry.scale.kind == "pairs", entry.scale.same
    marks: list[chart.Mark] = [_model_item(entry, model) for model in visible]
    if not pairs:
        whole = entry.people_mean.combined.number
        marks.append(chart.ReferenceLine(whole, "x", "people, all", dashed=True))
    return chart.Chart(
        name,
        f"Models by people's standard{owner}",
        "Dot: the mean that people would give all rows, with its 95 % interval. "
        + ("Diamond: what the judge says." if equal else ""),
        _people_axis(entry, "share of pairs won" if pairs else "people's mean"),
        chart.Names([model.name for model in visible], left_out=len(known_names) - len(visible)),
        marks,
        legend=_LEGEND[: 1 + equal],
    )


def _model_item(entry: JudgeEntry, model: JudgedModel) -> chart.Item:
    people, judge = _in_words(entry, model.combined), in_units(entry, model.judge_only)
    tip = f"{model.name}: people {people}, judge {judge}, {model.labels:,} rated"
    value, low, high = model.combined.ends
    dots = [chart.Dot(value, low=low, high=high, tip=tip)]
    if entry.scale.same:
        dots.append(chart.Dot(model.judge_only, tone="second", shape="diamond", tip=tip))
    words, key = in_units(entry, value), f"model:{model.name}"
    return chart.Item(model.name, dots=dots, words=words, tip=tip, key=key)


def _in_words(entry: JudgeEntry, estimate: EstimateEntry | ScoreMeaning) -> str:
    """Return a mean by people with its interval, as a tip says it."""
    value, low, high = (in_units(entry, end or 0.0)
                        for end in (estimate.value, estimate.low, estimate.high))  # fmt: skip
    return f"{value} ({low} to {high})"


def _map(entry: JudgeEntry, name: str, owner: str) -> chart.Chart | None:
    """Return people's mean at each score, with the means of the ratings there."""
    if len(entry.map) < 2 or entry.scale.kind == "pairs":
        return None
    rows, most = entry.map, max(row.labels for row in entry.map) or 1
    (start, end), (low, high) = entry.scale.judge, entry.scale.people
    tips = [f"{row.score:.3g} means {_in_words(entry, row)}, {row.labels:,} rated" for row in rows]
    dots = [
        chart.Dot(row.score, row.people, tone="second", size=row.labels / most, tip=tip,
                  key=f"score:{row.score:g}")
        for row, tip in zip(rows, tips, strict=True) if row.people is not None
    ]  # fmt: skip
    return chart.Chart(
        name,
        f"What a score means{owner}",
        "Line: people's mean behind a score, with its 95 % interval. Dots: the ratings nearest to "
        "that score, larger where there are more. Dashed: the judge rates as people do.",
        chart.Axis("the judge says", lambda value: f"{value:.3g}", low=start, high=end),
        _people_axis(entry),
        [
            chart.Line([(start, low), (end, high)], "plain", look="dashed"),
            chart.Band([(row.score, row.low, row.high) for row in rows], "first"),
            chart.Line([(row.score, row.value) for row in rows], tips=tips),
            *dots,
        ],
    )


def _flips(entry: JudgeEntry, name: str, owner: str) -> chart.Chart | None:
    """Return to which place the verdicts go that flip with the order."""
    lean = next((lean for lean in entry.bias if lean.flips), None)
    if lean is None or lean.flips is None or lean.judge_share is None:
        return None
    first = round(lean.judge_share * lean.flips)
    counts = {"shown first": first, "shown second": lean.flips - first,
              "the same in both orders": lean.labels - lean.flips}  # fmt: skip
    tones = ("second", "second", "first")
    return chart.Chart(
        name,
        f"Verdicts on the same pair in both orders{owner}",
        "Pairs by what the verdict follows: a place, or the answer.",
        chart.Axis("pairs", lambda value: f"{value:,.0f}", low=0),
        chart.Names(list(counts)),
        [
            chart.Item(words, tone, bar=(0.0, count), words=f"{count:,}")
            for (words, count), tone in zip(counts.items(), tones, strict=True)
        ],
    )
