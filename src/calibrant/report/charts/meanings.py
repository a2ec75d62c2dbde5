"""Charts of calibration by meaning: reliability, more draws, and where the estimators part."""

import math
from collections.abc import Mapping
from typing import Any

from calibrant.metrics.semantic.theory import JENSEN_BOUNDARY
from calibrant.report.charts.chart import Axis, Band, Chart, Dot, Label, Line, Mark, Rule
from calibrant.report.charts.reliability import diagram_of_series
from calibrant.report.charts.scales import in_points, points, short_number

_ESTIMATORS = (("all draws (Sem1)", "second", "sem1"), ("held-out draws (Sem2)", "first", "sem2"))
_ERROR = Axis("calibration error, points", words=in_points, low=0)


def meaning_charts(document: Mapping[str, Any]) -> list[Chart]:
    """Return the charts of every model's block, and the diagram over all of them."""
    blocks = document.get("sem_ece") or []
    found = []
    pooled = document.get("sem_ece_pooled")
    if pooled and pooled["models"] > 1 and pooled.get("reliability"):
        title = f"All {pooled['models']} models"
        found.append(_reliability(pooled["reliability"], title, len(blocks) + 1))
    for number, block in enumerate(blocks, 1):
        if block.get("reliability"):
            found.append(_reliability(block["reliability"], _name(block), number))
        if block.get("convergence"):
            found.append(_convergence(block, number))
        found.append(_strata(block, number))
        if block.get("regime_plane"):
            found.append(_plane(block, number))
    return found


def meaning_reliability(block: Mapping[str, Any]) -> Chart:
    """Return the diagram of the first block as the answer of an audit without other scores."""
    series = [(name, tone, block["reliability"][key]) for name, tone, key in _ESTIMATORS]
    title = f"Share of right answers against confidence by meaning, {block['model']}"
    caption = (
        "Confidence of the most frequent meaning, read off all draws and off draws that did not "
        "choose it."
    )
    return diagram_of_series("answer", title, caption, series)


def _reliability(bins: Mapping[str, Any], name: str, number: int) -> Chart:
    return diagram_of_series(
        f"meaning-reliability-{number}",
        f"{name}: share right against the share of the leading meaning",
        "On the dashed line the share of draws is the share of right answers; below it the model "
        "is over-confident. Larger points have more questions; lines are 95 % intervals. Sem1 "
        "counts all draws, Sem2 only those that did not choose the leading meaning.",
        [(words, tone, bins[key]) for words, tone, key in _ESTIMATORS],
    )


def _convergence(block: Mapping[str, Any], number: int) -> Chart:
    marks: list[Mark] = []
    for name, tone, key in _ESTIMATORS:
        found = [(point["n"], point[key]) for point in block["convergence"]["points"]]
        marks.append(
            Band([(n, e["low"], e["high"]) for n, e in found if e["low"] is not None], tone)
        )
        tips = [f"{n} draws: {in_points(e['value'])} points" for n, e in found]
        marks.append(Line([(n, e["value"]) for n, e in found], tone, name, tips=tips))
    return Chart(
        f"convergence-{number}",
        f"{_name(block)}: both estimates as draws are added",
        "Sem1's confidence is too high, Sem2's too low, both less so with more draws. The error "
        "with unlimited draws may lie outside both curves.",
        Axis("draws per question", words=short_number),
        _ERROR,
        marks,
    )


def _strata(block: Mapping[str, Any], number: int) -> Chart:
    marks: list[Mark] = []
    for name, tone, key in _ESTIMATORS:
        rows = [(_middle(row), row) for row in block["strata"]]
        bands = [(x, row.get(f"{key}_band") or {}) for x, row in rows]
        known = [(x, b["low"], b["high"]) for x, b in bands if b.get("low") is not None]
        marks.append(Band(known, tone))
        tips = [_stratum(row, name, key) for _, row in rows]
        marks.append(Line([(x, row[key]) for x, row in rows], tone, name, tips=tips))
    marks += [Label(_middle(row), _top(row), f"{row['n']:,}", "middle") for row in block["strata"]]
    at = block["boundaries"]
    marks.append(Rule(at["jensen"], "x", "low margin from here", dashed=True))
    marks.append(Rule(at["large_margin"], "x", "large margin from here", dashed=True))
    return Chart(
        f"margins-{number}",
        f"{_name(block)}: calibration error by margin",
        "The estimators agree where one meaning clearly leads (right of the second dashed line) "
        "and part where the race is close (left of the first, where chance in the choice of the "
        "mode dominates). Bands are intervals, with the number of questions above.",
        Axis("margin of the two most frequent meanings", low=0, high=1),
        _ERROR,
        marks,
    )


def _plane(block: Mapping[str, Any], number: int) -> Chart:
    """Return Figure 1a of the Sem-ECE paper with the questions of this model in it."""
    cells = block["regime_plane"]
    most = max(cell["n"] for cell in cells)
    top = max(2, *(cell["classes"] for cell in cells))
    marks: list[Mark] = [
        Dot(
            cell["margin"],
            cell["classes"],
            size=0.4 + 2 * math.sqrt(cell["n"] / most),
            tip=f"{cell['n']:,} questions with {cell['classes']} meanings",
        )
        for cell in cells
    ]
    edge = [(math.sqrt(math.log(k)), float(k)) for k in range(1, top + 1)]
    marks.append(Line(edge, "second", "large margin", look="dashed"))
    marks.append(Rule(2 * JENSEN_BOUNDARY, "x", "low margin from here", dashed=True))
    return Chart(
        f"regimes-{number}",
        f"{_name(block)}: how close the race between meanings is",
        "Each dot is questions, larger where there are more. Left of the first line both ways to "
        "read confidence are furthest apart; right of the dashed curve they agree.",
        Axis("margin of the two leading meanings, in standard errors", words=short_number, low=0),
        Axis("meanings among the draws", words=short_number, low=0),
        marks,
    )


def _middle(row: Mapping[str, Any]) -> float:
    return float(row["low"] + row["high"]) / 2


def _top(row: Mapping[str, Any]) -> float:
    ends = [(row.get(f"{key}_band") or {}).get("high") for _, _, key in _ESTIMATORS]
    return float(max([row["sem1"], row["sem2"], *(end for end in ends if end is not None)]))


def _stratum(row: Mapping[str, Any], name: str, key: str) -> str:
    words = f"{name}: {in_points(round(row[key], 4))} points, {row['n']:,} questions"
    gap = row["ece_gap"]
    if gap is None or gap["value"] is None:
        return words
    # A difference of equal errors is 0 but for rounding.
    ends = [
        points(round(gap[end], 9) + 0.0) for end in ("value", "low", "high") if gap[end] is not None
    ]
    return f"{words}; Sem1 - Sem2 {ends[0]}" + (
        f" ({ends[1]} to {ends[2]})" if len(ends) == 3 else ""
    )


def _name(block: Mapping[str, Any]) -> str:
    """Name a block by its model and, where questions are grouped, by its group."""
    groups = [f"{key} = {value}" for key, value in (block.get("group") or {}).items()]
    return ", ".join([str(block["model"]), *groups])
