"""Agreement with people."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from calibrant.answers.semantics import agreement, cohen_kappa
from calibrant.core import InputError, UndefinedMetricWarning


def test_kappa_golden():
    # Cohen's worked example: observed 0.7, expected 0.5.
    assert cohen_kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)
    assert cohen_kappa([[10, 0], [0, 10]]) == 1.0
    assert np.isnan(cohen_kappa([[10, 0], [0, 0]]))
    assert np.isnan(cohen_kappa([[0, 0], [0, 0]]))


def test_estimates_match_scikit_learn():
    rng = np.random.default_rng(0)
    truth = rng.random(500) < 0.6
    found = np.where(rng.random(500) < 0.8, truth, ~truth)
    result = agreement(list(map(bool, found)), list(map(bool, truth)))
    assert result["kappa"].value == pytest.approx(cohen_kappa_score(truth, found))
    assert result["accuracy"].value == pytest.approx(np.mean(truth == found))
    assert result["kappa"].low < result["kappa"].value < result["kappa"].high


def test_not_attempted_has_its_own_row_and_unlabelled_rows_are_counted():
    result = agreement([True, None, False, True], [True, True, False, None])
    assert result["confusion"]["not attempted"] == {"right": 1, "wrong": 0}
    assert result["confusion"]["correct"] == {"right": 1, "wrong": 0}
    assert (result["n"], result["unlabelled"]) == (3, 1)
    assert result["attempted"] == pytest.approx(2 / 3)


def test_intervals_cover_and_grow_with_groups():
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(100):
        truth = rng.random(200) < 0.5
        found = np.where(rng.random(200) < 0.8, truth, ~truth)
        kappa = agreement(found.tolist(), truth.tolist(), resamples=300, seed=seed)["kappa"]
        hits += kappa.low <= 0.6 <= kappa.high
    assert 88 <= hits <= 100
    labels = (rng.random(50) < 0.5).tolist()
    flips = rng.random(50) < 0.8
    found = [label if keep else not label for label, keep in zip(labels, flips, strict=True)]
    rows = agreement(found * 10, labels * 10)["kappa"]
    grouped = agreement(found * 10, labels * 10, groups=list(range(50)) * 10)["kappa"]
    assert grouped.high - grouped.low > 2 * (rows.high - rows.low)
    assert grouped.n == 50


def test_undefined_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="kappa is undefined"):
        result = agreement([True, True], [True, True])
    assert np.isnan(result["kappa"].value)


def test_lengths_and_labels_are_checked():
    with pytest.raises(InputError, match="one label per grade"):
        agreement([True], [])
    with pytest.raises(InputError, match="no row has a human label"):
        agreement([True], [None])
