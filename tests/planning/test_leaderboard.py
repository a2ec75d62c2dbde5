"""Leaderboards: ties are ties, differences are differences."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core import InputError
from calibrant.core.document import plain
from calibrant.findings.claims.labels import leaderboard_claims
from calibrant.findings.documents.fields import typed
from calibrant.labels import leaderboard


def models(rates, n=800, seed=0):
    rng = np.random.default_rng(seed)
    hard = rng.random(n)
    p = rng.uniform(0.5, 1.0, n)
    return {name: (p, (hard < rate).astype(float)) for name, rate in rates.items()}


def test_equal_models_are_not_told_apart():
    wrong = 0
    for seed in range(100, 160):
        rng = np.random.default_rng(seed)
        p = np.full(300, 0.7)
        tables = {name: (p, (rng.random(300) < 0.7).astype(float)) for name in "abcde"}
        wrong += len(leaderboard(tables, seed=seed, resamples=200)["groups"]) > 1
    assert wrong <= 9  # nominal 5 % of 60 for all pairs together


@pytest.mark.parametrize("metric", ["accuracy", "brier", "ece"])
def test_clear_differences_are_ranked(metric):
    found = leaderboard(models({"worse": 0.55, "best": 0.9, "middle": 0.72}), metric=metric)
    first = [entry["model"] for entry in found["results"]]
    assert set(first) == {"best", "middle", "worse"}
    assert len(found["groups"]) == 3 if metric != "ece" else len(found["groups"]) >= 2
    for entry in found["results"]:
        assert entry["rank_low"] <= entry["rank"] <= entry["rank_high"]
    assert found["instability"]["best_changes"] < 0.2


@pytest.mark.parametrize("part", range(3))
def test_calibration_errors_lie_between_0_and_1_and_hold(part):
    """Calibrated, far off, always sure: the interval is the audit's, and no pair is made up."""
    missed = wrong = 0
    for seed in range(20 * part, 20 * part + 20):
        rng = np.random.default_rng(seed)
        spread, sure = rng.beta(2, 2, 150), np.full(150, 1.0)
        tables = {
            "spread": (spread, (rng.random(150) < spread).astype(float)),
            "two values": (np.repeat([0.7, 0.9], 75), (rng.random(150) < 0.8).astype(float)),
            "never right": (sure, np.zeros(150)),
        }
        truth = {"spread": 0.0, "two values": 0.1, "never right": 1.0}
        found = leaderboard(tables, metric="ece", resamples=200, seed=seed)
        for entry in found["results"]:
            ece = entry["ece"]
            assert 0 <= ece.low <= ece.value <= ece.high <= 1
            missed += not ece.low - 1e-9 <= truth[entry["model"]] <= ece.high + 1e-9
        for pair in found["pairs"]:
            assert -1 <= pair["gap"].low <= pair["gap"].value <= pair["gap"].high <= 1
            wrong += not pair["tie"] and truth[pair["a"]] >= truth[pair["b"]]
    assert missed <= 5  # 5 % of 40 are 2; the third model cannot be missed
    assert wrong <= 2


@pytest.mark.parametrize("part", range(2))
def test_calibrated_models_of_different_spread_are_ties(part):
    """The ECE of few questions is noise, and more of it where confidences spread."""
    apart = 0
    for seed in range(20 * part, 20 * part + 20):
        rng = np.random.default_rng(seed)
        tables = {}
        for name, (a, b) in {"near 1": (40, 1), "spread": (2, 2)}.items():
            p = rng.beta(a, b, 300)
            tables[name] = (p, (rng.random(300) < p).astype(float))
        found = leaderboard(tables, metric="ece", resamples=200, seed=seed)
        apart += not found["pairs"][0]["tie"]
    assert apart <= 3


def test_a_leader_is_named_only_where_it_is_shown():
    clear = leaderboard_claims(typed(plain(leaderboard(models({"a": 0.9, "b": 0.7, "c": 0.5})))))
    assert [claim.outcome for claim in clear] == ["shown", "shown"]
    assert clear[0].text.startswith("a leads by accuracy, ahead of all 2 others: b is 22 points")
    assert clear[1].text == "All 3 pairs of models are shown to differ in accuracy."
    close = leaderboard_claims(typed(plain(leaderboard(models({"a": 0.7, "b": 0.7, "c": 0.5})))))
    assert [claim.outcome for claim in close] == ["undecided", "shown"]
    assert "do not show a and b to differ" in close[0].text


def test_instability_is_larger_for_closer_models():
    close = leaderboard(models({"a": 0.70, "b": 0.705, "c": 0.71}, n=300))["instability"]
    apart = leaderboard(models({"a": 0.5, "b": 0.7, "c": 0.9}, n=300))["instability"]
    assert apart["any_change"] < close["any_change"]
    assert apart["pairs_flipped"] <= close["pairs_flipped"]


def test_pairing_makes_use_of_common_questions():
    """A model that is right wherever another is, and more, is better even by a little."""
    found = leaderboard(models({"a": 0.70, "b": 0.73}, n=2000))
    assert not found["pairs"][0]["tie"]


@pytest.mark.parametrize("metric", ["accuracy", "brier", "ece"])
def test_differences_are_those_of_a_comparison(metric):
    """Also where some answers have no confidence, and some models lack questions."""
    rng = np.random.default_rng(3)
    n, parts = 300, []
    for name, rate in {"a": 0.9, "b": 0.75, "c": 0.6}.items():
        said = np.clip(rng.normal(rate, 0.1, n), 0.01, 0.99)
        said[rng.random(n) < 0.04] = np.nan
        right = (rng.random(n) < rate).astype(float)
        part = pl.DataFrame(
            {"question_id": np.arange(n), "model": name, "confidence": said, "correct": right}
        )
        parts.append(
            part.with_columns(pl.col("confidence").fill_nan(None)).head(n - 5 * len(parts))
        )
    table = pl.concat(parts)
    board = cal.plan(table, rank=metric, seed=4)["leaderboard"]
    compared = {(pair["a"], pair["b"]): pair for pair in cal.compare(table, seed=4)["pairs"]}
    for pair in board["pairs"]:
        turned = (pair["a"], pair["b"]) not in compared
        other = compared[(pair["b"], pair["a"]) if turned else (pair["a"], pair["b"])]
        told = other["accuracy_gap"] if metric == "accuracy" else other["gaps"]["raw"][metric]
        ends = [-told["high"], -told["low"]] if turned else [told["low"], told["high"]]
        assert [pair["gap"]["low"], pair["gap"]["high"]] == pytest.approx(ends)
        assert pair["gap"]["n"] == told["n"]
    if metric == "accuracy":
        own = dict(table.group_by("model").agg(pl.col("correct").mean()).iter_rows())
        assert {e["model"]: e["accuracy"]["value"] for e in board["results"]} == pytest.approx(own)


def test_bad_input_is_refused():
    with pytest.raises(InputError):
        leaderboard(models({"a": 0.5}))
    with pytest.raises(InputError):
        leaderboard(models({"a": 0.5, "b": 0.6}), metric="beauty")
    uneven = models({"a": 0.5}) | models({"b": 0.6}, n=10)
    with pytest.raises(InputError):
        leaderboard(uneven)


def test_leaderboard_of_mmlu_pro(shared_data):
    frame = pl.read_parquet(shared_data / "scores" / "mmlu_pro_16_models.parquet")
    frame = frame.sort("question_id")
    tables = {
        str(name): (part["logit_perplexity_confidence"].to_numpy(), part["correct"].to_numpy())
        for (name,), part in frame.group_by("model", maintain_order=True)
    }
    found = leaderboard(tables, resamples=100)
    assert len(found["results"]) == 16
    assert 10 <= len(found["groups"]) <= 16
    assert found["results"][0]["model"] == "Qwen3-14B-think"
    assert found["results"][-1]["model"] == "phi-4"
    assert any(pair["tie"] for pair in found["pairs"])
