"""All pairs of a document: families, the order of importance, words where there are many."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.reversal import pair_kind, rates_by

OPTIONS = {"resamples": 200}


def models(count, n, rng, *, worse=0.0, methods=("verb",)):
    """Models of one law on the same questions; the last one is more over-confident by `worse`."""
    rows = []
    for method in methods:
        for number in range(count):
            chance = rng.beta(4, 2, n)
            said = np.clip(chance + worse * (number == count - 1), 0, 1)
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


def test_a_real_difference_is_found_among_many_pairs_and_stands_first():
    rng = np.random.default_rng(1)
    document = cal.compare(models(6, 600, rng, worse=0.25), **OPTIONS)
    found = [pair for pair in document["pairs"] if pair["verdict"] == "better"]
    assert {pair["b"] for pair in found} == {"m5"}
    assert len(found) == 5
    assert all(pair["winner"] == pair["a"] for pair in found)
    assert document["pairs"][:5] == found
    sizes = [pair["evidence"]["footings"]["raw"]["gap"]["value"] for pair in found]
    assert sizes == sorted(sizes)
    matrix = document["league"][0]["win_matrix"]
    row = matrix["table"][matrix["models"].index("m5")]
    assert row.count("worse") == 5


def test_all_methods_are_one_family_and_groups_another():
    rng = np.random.default_rng(2)
    frame = models(3, 200, rng, methods=("x", "y"))
    frame = frame.with_columns(topic=pl.when(pl.col("question_id") < 100).then(1).otherwise(2))
    result = cal.compare(frame, by=["topic"], **OPTIONS)
    assert result["multiplicity"] == {
        "control": "holm",
        "alpha": 0.02,
        "whole": {"pairs": 6},
        "groups": {"pairs": 12},
    }
    whole = [pair for pair in result["pairs"] if pair["group"] is None]
    least = min(whole, key=lambda pair: pair["p_value"]["da"])
    assert least["p_adjusted"]["da"] == pytest.approx(min(6 * least["p_value"]["da"], 1))
    best = min(whole, key=lambda pair: pair["p_verdict"])
    assert best["p_verdict_adjusted"] == pytest.approx(min(6 * best["p_verdict"], 1))
    summary = next(s for s in result["summaries"] if s["keys"] == {"method": "x", "group": None})
    assert [row["group"] for row in summary["summary"]["by_group"]] == [
        {"topic": "1"},
        {"topic": "2"},
    ]


def test_every_estimate_says_how_many_questions_it_rests_on():
    rng = np.random.default_rng(3)
    frame = models(3, 300, rng).filter((pl.col("model") != "m1") | (pl.col("question_id") < 200))
    result = cal.compare(frame, **OPTIONS)
    sizes = {(p["a"], p["b"]): p for p in result["pairs"]}
    assert sizes["m0", "m1"]["n"] == sizes["m0", "m1"]["gaps"]["raw"]["ece"]["n"] == 200
    assert sizes["m0", "m2"]["n"] == 300
    for pair in result["pairs"]:
        shared = pair["gaps"]["ia"]["ece"]["n"]
        assert shared == round(pair["retention"] * pair["n"])
        halves = pair["shared"]
        assert halves["both_right"]["n"] + halves["both_wrong"]["n"] == shared
        assert sum(halves["both_wrong"]["histogram_a"]) == halves["both_wrong"]["n"]
        assert len(pair["exchangeability"]) == 4
    missing = {row["model"]: row["missing"] for row in result["data"]["missing"]}
    assert missing == {"m0": 0, "m1": 100, "m2": 0}


def test_missing_questions_that_are_harder_are_told_first():
    rng = np.random.default_rng(4)
    frame = models(3, 800, rng)
    right = frame.group_by("question_id").agg(pl.col("correct").sum().alias("right"))
    hard = frame.join(right, on="question_id").filter(
        ~((pl.col("model") == "m2") & (pl.col("right") < 2))
    )
    result = cal.compare(hard.drop("right"), **OPTIONS)
    first = result["claims"][0]
    assert (first["id"], first["outcome"]) == ("compare.missing_related", "shown")
    assert "without a confidence of m2 are harder" in first["text"]


def test_exchangeability_is_the_distance_of_scipy():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(5)
    frame = models(2, 500, rng)
    entry = cal.compare(frame, **OPTIONS)["pairs"][0]["exchangeability"][0]
    a, b = (frame.filter(pl.col("model") == name) for name in ("m0", "m1"))
    c, z = a["confidence"].to_numpy(), a["correct"].to_numpy()
    shared = (z == 1) & (b["correct"].to_numpy() == 1)
    alone = (z == 1) & ~shared
    assert (entry["shared"], entry["alone"]) == (shared.sum(), alone.sum())
    assert entry["distance"] == pytest.approx(
        ks_2samp(c[shared], c[alone], method="asymp").statistic, abs=0.01
    )


@pytest.mark.parametrize(
    ("pair", "kind"),
    [
        (("Qwen3-8B", "Qwen3-8B-think"), "think"),
        (("Qwen3-0.6B-think", "Qwen3-14B-think"), "size"),
        (("Meta-Llama-3.1-8B-Instruct-Turbo", "Meta-Llama-3.1-405B-Instruct-Turbo"), "size"),
        (("gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"), "size"),
        (("Qwen3-8B", "Qwen3-14B-think"), "family"),
        (("gpt-4o", "Qwen3-8B"), "other"),
    ],
)
def test_kinds_of_pairs_are_read_from_names(pair, kind):
    assert pair_kind(*pair) == kind == pair_kind(*pair[::-1])


def test_rates_by_kind_count_every_case():
    rows = rates_by(
        ["size", "think", "size"], {"raw": [1, 1, 1], "da": [-1, 1, 1], "ia": [1, 1, 1]}
    )
    assert [(row["kind"], row["cases"]) for row in rows] == [("size", 2), ("think", 1)]
    assert rows[0]["da"].value == pytest.approx(0.5)
