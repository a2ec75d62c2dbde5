"""Sentences that were read otherwise than they were meant: each says what its number is about."""

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import calibrant as cal
from calibrant.findings.claims import Claim
from calibrant.findings.claims.data import data_warnings
from calibrant.report.answers import claims_of, headline
from calibrant.verbs.cascade import cascade
from calibrant.verbs.decide import decide
from calibrant.verbs.groups import groups

TOPICS = ("art", "law", "maths", "music", "physics")


def texts(result, name):
    return [claim["text"] for claim in result.to_dict()["claims"] if claim["id"] == name]


@pytest.fixture(scope="module")
def topics():
    """Two topics are right more often than is said, three less often."""
    rng = np.random.default_rng(5)
    n = 6_000
    topic = rng.choice(TOPICS, n)
    said = rng.choice([0.5, 0.7, 0.9], n)
    shift = np.select([topic == "art", topic == "law"], [0.25, 0.15], -0.1)
    right = rng.random(n) < np.clip(said - 0.1 + shift, 0, 1)
    return pl.DataFrame({"topic": topic, "confidence": said, "correct": right.astype(int)})


def at_equal_confidence(table, topic):
    """Return by how much a topic is right more often than all other rows of equal confidence."""
    inside = pl.col("topic") == topic
    per = table.group_by("confidence").agg(
        pl.col("correct").filter(inside).mean().alias("there"),
        pl.col("correct").filter(~inside).mean().alias("elsewhere"),
        inside.sum().alias("rows"),
    )
    gap = (per["there"] - per["elsewhere"]) * per["rows"]
    return float(gap.sum() / per["rows"].sum())


def test_a_group_found_later_says_that_the_earlier_ones_are_allowed_for(topics):
    result = groups(topics, features=["topic"])
    first, second, *_ = texts(result, "groups.stands_out")
    assert "topic = art" in first
    assert "beyond the group" not in first
    assert f"{100 * at_equal_confidence(topics, 'art'):.0f} points more often" in first
    assert "topic = law" in second
    assert "beyond the group above" in second
    assert f"{100 * at_equal_confidence(topics, 'law'):.0f} points" not in second


def test_a_headline_tells_groups_in_the_order_in_which_they_were_found(topics):
    claims = claims_of(groups(topics, features=["topic"]).to_dict())
    found = [claim.text for claim in claims if claim.id == "groups.stands_out"]
    told = [text for text in headline(claims, 9) if text in found]
    assert told == found
    # Also where a later group has the larger number.
    larger = [replace(claims[1], value=9.0) if c is claims[1] else c for c in claims]
    assert headline(larger, 2) == found[:2]


def test_the_groups_that_were_asked_for_are_answered_first(topics):
    claims = groups(topics, features=["topic"], group=["topic=law", "topic=maths"]).to_dict()
    asked = [claim["id"] for claim in claims["claims"]][:3]
    assert asked == ["groups.named", "groups.named", "groups.difference"]


def test_costs_name_the_threshold_and_how_much_it_answers(topics):
    (text,) = texts(decide(topics, costs={"wrong": 2, "ask": 1}), "decide.cheaper")
    assert text.startswith("Cheapest is to answer alone with a confidence of at least 0.")
    assert "% of the questions)" in text


def test_where_nothing_beats_asking_no_labels_are_asked_for(topics):
    (text,) = texts(decide(topics, costs={"wrong": 100, "ask": 1}), "decide.cheaper")
    assert text == "No threshold was found that is cheaper than always asking (1 per question)."


def test_too_few_labels_for_a_limit_are_said_and_no_error_is_made_up():
    rng = np.random.default_rng(1)
    said = rng.choice([0.5, 0.9], 30)
    table = pl.DataFrame({"confidence": said, "correct": (rng.random(30) < 0.6).astype(int)})
    (text,) = texts(decide(table, max_error=0.05), "decide.error_limit")
    assert "nan" not in text
    assert "that takes 45 labels; there are 30" in text


def test_a_cascade_that_always_asks_saves_nothing_and_says_so():
    rng = np.random.default_rng(2)
    n = 1_200
    rows = [
        pl.DataFrame(
            {
                "question_id": [f"q{i}" for i in range(n)],
                "model": [model] * n,
                "confidence": rng.choice([0.6, 0.7, 0.8], n),
                "correct": (rng.random(n) < rate).astype(int),
            }
        )
        for model, rate in (("small", 0.2), ("large", 0.9))
    ]
    result = cascade(pl.concat(rows), models=["small", "large"], price=[1, 10])
    (text,) = texts(result, "cascade.beats_largest")
    assert text.startswith("Nothing is saved: this policy")
    assert text.endswith("always asks large.")


def test_who_is_right_more_often_is_said_of_the_questions_that_both_have():
    rng = np.random.default_rng(3)
    rows = [
        pl.DataFrame(
            {
                "question_id": [f"q{i}" for i in range(start, 900)],
                "model": [model] * (900 - start),
                "confidence": rng.uniform(0.5, 1, 900 - start),
                "correct": (rng.random(900 - start) < rate).astype(int),
            }
        )
        for model, rate, start in (("whole", 0.5, 0), ("part", 0.8, 300))
    ]
    result = cal.compare(pl.concat(rows), resamples=100)
    (text,) = texts(result, "compare.more_accurate")
    assert "600 questions that both have" in text


def test_the_method_that_lacks_most_rows_is_warned_of_first():
    def entry(method, lost):
        rates = {"accuracy": 0.6, "missing_accuracy": 0.3, "kept_accuracy": 0.6, "missing_p": 0.0}
        counts = {"n": 1000 - lost, "dropped": lost, "expected": 1000, "only_method": False}
        return {"model": "a", "method": method, "values": 50, **counts, **rates}

    first, second = data_warnings([entry("few", 150), entry("many", 550)])
    assert first["text"].startswith("55 % of the rows of a (many)")
    assert second["text"].startswith("15 % of the rows of a (few)")


def test_the_model_with_the_largest_group_is_told_first():
    def claim(model, value, text):
        subject = {"model": model, "method": "p"}
        return Claim("groups.stands_out", subject, "shown", text, value)

    found = [claim("a", 0.1, "a 1"), claim("a", 0.3, "a 2"), claim("b", 0.2, "b 1")]
    assert headline(found, 3) == ["b 1", "a 1", "a 2"]
