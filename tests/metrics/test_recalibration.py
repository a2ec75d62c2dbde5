"""Recalibration maps: they recover what was broken, survive plain data, never see their fold."""

import json

import numpy as np
import pytest
from scipy import special
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calibrant import metrics
from calibrant.core import InputError


def broken(seed=0, n=20_000, temperature=2.5):
    """Probabilities whose logits were multiplied: too extreme by that temperature."""
    rng = np.random.default_rng(seed)
    true = special.expit(rng.normal(0.5, 1.2, n))
    return special.expit(special.logit(true) * temperature), (rng.random(n) < true).astype(int)


@pytest.mark.parametrize("name", metrics.CALIBRATORS)
def test_every_map_mends_what_was_broken(name):
    confidence, correct = broken(1)
    fresh, outcome = broken(2)
    made = metrics.CALIBRATORS[name]().fit(confidence, correct)
    mended = made.predict(fresh)
    assert metrics.ece(fresh, outcome) > 0.1
    assert metrics.ece(mended, outcome) < 0.025
    assert (made.transform(fresh) == mended).all()
    assert ((mended >= 0) & (mended <= 1)).all()


@pytest.mark.parametrize("name", metrics.CALIBRATORS)
def test_plain_data_brings_a_map_back(name):
    confidence, correct = broken(3, 500)
    made = metrics.CALIBRATORS[name]().fit(confidence, correct)
    again = metrics.calibrator_from_dict(json.loads(json.dumps(made.to_dict())))
    assert type(again) is type(made)
    assert (again.predict(confidence) == made.predict(confidence)).all()


@pytest.mark.parametrize("name", metrics.CALIBRATORS)
def test_whole_weights_are_repetitions(name):
    confidence, correct = broken(4, 300)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    weighted = metrics.CALIBRATORS[name]().fit(confidence, correct, weights=weights)
    copied = metrics.CALIBRATORS[name]().fit(
        np.repeat(confidence, weights), np.repeat(correct, weights)
    )
    at = np.linspace(0, 1, 50)
    assert weighted.predict(at) == pytest.approx(copied.predict(at), abs=1e-6)


@pytest.mark.parametrize("name", metrics.CALIBRATORS)
@pytest.mark.parametrize(
    ("confidence", "correct"),
    [([0.7], [1]), ([0.2, 0.9], [1, 1]), ([0.4] * 4, [1, 0, 0, 0]), ([0.0, 1.0, 0.5], [0, 1, 1])],
)
def test_degenerate_data_give_probabilities(name, confidence, correct):
    made = metrics.CALIBRATORS[name]().fit(confidence, correct)
    out = made.predict([0.0, 0.3, 0.7, 1.0])
    assert np.isfinite(out).all()
    assert ((out >= 0) & (out <= 1)).all()


def test_temperature_is_recovered():
    confidence, correct = broken(5, 100_000, temperature=2.5)
    made = metrics.TemperatureCalibrator().fit(confidence, correct)
    assert made.temperature_ == pytest.approx(2.5, rel=0.05)


def test_platt_equals_logistic_regression():
    confidence, correct = broken(6, 2_000)
    made = metrics.PlattCalibrator(penalty=1e-9).fit(confidence, correct)
    logits = special.logit(np.clip(confidence, 1e-6, 1 - 1e-6))[:, None]
    expected = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logits, correct)
    assert made.slope_ == pytest.approx(expected.coef_[0, 0], rel=1e-4)
    assert made.intercept_ == pytest.approx(expected.intercept_[0], abs=1e-4)


def test_isotonic_equals_scikit_learn():
    confidence, correct = broken(7, 2_000)
    made = metrics.IsotonicCalibrator().fit(confidence, correct)
    expected = IsotonicRegression(out_of_bounds="clip").fit(confidence, correct)
    at = np.linspace(0, 1, 400)
    assert made.predict(at) == pytest.approx(expected.predict(at), abs=1e-9)


def test_scores_outside_the_unit_interval_go_through_platt_and_isotonic():
    rng = np.random.default_rng(8)
    score = rng.normal(0, 3, 5000)
    correct = rng.random(5000) < special.expit(score)
    for name in ("platt", "isotonic"):
        assert metrics.ece(metrics.cross_fitted(name, score, correct), correct) < 0.03
    for name in ("temperature", "beta", "histogram"):
        with pytest.raises(InputError, match=r"in \[0, 1\]"):
            metrics.CALIBRATORS[name]().fit(score, correct)


def test_moved_rows_are_counted():
    made = metrics.TemperatureCalibrator().fit([0.0, 1.0, 0.5, 0.6], [0, 1, 1, 0])
    assert made.moved_ == 2


def test_cross_fitting_keeps_questions_together_and_does_not_flatter():
    rng = np.random.default_rng(9)
    units = np.repeat(np.arange(60), 5)
    confidence = np.repeat(rng.random(60), 5) + rng.random(300) * 1e-6
    correct = np.repeat(rng.random(60) < 0.5, 5)
    same = metrics.IsotonicCalibrator().fit(confidence, correct).predict(confidence)
    held_out = metrics.cross_fitted("isotonic", confidence, correct, units=units)
    assert metrics.brier(held_out, correct) > metrics.brier(same, correct) + 0.01
    again = metrics.cross_fitted("isotonic", confidence, correct, units=units)
    assert (held_out == again).all()

    class Spy(metrics.IsotonicCalibrator):
        def fit(self, confidence, correct, *, weights=None):
            self.seen_ = set(np.floor(confidence * 1e9))
            return super().fit(confidence, correct)

        def predict(self, confidence):
            assert not self.seen_ & set(np.floor(np.asarray(confidence) * 1e9))
            return super().predict(confidence)

    metrics.cross_fitted(Spy(), np.repeat(rng.random(60), 5), correct, units=units)


def test_misuse_is_named():
    with pytest.raises(InputError, match="not fitted"):
        metrics.PlattCalibrator().predict([0.5])
    with pytest.raises(InputError, match="folds is from 2"):
        metrics.cross_fitted("platt", [0.5, 0.6], [0, 1], folds=5)
    with pytest.raises(InputError, match="did you mean 'isotonic'"):
        metrics.cross_fitted("isotonik", [0.5, 0.6], [0, 1], folds=2)
