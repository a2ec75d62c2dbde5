"""Calibration errors where few questions have most of the rows, or few rows most of the weight."""

import numpy as np
import pytest
from scipy.special import ndtr

from calibrant import metrics
from calibrant.metrics.inputs import check
from calibrant.metrics.intervals.gap import gap_model
from calibrant.metrics.stats.units import unit_codes

ERRORS = ("ece", "smooth_ece", "mcb")


def calibrated(rng, question):
    """Rows whose confidence is the chance to be right; those of a question tend to be alike."""
    confidence = np.clip(rng.beta(4, 2, question.size), 0.01, 0.99)
    shared = rng.normal(size=int(question.max()) + 1)[question]
    own = rng.normal(size=question.size)
    return confidence, ndtr(0.7 * shared + np.sqrt(0.51) * own) < confidence


def test_two_large_questions_show_no_error_of_a_calibrated_model():
    """Intervals of the smooth ECE left 0 out in half of these data sets, of the ECE in a fifth."""
    rng = np.random.default_rng(1)
    question = np.repeat(np.arange(52), [100, 100, *[1] * 50])
    missed = dict.fromkeys(ERRORS, 0)
    for _ in range(30):
        rows = calibrated(rng, question)
        found = metrics.metric_estimates(*rows, units=question, names=ERRORS, resamples=200)
        for name in ERRORS:
            missed[name] += found[name].low > 0
    assert max(missed.values()) <= 4, missed


@pytest.mark.parametrize("size", [1, 5])
def test_equal_questions_need_no_caution(size):
    question = np.repeat(np.arange(40), size)
    weights = np.ones(question.size) if size == 1 else None
    data = check(*calibrated(np.random.default_rng(0), question), weights)
    assert gap_model(data, unit_codes(question, question.size), bins=15).caution == 1.0


def test_the_variance_is_that_of_unequal_questions():
    """Over many data sets, against the spread that the sums of the bins really have."""
    rng = np.random.default_rng(2)
    question = np.repeat(np.arange(43), [30, 20, 10, *[1] * 40])
    units = unit_codes(question, question.size)
    seen, told = [], []
    for _ in range(300):
        data = check(*calibrated(rng, question))
        found = gap_model(data, units, bins=1)
        seen.append(found.residual[0])
        told.append(found.inflation / found.caution * found.error()[0] ** 2 / found.inflation)
    assert np.mean(told) == pytest.approx(np.var(seen), rel=0.25)
