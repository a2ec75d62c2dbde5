"""Verbs that share out their parts over an engine give the document of one after the other."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.api.engines import LocalEngine
from calibrant.api.partitions import annotate_on, question_parts
from calibrant.api.semantic import semantic_blocks
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.semantics.annotate import annotate
from calibrant.semantics.options import Options


def scores(n=300, seed=0):
    rng = np.random.default_rng(seed)
    parts = []
    for model, skill in (("small", 0.5), ("large", 0.75)):
        x = rng.normal(size=n)
        chance = np.clip(skill + 0.15 * np.tanh(x), 0.02, 0.98)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(n),
                    "model": [model] * n,
                    "confidence": np.clip(chance + 0.1, 0, 1),
                    "correct": (rng.random(n) < chance).astype(int),
                    "topic": ["a" if i % 2 else "b" for i in range(n)],
                    "x": np.arange(n) % 7,
                }
            )
        )
    return pl.concat(parts)


def test_compare_is_the_same_on_an_engine():
    table = scores()
    alone = cal.compare(table, by=["topic"], resamples=50).to_dict()
    assert cal.compare(table, by=["topic"], resamples=50, engine="local").to_dict() == alone


def test_cascade_is_the_same_on_an_engine():
    options = {
        "models": ["small", "large"],
        "features": ["x"],
        "price": {"small": 1.0, "large": 5.0},
        "splits": 3,
    }
    alone = cal.cascade(scores(), **options).to_dict()
    assert cal.cascade(scores(), engine="local", **options).to_dict() == alone


def draws():
    rng = np.random.default_rng(1)
    answers = ["Paris", "paris.", "Lyon", "I don't know.", "12", "twelve"]
    return pl.DataFrame(
        [
            {
                "question_id": f"q{question}",
                "model": model,
                "purpose": "answer",
                "draw": draw,
                "text": answers[rng.integers(len(answers))],
            }
            for draw in range(6)
            for model in ("a", "b")
            for question in range(15)
        ]
    )


def questions():
    return pl.DataFrame(
        {
            "question_id": [f"q{number}" for number in range(15)],
            "text": ["Capital of France?"] * 15,
            "references": [[["Paris"]]] * 15,
        }
    )


def test_meanings_by_rules_are_the_same_on_an_engine():
    options = Options(clustering="rules", grading="rules")
    alone = annotate(draws(), questions(), options=options)
    shared = annotate_on(LocalEngine(2), draws(), questions(), options=options, parts=4)
    assert shared.draws.equals(alone.draws)
    assert shared.semantics.equals(alone.semantics)
    counts = ("conflicts", "mixed_classes", "graders", "reasons", "joined_by")
    assert {name: shared.document[name] for name in counts} == {
        name: alone.document[name] for name in counts
    }


def test_a_judge_is_not_split():
    class Judge:
        name = "judge"

    with pytest.raises(InputError, match="whole table at once"):
        annotate_on(LocalEngine(2), draws(), options=Options(judge=Judge()))


def test_rows_of_a_question_stay_together():
    parts = question_parts(draws(), 4)
    assert sum(part.height for part in parts) == draws().height
    homes = [set(part["question_id"]) for part in parts]
    assert sum(map(len, homes)) == 15


def test_sem_ece_is_the_same_on_an_engine():
    options = Options(clustering="rules", grading="rules")
    _, semantics = annotate(draws(), questions(), options=options)
    table = semantics.filter(pl.col("class_id").is_not_null())
    once = semantic_blocks(table, level=0.95, resamples=50, seed=0)
    many = semantic_blocks(table, level=0.95, resamples=50, seed=0, engine="local")
    assert [block["model"] for block in many] == ["a", "b"]
    assert plain(once) == plain(many)


def test_a_table_of_draws_goes_to_the_engine_by_model(tmp_path):
    options = Options(clustering="rules", grading="rules")
    _, semantics = annotate(draws(), questions(), options=options)
    path = tmp_path / "draws.parquet"
    table = semantics.filter(pl.col("class_id").is_not_null())
    table.select("question_id", "model", "class_id", "correct").write_parquet(path)
    alone = cal.audit(path, resamples=50).to_dict()
    assert cal.audit(path, resamples=50, engine="local").to_dict() == alone
    assert len(alone["sem_ece"]) == 2
