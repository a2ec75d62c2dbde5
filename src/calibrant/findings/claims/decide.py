"""What `decide`, `cascade` and `mend` may say: limits kept, what they save and gain."""

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.claims import (
    About,
    Claim,
    ClaimRule,
    Facts,
    Outcome,
    about_model,
    joined,
    percent,
    points_range,
    rule,
)
from calibrant.findings.claims.grades import depending, grades_sentence
from calibrant.findings.claims.margins import more_rows
from calibrant.findings.documents.decisions import (
    CascadePolicy,
    DecideCost,
    DecideEntry,
    MendEntry,
    MendPromise,
)


def _where(facts: Facts) -> str:
    return "confidence" if facts["score"] == "confidence" else "score"


def _limit(facts: Facts) -> str:
    """Return a limit as it was asked for: one below 0.1 % has more digits."""
    share = facts["margin"]
    return f"{100 * share:.2g} %" if share < 0.001 else percent(share)


def _kept(facts: Facts) -> str:
    if facts["sets"]:
        return "sets"
    if facts["unit"]:
        return {"stop": "stop", "drop": "drop"}.get(facts["unit"]["score"], "unit")
    if facts["whose"] == "each":
        return "each"
    if facts["threshold"] is None:
        return "dear"
    return "traffic" if facts["whose"] == "traffic" else "like"


def _wrong_ones(facts: Facts) -> str:
    kind = _kept(facts)
    return kind if kind in ("unit", "drop", "stop", "sets") else "rows"


def _questions(facts: Facts) -> str:
    """Return which questions a share is of: rows without a confidence are in no such share."""
    if facts["stated"] == 1:
        return "the questions"
    return f"the questions that state a confidence ({percent(facts['stated'])} of all)"


def _asked(facts: Facts) -> str:
    request = facts["asked"]
    if not request:
        return ""
    share = percent(sum(group.share for group in request))
    few = all(group.n for group in request)
    why = "with under 15 labels" if few else "without enough labels"
    return f"Groups {why} are asked: {joined([group.group for group in request])} ({share})."


def _nothing(facts: Facts) -> str:
    if facts["together"] and facts["together"]["withheld"]:
        return "withheld"
    if facts["n"] < facts["fewest"] or facts["sets"]:
        return "fewest"
    if facts["more"] is not None:
        return "more"
    if facts["lowest"] is None:
        return "few"
    if facts["whose"] == "each":
        return "each"
    return "high" if facts["lowest"] > facts["margin"] else "low"


def _unit_score(facts: Facts) -> str:
    words = {"product": "the product", "min": "the lowest", "mean": "the mean"}
    return words.get(facts["unit"]["score"], "") if facts["unit"] else ""


def _alone(facts: Facts) -> str:
    """Return what a limit for single rows would let pass, which promises nothing of a unit."""
    share = facts["unit"]["rows_alone"] if facts["unit"] else None
    if not share:
        return ""
    return f"The limit of single rows would pass {percent(share)}: no promise for a whole unit."


def _worth(facts: Facts) -> str:
    """Return how many independent labels rows are worth that hang together, where it is fewer."""
    joint = facts["together"]
    if not joint or round(joint["labels"]) >= facts["n"]:
        return ""
    labels = f"{joint['labels']:,.0f}"
    return f", which count as {labels} because rows of one {joint['column']} hang together"


ERROR_LIMIT = rule(
    "decide.error_limit",
    shown=_kept,
    undecided=_nothing,
    depends=grades_sentence,
    where=_where,
    at_most=_limit,
    asked=_asked,
    questions=_questions,
    wrong_ones=_wrong_ones,
    of_units=lambda facts: "units" if facts["unit"] else "rows",
    unit_score=_unit_score,
    alone=_alone,
    stop_at=lambda facts: f"{1 - (facts['threshold'] or 0):.3g}",
    worth=_worth,
    withheld=lambda facts: facts["together"]["withheld"],
    may=lambda facts: f"{facts['name']} may" if facts["named"] else "May",
    of_whom=lambda facts: f" for {facts['name']}" if facts["named"] else "",
)
CHEAPER = rule(
    "decide.cheaper",
    # A threshold that answers everything or nothing has no saving to estimate.
    undecided=lambda facts: "none" if facts["low"] == facts["high"] == 0 else "open",
    where=_where,
    questions=_questions,
    always=lambda facts: "always answering" if facts["answering"] else "always asking",
)


def decide_claims(entry: DecideEntry, *, named: bool, stated: float = 1.0) -> Iterator[Claim]:
    """Yield the claims of one model.

    Parameters
    ----------
    entry
        Entry of a decide document.
    named
        Whether the sentences name the model: there are several.
    stated
        Share of its graded answers that have a confidence.
    """
    facts = {"stated": stated, "score": entry.score, "threshold": entry.threshold}
    share = entry.answered.value
    about = about_model(entry.model, entry.method, named=named, share=share, **facts)
    if entry.max_error is not None:
        yield _limit_claim(entry, entry.max_error, about)
    if entry.cost is not None:
        yield _cost_claim(entry, entry.cost, about)


def _limit_claim(entry: DecideEntry, limit: float, about: About) -> Claim:
    text, labels_needed = entry.certified, entry.labels_needed
    fails = (entry.delta or 0.0) * entry.among
    fewest = math.ceil(math.log(entry.delta or 1.0) / math.log1p(-limit) - 1e-9)
    # A threshold with fewer rows passes no test, whatever its error.
    errors = [point.error.numbers[0] for point in entry.curve if (point.error.n or 0) >= fewest]
    claim = ERROR_LIMIT.claim(
        text,
        about,
        {
            **asdict(entry.promise),
            "n": entry.n,
            "sure": 1 - fails,
            "fails": fails,
            "more": None if labels_needed is None else max(labels_needed - entry.n, 0),
            "lowest": min(errors, default=None),
            "fewest": fewest,
            "unit": asdict(entry.unit) if entry.unit else None,
            "together": asdict(entry.together) if entry.together else None,
            "sets": len(entry.sets.classes) if entry.sets else None,
            "size": entry.sets.mean_size if entry.sets else 0.0,
            "saved": (entry.unit.steps_saved if entry.unit else None) or 0.0,
            "column": entry.unit.column if entry.unit else "",
        },
        estimate=entry.error if text else None,
        margin=limit,
        n=entry.answered.n,
    )
    grading = entry.grading or None
    if text and grading and grading["error"]["high"] > limit:
        return depending(ERROR_LIMIT, claim, grading, "error")
    return claim


def _cost_claim(entry: DecideEntry, cost: DecideCost, about: About) -> Claim:
    value, low, high = cost.saved.numbers
    size = abs(value)
    more = entry.n * (((high - low) / 2 / size) ** 2 - 1) if size > 0 else None
    answering = cost.always_answer.numbers[0] < cost.always_ask
    facts = {"cost": cost.policy.value, "answering": answering, "more": more}
    return CHEAPER.claim(low > 0, about, facts, estimate=cost.saved)


_MARGIN = 0.02
# Questions from which on a policy is chosen.
_FEWEST = 250


GUARANTEE = rule("cascade.guarantee")


def _as_good(facts: Facts) -> str:
    if facts["low"] != 0 or facts["high"] != 0 or percent(facts["cost"]) != "100 %":
        return "cheaper"
    return "always" if facts["single"] is None else "one"


REACHES = rule(
    "cascade.beats_largest",
    margin=_MARGIN,
    equivalent=_as_good,
    undecided=lambda facts: "few" if facts["words"] is None else "open",
    asking=lambda facts: "some" if facts["single"] is None else "one",
    # The largest model is named again only where the sentence has not done so.
    always=lambda facts: facts["largest"] if facts["single"] else "it",
    sizes=lambda facts: points_range(*sorted((abs(facts["low"]), abs(facts["high"])))),
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
        facts, reached = {"sure": 1 - values.delta}, promise.accuracy
        certified, margin = values.certified, values.margin
        yield GUARANTEE.claim(certified, about, facts, estimate=reached, margin=margin)
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


TOO_FEW_GROUPS = "too few groups"
"""Verdict of a map whose labels hang together in groups too few to speak of others like them."""

_OUTCOME: dict[str, Outcome] = {
    "mended": "shown",
    "not worth it": "equivalent",
    "too few": "undecided",
    TOO_FEW_GROUPS: "undecided",
}


def _open(facts: Facts) -> str:
    if facts["verdict"] == TOO_FEW_GROUPS:
        return "groups"
    return "few" if facts["n"] < 200 else "open"


OFF_BY = rule("mend.off_by", shown=lambda facts: "rising" if facts["rising"] else "turning")
GAIN = rule("mend.gain", margin=0.01, undecided=_open)
COLUMNS = rule(
    "mend.columns", margin=0.01, undecided=lambda facts: "open" if facts["promise"] else "few"
)


def mend_claims(entry: MendEntry, *, named: bool) -> Iterator[Claim]:
    """Yield the claims of one map.

    Parameters
    ----------
    entry
        Entry of a mend document.
    named
        Whether the sentences name the model: there are several.
    """
    about = about_model(entry.model, entry.method, named=named, n=entry.n)
    promise, columns = entry.promise, entry.columns
    if promise.off_by is not None:
        deviation = EstimateEntry(value=promise.off_by, n=entry.n)
        yield OFF_BY.claim("shown", about, {"rising": entry.rising}, estimate=deviation)
    yield _gain(GAIN, entry.verdict, promise, about, {})
    if columns is not None:
        facts = {"names": columns.names, "promise": columns.promise}
        yield _gain(COLUMNS, columns.verdict, columns.promise, about, facts)


def _gain(
    rule: ClaimRule, verdict: str, promise: MendPromise | None, about: About, facts: Facts
) -> Claim:
    """Return what a map gains: beyond the confidence, or by columns beyond another map."""
    values = promise or MendPromise(off_by=None, certainty=0.0, gain=None, gain_low=None)
    return rule.claim(
        _OUTCOME[verdict],
        about,
        {**facts, **asdict(values), "verdict": verdict},
        estimate=EstimateEntry(value=values.gain, low=values.gain_low, n=about.facts["n"]),
    )
