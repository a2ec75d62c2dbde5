"""The step after a decision is one that can be taken."""

import shlex

import numpy as np
import polars as pl
import pytest

from calibrant.cli.main import app
from calibrant.report.next_step import next_step
from calibrant.verbs.cascade import cascade
from calibrant.verbs.compare import compare
from calibrant.verbs.decide import decide


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    rng = np.random.default_rng(3)
    n = 600
    said = rng.uniform(0.3, 1, (2, n))
    right = (rng.random((2, n)) < said * np.array([[0.85], [1.0]])).astype(int)
    table = pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(n)] * 2,
            "model": ["small"] * n + ["large one"] * n,
            "p": said.ravel(),
            "correct": right.ravel(),
        }
    )
    path = tmp_path_factory.mktemp("next") / "scores.csv"
    table.write_csv(path)
    return path


def taken(document, folder, monkeypatch, *, ends=0):
    """Run the step as it stands, from the folder of the input."""
    _, command = next_step(document)
    monkeypatch.chdir(folder)
    words = shlex.split(command)
    assert words[0] == "calibrant"
    from click.testing import CliRunner

    run = CliRunner().invoke(app, words[1:])
    assert run.exit_code == ends, (command, run.output)
    return command


def test_nothing_certified_leads_to_a_limit_that_can_be_reached(scores, monkeypatch):
    found = decide(scores, confidence="p", max_error=0.01, only_model="small").to_dict()
    assert not found["results"][0]["certified"]
    command = taken(found, scores.parent, monkeypatch)
    assert float(command.split("--max-error ")[1].split()[0]) > 0.05
    assert "--confidence p" in command


def test_a_certified_limit_is_saved_then_watched(scores, monkeypatch, tmp_path):
    one = scores.parent / "one.csv"
    pl.read_csv(scores).filter(pl.col("model") == "large one").write_csv(one)
    found = decide(one, confidence="p", max_error=0.4).to_dict()
    assert "--save policy.json" in taken(found, scores.parent, monkeypatch)
    saved = decide(one, confidence="p", max_error=0.4, save=tmp_path / "p.json").to_dict()
    assert next_step(saved)[1].endswith("--policy p.json --time COLUMN")


def test_several_models_lead_to_the_one_that_answers_most(scores, monkeypatch):
    found = decide(scores, confidence="p", max_error=0.4).to_dict()
    assert "--only-model 'large one'" in taken(found, scores.parent, monkeypatch)


def test_a_comparison_leads_to_a_cascade_and_that_to_its_policy(scores, monkeypatch):
    compared = compare(scores, confidence="p", resamples=100).to_dict()
    command = taken(compared, scores.parent, monkeypatch)
    assert "--models 'small,large one'" in command
    made = cascade(
        scores, confidence="p", models=["small", "large one"], price=[1, 10], random_splits=2
    ).to_dict()
    assert "--save policy.json" in taken(made, scores.parent, monkeypatch)
    saved = cascade(
        scores,
        confidence="p",
        models=["small", "large one"],
        price=[1, 10],
        random_splits=2,
        save=scores.parent / "c.json",
    ).to_dict()
    assert next_step(saved)[1] == (
        "calibrant serve c.json --endpoint small=URL --endpoint 'large one=URL'"
    )
