"""Too few questions for an interval: a comparison says so instead of printing a narrow one."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.compare import LEAST_QUESTIONS
from calibrant.core.errors import InputError


def table(n):
    rng = np.random.default_rng(n)
    confidence = rng.random((2, n))
    correct = np.tile(np.arange(n) % 2, (2, 1))
    return pl.DataFrame(
        {
            "question_id": np.tile(np.arange(n), 2),
            "model": np.repeat(["a", "b"], n),
            "confidence": confidence.ravel(),
            "correct": correct.ravel(),
        }
    )


@pytest.mark.parametrize("n", [2, 3, 5, 10, LEAST_QUESTIONS - 1])
def test_few_questions_are_refused_with_the_number_that_is_needed(n):
    with pytest.raises(cal.InputError, match=f"share {n} questions.* at least {LEAST_QUESTIONS}"):
        cal.compare(table(n), resamples=100)


def test_enough_questions_are_compared():
    found = cal.compare(table(LEAST_QUESTIONS), resamples=100).to_dict()
    (pair,) = found["pairs"]
    assert pair["gaps"]["raw"]["ece"]["low"] < pair["gaps"]["raw"]["ece"]["high"]


@pytest.fixture(scope="module")
def league():
    """Three models; the third has 12 of the 300 questions of the others, all of them."""
    rng = np.random.default_rng(1)
    n, few = 300, 12
    chance = rng.beta(4, 2, n)
    right = (rng.random((3, n)) < chance).astype(int)
    right[2, :few] = np.arange(few) % 2
    frames = [
        pl.DataFrame(
            {
                "question_id": np.arange(size),
                "model": [name] * size,
                "confidence": (chance**power)[:size],
                "correct": right[place, :size],
            }
        )
        for place, (name, power, size) in enumerate(
            [("honest", 1.0, n), ("loud", 0.2, n), ("rare", 0.2, few)]
        )
    ]
    return cal.compare(pl.concat(frames), resamples=200)


def numbers_with_ends(part, place=""):
    """Yield every estimate of an entry."""
    if isinstance(part, dict):
        if {"value", "low", "high"} <= part.keys():
            yield place, part
        for name, value in part.items():
            yield from numbers_with_ends(value, f"{place}.{name}")
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from numbers_with_ends(value, f"{place}[{number}]")


def test_a_pair_with_few_shared_questions_has_no_interval_and_no_test(league):
    pairs = {frozenset((pair["a"], pair["b"])): pair for pair in league["pairs"]}
    assert len(pairs) == 3
    for other in ("honest", "loud"):
        pair = pairs[frozenset((other, "rare"))]
        assert pair["n"] == 12
        assert pair["verdict"] == "undecided"
        assert pair["winner"] is None
        assert pair["p_verdict"] is None
        assert pair["p_accuracy"] is None
        assert set(pair["p_value"].values()) == {None}
        assert set(pair["better"].values()) == {None}
        found = list(numbers_with_ends(pair))
        assert found
        assert all(part["low"] is None and part["high"] is None for _, part in found), found
        assert "share 12 questions" in pair["text"]
        assert "needs 20" in pair["text"]
    whole = pairs[frozenset(("honest", "loud"))]
    assert whole["gaps"]["raw"]["ece"]["low"] is not None
    assert whole["n"] == 300


def test_few_shared_questions_make_no_claim_but_that_there_are_few(league):
    about = [claim for claim in league["claims"] if "rare" in claim["subject"].values()]
    pairs = [claim for claim in about if {"a", "b"} <= claim["subject"].keys()]
    assert {claim["id"] for claim in pairs} == {"compare.better_calibrated"}
    assert {claim["outcome"] for claim in pairs} == {"undecided"}


def test_other_pairs_are_decided_as_if_the_rare_model_were_not_there(league):
    summary = league["summaries"][0]["summary"]
    assert summary["cases"] == 1


def test_few_shared_questions_can_be_shown_on_the_page_and_in_the_terminal(league):
    assert "share 12 questions" in league.to_html()
    assert "rare" in league.to_markdown()


def ends(part):
    """Every estimate in a document, wherever it stands."""
    if isinstance(part, dict):
        if {"value", "low", "high", "n"} <= part.keys() and "id" not in part:
            yield part
        for value in part.values():
            yield from ends(value)
    elif isinstance(part, list):
        for value in part:
            yield from ends(value)


@pytest.mark.parametrize("said", [[0.7], [0.6, 0.9], [0.2, 0.5, 0.7, 0.9, 1.0]])
@pytest.mark.parametrize("questions", [20, 40])
def test_no_interval_of_few_questions_or_without_its_value(said, questions):
    """A view may leave few of them: the confidence where both are wrong had [0.7, 0.7]."""
    rng = np.random.default_rng(questions)
    table = {
        "question_id": [*range(questions)] * 2,
        "model": ["a"] * questions + ["b"] * questions,
        "confidence": rng.choice(said, 2 * questions) * np.repeat([1.0, 0.9], questions),
        "correct": rng.random(2 * questions) < 0.6,
    }
    document = cal.compare(table, resamples=200).to_dict()
    areas = [entry["companions"].pop("auroc_shared") for entry in document["results"]]
    # Areas have an interval that holds for few answers.
    assert all(area["high"] - area["low"] > 0.2 for area in areas if area["low"] is not None)
    found = list(ends([document["pairs"], document["results"]]))
    assert len(found) > 30
    for one in found:
        if one["low"] is not None:
            assert one["low"] - 1e-12 <= one["value"] <= one["high"] + 1e-12, one
            assert one["n"] >= 20, one
    for entry in document["results"]:
        for name in ("accuracy", "mean_confidence"):
            assert entry[name]["high"] - entry[name]["low"] > 0.01


def test_few_errors_with_ties_do_not_hide_the_spread_of_an_auroc():
    """Its interval held the truth in half of these data sets; that of an audit always did."""
    rng = np.random.default_rng(3)
    questions, held, seen = 100, 0, 0
    chance = {0.9: 0.95, 0.98: 0.985}
    # The chance that a right answer has the higher confidence, ties counting a half.
    right = np.array([*chance.values()])
    right, wrong = right / right.sum(), (1 - right) / (1 - right).sum()
    truth = right[1] * wrong[0] + 0.5 * float(right @ wrong)
    for turn in range(20):
        said = rng.choice([0.9, 0.98], 2 * questions)
        correct = rng.random(2 * questions) < np.vectorize(chance.get)(said)
        table = {
            "question_id": [*range(questions)] * 2,
            "model": ["a"] * questions + ["b"] * questions,
            "confidence": said,
            "correct": correct,
        }
        try:
            document = cal.compare(table, resamples=20, seed=turn)
        except InputError:
            continue
        for entry in document["results"]:
            area = entry["companions"]["auroc"]
            seen += 1
            held += area["low"] <= truth <= area["high"]
    assert seen > 25
    assert held / seen > 0.9
