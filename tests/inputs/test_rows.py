"""Rows behind a number: every order and filter against the table itself, whole and in parts."""

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.sources.rows import SORTS, RowQuery
from calibrant.labels.pool import open_pool
from calibrant.verbs.opening import open_rows as opening
from calibrant.verbs.opening.open_rows import open_rows

SIZE = 7


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    n = 900
    said = rng.choice([0.1, 0.5, 0.55, 0.7, 0.9, 1.0], n)
    right = (rng.random(n) < 0.6).astype(float)
    return pl.DataFrame(
        {
            "question_id": [f"q{i // 3}" for i in range(n)],
            "model": ["a", "b", "c"] * (n // 3),
            "topic": rng.choice(["law", "math"], n),
            "confidence": said,
            "correct": right,
            "question": [f"What is thing {i // 3}?" for i in range(n)],
            "answer": [f"It is {i}" for i in range(n)],
        }
    )


@pytest.fixture(scope="module", params=["whole", "in parts"])
def rows(request, table, tmp_path_factory):
    if request.param == "whole":
        return open_rows(table)
    path = tmp_path_factory.mktemp("rows") / "table.parquet"
    table.write_parquet(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "is_large", lambda _: True)
        patch.setattr(opening, "_CHUNK", 130)
        return open_rows(path)


def expected(table, query):
    """The rows of a query, by the plainest way."""
    found = table.with_row_index("row", offset=1)
    if query.models:
        found = found.filter(pl.col("model").is_in(query.models))
    for name, value in query.groups:
        found = found.filter(pl.col(name) == value)
    if query.low is not None:
        closed = "both" if query.high == 1 else "left"
        found = found.filter(pl.col("confidence").is_between(query.low, query.high, closed=closed))
    if query.grade:
        found = found.filter(pl.col("correct") == (query.grade == "right"))
    if query.split:
        asked = table.group_by("question_id").agg(pl.col("correct").n_unique() > 1)
        split = asked.filter("correct")["question_id"]
        found = found.filter(pl.col("question_id").is_in(split.implode()))
    if query.words:
        found = found.filter(pl.col("answer").str.contains(query.words, literal=True))
    keys = {"worst": ["correct", "confidence"], "row": [], "-confidence": ["confidence"],
            "confidence": ["confidence"]}[query.sort]  # fmt: skip
    down = [name == "confidence" and query.sort != "confidence" for name in keys]
    return (
        found.sort(keys, descending=down, nulls_last=True, maintain_order=True) if keys else found
    )


FILTERS = [
    {},
    {"grade": "wrong"},
    {"grade": "right", "models": ("b",)},
    {"models": ("a", "c"), "low": 0.5, "high": 1.0},
    {"groups": (("topic", "law"),), "low": 0.5, "high": 0.7},
    {"split": True},
    {"words": "is 77"},
]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("filters", FILTERS, ids=[" ".join(f) or "all" for f in FILTERS])
def test_pages_are_those_of_the_table(rows, table, sort, filters):
    query = RowQuery(sort=sort, size=SIZE, **filters)
    wanted = expected(table, query)
    for start in {0, SIZE, max(0, wanted.height - 3), wanted.height + 5}:
        page = rows.page(RowQuery(sort=sort, size=SIZE, start=start, **filters))
        here = wanted.slice(start, SIZE)
        assert [row["confidence"] for row in page.rows] == here["confidence"].to_list()
        assert (page.total, page.graded) == (wanted.height, wanted.height)
        assert page.wrong == wanted.filter(pl.col("correct") == 0).height
        for row in page.rows:
            own = table.row(row["row"] - 1, named=True)
            assert {name: row[name] for name in ("question_id", "answer", "model", "confidence",
                    "correct")} == {n: own[n] for n in ("question_id", "answer", "model",
                    "confidence", "correct")}  # fmt: skip
        if sort == "row":
            assert [row["row"] for row in page.rows] == here["row"].to_list()
    every = rows.page(RowQuery(sort=sort, size=table.height, **filters)).rows
    assert sorted(row["row"] for row in every) == sorted(wanted["row"].to_list())


def test_a_search_stops_and_goes_on(rows, table, monkeypatch):
    monkeypatch.setattr("calibrant.data.sources.rows._STRETCH", 100)
    query = RowQuery(words="It IS 12")
    shares = []
    while not shares or shares[-1] < 1:
        page = rows.page(query, patience=0.0)
        shares.append(page.searched)
    assert 5 < len(shares) < 20
    assert shares == sorted(shares)
    assert page.total == table.filter(pl.col("answer").str.contains("It is 12")).height


def test_one_row_is_shown_with_everything_about_its_question(rows, table):
    found = rows.question(10)
    assert found["row"] == 11
    assert found["answer"] == "It is 10"
    assert sorted(row["model"] for row in found["all"]) == ["a", "b", "c"]


def odd_rows(path):
    rows = [(f"q{n}", "a", f"Town {n}", 0.5 + n % 50 / 100, "yes" if n % 3 else "no")
            for n in range(60)]  # fmt: skip
    rows[0] = ("q0", "a", "Lyon", None, "no")
    rows[1] = ("q1", "a", "Lyon", None, None)
    rows[2] = ("q2", "a", "Lyon", 0.8, "?")
    rows[3] = ("q3", "a", "Lyon", 1.8, "no")
    rows[4] = ("q4", None, "Lyon", 0.8, "no")
    rows[5] = (None, "a", "Lyon", 0.8, "no")
    names = ["question", "model", "answer", "confidence", "correct"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(path)
    return path


def test_every_row_of_a_table_is_there_whatever_rule_it_breaks(tmp_path):
    found = open_rows(odd_rows(tmp_path / "odd.csv"))
    page = found.page(RowQuery(sort="row", size=100))
    assert [row["row"] for row in page.rows] == list(range(1, 61))
    assert [row["confidence"] for row in page.rows[:6]] == [None, None, 0.8, None, 0.8, 0.8]
    assert [row["correct"] for row in page.rows[:6]] == [0.0, None, None, 0.0, 0.0, 0.0]
    assert (page.rows[4]["model"], page.rows[5]["question_id"]) == ("not named", "not named")
    silent = found.page(RowQuery(grade="silent", sort="row"))
    assert [row["row"] for row in silent.rows] == [1, 2, 4]
    assert found.question(2)["left_out"].startswith("the outcome must be")
    assert found.question(6)["left_out"] is None
    # What nobody counts takes no part in what a model says too much.
    assert list(found.gaps("confidence")) == ["a"]


def test_a_message_names_no_column_that_the_file_does_not_have(tmp_path):
    path = tmp_path / "table.csv"
    pl.DataFrame({"correct": [1, 0, 1], "length": [3, 4, 5]}).write_csv(path)
    with pytest.raises(InputError) as refused:
        open_rows(path)
    assert "row_in_file" not in str(refused.value)


def test_rows_that_nobody_labelled_are_listed_without_a_grade(tmp_path):
    path = tmp_path / "pool.csv"
    said = [None if n == 7 else 0.5 + n / 200 for n in range(60)]
    ids = [f"q{n}" for n in range(60)]
    pl.DataFrame({"question_id": ids, "confidence": said, "answer": ids}).write_csv(path)
    session = open_pool(path, asked=ReadingOptions()).session
    assert open_rows(path).page(RowQuery(grade="open")).total == 60
    for item in session.take("ann", 10):
        session.store.label(item.id, "ann", "right")
    page = open_rows(path).page(RowQuery())
    assert (page.total, page.graded, page.wrong) == (60, 10, 0)
    assert open_rows(path).page(RowQuery(grade="silent")).total == 1


def test_what_describes_a_method_is_no_group_of_answers():
    rows = pl.DataFrame(
        {
            "question_id": [f"q{n % 40}" for n in range(80)],
            "model": "m",
            "method": ["said"] * 40 + ["drawn"] * 40,
            "about": ["greedy"] * 40 + ["modal"] * 39 + [None],
            "kind": ["open", "number"] * 40,
            "confidence": [0.5] * 80,
            "correct": [0, 1] * 40,
        }
    )
    assert list(open_rows(rows).facets) == ["kind"]
