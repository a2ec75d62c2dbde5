"""Cells, bounds and tests against the lab's scripts, on the same rows; and what they must see."""

import importlib
import math
import sys
from itertools import product

import numpy as np
import pytest
from scipy import stats

from calibrant.core.arrays import Estimate
from calibrant.findings.claims.margins import Missing, missing_entry
from calibrant.metrics.blocks.cell_error import CellError, CellRows
from calibrant.metrics.stats.cells import ValueSums, cell_table, structure_z
from calibrant.metrics.stats.clusters import ClusterSums
from calibrant.metrics.stats.error_bounds import (
    UpperBound,
    error_estimate,
    lower_end,
    planned_bound,
    shares_variance,
)
from calibrant.metrics.stats.perfect_law import (
    _largest_tail,
    cells_p_value,
    combined_p_value,
    joined_neighbours,
    mean_p_value,
    rank_p_value,
    sum_p_value,
)

NINE = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99]
KINDS = {
    "nine values": lambda rng, n: rng.choice(NINE, n),
    "continuous": lambda rng, n: rng.uniform(0.3, 1, n),
    "both": lambda rng, n: np.where(rng.random(n) < 0.5, rng.choice(NINE, n), rng.random(n)),
    "60 values": lambda rng, n: rng.choice(np.arange(40, 100) / 100, n),
    "near 1": lambda rng, n: rng.uniform(0.97, 1, n),
}
CLOSE = {"rel": 1e-9, "abs": 1e-9}


@pytest.fixture(scope="module")
def lab(shared_data):
    """The scripts of the lab, by name."""
    folder = shared_data.parent / "recipes" / "audit_claims"
    if not folder.is_dir():
        pytest.skip(f"the lab's scripts are not at {folder}")
    found = {}
    sys.path.insert(0, str(folder))
    try:
        for name in ("core", "sim_cluster", "sim_extremes", "sim_missing"):
            found[name] = importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
    # On the lab's coarse grid a bound is interpolated; here it is solved for.
    found["core"]._GRID = np.linspace(0, 1, 400_001)
    return found


def drawn(kind, n, seed=0):
    rng = np.random.default_rng([seed, n, len(kind)])
    c = KINDS[kind](rng, n)
    y = (rng.random(n) < np.clip(c - 0.03, 0, 1)).astype(float)
    value, place = np.unique(c, return_inverse=True)
    sums = ValueSums.of_rows(place, value, y, None)
    return c, y, place, sums, cell_table(sums)


@pytest.mark.data
@pytest.mark.parametrize("n", [20, 400, 3_000])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_and_bounds_are_the_lab_s(lab, kind, n):
    core = lab["core"]
    c, y, place, sums, table = drawn(kind, n)
    cell, k = core.cells(c)
    assert (table.place[place] == cell).all()
    w, gap, s, u = core.sums(c, y, cell, k)
    for mine, theirs in ((table.share, w), (table.gap, gap), (table.noise, s), (table.stray, u)):
        assert mine == pytest.approx(theirs, **CLOSE)
    extra = core.shares_variance(w, gap, n)
    assert shares_variance(table, n) == pytest.approx(extra, **CLOSE)
    assert error_estimate(table) == pytest.approx(core.bias_corrected(w, gap, s), **CLOSE)
    low = core.lower(w, gap, u, extra=extra)
    assert lower_end(table, 1.959964, extra) == pytest.approx(low, **CLOSE)
    bound = UpperBound.of(table, extra)
    assert bound.at(1.96) == pytest.approx(core.upper(w, gap, s, u, 1.96, extra), **CLOSE)
    spread = np.bincount(table.place, sums.rows * sums.value * (1 - sums.value)) / table.rows
    planned = core.planned_upper(c, cell, k, 1.96)
    assert planned_bound(table, spread).at(1.96) == pytest.approx(planned, **CLOSE)


@pytest.mark.data
@pytest.mark.parametrize("n", [20, 400, 3_000])
@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_perfect_calibration_are_the_lab_s(lab, kind, n):
    core = lab["core"]
    c, y, _, sums, table = drawn(kind, n)
    cell, k = core.cells(c)
    seen, one, tilt = sums.right - sums.rows * sums.value, np.ones(n), 1 - 2 * c
    pairs = [
        (
            sum_p_value(np.ones(seen.size), sums.value, seen.sum(), sums.rows, 1.0),
            core.saddle_p(one, c, float((y - c).sum()), step=1.0),
        ),
        (
            sum_p_value(1 - 2 * sums.value, sums.value, seen @ (1 - 2 * sums.value), sums.rows),
            core.saddle_p(tilt, c, float(((y - c) * tilt).sum())),
        ),
        (rank_p_value(sums.rows, sums.right, core.auroc_tests(c, y)[0]), core.auroc_tests(c, y)[1]),
        (combined_p_value([0.01, 1.0, math.nan]), core.cauchy([0.01, 1.0, math.nan])),
    ]
    reach = stats.t.ppf(0.9975, n - 1) * c.std(ddof=1) / math.sqrt(n)
    pairs.append((mean_p_value(c.mean(), reach, 0, n), lab["sim_extremes"].exact_gap_p(c, 0)))
    for mine, theirs in pairs:
        assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-9)
    drawn_p = core.cell_p(c, y, cell, k, np.random.default_rng(1), draws=4_999)
    assert cells_p_value(sums, table) == pytest.approx(drawn_p, abs=0.06)


@pytest.mark.data
@pytest.mark.parametrize("uneven", [False, True])
def test_clusters_are_the_lab_s(lab, uneven):
    of_lab = lab["sim_cluster"]
    c, y, place, _, table = drawn("nine values", 600)
    rng = np.random.default_rng(5)
    g = np.minimum(rng.geometric(0.3, 600) - 1, 7) if uneven else rng.integers(0, 8, 600)
    cell = table.place[place]
    clusters = ClusterSums.of(g, cell, c - y, table.gap, None)
    _, error, degrees, _ = of_lab.cluster_gap(c - y, g)
    assert (clusters.error, clusters.degrees) == pytest.approx((error, degrees), **CLOSE)
    assert clusters.gap_p_value == pytest.approx(of_lab.cluster_both(c, y, g, rng), **CLOSE)


@pytest.mark.parametrize("count", [7, 9])
def test_the_rarer_of_mean_and_cells_is_ranked_among_all_signs(count):
    rng = np.random.default_rng(count)
    c, y, place, _, table = drawn("nine values", 400)
    g = rng.integers(0, count, 400)
    cell = table.place[place]
    clusters = ClusterSums.of(g, cell, c - y, table.gap, None)
    sums = np.zeros((count, table.count))
    np.add.at(sums, (g, cell), c - y)
    flipped = np.array([np.array(signs) @ sums for signs in product((1, -1), repeat=count)])
    mean, cells = abs(flipped.sum(axis=1)), abs(flipped).sum(axis=1)
    rare = [
        min((mean >= m - 1e-9).mean(), 4 * (cells >= k - 1e-9).mean())
        for m, k in zip(mean, cells, strict=True)
    ]
    expected = np.mean([each <= rare[0] + 1e-12 for each in rare])
    assert clusters.calibration_p_value == pytest.approx(expected, **CLOSE)


@pytest.mark.data
@pytest.mark.parametrize("lost", [0.6, 0.2, 0.02])
def test_views_of_missing_confidences_are_the_lab_s(lab, lost):
    rng = np.random.default_rng(7)
    c = rng.uniform(0.5, 1, 500)
    y = (rng.random(500) < c).astype(float)
    missing = rng.random(500) < np.where(y == 1, 0.1 * lost, lost)
    views = lab["sim_missing"].views(c, y, missing)
    value, place = np.unique(c[~missing], return_inverse=True)
    found = missing_entry(
        ValueSums.of_rows(place, value, y[~missing], None),
        Estimate(*views["complete"], n=int((~missing).sum())),
        Missing(float(y[missing].sum()), float((1 - y[missing]).sum())),
    )
    fisher = lab["sim_missing"].fisher(missing, y)
    assert found["p_value"] == pytest.approx(fisher, rel=1e-6, abs=1e-12)
    likely, worst = found["reweighted"], found["worst_case"]
    assert [likely[name] for name in ("value", "low", "high")] == pytest.approx(
        views["ipw"], abs=1e-7
    )
    assert (worst["low"], worst["high"]) == pytest.approx(views["worst"][1:], abs=1e-7)


def cell_error(c, y, weights=None, clusters=None):
    value, place = np.unique(c, return_inverse=True)
    rows = CellRows.merged(place, np.asarray(y, float), weights, clusters)
    return CellError.of_rows(value, rows, (1.0, 1.0))


def test_crossed_values_are_seen_and_fifteen_bins_do_not_see_them():
    from calibrant.metrics import ece

    c = np.repeat([0.95, 1.0], 2_000)
    y = np.r_[np.ones(3_900), np.zeros(100)]
    assert ece(c, y) < 0.002
    found = cell_error(c, y)
    assert found.value == pytest.approx(0.05, abs=0.003)
    assert found.interval(0.95)[0] > 0.04
    assert found.p_calibrated < 1e-6


@pytest.mark.parametrize("decimals", [3, 9])
def test_a_structure_is_that_of_all_pairs_inside_slices(decimals):
    rng = np.random.default_rng(2)
    said = np.sort(rng.uniform(0.4, 1, 600).round(decimals))
    right = (rng.random(600) < said).astype(float)
    value, first, place = np.unique(said, return_index=True, return_inverse=True)
    sums = ValueSums.of_rows(place, value, right, None)
    table = cell_table(sums)
    cell = table.place[place]
    off = said - right - table.gap[cell]
    held = np.bincount(cell)
    variance = (np.bincount(cell, off**2) / (held - 1))[cell]
    apart = np.abs(first[place][:, None] - first[place])
    others = (cell[:, None] == cell) & ~np.eye(600, dtype=bool)
    found = []
    for size in (4, 8, 16, 32):
        if size <= held.max() / 2:
            count = np.maximum(1 - apart / size, 0) * others
            mean = -float((count * (variance / held[cell])).sum())
            spread = 2 * float((count**2 * variance * variance[:, None]).sum())
            found.append((float(off @ count @ off) - mean) / spread**0.5)
    assert len(found) == 3
    assert structure_z(sums, table) == pytest.approx(max(found), abs=0.05)


def test_teeth_inside_slices_are_a_structure():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.4, 0.95, 10_000)
    flat, toothed = rng.random((2, 10_000))
    teeth = np.where(np.floor((c - 0.4) / 0.55 * 200) % 2 == 0, 0.05, -0.05)
    assert cell_error(c, flat < c).within(0.03).smooth
    assert not cell_error(c, toothed < c + teeth).within(0.03).smooth


def test_the_bound_holds_and_the_estimate_is_not_below_the_mean_gap():
    rng = np.random.default_rng(1)
    held, values = 0, []
    for _ in range(200):
        c = rng.uniform(0.4, 1, 500)
        found = cell_error(c, rng.random(500) < c - 0.08)
        low, high = found.interval(0.95)
        held += low <= 0.08 <= high
        values.append(found.value)
    assert held >= 184
    # Cells alone take 2 points too many off.
    assert np.mean(values) == pytest.approx(0.08, abs=0.008)


def test_weights_count_as_copies_and_their_unit_says_nothing():
    rng = np.random.default_rng(2)
    c = rng.choice(NINE, 800)
    y = (rng.random(800) < c - 0.1).astype(float)
    weights = rng.integers(1, 4, 800).astype(float)
    one, thousand = cell_error(c, y, weights), cell_error(c, y, 1_000 * weights)
    assert one.value == pytest.approx(thousand.value, rel=1e-9)
    assert one.p_calibrated == pytest.approx(thousand.p_calibrated, rel=1e-6)
    copies = np.repeat(np.arange(800), weights.astype(int))
    merged = cell_error(c[copies], y[copies], None, copies)
    assert merged.value == pytest.approx(one.value, rel=1e-9)
    assert merged.interval(0.95) == pytest.approx(one.interval(0.95), rel=1e-9)


def test_topics_that_share_an_effect_are_no_miscalibration():
    rng = np.random.default_rng(3)
    found = {"rows": 0, "clusters": 0}
    for _ in range(60):
        topic = rng.integers(0, 15, 1_000)
        effect = 0.1 * rng.choice([-1, 1], 15)
        c = rng.choice([0.5, 0.6, 0.7, 0.8, 0.85], 1_000)
        y = rng.random(1_000) < c + effect[topic]
        found["rows"] += cell_error(c, y).p_gap <= 0.05
        found["clusters"] += cell_error(c, y, None, topic).p_gap <= 0.05
    assert found["rows"] > 15
    assert found["clusters"] <= 8


@pytest.mark.parametrize("kind", ["continuous", "near 1"])
def test_very_many_values_have_the_law_of_their_stretches(kind):
    rng = np.random.default_rng(4)
    value = np.unique(KINDS[kind](rng, 30_000))
    right = (rng.random(value.size) < value - 0.004).astype(float)
    rows, seen = np.ones(value.size), right - value
    joined = joined_neighbours(value, seen, rows)
    assert joined[0].size < 5_000
    for tilted in (False, True):
        tails = []
        for chance, off, times in ((value, seen, rows), joined):
            factor = 1 - 2 * chance if tilted else np.ones(chance.size)
            tails.append(sum_p_value(factor, chance, float((factor * off).sum()), times))
        assert tails[1] == pytest.approx(tails[0], rel=1e-3)


def test_what_an_upper_end_inverts_rises_with_the_error() -> None:
    # Halving finds the end only if the quotient passes a number of standard errors once.
    rng = np.random.default_rng(5)
    for _ in range(200):
        scale = 10 ** rng.uniform(-3, -0.3)
        bound = UpperBound(
            rng.uniform(0, 3) * scale,
            scale,
            (scale * rng.uniform(0.1, 2)) ** 2,
            rng.choice([0.0, 1e-4]),
        )
        at = [bound.z_below(error) for error in np.linspace(0.0, 8 * scale, 50)]
        assert np.all(np.diff(at) > -1e-9)


def test_a_bound_of_rare_sums_is_the_least_over_every_tilt() -> None:
    rng = np.random.default_rng(6)
    for cells in (1, 3, 20):
        for size in (0.5, 2.0, 6.0, 30.0):
            spread = rng.uniform(0.1, 2.0, cells)
            scale = np.sqrt((spread**2).sum())
            seen = size * scale
            tilts = np.geomspace(0.1, 40.0, 200)
            each = tilts[:, None] * (spread / scale)
            logs = (each**2 / 2 + np.log(2 * stats.norm.cdf(each))).sum(axis=1) - tilts * size
            expected = np.exp(np.clip(logs.min(), -700, 0))
            assert _largest_tail(seen, spread) == pytest.approx(expected, rel=1e-9)
