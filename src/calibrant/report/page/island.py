"""Audited confidences as compact data: what the page's own script draws and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims import Claim
from calibrant.core.document import kind_of
from calibrant.report.answers import claim_tone, claims_by_entry, claims_of, entry_key, entry_tone

__all__ = ["confidences", "policies"]

_DIGITS = 4
_CURVE_POINTS = 40
_BIN = ("confidence", "rate", "low", "high", "n", "lower", "upper")


def confidences(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every audited confidence of the documents once, with all that a panel shows."""
    found: dict[str, dict[str, Any]] = {}
    for document in documents:
        if kind_of(document) != "audit":
            continue
        about = claims_by_entry(claims_of(document))
        for entry in document["results"]:
            key = entry_key(entry)
            found.setdefault(key, _confidence(entry, key, about))
    return list(found.values())


def _confidence(
    entry: Mapping[str, Any], key: str, about: Mapping[str, Sequence[Claim]]
) -> dict[str, Any]:
    reliability = entry.get("reliability") or {}
    return {
        "key": key,
        "model": str(entry["model"]),
        "method": str(entry["method"] or ""),
        "group": key.rpartition("␟")[2],
        "tone": entry_tone(entry, about),
        "n": entry["n"],
        "probability": entry["probability"],
        "metrics": {name: _estimate(value) for name, value in entry["metrics"].items()},
        "bins": [[_short(bin_[name]) for name in _BIN] for bin_ in reliability.get("bins") or ()],
        "band": _band(reliability.get("curve")),
        "histogram": reliability.get("histogram") or [],
        "cuts": _cuts(entry),
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
    """Return (threshold, rows at or above it, right among them), falling in the threshold.

    Sums are exact at the edges of the bins; inside of a bin they follow the isotonic curve.
    """
    reliability = entry.get("reliability") or {}
    rows: list[list[Any]] = []
    answered = right = 0.0
    for bin_ in reversed(reliability.get("bins") or ()):
        inside = _inside(bin_, reliability.get("curve"))
        mass = sum(weight for _, weight, _ in inside)
        hits = sum(weight * rate for _, weight, rate in inside)
        for place, weight, rate in reversed(inside):
            answered += bin_["n"] * weight / mass
            share = weight * rate / hits if hits else weight / mass
            right += bin_["n"] * bin_["rate"] * share
            rows.append([_short(place), round(answered, 1), round(min(right, answered), 1)])
    return rows


def _inside(
    bin_: Mapping[str, Any], curve: Mapping[str, Any] | None
) -> list[tuple[float, float, float]]:
    """Return the points of the curve in a bin: place, weight, rate; or else the bin itself."""
    names = ("confidence", "weight", "rate")
    found = []
    if curve and all(curve.get(name) for name in names):
        for place, weight, rate in zip(*(curve[name] for name in names), strict=True):
            last = bin_["upper"] >= 1 and place >= bin_["lower"]
            if weight and (last or bin_["lower"] <= place < bin_["upper"]):
                found.append((place, weight, rate))
    return found or [(bin_["lower"], 1.0, bin_["rate"])]


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
                [_short(point["threshold"]), point["error"]["n"], _right(point["error"])]
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
                    "total": max(shares, default=0),
                    "threshold": entry.get("threshold"),
                    "costs": (document.get("settings") or {}).get("costs"),
                }
            )
    return found


def _right(error: Mapping[str, Any]) -> float:
    return round(float(error["n"]) * (1 - float(error["value"])), 1)
