"""The calibration error of Humanity's Last Exam, by hand and against the formula of its script."""

import math

import numpy as np
import pytest

from calibrant.metrics import rms_calibration_error


def published(confidence, correct, *, beta=100, whole):
    """Compute the error as the benchmark defines it: bins of `beta` rows, the last takes the rest.

    Its script adds all bins but the last one, and divides by all rows; `whole` adds every bin.
    """
    order = np.argsort(confidence)
    said, right = np.asarray(confidence)[order], np.asarray(correct, dtype=float)[order]
    count = len(said)
    edges = [(i * beta, (i + 1) * beta) for i in range(count // beta)]
    edges[-1] = (edges[-1][0], count)
    used = edges if whole else edges[:-1]
    squares = [
        (end - start) / count * (said[start:end].mean() - right[start:end].mean()) ** 2
        for start, end in used
    ]
    return math.sqrt(sum(squares))


def by_hand():
    """Return 200 rows: the lower half exactly right as often as it says, the upper half not."""
    low = [0.4 + i / 1000 - 0.0495 for i in range(100)]  # mean 0.4
    high = [0.76 + i / 1000 - 0.0495 for i in range(100)]  # mean 0.76
    return low + high, [1] * 40 + [0] * 60 + [1] * 38 + [0] * 62


def test_the_number_by_hand():
    said, right = by_hand()
    # Bins: |0.40 - 0.40| = 0 and |0.76 - 0.38| = 0.38; half of the rows each.
    expected = math.sqrt(0.5 * 0.0**2 + 0.5 * 0.38**2)
    assert expected == pytest.approx(0.2687, abs=5e-5)
    assert rms_calibration_error(said, right) == pytest.approx(expected, abs=1e-12)
    assert published(said, right, whole=True) == pytest.approx(expected, abs=1e-12)
    # The script does not see the bin in which the model errs.
    assert published(said, right, whole=False) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("rows", [100, 300, 1000])
def test_the_formula_where_every_bin_is_full_and_no_confidence_is_equal(rows):
    rng = np.random.default_rng(rows)
    said = rng.random(rows)
    right = rng.random(rows) < said**2
    ours = rms_calibration_error(said, right)
    assert ours == pytest.approx(published(said, right, whole=True), abs=1e-12)
    assert published(said, right, whole=False) < ours


def test_equal_confidences_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    said = rng.choice([0.5, 0.8, 0.9, 1.0], size=400)
    right = rng.random(400) < 0.6
    shuffled = rng.permutation(400)
    again = rms_calibration_error(said[shuffled], right[shuffled])
    assert rms_calibration_error(said, right) == pytest.approx(again, abs=1e-12)
