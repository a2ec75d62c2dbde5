"""What `cascade` may say: what the chosen policy reaches, against the largest model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, Outcome, declare
from calibrant.claims.words import count, labels_text, percent, points, points_range

_MARGIN = 0.02
# Questions from which on a policy is chosen.
_FEWEST = 250


def _asking(facts: Facts) -> str:
    if facts["single"] is not None:
        return f"No cascade does better than one model: always asking {facts['single']}"
    return f"Asking {facts['largest']} only where needed (rule: {facts['words']})"


def _always(facts: Facts) -> str:
    """Name the largest model again only where the sentence has not done so."""
    return f"always asking {facts['largest']}" if facts["single"] else "always asking it"


def _nothing_saved(facts: Facts) -> str:
    why = f" ({facts['chosen']})" if facts["single"] is not None else ""
    rule = f"this policy (rule: {facts['words']})" if not why else "no cheaper policy was found"
    tail = f" always asks {facts['largest']}." if not why else f"{why}; {facts['largest']} answers."
    return f"Nothing is saved: {rule}{tail}"


def _ends(facts: Facts) -> tuple[float, float]:
    low, high = sorted((abs(facts["low"]), abs(facts["high"])))
    return low, high


GUARANTEE = declare(
    ClaimRule(
        "cascade.guarantee",
        "Is the policy as accurate as the largest model, but for a margin?",
        "E[y(policy)] >= E[y(largest)] - margin",
        "settings are tested by paired betting in the order of their accuracy on other questions, "
        "up to the first failure",
        "none needed: the order of the tests is fixed beforehand",
        {
            "shown": lambda facts: (
                f"At most {points(facts['margin'])} less accurate than {facts['largest']}, at "
                f"{percent(facts['cost'])} of its cost; such a promise fails in at most "
                f"{percent(facts['delta'])} of cases."
            ),
            "undecided": lambda facts: (
                f"No cheaper policy is certified to stay within {points(facts['margin'])} of "
                f"{facts['largest']}: it answers everything. More labels would certify one."
            ),
        },
    )
)


REACHES = declare(
    ClaimRule(
        "cascade.beats_largest",
        "Is the policy more accurate than always asking the largest model?",
        "E[y(policy)] > E[y(largest)]",
        "the policy's 95 % interval on questions it had not seen against the largest model's "
        "accuracy on the same questions; 'equivalent' when it lies within the margin",
        "none: one policy per document",
        {
            "shown": lambda facts: (
                f"{_asking(facts)} is {points(abs(facts['value']))} "
                f"{'more' if facts['value'] > 0 else 'less'} accurate than {_always(facts)} "
                f"(95 % interval {points_range(*_ends(facts))}), at {percent(facts['cost'])} of "
                "its cost."
            ),
            "equivalent": lambda facts: (
                _nothing_saved(facts)
                if facts["low"] == facts["high"] == 0 and percent(facts["cost"]) == "100 %"
                else f"{_asking(facts)} is as accurate as {_always(facts)} within "
                f"{points(_MARGIN)}, at {percent(facts['cost'])} of its cost."
            ),
            "undecided": lambda facts: (
                f"Undecided when to ask {facts['largest']}: {count(facts['n'], 'question')} are "
                "too few to choose a policy. "
                f"{labels_text(facts['more']).capitalize()} would decide."
                if facts["words"] is None
                else f"{_asking(facts)} costs {percent(facts['cost'])} of {_always(facts)}. "
                "Undecided which is more accurate (difference "
                f"{points_range(facts['low'], facts['high'])} points). "
                f"{labels_text(facts['more']).capitalize()} would decide."
            ),
        },
        margin=_MARGIN,
    )
)


def cascade_claims(entry: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the policy that was chosen.

    Parameters
    ----------
    entry
        Entry of a cascade document, as plain data.
    """
    policy = entry["policy"]
    promise = policy.get("promise")
    if promise is None:
        return [_too_few(entry)]
    facts = {
        "largest": entry["largest"],
        "words": policy["words"],
        "single": policy["single"],
        "chosen": policy["chosen"],
        "cost": promise["relative_cost"]["value"],
    }
    subject = {"strategy": policy["rule"], "models": [model["model"] for model in entry["models"]]}
    made = []
    if promise["guarantee"] is not None:
        made.append(_guarantee(promise, facts, subject))
    if policy["rule"] != "single" or promise["guarantee"] is None:
        made.append(_against_largest(promise, facts, subject))
    return made


def _too_few(entry: Mapping[str, Any]) -> Claim:
    n = int(entry["n"])
    return REACHES.claim(
        "undecided",
        {
            "largest": entry["largest"],
            "words": None,
            "single": None,
            "n": n,
            "more": max(_FEWEST - n, 0),
        },
        subject={"strategy": None, "models": [model["model"] for model in entry["models"]]},
        margin=_MARGIN,
        n=n,
    )


def _guarantee(promise: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    given = promise["guarantee"]
    return GUARANTEE.claim(
        "shown" if given["certified"] else "undecided",
        {**facts, **given},
        subject=subject,
        estimate=promise["accuracy"],
        margin=given["margin"],
    )


def _against_largest(promise: Mapping[str, Any], facts: Facts, subject: Mapping[str, Any]) -> Claim:
    gain = promise["gain"]
    outcome: Outcome = "undecided"
    if gain["low"] > 0 or gain["high"] < 0:
        outcome = "shown"
    elif gain["low"] > -_MARGIN and gain["high"] < _MARGIN:
        outcome = "equivalent"
    half = (gain["high"] - gain["low"]) / 2
    distance = max(abs(gain["value"]), _MARGIN - abs(gain["value"]), 1e-9)
    more = max(gain["n"] * ((half / distance) ** 2 - 1), 0)
    return REACHES.claim(
        outcome,
        {**facts, **gain, "more": more},
        subject=subject,
        estimate=gain,
        margin=_MARGIN,
    )
