"""Read by type checkers, never run: what they must find right, and what they must find wrong."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Literal, assert_type

import calibrant as cal
from calibrant.findings.documents import Claim, EstimateEntry
from calibrant.report.result import (
    AccuracyResult,
    AuditResult,
    CompareResult,
    DecideResult,
    MendResult,
    PlanResult,
)
from calibrant.trust import Step


def calls() -> None:
    """Call what users call."""
    audit = cal.audit([0.9, 0.4], [1, 0], bins=10)
    # Grades without a confidence are audited for accuracy: who needs the confidence says so.
    assert_type(audit, AuditResult | AccuracyResult)
    assert_type(audit.to_html(), str)
    assert isinstance(audit, AuditResult)
    assert_type(audit.results[0].metrics.ece, EstimateEntry)
    assert_type(audit.results[0].metrics.ece.high, float | None)
    assert_type(audit.claims, list[Claim] | None)
    compared = cal.compare("scores.csv", models=["small", "large"])
    assert_type(compared, CompareResult | AccuracyResult)
    assert isinstance(compared, CompareResult)
    assert_type(compared.pairs[0].gaps.ia.brier.value, float | None)
    assert_type(compared.pairs[0].verdict, str | None)
    decided = cal.decide("scores.csv", max_error=0.1)
    assert_type(decided, DecideResult)
    mended = cal.mend([0.9, 0.4], [1, 0])
    assert_type(mended, MendResult)
    planned: PlanResult = cal.plan(precision=0.05, error_rate=0.2)
    assert_type(planned.passive_labels, int | None)
    assert_type(cal.metrics.ece([0.9, 0.4], [1, 0]), float)
    _estimate = cal.Estimate(0.1, 0.0, 0.2, n=5)
    _error: cal.CalibrantError = cal.InputError("x", hint="y")
    _batch = cal.label_next("pool.csv", "batch.csv", size=10)
    _questions = cal.bench_mace(k=[1, 2])
    policy = cal.load_policy("policy.json")
    assert_type(policy.answers(0.9), bool)
    assert_type(policy.decide({"confidence": 0.9}), Literal["answer", "ask"])
    assert_type(policy.route({}, {}), Step)
    assert_type(policy.route_batch([{}]), list[Step])
    assert_type(policy.check([{"confidence": 0.9}]).text, str)
    assert_type(policy.expires, dt.date | None)
    assert_type(policy.ends_when, str)
    assert_type(policy.promise, Mapping[str, Any])

    _slip = cal.audti  # wrong: no such name
    cal.audit([0.9], [1], bins="many")  # wrong: no number
    cal.audit([0.9], [1], bin=10)  # wrong: no such option
    _key = audit.resutls  # wrong: no such key
    _metric = audit.results[0].metrics.ecee  # wrong: no such metric
    _gaps = cal.compare("scores.csv").pairs[0].gaps  # wrong: no gaps without a confidence
