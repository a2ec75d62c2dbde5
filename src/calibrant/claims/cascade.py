"""What `cascade` may say: what the chosen policy reaches, against the largest model."""

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, Facts, Outcome
from calibrant.claims.words import percent, points_range, rule

_MARGIN = 0.02
# Questions from which on a policy is chosen.
_FEWEST = 250


GUARANTEE = rule("cascade.guarantee")


def _as_good(facts: Facts) -> str:
    if facts["low"] != 0 or facts["high"] != 0 or percent(facts["cost"]) != "100 %":
        return "cheaper"
    return "always" if facts["single"] is None else "one"


def _sizes(facts: Facts) -> str:
    return points_range(*sorted((abs(facts["low"]), abs(facts["high"]))))


REACHES = rule(
    "cascade.beats_largest",
    margin=_MARGIN,
    equivalent=_as_good,
    undecided=lambda facts: "few" if facts["words"] is None else "open",
    asking=lambda facts: "some" if facts["single"] is None else "one",
    # The largest model is named again only where the sentence has not done so.
    always=lambda facts: facts["largest"] if facts["single"] else "it",
    sizes=_sizes,
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
