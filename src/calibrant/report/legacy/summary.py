"""What an audit of several confidences comes to, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import estimate_cell
from calibrant.report.multiplicity import correction_clause

__all__ = ["audit_sentences", "right_share"]

_MOSTLY_WRONG = 0.5
_MODELS_NAMED = 3


def audit_sentences(document: Mapping[str, Any]) -> list[str]:
    """Return how far the confidences can be trusted: what is right, what is said, what is shown."""
    results: Sequence[Mapping[str, Any]] = document["results"]
    whole = [entry for entry in results if not entry.get("group")] or list(results)
    calibrated = [entry for entry in whole if entry["probability"]]
    return [_trust(whole), *_counted(calibrated, correction_clause(document, "whole"))]


def right_share(name: str, share: Mapping[str, Any]) -> str:
    """Return the share of right answers with its interval."""
    return f"{name} is right in {_percent(share)}"


def _percent(share: Mapping[str, Any]) -> str:
    if share["low"] is None:
        return f"{share['value']:.0%} [no interval]"
    return f"{share['value']:.0%} [{share['low']:.0%}, {share['high']:.0%}]"


def _trust(entries: Sequence[Mapping[str, Any]]) -> str:
    """Say first how much is right and how much is claimed, with the number of questions.

    Calibration of a model that knows nothing is no praise, so that is said in the same breath.
    """
    models: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        models.setdefault(str(entry["model"]), []).append(entry)
    shares = {name: own[0]["metrics"]["accuracy"] for name, own in models.items()}
    number = f"on {_questions(entries)} questions"
    if len(models) <= _MODELS_NAMED:
        text = f"{_joined(models)}, {number}"
    else:
        ranked = sorted(models, key=lambda name: float(shares[name]["value"]))
        least, most = ranked[0], ranked[-1]
        text = (
            f"{len(models)} models {number}: the least accurate, {_one(f'{least},', models[least])}"
            f"; the most accurate, {_one(f'{most},', models[most])}"
        )
    if max(share["value"] for share in shares.values()) < _MOSTLY_WRONG:
        who = "it knows" if len(shares) == 1 else "they know"
        text += f"; most answers are wrong, so {who} little here, however a confidence looks"
    return text + "."


def _joined(models: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    return "; ".join(_one(name, own) for name, own in models.items())


def _one(name: str, own: Sequence[Mapping[str, Any]]) -> str:
    text = right_share(name, own[0]["metrics"]["accuracy"])
    claims = [entry["metrics"].get("mean_confidence") for entry in own if entry["probability"]]
    said = [claim for claim in claims if claim is not None and claim["value"] is not None]
    if len(said) == 1:
        return f"{text} and says {_percent(said[0])}"
    if said:
        values = [claim["value"] for claim in said]
        text += f" and its {len(said)} confidences say {min(values):.0%} to {max(values):.0%}"
    return text


def _questions(entries: Sequence[Mapping[str, Any]]) -> str:
    counts = [entry["questions"] for entry in entries]
    least, most = min(counts), max(counts)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _counted(entries: Sequence[Mapping[str, Any]], rule: str) -> list[str]:
    """Count the verdicts and name the smallest error, with the error of a calibrated model."""
    known = [entry for entry in entries if entry["metrics"]["ece"]["value"] is not None]
    if not known:
        return []
    words = [entry["verdict"]["calibration"] for entry in known]
    best = min(known, key=lambda entry: float(entry["metrics"]["ece"]["value"]))
    ece, expected = best["metrics"]["ece"], best["calibration_test"]["expected_ece"]
    several = len({entry["method"] for entry in known}) > 1
    name = f"{best['model']} / {best['method']}" if several else str(best["model"])
    text = (
        f"The smallest calibration error of the {len(known)}, and so a flattered one, is "
        f"{estimate_cell(ece)}, of {name}"
    )
    if expected is not None:
        text += f", where a perfectly calibrated one would show {expected:.3f}"
    return [f"{_shown(words)}, {rule}.", f"{text}{_beyond(best)}."]


def _beyond(entry: Mapping[str, Any]) -> str:
    """Say what the labels behind a confidence cannot show."""
    block = entry.get("verification")
    if not block:
        return ""
    number = f"{entry['n']:,} labels"
    if entry["verdict"]["calibration"] != "no-evidence":
        return f"; {number} show its size no finer than this interval"
    for name, how in (("passive_floor", ""), ("active_floor", ", however well chosen,")):
        floor = block.get(name)
        value = floor["value"] if isinstance(floor, Mapping) else floor
        if value is not None:
            return (
                f"; at worst {number}{how} cannot show an error below {value:.2g}, so that no "
                "evidence is no proof of calibration"
            )
    return ""


def _shown(words: Sequence[str]) -> str:
    """Say how many are shown to be off, and in which way."""
    off = len(words) - words.count("no-evidence")
    ways = {
        "over-confident": "over-confident",
        "under-confident": "under-confident",
        "miscalibrated": "without a clear direction",
    }
    found = [f"{words.count(word)} {text}" for word, text in ways.items() if word in words]
    are = "is" if off == 1 else "are"
    text = f"{off} of {len(words)} confidences {are} shown to be miscalibrated"
    return text + (f" ({', '.join(found)})" if found else "")
