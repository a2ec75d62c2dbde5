"""Names of groups and ids of several columns: what is written differently stays different."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data import load_scores


@pytest.fixture
def versions(tmp_path):
    """300 rows of the versions 1.1, 1.10 and 2.0, which a reader of numbers takes for two."""
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 300)
    names = ["1.1", "1.10", "2.0"] * 100
    rows = {"confidence": sure, "correct": (rng.random(300) < sure).astype(int), "version": names}
    path = tmp_path / "versions.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


def groups_of(entries):
    return {entry["group"]["version"]: entry["n"] for entry in entries if entry["group"]}


EACH = {"1.1": 100, "1.10": 100, "2.0": 100}


def test_an_audit_keeps_the_names_of_groups(versions):
    assert groups_of(cal.audit(versions, by=["version"])["results"]) == EACH


def test_a_streamed_audit_keeps_them_too(versions):
    found = cal.audit(versions, by=["version"], engine="local")
    assert found["reading"]["way"] == "streamed"
    assert groups_of(found["results"]) == EACH


def test_a_plan_keeps_them_too(versions):
    found = cal.plan(versions, claim="ece<0.2", by=["version"])["plans"]
    sizes = {entry["group"]["version"]: entry["items"] for entry in found if entry["group"]}
    assert sizes == EACH


def test_a_comparison_keeps_them_too(versions, tmp_path):
    rows = pl.read_csv(versions, infer_schema=False).with_row_index("question_id")
    both = pl.concat([rows.with_columns(model=pl.lit(name)) for name in ("a", "b")])
    path = tmp_path / "both.csv"
    both.write_csv(path)
    found = cal.compare(path, by=["version"]).to_dict()
    assert {pair["group"]["version"] for pair in found["pairs"] if pair.get("group")} == set(EACH)


def test_ids_of_several_columns_are_not_mixed_up():
    table = {
        "set": ["a|b", "a", "a\\", "a"],
        "number": ["c", "b|c", "|c", "\\||c"],
        "confidence": [0.9, 0.8, 0.7, 0.6],
        "correct": [1, 0, 1, 1],
    }
    read = load_scores(table, question="set,number")
    assert read.frame["question_id"].n_unique() == 4
    with pytest.raises(InputError, match=r"more than once|same question"):
        load_scores({**table, "set": ["a"] * 4, "number": ["b"] * 4}, question="set,number")


def test_ids_without_the_mark_are_what_they_were():
    table = {"set": ["a"], "number": [7], "confidence": [0.9], "correct": [1]}
    assert load_scores(table, question="set,number").frame["question_id"].to_list() == ["a|7"]
