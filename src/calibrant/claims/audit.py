"""What an audit may say: over- or under-confident, off along the scale, able to separate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.claims.audit_rules import ALL_OVER, MISCALIBRATED, OVER, SEPARATES, UNDER
from calibrant.claims.claim import ALPHA, Claim, Facts, Outcome
from calibrant.claims.data import kept_shares, resting
from calibrant.claims.margins import more_labels
from calibrant.claims.significance import SEPARATION_MARGIN
from calibrant.claims.words import count, subject_name
from calibrant.core.method_words import method_name

# A model that is always wrong or always right is a matter of the data, not of its confidence.
LEAST_ONE_SIDED = 30
# With unequal weights the error of the AUROC is known less well: at 5 % a confidence that is noise
# was called telling in 5.6 % of 4,000 simulated audits.
_SEPARATION_LEVEL = 0.04


def is_claimed(entry: Mapping[str, Any]) -> bool:
    """Return whether claims are made about an entry: a probability, with both outcomes."""
    if not entry["probability"]:
        return False
    right = entry["metrics"]["accuracy"]["value"]
    return not (right in (0.0, 1.0) and entry["questions"] >= LEAST_ONE_SIDED)


def nothing_claimed(entry: Mapping[str, Any]) -> str:
    """Say why no claim is made about an entry."""
    if not entry["probability"]:
        return "This score ranks answers but is no probability: recalibrate it before auditing it."
    return "All answers have the same outcome: this is about the data, not about confidence."


def audit_claims(
    entries: Sequence[Mapping[str, Any]],
    margin: float,
    coverage: Sequence[Mapping[str, Any]] = (),
) -> list[Claim]:
    """Return the claims of an audit, from its entries as plain data with corrected tests.

    Summaries over models come first, then the entries in their order. A claim that rests on a
    selected part of the rows says so.

    Parameters
    ----------
    entries
        Models and methods with their metrics and tests.
    margin
        Errors below it do not matter.
    coverage
        Rows by model and method, see `calibrant.inputs.coverage`.
    """
    kept = kept_shares(coverage)
    constant = {(row["model"], row["method"]) for row in coverage if row.get("values") == 1}
    told = [entry for entry in entries if is_claimed(entry)]
    named = len({(entry["model"], entry["method"]) for entry in entries}) > 1
    methods = len({entry["method"] for entry in entries}) > 1
    claims = [
        resting(claim, kept)
        for entry in told
        for claim in _entry_claims(entry, margin, constant, named=named, methods=methods)
    ]
    return [*_summaries(entries, claims), *claims]


def _entry_claims(
    entry: Mapping[str, Any], margin: float, constant: set[Any], *, named: bool, methods: bool
) -> Iterable[Claim]:
    subject = {name: entry[name] for name in ("model", "method", "group")}
    # One method needs no name; of one model only the method tells confidences apart.
    called = subject if methods else {**subject, "method": None}
    shared = {"name": subject_name(called), "named": named or bool(entry["group"])}
    error = _error_claim(entry, margin, subject, shared)
    off = error is not None and error.outcome == "shown"
    yield _direction_claim(entry, margin, subject, {**shared, "off_along": off})
    if error is not None:
        yield error
    varies = (entry["model"], entry["method"]) not in constant
    separates = _separates_claim(entry, subject, {**shared, "varies": varies})
    if separates is not None:
        yield separates


def _outcome(shown: Mapping[str, Any] | None, within: Mapping[str, Any] | None) -> Outcome:
    if within is not None and within["p_adjusted"] <= ALPHA:
        return "equivalent"
    return "shown" if shown is not None and shown["p_adjusted"] <= ALPHA else "undecided"


def _direction_claim(
    entry: Mapping[str, Any], margin: float, subject: Mapping[str, Any], shared: Facts
) -> Claim:
    tests, metrics = entry["significance"], entry["metrics"]
    gap = metrics["confidence_gap"]
    above = (gap["value"] or 0) >= 0
    rule = OVER if above else UNDER
    low, high = gap["low"], gap["high"]
    # The size of the gap in the direction of the claim.
    sized = (
        gap
        if above
        else {
            **gap,
            "value": -gap["value"],
            "low": None if high is None else -high,
            "high": None if low is None else -low,
        }
    )
    test = tests["gap"]
    facts = {
        **shared,
        **sized,
        "signed_low": low,
        "signed_high": high,
        "said": metrics["mean_confidence"]["value"],
        "right": metrics["accuracy"]["value"],
        "margin": margin,
        "more": more_labels(gap, margin, _tests(tests)),
        "p": None if test is None else test["p_value"],
    }
    within = tests["within_margin"]["gap"]
    return rule.claim(
        _outcome(test, within),
        facts,
        subject=subject,
        estimate=sized,
        p_adjusted=None if test is None else test["p_adjusted"],
        margin=margin,
    )


def _tests(tests: Mapping[str, Any]) -> float:
    """Return by how much the correction for number multiplied the p-value of the gap."""
    test = tests["gap"]
    if test is None:
        return 1.0
    if test["p_adjusted"] >= 1:
        # Cut off at 1: the factor itself was up to the number of tests.
        return float(tests["tests"])
    return float(test["p_adjusted"] / max(test["p_value"], 1e-12))


def _error_claim(
    entry: Mapping[str, Any], margin: float, subject: Mapping[str, Any], shared: Facts
) -> Claim | None:
    tests, ece = entry["significance"], entry["metrics"]["ece"]
    within = tests["within_margin"]["error"]
    if tests["calibration"] is None or within is None:
        return None
    # An error that looks large is not called small: a sample that is closer to calibration than
    # chance makes it may rule out even the error that it shows.
    small = within if ece["value"] <= margin else None
    facts = {
        **shared,
        **ece,
        "margin": margin,
        "upper": max(within["upper"], ece["value"]),
        "expected": entry["calibration_test"]["expected_ece"],
    }
    return MISCALIBRATED.claim(
        _outcome(tests["calibration"], small),
        facts,
        subject=subject,
        estimate=ece,
        p_adjusted=tests["calibration"]["p_adjusted"],
        margin=margin,
    )


def _separates_claim(
    entry: Mapping[str, Any], subject: Mapping[str, Any], shared: Facts
) -> Claim | None:
    auroc = entry["metrics"].get("auroc")
    test = entry["significance"].get("separation")
    if auroc is None or auroc["value"] is None or test is None:
        return None
    outcome: Outcome = "undecided"
    if test["p_within"] <= ALPHA:
        outcome = "equivalent"
    elif test["p_adjusted"] <= _SEPARATION_LEVEL:
        outcome = "shown"
    return SEPARATES.claim(
        outcome,
        {**shared, **auroc, "p": test["p_value"]},
        subject=subject,
        estimate=auroc,
        p_adjusted=test["p_adjusted"],
        margin=SEPARATION_MARGIN,
    )


def _summaries(entries: Sequence[Mapping[str, Any]], claims: Sequence[Claim]) -> list[Claim]:
    """Return what holds for all models: by every method at once, or else method by method."""
    methods = dict.fromkeys(entry["method"] for entry in entries if entry["probability"])
    by_method = {method: _all_over(claims, method) for method in methods}
    shown = {method: whole for method, whole in by_method.items() if whole}
    named = [{claim.subject["model"] for claim in whole} for whole in shown.values()]
    found = [
        _summary(whole, method, behind=_aside(method) if len(methods) > 1 else "")
        for method, whole in shown.items()
    ]
    if len(shown) < max(len(methods), 2) or any(models != named[0] for models in named):
        return found
    every = [claim for whole in shown.values() for claim in whole]
    both = "both" if len(methods) == 2 else f"all {len(methods)}"
    return [_summary(every, None, before=f"In {both} confidences "), *found]


def _all_over(claims: Sequence[Claim], method: str) -> list[Claim]:
    """Return the claims of all models by one method, where each is shown to say too much."""
    whole = [
        claim
        for claim in claims
        if claim.subject["method"] == method
        and claim.subject["group"] is None
        and claim.id in (OVER.id, UNDER.id)
    ]
    over = all((claim.id, claim.outcome) == (OVER.id, "shown") for claim in whole)
    return whole if len(whole) > 1 and over else []


def _aside(method: str) -> str:
    return f" ({method_name(method, aside=True)})"


def _summary(
    whole: Sequence[Claim], method: str | None, *, before: str = "", behind: str = ""
) -> Claim:
    sizes = [claim.value for claim in whole if claim.value is not None]
    models = list(dict.fromkeys(claim.subject["model"] for claim in whole))
    number = "both models" if len(models) == 2 else f"all {count(len(models), 'model')}"
    name = f"{before}{number}{behind}"
    return ALL_OVER.claim(
        "shown",
        {"of": name[0].upper() + name[1:], "range": (min(sizes), max(sizes))},
        subject={"method": method, "models": models},
        estimate={"value": min(sizes), "n": len(whole)},
        p_adjusted=max(claim.p_adjusted or 0.0 for claim in whole),
    )


def calibration_word(claims: Iterable[Claim | Mapping[str, Any]]) -> str:
    """Return the verdict of one entry as a word, from its claims.

    Examples
    --------
    >>> calibration_word([{"id": "audit.over_confident", "outcome": "shown"}])
    'over-confident'
    >>> calibration_word([{"id": "audit.miscalibrated", "outcome": "equivalent"}])
    'calibrated'
    """
    found = {}
    for claim in claims:
        plain = claim.to_dict() if isinstance(claim, Claim) else claim
        found[plain["id"]] = plain["outcome"]
    for rule, word in ((OVER, "over-confident"), (UNDER, "under-confident")):
        if found.get(rule.id) == "shown":
            return word
    error = found.get(MISCALIBRATED.id)
    return {"shown": "miscalibrated", "equivalent": "calibrated"}.get(str(error), "undecided")
