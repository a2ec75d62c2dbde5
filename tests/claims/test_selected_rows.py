"""What rests on a selected part of the rows says so, and warnings are about what is asked."""

import numpy as np
import polars as pl
import pytest

import calibrant


@pytest.fixture(scope="module")
def scores():
    """Model a lost its harder half, b is whole, c was not asked about and is empty."""
    rng = np.random.default_rng(4)
    n = 1000
    hard = np.arange(n) % 2 == 1
    tables = []
    for name in "abc":
        right = (rng.random(n) < np.where(hard, 0.4, 0.8)).astype(int)
        table = pl.DataFrame(
            {
                "question_id": [f"q{i}" for i in range(n)],
                "model": name,
                "confidence": rng.uniform(0.7, 1.0, n),
                "correct": right,
            }
        )
        tables.append(table.filter(~hard) if name == "a" else table)
    tables[2] = tables[2].with_columns(confidence=pl.lit(None, pl.Float64))
    return pl.concat(tables)


def test_claims_about_half_of_the_rows_say_so(scores):
    found = calibrant.audit(scores, on_invalid="drop").to_dict()
    texts = {claim["subject"].get("model"): [] for claim in found["claims"]}
    for claim in found["claims"]:
        texts[claim["subject"].get("model")].append(claim["text"])
    assert texts["a"]
    # Once, with the first sentence about it.
    assert ["This rests on 50 % of the rows." in text for text in texts["a"]].count(True) == 1
    assert not any("This rests on" in text for text in texts["b"])


def test_a_comparison_warns_of_the_models_that_it_compares(scores):
    found = calibrant.compare(scores, models=["a", "b"], on_invalid="drop", resamples=50).to_dict()
    named = [name for warning in found["data"]["warnings"] for name in warning["subject"]["models"]]
    assert set(named) == {"a"}
    assert {entry["model"] for entry in found["data"]["models"]} == {"a", "b"}
    assert found["data"]["questions"] == 1000
