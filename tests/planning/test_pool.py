"""Labelling a pool: designs, running estimate, stopping."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulations._planning_labels import Loop, design_coverage, ever_missed, judged, outcome_rate

from calibrant.core import InputError
from calibrant.core.errors import UnavailableError
from calibrant.labels import (
    DESIGNS,
    LabelDraws,
    LabelPool,
    SequentialAudit,
    Wave,
    choose_batch,
    claim_for_labels,
    design_weights,
    draw_wave,
    labels_for_claim,
    pool_estimate,
    stop_decision,
)
from calibrant.labels.labelling.pools import peer_agreement
from calibrant.labels.labelling.stopping import claim_bounds


def pool_with(n, labelled, seed=0, shift=0.1):
    rng = np.random.default_rng(seed)
    p = rng.beta(6, 1, n)
    y = (rng.random(n) < np.clip(p - shift, 0, 1)).astype(float)
    known = np.full(n, np.nan)
    chosen = rng.choice(n, labelled, replace=False)
    known[chosen] = y[chosen]
    return LabelPool(p, known), y


@pytest.mark.parametrize("design", list(DESIGNS))
@settings(max_examples=25, deadline=None)
@given(st.integers(2, 300), st.floats(0, 1), st.integers(1, 400), st.integers(0, 99))
def test_a_batch_holds_open_items_once(design, n, share, size, seed):
    pool, _ = pool_with(n, int(share * n), seed)
    batch = choose_batch(pool, size, design=design, rng=seed)
    assert len(batch) == min(size, int((~pool.labelled).sum()))
    assert len(set(batch.tolist())) == len(batch)
    assert not pool.labelled[batch].any()
    assert (batch == choose_batch(pool, size, design=design, rng=seed)).all()


def test_stratified_batch_is_spread_along_the_confidence():
    pool, _ = pool_with(10_000, 0)
    chosen = np.sort(pool.confidence[choose_batch(pool, 100)])
    slices = np.quantile(pool.confidence, np.linspace(0, 1, 101))
    counts = np.histogram(chosen, slices)[0]
    assert counts.max() <= 2
    assert (counts == 1).mean() > 0.95


def test_full_labels_give_the_plain_error_over_cells():
    pool, y = pool_with(3000, 3000)
    plain = np.abs(np.bincount(pool.cell, weights=y - pool.confidence)).sum() / 3000
    estimate = pool_estimate(pool)
    assert estimate.ece.value == pytest.approx(plain)
    assert estimate.ece.high - estimate.ece.low < 1e-9
    assert estimate.accuracy.value == pytest.approx(y.mean())


def test_intervals_cover_whatever_the_design_and_the_judge():
    found = design_coverage(60, worlds=("over-confident",), judges=("none", "90 %", "biased"))
    for key, row in found.items():
        # 60 runs at a nominal 95 %: fewer than 50 have probability 0.03 %
        assert min(row[:-1]) >= 50 / 60, key
    gap = np.mean([row[0] for row in found.values()])
    assert 0.92 <= gap <= 0.98


def test_chances_are_kept_and_undone():
    rng = np.random.default_rng(5)
    pool, y = pool_with(3000, 0, 5)
    drawn = np.zeros(3000)
    side = judged("90 %", y, rng)
    for seed in range(300):
        loop = Loop(pool.confidence, y, side, "pps", np.random.default_rng(seed))
        loop.draw(60)
        loop.label(60)
        wave = draw_wave(loop.pool(), 40, design="pps", rng=seed)
        assert wave.pi.min() > 0
        assert wave.pi.max() <= 1
        drawn[wave.index] += 1 / wave.pi
    # Weighted by their chances, the draws stand for all items, right and wrong ones alike.
    assert drawn.sum() / 300 == pytest.approx(2940, rel=0.03)
    assert (drawn * y).sum() / 300 / y.sum() == pytest.approx(0.98, rel=0.05)


def test_weights_of_waves_add_up_to_the_pool():
    wave = np.array([1] * 10 + [2] * 5 + [3] * 5 + [0] * 80)
    pi = np.r_[np.full(10, 0.1), np.full(5, 5 / 90), np.full(5, 0.05), np.zeros(80)]
    waves = (Wave(10, 100), Wave(5, 90), Wave(5, 85, uniform=False))
    weight = design_weights(LabelDraws(wave, pi, waves, (10, 5, 5)))
    assert weight[:15].tolist() == pytest.approx([15 / 20 * 100 / 15 + 5 / 20] * 15)
    assert weight[15:20].tolist() == pytest.approx([5 / 20 / 0.05] * 5)
    assert weight[20:].sum() == 0
    # A wave that came back in part stands for all of itself.
    half = design_weights(LabelDraws(wave, pi, waves, (5, 5, 5)))
    assert half[0] == pytest.approx(15 / 10 * (10 / 15 * 100 / 15 + 5 / 15))


def test_a_label_that_nobody_drew_is_refused():
    draws = LabelDraws(np.zeros(50, dtype=np.intp), np.zeros(50), (Wave(5, 50),), (5,))
    with pytest.raises(InputError, match="never drawn"):
        pool_estimate(LabelPool(np.full(50, 0.5), np.zeros(50), None, 15, draws))


def test_bounds_hold_at_all_times_with_partial_returns():
    rng = np.random.default_rng(1)
    p = rng.beta(6, 1, 2500)
    y = (rng.random(2500) < outcome_rate("calibrated", p)).astype(float)
    pools = {
        "calibrated": (p, y, None, "stratified"),
        "judge": (p, y, judged("90 %", y, rng), "pps"),
    }
    for name, (high, low) in ever_missed(pools, 40, labels=300, step=15).items():
        assert high <= 6 / 40, name
        assert low <= 6 / 40, name


def test_a_plan_keeps_its_word():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.5, 1.0, 4000)
    plan = labels_for_claim(p, 0.08)
    shown = 0
    for _ in range(60):
        y = (rng.random(p.size) < p).astype(float)
        loop = Loop(p, y, None, "stratified", rng)
        loop.draw(plan.one_look)
        loop.label(plan.one_look)
        shown += pool_estimate(loop.pool()).ece_upper < 0.08
    assert 0.62 <= shown / 60 <= 0.95  # planned for 80 %
    assert claim_for_labels(p, plan.one_look) == pytest.approx(0.08, abs=0.004)
    half = labels_for_claim(p, 0.08, true_error=0.04)
    assert half.one_look > 1.5 * plan.one_look
    assert labels_for_claim(p[:100], 0.01).one_look is None


def test_bias_correction_matters_for_a_calibrated_model():
    plain, corrected = [], []
    for seed in range(40):
        pool, _ = pool_with(4000, 200, seed, shift=0.0)
        lab = pool.labelled
        residual = pool.correct[lab] - pool.confidence[lab]
        plain.append(np.abs(np.bincount(pool.cell[lab], weights=residual)).sum() / 200)
        corrected.append(pool_estimate(pool).ece.value)
    assert np.mean(corrected) < 0.8 * np.mean(plain)


def test_side_information_takes_noise_out():
    errors = {True: [], False: []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        pool, y = pool_with(4000, 0, seed)
        judge = np.where(rng.random(4000) < 0.9, y, 1 - y)[:, None]
        for used in errors:
            known = np.full(4000, np.nan)
            start = LabelPool(pool.confidence, known, judge if used else None)
            chosen = choose_batch(start, 200, rng=seed)
            known[chosen] = y[chosen]
            found = pool_estimate(LabelPool(pool.confidence, known, judge if used else None))
            errors[used].append(found.accuracy.value - y.mean())
    assert np.std(errors[True]) < 0.75 * np.std(errors[False])


def test_bins_without_labels_widen_the_interval():
    pool, _ = pool_with(2000, 0)
    known = pool.correct.copy()
    top = np.flatnonzero(pool.confidence > 0.9)[:50]
    known[top] = 1.0
    estimate = pool_estimate(LabelPool(pool.confidence, known))
    assert estimate.unseen > 0.3
    assert estimate.ece.high > 0.3


def test_stopping_says_why():
    pool, _ = pool_with(3000, 300)
    assert not stop_decision(pool, precision=0.001)["stop"]
    assert stop_decision(pool, precision=0.5)["stop"]
    assert (
        stop_decision(pool, threshold=0.9)["reason"] == "the calibration error is below 90 points"
    )
    assert stop_decision(pool_with(50, 50)[0])["stop"]
    # However narrow, a handful of labels is no reason to stop.
    assert not stop_decision(pool_with(3000, 40)[0], precision=0.5)["stop"]
    assert stop_decision(pool_with(3000, 40)[0], threshold=0.9)["bounds"].high == 1.0
    with pytest.raises(InputError):
        stop_decision(pool, precision=0.0)


def test_no_labels_no_estimate():
    with pytest.raises(UnavailableError, match="no row has a label"):
        pool_estimate(pool_with(20, 0)[0])


def test_unknown_design_has_a_hint():
    with pytest.raises(InputError, match="stratified"):
        choose_batch(pool_with(20, 0)[0], 3, design="stratifed")


def test_peer_agreement_counts_other_models():
    frame = pl.DataFrame(
        {
            "question_id": ["1", "1", "1", "2", "2", "3"],
            "model": ["a", "b", "c", "a", "b", "a"],
            "answer": ["X", " x", None, "1", "2", "solo"],
        }
    )
    assert peer_agreement(frame).to_list() == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    with pytest.raises(UnavailableError):
        peer_agreement(frame.drop("answer"))


def test_sequential_audit_stops_and_is_right():
    rng = np.random.default_rng(0)
    wrong = 0
    stops = []
    for _ in range(30):
        p = rng.beta(6, 1, 6000)
        audit = SequentialAudit(threshold=0.05)
        state = audit.update(p, rng.random(6000) < np.clip(p - 0.15, 0, 1))
        wrong += state["verdict"] != "above"
        stops.append(audit.stopped_at)
    assert wrong <= 2
    assert np.median(stops) < 3000
    with pytest.raises(InputError):
        SequentialAudit()


def test_few_wrong_answers_do_not_make_a_bound_too_low():
    """Of 50 answers none is wrong, and a share of 5 % wrong would show that in 8 % of pools."""
    rng = np.random.default_rng(0)
    p = rng.beta(60, 1, 1500)
    known = np.where(np.arange(1500) < 50, 1.0, np.nan)
    low, high = claim_bounds(LabelPool(p, known), budget=400)
    assert low == 0.0
    assert high > 0.3
    assert pool_estimate(LabelPool(p, known)).ece_upper > 0.03
