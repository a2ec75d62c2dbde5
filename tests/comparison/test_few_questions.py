"""Too few questions for an interval: a comparison says so instead of printing a narrow one."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.compare import LEAST_QUESTIONS


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
        assert pair["outcome"] == "undecided"
        assert pair["winner"] is None
        assert pair["p_verdict"] is None
        assert pair["p_accuracy"] is None
        assert set(pair["p_value"].values()) == {None}
        assert set(pair["better"].values()) == {None}
        found = list(numbers_with_ends(pair))
        assert found
        assert all(part["low"] is None and part["high"] is None for _, part in found), found
        assert "share 12 questions" in pair["verdict"]
        assert "needs 20" in pair["verdict"]
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
