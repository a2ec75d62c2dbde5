"""Rows of weight 0 are not there; unequal weights are used, or it is said that they are not."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal

RNG = np.random.default_rng(5)
ROWS = 200
TABLE = pl.DataFrame(
    {
        "question_id": np.arange(ROWS) // 2,
        "model": ["a", "b"] * (ROWS // 2),
        "topic": ["u"] * 100 + ["v"] * 100,
        "confidence": RNG.uniform(0.2, 1, ROWS).round(2),
        "correct": RNG.integers(0, 2, ROWS),
    }
)


def weighted(weights):
    return TABLE.with_columns(weights=pl.Series(np.asarray(weights, dtype=float)))


def entries(document):
    return {(found["model"], str(found["group"])): found for found in document["results"]}


@pytest.mark.parametrize("recalibrate", [None, "platt", "isotonic"])
def test_a_row_of_weight_0_is_a_row_left_out(recalibrate):
    weights = np.where(np.arange(ROWS) < 120, 1 + RNG.random(ROWS), 0.0)
    options = {"recalibrate": recalibrate, "resamples": 50}
    full = cal.audit(weighted(weights), **options)
    short = cal.audit(weighted(weights).head(120), **options)
    assert full["results"] == short["results"]
    assert full["data"]["rows"] == 120
    assert full["data"]["rows_read"] == ROWS
    assert [found["text"] for found in full["data"]["warnings"]] == [
        "80 rows have weight 0 and are left out."
    ]


def test_a_mask_of_zeros_and_ones_is_the_same_for_every_verb():
    masked = weighted(np.where(np.arange(ROWS) < 120, 1.0, 0.0))
    one, other = cal.compare(masked), cal.compare(TABLE.head(120))
    assert one["pairs"] == other["pairs"]
    assert one["results"] == other["results"]


def test_a_model_or_group_that_weighs_nothing_does_not_stop_the_others():
    of_a = cal.audit(weighted(TABLE["model"] == "a"), resamples=50)
    assert list(entries(of_a)) == [("a", "None")]
    assert of_a["emptied_models"] == ["b"]
    assert of_a["data"]["warnings"][0]["text"] == "b has no usable row: nothing is said about it."
    of_u = cal.audit(weighted(TABLE["topic"] == "u"), by=["topic"], resamples=50)
    assert {found["group"]["topic"] for found in of_u["results"] if found["group"]} == {"u"}


def test_a_table_without_weights_beside_one_with_them():
    """The rows of the first had a weight of NaN, and the audit ended there."""
    one = weighted(RNG.random(ROWS)).filter(pl.col("model") == "a")
    other = TABLE.filter(pl.col("model") == "b")
    both = entries(cal.audit([one, other], resamples=50))
    alone = entries(cal.audit(other, resamples=50))
    assert both["b", "None"]["metrics"]["ece"]["value"] == pytest.approx(
        alone["b", "None"]["metrics"]["ece"]["value"]
    )
    assert "effective_n" in both["a", "None"]
    assert "effective_n" not in both["b", "None"]


def test_recalibration_is_for_the_rows_as_they_are_weighed():
    """Heavy rows are mostly wrong: a map of unweighted rows says 50 % where 14 % are right."""
    rows = 2_000
    rng = np.random.default_rng(0)
    correct = rng.integers(0, 2, rows)
    table = {
        "confidence": rng.uniform(0.4, 0.9, rows),
        "correct": correct,
        "weights": np.where(correct == 1, 1.0, 6.0),
    }
    for name in ("platt", "beta", "isotonic", "histogram"):
        metrics = cal.audit(table, recalibrate=name, resamples=20)["results"][0]["metrics"]
        assert metrics["mean_confidence"]["value"] == pytest.approx(1 / 7, abs=0.03), name
        assert abs(metrics["confidence_gap"]["value"]) < 0.02, name


def test_few_equal_rows_are_warned_of_at_the_top():
    document = cal.audit(weighted(RNG.pareto(0.5, ROWS) + 0.01), resamples=50)
    (warning,) = document["data"]["warnings"]
    assert warning["id"] == "data.few_equal_rows"
    assert "too few for a firm interval" in warning["text"]
    assert "too few for a firm" in " ".join(str(document).split())
    plain = cal.audit(weighted(RNG.uniform(1, 2, ROWS)), resamples=50)
    assert plain["data"]["warnings"] == []


def test_weights_that_a_verb_does_not_use_are_told():
    table = weighted(RNG.uniform(1, 5, ROWS))
    (warning,) = cal.compare(table)["data"]["warnings"]
    assert warning["text"] == "The weights are not used: every row counts once."
    off = table.with_columns(confidence=1 - 0.2 * pl.col("confidence"), model=pl.lit("a"))
    following = cal.audit(off.with_row_index("question"), question="question")["next"]
    assert following["why"].endswith("(`mend` has no weights: every row counts once)")
