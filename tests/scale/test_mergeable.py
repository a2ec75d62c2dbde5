"""Cell sums: exact placement, exact merging, bounds that hold."""

import functools
import operator

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.data import batches
from calibrant.data.part_sums import PartSums, sum_part
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.sources.streaming import sum_plan
from calibrant.metrics import METRICS, auroc, ece, log_loss
from calibrant.metrics.blocks.cell_block import CellBlock
from calibrant.metrics.blocks.grid import (
    MOST_BLOCKS,
    CellSums,
    cell_grid,
    cell_sums,
)
from calibrant.metrics.stats.binning import edge_index, width_edges


def summed(confidence, correct, bins=15, pieces=1):
    parts = np.array_split(np.arange(len(confidence)), pieces)
    sums = (cell_sums(confidence[part], correct[part], cell_grid(bins)) for part in parts)
    return functools.reduce(operator.add, sums)


def block(confidence, correct, bins=15):
    rng = np.random.default_rng(0)
    return CellBlock(
        summed(confidence, correct, bins), cell_grid(bins), level=0.95, resamples=1000, rng=rng
    )


def world(n, power=1.3, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1.2, n)
    return confidence, (rng.random(n) < confidence**power).astype(np.int8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bins", [7, 10, 15, 20, 100])
def test_every_edge_and_its_neighbours_fall_into_the_bin_of_the_rule(bins, dtype):
    edges = width_edges(cell_grid(bins).coarse, dtype)
    values = np.unique(
        np.concatenate([edges, np.nextafter(edges, dtype(0)), np.nextafter(edges, dtype(1))])
    )
    values = values[(values >= 0) & (values <= 1)].astype(dtype)
    expected = np.empty(values.size, np.intp)
    edge_index(width_edges(bins, dtype))(values, expected, np.empty(values.size))
    # Each value a different number of times, so that no two mistakes can cancel.
    times = 1 + np.arange(values.size)
    repeated = np.repeat(values, times)
    sums = summed(repeated, np.ones(repeated.size, np.int8), bins)
    found = cell_grid(bins).by_bin(sums.rows[1], bins)
    np.testing.assert_array_equal(found, np.bincount(expected, times, bins))


def test_sums_do_not_depend_on_how_rows_are_cut_or_ordered():
    confidence, correct = world(50_000)
    order = np.random.default_rng(1).permutation(confidence.size)
    once = summed(confidence, correct)
    parts = np.array_split(order, 7)
    sums = (summed(confidence[part], correct[part], pieces=3) for part in parts)
    merged = functools.reduce(operator.add, sums)
    for name in CellSums.__struct_fields__:
        np.testing.assert_array_equal(getattr(once, name), getattr(merged, name))


def test_counts_and_positions_survive_many_rows_of_one_value():
    value = np.full(700_000, 0.123456789)
    once = summed(value, np.ones(value.size, np.int8))
    sums = functools.reduce(operator.add, [once] * 7)
    assert sums.rows.sum() == 4_900_000
    assert sums.confidence_sums(cell_grid(15)).sum() / 4_900_000 == pytest.approx(
        0.123456789, abs=2e-11
    )


def plain_sums(confidence, correct):
    """The same sums by whole numbers, row by row; no confidence lies on an edge."""
    grid = cell_grid(15)
    place = np.floor(confidence * (grid.cells << 20)).astype(np.int64)
    rows = np.zeros((2, grid.stride), np.int64)
    offsets = np.zeros_like(rows)
    np.add.at(rows, (correct, place >> 20), 1)
    np.add.at(offsets, (correct, place >> 20), place & ((1 << 20) - 1))
    return rows, offsets


@pytest.mark.parametrize("batch", [1_000, 90_000])
@pytest.mark.parametrize("values", ["continuous", "crowded"])
def test_sums_are_those_of_whole_numbers_whatever_the_batches(batch, values, tmp_path, monkeypatch):
    rng = np.random.default_rng(batch)
    size = 300_000 if batch > 1_000 else 30_000
    confidence = rng.random(size)
    if values == "crowded":
        confidence = rng.choice(np.append(rng.random(5), 1e-7), size)
    correct, models = rng.integers(0, 2, size).astype(np.int8), rng.integers(0, 3, size)
    # The parts of a file name the same texts in orders of their own.
    names = np.char.add("m", models.astype(str))
    columns = {"confidence": confidence, "correct": correct, "model": names}
    path = tmp_path / "t.parquet"
    pl.DataFrame(columns).write_parquet(path, row_group_size=batch)
    monkeypatch.setattr(batches, "BATCH_ROWS", batch)
    monkeypatch.setattr(batches, "PART_ROWS", 3 * batch)
    plan = sum_plan(str(path), ReadingOptions(), bins=15, by=()).plan
    total = PartSums()
    for part in batches.table_parts(path, plan.columns):
        total.add(sum_part(part, plan))
    assert total.rows == size
    for model in range(3):
        mine = models == model
        rows, offsets = plain_sums(confidence[mine], correct[mine])
        found = total.blocks[(f"m{model}", "confidence", "", "")]
        np.testing.assert_array_equal(found.rows, rows)
        np.testing.assert_array_equal(found.offsets, offsets)
        steep = mine & (correct == 1) & (confidence < 64 / cell_grid(15).cells)
        assert found.loss[1] == np.rint(-np.log(confidence[steep]) * 2**20).sum()


def test_round_confidences_lose_nothing():
    rng = np.random.default_rng(5)
    confidence = np.round(rng.random(20_000) * 20) / 20
    correct = (rng.random(20_000) < 0.1 + 0.8 * confidence).astype(np.int8)
    found = block(confidence, correct, bins=10)
    errors = found.errors
    assert errors["auroc"] == errors["auprc"] == errors["aurc"] == 0.0
    assert found.estimate(METRICS["auroc"]).value == pytest.approx(
        auroc(confidence, correct), abs=1e-14
    )
    assert found.estimate(METRICS["ece"]).value == pytest.approx(
        ece(confidence, correct, bins=10), abs=1e-14
    )


def test_two_values_in_one_cell_are_not_taken_for_one():
    width = 1 / cell_grid(15).cells
    confidence = np.array([0.5 + 0.2 * width, 0.5 + 0.7 * width] * 50)
    correct = np.array([0, 1] * 50)
    found = block(confidence, correct)
    assert auroc(confidence, correct) == 1.0
    assert found.estimate(METRICS["auroc"]).value == 0.5
    assert found.errors["auroc"] == 0.5


def test_nearly_certain_errors_cost_what_they_cost():
    confidence = np.array([1e-9, 1e-7, 1 - 1e-8, 0.5, 0.7, 3e-6] * 10)
    correct = np.array([1, 1, 0, 1, 0, 1] * 10)
    found = block(confidence, correct)
    assert found.estimate(METRICS["log_loss"]).value == pytest.approx(
        log_loss(confidence, correct), abs=1e-6
    )
    certain = block(np.array([0.0, 1.0, 0.5]), np.array([1, 1, 0]))
    assert certain.estimate(METRICS["log_loss"]).value == np.inf


def test_a_confidence_of_one_has_its_own_cell_and_joins_the_last_bin():
    grid = cell_grid(15)
    sums = summed(np.array([1.0, 1.0, 0.0]), np.array([1, 0, 0]))
    assert sums.rows[:, -1].tolist() == [1, 1]
    assert grid.by_bin(sums.rows.sum(axis=0), 15)[[0, -1]].tolist() == [1, 2]


def test_bins_without_a_small_common_multiple_are_refused():
    with pytest.raises(InputError, match="at most 65,536"):
        cell_grid(9973)


def test_too_many_blocks_are_refused_before_they_fill_the_memory():
    sums, total = summed(np.array([0.5]), np.array([1])), PartSums()
    for number in range(MOST_BLOCKS):
        total.add_block((str(number), "", "", ""), sums)
    total.add_block(("0", "", "", ""), sums)
    with pytest.raises(InputError, match="more than 128 blocks"):
        total.add_block(("one more", "", "", ""), sums)
