"""Rows in order, piece by piece: the same as sorting everything at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calibrant import metrics
from calibrant.metrics.stats import ranking as in_order
from calibrant.metrics.stats.regressions import pooled_sums

ROWS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=60
)


def columns(rows):
    score, outcome, weight = np.array(rows, dtype=float).T
    return score / 10, outcome / 4, weight


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
@pytest.mark.parametrize("falling", [False, True])
@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_pieces_hold_every_score_once_and_in_order(piece, falling, rows):
    score, outcome, weight = columns(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_order, "PIECE", piece)
        parts = list(in_order.sums_in_order(score, outcome, weight, falling=falling))
    found = np.concatenate([part.confidence for part in parts])
    expected = np.unique(score)
    np.testing.assert_array_equal(found, expected[::-1] if falling else expected)
    for value, mass, total in zip(*map(np.concatenate, zip(*parts, strict=True)), strict=True):
        assert mass == weight[score == value].sum()
        assert total == pytest.approx((weight * outcome)[score == value].sum(), abs=1e-12)


@pytest.mark.parametrize("piece", [1, 4, 1000])
@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_pooling_piece_by_piece_is_pooling_at_once(piece, rows):
    score, outcome, weight = columns(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_order, "PIECE", piece)
        blocks, squares, products = pooled_sums(score, outcome, weight)
    distinct = np.unique(score)
    mass = np.array([weight[score == value].sum() for value in distinct])
    total = np.array([(weight * outcome)[score == value].sum() for value in distinct])
    whole = np.repeat(
        *(lambda fit: (fit.x[fit.blocks[:-1]], np.diff(fit.blocks)))(
            isotonic_regression(total / mass, weights=mass)
        )
    )
    fitted = blocks.outcome / blocks.weight
    assert (np.diff(fitted) > -1e-12).all()
    assert blocks.weight @ fitted**2 == pytest.approx(mass @ whole**2, abs=1e-10)
    assert squares == pytest.approx(weight @ score**2)
    assert products == pytest.approx((weight * outcome) @ score)


def test_average_risk_by_its_definition_over_many_pieces(monkeypatch):
    monkeypatch.setattr(in_order, "PIECE", 16)
    rng = np.random.default_rng(5)
    score, outcome = rng.permutation(200) / 200, rng.random(200) < 0.6
    ordered = outcome[np.argsort(-score)]
    risks = [1 - ordered[:k].mean() for k in range(1, 201)]
    assert metrics.aurc(score, outcome) == pytest.approx(np.mean(risks), abs=1e-12)
