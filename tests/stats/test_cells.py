"""Resampled counts."""

import numpy as np
import pytest
from scipy import stats

from calibrant.metrics.stats import bootstrap


@pytest.mark.parametrize("block", [7, 1000])
def test_counts_have_the_law_of_drawing_with_replacement(block, monkeypatch):
    monkeypatch.setattr(bootstrap, "BLOCK", block)
    rng = np.random.default_rng(0)
    counts, seen = np.empty(20, np.int64), []
    for _ in range(3000):
        bootstrap.draw_counts(counts, 50, rng)
        assert counts.sum() == 50
        seen.append(counts.copy())
    seen = np.array(seen)
    assert stats.chisquare(seen.sum(axis=0)).pvalue > 0.001
    covariance = np.cov(seen.T)
    assert np.diag(covariance).mean() == pytest.approx(50 / 20 * 19 / 20, rel=0.05)
    within, across = covariance[0, 1], covariance[0, 19]
    assert within == pytest.approx(-50 / 400, abs=0.1)
    assert across == pytest.approx(-50 / 400, abs=0.1)
