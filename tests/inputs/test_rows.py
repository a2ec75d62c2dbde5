"""Rows behind a number: every order and filter against the table itself, whole and in parts."""

import numpy as np
import polars as pl
import pytest

from calibrant.inputs import open_rows as opening
from calibrant.inputs.open_rows import open_rows
from calibrant.inputs.rows import SORTS, RowQuery

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
    monkeypatch.setattr("calibrant.inputs.rows._STRETCH", 100)
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
