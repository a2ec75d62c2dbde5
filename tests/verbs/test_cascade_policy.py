"""The policy that `cascade --save` writes: what its tolerance means, and that it loads again."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.trust import load_policy
from calibrant.verbs.cascade import cascade

MODELS = ["small", "large"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    hard = rng.integers(0, 4, 900)
    rate = {"small": 0.95 - 0.25 * hard, "large": np.full(900, 0.93)}
    return pl.concat(
        pl.DataFrame(
            {
                "question_id": np.arange(900),
                "model": name,
                "confidence": rng.uniform(0.6, 0.8, 900),
                "correct": (rng.random(900) < rate[name]).astype(int),
                "hard": hard,
            }
        )
        for name in MODELS
    )


def saved(table, path, tolerance):
    options = {"price": {"small": 1, "large": 9}, "features": ["hard"], "random_splits": 2}
    result = cascade(
        table,
        models=MODELS,
        tolerance=tolerance,
        save=path,
        strategies=("confidence", "risk"),
        **options,
    )
    return result["results"][0]["policy"], load_policy(path)


def share_of_the_small_one(policy):
    routes = [policy.route({"hard": hard}, {"small": 0.7}) for hard in range(4)]
    return np.mean([found.action == "answer" for found in routes])


def test_the_tolerance_given_is_the_one_that_is_saved(table, tmp_path):
    told, policy = saved(table, tmp_path / "policy.json", 0.3)
    assert told["tolerance"] == 0.3
    assert told["chosen"] == "the tolerance that was given"
    assert set(policy.dials) == {0.3}
    assert json.loads((tmp_path / "policy.json").read_bytes())["dials"] == [0.3, 0.3]


def test_a_larger_tolerance_asks_the_large_model_less_often(table, tmp_path):
    path = tmp_path / "policy.json"
    asked = [share_of_the_small_one(saved(table, path, t)[1]) for t in (0.0, 0.15, 0.4, 1.0)]
    assert asked == sorted(asked)
    assert asked[0] < asked[-1] == 1.0, "a risk of 1 is that of an answer that is surely wrong"


def test_the_policy_answers_where_the_risk_is_within_the_tolerance(table, tmp_path):
    _, policy = saved(table, tmp_path / "policy.json", 0.15)
    easy, hardest = (
        policy.route({"hard": 0}, {"small": 0.7}),
        policy.route({"hard": 3}, {"small": 0.7}),
    )
    assert easy.action == "answer"
    assert easy.risk <= 0.15
    assert (hardest.action, hardest.model) == ("ask", "large")
    assert hardest.risk > 0.15


def test_a_saved_policy_decides_as_the_one_in_memory(table, tmp_path):
    path, again = tmp_path / "policy.json", tmp_path / "again.json"
    _, policy = saved(table, path, 0.15)
    policy.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_without_a_tolerance_one_is_chosen_and_said_how(table, tmp_path):
    told, policy = saved(table, tmp_path / "policy.json", None)
    assert told["chosen"] == "cheapest that is accurate enough"
    assert told["tolerance"] in policy.dials
    assert told["promise"]["accuracy"]["low"] > 0.9


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_that_makes_no_sense_is_refused_before_the_work(tolerance, table, tmp_path):
    path = tmp_path / "policy.json"
    with pytest.raises(InputError, match="tolerance is a number from 0 to"):
        saved(table, path, tolerance)
    table.write_csv(tmp_path / "scores.csv")
    words = ["cascade", str(tmp_path / "scores.csv"), "--models", "small,large", "--price", "1,9"]
    words += ["--features", "hard", "--save", str(path), f"--tolerance={tolerance}"]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError)
    assert not path.exists()


@pytest.mark.parametrize("questions", [1, 3, 19])
def test_a_handful_of_questions_is_refused(questions):
    table = {
        "question_id": [f"q{i}" for i in range(questions)] * 2,
        "model": ["a"] * questions + ["b"] * questions,
        "confidence": [0.7] * 2 * questions,
        "correct": [1, 0] * questions,
    }
    with pytest.raises(InputError, match=f"at least 20 questions .* there are {questions}"):
        cascade(table, models=["a", "b"], price=[1, 10])


def test_a_saved_cascade_on_excess_risk_stops_without_any_tolerance(table, tmp_path):
    """Where the small model is as good as the large one it answers; where it fails it does not."""
    path = tmp_path / "policy.json"
    result = cascade(
        table,
        models=MODELS,
        price={"small": 1, "large": 9},
        features=["hard"],
        random_splits=2,
        strategies=("confidence", "excess"),
        strategy="excess",
        tolerance=0.0,
        save=path,
    )
    told = result["results"][0]["policy"]
    assert (told["rule"], told["tolerance"]) == ("excess", 0.0)
    policy = load_policy(path)
    assert policy.route({"hard": 3}, {"small": 0.7}).action == "ask"
    said = np.linspace(0.6, 0.8, 21)
    easy = [policy.route({"hard": 0}, {"small": one}).action for one in said]
    assert easy.count("answer") >= 5
