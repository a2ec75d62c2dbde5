"""What an evaluation of several right answers may claim: corrected tests, honest intervals."""

import math

import numpy as np
import polars as pl
import pytest

from calibrant.bench.evaluation_claims import evaluation_claims
from calibrant.bench.macro import leaves, macro_auroc, macro_mean
from calibrant.bench.multi_answer import evaluate_multi_answer
from calibrant.bench.significance import compare_aurocs
from calibrant.core.document import plain
from calibrant.findings.documents.fields import typed
from calibrant.metrics.stats.intervals import unseen_share
from calibrant.metrics.stats.multiplicity import holm
from calibrant.report.terminal import render_text


def test_fewer_drawn_questions_do_not_change_what_the_questions_at_hand_show():
    rng = np.random.default_rng(0)
    correct = (rng.random(2_000) < 0.5).astype(float)
    pair = (
        (correct + rng.normal(size=2_000), correct),
        (correct + 1.3 * rng.normal(size=2_000), correct),
    )
    few, all_of_them = (
        compare_aurocs(*pair, leaves(["a"] * 2_000), items=items, rng=0) for items in (200, None)
    )
    assert few.p > 5 * all_of_them.p
    assert math.log(few.p_student) == pytest.approx(math.log(all_of_them.p_student), rel=0.15)


def test_the_p_value_that_is_corrected_keeps_its_level_with_few_right_answers():
    """The share of draws does not: it finds 7 % at 5 % here, and it ends at 2 / 1,001."""
    small = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        correct = (rng.random(24) < 0.15).astype(float)
        if 0 < correct.sum() < 24:
            shared = correct + rng.normal(size=24)
            first, second = (np.round(4 * (shared + rng.normal(size=24))) for _ in range(2))
            test = compare_aurocs(
                (first, correct), (second, correct), leaves(["a", "b"] * 12), draws=200, rng=seed
            )
            small.append(test.p_student)
    p = np.array(small)[np.isfinite(small)]
    assert p.size > 250
    assert np.mean(p <= 0.05) <= 0.05
    assert np.mean(p <= 0.002) <= 0.004


def many_methods(number, *, better=0):
    """Scores of `number` methods that rank alike, and of `better` ones that rank less well."""
    rng = np.random.default_rng(3)
    n = 400
    correct = (rng.random(n) < 0.5).astype(float)
    columns = {"question_id": np.arange(n), "model": ["m"] * n, "correct": correct}
    columns |= {"k": rng.choice([1, 2], n), "domain": ["a"] * n}
    spreads = {"ref": 1.0} | {f"alike{i}": 1.0 for i in range(number)}
    spreads |= {f"poor{i}": 6.0 for i in range(better)}
    return pl.concat(
        pl.DataFrame(columns).with_columns(
            method=pl.lit(name), confidence=correct + spread * rng.normal(size=n)
        )
        for name, spread in spreads.items()
    )


def test_comparisons_are_corrected_for_their_number():
    names = {f"alike{i}" for i in range(40)} | {"poor0", "ref"}
    frame = many_methods(40, better=1)
    document = evaluate_multi_answer(frame, reference="ref", ranking_methods=names, draws=200)
    tests = {
        (entry["method"], len(test["mix"])): test
        for entry in document["results"]
        for test in entry["significance"]
    }
    assert document["multiplicity"] == {"control": "holm", "alpha": 0.04, "tests": 82}
    assert len(tests) == 82
    plain_p = [test["p_student"] for test in tests.values()]
    expected = dict(zip(tests, holm(plain_p), strict=True))
    assert {name: test["p_adjusted"] for name, test in tests.items()} == expected
    alike = [test for (name, _), test in tests.items() if name != "poor0"]
    # Alone, some of forty equal methods look different; together none does.
    assert min(test["p"] for test in alike) < 0.05
    assert min(test["p_adjusted"] for test in alike) > 0.05
    assert tests["poor0", 2]["p_adjusted"] < 0.001
    claims = evaluation_claims(typed(plain(document)), 0.05)
    outcomes = {c.subject["method"]: c.outcome for c in claims if "reference" in c.id}
    assert [name for name, outcome in outcomes.items() if outcome == "shown"] == ["poor0"]
    assert "corrected for 82 tests by Holm's rule" in " ".join(
        render_text(plain(document), full=True).split()
    )


def test_no_interval_has_the_width_zero_because_nothing_varied():
    parts = leaves(["a"] * 6)
    constant = macro_mean(np.full(6, 0.25), parts, bounds=(0.0, 1.0)).estimate
    assert constant.low == pytest.approx(0.25 * (1 - unseen_share(6, 0.95)))
    assert constant.high == pytest.approx(0.25 + 0.75 * unseen_share(6, 0.95))
    assert math.isnan(macro_mean(np.full(6, 3.0), parts).estimate.low)
    perfect = macro_auroc(
        np.array([0.9, 0.8, 0.2, 0.1]), np.array([1.0, 1, 0, 0]), leaves(["a"] * 4)
    )
    assert perfect.estimate.high == 1.0
    assert perfect.estimate.low < 0.6


def test_intervals_of_shares_stay_inside_their_range():
    found = macro_mean(np.array([0.0, 0.0, 1.0]), leaves(["a"] * 3), bounds=(0.0, 1.0)).estimate
    assert (found.low, found.high) == (0.0, 1.0)
