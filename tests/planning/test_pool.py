"""Labelling a pool: designs, running estimate, stopping."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulations.planning import pool_coverage

from calibrant.core import InputError
from calibrant.core.errors import UnavailableError
from calibrant.planning import (
    DESIGNS,
    LabelPool,
    SequentialAudit,
    choose_batch,
    pool_estimate,
    stop_decision,
)
from calibrant.planning.peers import peer_agreement


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


def test_full_labels_give_the_plain_ece():
    pool, y = pool_with(3000, 3000)
    cell = np.minimum((pool.confidence * 15).astype(int), 14)
    plain = np.abs(np.bincount(cell, weights=y - pool.confidence)).sum() / 3000
    estimate = pool_estimate(pool)
    assert estimate.ece.value == pytest.approx(plain)
    assert estimate.ece.high - estimate.ece.low < 1e-9
    assert estimate.accuracy.value == pytest.approx(y.mean())


def test_intervals_of_the_running_estimate_cover():
    for key, covered in pool_coverage(60, budgets=(150,)).items():
        assert covered >= 0.85, key  # 60 runs at a nominal 95 %


def test_bias_correction_matters_for_a_calibrated_model():
    plain, corrected = [], []
    for seed in range(40):
        pool, _ = pool_with(4000, 200, seed, shift=0.0)
        lab = pool.labelled
        cell = np.minimum((pool.confidence[lab] * 15).astype(int), 14)
        residual = pool.correct[lab] - pool.confidence[lab]
        plain.append(np.abs(np.bincount(cell, weights=residual)).sum() / 200)
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


def test_looks_make_the_stopping_interval_wider():
    pool, _ = pool_with(3000, 300)
    widths = [stop_decision(pool, look=k, precision=0.01)["half_width"] for k in (1, 2, 5)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    assert not stop_decision(pool, precision=0.001)["stop"]
    assert stop_decision(pool, precision=0.5)["stop"]
    assert stop_decision(pool, threshold=0.9)["reason"] == "the ECE lies below 0.9"
    assert stop_decision(pool_with(50, 50)[0])["stop"]
    with pytest.raises(InputError):
        stop_decision(pool, look=0)


def test_no_labels_no_estimate():
    with pytest.raises(UnavailableError, match="without labels"):
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
