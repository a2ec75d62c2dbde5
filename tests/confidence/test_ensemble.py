"""Ensembles: held-out questions, saved as JSON, reachable as a method."""

import numpy as np
import polars as pl
import pytest
from tests.confidence.cases import full_question

from calibrant.answers.confidence import (
    Ensemble,
    cross_fit,
    load_ensemble,
    score,
    score_table,
    table_of,
)
from calibrant.core.errors import InputError
from calibrant.metrics import auroc


def world(n: int = 600, seed: int = 0) -> pl.DataFrame:
    """Two methods that see different halves of what decides, and one that sees nothing."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    right = (a + b + 0.5 * rng.normal(size=n) > 0).astype(float)
    columns = {
        "perplexity": 1 / (1 + np.exp(-a)),
        "consistency_greedy": 1 / (1 + np.exp(-b)),
        "verb": rng.random(n),
    }
    return pl.concat(
        pl.DataFrame({"question_id": [f"q{i}" for i in range(n)], "model": "m", "method": name,
                      "confidence": value, "correct": right})
        for name, value in columns.items()
    )  # fmt: skip


METHODS = ["perplexity", "consistency_greedy", "verb"]


@pytest.mark.parametrize("kind", ["logistic", "isotonic"])
def test_two_halves_are_better_than_each_on_held_out_questions(kind: str) -> None:
    table = world()
    held = cross_fit(table, METHODS, kind=kind)
    alone = [
        float(auroc(part["confidence"], part["correct"]))
        for part in (table.filter(pl.col("method") == name) for name in METHODS)
    ]
    together = float(auroc(held["confidence"], held["correct"]))
    assert together > max(alone) + 0.08
    assert abs(held["confidence"].mean() - held["correct"].mean()) < 0.03


def test_no_question_is_judged_by_a_fit_that_saw_it() -> None:
    """Without any signal an in-sample fit looks good; a held-out one must not."""
    rng = np.random.default_rng(1)
    noise = world(200).with_columns(pl.Series("correct", np.tile(rng.random(200) < 0.5, 3) * 1.0))
    held = cross_fit(noise, METHODS, kind="isotonic")
    assert float(auroc(held["confidence"], held["correct"])) < 0.6


def test_a_saved_ensemble_predicts_the_same(tmp_path) -> None:
    for kind in ("logistic", "isotonic"):
        fitted = Ensemble.fit(world(), METHODS, kind=kind)
        fitted.save(tmp_path / "e.json")
        again = load_ensemble(tmp_path / "e.json")
        rows = np.random.default_rng(2).random((50, 3))
        np.testing.assert_array_equal(fitted.predict(rows), again.predict(rows))


def test_the_method_applies_a_saved_ensemble(tmp_path) -> None:
    fitted = Ensemble.fit(world(), METHODS)
    fitted.save(tmp_path / "e.json")
    question = full_question()
    parts = [float(score(name, question)) for name in METHODS]
    got = score("ensemble", question, ensemble=str(tmp_path / "e.json"))
    assert got == pytest.approx(float(fitted.predict(np.array([parts]))[0]))
    assert (got.answer, got.correct) == ("Lima", True)
    scores = score_table(table_of([question]), methods=["ensemble"]).scores
    assert scores.is_empty()


def test_predicted_k_tilts_a_method() -> None:
    """With k = 1 consistency is the chance of being right; with k = 2 half of it is enough."""
    rng = np.random.default_rng(3)
    n = 3000
    k = rng.integers(1, 3, n)
    chance = rng.random(n)
    table = pl.DataFrame({
        "question_id": [f"q{i}" for i in range(n)], "model": "m", "method": "consistency_greedy",
        "confidence": chance / k, "correct": (rng.random(n) < chance).astype(float),
        "predicted_k": k,
    })  # fmt: skip
    plain = cross_fit(table, ["consistency_greedy"])
    tilted = cross_fit(table, ["consistency_greedy"], extra=["predicted_k"])
    best, ours, without = (
        float(auroc(value, table["correct"]))
        for value in (chance, tilted["confidence"], plain["confidence"])
    )
    assert ours > without + 0.04
    assert ours > best - 0.005


def test_methods_about_different_answers_are_refused() -> None:
    table = world(50)
    broken = table.with_columns(
        pl.when(pl.col("method") == "verb").then(1.0 - pl.col("correct"))
        .otherwise(pl.col("correct")).alias("correct")
    )  # fmt: skip
    with pytest.raises(InputError, match="about different answers"):
        Ensemble.fit(broken, METHODS)
    with pytest.raises(InputError, match="no graded scores of self_ask"):
        Ensemble.fit(table, ["self_ask"])
