"""Grades that the program made itself: which claims their errors could overturn, and in what words.

With checked grades the numbers and tests of an entry are about the truth. Without, a claim stands
only if it does so when the grader's odds are off by up to a factor; else it depends on the grades.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import convert

from calibrant.core.arrays import Estimate
from calibrant.core.document import given_places
from calibrant.core.hints import Call
from calibrant.findings.claims import (
    ALPHA,
    About,
    Claim,
    ClaimRule,
    Facts,
    count,
    percent,
    points_range,
)
from calibrant.findings.claims.data import warning
from calibrant.findings.claims.margins import gap_within
from calibrant.findings.claims.significance import SEPARATION_MARGIN, gap_p_value, separation_test
from calibrant.findings.documents.audits import AuditBlock, Checks, Grading, Significance, Test
from calibrant.findings.documents.entries import UNDEFINED, DataWarning

# The metrics of an audit that grading error is carried into.
_METRICS = {"accuracy": "accuracy", "gap": "confidence_gap", "error": "error", "auroc": "auroc"}
# The least share of doubtful grades that a reader should know of.
_WORTH_TELLING = 0.1
# Of many models, those named whose accuracy the grades leave the most open.
_NAMED = 3
_OPEN = "Depends on the grades"
_OPENINGS = ("Says ", "Calibration ", "The confidence ", "Confidence ", "May ")


def take_checks(entry: dict[str, Any], margin: float, level: float) -> None:
    """Put checked grades into the numbers and tests of an audit's entry, in place.

    What the grades alone would say is kept under ``as_graded``.
    """
    grading, metrics = entry["grading"], entry["metrics"]
    tests = entry.get("significance")
    grading["as_graded"] = {
        name: metrics[key].to_dict() for name, key in _METRICS.items() if key in metrics
    } | {"decided": _decided(tests)}
    for name, key in _METRICS.items():
        checked = grading[name]
        # The accuracy may also count answers without a confidence.
        equal = name != "accuracy" or "missing" not in entry
        if (
            equal
            and checked is not None
            and key in metrics
            and checked["value"] == checked["value"]
        ):
            ends = checked["low"], checked["high"]
            metrics[key] = Estimate(checked["value"], *ends, entry["n"], level, "checked grades")
    if tests is None:
        return
    gap, error = metrics["confidence_gap"], grading["error"]
    if tests["gap"] is not None:
        on_rows = gap_p_value(gap, float("nan"))
        # What answers without a confidence leave open stays open.
        missing = tests["gap"]["p_value"] if "missing" in entry else 0.0
        tests["gap"] |= {"p_value": max(on_rows, missing)}
        tests["gap"] |= {"p_rows": on_rows} if "p_rows" in tests["gap"] else {}
    if tests["calibration"] is not None:
        tests["calibration"] = {"p_value": error["p_calibrated"]}
    within = tests["within_margin"]
    if within["gap"] is not None:
        within["gap"] = {"p_value": gap_within(gap, margin) or 1.0}
    within["error"] |= {"upper": error["high"], "values": 0, "slices": error["cells"]}
    if error["high"] > margin:
        within["error"]["p_value"] = 1.0
    tests["separation"] = separation_test(metrics["auroc"])


def _decided(tests: Significance | None) -> list[str]:
    """Return what the grades alone would have shown, test by test."""
    if tests is None:
        return []
    within = tests["within_margin"]
    names: dict[str, tuple[Test | None, Test | None]] = {
        "gap": (tests["gap"], within["gap"]),
        "error": (tests["calibration"], within["error"]),
        "auroc": (tests["separation"], None),
    }
    return [
        name
        for name, pair in names.items()
        if any(test is not None and test["p_value"] <= ALPHA for test in pair)
    ]


def on_grades(rule: ClaimRule, claim: Claim, entry: AuditBlock, quantity: str) -> Claim:
    """Return a claim of an audit, as one that depends on the grades where they could overturn it.

    Parameters
    ----------
    rule, claim
        The claim with its rule.
    entry
        The entry that it is about.
    quantity
        What it is about: ``gap``, ``error`` or ``auroc``.
    """
    grading = entry.grading
    if not grading or not getattr(grading, quantity) or not _overturned(claim, grading, quantity):
        return claim
    return depending(rule, claim, grading, quantity)


def depending(rule: ClaimRule, claim: Claim, grading: Any, quantity: str) -> Claim:
    """Return the claim as one that depends on the grades, with its sentence as graded inside."""
    grading = convert(grading, Grading)
    ends = getattr(grading, quantity)
    facts = {"grades": grading, "as_graded": claim.text, "quantity": quantity}
    return rule.claim(
        "depends",
        About(claim.subject, facts),
        estimate={"value": claim.value, "low": ends.low, "high": ends.high, "n": claim.n},
        p_adjusted=claim.p_adjusted,
        margin=claim.margin,
    )


def _overturned(claim: Claim, grading: Grading, quantity: str) -> bool:
    if grading.odds_factor is None:
        # The checks are in the numbers already: what they leave open the grades had decided.
        decided = [] if grading.as_graded is None else grading.as_graded.decided
        return claim.outcome == "undecided" and quantity in decided
    low, high = getattr(grading, quantity).low, getattr(grading, quantity).high
    middle, margin = (0.5, SEPARATION_MARGIN) if quantity == "auroc" else (0.0, claim.margin or 0.0)
    if claim.outcome == "equivalent":
        return bool(max(high - middle, middle - low) > margin)
    if quantity == "gap":
        over = claim.id.endswith(".over_confident")
        return claim.outcome == "shown" and not (low > 0 if over else high < 0)
    return claim.outcome == "shown" and bool(low <= middle <= high)


def step_of_checks(head: Mapping[str, Any], claims: Iterable[Claim]) -> dict[str, str] | None:
    """Return how to check grades, where claims about a study depend on them."""
    if head.get("samples") or not any(
        (claim.outcome == "depends" and claim.text.startswith(_OPEN)) for claim in claims
    ):
        return None
    call = Call("label serve", *given_places(head), grades=True)
    return {"command": call.text(), "why": "Check some grades: claims depend on them"}


def carry_to_pair(pair: dict[str, Any], margin: float) -> None:
    """Make the verdict on two models depend on the grades where they could overturn it, in place.

    A verdict on accuracy is held against the difference of accuracies, one on calibration
    against that of the errors as answered.
    """
    grading, word = pair.get("grading"), pair["verdict"]
    quantity = "accuracy" if "more accurate" in word else "error"
    if grading is None or word in ("undecided", "depends"):
        return
    low, high = grading[quantity]["low"], grading[quantity]["high"]
    first = pair["winner"] == pair["a"]
    # A lead in accuracy is above 0, a lead in error below it.
    holds = low > 0 if first == (quantity == "accuracy") else high < 0
    if word == "equivalent":
        holds = max(high, -low) <= margin
    if not holds:
        pair |= {"verdict": "depends", "depends_on": "grades", "rests_on": word, "tie": True}


def grades_sentence(facts: Facts) -> str:
    """Say that a claim depends on the grades, what it is as graded, and how far they leave it open.

    Examples
    --------
    >>> from calibrant.findings.documents.entries import EstimateEntry
    >>> gap = EstimateEntry(low=-0.04, high=0.09)
    >>> grading = Grading(doubtful=0.31, checked=0, odds_factor=3.0, gap=gap)
    >>> facts = {"grades": grading, "quantity": "gap", "as_graded": "Says 80 %, is right 77 %."}
    >>> print(grades_sentence(facts))  # doctest: +NORMALIZE_WHITESPACE
    Depends on the grades: 31 % are doubtful, none is checked. As graded: says 80 %, is right 77 %.
    With grading error the gap may lie anywhere from -4 to 9 points.
    """
    grading, quantity, text = facts["grades"], facts["quantity"], facts["as_graded"]
    ends = getattr(grading, quantity)
    if quantity == "auroc":
        where = f"the AUROC may lie anywhere from {ends.low:.2f} to {ends.high:.2f}"
    else:
        what = {"accuracy": "the lead"}.get(quantity, f"the {quantity}")
        where = f"{what} may lie anywhere from {points_range(ends.low, ends.high)} points"
    checked = f"{count(grading.checked, 'grade')}" if grading.checked else "none"
    verb = "are" if grading.checked > 1 else "is"
    text = text[0].lower() + text[1:] if text.startswith(_OPENINGS) else text
    return (
        f"{_OPEN}: {percent(grading.doubtful)} are doubtful, {checked} {verb} "
        f"checked. As graded: {text} With grading error {where}."
    )


def grading_warnings(entries: Iterable[AuditBlock]) -> list[DataWarning]:
    """Return sentences on models whose grades are often doubtful, or were checked.

    Models of which no grade is checked share one.

    Examples
    --------
    >>> from calibrant.findings.documents.entries import EstimateEntry
    >>> grading = Grading(doubtful=0.31, checked=0, odds_factor=3.0,
    ...                   accuracy=EstimateEntry(low=0.57, high=0.66),
    ...                   foretold=Checks(checks=60, width=0.11))
    >>> entry = AuditBlock(model="m", method="stated", n=9, metrics={}, grading=grading)
    >>> print(grading_warnings([entry])[0]["text"])  # doctest: +NORMALIZE_WHITESPACE
    m: graded by rules, 31 % of the grades are doubtful and none is checked. If the automatic
    grader errs up to 3 times as often as assumed, accuracy lies between 57 % and 66 %. 60 checked
    grades would tell it to within 5.5 points.
    """
    by_model: dict[str, Grading] = {}
    for entry in entries:
        grading = entry.grading
        if grading and not entry.group and (grading.checked or grading.doubtful >= _WORTH_TELLING):
            by_model.setdefault(entry.model, grading)
    unchecked = {model: grading for model, grading in by_model.items() if not grading.checked}
    joint = unchecked if len(unchecked) > 1 else {}
    difference = [
        warning("grades", f"{model}: {_how_graded(grading)}", models=[model])
        for model, grading in by_model.items()
        if model not in joint
    ]
    if not joint:
        return difference
    return [warning("grades", _unchecked(joint), models=[*joint]), *difference]


def _unchecked(graded: Mapping[str, Grading]) -> str:
    """Return the one sentence for several models of which no grade is checked."""
    shares = sorted(grading.doubtful for grading in graded.values())
    share = " to ".join(dict.fromkeys(map(percent, (shares[0], shares[-1]))))
    ends = {model: _accuracy_ends(grading) for model, grading in graded.items()}
    widest = sorted(ends, key=lambda model: ends[model][0] - ends[model][1])[:_NAMED]
    between = (f"{percent(ends[m][0])} and {percent(ends[m][1])} ({m})" for m in widest)
    # What is not checked has a forecast.
    forecasts = {model: cast(Checks, grading.foretold) for model, grading in graded.items()}
    least = max(forecasts, key=lambda model: forecasts[model].width)
    worst, more = graded[least], forecasts[least]
    return (
        f"{len(graded)} models are graded by rules: {share} of their grades are doubtful and none "
        f"is checked. If the automatic grader errs up to {worst.odds_factor:g} times as often as "
        "assumed, accuracy lies between "
        f"{', '.join(between)}{' ..' if len(graded) > _NAMED else ''}. "
        f"{count(more.checks, 'checked grade')} of a model would tell it to within "
        f"{_half(more)}."
    )


def _accuracy_ends(grading: Grading) -> tuple[float, float]:
    ends = grading.accuracy or UNDEFINED
    low, high = (min(max(end or 0.0, 0.0), 1.0) for end in (ends.low, ends.high))
    return low, high


def _how_graded(grading: Grading) -> str:
    accuracy, more = grading.accuracy or UNDEFINED, grading.foretold
    low, high = map(percent, _accuracy_ends(grading))
    start = f"graded by rules, {percent(grading.doubtful)} of the grades are doubtful"
    if grading.odds_factor is not None and more is not None:
        checked = f"only {grading.checked}" if grading.checked else "none"
        return (
            f"{start} and {checked} {'are' if grading.checked > 1 else 'is'} checked. If the "
            f"automatic grader errs up to {grading.odds_factor:g} times as often as assumed, "
            f"accuracy lies between {low} and {high}. {count(more.checks, 'checked grade')} "
            "would tell it to within "
            f"{_half(more)}."
        )
    then = (
        "Further checks alone cannot halve that."
        if more is None
        else f"{count(more.checks, 'more check')} would tell it to within {_half(more)}."
    )
    return (
        f"{start} and {grading.checked} are checked. Accuracy is {percent(accuracy.value or 0.0)} "
        f"({low} to {high} with grading error). {then}"
    )


def _half(foretold: Checks) -> str:
    return f"{50 * foretold.width:.2g} points"
