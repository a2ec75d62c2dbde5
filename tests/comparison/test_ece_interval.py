"""The interval of a model's ECE: never below 0, and it covers where the bootstrap does not."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.ece_interval import ece_estimate, gaps_of
from comparison.worlds import block_of, views_of

GOAL = 0.4
WORLDS = {
    "calibrated": lambda p: p,
    "over-confident": lambda p: np.clip(p - 0.15, 0, 1),
    "in part": lambda p: np.where(p > 0.7, p - 0.2, p),
}


def gap_of(replicates):
    return gaps_of(replicates[None])[0]


def truth(chance, size=400_000):
    """ECE that infinitely many rows would show, raw and at the common accuracy."""
    p = np.random.default_rng(99).beta(4, 2, size)
    q = chance(p)
    cell = np.minimum((p * 15).astype(int), 14)
    up, down = GOAL / q.mean(), (1 - GOAL) / (1 - q.mean())
    weighted = q * up * (p - 1) + (1 - q) * down * p
    return [np.abs(np.bincount(cell, part)).sum() / size for part in (p - q, weighted)]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("n", [60, 300])
def test_raw_and_aligned_errors_are_covered(world, n):
    chance = WORLDS[world]
    rng = np.random.default_rng(0)
    wanted, inside = truth(chance), np.zeros(2)
    for _ in range(80):
        p = rng.beta(4, 2, n)
        y = (rng.random(n) < chance(p)).astype(float)
        _, views = views_of(block_of([p, p], [y, y]), resamples=300, rng=rng, target=GOAL)
        own = views[0][0].paper
        found = [ece_estimate(own[view].residuals, n) for view in ("raw", "da")]
        assert all(0 <= e.low <= e.value <= e.high for e in found)
        inside += [e.low <= t <= e.high for e, t in zip(found, wanted, strict=True)]
    # 80 runs at 95 %: fewer than 70 have a probability below 1 %.
    assert (inside >= 70).all(), inside


def test_no_interval_of_a_model_leaves_its_range():
    rng = np.random.default_rng(0)
    parts = []
    for name in ("a", "b", "c"):
        p = rng.choice([0.02, 0.8, 0.98], 40)
        y = (rng.random(40) < p).astype(int)
        columns = {
            "question_id": np.arange(40),
            "model": [name] * 40,
            "confidence": p,
            "correct": y,
        }
        parts.append(pl.DataFrame(columns))
    result = cal.compare(pl.concat(parts), resamples=300)
    for entry in result["results"]:
        estimates = [entry["accuracy"], entry["mean_confidence"]]
        estimates += [one for view in entry["views"].values() for one in view.values()]
        for one in estimates:
            if one["value"] is None or one["n"] < 20:  # few questions have one outcome for all
                assert one["low"] is one["high"] is None
                continue
            assert 0 <= one["low"] <= one["value"] <= one["high"] <= 1
        # An answer was right, and one was wrong: neither 0 nor 1 is possible.
        assert entry["accuracy"]["low"] > 0
        assert entry["accuracy"]["high"] < 1
    assert any(entry["views"]["raw"]["ece"]["low"] == 0 for entry in result["results"])


def test_the_accuracy_is_that_of_an_audit():
    table = {"confidence": np.linspace(0, 1, 20), "correct": [1] + [0] * 19}
    frame = pl.DataFrame({**table, "question_id": np.arange(20)})
    both = pl.concat([frame.with_columns(model=pl.lit(name)) for name in "ab"])
    compared = cal.compare(both, resamples=100)["results"][0]["accuracy"]
    audited = cal.audit(both, resamples=50)["results"][0]["metrics"]["accuracy"]
    assert compared == pytest.approx(audited, abs=0.01)


def test_without_resamples_that_hold_rows_there_is_no_interval():
    seen = np.array([[0.1], [0.05]])
    found = ece_estimate(np.hstack([seen, np.full((2, 5), np.nan)]), 3)
    assert found.value == pytest.approx(0.15)
    assert np.isnan([found.low, found.high]).all()
    still = ece_estimate(np.zeros((3, 6)), 3)
    assert (still.value, still.low, still.high) == (0.0, 0.0, 0.0)


def test_a_gap_has_room_for_the_bias_that_two_models_do_not_share():
    """A calibrated model against an over-confident one: the plug-in errors hide a fifth of it."""
    rng = np.random.default_rng(0)
    n, wanted = 1000, truth(WORLDS["calibrated"])[0] - truth(WORLDS["over-confident"])[0]
    inside = plain = 0
    for _ in range(60):
        both = []
        for world in ("calibrated", "over-confident"):
            p = rng.beta(4, 2, n)
            both.append((p, (rng.random(n) < WORLDS[world](p)).astype(float)))
        confidence, correct = (np.stack(part) for part in zip(*both, strict=True))
        _, views = views_of(block_of(confidence, correct), resamples=200, rng=rng)
        gaps = views[0][1].paper["raw"].ece - views[1][0].paper["raw"].ece
        found = gap_of(gaps).estimate(n, level=0.95)
        inside += found.low <= wanted <= found.high
        half = 1.96 * gaps[1:].std()
        plain += abs(found.value - wanted) <= half
    assert inside >= 51
    assert plain <= 40


def test_equal_errors_leave_the_percentiles_as_they_are():
    draws = 0.05 * np.random.default_rng(0).standard_normal(4000)
    found = gap_of(np.append(0.02, 0.02 + draws - draws.mean())).estimate(100, level=0.95)
    assert found.low == pytest.approx(0.02 - 1.96 * 0.05, abs=0.005)
    assert found.high == pytest.approx(0.02 + 1.96 * 0.05, abs=0.005)
    leaning = gap_of(np.append(0.02, 0.02 + draws - draws.mean() + 0.01))
    leaning = leaning.estimate(100, level=0.95)
    assert leaning.high == pytest.approx(found.high)
    assert leaning.low == pytest.approx(found.low - 0.01 / (np.sqrt(2) - 1))
    plain, moved = gap_of(np.append(0.12, 0.12 + draws)), gap_of(np.append(0.12, 0.13 + draws))
    assert plain.student_p_value(900) < moved.student_p_value(900)
