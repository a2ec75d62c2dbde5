"""The curve: numbers of the recipe on the same labels, and what holds for any labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from calibrant.metrics.recalibration import mend_curve
from calibrant.metrics.recalibration.mend_curve import Belief, Parts, fit_curves, lay_grid
from calibrant.metrics.recalibration.mend_fit import Labels, fit_curve

VALUES = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
AT = np.array([0.4, 0.5, 0.75, 0.9, 0.97, 1.0])


def stated(n=400):
    rng = np.random.default_rng(7)
    return rng, rng.choice(VALUES, n, p=[0.05, 0.1, 0.2, 0.3, 0.2, 0.15])


def mended(curve, at):
    return special.expit(np.interp(at, curve.grid.knots, curve.log_odds))


# The recipe takes confidences beyond .98 as .98, and expects no slope.
RECIPE = Belief(
    0.5,
    tuple(Parts(smooth=size, edge=0.02) for size in (0.0, 0.15, 0.3, 0.6, 1.2)),
    (0.5, 0.2, 0.15, 0.1, 0.05),
)


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.setattr(mend_curve, "PLAIN", RECIPE)


@pytest.mark.usefixtures("recipe")
def test_recipe_on_six_stated_values():
    rng, c = stated()
    y = (rng.random(400) < 0.2 + 0.55 * c).astype(float)
    curve = fit_curve(Labels.of(c, y), rng)
    expected = [0.468258911, 0.468258911, 0.610524573, 0.72186755, 0.743356702, 0.753589526]
    np.testing.assert_allclose(mended(curve, AT), expected, atol=1e-8)
    assert curve.rising
    grid = lay_grid(c, np.ones(400))
    (fit,) = fit_curves(grid, grid.sums(np.ones(400))[None], grid.sums(y)[None], RECIPE)
    expected = [0.247785, 0.195002, 0.316853, 0.215934, 0.024426]
    np.testing.assert_allclose(fit.weights, expected, atol=1e-6)


@pytest.mark.usefixtures("recipe")
def test_recipe_where_labels_fall_but_not_enough_to_refute_a_rising_curve():
    rng, c = stated()
    rng.random(400)
    y = (rng.random(400) < 0.95 - 0.6 * c).astype(float)
    curve = fit_curve(Labels.of(c, y), rng)
    np.testing.assert_allclose(mended(curve, AT), 0.460061867, atol=1e-8)
    assert curve.deviance == pytest.approx(7.2295319, abs=1e-6)


def test_digits_near_one_count_where_the_labels_say_so():
    rng = np.random.default_rng(3)
    odds = rng.choice([2.0, 4.0, 7.0, 10.0], 4000)
    c = special.expit(odds)
    told = fit_curve(Labels.of(c, rng.random(4000) < special.expit(odds / 4)), rng)
    value = mended(told, special.expit(np.array([2.0, 4.0, 7.0, 10.0])))
    np.testing.assert_allclose(value, special.expit(np.array([0.5, 1.0, 1.75, 2.5])), atol=0.03)


def test_many_falling_labels_are_believed():
    rng, c = stated(4000)
    y = (rng.random(4000) < 0.95 - 0.6 * c).astype(float)
    curve = fit_curve(Labels.of(c, y), rng)
    assert not curve.rising
    assert mended(curve, np.array([0.5]))[0] > mended(curve, np.array([1.0]))[0] + 0.2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_any_labels_give_a_rising_map_inside_its_band(rows):
    c, y = np.array(rows, dtype=float).T
    curve = fit_curve(Labels.of(c, y), np.random.default_rng(0))
    at = np.linspace(0, 1, 21)
    value = mended(curve, at)
    assert np.isfinite(value).all()
    assert (np.diff(value) >= -1e-12).all() or not curve.rising
    assert (curve.low <= curve.log_odds).all()
    assert (curve.log_odds <= curve.high).all()
    assert 0 < curve.off_by < 1


def test_weights_count_as_repeated_rows_in_the_value():
    rng, c = stated(200)
    y = (rng.random(200) < c - 0.2).astype(float)
    double = fit_curve(Labels.of(c, y, np.full(200, 2.0)), np.random.default_rng(0))
    once = fit_curve(Labels.of(c, y), np.random.default_rng(0))
    # The same weight for all is no information: nothing changes.
    np.testing.assert_allclose(mended(double, AT), mended(once, AT), atol=1e-9)
    assert double.off_by == pytest.approx(once.off_by)


def test_rows_given_four_times_promise_no_more_than_once():
    rng, c = stated(300)
    y = (rng.random(300) < c - 0.2).astype(float)
    once = fit_curve(Labels.of(c, y), np.random.default_rng(0))
    units = np.tile(np.arange(300), 4)
    labels = Labels.of(np.tile(c, 4), np.tile(y, 4), None, units)
    repeated = fit_curve(labels, np.random.default_rng(0))
    assert repeated.off_by == pytest.approx(once.off_by, rel=0.15)
    blind = fit_curve(Labels.of(np.tile(c, 4), np.tile(y, 4)), np.random.default_rng(0))
    assert blind.off_by < 0.7 * once.off_by
