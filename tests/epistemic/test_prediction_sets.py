"""Sets of classes miss the right one no more often than promised."""

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.trust.units import PredictionSets


def world(rng, count, sharpness):
    """Labels drawn from probabilities, and what a model says of them: over-sure where above 1."""
    true = rng.dirichlet(np.full(5, 0.4), count)
    label = (rng.random((count, 1)) > np.cumsum(true, axis=1)).sum(axis=1).clip(0, 4)
    stated = true**sharpness
    return stated / stated.sum(axis=1, keepdims=True), label


@pytest.mark.parametrize("sharpness", [0.5, 1, 3])
def test_the_promise_holds_however_the_model_is_calibrated(sharpness):
    rng = np.random.default_rng(5)
    broken = []
    for _ in range(300):
        p, label = world(rng, 200, sharpness)
        sets = PredictionSets.fit(p, label, max_error=0.1)
        fresh, truth = world(rng, 4000, sharpness)
        broken.append((~sets.covers(fresh)[np.arange(4000), truth]).mean() > 0.1)
    # 10 % are allowed; the fresh sample adds noise of its own at the limit.
    assert np.mean(broken) < 0.16


def test_a_model_that_knows_more_has_smaller_sets_and_none_is_empty():
    rng = np.random.default_rng(6)
    p, label = world(rng, 2000, 1)
    sizes = []
    for stated in (p, 0.5 * p + 0.5 * rng.permutation(p)):
        inside = PredictionSets.fit(stated, label, max_error=0.1).covers(stated)
        assert inside.any(axis=1).all()
        sizes.append(inside.sum(axis=1).mean())
    assert sizes[0] < sizes[1] - 0.3


def test_too_few_labels_and_bad_rows_are_named():
    p, label = world(np.random.default_rng(7), 10, 1)
    with pytest.raises(InputError, match="10 labels are too few"):
        PredictionSets.fit(p, label, max_error=0.05)
    p[3, 0] = 1.5
    with pytest.raises(InputError, match="row 4 has a probability"):
        PredictionSets.fit(p, label, max_error=0.5)
