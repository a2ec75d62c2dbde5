"""Whoever types what comes next gets from a plan to labels and to their audit."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.findings.claims.next_step import next_step


@pytest.fixture
def pool(tmp_path):
    """A pool with its own names of columns, and rows that must be dropped."""
    rng = np.random.default_rng(5)
    said = rng.uniform(0.5, 1, 400)
    table = pl.DataFrame(
        {
            "question_id": [f"{i:04}" for i in range(400)],
            "answer": ["yes"] * 390 + [None] * 10,
            "p": said,
        }
    )
    table.write_csv(tmp_path / "pool.csv")
    return tmp_path / "pool.csv"


def typed(document):
    _, command = next_step(document)
    words = shlex.split(command)
    assert words[0] == "calibrant"
    run = CliRunner().invoke(app, words[1:])
    assert run.exit_code == 0, (command, run.output)
    return command


def test_from_the_plan_to_the_labels_by_typing_what_comes_next(pool, monkeypatch):
    read = {"confidence": "p", "on_invalid": "drop"}
    monkeypatch.chdir(pool.parent)
    pool = Path(pool.name)
    plan = calibrant.plan(pool, claim="ece<0.2", **read).to_dict()
    command = typed(plan)
    assert command == (
        "calibrant label next pool.csv --confidence p --on-invalid drop --out batch.csv"
    )
    batch = pool.parent / "batch.csv"
    again = {**calibrant.label_status(pool, **read).to_dict(), "batch": {"path": batch.name}}
    filled = pl.read_csv(batch, infer_schema=False).with_columns(pl.lit("1").alias("correct"))
    filled.write_csv(batch)
    assert "label add pool.csv batch.csv" in typed(again)
    planned = calibrant.plan(pool, claim="ece<0.2", **read).to_dict()
    assert "calibrant audit pool.csv" in typed(planned)
    audited = calibrant.audit(pool, **read)
    labels = audited.to_dict()["results"][0]["n"]
    assert labels == filled.height
    assert f"{labels} of 390 rows labelled" in str(audited)


def test_a_terminal_names_the_file_where_it_lies_and_a_page_by_its_name_alone(pool, monkeypatch):
    monkeypatch.chdir(pool.parent.parent)
    place = f"{pool.parent.name}/{pool.name}"
    planned = calibrant.plan(place, labels=100, confidence="p", on_invalid="drop")
    words = " ".join(str(planned).split())
    # Python is shown how Python calls it.
    assert f'calibrant.label_next("{place}", ' in words
    assert 'confidence="p"' in words
    page = planned.to_html()
    assert f"label next {pool.name}" in " ".join(re.sub("<[^>]*>", " ", page).split())
    assert f"next {place}" not in page


def test_a_batch_with_open_items_is_not_written_over(pool, monkeypatch):
    read = {"confidence": "p", "on_invalid": "drop"}
    monkeypatch.chdir(pool.parent)
    batch = pool.parent / "batch.csv"
    calibrant.label_next(pool, out=batch, size=50, **read)
    rows = pl.read_csv(batch, infer_schema=False).with_row_index()
    part = pl.when(pl.col("index") < 30).then(pl.lit("1")).alias("correct")
    rows.with_columns(part).drop("index").write_csv(batch)
    added = calibrant.label_add(pool, batch, **read).to_dict()
    before = batch.read_bytes()
    with pytest.raises(InputError, match="still has 20 open items") as refused:
        calibrant.label_next(pool, out=batch, **read)
    assert refused.value.source == str(batch)
    assert "label_add" in str(refused.value)
    assert batch.read_bytes() == before
    # What comes next has a name of its own, and holds the open items.
    assert "--out batch2.csv" in typed(added)
    waiting = set(rows["item"][30:])
    assert waiting <= set(pl.read_csv("batch2.csv", infer_schema=False)["item"])
    # A batch that is taken back whole may be written over.
    rows.with_columns(pl.lit("1").alias("correct")).drop("index").write_csv(batch)
    calibrant.label_add(pool, batch, **read)
    calibrant.label_next(pool, out=batch, **read)
