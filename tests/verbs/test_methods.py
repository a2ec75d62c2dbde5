"""The verb `methods`: the fixed names of its document, and availability in a study."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from calibrant.answers.confidence import METHODS, Question, score
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.verbs.methods import methods

PAPERS = {
    "prob_entropy", "norm_prob_entropy", "semantic_entropy", "verb", "verb_topk", "consistency",
    "consistency_verb", "consistency_verb_topk", "perplexity", "p_true_consistency",
    "p_true_prob", "p_true_consistency_cand", "p_true_prob_cand", "self_ask", "self_ask_cand",
    "sca", "snca", "sfca", "sem1", "sem2", "first_run_consistency", "option_softmax",
    "yes_no_ratio", "sequence_probability", "discrete_semantic_entropy", "number_of_classes",
    "degree_matrix", "eccentricity", "kernel_language_entropy", "self_certainty",
}  # fmt: skip


def test_every_method_of_the_papers_is_there() -> None:
    assert set(METHODS) >= PAPERS


def test_json_has_the_fixed_names(tmp_path: Path) -> None:
    path = tmp_path / "methods.json"
    result = CliRunner().invoke(app, ["methods", "--json", str(path)])
    assert result.exit_code == 0
    document = json.loads(path.read_text())
    assert document["schema"] == "calibrant.methods/1"
    assert {entry["name"] for entry in document["methods"]} == set(METHODS)
    for entry in document["methods"]:
        assert {"name", "needs", "probability", "reference"} <= set(entry)
        assert set(entry["needs"]) <= set(document["needs"])
    ranking = {entry["name"] for entry in document["methods"] if not entry["probability"]}
    assert {"sca", "degree_matrix", "eccentricity", "number_of_classes"} <= ranking


@pytest.fixture
def study(tmp_path: Path) -> Path:
    key = {"question_id": ["q"] * 3, "model": ["m"] * 3, "draw": [0, 1, 2]}
    draws = pl.DataFrame({**key, "purpose": ["answer"] * 3, "text": ["Lima", "Lima", "Rome"]})
    semantics = pl.DataFrame({**key, "class_id": [0, 0, 1], "correct": [True, True, False]})
    folder = Study(tmp_path / "study")
    folder.write("draws", draws)
    folder.write("semantics", semantics)
    return tmp_path / "study"


def test_a_study_says_what_is_available_and_why_not(study: Path) -> None:
    result = methods(study)
    entries = {entry["method"]: entry for entry in result["results"]}
    assert set(entries) == set(METHODS)
    assert entries["sem2"]["available"]
    assert not entries["sca"]["available"]
    assert "token log-probs" in entries["sca"]["reason"]
    text = str(result)
    usable = sum(entry["available"] for entry in result["results"])
    assert f"m: {usable} of {len(METHODS)} methods available" in text
    assert "no greedy answer" in text


def test_other_folders_are_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a study folder"):
        methods(tmp_path / "nothing")
    (tmp_path / "tables").mkdir()
    with pytest.raises(InputError, match="no draws yet"):
        methods(tmp_path)


def test_the_table_names_every_method() -> None:
    text = methods().to_markdown()
    for name in METHODS:
        assert name in text


def test_score_on_the_compact_question() -> None:
    assert score("consistency", Question(classes=[0, 0, 1], correct=[True, True, False])) == 2 / 3
