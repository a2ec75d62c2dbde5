"""Sums at distinct scores, and what follows from them by definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calibrant import metrics
from calibrant.metrics.stats.ranking import DistinctSums

ROWS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=60
)


def columns(rows):
    score, outcome, weight = np.array(rows, dtype=float).T
    return score / 10, outcome / 4, weight


@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_every_score_once_and_in_order(rows):
    score, outcome, weight = columns(rows)
    sums = DistinctSums.of(score, outcome, weight)
    np.testing.assert_array_equal(sums.confidence, np.unique(score))
    for value, mass, total in zip(*sums, strict=True):
        assert mass == weight[score == value].sum()
        assert total == pytest.approx((weight * outcome)[score == value].sum(), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_corp_is_what_the_isotonic_fit_of_the_rows_gives(rows):
    score, outcome, weight = columns(rows)
    place = np.unique(score, return_inverse=True)[1]
    mass = np.bincount(place, weight)
    fit = isotonic_regression(np.bincount(place, weight * outcome) / mass, weights=mass).x[place]
    mean = np.average(outcome, weights=weight)
    found = metrics.corp(score, outcome, weights=weight)
    brier, refit = (np.average((c - outcome) ** 2, weights=weight) for c in (score, fit))
    assert found.score == pytest.approx(brier, abs=1e-10)
    assert found.mcb == pytest.approx(brier - refit, abs=1e-10)
    assert found.dsc == pytest.approx(np.average((fit - mean) ** 2, weights=weight), abs=1e-10)
    assert found.score == pytest.approx(found.mcb - found.dsc + found.unc, abs=1e-10)


def test_average_risk_by_its_definition():
    rng = np.random.default_rng(5)
    score, outcome = rng.permutation(200) / 200, rng.random(200) < 0.6
    ordered = outcome[np.argsort(-score)]
    risks = [1 - ordered[:k].mean() for k in range(1, 201)]
    assert metrics.aurc(score, outcome) == pytest.approx(np.mean(risks), abs=1e-12)
