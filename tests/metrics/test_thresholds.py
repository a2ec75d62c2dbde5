"""Counts at thresholds: exact for rows, weights, grades, questions of many rows and cells."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.metrics.blocks.row_block import RowBlock
from calibrant.metrics.selective import short_threshold

ROWS = 3_000


def rows(seed=0, *, ties=False):
    rng = np.random.default_rng(seed)
    said = rng.beta(4, 1, ROWS)
    said = said.round(1) if ties else said
    return said, (rng.random(ROWS) < 0.9 * said).astype(float)


def block(said, right, weights=None, units=None):
    return RowBlock(
        said, right, weights, units,
        probability=True, bins=15, level=0.95, resamples=20, rng=np.random.default_rng(0),
    )  # fmt: skip


@pytest.mark.parametrize("ties", [False, True])
def test_counts_are_those_of_the_rows(ties):
    said, right = rows(ties=ties)
    found = cal.audit(said, right, resamples=20)["results"][0]["thresholds"]
    if ties:
        assert found["threshold"] == sorted(set(said.tolist()), reverse=True)
    for threshold, n, wrong in zip(found["threshold"], found["n"], found["wrong"], strict=True):
        kept = said >= threshold
        assert (n, wrong) == (kept.sum(), (kept & (right == 0)).sum())
    assert found["n"][-1] == ROWS
    assert len(found["n"]) <= 201
    # Neither a percent of the rows nor a hundredth of the scale is passed over.
    assert np.diff(found["n"]).max() <= ROWS / 100 + ties * ROWS


def test_weights_and_questions_of_many_rows_widen_the_interval():
    said, right = rows()
    rng = np.random.default_rng(1)
    weights, units = rng.lognormal(0, 1, ROWS), np.repeat(np.arange(ROWS // 10), 10)
    said, right = np.repeat(said[::10], 10), np.repeat(right[::10], 10)
    plain = block(said, right).threshold_counts()
    grouped = block(said, right, weights, units).threshold_counts()
    for place in range(0, len(grouped.threshold), 40):
        kept = said >= grouped.threshold[place]
        error = np.average(1 - right[kept], weights=weights[kept])
        assert grouped.wrong[place] / grouped.n[place] == pytest.approx(error)
        # The variance between questions, by its definition.
        pull = np.bincount(units[kept], weights[kept] * ((1 - right[kept]) - error))
        pull, many = pull[np.unique(units[kept])], np.unique(units[kept]).size
        variance = (pull**2).sum() * many / (many - 1) / weights[kept].sum() ** 2
        reach = (grouped.high[place] - grouped.low[place]) / 2
        if many > 100:
            assert reach == pytest.approx(1.96 * np.sqrt(variance), rel=0.1)
    assert (grouped.high - grouped.low).mean() > 2.5 * (plain.high - plain.low).mean()


@pytest.mark.parametrize("tables", [60, 200])
def test_the_interval_covers_the_truth_of_questions_with_many_rows(tables):
    missed = tried = 0
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        units = np.repeat(np.arange(60), 5)
        said, hard = rng.random(300).round(2), np.repeat(rng.beta(2, 2, 60), 5)
        found = block(said, (rng.random(300) < hard).astype(float), None, units).threshold_counts()
        place = int(np.searchsorted(-found.threshold, -0.5))
        missed += not found.low[place] <= 0.5 <= found.high[place]
        tried += 1
    assert missed / tried <= 0.09


def test_grades_count_as_shares():
    said = np.array([0.9, 0.9, 0.4, 0.1])
    found = block(said, np.array([1.0, 0.5, 0.25, 0.0])).threshold_counts().to_dict()
    assert found["threshold"] == [0.9, 0.4, 0.1]
    assert found["n"] == [2, 3, 4]
    assert found["wrong"] == pytest.approx([0.5, 1.25, 2.25])


def test_cells_count_what_rows_count(tmp_path):
    said, right = rows()
    frame = pl.DataFrame({"confidence": said, "correct": right.astype(int)})
    frame.write_parquet(tmp_path / "scores.parquet")
    found = cal.audit(tmp_path / "scores.parquet", engine="local", resamples=20)
    assert found["reading"]["way"] != "in memory"
    counts = found["results"][0]["thresholds"]
    for threshold, n, wrong in zip(counts["threshold"], counts["n"], counts["wrong"], strict=True):
        kept = said >= threshold
        assert (n, wrong) == (kept.sum(), (kept & (right == 0)).sum())


@pytest.mark.parametrize("place", range(50))
def test_a_short_threshold_keeps_the_same_rows(place):
    rng = np.random.default_rng(place)
    above, at = sorted(rng.random(2) ** rng.integers(1, 9))
    short = short_threshold(above, at)
    assert above < short <= at
    assert len(repr(short)) <= len(repr(at))
