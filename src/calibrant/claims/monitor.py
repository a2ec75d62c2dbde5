"""What a monitor may say: calibration has changed, since when, by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, declare
from calibrant.claims.words import count, percent, point_number, subject_name

__all__ = ["monitor_claims"]


def _started(facts: Mapping[str, Any], text: str) -> str:
    return f"{facts['name']}: {text}" if facts["named"] else text[0].upper() + text[1:]


def _where(facts: Mapping[str, Any]) -> str:
    if facts["bin"] is None:
        return ""
    low, high = facts["bin"]
    return f" at confidences from {percent(low)} to {percent(high)}"


def _moved(facts: Mapping[str, Any]) -> str:
    fewer = "fewer" if facts["shift"] < 0 else "more"
    size = point_number(abs(facts["shift"]))
    return f"{size} points {fewer} right answers{_where(facts)} than {facts['before']}"


ALARM = declare(
    ClaimRule(
        "monitor.alarm",
        "Has calibration changed?",
        "E[y | c] after some day differs from E[y | c] before it",
        "sum over all starts of a change of its likelihood ratio, above horizon / alpha; questions "
        "are the units, a new mix of confidences is no change",
        "half of alpha for all confidences together, an eighth for each of four ranges",
        {
            "shown": lambda facts: _started(
                facts,
                f"calibration has changed: since about {facts['since']}, {_moved(facts)}. Verify "
                "it again.",
            ),
            "undecided": lambda facts: _started(
                facts,
                f"no alarm in {count(facts['batches'], 'batch').replace('batchs', 'batches')} with "
                f"{count(facts['n'], 'label')}. A change is still possible; further labels show "
                "it.",
            ),
        },
    )
)


def monitor_claims(entries: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims of a watch, from its entries as plain data."""
    named = len(entries) > 1
    claims = []
    for entry in entries:
        subject = {name: entry[name] for name in ("model", "method")}
        shared = {"name": subject_name(subject), "named": named}
        alarm = entry["alarm"]
        perfect = str(entry["reference"]).startswith("perfect")
        before = "its confidence says" if perfect else "before"
        facts = {**entry, **(alarm or {}), **shared, "before": before}
        claims.append(
            ALARM.claim(
                "undecided" if alarm is None else "shown",
                facts,
                subject=subject,
                estimate={"value": alarm["shift"], "n": entry["n"]} if alarm else None,
                p_adjusted=entry["p_value"],
                n=entry["n"],
            )
        )
    return claims
