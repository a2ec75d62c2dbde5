"""Verbs that share out their parts over an engine give the document of one after the other."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import calibrant as cal
from calibrant.answers.semantics.annotate import annotate
from calibrant.answers.semantics.settle import SemanticsOptions
from calibrant.core.document import dump_document, plain
from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.data.sources.engines import LocalEngine
from calibrant.data.sources.options import AuditOptions
from calibrant.verbs.run import run
from calibrant.verbs.semantic import semantic_blocks
from collect.endpoint import Oracle
from collect.studies import write_study


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
        "random_splits": 3,
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


def test_meanings_by_rules_are_the_same_on_an_engine(monkeypatch):
    # Small parts: texts that need mending, conflicts and instructions come up in several.
    module = sys.modules["calibrant.answers.semantics.annotate"]
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 2)
    monkeypatch.setattr(module, "GROUPS_AT_ONCE", 4)
    table = draws().with_columns(
        text=pl.when(pl.col("draw") == 0).then(pl.lit("Pa\u200bris")).otherwise("text")
    )
    options = SemanticsOptions(clustering="rules", grading="rules")
    alone = annotate(table, questions(), options=options)
    shared = annotate(table, questions(), options=options, mapper=LocalEngine(2).map)
    assert shared.draws.equals(alone.draws)
    assert shared.semantics.equals(alone.semantics)
    assert dump_document(shared.document) == dump_document(alone.document)
    assert alone.document["texts_mended"]


class Helper:
    name = "helper"


@pytest.mark.parametrize("helper", ["judge", "embedder"])
def test_what_needs_the_whole_table_is_not_split(helper):
    with pytest.raises(InputError, match="whole table at once"):
        annotate(draws(), options=SemanticsOptions(**{helper: Helper()}), mapper=LocalEngine(2).map)


def test_sem_ece_is_the_same_on_an_engine():
    options = SemanticsOptions(clustering="rules", grading="rules")
    _, semantics = annotate(draws(), questions(), options=options)
    table = semantics.filter(pl.col("class_id").is_not_null())
    options = AuditOptions(resamples=50)
    once = semantic_blocks(table, options)
    many = semantic_blocks(table, replace(options, engine="local"))
    assert [block["model"] for block in many] == ["a", "b"]
    assert plain(once) == plain(many)


def test_a_table_of_draws_goes_to_the_engine_by_model(tmp_path):
    options = SemanticsOptions(clustering="rules", grading="rules")
    _, semantics = annotate(draws(), questions(), options=options)
    path = tmp_path / "draws.parquet"
    table = semantics.filter(pl.col("class_id").is_not_null())
    table.select("question_id", "model", "class_id", "correct").write_parquet(path)
    alone = cal.audit(path, resamples=50).to_dict()
    assert cal.audit(path, resamples=50, engine="local").to_dict() == alone
    assert len(alone["sem_ece"]) == 2


def cli(*words):
    command = [Path(sys.executable).parent / "calibrant", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_line_has_the_same_word_for_every_verb(tmp_path):
    table, alone, shared = (tmp_path / name for name in ("t.csv", "alone.json", "shared.json"))
    scores().write_csv(table)
    words = ["cascade", table, "--models", "small,large", "--features", "x", "--random-splits", 3]
    for out, engine in ((alone, []), (shared, ["--engine", "local"])):
        done = cli(*words, "--price", "small=1,large=5", *engine, "--json", out)
        assert done.returncode == 0, done.stderr
    assert alone.read_bytes() == shared.read_bytes()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with Oracle() as server:
        folder = write_study(
            tmp_path_factory.mktemp("run") / "study",
            server.url,
            tail='[semantics]\nclustering = "rules"\ngrading = "rules"',
        )
        run(folder)
        yield folder, server


def files(folder):
    names = ("semantics", "audit")
    results = {name: (folder / "results" / f"{name}.json").read_bytes() for name in names}
    return results | {name: Study(folder).read(name).to_dicts() for name in ("semantics", "scores")}


def test_a_study_is_the_same_on_an_engine_and_nothing_is_asked_again(study):
    folder, server = study
    run(folder)
    alone, asked = files(folder), len(server.calls)
    done = cli("run", folder, "--engine", "local", "--quiet")
    assert done.returncode == 0, done.stderr
    assert len(server.calls) == asked
    assert files(folder) == alone


def test_a_study_with_a_judge_refuses_an_engine_before_it_asks(tmp_path, study):
    _, server = study
    judge = '[semantics.judge]\nmodel = "oracle"\nclient = "vllm"\nbase_url = "' + server.url + '"'
    folder = write_study(tmp_path / "judged", server.url, tail=judge)
    asked = len(server.calls)
    with pytest.raises(InputError, match=r"semantics\.judge works on the whole table"):
        run(folder, engine="local")
    with pytest.raises(InputError, match="engine is local, ray"):
        run(folder, engine="spark")
    assert len(server.calls) == asked
