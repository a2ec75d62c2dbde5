"""Metrics by name, each against its formula written out again or the paper's own script."""

import numpy as np
import pytest
from scipy import special
from sklearn.metrics import log_loss as sk_log_loss

from calibrant import metrics
from calibrant.core import InputError


def rows(n=1_000, seed=0):
    rng = np.random.default_rng(seed)
    true = special.expit(rng.normal(0.3, 1.2, n))
    return special.expit(special.logit(true) * 2), (rng.random(n) < true).astype(int)


def hle_calib_err(confidence, correct, *, all_bins):
    """The loop of HLE's script; it stops before the last bin unless `all_bins`."""
    order = np.argsort(confidence)
    confidence, correct = confidence[order], correct[order]
    bins = [[i * 100, (i + 1) * 100] for i in range(len(confidence) // 100)]
    bins[-1] = [bins[-1][0], len(confidence)]
    error = 0.0
    for low, high in bins if all_bins else bins[:-1]:
        gap = np.abs(np.nanmean(confidence[low:high]) - np.nanmean(correct[low:high]))
        error += (high - low) / len(confidence) * gap**2
    return np.sqrt(error)


def test_rms_is_that_of_hle_with_its_last_bin():
    confidence, correct = rows()
    found = metrics.rms_calibration_error(confidence, correct)
    assert found == pytest.approx(hle_calib_err(confidence, correct, all_bins=True), rel=1e-12)
    assert found > hle_calib_err(confidence, correct, all_bins=False)


def test_rms_does_not_depend_on_the_order_of_ties():
    confidence, correct = rows()
    confidence = confidence.round(1)
    other = np.random.default_rng(1).permutation(len(correct))
    assert metrics.rms_calibration_error(confidence, correct) == pytest.approx(
        metrics.rms_calibration_error(confidence[other], correct[other]), rel=1e-12
    )


def test_mce_is_the_largest_bin():
    confidence, correct = rows()
    bins = metrics.reliability_bins(confidence, correct, bins=15)
    expected = np.abs(bins.confidence - bins.rate).max()
    assert metrics.mce(confidence, correct) == pytest.approx(expected)


def test_adaptive_ece_has_bins_of_equal_rows():
    confidence, correct = rows(1_500)
    order = np.argsort(confidence)
    parts = (confidence - correct)[order].reshape(15, 100)
    assert metrics.adaptive_ece(confidence, correct) == pytest.approx(
        np.abs(parts.mean(axis=1)).mean()
    )


def test_ks_is_the_largest_summed_gap():
    confidence, correct = rows()
    order = np.argsort(confidence)
    expected = np.abs(np.cumsum((confidence - correct)[order])).max() / 1_000
    assert metrics.ks_calibration_error(confidence, correct) == pytest.approx(expected)
    rounded = confidence.round(1)
    values = np.unique(rounded)
    by_hand = max(abs((rounded - correct)[rounded <= v].sum()) for v in values) / 1_000
    assert metrics.ks_calibration_error(rounded, correct) == pytest.approx(by_hand)


def test_the_parts_of_the_log_loss():
    confidence, correct = rows(3_000)
    parts = metrics.log_loss_decomposition(confidence, correct)
    assert parts.log_loss == pytest.approx(sk_log_loss(correct, confidence))
    mended = metrics.IsotonicCalibrator().fit(confidence, correct).predict(confidence)
    # scikit-learn clips 0 and 1 at the resolution of a float.
    assert parts.refinement == pytest.approx(sk_log_loss(correct, mended), abs=1e-9)
    assert parts.calibration + parts.refinement == pytest.approx(parts.log_loss)
    base = correct.mean()
    assert parts.uncertainty == pytest.approx(special.entr(base) + special.entr(1 - base))
    assert parts.uncertainty - parts.discrimination == pytest.approx(parts.refinement)
    assert metrics.log_loss_decomposition([1.0, 0.4], [0, 1]).calibration == np.inf


NAMES = (
    "rms_calibration_error",
    "mce",
    "adaptive_ece",
    "ks_calibration_error",
    "log_loss_calibration",
    "log_loss_refinement",
)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_repetitions_and_zero_is_absence(name):
    confidence, correct = rows(400)
    metric = getattr(metrics, name)
    weights = np.tile([0, 2], 200)
    kept = slice(1, None, 2)
    weighted = metric(confidence, correct, weights=weights)
    copied = metric(np.repeat(confidence[kept], 2), np.repeat(correct[kept], 2))
    assert weighted == pytest.approx(copied)


def matrix(n=2_000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, k))
    true = special.softmax(logits, axis=1)
    labels = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return special.softmax(2 * logits, axis=1), labels, true


def by_bins(confidence, correct, bins=15):
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return sum(abs((confidence - correct)[place == b].sum()) for b in range(bins)) / len(confidence)


def test_top_label_and_classwise_by_their_formulas():
    p, labels, _ = matrix()
    top, hit = p.max(axis=1), p.argmax(axis=1) == labels
    assert metrics.top_label_ece(p, labels) == pytest.approx(by_bins(top, hit))
    per_class = sum(
        (p.argmax(axis=1) == k).mean()
        * by_bins(top[p.argmax(axis=1) == k], hit[p.argmax(axis=1) == k])
        for k in range(4)
    )
    assert metrics.top_label_ece(p, labels, by_class=True) == pytest.approx(per_class)
    classwise = np.mean([by_bins(p[:, k], labels == k) for k in range(4)])
    assert metrics.classwise_ece(p, labels) == pytest.approx(classwise)


def test_a_calibrated_matrix_has_the_smaller_error():
    p, labels, true = matrix(20_000)
    for metric in (metrics.top_label_ece, metrics.classwise_ece):
        assert metric(true, labels) < 0.02 < metric(p, labels)


def test_a_matrix_that_is_none_is_refused():
    p, labels, _ = matrix(20)
    with pytest.raises(InputError, match=r"row 3: .* sum to 1"):
        metrics.classwise_ece(np.where(np.arange(20)[:, None] == 2, 0.5, p), labels)
    with pytest.raises(InputError, match="from 0 to 3, got 7"):
        metrics.classwise_ece(p, np.full(20, 7))
    with pytest.raises(InputError, match="whole numbers"):
        metrics.top_label_ece(p, labels.astype(float))
    with pytest.raises(InputError, match="column per class"):
        metrics.top_label_ece(p[:, 0], labels)
