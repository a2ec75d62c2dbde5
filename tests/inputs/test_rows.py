"""Rows behind a number: every one of them, the most confidently wrong first."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.inputs import open_rows as module
from calibrant.inputs import ways
from calibrant.inputs.open_rows import open_rows
from calibrant.inputs.rows import RowQuery, wrong_rows
from calibrant.verbs._rows import with_rows

rng = np.random.default_rng(3)
N = 900


@pytest.fixture
def frame():
    said = rng.choice([0.0, 0.2, 1 / 3, 0.4, 0.6, 2 / 3, 0.8, 0.95, 1.0], N)
    # Some values are stated once: they share slices, in which the others lie.
    said = np.where(rng.random(N) < 0.3, rng.random(N), said)
    return pl.DataFrame(
        {
            "question_id": [f"q{i // 2}" for i in range(N)],
            "model": ["big", "small"] * (N // 2),
            "topic": rng.choice(["law", "math"], N),
            "question": [f"What is {i // 2}?" for i in range(N)],
            "answer": [f"it is {i}" for i in range(N)],
            "reference": [f"{i // 2}" for i in range(N)],
            "confidence": said,
            "correct": (rng.random(N) < said * 0.7).astype(int),
        }
    )


def test_the_most_confidently_wrong_come_first(frame):
    page = open_rows(frame).page(RowQuery(size=N))
    assert page.total == N
    assert page.wrong == int((frame["correct"] == 0).sum())
    told = [(row["correct"], -row["confidence"]) for row in page.rows]
    assert told == sorted(told)
    row = page.rows[0]
    given = frame.row(row["row"] - 1, named=True)
    for name in ("question", "answer", "reference", "confidence", "model"):
        assert row[name] == given[name]
    assert row["group"] == {"topic": given["topic"]}


def test_a_bin_lists_as_many_rows_as_the_audit_counts(frame):
    rows = open_rows(frame)
    for entry in cal.audit(frame)["results"]:
        for bin_ in entry["reliability"]["bins"]:
            query = RowQuery(
                models=(entry["model"],),
                low=bin_["lower"],
                high=bin_["upper"],
                without=tuple(bin_.get("without", ())),
            )
            page = rows.page(query)
            assert page.total == bin_["n"]
            assert page.wrong == round(bin_["n"] * (1 - bin_["rate"]))


def test_rows_are_chosen_by_group_grade_words_and_disagreement(frame):
    rows = open_rows(frame)
    law = rows.page(RowQuery(groups=(("topic", "law"),), grade="right", size=N))
    kept = frame.filter(pl.col("topic") == "law", pl.col("correct") == 1)
    assert law.total == kept.height
    assert {row["answer"] for row in law.rows} == set(kept["answer"])
    assert rows.page(RowQuery(words="IS 777")).rows[0]["answer"] == "it is 777"
    split = rows.page(RowQuery(split=True, size=N))
    grades = frame.group_by("question_id").agg(pl.col("correct").n_unique())
    assert split.total == 2 * grades.filter(pl.col("correct") == 2).height
    with pytest.raises(InputError, match="no column of groups 'topics'"):
        rows.page(RowQuery(groups=(("topics", "law"),)))


@pytest.mark.parametrize("sort", ["confidence", "-confidence", "row"])
def test_pages_of_an_order_follow_each_other(frame, sort):
    rows = open_rows(frame)
    parts = [rows.page(RowQuery(sort=sort, start=k, size=300)).rows for k in (0, 300, 600)]
    together = [row for part in parts for row in part]
    assert len({row["place"] for row in together}) == N
    key = [row["row" if sort == "row" else "confidence"] for row in together]
    assert key == sorted(key, reverse=sort.startswith("-"))


def test_a_question_is_shown_with_all_answers_and_columns(frame):
    rows = open_rows(frame.with_columns(seconds=pl.Series(np.arange(N) / 7)))
    found = rows.question(10)
    assert found["question_id"] == "q5"
    assert {row["model"] for row in found["all"]} == {"big", "small"}
    assert found["columns"]["seconds"] == pytest.approx(10 / 7)


def test_rows_without_confidence_or_grade_are_there(frame):
    few = frame.with_columns(
        confidence=pl.when(pl.col("question_id") == "q1").then(None).otherwise("confidence"),
        correct=pl.when(pl.col("question_id") == "q2").then(None).otherwise("correct"),
    )
    rows = open_rows(few)
    assert rows.page(RowQuery(grade="open")).total == 2
    assert rows.page(RowQuery(words="q1")).total > 0
    assert rows.height == N


def test_a_large_table_is_looked_up_in_parts_and_says_the_same(frame, tmp_path, monkeypatch):
    path = tmp_path / "large.parquet"
    frame.write_parquet(path)
    small = open_rows(path)
    monkeypatch.setattr(ways, "STREAM_ROWS", 100)
    monkeypatch.setattr(module, "_CHUNK", 256)
    big = open_rows(path)
    assert isinstance(big.stored, pl.LazyFrame)
    for query in (
        RowQuery(grade="wrong"),
        RowQuery(models=("small",), low=0.5, high=0.9, start=20),
        RowQuery(words="what is 12"),
    ):
        ours, theirs = big.page(query), small.page(query)
        assert (ours.total, ours.wrong) == (theirs.total, theirs.wrong)
        assert [row["row"] for row in ours.rows] == [row["row"] for row in theirs.rows]
    assert big.question(700)["question"] == small.question(700)["question"]


def test_wrong_rows_are_listed_once_for_each_answer(frame):
    two = frame.with_columns(other=pl.col("confidence") * 0.9)
    rows = open_rows(two, {"confidence": "confidence,other"})
    found = wrong_rows(rows, 20)
    assert len(found) == 20
    assert len({(row["question_id"], row["model"]) for row in found}) == 20
    assert all(row["correct"] == 0 for row in found)


@pytest.mark.parametrize("verb", ["audit", "groups", "decide"])
def test_verbs_list_what_is_confidently_wrong(frame, verb):
    more = {"audit": {}, "groups": {"features": ["topic"]}, "decide": {"max_error": 0.4}}[verb]
    one = frame.filter(pl.col("model") == "big")
    plainly = getattr(cal, verb)(one, **more)
    result = getattr(cal, verb)(one, wrong=4, **more)
    assert [row["confidence"] for row in result["wrong"]] == [1.0] * 4
    assert {name: result[name] for name in plainly} == plainly.to_dict()
    text = str(result)
    assert "Wrong with the highest confidence" in text
    assert result["wrong"][0]["answer"] in text


def test_standard_input_has_no_rows_to_look_up():
    result = cal.audit([0.2, 0.9], [0, 1])
    with pytest.raises(InputError, match="standard input is read once"):
        with_rows(result, "-", {}, 3)


def test_a_search_stops_in_time_and_goes_on_when_asked_again(frame, monkeypatch):
    monkeypatch.setattr("calibrant.inputs.rows._STRETCH", 100)
    rows = open_rows(frame)
    asked = RowQuery(words="What IS 4", size=N)
    shares = [rows.page(asked, patience=0.0).searched for _ in range(3)]
    assert shares[0] < shares[-1] <= 1
    whole = rows.page(asked)
    assert whole.searched == 1
    kept = frame.filter(pl.col("question").str.contains("What is 4", literal=True))
    assert {row["answer"] for row in whole.rows} == set(kept["answer"])
    # Signs that a pattern would obey are letters here.
    assert rows.page(RowQuery(words="what.is")).total == 0


def test_rows_without_confidence_stand_last_in_every_order(frame):
    few = frame.with_columns(
        confidence=pl.when(pl.int_range(N) % 9 == 0).then(None).otherwise("confidence")
    )
    rows = open_rows(few)
    for sort in ("confidence", "-confidence"):
        said = [row["confidence"] for row in rows.page(RowQuery(sort=sort, size=N)).rows]
        stated = [value for value in said if value is not None]
        assert said[: len(stated)] == sorted(stated, reverse=sort.startswith("-"))
        assert len(said) == N
