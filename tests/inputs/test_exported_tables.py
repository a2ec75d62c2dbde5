"""Tables as people export them are read without an option, or asked about with the option."""

import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.claims.next_step import next_step
from calibrant.core.errors import InputError
from calibrant.records import load_scores
from inputs.exported import ASKED, READ, RIGHT, SAID, N, database, thrice
from support import ROOT, call

ODD = {"every row three times": thrice}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "table.any"


@pytest.mark.parametrize("name", READ)
def test_a_table_is_read_as_it_is_meant(name, path):
    READ[name](path)
    scores = load_scores(path)
    assert scores.graded["correct"].mean() == pytest.approx(np.mean(RIGHT), abs=0.02) or name in ODD
    if name in ODD:
        return
    said = np.sort(scores.frame["confidence"].to_numpy())
    if not scores.dropped:
        np.testing.assert_allclose(said, np.sort(SAID), atol=1e-12)
        assert scores.frame["correct"].cast(bool).sum() == sum(RIGHT)
    assert N - scores.frame.height <= 8


@pytest.mark.parametrize("name", READ)
def test_the_next_step_needs_no_more_than_the_first(name, path):
    READ[name](path)
    step = next_step(cal.audit("table.any", resamples=20).to_dict())
    done = call(*shlex.split(step.command.partition(" && ")[0])[1:])
    assert done.returncode == 0, f"{step.command}\n{done.stderr}"


@pytest.mark.parametrize("name", ASKED)
def test_a_doubt_is_a_question_that_names_the_option(name, path):
    write, *ways = ASKED[name]
    write(path)
    with pytest.raises(InputError) as caught:
        cal.audit("table.any", resamples=20)
    caught.value.for_shell()
    for way in ways:
        assert way in str(caught.value)


@pytest.mark.parametrize("what", ["#scores", "#SELECT probability AS p, outcome AS y FROM scores"])
def test_a_table_of_a_database_is_named_or_asked_for(what, path):
    database(path, "scores", "old_scores")
    assert load_scores(f"{path}{what}").frame["confidence"].to_list() == SAID
    assert cal.audit(f"table.any{what}", resamples=20)["input"][0]["path"] == "table.any"
    with pytest.raises(InputError, match="no table 'score'"):
        load_scores(f"{path}#score")


def listed():
    """Return the lines of the documentation about these tables."""
    lines = ["| what is exported | what is said |", "| --- | --- |"]
    for name, write in READ.items():
        path = Path(f"{len(lines)}.any")
        write(path)
        reading = load_scores(path).reading
        said = " ".join(filter(None, (reading.sentence, reading.repeats)))
        lines.append(f"| {name} | {said or 'read as it is'} |")
    for name, (_, *ways) in ASKED.items():
        shown = [f"`{way}`".replace("table.any", "runs.db") for way in ways]
        lines.append(f"| {name} | a question that names {' and '.join(shown)} |")
    return "\n".join(lines)


def test_the_documentation_lists_them_all(path):
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    assert listed() in text


def test_accuracy_is_ranked_on_every_graded_row(shared_data):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    said = {"confidence": "verbal_numerical_confidence", "on_invalid": "drop"}
    found = cal.plan(path, precision=0.05, rank="accuracy", **said)["leaderboard"]
    rows = pl.read_parquet(path).group_by("model").agg(pl.col("correct").cast(float).mean())
    right = dict(rows.iter_rows())
    assert found["questions"] == 12_032
    for entry in found["results"]:
        assert entry["accuracy"]["value"] == right[entry["model"]]
