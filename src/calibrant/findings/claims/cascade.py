"""What `cascade` may say: what the chosen policy reaches, against the largest model."""

from collections.abc import Iterator, Sequence

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.claims.claim import About, Claim, Facts, Outcome
from calibrant.findings.claims.margins import more_rows
from calibrant.findings.claims.words import percent, points_range, rule
from calibrant.findings.documents.decisions import CascadePolicy

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


def cascade_claims(policy: CascadePolicy, models: Sequence[str], n: int) -> Iterator[Claim]:
    """Yield the claims about the policy that was chosen.

    Parameters
    ----------
    policy
        The policy, with its promise.
    models
        Names, cheapest first.
    n
        Questions that all of them have answered.
    """
    subject, promise = {"strategy": policy.rule, "models": list(models)}, policy.promise
    if promise is None:
        facts: Facts = {"words": None, "single": None, "n": n, "more": max(_FEWEST - n, 0)}
        yield REACHES.claim("undecided", About(subject, {"largest": models[-1]}), facts, n=n)
        return
    about = About(subject, {"largest": models[-1], "cost": promise.relative_cost.value})
    if values := promise.guarantee:
        outcome: Outcome = "shown" if values.certified else "undecided"
        facts, reached = {"sure": 1 - values.delta}, promise.accuracy
        yield GUARANTEE.claim(outcome, about, facts, estimate=reached, margin=values.margin)
    if policy.rule != "single" or values is None:
        gain = promise.gain
        names = {name: getattr(policy, name) for name in ("words", "single", "chosen")}
        facts = {**names, "more": more_rows(gain, _MARGIN)}
        yield REACHES.claim(_against_largest(gain), about, facts, estimate=gain)


def _against_largest(gain: EstimateEntry) -> Outcome:
    _, low, high = gain.numbers
    if low > 0 or high < 0:
        return "shown"
    return "equivalent" if low > -_MARGIN and high < _MARGIN else "undecided"
