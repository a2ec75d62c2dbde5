"""What other libraries hold is audited as it is, with the same numbers."""

import io
import subprocess
import sys
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.sources.objects import as_column

RNG = np.random.default_rng(0)
C = RNG.uniform(0.4, 1, 200)
Y = (RNG.random(200) < C - 0.1).astype(int)
ROWS = [{"confidence": float(c), "correct": int(y)} for c, y in zip(C, Y, strict=True)]


class Tensor:
    """Acts as a tensor that has a gradient and lies on another device."""

    def __init__(self, values, steps=("detach", "cpu")):
        self.values, self.steps = values, steps

    def detach(self):
        return Tensor(self.values, self.steps[1:])

    def cpu(self):
        return Tensor(self.values, self.steps[1:])

    def __array__(self, dtype=None, copy=None):
        if self.steps:
            raise RuntimeError("can't convert: call detach and cpu first")
        return self.values


class Capsule:
    """Has nothing but the DLPack protocol."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Dataset:
    """Has what a data set of Hugging Face has."""

    column_names = ("confidence", "correct")

    def to_polars(self):
        return pl.DataFrame(ROWS)


def error_of(*given):
    return cal.audit(*given, resamples=20)["results"][0]["metrics"]["ece"]["value"]


ARRAYS = {
    "pandas": (pd.Series(C), pd.Series(Y)),
    "pandas with another index": (pd.Series(C, index=range(200, 0, -1)), pd.Series(Y)),
    "polars": (pl.Series(C), pl.Series(Y)),
    "arrow": (pa.array(C), pa.array(Y)),
    "arrow in chunks": (pa.chunked_array([C[:9], C[9:]]), pa.chunked_array([Y])),
    "tensor": (Tensor(C), Tensor(Y)),
    "dlpack": (Capsule(C), Capsule(Y)),
    "mixed": (pl.Series(C), list(map(bool, Y))),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_columns(name):
    assert error_of(*ARRAYS[name]) == error_of(C, Y)


def test_generators():
    assert error_of((c for c in C), (y for y in Y)) == error_of(C, Y)
    assert error_of(row for row in ROWS) == error_of(C, Y)


@pytest.mark.parametrize(
    "table", [ROWS, tuple(ROWS), Dataset(), pa.table({"confidence": C, "correct": Y})]
)
def test_tables(table):
    assert error_of(table) == error_of(C, Y)


def test_rows_in_a_comparison():
    rows = [
        {"question_id": str(i), "model": m, "confidence": float(c), "correct": int(y)}
        for i, (c, y) in enumerate(zip(C, Y, strict=True))
        for m, c in (("a", c), ("b", c**2))
    ]
    listed = cal.compare(rows, resamples=20)
    framed = cal.compare(pl.DataFrame(rows), resamples=20)
    assert listed["pairs"] == framed["pairs"]
    assert listed["pairs"]


def test_missing_values_stay_missing():
    short = pl.Series([None, *C[1:]])
    document = cal.audit(short, pl.Series(Y), on_invalid="drop", resamples=20)
    assert document["results"][0]["n"] == 199
    assert sum(document["dropped"].values()) == 1
    found = as_column(pa.array([0.5, None]), "confidence")
    assert np.isnan(found[1])


@pytest.mark.parametrize("column", [pd.Series(C), pl.Series(C), pa.array(C), C])
def test_confidences_alone_are_refused(column):
    with pytest.raises(InputError, match=r"audit\(confidence, correct\)|a table is"):
        cal.audit(column)


def test_what_is_no_column_is_named():
    with pytest.raises(InputError, match="confidence cannot be read as an array from object"):
        cal.audit(object(), Y)


def csv():
    return "confidence,correct\n" + "".join(f"{r['confidence']},{r['correct']}\n" for r in ROWS)


def test_standard_input_in_python(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(csv()))
    assert error_of("-") == error_of(C, Y)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(InputError, match="standard input: there are no rows"):
        cal.audit("-")


def test_standard_input_in_the_shell():
    command = Path(sys.executable).parent / "calibrant"
    words = [command, "audit", "-", "--resamples", "20", "--json", "-"]
    done = subprocess.run(words, input=csv(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{error_of(C, Y):.10}"[:10] in done.stdout


GRADES = [None, *Y[1:].tolist()]
MISSING = {
    "boolean": pd.Series(pd.array([None, *(Y[1:] == 1)], dtype="boolean")),
    "Int64": pd.Series(pd.array(GRADES, dtype="Int64")),
    "arrow": pd.Series(GRADES, dtype="int64[pyarrow]"),
    "categories": pd.Series(pd.Categorical(GRADES)),
    "string": pd.Series([None, *Y[1:].astype(str)], dtype="string"),
    "objects": np.array([pd.NA, *Y[1:]], dtype=object),
    "list of None": GRADES,
    "list of NA": [pd.NA, *Y[1:].tolist()],
    "list of NaT": [pd.NaT, *Y[1:].tolist()],
}


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("in_table", [False, True])
def test_whatever_says_that_a_value_is_missing_is_read_so(name, in_table):
    """Some were 'ambiguous', some 'no number but Object', where a table named the row."""
    given = MISSING[name]
    data = ({"confidence": C, "correct": given},) if in_table else (C, given)
    with pytest.raises(InputError, match="row 1: the outcome is missing"):
        cal.audit(*data, on_invalid="error")
    document = cal.audit(*data, on_invalid="drop", resamples=20)
    assert document["dropped"] == {"correct_missing": 1}
    whole = cal.audit(C[1:], Y[1:], resamples=20)
    assert document["results"][0]["metrics"] == whole["results"][0]["metrics"]


def test_a_series_of_objects_keeps_its_own_values():
    given = pd.Series([pd.NA, *Y[1:]], dtype=object)
    cal.audit(C, given, on_invalid="drop", resamples=20)
    assert given[0] is pd.NA


def test_numbers_of_any_kind_are_numbers():
    whole = cal.audit(C, Y, resamples=20)["results"]
    decimals = [Decimal(str(value)) for value in C.tolist()]
    kinds = (np.array(decimals, dtype=object), decimals, C.astype(np.longdouble))
    for said in kinds:
        assert cal.audit(said, Y, resamples=20)["results"] == whole
    columns = {"confidence": iter(C.tolist()), "correct": (y for y in Y.tolist())}
    assert cal.audit(columns, resamples=20)["results"] == whole


def test_a_lazy_frame_is_read_without_a_warning():
    frame = pl.LazyFrame({"confidence": C, "correct": Y})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cal.audit(frame, resamples=20)["results"][0]["n"] == len(C)
