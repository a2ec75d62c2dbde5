"""Charts of what labels can show: of a plan, of an audit, and the ranks of a leaderboard."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from calibrant.findings.documents.entries import EstimateEntry, Verification
from calibrant.findings.documents.fields import LeaderboardFields, PlanFields, typed
from calibrant.findings.documents.plans import RankedModel
from calibrant.report.blocks import entry_name
from calibrant.report.charts import chart
from calibrant.report.charts.scales import in_points, percent, short_number

_CHOICES: tuple[tuple[str, str, str, Literal["left", "right"]], ...] = (
    ("random labels", "second", "passive_labels", "right"),
    ("chosen labels", "first", "active_labels", "left"),
)
_SHOWN, _MOST = 20, 40


class ErrorFloors(NamedTuple):
    """What a name's error is held against: its floors, and what chance shows."""

    name: str
    ece: EstimateEntry
    verification: Verification
    chance: float | None


def charts(document: PlanFields) -> Iterator[chart.Chart]:
    """Yield the smallest error shown against labels, what was measured, and the ranks."""
    lines, dots = [], []
    targets = (document.settings or {}).get("precision")
    for name, tone, key, side in _CHOICES:
        places = sorted(
            (labels, point.precision)
            for point in document.curve or ()
            if (labels := getattr(point, key))
        )
        tips = [f"{labels:,.0f} {name}: {in_points(error)} points" for labels, error in places]
        lines += [chart.Line(places, tone, name, tips=tips)] if places else []
        if targets is not None and document[key]:
            label = f"{document[key]:,}"
            dots.append(
                chart.Dot(document[key], targets, tone=tone, shape="ring", label=label, side=side)
            )
    ranking = document.leaderboard and typed(document.leaderboard)
    if lines:
        yield chart.Chart(
            "answer",
            "Labels against the smallest calibration error they can show",
            "At worst this many labels are needed for a claim of this size; rates with constant 1.",
            chart.Axis("labels", words=short_number, scale="log"),
            chart.Axis("smallest error shown, points", words=in_points, scale="log"),
            [*lines, *dots],
        )
    elif ranking:
        yield from leaderboard_charts(ranking)
    blocks = document.measured or []
    several = len({block.method for block in blocks}) > 1
    rows = [
        ErrorFloors(
            entry_name(block) if several else block.model,
            block.verification.resolution.ece,
            block.verification,
            block.verification.resolution.if_calibrated,
        )
        for block in blocks
    ]
    yield from floor_chart(rows, expected="95 % of calibrated ones")
    if lines and ranking:
        yield from leaderboard_charts(ranking, name="leaderboard")


def floor_chart(
    entries: Sequence[ErrorFloors], *, expected: str = "if calibrated"
) -> Iterator[chart.Chart]:
    """Yield one chart, or none where no error is known.

    `expected` says what the last number is: what a calibrated model shows on average, or at most.
    """
    visible = [entry for entry in entries if entry.ece.value is not None][:_SHOWN]
    if not visible:
        return
    caption = (
        "An error to the right of its passive floor and of what a calibrated model would show is "
        "more than chance; one to the left of them is beyond these labels."
    )
    if len(entries) > len(visible):
        caption += f" The first {len(visible)} of {len(entries)}."
    legend: chart.Legend = [
        ("first", "dot", "calibration error"),
        ("plain", "diamond", expected),
        ("second", "triangle", "passive floor"),
        ("third", "triangle", "active floor"),
    ]
    yield chart.Chart(
        "floors",
        "What these labels can show",
        caption,
        chart.Axis(words=in_points, low=0),
        chart.Names([entry.name for entry in visible]),
        [_error(entry, expected) for entry in visible],
        legend=legend,
        end_title="points",
    )


def _error(entry: ErrorFloors, expected: str) -> chart.Item:
    error, low, high = entry.ece.ends
    passive, active = entry.verification.passive_floor.value, entry.verification.active_floor.value
    others: list[tuple[float | None, str, chart.Shape]] = [
        (passive, "second", "triangle"),
        (active, "third", "triangle"),
        (entry.chance, "plain", "diamond"),
    ]
    dots = [
        chart.Dot(value, 0, tone=tone, shape=shape)
        for value, tone, shape in others
        if value is not None
    ]
    numbers = {"ECE": error, expected: entry.chance, "passive": passive, "active": active}
    text = ", ".join(f"{words} {in_points(v)}" for words, v in numbers.items() if v is not None)
    return chart.Item(
        entry.name,
        dots=[*dots, chart.Dot(error, 0, low, high)],
        words=in_points(round(error, 3)),
        tip=f"{entry.name}: {text} points",
    )


def leaderboard_charts(document: LeaderboardFields, name: str = "answer") -> Iterator[chart.Chart]:
    """Yield every model with its interval, best first."""
    metric, entries = document.metric, document.results[:_MOST]
    words = percent if metric == "accuracy" else in_points
    if not entries:
        return
    more = len(document.results) - len(entries)
    yield chart.Chart(
        name,
        f"Models by {metric}, with intervals",
        "Grey: the data leave the rank open."
        + (f" The first {_MOST} of {_MOST + more:,}." if more else ""),
        chart.Axis(metric if words is percent else f"{metric}, points", words=words),
        chart.Names([entry.model for entry in entries]),
        [_rank(entry, getattr(entry, metric), words) for entry in entries],
    )


def _rank(
    entry: RankedModel, measurements: EstimateEntry, words: Callable[[float], str]
) -> chart.Item:
    low, high, name = entry.rank_low, entry.rank_high, entry.model
    tone = "first" if low == high else "undecided"
    rank = str(low) if low == high else f"{low} to {high}"
    value, least, most = measurements.ends
    sentences = words(round(value, 3))
    tip = f"{name}: {sentences}{chart.between(measurements, words)}, rank {rank}"
    dots = [chart.Dot(value, 0, least, most, tone)]
    return chart.Item(name, tone, dots=dots, words=sentences, tip=tip, key=name)
