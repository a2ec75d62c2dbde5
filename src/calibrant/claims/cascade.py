"""What `cascade` may say: what the chosen policy reaches, against the largest model."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from calibrant.claims.claim import Claim, Facts, Outcome, Subject
from calibrant.claims.margins import more_rows
from calibrant.claims.words import percent, points_range, rule
from calibrant.core.estimate import EstimateEntry
from calibrant.documents.decisions import CascadePolicy, CascadePromise, Guarantee

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


def cascade_claims(policy: CascadePolicy, models: Sequence[str], n: int) -> list[Claim]:
    """Return the claims about the policy that was chosen.

    Parameters
    ----------
    policy
        The policy, with its promise.
    models
        Names, cheapest first.
    n
        Questions that all of them have answered.
    """
    facts: dict[str, Any] = {"largest": models[-1], "words": policy.words, "single": policy.single}
    subject = {"strategy": policy.rule, "models": list(models)}
    promise = policy.promise
    if promise is None:
        facts |= {"words": None, "single": None, "n": n, "more": max(_FEWEST - n, 0)}
        return [REACHES.claim("undecided", facts, subject=subject, margin=_MARGIN, n=n)]
    facts |= {"chosen": policy.chosen, "cost": promise.relative_cost.value}
    made = []
    if promise.guarantee is not None:
        made.append(_guarantee(promise, promise.guarantee, facts, subject))
    if policy.rule != "single" or promise.guarantee is None:
        made.append(_against_largest(promise.gain, facts, subject))
    return made


def _guarantee(promise: CascadePromise, given: Guarantee, facts: Facts, subject: Subject) -> Claim:
    return GUARANTEE.claim(
        "shown" if given.certified else "undecided",
        {**facts, **asdict(given)},
        subject=subject,
        estimate=promise.accuracy,
        margin=given.margin,
    )


def _against_largest(gain: EstimateEntry, facts: Facts, subject: Subject) -> Claim:
    _, low, high = gain.numbers
    outcome: Outcome = "undecided"
    if low > 0 or high < 0:
        outcome = "shown"
    elif low > -_MARGIN and high < _MARGIN:
        outcome = "equivalent"
    return REACHES.claim(
        outcome,
        {**facts, **asdict(gain), "more": more_rows(gain, _MARGIN)},
        subject=subject,
        estimate=gain,
        margin=_MARGIN,
    )
