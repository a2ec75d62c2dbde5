"""Small seeded versions of the rate simulations."""

import numpy as np
from simulations.planning import active_slopes, detection_power, passive_slopes

SIZES = np.array([2000, 8000, 32_000])


def test_passive_slope_goes_to_minus_a_third_with_zero_crossings():
    slopes = passive_slopes(100, waves=(1, 256), sizes=SIZES)
    assert slopes[1] < -0.42
    assert -0.40 < slopes[256] < -0.30


def test_active_slope_is_near_minus_a_half_and_free_of_steepness():
    slopes, spread = active_slopes(150, waves=(1, 2, 4), sizes=SIZES)
    assert all(-0.62 < slope < -0.42 for slope in slopes.values())
    assert spread.max() < 0.25  # 150 repetitions; the full run stays below 0.15


def test_phase_transition_is_at_one_expected_error():
    power = np.array(list(detection_power().values()))
    assert (power[:, 0] < 0.15).all()  # m eps = 0.1
    assert (power[:, -1] > 0.8).all()  # m eps = 10
    assert np.ptp(power, axis=0).max() < 0.05  # the same curve for every error rate
