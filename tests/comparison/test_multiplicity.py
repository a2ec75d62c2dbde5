"""Many pairs at once: false claims stay rare, real differences stay found."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison import compare_models
from calibrant.comparison.multiplicity import gap_p_value
from calibrant.report import render_markdown

# Hardly any steepness: the worst-case floor would hide what the tests do.
OPTIONS = {"resamples": 200, "lipschitz": 1e-9}


def models(count, n, rng, *, worse=0.0, all_off=0.0, methods=("verb",)):
    """Models of one law on the same questions; the last one is more over-confident by `worse`."""
    rows = []
    for method in methods:
        for number in range(count):
            chance = rng.beta(4, 2, n)
            said = np.clip(chance + all_off + worse * (number == count - 1), 0, 1)
            rows.append(
                pl.DataFrame(
                    {
                        "question_id": np.arange(n),
                        "model": [f"m{number}"] * n,
                        "method": [method] * n,
                        "confidence": said,
                        "correct": (rng.random(n) < chance).astype(int),
                    }
                )
            )
    return pl.concat(rows)


def shown(pairs, view="da"):
    return [pair for pair in pairs if pair["better"][view] is not None]


def test_among_equal_models_a_false_claim_is_rare():
    rng = np.random.default_rng(0)
    alone = corrected = 0
    for _ in range(60):
        frame = models(6, 250, rng, all_off=0.15)
        pairs = compare_models(frame, rng=rng, **OPTIONS)["pairs"]
        alone += any(not pair["ties"]["da"]["ece"] for pair in pairs)
        corrected += bool(shown(pairs))
    # 60 runs at no more than 5 %: at most three are expected. 15 pairs alone mislead more often.
    assert corrected <= 5
    assert alone >= 9


def test_a_real_difference_is_found_among_many_pairs():
    rng = np.random.default_rng(1)
    pairs = compare_models(models(6, 600, rng, worse=0.2), rng=rng, **OPTIONS)["pairs"]
    found = shown(pairs)
    assert {pair["b"] for pair in found} == {"m5"}
    assert len(found) == 5
    assert all(pair["better"]["da"] == pair["a"] for pair in found)


def test_all_methods_are_one_family_and_groups_another():
    rng = np.random.default_rng(2)
    frame = models(3, 200, rng, methods=("x", "y"))
    frame = frame.with_columns(topic=pl.when(pl.col("question_id") < 100).then(1).otherwise(2))
    result = cal.compare(frame, by=["topic"], **OPTIONS)
    assert result["multiplicity"] == {
        "control": "holm",
        "alpha": 0.05,
        "whole": {"pairs": 6},
        "groups": {"pairs": 12},
    }
    whole = [pair for pair in result["pairs"] if pair["group"] is None]
    least = min(whole, key=lambda pair: pair["p_value"]["da"])
    assert least["p_adjusted"]["da"] == pytest.approx(min(6 * least["p_value"]["da"], 1))
    text = render_markdown(result.to_dict())
    assert "Holm's rule for 6 pairs of whole methods and, apart from these, 12 pairs" in text


def test_what_one_pair_alone_would_show_is_said_to_be_so():
    rng = np.random.default_rng(3)
    for _ in range(40):
        result = cal.compare(models(6, 250, rng), **OPTIONS)
        lost = [p for p in result["pairs"] if p["better"]["da"] is None]
        lost = [p for p in lost if not p["ties"]["da"]["ece"]]
        if lost:
            break
    assert "this pair alone would show it, among 15 pairs chance does as much" in lost[0]["verdict"]
    assert " better calibrated than" not in lost[0]["verdict"]
    assert "] alone |" in render_markdown(result.to_dict())


def test_a_lone_pair_is_judged_by_its_interval():
    rng = np.random.default_rng(4)
    result = cal.compare(models(2, 400, rng, worse=0.2), **OPTIONS)
    (pair,) = result["pairs"]
    assert pair["better"]["da"] == "m0"
    assert pair["p_adjusted"] == pair["p_value"]
    assert "Holm" not in render_markdown(result.to_dict())


def test_a_p_value_may_be_finer_than_the_number_of_resamples():
    draws = 0.3 + 0.03 * np.random.default_rng(0).standard_normal(200)
    assert 0 < gap_p_value(np.append(0.3, draws), 500) < 1e-10
    assert np.isnan(gap_p_value(np.array([0.1, np.nan, np.nan]), 500))
    assert gap_p_value(np.zeros(10), 500) == 1.0
