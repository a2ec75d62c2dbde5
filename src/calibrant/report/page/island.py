"""Audited confidences as compact data: what the page's own script draws and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims import Claim
from calibrant.core.document import kind_of
from calibrant.core.method_words import method_words
from calibrant.metrics.registry import METRICS, audited
from calibrant.report.answers import (
    claim_tone,
    claims_by_entry,
    claims_of,
    entry_key,
    entry_tone,
    told,
)

_DIGITS = 4
_LEVEL = 0.95
_CURVE_POINTS = 40
_CUT = ("threshold", "n", "wrong", "low", "high")
_BIN = ("confidence", "rate", "low", "high", "n", "lower", "upper")


def confidences(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every audited confidence of the documents once, with all that a panel shows."""
    found: dict[str, dict[str, Any]] = {}
    for document in documents:
        if kind_of(document) != "audit":
            continue
        about, level = claims_by_entry(claims_of(document)), document.get("level", _LEVEL)
        for entry in told(document)["results"]:
            key = entry_key(entry)
            found.setdefault(key, _confidence(entry, key, about, level))
    return list(found.values())


def _confidence(
    entry: Mapping[str, Any], key: str, about: Mapping[str, Sequence[Claim]], level: float
) -> dict[str, Any]:
    reliability = entry.get("reliability") or {}
    return {
        "key": key,
        "model": str(entry["model"]),
        "method": str(entry["method"] or ""),
        "words": method_words(entry["method"]),
        "group": key.rpartition("␟")[2],
        "tone": entry_tone(entry, about),
        "n": entry["n"],
        "probability": entry["probability"],
        "metrics": {name: _estimate(value) for name, value in entry["metrics"].items()},
        "bins": [[_short(bin_[name]) for name in _BIN] for bin_ in reliability.get("bins") or ()],
        "band": _band(reliability.get("curve")),
        "histogram": reliability.get("histogram") or [],
        "cuts": _cuts(entry),
        "level": level,
        "evidence": _evidence(entry),
        "claims": [[claim_tone(claim), claim.text] for claim in about.get(key, ())],
        "notes": list(entry.get("notes") or ()),
    }


def _short(value: Any) -> Any:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _estimate(value: Mapping[str, Any]) -> list[Any]:
    return [_short(value[name]) for name in ("value", "low", "high")]


def _band(curve: Mapping[str, Any] | None) -> list[list[Any]]:
    """Return where a calibrated model would lie, at as many places as a picture shows."""
    if not curve or not curve.get("band_low"):
        return []
    rows = list(zip(curve["confidence"], curve["band_low"], curve["band_high"], strict=True))
    step = max(1, len(rows) // _CURVE_POINTS)
    kept = rows[::step]
    if rows and kept[-1] != rows[-1]:
        kept.append(rows[-1])
    return [[_short(value) for value in row] for row in kept if row[1] is not None]


def _cuts(entry: Mapping[str, Any]) -> list[list[Any]]:
    """Return threshold, rows at or above it, wrong ones among them and the ends of their share."""
    counts = entry.get("thresholds") or {}
    columns = [counts.get(name) or () for name in _CUT]
    return [
        [threshold, n, wrong, _short(low), _short(high)]
        for threshold, n, wrong, low, high in zip(*columns, strict=True)
    ]


def _evidence(entry: Mapping[str, Any]) -> dict[str, Any]:
    test = entry.get("calibration_test") or {}
    significance = (entry.get("significance") or {}).get("calibration") or {}
    block = entry.get("verification") or {}
    found = {
        "ECE if calibrated": [_short(test.get("expected_ece")), None, None],
        "p": [test.get("p_value"), None, None],
        "p corrected": [significance.get("p_adjusted"), None, None],
    }
    for name, title in (
        ("error_rate", "error rate"),
        ("lipschitz", "L"),
        ("passive_floor", "passive floor"),
        ("active_floor", "active floor"),
    ):
        value = block.get(name)
        found[title] = (
            _estimate(value) if isinstance(value, Mapping) else [_short(value), None, None]
        )
    return found


def policies(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the saved thresholds of the documents, with what the slider moves along."""
    found = []
    for number, document in enumerate(documents):
        if kind_of(document) != "decide":
            continue
        for entry in document["results"]:
            cuts = [
                [_short(point["threshold"]), *_counted(point["error"])]
                for point in entry.get("curve") or ()
                if point["error"]["value"] is not None
            ]
            shares = [p["error"]["n"] / p["share"] for p in entry.get("curve") or () if p["share"]]
            names = [str(entry.get(name) or "") for name in ("model", "method")]
            found.append(
                {
                    "key": f"policy-{number}-{' / '.join(names)}",
                    "name": " / ".join(["saved policy", *(name for name in names if name)]),
                    "cuts": cuts,
                    "level": _LEVEL,
                    "total": max(shares, default=0),
                    "threshold": entry.get("threshold"),
                    "costs": (document.get("settings") or {}).get("costs"),
                }
            )
    return found


def _counted(error: Mapping[str, Any]) -> list[Any]:
    wrong = round(float(error["n"]) * float(error["value"]), 1)
    return [error["n"], wrong, _short(error["low"]), _short(error["high"])]


def metric_columns() -> list[dict[str, str]]:
    """Return what the table of numbers needs to know of every metric."""
    shown = [METRICS[name] for name in audited()]
    return [
        {"name": one.name, "title": one.title, "group": one.group, "unit": one.unit}
        for one in shown
    ]
