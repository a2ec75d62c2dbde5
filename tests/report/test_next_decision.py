"""The step after a decision is one that can be taken."""

import shlex

import numpy as np
import polars as pl
import pytest

from calibrant.cli.main import app
from calibrant.report.next_step import next_step, without_folders
from calibrant.verbs.audit import audit
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
    """Run the step as it stands, from any folder; what it saves goes to `folder`."""
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
    policy = shlex.quote(str(tmp_path / "p.json"))
    assert next_step(saved)[1].endswith(f"--policy {policy} --time COLUMN")


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
    place = shlex.quote(str(scores.parent / "c.json"))
    command = next_step(saved)[1]
    assert command == f"calibrant serve {place} --endpoint small=URL --endpoint 'large one=URL'"
    assert without_folders(command, saved) == command.replace(place, "c.json")


def test_files_given_together_stay_together(scores, monkeypatch, tmp_path):
    """Each step used to name the first file alone, or both as one name."""
    files = []
    for number, (_, part) in enumerate(pl.read_csv(scores).group_by("model", maintain_order=True)):
        files.append(tmp_path / f"my {number}.csv")
        part.write_csv(files[-1])
    both = shlex.join(map(str, files))
    audited = audit(files, confidence="p").to_dict()
    assert f"calibrant compare {both} --confidence p" in taken(audited, tmp_path, monkeypatch)
    compared = compare(files, confidence="p", resamples=100).to_dict()
    command = taken(compared, tmp_path, monkeypatch)
    assert f"calibrant cascade {both} --confidence p" in command
    assert "cascade 'my 0.csv' 'my 1.csv'" in without_folders(command, compared)
    decided = decide(files, confidence="p", max_error=0.4).to_dict()
    assert f"calibrant decide {both} --confidence p" in taken(decided, tmp_path, monkeypatch)
    result = decide(files, confidence="p", max_error=0.4)
    assert "Threshold for my 0 and my 1 · 1,200 rows" in str(result)
