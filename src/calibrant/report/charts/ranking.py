"""Charts that set models beside each other: a comparison, ranks, and what labels can show."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from calibrant.core.names import method_name
from calibrant.findings.claims import Claim
from calibrant.findings.documents import entries
from calibrant.findings.documents.fields import CompareFields, LeaderboardFields, PlanFields, typed
from calibrant.findings.documents.plans import RankedModel
from calibrant.report.answers import headline
from calibrant.report.cells import entry_name
from calibrant.report.charts import chart
from calibrant.report.charts.svg import count_words, in_points, percent, points, short_number

_MODELS = 20
_HISTOGRAMS = 3
_SIGNS = {
    "better": ("✓", "first", 4),
    "worse": ("−", "second", 1),
    "only more accurate": ("+", "equivalent", 1),
    "only less accurate": ("=", "equivalent", 1),
    "more accurate, alike": ("+", "equivalent", 1),
    "less accurate, alike": ("=", "equivalent", 1),
    "equivalent": ("≈", "equivalent", 1),
    "reversal": ("⇄", "plain", 1),
    "depends": ("±", "plain", 1),
}
_STATES = {
    "better": ("first", "one is better"),
    "depends": ("second", "reversal or depends"),
    "": ("plain", "no better one"),
}


def compare_charts(document: CompareFields) -> Iterator[chart.Chart]:
    """Yield tiers with the win matrix, raw against aligned gaps, and both-wrong histograms."""
    if document.league:
        yield _league(document.league, document.claims or [])
    if document.pairs:
        yield _scatter(document.pairs)
    several = len({pair.method for pair in document.pairs}) > 1
    halves = [(pair, pair.shared["both_wrong"]) for pair in document.pairs if pair.shared]
    shared = [(pair, half) for pair, half in halves if half.n]
    more = f" The first {_HISTOGRAMS} of {len(shared)} pairs." if len(shared) > _HISTOGRAMS else ""
    for number, (pair, half) in enumerate(shared[:_HISTOGRAMS], 1):
        title = f"Shared blind spots: {pair.a} and {pair.b}"
        yield chart.Chart(
            f"both-wrong-{number}",
            title + (f", {pair.method}" if several else ""),
            f"Confidence of both models on the {half.n:,} questions that both get wrong: mass on "
            f"the right is over-confidence that neither can blame on hard luck.{more}",
            chart.Axis("confidence", low=0, high=1),
            chart.Axis("questions", words=count_words, low=0),
            [_steps(half.histogram_a, "first", pair.a), _steps(half.histogram_b, "second", pair.b)],
        )


def _league(leagues: Sequence[entries.League], claims: Sequence[Claim]) -> chart.Chart:
    """Return tiers and the win matrix of the confidence that tells most models apart."""
    whole = [league for league in leagues if not league.group] or leagues
    # The first sentence is about this confidence.
    sentences = next(iter(headline(claims, 1)), None)
    first = next((claim.subject.get("method") for claim in claims if claim.text == sentences), None)
    league = next((part for part in whole if part.method == first), whole[0])
    standings = league.entries[:_MODELS]
    names = [entry.model for entry in standings]
    ends = frozenset(a.model for a, b in pairwise(standings) if a.tier != b.tier)
    title = "Who is better calibrated"
    title += f", by {method_name(league.method)}" if len(whole) > 1 else ""
    unplaced = any(entry.tier is None for entry in standings)
    last = " Last: models without a place; the table says why." if unplaced else ""
    return chart.Chart(
        "answer",
        title,
        "Signs: the verdict on each pair. ✓ row better than column, − worse, + more accurate but "
        "alike, = less accurate, ≈ equivalent, ⇄ looks better and is worse, ± depends, ? "
        "undecided. "
        "Score: skill, which also counts how well confidence separates; 0 if constant, 100 "
        "if perfect. A "
        f"line parts tiers, which follow from 'better'.{last}",
        chart.Axis("score", words=in_points),
        chart.Names(names, ends=ends, numbered=True),
        [_standing(entry) for entry in standings],
        [chart.Panel(chart.Names(names, numbered=True), _matrix(league.win_matrix, names))],
    )


def _standing(entry: entries.Standing) -> chart.Item:
    score, name = entry.score, entry.model
    tip = f"{name}: {in_points(round(score.number, 3))}{chart.between(score, in_points)}"
    return chart.Item(
        name, dots=[chart.Dot(score.number, 0, *chart.bounds(score))], tip=tip, key=name
    )


def _matrix(matrix: entries.WinMatrix, names: Sequence[str]) -> list[chart.Cell]:
    display = set(names)
    cells = []
    for a, row in zip(matrix.models, matrix.table, strict=True):
        for b, outcome in zip(matrix.models, row, strict=True):
            if a == b and a in display:
                cells.append(chart.Cell(a, b, ""))
            elif a in display and b in display:
                sign, tone, shade = _SIGNS.get(str(outcome), ("?", "plain", 1))
                tip = f"{a} against {b}: {outcome or 'undecided'}"
                cells.append(chart.Cell(a, b, sign, tone, shade, tip, f"{a}␟{b}"))
    return cells


def _scatter(pairs: Sequence[entries.PairEntry]) -> chart.Chart:
    dots = [_pair(pair) for pair in pairs]
    wide = 1.15 * max(abs(dot.x) for dot in dots) or 0.01
    ends = [end for dot in dots for end in (dot.y, dot.low, dot.high) if end is not None]
    high = 1.15 * max(map(abs, ends)) or 0.01
    marks: list[chart.Mark] = [
        chart.Area((-wide, 0), (0, high)),
        chart.Area((0, -high), (wide, 0)),
        chart.ReferenceLine(0, "x"),
        chart.ReferenceLine(0, "y"),
        *dots,
    ]
    legend: chart.Legend = [(tone, "dot", words) for tone, words in _STATES.values()]
    return chart.Chart(
        "gaps",
        "What is left of each gap at equal accuracy",
        "Each point is a pair, brought to the accuracy of either with the confidences moved along, "
        "on average. In the shaded quadrants the order of the two models turns round. Colours: the "
        "verdict on each pair. Lines: intervals of each gap alone.",
        chart.Axis("difference of calibration errors as answered, points", points, -wide, wide),
        chart.Axis("difference at equal accuracy, points", points, -high, high),
        marks,
        legend=legend,
    )


def _pair(pair: entries.PairEntry) -> chart.Dot:
    aligned, raw = pair.gaps.sos.ece, pair.gaps.raw.ece.number
    tone, state = _STATES.get(str(pair.verdict).replace("reversal", "depends"), _STATES[""])
    tip = (
        f"{pair.a} - {pair.b}, {pair.method}: {points(raw)} as answered, "
        f"{points(aligned.number)}{chart.between(aligned, points)} at equal accuracy; {state}"
    )
    key = f"{pair.a}␟{pair.b}"
    return chart.Dot(raw, aligned.number, *chart.bounds(aligned), tone, size=0.3, tip=tip, key=key)


def _steps(counts: Sequence[float], tone: str, name: str) -> chart.Line:
    size = 1 / len(counts)
    places = [((k + end) * size, n) for k, n in enumerate(counts) for end in (0, 1)]
    tips = [words for k, n in enumerate(counts) for words in (f"{name}, {k * size:.0%}: {n:,}", "")]
    return chart.Line(places, tone, name, tips=tips)


_CHOICES: tuple[tuple[str, str, str, Literal["left", "right"]], ...] = (
    ("random labels", "second", "passive_labels", "right"),
    ("chosen labels", "first", "active_labels", "left"),
)
_SHOWN, _MOST = 20, 40


class ErrorFloors(NamedTuple):
    """What a name's error is held against: its floors, and what chance shows."""

    name: str
    ece: entries.EstimateEntry
    verification: entries.Verification
    chance: float | None


def plan_charts(document: PlanFields) -> Iterator[chart.Chart]:
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
    standings: Sequence[ErrorFloors], *, expected: str = "if calibrated"
) -> Iterator[chart.Chart]:
    """Yield one chart, or none where no error is known.

    `expected` says what the last number is: what a calibrated model shows on average, or at most.
    """
    visible = [entry for entry in standings if entry.ece.value is not None][:_SHOWN]
    if not visible:
        return
    caption = (
        "An error to the right of its passive floor and of what a calibrated model would show is "
        "more than chance; one to the left of them is beyond these labels."
    )
    if len(standings) > len(visible):
        caption += f" The first {len(visible)} of {len(standings)}."
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
    metric, standings = document.metric, document.results[:_MOST]
    words = percent if metric == "accuracy" else in_points
    if not standings:
        return
    more = len(document.results) - len(standings)
    yield chart.Chart(
        name,
        f"Models by {metric}, with intervals",
        "Grey: the data leave the rank open."
        + (f" The first {_MOST} of {_MOST + more:,}." if more else ""),
        chart.Axis(metric if words is percent else f"{metric}, points", words=words),
        chart.Names([entry.model for entry in standings]),
        [_rank(entry, getattr(entry, metric), words) for entry in standings],
    )


def _rank(
    entry: RankedModel, measurements: entries.EstimateEntry, words: Callable[[float], str]
) -> chart.Item:
    low, high, name = entry.rank_low, entry.rank_high, entry.model
    tone = "first" if low == high else "undecided"
    rank = str(low) if low == high else f"{low} to {high}"
    value, least, most = measurements.ends
    sentences = words(round(value, 3))
    tip = f"{name}: {sentences}{chart.between(measurements, words)}, rank {rank}"
    dots = [chart.Dot(value, 0, least, most, tone)]
    return chart.Item(name, tone, dots=dots, words=sentences, tip=tip, key=name)
