"""The verdict: odds-shifted views, and claims that hold in worlds with a known truth."""

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.comparison.compare import compare_models
from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.evidence import accuracy_p_value, gap_p_value
from calibrant.comparison.odds import CLIP, shift_confidence
from calibrant.core.errors import InputError
from comparison.worlds import block_of, calibrated, evidence_of, pair_of, table_of, views_of


def mass_bins(c, bins=10):
    """Equal mass, ties together, as the recipe writes it."""
    _, inverse, rows = np.unique(c, return_inverse=True, return_counts=True)
    middle = (np.cumsum(rows) - rows / 2) / c.size
    number = np.minimum((middle * bins).astype(int), bins - 1)
    return np.unique(number, return_inverse=True)[1][inverse]


def shifted_ece(c, z, target):
    """The odds-shifted error of the data, row by row."""
    a = z.mean()
    moved = c
    if target != a:
        moved = expit(logit(np.clip(c, CLIP, 1 - CLIP)) + logit(target) - logit(a))
    residual = target / a * z * (moved - 1) + (1 - target) / (1 - a) * (1 - z) * moved
    return np.abs(np.bincount(mass_bins(c), residual)).sum() / c.size


@pytest.mark.parametrize("graded", [False, True])
def test_shifted_errors_agree_with_plain_computation(graded):
    rng = np.random.default_rng(0)
    first, second = calibrated(0.0, 500, rng), calibrated(1.4, 500, rng, moved=0.7)
    if graded:
        first = first[0], rng.choice([0.0, 0.3, 1.0], 500)
    first[0][:40] = rng.choice([0.0, 1.0], 40)
    _, views = views_of(pair_of(first, second))
    accuracies = first[1].mean(), second[1].mean()
    goals = {"weakest": min, "strongest": max, "mean": np.mean}
    for m, (c, z) in enumerate((first, second)):
        for name, rule in goals.items():
            found = views[m][1 - m].odds[f"os_{name}"].error[0]
            assert found == pytest.approx(shifted_ece(c, z, rule(accuracies)), abs=1e-12)
        assert views[m][1 - m].odds["raw"].error[0] == pytest.approx(
            shifted_ece(c, z, z.mean()), abs=1e-12
        )


@pytest.mark.parametrize("lacks", [60, 400])
def test_shifted_errors_of_a_pair_are_those_of_its_own_questions(lacks):
    """Bins are those of all answers of a model; sums and accuracies those of the pair."""
    rng = np.random.default_rng(6)
    first, second = calibrated(0.0, 500, rng), calibrated(1.4, 500, rng, moved=0.7)
    block = pair_of(first, second)
    block.confidence[1, :lacks] = block.correct[1, :lacks] = np.nan
    _, views = views_of(block)
    c, z = first[0][lacks:], first[1][lacks:]
    place = mass_bins(first[0])[lacks:]
    goal, a = second[1][lacks:].mean(), z.mean()
    moved = expit(logit(np.clip(c, CLIP, 1 - CLIP)) + logit(goal) - logit(a))
    residual = goal / a * z * (moved - 1) + (1 - goal) / (1 - a) * (1 - z) * moved
    found = views[0][1].odds["os_strongest" if goal > a else "os_weakest"].error[0]
    assert found == pytest.approx(np.abs(np.bincount(place, residual)).sum() / c.size, abs=1e-12)
    raw = np.abs(np.bincount(place, c - z)).sum() / c.size
    assert views[0][1].odds["raw"].error[0] == pytest.approx(raw, abs=1e-12)


def test_resamples_are_shifted_to_their_own_accuracy():
    """The linear shift of a resample is the exact one up to 0.002."""
    rng = np.random.default_rng(1)
    first, second = calibrated(0.0, 600, rng), calibrated(1.4, 600, rng)
    block = pair_of(first, second)
    from calibrant.comparison.resampled import resample_counts

    counts = resample_counts(600, 20, 5).counts
    _, views = views_of(block, resamples=20, rng=5)
    place = mass_bins(first[0])
    for draw in range(1, 21):
        k = counts[:, draw]
        a, b = (first[1] @ k) / 600, (second[1] @ k) / 600
        goal = max(a, b)
        moved = shift_confidence(first[0], float(logit(goal) - logit(a)))
        z = first[1]
        residual = k * (goal / a * z * (moved - 1) + (1 - goal) / (1 - a) * (1 - z) * moved)
        exact = np.abs(np.bincount(place, residual)).sum() / 600
        assert views[0][1].odds["os_strongest"].error[draw] == pytest.approx(exact, abs=2e-3)


def outcomes(make, runs, n=600, resamples=100):
    found = []
    for run in range(runs):
        rng = np.random.default_rng([run, n])
        evidence = evidence_of(make(rng, n), resamples=resamples, rng=rng)
        (decision,) = decide_pairs([evidence])
        found.append((decision.outcome, decision.winner))
    return found


def test_two_calibrated_models_of_different_accuracy_are_never_told_apart():
    """The distribution-aligned view prefers the weak model here in every run."""

    def world(rng, n):
        return pair_of(calibrated(0.0, n, rng), calibrated(1.5, n, rng))

    assert all(winner == 0 for _, winner in outcomes(world, 20))
    rng = np.random.default_rng(0)
    _, views = views_of(world(rng, 2_000))
    assert views[0][1].paper["da"].ece[0] + 0.05 < views[1][0].paper["da"].ece[0]


def test_the_over_confident_model_loses_whichever_is_stronger():
    def strong_over(rng, n):
        return pair_of(calibrated(0.0, n, rng), calibrated(1.5, n, rng, moved=1.2))

    def weak_over(rng, n):
        return pair_of(calibrated(0.0, n, rng, moved=1.2), calibrated(1.5, n, rng))

    assert sum(winner == -1 for _, winner in outcomes(strong_over, 10, n=1_000)) >= 8
    assert sum(winner == 1 for _, winner in outcomes(weak_over, 10, n=1_000)) >= 8


def test_equivalence_needs_many_questions_and_a_small_difference():
    rng = np.random.default_rng(4)
    hard = rng.normal(0, 1.2, 6_000)
    close = pair_of(
        calibrated(0.0, 6_000, rng, difficulty=hard), calibrated(1.0, 6_000, rng, difficulty=hard)
    )
    (decision,) = decide_pairs([evidence_of(close, resamples=200)])
    assert decision.outcome == "equivalent"
    few = block_of(close.confidence[:, :200], close.correct[:, :200])
    (decision,) = decide_pairs([evidence_of(few, resamples=200)])
    assert decision.outcome == "undecided"


def test_opposite_views_are_said_to_depend_on_the_accuracy():
    def world(rng, n):
        return pair_of(calibrated(0.0, n, rng, moved=0.6), calibrated(3.0, n, rng, moved=1.5))

    found = [outcome for outcome, _ in outcomes(world, 6, n=3_000)]
    assert found.count("depends") >= 4


def test_many_pairs_are_corrected_together():
    rng = np.random.default_rng(5)
    pairs = [
        evidence_of(
            pair_of(calibrated(0.0, 400, rng), calibrated(1.5, 400, rng, moved=0.8)), resamples=200
        )
        for _ in range(12)
    ]
    alone = [decide_pairs([pair])[0].outcome == "better" for pair in pairs]
    together = decide_pairs(pairs)
    assert sum(d.outcome == "better" for d in together) < sum(alone)
    least = min(together, key=lambda d: d.p_adjusted)
    assert least.p_adjusted == pytest.approx(min(12 * min(p.p_value for p in pairs), 1))


def test_among_equal_models_a_false_claim_is_rare():
    """Six calibrated models of different accuracy, fifteen pairs: no run names a better one."""
    claimed = 0
    for run in range(12):
        rng = np.random.default_rng([7, run])
        models = [calibrated(odds, 250, rng) for odds in np.linspace(-0.5, 1.5, 6)]
        table = table_of([c for c, _ in models], [z for _, z in models])
        pairs = compare_models(table, resamples=100, rng=rng)["pairs"]
        claimed += any(pair["outcome"] == "shown" for pair in pairs)
    assert claimed <= 1


def test_the_old_tie_follows_the_new_verdict():
    rng = np.random.default_rng(8)
    models = [calibrated(0.0, 900, rng), calibrated(1.5, 900, rng, moved=1.5)]
    document = compare_models(
        table_of([c for c, _ in models], [z for _, z in models]), resamples=200
    )
    (pair,) = document["pairs"]
    assert pair["winner"] == "m0"
    assert pair["tie"] is False
    assert pair["verdict"].startswith("m0 is better calibrated than m1: error lower by ")
    (claim,) = [c for c in document["claims"] if c["id"] == "compare.better_calibrated"]
    assert claim["text"] == pair["verdict"]
    assert claim["low"] <= claim["value"] <= claim["high"]


def test_a_p_value_may_be_finer_than_the_number_of_resamples():
    draws = 0.3 + 0.03 * np.random.default_rng(0).standard_normal(200)
    assert 0 < gap_p_value(np.append(0.3, draws), 500) < 1e-10
    assert np.isnan(gap_p_value(np.array([0.1, np.nan, np.nan]), 500))
    assert gap_p_value(np.zeros(10), 500) == 1.0
    assert accuracy_p_value(np.zeros(10)) == 1.0
    assert accuracy_p_value(np.append(0.1, 0.1 + (draws - 0.3))) < 0.01


def test_models_with_the_same_answers_are_not_told_that_questions_would_part_them():
    rng = np.random.default_rng(9)
    said = rng.beta(4, 2, 300)
    table = pl.DataFrame(
        {
            "question_id": list(range(300)) * 2,
            "model": ["a"] * 300 + ["b"] * 300,
            "confidence": np.tile(said, 2),
            "correct": np.tile((rng.random(300) < said) * 1, 2),
        }
    )
    texts = {claim["id"]: claim["text"] for claim in cal.compare(table, resamples=200)["claims"]}
    assert "would show them equivalent within 5 points" in texts["compare.better_calibrated"]
    assert texts["compare.more_accurate"] == (
        "a and b are right on the same questions: undecided who is more often. "
        "Questions that only one of them gets right would decide."
    )


def test_of_two_models_none_can_be_left_out():
    table = {
        "question_id": list(range(60)) * 2,
        "model": ["a"] * 60 + ["b"] * 60,
        "confidence": [0.7] * 60 + [0.6, 0.8] * 30,
        "correct": [1] * 60 + [0, 1] * 30,
    }
    with pytest.raises(InputError, match="a has accuracy 1") as told:
        cal.compare(table)
    assert "leave this model out" not in str(told.value)
