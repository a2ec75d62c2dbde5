"""Charts of a comparison: who is shown to be better, each gap at equal accuracy, blind spots."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from calibrant.core.names import method_name
from calibrant.findings.claims import Claim
from calibrant.findings.documents.entries import (
    League,
    PairEntry,
    SharedAnswers,
    Standing,
    WinMatrix,
)
from calibrant.findings.documents.fields import CompareFields
from calibrant.report.answers import headline
from calibrant.report.charts import chart
from calibrant.report.charts.scales import count_words, in_points, points

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


def charts(document: CompareFields) -> Iterator[chart.Chart]:
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
        yield _both_wrong(pair, half, number, more, several=several)


def _league(leagues: Sequence[League], claims: Sequence[Claim]) -> chart.Chart:
    """Return tiers and the win matrix of the confidence that tells most models apart."""
    whole = [league for league in leagues if not league.group] or leagues
    # The first sentence is about this confidence.
    sentences = next(iter(headline(claims, 1)), None)
    first = next((claim.subject.get("method") for claim in claims if claim.text == sentences), None)
    league = next((part for part in whole if part.method == first), whole[0])
    entries = league.entries[:_MODELS]
    names = [entry.model for entry in entries]
    ends = frozenset(a.model for a, b in pairwise(entries) if a.tier != b.tier)
    title = "Who is better calibrated"
    title += f", by {method_name(league.method)}" if len(whole) > 1 else ""
    unplaced = any(entry.tier is None for entry in entries)
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
        [_standing(entry) for entry in entries],
        [chart.Panel(chart.Names(names, numbered=True), _matrix(league.win_matrix, names))],
    )


def _standing(entry: Standing) -> chart.Item:
    score, name = entry.score, entry.model
    tip = f"{name}: {in_points(round(score.number, 3))}{chart.between(score, in_points)}"
    return chart.Item(
        name, dots=[chart.Dot(score.number, 0, *chart.bounds(score))], tip=tip, key=name
    )


def _matrix(matrix: WinMatrix, names: Sequence[str]) -> list[chart.Cell]:
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


def _scatter(pairs: Sequence[PairEntry]) -> chart.Chart:
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


def _pair(pair: PairEntry) -> chart.Dot:
    aligned, raw = pair.gaps.sos.ece, pair.gaps.raw.ece.number
    tone, state = _STATES.get(str(pair.verdict).replace("reversal", "depends"), _STATES[""])
    tip = (
        f"{pair.a} - {pair.b}, {pair.method}: {points(raw)} as answered, "
        f"{points(aligned.number)}{chart.between(aligned, points)} at equal accuracy; {state}"
    )
    key = f"{pair.a}␟{pair.b}"
    return chart.Dot(raw, aligned.number, *chart.bounds(aligned), tone, size=0.3, tip=tip, key=key)


def _both_wrong(
    pair: PairEntry, half: SharedAnswers, number: int, more: str, *, several: bool
) -> chart.Chart:
    title = f"Shared blind spots: {pair.a} and {pair.b}"
    return chart.Chart(
        f"both-wrong-{number}",
        title + (f", {pair.method}" if several else ""),
        f"Confidence of both models on the {half.n:,} questions that both get wrong: mass on "
        f"the right is over-confidence that neither can blame on hard luck.{more}",
        chart.Axis("confidence", low=0, high=1),
        chart.Axis("questions", words=count_words, low=0),
        [_steps(half.histogram_a, "first", pair.a), _steps(half.histogram_b, "second", pair.b)],
    )


def _steps(counts: Sequence[float], tone: str, name: str) -> chart.Line:
    size = 1 / len(counts)
    places = [((k + end) * size, n) for k, n in enumerate(counts) for end in (0, 1)]
    tips = [words for k, n in enumerate(counts) for words in (f"{name}, {k * size:.0%}: {n:,}", "")]
    return chart.Line(places, tone, name, tips=tips)
