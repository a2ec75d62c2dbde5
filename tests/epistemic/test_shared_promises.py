"""Several methods share the chance of a false promise, and no number of labels is made up."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.trust.selective.labels import LabelForecast


def methods(seed, n=250, count=8, wrong=0.22):
    """Methods of one table; the upper half of each is wrong in `wrong` of its answers."""
    rng = np.random.default_rng([seed, 5])
    right = rng.random(n) < 0.68
    chance = np.where(right, (1 - wrong) / 2 / 0.68, wrong / 2 / 0.32)
    parts = []
    for number in range(count):
        top = rng.random(n) < chance
        said = np.where(top, rng.uniform(0.8, 1, n), rng.uniform(0.2, 0.8, n))
        columns = {"question_id": np.arange(n), "method": [f"m{number}"] * n, "confidence": said}
        parts.append(pl.DataFrame({**columns, "correct": right.astype(int)}))
    return pl.concat(parts)


def test_tables_with_a_false_promise_are_rare_however_many_methods():
    """With a whole chance each, 25 of 100 such tables held a promise that failed."""
    false = [
        any(entry["certified"] for entry in cal.decide(methods(seed), max_error=0.2)["results"])
        for seed in range(20)
    ]
    assert sum(false) <= 2


def test_a_sentence_is_about_tables_and_the_next_step_keeps_the_share():
    found = cal.decide(methods(0, n=900, wrong=0.08), max_error=0.2)
    assert {(entry["delta"], entry["among"]) for entry in found["results"]} == {(0.1 / 8, 8)}
    assert (
        "(90 % certain: at most 10 % of tables like this get a false promise)"
        in found["claims"][0]["text"]
    )
    assert "delta=0.0125" in str(found)
    one = cal.decide(methods(0, n=900, count=1, wrong=0.08), max_error=0.2)["results"][0]
    assert (one["delta"], one["among"]) == (0.1, 1)


@pytest.mark.parametrize("flat", [0.11, 0.2])
def test_no_labels_are_forecast_where_no_threshold_keeps_the_limit(flat):
    """A dip of the fitted curve promised 100 times the labels in 30 of 100 such tables."""
    forecasts = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 8])
        score, wrong = rng.random(300), (rng.random(300) < flat).astype(float)
        outlook = LabelForecast(score, wrong, np.ones(300), max_error=0.1, delta=0.1)
        forecasts += outlook.can_keep
    assert forecasts <= 5
    rng = np.random.default_rng(1)
    score = rng.random(300)
    wrong = (rng.random(300) < 0.2 * (1 - score)).astype(float)
    assert LabelForecast(score, wrong, np.ones(300), max_error=0.1, delta=0.1).can_keep
