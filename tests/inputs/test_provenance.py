"""Every document says by which version, on which bytes and with which settings it was made."""

import hashlib

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.bench.evaluate import bench_evaluate
from calibrant.bench.make import bench_check, bench_mace
from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.data.sources.input import document_head, input_files
from calibrant.report.page.parts import provenance_table
from calibrant.verbs.cascade import cascade
from calibrant.verbs.groups import groups
from calibrant.verbs.label import label_add, label_next, label_status
from calibrant.verbs.methods import methods
from calibrant.verbs.models import models
from calibrant.verbs.monitor import monitor
from calibrant.verbs.plan import plan
from support import two_models

HEAD = {"schema", "version", "source", "input", "seed"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.csv"
    two_models(300).write_csv(path)
    return path


def digest(path):
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


VERBS = {
    "audit": lambda path: cal.audit(path, resamples=20, seed=4),
    "groups": lambda path: groups(path, features=["topic"], seed=4),
    "plan": lambda path: plan(path, precision=0.05, seed=4),
    "label": label_status,
    "cascade": lambda path: cascade(
        path,
        models=["small", "large"],
        price={"small": 1, "large": 8},
        features=["topic"],
        strategies=["confidence"],
        random_splits=2,
        seed=4,
    ),
    "monitor": lambda path: monitor(path, every=100),
    "multi_answer": lambda path: bench_evaluate(
        path, reference="consistency", resamples=20, items=20, seed=4
    ),
}


@pytest.mark.parametrize("kind", VERBS)
def test_a_document_names_its_input_by_digest(kind, table):
    document = VERBS[kind](table).to_dict()
    assert set(document) >= HEAD | {"settings", "dropped"}
    assert document["schema"] == f"calibrant.{kind}/{2 if kind == 'monitor' else 1}"
    assert document["version"] == cal.__version__
    assert document["source"] == str(table)
    assert document["input"] == [digest(table)]
    assert document["seed"] == (None if kind in ("label", "monitor") else 4)


@pytest.mark.parametrize("kind", sorted(VERBS))
def test_the_page_shows_where_the_numbers_come_from(kind, table):
    (row,) = provenance_table([VERBS[kind](table).to_dict()]).rows
    assert row[0] == kind
    assert "not stated" not in (row[1], row[2], row[3], row[5], row[6])
    assert digest(table)["sha256"][:12] in row[3]


def test_verbs_without_an_input_have_the_head_all_the_same(tmp_path):
    for result in (methods(), models(), plan(precision=0.1, error_rate=0.2)):
        document = result.to_dict()
        assert set(document) >= HEAD
        assert document["source"] is None
        assert document["input"] == []
    path = tmp_path / "questions.jsonl"
    assert set(bench_mace(path, k=[1], per_k=2).to_dict()) >= HEAD
    assert bench_check(path)["input"] == [digest(path)]


def test_a_table_that_is_labelled_stays_as_it_was_read(tmp_path):
    path, batch = tmp_path / "t.csv", tmp_path / "batch.csv"
    rows = pl.DataFrame({"confidence": [0.2, 0.4, 0.6, 0.8] * 5, "correct": [None, 1, 0, 1] * 5})
    rows.write_csv(path)
    label_next(path, batch, size=3)
    filled = pl.read_csv(batch).with_columns(correct=pl.lit(1))
    filled.write_csv(batch)
    before = digest(path)
    document = label_add(path, batch).to_dict()
    assert document["input"] == [before]
    assert digest(path) == before


def test_a_study_stands_for_its_tables_and_a_folder_for_its_parquet_files(tmp_path):
    study, days = tmp_path / "study", tmp_path / "days"
    for folder, name in ((study / "tables", "scores"), (days, "b"), (days, "a")):
        folder.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"x": [1]}).write_parquet(folder / f"{name}.parquet")
    assert [entry["path"] for entry in input_files(study)] == [str(study / "tables/scores.parquet")]
    expected = [str(days / "a.parquet"), str(days / "b.parquet")]
    assert [entry["path"] for entry in input_files(days)] == expected
    assert [entry["path"] for entry in input_files(str(days / "*.parquet"))] == expected


def test_frames_and_streams_name_no_file():
    frame = pl.DataFrame({"x": [1]})
    assert input_files([frame, {"x": [1]}]) == []
    stream = iter([frame])
    head = document_head("monitor", stream)
    assert head["source"] == "a stream of tables"
    assert head["input"] == []
    assert next(stream) is frame, "the stream must not be used up"


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("x")
    monkeypatch.setattr("hashlib.file_digest", lambda *_: (_ for _ in ()).throw(OSError(5, "bad")))
    with pytest.raises(InputError, match=r"t\.csv: cannot be read: bad"):
        input_files(path)


def test_a_plan_and_labels_take_a_study(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(80)],
            "model": "m",
            "method": "verb",
            "answer": "x",
            "confidence": rng.uniform(0.5, 1, 80),
            "correct": rng.integers(0, 2, 80).astype(float),
        }
    )
    Study(tmp_path).write("scores", frame)
    (tmp_path / "report.html").write_text("beside the tables")
    assert plan(tmp_path, precision=0.1)["measured"][0]["n"] == 80
    assert label_status(tmp_path)["results"][0]["labelled"] == 80


def test_an_audit_says_how_it_was_made(table):
    options = {"bins": 10, "level": 0.9, "resamples": 20, "recalibrate": "platt", "by": ["topic"]}
    document = cal.audit(table, on_invalid="drop", question="question_id", **options).to_dict()
    rules = {"on_invalid": "drop", "graded": False, "repeats": False}
    columns = {"question": "question_id"}
    assert document["settings"] == {**options, **rules, "columns": columns}
    # Readers of the first documents find these at the top.
    assert [document[name] for name in ("bins", "level", "resamples")] == [10, 0.9, 20]
    assert document["recalibrated"] == "platt"


@pytest.mark.parametrize("kind", sorted(set(VERBS) - {"multi_answer"}))
def test_settings_have_one_vocabulary(kind, table):
    settings = VERBS[kind](table)["settings"]
    assert settings.get("on_invalid", "missing") == "missing"
    assert settings["columns"] == {}
    assert not {"confidence", "correct", "model", "method", "question"} & set(settings)


NAMED = {
    "groups": lambda path, names: groups(path, features=["topic"], **names),
    "plan": lambda path, names: plan(path, precision=0.05, **names),
    "label": lambda path, names: label_status(path, **names),
    "monitor": lambda path, names: monitor(path, every=100, **names),
    "audit": lambda path, names: cal.audit(path, resamples=20, **names),
    "compare": lambda path, names: cal.compare(path, resamples=20, **names),
}


@pytest.mark.parametrize("kind", NAMED)
def test_the_columns_that_were_named_are_stated(kind, table, tmp_path):
    path = tmp_path / "renamed.csv"
    pl.read_csv(table).rename({"confidence": "said", "correct": "right"}).write_csv(path)
    names = {"confidence": "said", "correct": "right"}
    assert NAMED[kind](path, names)["settings"]["columns"] == names


def test_the_rules_of_a_study_are_stated_as_they_were_used(tmp_path):
    frame = pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(60)],
            "model": "m",
            "method": "verb",
            "answer": "x",
            "confidence": [0.2, 0.9, None] * 20,
            "correct": [0.0, 0.5, 1.0] * 20,
        }
    )
    Study(tmp_path).write("scores", frame)
    document = cal.audit(tmp_path, resamples=20).to_dict()
    assert document["settings"]["on_invalid"] == "drop"
    assert document["settings"]["graded"] is True
    assert document["dropped"] == {"confidence_missing": 20}


def test_tables_without_a_file_have_a_readable_name():
    frame = pl.DataFrame({"confidence": [0.2, 0.9] * 9, "correct": [0, 1] * 9})
    named = frame.with_columns(model=pl.lit("b"), question_id=pl.int_range(18))
    assert cal.audit(frame, resamples=20)["source"] == "a table in memory"
    assert cal.audit([frame, named], resamples=20)["source"] == "2 tables in memory"
    arrays = cal.audit(frame["confidence"].to_numpy(), frame["correct"].to_numpy(), resamples=20)
    assert arrays["source"] == "arrays in memory"
    with pytest.raises(InputError, match=r"^a table in memory, row 1: the confidence must be"):
        cal.audit(frame.with_columns(confidence=pl.lit(3.0)))
    with pytest.raises(InputError, match=r"^table 2 of 2, row 1: the confidence must be"):
        cal.audit([frame, named.with_columns(confidence=pl.lit(3.0))])


def test_several_files_are_all_named(table, tmp_path):
    other = tmp_path / "other.csv"
    pl.read_csv(table).with_columns(model="other-" + pl.col("model")).write_csv(other)
    document = cal.audit([table, other], resamples=20).to_dict()
    assert document["source"] == f"{table}, {other}"
    assert document["input"] == [digest(table), digest(other)]
