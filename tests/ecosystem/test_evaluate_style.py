"""`Calibration` in the manner of `evaluate`: the same numbers as an audit, however they come in."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.integrations.evaluate_style import Calibration

rng = np.random.default_rng(5)
SAID = rng.uniform(0.3, 1, 120)
RIGHT = (rng.random(120) < SAID - 0.1).astype(int)


def test_the_numbers_are_those_of_an_audit():
    found = Calibration(["ece", "brier", "auroc"]).compute(predictions=SAID, references=RIGHT)
    metrics = cal.audit(SAID, RIGHT, resamples=20)["results"][0]["metrics"]
    assert found["n"] == 120
    for name in ("ece", "brier", "auroc"):
        assert found[name] == pytest.approx(metrics[name]["value"])
        assert found[f"{name}_low"] <= found[name] <= found[f"{name}_high"]
    assert all(value is None or isinstance(value, float | int) for value in found.values())


def test_batches_and_single_rows_add_up_and_compute_starts_anew():
    metric = Calibration(["brier"], intervals=False)
    metric.add_batch(predictions=SAID[:60], references=RIGHT[:60])
    for said, right in zip(SAID[60:119], RIGHT[60:119], strict=True):
        metric.add(prediction=said, reference=right)
    found = metric.compute(predictions=SAID[119:], references=RIGHT[119:])
    assert found == pytest.approx({"brier": np.mean((SAID - RIGHT) ** 2), "n": 120})
    with pytest.raises(InputError, match="nothing to compute"):
        metric.compute()


@pytest.mark.parametrize(
    "shape",
    [list, tuple, pl.Series, lambda x: x.reshape(-1, 1), lambda x: np.column_stack([1 - x, x])],
)
def test_every_shape(shape):
    whole = Calibration(["brier"], intervals=False).compute(predictions=SAID, references=RIGHT)
    given = Calibration(["brier"], intervals=False).compute(
        predictions=shape(SAID), references=list(RIGHT)
    )
    assert given == pytest.approx(whole)


def test_what_does_not_fit_is_said():
    metric = Calibration()
    with pytest.raises(InputError, match="as many, got 2 and 1"):
        metric.compute(predictions=[0.1, 0.2], references=[1])
    with pytest.raises(InputError, match=r"got shape \(4, 3\)"):
        metric.compute(predictions=np.full((4, 3), 1 / 3), references=[0, 1, 1, 0])
    with pytest.raises(InputError, match="predictions and references, or neither"):
        metric.compute(predictions=[0.4])
