"""Charts of calibration by meaning: reliability, more draws, and where the estimators part."""

import math
from collections.abc import Iterable, Iterator, Sequence

from calibrant.findings.documents import audits
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.metrics.semantic.theory import JENSEN_BOUNDARY
from calibrant.report.charts.chart import (
    Axis,
    Band,
    Chart,
    Dot,
    Label,
    Line,
    Mark,
    ReferenceLine,
    bounds,
)
from calibrant.report.charts.reliability import diagram_of_series
from calibrant.report.charts.scales import in_points, points, short_number

_ESTIMATORS = (("all draws (Sem1)", "second", "sem1"), ("held-out draws (Sem2)", "first", "sem2"))
Bins = dict[str, list[audits.ReliabilityBin]]
_ERROR = Axis("calibration error, points", words=in_points, low=0)


def meaning_charts(
    blocks: Sequence[audits.SemanticEntry], pooled: audits.PooledMeanings | None = None
) -> Iterator[Chart]:
    """Yield the charts of every model's block, after the diagram over all of them."""
    if pooled and pooled.models > 1 and pooled.reliability:
        yield _reliability(pooled.reliability, f"All {pooled.models} models", len(blocks) + 1)
    for number, block in enumerate(blocks, 1):
        if block.reliability:
            yield _reliability(block.reliability, block.name, number)
        if block.convergence:
            yield _convergence(block.convergence.points, block.name, number)
        yield _strata(block, number)
        if block.regime_plane:
            yield _plane(block.regime_plane, block.name, number)


def meaning_reliability(block: audits.SemanticEntry) -> Chart:
    """Return the diagram of the first block as the answer of an audit without other scores."""
    bins = block.reliability or {}
    series = [(name, tone, bins[key]) for name, tone, key in _ESTIMATORS]
    title = f"Share of right answers against confidence by meaning, {block.model}"
    caption = (
        "Confidence of the most frequent meaning, read off all draws and off draws that did not "
        "choose it."
    )
    return diagram_of_series("answer", title, caption, series)


def _reliability(bins: Bins, name: str, number: int) -> Chart:
    return diagram_of_series(
        f"meaning-reliability-{number}",
        f"{name}: share right against the share of the leading meaning",
        "On the dashed line the share of draws is the share of right answers; below it the model "
        "is over-confident. Larger points have more questions; lines are 95 % intervals. Sem1 "
        "counts all draws, Sem2 only those that did not choose the leading meaning.",
        [(words, tone, bins[key]) for words, tone, key in _ESTIMATORS],
    )


def _convergence(steps: Sequence[audits.DrawsPoint], model: str, number: int) -> Chart:
    marks: list[Mark] = []
    for name, tone, key in _ESTIMATORS:
        errors: list[tuple[int, EstimateEntry]] = [(p.n, getattr(p, key)) for p in steps]
        marks.append(Band(_band(errors), tone))
        tips = [f"{n} draws: {in_points(e.number)} points" for n, e in errors]
        marks.append(Line([(n, e.number) for n, e in errors], tone, name, tips=tips))
    return Chart(
        f"convergence-{number}",
        f"{model}: both estimates as draws are added",
        "Sem1's confidence is too high, Sem2's too low, both less so with more draws. The error "
        "with unlimited draws may lie outside both curves.",
        Axis("draws per question", words=short_number),
        _ERROR,
        marks,
    )


def _band(errors: Iterable[tuple[float, EstimateEntry | None]]) -> list[tuple[float, float, float]]:
    ends = [(x, *bounds(e)) for x, e in errors]
    return [(x, low, high) for x, low, high in ends if low is not None and high is not None]


def _strata(block: audits.SemanticEntry, number: int) -> Chart:
    marks: list[Mark] = []
    rows = [((row.low + row.high) / 2, row) for row in block.strata]
    for name, tone, key in _ESTIMATORS:
        marks.append(Band(_band((x, getattr(row, f"{key}_band")) for x, row in rows), tone))
        tips = [_stratum(row, name, getattr(row, key)) for _, row in rows]
        marks.append(Line([(x, getattr(row, key)) for x, row in rows], tone, name, tips=tips))
    marks += [Label(x, _top(row), f"{row.n:,}", "middle") for x, row in rows]
    if place := block.boundaries:
        marks.append(ReferenceLine(place["jensen"], "x", "low margin from here", dashed=True))
        marks.append(
            ReferenceLine(place["large_margin"], "x", "large margin from here", dashed=True)
        )
    return Chart(
        f"margins-{number}",
        f"{block.name}: calibration error by margin",
        "The estimators agree where one meaning clearly leads (right of the second dashed line) "
        "and part where the race is close (left of the first, where chance in the choice of the "
        "mode dominates). Bands are intervals, with the number of questions above.",
        Axis("margin of the two most frequent meanings", low=0, high=1),
        _ERROR,
        marks,
    )


def _plane(cells: Sequence[audits.PlaneCell], model: str, number: int) -> Chart:
    """Return Figure 1a of the Sem-ECE paper with the questions of this model in it."""
    most = max(cell.n for cell in cells)
    top = max(2, *(cell.classes for cell in cells))
    marks: list[Mark] = [
        Dot(
            cell.margin,
            cell.classes,
            size=0.4 + 2 * math.sqrt(cell.n / most),
            tip=f"{cell.n:,} questions with {cell.classes} meanings",
        )
        for cell in cells
    ]
    edge = [(math.sqrt(math.log(k)), float(k)) for k in range(1, top + 1)]
    marks.append(Line(edge, "second", "large margin", look="dashed"))
    marks.append(ReferenceLine(2 * JENSEN_BOUNDARY, "x", "low margin from here", dashed=True))
    return Chart(
        f"regimes-{number}",
        f"{model}: how close the race between meanings is",
        "Each dot is questions, larger where there are more. Left of the first line both ways to "
        "read confidence are furthest apart; right of the dashed curve they agree.",
        Axis("margin of the two leading meanings, in standard errors", words=short_number, low=0),
        Axis("meanings among the draws", words=short_number, low=0),
        marks,
    )


def _top(row: audits.Stratum) -> float:
    ends = (bounds(band)[1] for band in (row.sem1_band, row.sem2_band))
    return max([row.sem1, row.sem2, *(end for end in ends if end is not None)])


def _stratum(row: audits.Stratum, name: str, error: float) -> str:
    words = f"{name}: {in_points(round(error, 4))} points, {row.n:,} questions"
    gap = row.ece_gap
    if gap is None or gap.value is None:
        return words
    # A difference of equal errors is 0 but for rounding.
    ends = [
        points(round(end, 9) + 0.0) for end in (gap.value, gap.low, gap.high) if end is not None
    ]
    return f"{words}; Sem1 - Sem2 {ends[0]}" + (
        f" ({ends[1]} to {ends[2]})" if len(ends) == 3 else ""
    )
