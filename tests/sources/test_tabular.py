"""Rows of a table become yes/no questions, one sentence per column."""

import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.data.questions import TabularTask, tabular_questions

TASK = TabularTask(
    target="income",
    positive=">50K",
    question="Does this person earn more than $50,000 a year?",
    columns={"age": "The age is {value} years.", "sex": "The person is {value}."},
    values={"sex": {"F": "a woman", "M": "a man"}},
    introduction="This is a person in the census of 1994.",
)
ROWS = pl.DataFrame(
    {"age": [39, None], "sex": ["F", "M"], "income": [">50K", "<=50K"], "secret": [1, 2]}
)


def test_text_and_outcome():
    frame = tabular_questions(ROWS, TASK)
    assert frame["text"][0] == (
        "This is a person in the census of 1994.\n- The age is 39 years.\n- The person is a woman."
        "\nDoes this person earn more than $50,000 a year?"
    )
    assert "The age is unknown years." in frame["text"][1]
    assert frame["references"].to_list() == [[["Yes"]], [["No"]]]
    assert frame["kind"].to_list() == ["binary"] * 2
    assert frame.columns[-2:] == ["age", "sex"]


def test_what_is_refused():
    with pytest.raises(InputError, match="there is no column 'incme'"):
        tabular_questions(ROWS.rename({"income": "x"}), TabularTask("incme", 1, "?", {}))
    with pytest.raises(InputError, match="no row has the outcome 'rich'"):
        tabular_questions(ROWS, TabularTask("income", "rich", "?", {"age": "{value}"}))
    with pytest.raises(InputError, match="must not be told"):
        tabular_questions(ROWS, TabularTask("income", ">50K", "?", {"income": "{value}"}))


def test_adult(shared_data):
    path = shared_data / "tabular" / "uci_adult_with_probs.parquet"
    columns = [name for name in pl.read_parquet(path, n_rows=1).columns if name not in ("y",)]
    task = TabularTask("y", 1, "So?", {columns[0]: "It is {value}."})
    frame = tabular_questions(path, task, limit=500)
    truth = pl.read_parquet(path, n_rows=500)["y"]
    said = frame["references"].list.first().list.first() == "Yes"
    assert said.to_list() == (truth == 1).to_list()
