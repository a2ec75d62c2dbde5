"""What an audit may say of confidences, and of answers that have none."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from calibrant.core.names import method_name
from calibrant.findings.claims import ALPHA, About, Claim, Outcome, rule, subject_name
from calibrant.findings.claims.audit_rules import MISCALIBRATED, MODELS_OVER, OVER, SEPARATES, UNDER
from calibrant.findings.claims.data import kept_shares, with_rows_kept
from calibrant.findings.claims.dependence import clusters_words, of_these_words, unit_words
from calibrant.findings.claims.grades import on_grades
from calibrant.findings.claims.margins import more_labels
from calibrant.findings.documents.audits import AuditBlock, Coverage, Significance, Test
from calibrant.findings.documents.entries import AccuracyEntry, AccuracyPair, EstimateEntry

_ONE_SIDED = (0.0, 1.0)
# A headline names the best and the worst of at least so many models.
_NAMES_ENDS = 3


def audit_claims(
    entries: Sequence[AuditBlock], margin: float, coverage: Sequence[Coverage] = ()
) -> list[Claim]:
    """Return the claims of an audit, from its entries with corrected tests.

    Summaries over models come first, then models that are always or never right, then the others
    in their order. A claim that rests on a selected part of the rows says so.

    Parameters
    ----------
    entries
        Models and methods with their metrics and tests.
    margin
        Errors below it do not matter.
    coverage
        Rows by model and method, see `calibrant.data.sources.coverage`.
    """
    selection = kept_shares(coverage)
    constant = {(row.model, row.method) for row in coverage if row.values == 1}
    # Nothing was read of these answers: what a parser lost is no error of a model.
    unread = {(row.model, row.method) for row in coverage if row.n and row.answers_empty == row.n}
    statement = [entry for entry in entries if (entry.model, entry.method) not in unread]
    ordered = sorted((entry for entry in statement if entry.probability), key=_is_mixed)
    several = len({(entry.model, entry.method) for entry in entries}) > 1
    methods = len({entry.method for entry in entries}) > 1
    claims = [
        claim
        for entry in ordered
        for claim in with_rows_kept(
            _entry_claims(entry, margin, constant, named=several, methods=methods),
            selection,
            # A direction says itself what missing confidences could change.
            spoken=(OVER.id, UNDER.id) if entry.missing else (),
        )
    ]
    return [*_summaries(ordered, claims, constant), *claims]


def _is_mixed(entry: AuditBlock) -> bool:
    """Return whether a model is neither always nor never right."""
    return entry.metric("accuracy").value not in _ONE_SIDED


def _entry_claims(
    entry: AuditBlock, margin: float, constant: set[Any], *, named: bool, methods: bool
) -> Iterable[Claim]:
    subject = {"model": entry.model, "method": entry.method, "group": entry.group}
    # One method needs no name; of one model only the method tells confidences apart.
    name = subject_name(subject if methods else {**subject, "method": None})
    # Clusters are counted where they are too few to speak of others.
    few_clusters = clusters_words(entry) if _tests(entry)["gap"] is None else None
    shared = {"name": name, "named": named or bool(entry.group), "few_clusters": few_clusters}
    about = About(subject, shared)
    error = _error_claim(entry, margin, about)
    direction = _direction_claim(entry, margin, about, off_along=error.outcome == "shown")
    yield on_grades(OVER if direction.id == OVER.id else UNDER, direction, entry, "gap")
    yield on_grades(MISCALIBRATED, error, entry, "error")
    varies = (entry.model, entry.method) not in constant
    separates = _separates_claim(entry, about, varies=varies)
    if separates is not None:
        yield on_grades(SEPARATES, separates, entry, "auroc")


def _is_shown(test: Test | None) -> bool:
    return test is not None and test["p_adjusted"] <= ALPHA


def _tests(entry: AuditBlock) -> Significance:
    assert entry.significance is not None
    return entry.significance


def _direction_claim(entry: AuditBlock, margin: float, about: About, *, off_along: bool) -> Claim:
    tests, gap = _tests(entry), entry.metric("confidence_gap")
    test = tests["gap"]
    above = (gap.value or 0) >= 0
    rule = OVER if above else UNDER
    # The size of the gap in the direction of the claim.
    sized = gap if above else gap.turned()
    outcome, missing = _direction_outcome(entry)
    right, of_all = _right_shares(entry)
    facts = {
        "off_along": off_along,
        "signed_low": gap.low,
        "signed_high": gap.high,
        "said": entry.metric("mean_confidence").value,
        "right": right,
        "right_of_all": None if right == of_all else of_all,
        "rows": entry.n,
        "more": _more_labels(gap, margin, tests),
        "p": None if test is None else test["p_value"],
        "what": unit_words(entry),
        "missing": missing,
        "lost": entry.missing,
    }
    if outcome == "undecided" and (of_these := of_these_words(entry, "gap")) is not None:
        outcome, facts = "depends", {**facts, "of_these": of_these}
    p_adjusted = None if test is None else test["p_adjusted"]
    return rule.claim(outcome, about, facts, estimate=sized, p_adjusted=p_adjusted, margin=margin)


def _right_shares(entry: AuditBlock) -> tuple[float, float]:
    """Return the share of right answers among those with a confidence, and among all."""
    statement, gap, of_all = (
        entry.metric(name).value or 0.0
        for name in ("mean_confidence", "confidence_gap", "accuracy")
    )
    right = round(statement - gap, 12)
    return (of_all if math.isclose(right, of_all, abs_tol=1e-9) else right), of_all


def _direction_outcome(entry: AuditBlock) -> tuple[Outcome, str | None]:
    """Return the outcome, and on what it rests where answers have no confidence."""
    tests, missing = _tests(entry), entry.missing
    test = tests["gap"]
    if _is_shown(tests["within_margin"]["gap"]) and missing is None:
        return "equivalent", None
    if not missing or test is None:
        return ("shown" if _is_shown(test) else "undecided"), None
    # By how much the number of tests makes each of them stricter; at most so much.
    factor = min(test["p_adjusted"] / max(test["p_value"], 1e-300), 2 * tests["tests"])
    if _is_shown(test):
        return "shown", "whatever" if missing["worst_case"]["p_value"] * factor <= ALPHA else "if"
    on_rows = min(test["p_rows"] * factor, 1.0) <= ALPHA
    return ("depends" if on_rows and _is_shown(tests["calibration"]) else "undecided"), None


def _more_labels(gap: EstimateEntry, margin: float, tests: Significance) -> float | None:
    """Return how many more labels would decide, all tests of the audit being counted."""
    test, within = tests["gap"], tests["within_margin"]["gap"]
    if test is None or within is None:
        return None
    levels = []
    for tested in (test, within):
        cut = tested["p_adjusted"] >= 1
        # Cut off at 1 the factor is not known: at most the number of tests.
        factor = tests["tests"] if cut else tested["p_adjusted"] / max(tested["p_value"], 1e-12)
        levels.append(ALPHA / max(factor, 1.0))
    # Each confidence has three tests.
    among = max(1.0, tests["tests"] / 3)
    return more_labels(asdict(gap), margin, shown=levels[0], within=levels[1], among=among)


def _error_claim(entry: AuditBlock, margin: float, about: About) -> Claim:
    tests, error = _tests(entry), entry.metric("error")
    within, test = tests["within_margin"]["error"], tests["calibration"]
    outcome: Outcome = "shown" if _is_shown(test) else "undecided"
    if within["holds"]:
        outcome = "equivalent"
    facts: dict[str, Any] = {**within}
    if outcome == "undecided" and (of_these := of_these_words(entry, "calibration")) is not None:
        outcome, facts["of_these"] = "depends", of_these
    p = None if test is None else test["p_adjusted"]
    return MISCALIBRATED.claim(outcome, about, facts, estimate=error, p_adjusted=p, margin=margin)


def _separates_claim(entry: AuditBlock, about: About, *, varies: bool) -> Claim | None:
    auroc, test = entry.metric("auroc"), _tests(entry).get("separation")
    if auroc.value is None or test is None:
        return None
    outcome: Outcome = "undecided"
    if test["p_within"] <= ALPHA:
        outcome = "equivalent"
    elif _is_shown(test):
        outcome = "shown"
    facts = {"varies": varies, "p": test["p_value"]}
    return SEPARATES.claim(outcome, about, facts, estimate=auroc, p_adjusted=test["p_adjusted"])


def _summaries(
    entries: Sequence[AuditBlock], claims: Sequence[Claim], constant: set[Any]
) -> list[Claim]:
    """Return how many models say more than they know: by every method at once, or one by one.

    A method that says the same to every question, in all models, is no headline.
    """
    whole = [entry for entry in entries if entry.group is None]
    methods = {
        method: of_method
        for method in dict.fromkeys(entry.method for entry in whole)
        if len(of_method := [entry for entry in whole if entry.method == method]) > 1
        and not all((entry.model, method) in constant for entry in of_method)
    }
    over = {
        method: [
            claim
            for claim in claims
            if claim.subject["method"] == method
            and claim.subject["group"] is None
            and (claim.id, claim.outcome) == (OVER.id, "shown")
        ]
        for method in methods
    }
    several = len({entry.method for entry in whole}) > 1
    summaries = [
        _summary(
            over[method],
            of_method,
            f" ({method_name(method, aside=True)})" if several else "",
            method,
        )
        for method, of_method in methods.items()
        if 2 * len(over[method]) > len(of_method)
    ]
    everywhere = [entry for of_method in methods.values() for entry in of_method]
    if len(methods) < 2 or sum(map(len, over.values())) < len(everywhere):
        return summaries
    pair = "both" if len(methods) == 2 else f"all {len(methods)}"
    every = [claim for of_method in over.values() for claim in of_method]
    return [_summary(every, everywhere, f"In {pair} confidences "), *summaries]


def _summary(
    over: Sequence[Claim], entries: Sequence[AuditBlock], where: str, method: str | None = None
) -> Claim:
    sizes = [claim.value for claim in over if claim.value is not None]
    models = list(dict.fromkeys(claim.subject["model"] for claim in over))
    best, *_, worst = sorted(entries, key=lambda entry: entry.metric("error").value or 0.0)
    # Ends are named only where the intervals tell them apart.
    ends = method is not None and len(entries) >= _NAMES_ENDS
    ends = ends and (best.metric("error").high or 0.0) < (worst.metric("error").low or 0.0)
    facts = {
        "over": len(models),
        "models": len({entry.model for entry in entries}),
        "range": (min(sizes), max(sizes)),
        "best": best if ends else None,
        "worst": worst if ends else None,
        "where": where,
        "method": method,
    }
    return MODELS_OVER.claim(
        "shown",
        About({"method": method, "models": models}, facts),
        estimate={"value": min(sizes), "n": len(over)},
        p_adjusted=max(claim.p_adjusted or 0.0 for claim in over),
    )


def calibration_word(claims: Iterable[Claim]) -> str:
    """Return the verdict of one entry as a word, from its claims.

    Examples
    --------
    >>> calibration_word([Claim("audit.over_confident", {}, "shown", "")])
    'over-confident'
    >>> calibration_word([Claim("audit.miscalibrated", {}, "equivalent", "")])
    'calibrated'
    """
    outcomes = {claim.id: claim.outcome for claim in claims}
    for side, word in ((OVER, "over-confident"), (UNDER, "under-confident")):
        if outcomes.get(side.id) == "shown":
            return word
    error = outcomes.get(MISCALIBRATED.id)
    return {"shown": "miscalibrated", "equivalent": "calibrated"}.get(str(error), "undecided")


SHARE = rule("accuracy.share", between=lambda facts: "clusters" if facts["clusters"] else "rows")
REPEATS = rule("accuracy.repeats")
BETTER = rule("accuracy.better")


def accuracy_claims(
    entries: Sequence[AccuracyEntry], pairs: Sequence[AccuracyPair], level: float
) -> Iterator[Claim]:
    """Yield the differences that are shown, the shares right, and the pairs that stay open."""
    compared = list(_differences(pairs, level))
    yield from (claim for claim in compared if claim.outcome == "shown")
    for entry in entries:
        subject = {"model": entry.model, "group": entry.group}
        name = subject_name({**subject, "method": None})
        about = About(subject, {"name": name.replace("The confidence", "It"), "level": level})
        facts = {"clusters": entry.clusters}
        yield SHARE.claim("shown", about, facts, estimate=entry.accuracy, n=entry.n)
        if entry.disagree is not None:
            yield REPEATS.claim("shown", about, estimate=entry.disagree)
    yield from (claim for claim in compared if claim.outcome != "shown")


def _differences(pairs: Sequence[AccuracyPair], level: float) -> Iterator[Claim]:
    for pair in pairs:
        value, low, high = pair.difference.numbers
        half = (high - low) / 2
        # Intervals shrink with the root of the number of questions.
        more = pair.questions * ((half / abs(value)) ** 2 - 1) if value else None
        facts = {"questions": pair.questions, "more": None if more is None else max(more, 0.0)}
        yield BETTER.claim(
            pair.p_adjusted <= ALPHA,
            About({"a": pair.a, "b": pair.b}, {"a": pair.a, "b": pair.b, "level": level}),
            facts,
            estimate=pair.difference,
            p_adjusted=pair.p_adjusted,
            n=pair.questions,
        )
