"""What an audit may say: over- or under-confident, off along the scale, able to separate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrant.claims.claim import ALPHA, Claim, ClaimRule, Facts, Outcome, declare
from calibrant.claims.data import kept_shares
from calibrant.claims.margins import ERROR_MARGIN, more_labels
from calibrant.claims.significance import SEPARATION_MARGIN
from calibrant.claims.words import (
    count,
    labels_text,
    percent,
    points,
    points_range,
    subject_name,
)
from calibrant.core.method_words import method_name

__all__ = ["audit_claims", "calibration_word", "is_claimed", "nothing_claimed"]

# A model that is always wrong or always right is a matter of the data, not of its confidence.
LEAST_ONE_SIDED = 30


def _says(facts: Facts) -> str:
    name = f"{facts['name']} says" if facts["named"] else "Says"
    return f"{name} {percent(facts['said'])}, is right {percent(facts['right'])}"


def _interval(facts: Facts) -> str:
    return f"95 % interval {points_range(facts['low'], facts['high'])}"


def _off_by(word: str) -> Any:
    return lambda facts: (
        f"{_says(facts)}: {word} by {points(abs(facts['value']))} ({_interval(facts)})."
    )


def _agrees(facts: Facts) -> str:
    return f"{_says(facts)}: on average the two agree within {points(facts['margin'])}."


def _why_open(low: float | None, high: float | None, middle: float, p: float | None) -> str:
    """Say why it is open where the interval alone would decide: tests are counted, it is not."""
    if low is None or high is None or low <= middle <= high:
        return ""
    many = p is not None and p <= ALPHA
    return f" {'after counting all tests of this audit' if many else 'by the stricter test'}"


def _direction_open(facts: Facts) -> str:
    why = _why_open(facts["signed_low"], facts["signed_high"], 0.0, facts["p"])
    return (
        f"{_says(facts)}: undecided{why} whether it is over- or under-confident "
        f"(difference {points_range(facts['signed_low'], facts['signed_high'])} points). "
        f"{labels_text(facts['more']).capitalize()} would decide."
    )


def _direction(word: str, sign: str) -> ClaimRule:
    return declare(
        ClaimRule(
            f"audit.{word.replace('-', '_')}",
            f"Is the model {word}?",
            f"E[c] - E[y] {sign} 0",
            "the larger of Student's p between questions and the exact law of the mean gap under "
            "perfect calibration; 'equivalent' by two one-sided tests at 5 %",
            "Holm over all tests of whole models, and apart from them over those of groups",
            {
                "shown": _off_by(word),
                "equivalent": _agrees,
                "undecided": _direction_open,
            },
            margin=ERROR_MARGIN,
        )
    )


OVER = _direction("over-confident", ">")
UNDER = _direction("under-confident", "<")


def _subject(facts: Facts) -> str:
    return f"{facts['name']}: calibration" if facts["named"] else "Calibration"


MISCALIBRATED = declare(
    ClaimRule(
        "audit.miscalibrated",
        "Do the stated confidences match the share of right answers along the whole scale?",
        "sum_b P(b) |E[c - y | b]| > 0",
        "law of the binned error under perfect calibration; 'equivalent' when the 95 % upper "
        "bound of the error, by inversion of a test, is below the margin",
        "Holm, in the family of the mean gaps",
        {
            "shown": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])} ({_interval(facts)}); "
                f"a calibrated model would show {points(facts['expected'])} here."
            ),
            "equivalent": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])}, at most "
                f"{points(facts['upper'])}: calibrated within {points(facts['margin'])}."
            ),
            "undecided": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])}, of which chance alone "
                f"explains {points(facts['expected'])}: undecided. It could be as large as "
                f"{points(facts['upper'])}."
            ),
        },
        margin=ERROR_MARGIN,
    )
)


def _separation(facts: Facts) -> str:
    right = "separates right from wrong answers"
    how = right if facts["value"] > 0.5 else "is higher for wrong answers than for right ones"
    return (
        f"{_who(facts)} {how}: AUROC {facts['value']:.2f} "
        f"(95 % interval {facts['low']:.2f} to {facts['high']:.2f}; 0.5 is chance)."
    )


def _who(facts: Facts, *, start: bool = True) -> str:
    if facts["named"]:
        return f"{'The c' if start else 'the c'}onfidence of {facts['name']}"
    return "Confidence" if start else "confidence"


SEPARATES = declare(
    ClaimRule(
        "audit.separates",
        "Is confidence higher for right answers than for wrong ones?",
        "AUROC != 0.5, and on which side",
        "interval of the AUROC against 0.5; 'equivalent' when its 90 % interval lies within 0.05 "
        "of 0.5",
        "Holm over the models and methods of the audit",
        {
            "shown": _separation,
            "equivalent": lambda facts: (
                f"{_who(facts)} hardly separates right from wrong answers: AUROC "
                f"{facts['value']:.2f}, within 0.05 of chance."
            ),
            "undecided": lambda facts: (
                f"Undecided{_why_open(facts['low'], facts['high'], 0.5, facts['p'])} whether "
                f"{_who(facts, start=False)} separates right from wrong answers "
                f"(AUROC {facts['low']:.2f} to {facts['high']:.2f}; 0.5 is chance). "
                "More labels would decide."
            ),
        },
        margin=SEPARATION_MARGIN,
    )
)


ALL_OVER = declare(
    ClaimRule(
        "audit.all_over_confident",
        "Are all models over-confident?",
        "E[c_k] - E[y_k] > 0 for every model k",
        "each model's own claim must be shown",
        "Holm over all models, so that any one false claim among them has a chance of at most 5 %",
        {
            "shown": lambda facts: (
                f"{facts['of']} say more than they know, by {points_range(*facts['range'])} points."
            ),
        },
    )
)


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
    told = [entry for entry in entries if is_claimed(entry)]
    named = len({(entry["model"], entry["method"]) for entry in entries}) > 1
    methods = len({entry["method"] for entry in entries}) > 1
    claims = [
        _resting(claim, kept.get((entry["model"], entry["method"])))
        for entry in told
        for claim in _entry_claims(entry, margin, named=named, methods=methods)
    ]
    return [*_summaries(entries, claims), *claims]


def _resting(claim: Claim, kept: float | None) -> Claim:
    """Return a claim that names the share of the rows behind it, where the others are lost."""
    if kept is None:
        return claim
    return replace(claim, text=f"{claim.text} This rests on {percent(kept)} of the rows.")


def _entry_claims(
    entry: Mapping[str, Any], margin: float, *, named: bool, methods: bool
) -> Iterable[Claim]:
    subject = {name: entry[name] for name in ("model", "method", "group")}
    # One method needs no name; of one model only the method tells confidences apart.
    called = subject if methods else {**subject, "method": None}
    shared = {"name": subject_name(called), "named": named or bool(entry["group"])}
    yield _direction_claim(entry, margin, subject, shared)
    error = _error_claim(entry, margin, subject, shared)
    if error is not None:
        yield error
    separates = _separates_claim(entry, subject, shared)
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
        "more": more_labels(gap, margin, _tests(test)),
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


def _tests(test: Mapping[str, Any] | None) -> float:
    """Return by how much the correction for number multiplied a p-value."""
    return 1.0 if test is None else float(test["p_adjusted"] / max(test["p_value"], 1e-12))


def _error_claim(
    entry: Mapping[str, Any], margin: float, subject: Mapping[str, Any], shared: Facts
) -> Claim | None:
    tests, ece = entry["significance"], entry["metrics"]["ece"]
    within = tests["within_margin"]["error"]
    if tests["calibration"] is None or within is None:
        return None
    facts = {
        **shared,
        **ece,
        "margin": margin,
        "upper": within["upper"],
        "expected": entry["calibration_test"]["expected_ece"],
    }
    return MISCALIBRATED.claim(
        _outcome(tests["calibration"], within),
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
    elif test["p_adjusted"] <= ALPHA:
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
