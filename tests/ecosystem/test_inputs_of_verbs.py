"""Whatever kind of table a verb is given, its answer is that of the same table in a file."""

import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal

N = 240


def frame():
    rng = np.random.default_rng(11)
    said = np.round(rng.uniform(0.4, 1, N), 3)
    return pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(N // 2)] * 2,
            "model": ["small"] * (N // 2) + ["large"] * (N // 2),
            "confidence": said,
            "correct": (rng.random(N) < said - 0.1).astype(int),
            "topic": ["law", "sport"] * (N // 2),
            "day": [f"2026-01-{1 + i % 20:02d}" for i in range(N // 2)] * 2,
        }
    )


TABLE = frame()
ONE = TABLE.filter(model="large")


class Dataset:
    """Has what a data set of Hugging Face has."""

    def __init__(self, table):
        self.table = table
        self.column_names = table.columns

    def to_polars(self):
        return self.table


class Columns:
    """Tensors by name, as jax and torch hold a batch: only the array protocol."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values)


def stream(monkeypatch, table):
    text = io.TextIOWrapper(io.BytesIO(table.write_csv().encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", text)
    return "-"


KINDS = {
    "polars": lambda t, _: t,
    "pandas": lambda t, _: t.to_pandas(),
    "arrow": lambda t, _: t.to_arrow(),
    "data set": lambda t, _: Dataset(t),
    "list of rows": lambda t, _: t.to_dicts(),
    "generator of rows": lambda t, _: (row for row in t.to_dicts()),
    "columns": lambda t, _: {name: t[name].to_list() for name in t.columns},
    "columns of arrays": lambda t, _: {
        name: pa.array(t[name].to_list()) if name == "correct" else t[name].to_numpy()
        for name in t.columns
    },
    "columns of Series": lambda t, _: {name: pd.Series(t[name].to_list()) for name in t.columns},
    "columns of tensors": lambda t, _: {
        name: Columns(t[name].to_numpy()) if t[name].dtype.is_numeric() else t[name].to_list()
        for name in t.columns
    },
    "standard input": lambda t, monkeypatch: stream(monkeypatch, t),
}
VERBS = {
    "audit": (TABLE, lambda data: cal.audit(data, resamples=20)),
    "compare": (TABLE, lambda data: cal.compare(data, resamples=50)),
    "groups": (ONE, lambda data: cal.groups(data, features=["topic"])),
    "decide": (ONE, lambda data: cal.decide(data, max_error=0.5)),
    "plan": (ONE, lambda data: cal.plan(data, precision=0.1)),
    "monitor": (ONE, lambda data: cal.monitor(data, every=40)),
}


def told(result):
    """Return what a document says, without where its data came from and what took how long."""
    return {k: v for k, v in result.to_dict().items() if k in ("results", "claims", "models")}


@pytest.fixture(scope="module")
def of_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    found = {}
    for name, (table, verb) in VERBS.items():
        table.write_csv(folder / f"{name}.csv")
        found[name] = told(verb(folder / f"{name}.csv"))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VERBS)
def test_every_kind_in_every_verb(name, kind, of_file, monkeypatch):
    table, verb = VERBS[name]
    found = told(verb(KINDS[kind](table, monkeypatch)))
    assert found == of_file[name]
