"""Audited confidences as compact data: what the page's own script draws and lists."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec.structs import astuple

from calibrant.core.method_words import method_words
from calibrant.findings.claims import Claim
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.decisions import ThresholdPoint
from calibrant.findings.documents.entries import UNDEFINED, EstimateEntry
from calibrant.findings.documents.fields import AuditFields, DecideFields, Fields
from calibrant.metrics.registry import METRICS, audited
from calibrant.report.answers import claim_tone, claims_by_entry, entry_tone, group_words, key_of
from calibrant.report.charts.chart import Axis, Chart, Dot, Line
from calibrant.report.charts.plane import MEDIUM, draw_plane, marks_alone
from calibrant.report.charts.reliability import diagram_frame, diagram_marks

_DIGITS = 4
_LEVEL = 0.95


def confidences(documents: Sequence[Fields]) -> tuple[list[dict[str, Any]], Markup]:
    """Return every audited confidence of the documents once, with all that a panel shows.

    The marks of their reliability diagrams, for one frame, are text beside them, a line each: the
    page turns them into marks when they come near the screen, since hundreds of diagrams would
    take long to read otherwise.
    """
    by_key: dict[str, dict[str, Any]] = {}
    marks: dict[str, str] = {}
    for document in documents:
        if not isinstance(document, AuditFields):
            continue
        about = claims_by_entry(document.claims or [])
        for entry in document.blocks:
            key, block = key_of(entry), entry.reliability
            by_key.setdefault(key, _confidence(entry, key, about, document.level))
            if block and block.bins and key not in marks:
                marks[key] = marks_alone(diagram_marks(block, entry_tone(entry, about)), MEDIUM)
    return list(by_key.values()), Markup("\n".join(marks.get(key, "") for key in by_key))


def _confidence(
    entry: AuditBlock, key: str, about: Mapping[str, Sequence[Claim]], level: float
) -> dict[str, Any]:
    return {
        "key": key,
        "model": entry.model,
        "method": entry.method,
        "words": method_words(entry.method),
        "group": group_words(entry.group),
        "tone": entry_tone(entry, about),
        "n": entry.n,
        "probability": entry.probability,
        "metrics": {name: _estimate(value) for name, value in entry.metrics.items()},
        "cuts": _cuts(entry),
        "level": level,
        "evidence": _evidence(entry),
        "claims": [[claim_tone(claim), claim.text] for claim in about.get(key, ())],
        "notes": entry.notes,
    }


def _short(value: float | None) -> float | None:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _estimate(of: EstimateEntry) -> list[float | None]:
    return [_short(end) for end in (of.value, of.low, of.high)]


def frames() -> dict[str, Markup]:
    """Return empty charts that the page's script fills: a diagram, and a curve with its dot."""
    shares = (0, 0.25, 0.5, 0.75, 1)
    x, y = (Axis(title, low=0, high=1, at=shares) for title in ("share answered", " "))
    curve = Chart("curve", "", "", x, y, [Line([(0, 0)]), Dot(0, 0, shape="ring")])
    charts = {"diagram": diagram_frame(), "curve": curve}
    return {name: Markup(draw_plane(chart, MEDIUM).svg()) for name, chart in charts.items()}


def _cuts(entry: AuditBlock) -> list[list[Any]]:
    """Return threshold, rows at or above it, wrong ones among them and the ends of their share."""
    if entry.thresholds is None:
        return []
    columns = astuple(entry.thresholds)
    return [
        # A digit more than a reader is shown: hundreds of lists may be on one page.
        [float(f"{threshold:.6g}"), n, wrong, *(e if e is None else round(e, 3) for e in ends)]
        for threshold, n, wrong, *ends in zip(*columns, strict=True)
    ]


def _evidence(entry: AuditBlock) -> dict[str, list[float | None]]:
    test, block = entry.calibration_test, entry.verification
    corrected = entry.significance["calibration"] if entry.significance else None
    numbers = {
        "ECE if calibrated": _short(test["expected_ece"]) if test else None,
        "p": test["p_value"] if test else None,
        "p corrected": corrected["p_adjusted"] if corrected else None,
    }
    floors = {
        "error rate": block.error_rate if block else UNDEFINED,
        "L": block.lipschitz if block else UNDEFINED,
        "passive floor": block.passive_floor if block else UNDEFINED,
        "active floor": block.active_floor if block else UNDEFINED,
    }
    return {
        **{title: [value, None, None] for title, value in numbers.items()},
        **{title: _estimate(value) for title, value in floors.items()},
    }


def policies(documents: Sequence[Fields]) -> list[dict[str, Any]]:
    """Return the saved thresholds of the documents, with what the slider moves along."""
    return [
        {
            "key": f"policy-{number}-{entry.model} / {entry.method}",
            "name": " / ".join(filter(None, ("saved policy", entry.model, entry.method))),
            "cuts": [_policy_cut(p) for p in entry.curve if p.error.value is not None],
            "level": _LEVEL,
            "total": max(((p.error.n or 0) / p.share for p in entry.curve if p.share), default=0),
            "threshold": entry.threshold,
            "costs": (document.settings or {}).get("costs"),
        }
        for number, document in enumerate(documents)
        if isinstance(document, DecideFields)
        for entry in document.results
    ]


def _policy_cut(point: ThresholdPoint) -> list[Any]:
    wrong, n = point.error.number, point.error.n or 0
    return [_short(point.threshold), n, round(n * wrong, 1), *_estimate(point.error)[1:]]


def metric_columns() -> list[dict[str, str]]:
    """Return what the table of numbers needs to know of every metric."""
    parts = ("name", "title", "group", "unit")
    return [{part: getattr(METRICS[name], part) for part in parts} for name in audited()]
