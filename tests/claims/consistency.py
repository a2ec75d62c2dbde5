"""What must hold in every document: no contradiction, numbers inside their intervals and ranges."""

import re

WORDS = {"audit.over_confident": 1, "audit.under_confident": -1}
UNDEFINED = re.compile(r"\bnan\b|\bNone\b(?! of)|\binf\b")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def contradictions(document):
    """Yield what is wrong with the claims of a document."""
    for claim in document.get("claims", []):
        yield from _numbers(claim)
        yield from _text(claim)
    yield from _opposites(document.get("claims", []))
    yield from _estimates(document.get("results", []), "results")


def _key(claim):
    return tuple(sorted((name, str(value)) for name, value in claim["subject"].items()))


def _numbers(claim):
    value, low, high = claim["value"], claim["low"], claim["high"]
    if None not in (value, low, high) and not low - 1e-12 <= value <= high + 1e-12:
        yield f"{claim['id']}: {value} is outside [{low}, {high}]"
    p_value = claim["p_adjusted"]
    if p_value is not None and not 0 <= p_value <= 1:
        yield f"{claim['id']}: p = {p_value}"
    if claim["outcome"] == "shown" and p_value is not None and p_value > 0.05:
        yield f"{claim['id']}: shown with p = {p_value}"


def _text(claim):
    if claim["text"] != claim["text"].strip() or not claim["text"].endswith("."):
        yield f"{claim['id']}: no sentence: {claim['text']!r}"
    if UNDEFINED.search(claim["text"]):
        yield f"{claim['id']}: {claim['text']}"
    if claim["outcome"] == "equivalent" and claim["id"] in WORDS:
        margin = f"{100 * claim['margin']:g}"
        if margin not in NUMBER.findall(claim["text"]):
            yield f"{claim['id']}: the margin {margin} is not in {claim['text']!r}"


def _opposites(claims):
    by_subject = {}
    for claim in claims:
        by_subject.setdefault(_key(claim), {}).setdefault(claim["id"], []).append(claim)
    for key, found in by_subject.items():
        directions = [name for name in WORDS if name in found]
        if len(directions) > 1:
            yield f"{key}: both {directions}"
        for name, group in found.items():
            if len(group) > 1:
                yield f"{key}: {name} is said {len(group)} times"
        error = found.get("audit.miscalibrated", [{"outcome": None}])[0]
        for name in directions:
            claim = found[name][0]
            both = claim["outcome"] == "shown" and error["outcome"] == "equivalent"
            if both and claim["low"] is not None and claim["low"] > error["margin"]:
                yield f"{key}: off by more than the margin, and calibrated within it"


def _estimates(value, place):
    if isinstance(value, dict):
        if {"value", "low", "high"} <= value.keys():
            found = [value[name] for name in ("value", "low", "high")]
            if None not in found and not found[1] - 1e-9 <= found[0] <= found[2] + 1e-9:
                yield f"{place}: {found[0]} is outside [{found[1]}, {found[2]}]"
            least, most = _range(place)
            if any(x is not None and not least - 1e-9 <= x <= most + 1e-9 for x in found):
                yield f"{place}: {found} leaves [{least}, {most}]"
        for name, item in value.items():
            yield from _estimates(item, f"{place}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _estimates(item, f"{place}[{number}]")


def _range(place):
    name = place.rsplit(".", 1)[-1]
    if ".metrics." not in place:
        return -float("inf"), float("inf")
    if name == "confidence_gap":
        return -1, 1
    if name == "log_loss":
        return 0, float("inf")
    return 0, 1
