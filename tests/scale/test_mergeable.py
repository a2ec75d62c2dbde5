"""Cell sums: exact placement, exact merging, bounds that hold."""

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.metrics import METRICS, auroc, ece, log_loss
from calibrant.metrics.blocks.cell_block import CellBlock
from calibrant.metrics.stats.binning import (
    MOST_BLOCKS,
    CellSums,
    cell_grid,
    edge_index,
    width_edges,
)
from calibrant.metrics.stats.sum_table import SumTable


def summed(confidence, correct, bins=15, pieces=1):
    table = SumTable(cell_grid(bins))
    table.number(("all",))
    for part in np.array_split(np.arange(len(confidence)), pieces):
        table.add(confidence[part], correct[part], np.array([0]))
    return table.sums()[("all",)]


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
    merged = CellSums.empty(cell_grid(15))
    for part in np.array_split(order, 7):
        merged.add(summed(confidence[part], correct[part], pieces=3))
    for name in CellSums.__slots__:
        np.testing.assert_array_equal(getattr(once, name), getattr(merged, name))


def test_counts_and_positions_survive_many_more_rows_than_fit_one_packed_number():
    value = np.full(700_000, 0.123456789)
    table = SumTable(cell_grid(15))
    table.number(("all",))
    for _ in range(7):
        table.add(value, np.ones(value.size, np.int8), np.array([0]))
    sums = table.sums()[("all",)]
    assert sums.rows.sum() == 4_900_000
    assert sums.confidence_sums(cell_grid(15)).sum() / 4_900_000 == pytest.approx(
        0.123456789, abs=2e-11
    )


def plain_sums(confidence, correct, blocks, count):
    """The same sums by whole numbers, row by row; no confidence lies on an edge."""
    grid = cell_grid(15)
    place = np.floor(confidence * (grid.cells << 20)).astype(np.int64)
    rows = np.zeros((count, 2, grid.stride), np.int64)
    offsets = np.zeros_like(rows)
    where = (blocks, correct, place >> 20)
    np.add.at(rows, where, 1)
    np.add.at(offsets, where, place & ((1 << 20) - 1))
    return rows, offsets


@pytest.mark.parametrize("batch", [1_000, 90_000, 700_000])
@pytest.mark.parametrize("values", ["continuous", "crowded"])
def test_sums_are_those_of_whole_numbers_whatever_the_batches_call_their_blocks(batch, values):
    rng = np.random.default_rng(batch)
    size = 1_500_000 if batch > 1_000 else 30_000
    confidence = rng.random(size)
    if values == "crowded":
        confidence = rng.choice(np.append(rng.random(5), 1e-7), size)
    correct, blocks = rng.integers(0, 2, size).astype(np.int8), rng.integers(0, 3, size)
    table = SumTable(cell_grid(15))
    for number in range(3):
        table.number((str(number),))
    for start in range(0, size, batch):
        part = slice(start, start + batch)
        # Every batch has its own order of names, and every third also names a block twice.
        order = rng.permutation(3)
        codes = np.argsort(order)[blocks[part]]
        if start // batch % 3 == 2:
            order = np.append(order, rng.integers(0, 3))
            twice = (order[codes] == order[3]) & (rng.random(codes.size) < 0.5)
            codes = np.where(twice, 3, codes)
        table.add(confidence[part], correct[part], order, codes.astype(np.int32))
    rows, offsets = plain_sums(confidence, correct, blocks, 3)
    found = table.sums()
    for number in range(3):
        np.testing.assert_array_equal(found[(str(number),)].rows, rows[number])
        np.testing.assert_array_equal(found[(str(number),)].offsets, offsets[number])
        steep = (blocks == number) & (correct == 1) & (confidence < 64 / cell_grid(15).cells)
        assert found[(str(number),)].loss[1] == np.rint(-np.log(confidence[steep]) * 2**20).sum()


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
    table = SumTable(cell_grid(15))
    for number in range(MOST_BLOCKS):
        table.number((str(number),))
    with pytest.raises(InputError, match="more than 128 blocks"):
        table.number(("one more",))
