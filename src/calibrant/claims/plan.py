"""What a plan may say: how many labels a claim needs, and what labels can claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, declare
from calibrant.claims.words import count, percent, points, subject_name

__all__ = ["plan_claims"]


def _started(facts: Mapping[str, Any], text: str) -> str:
    return f"{facts['name']}: {text}" if facts["named"] else text[0].upper() + text[1:]


def _rounded(labels: int) -> str:
    unit = 10 if labels < 1000 else 100
    return f"{-(-labels // unit) * unit:,}"


def _needed(facts: Mapping[str, Any]) -> str:
    first = (
        f"about {_rounded(facts['calibrated'])} labels show a calibration error below "
        f"{points(facts['margin'])} with a chance of {percent(facts['power'])}, if the model is "
        "calibrated."
    )
    if facts["half"] is None:
        return f"{first} If its error is {points(facts['margin'] / 2)}, all of the pool is needed."
    half = f"about {_rounded(facts['half'])} if its error is {points(facts['margin'] / 2)}."
    return f"{first} It takes {half}"


NEEDED = declare(
    ClaimRule(
        "plan.labels_needed",
        "How many labels show that the calibration error is below the threshold?",
        "P(upper bound < t) >= power at this many labels",
        "600 simulated pools with these confidences, by the bound that labelling itself uses",
        "none: a forecast, no test",
        {
            "depends": lambda facts: _started(facts, _needed(facts)),
            "undecided": lambda facts: _started(
                facts,
                f"no number of labels short of all {count(facts['items'], 'answer')} shows a "
                f"calibration error below {points(facts['margin'])}. Label all of them, or take a "
                "larger pool.",
            ),
        },
    )
)

SHOWS = declare(
    ClaimRule(
        "plan.labels_show",
        "How small a calibration error can these labels show?",
        "P(upper bound < t) >= power at the labels given",
        "600 simulated pools with these confidences, by the bound that labelling itself uses",
        "none: a forecast, no test",
        {
            "depends": lambda facts: _started(
                facts,
                f"{count(facts['labels'], 'label')} can show a calibration error below "
                f"{points(facts['margin'])} with a chance of {percent(facts['power'])}, if the "
                f"model is calibrated{facts['otherwise']}.",
            ),
            "undecided": lambda facts: _started(
                facts,
                f"{count(facts['labels'], 'label')} show no bound on the calibration error. Plan "
                "for more labels.",
            ),
        },
    )
)


def plan_claims(entries: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims of a plan, from its entries as plain data."""
    named = len(entries) > 1
    return [claim for entry in entries for claim in _entry_claims(entry, named=named)]


def _entry_claims(entry: Mapping[str, Any], *, named: bool) -> Iterable[Claim]:
    subject = {name: entry[name] for name in ("model", "method", "group")}
    shared = {"name": subject_name(subject), "named": named, "items": entry["items"]}
    needed, shows = entry["needed"], entry["shows"]
    if needed is not None:
        first, half = needed["calibrated"]["one_look"], needed["half"]["one_look"]
        facts = {
            **shared,
            "calibrated": first,
            "half": half,
            "margin": needed["threshold"],
            "power": needed["power"],
        }
        yield NEEDED.claim(
            "undecided" if first is None else "depends",
            facts,
            subject=subject,
            estimate={"value": first, "low": first, "high": half, "n": entry["items"]},
            margin=needed["threshold"],
        )
    if shows is not None:
        reach, half = shows["calibrated"], shows["half"]
        otherwise = "" if half is None else f"; below {points(half)}, if its error is half of that"
        facts = {**shared, **shows, "margin": reach, "otherwise": otherwise}
        yield SHOWS.claim(
            "undecided" if reach is None else "depends",
            facts,
            subject=subject,
            estimate={"value": reach, "low": reach, "high": half, "n": shows["labels"]},
        )
