"""Rows that name no model: a streamed table is held to the rule of a table in memory."""

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError


def table(missing, count=400):
    names = ["small" if row % 2 else "large" for row in range(count)]
    names[6] = missing
    return pl.DataFrame(
        {
            "question_id": [f"q{row // 2}" for row in range(count)],
            "model": pl.Series(names, dtype=pl.String),
            "confidence": [0.25, 0.5, 0.75, 0.9] * (count // 4),
            "correct": [0, 1, 1, 1, 1, 0, 0, 1] * (count // 8),
        }
    )


@pytest.mark.parametrize("missing", [None, ""])
def test_a_row_without_a_model_is_refused_or_counted(missing, tmp_path):
    path = tmp_path / "scores.parquet"
    table(missing).write_parquet(path)
    with pytest.raises(InputError, match=r"scores\.parquet, row 7: the row names no model"):
        cal.audit(path, engine="local")
    streamed = cal.audit(path, engine="local", on_invalid="drop", resamples=20)
    whole = cal.audit(path, on_invalid="drop", resamples=20)
    assert streamed["dropped"] == whole["dropped"] == {"model_missing": 1}
    assert streamed["emptied_models"] == []
    counts = [
        {entry["model"]: entry["n"] for entry in result["results"]} for result in (streamed, whole)
    ]
    assert counts[0] == counts[1] == {"large": 199, "small": 200}


def test_a_model_of_the_name_none_is_a_model(tmp_path):
    path = tmp_path / "scores.parquet"
    table("None").write_parquet(path)
    found = cal.audit(path, engine="local", resamples=20)
    assert {entry["model"] for entry in found["results"]} == {"None", "large", "small"}


def test_a_folder_without_the_name_of_its_model_is_refused(tmp_path):
    for model in ("small", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / f"model={model}"
        folder.mkdir()
        table("x").drop("model").unique("question_id").write_parquet(folder / "a.parquet")
    with pytest.raises(InputError, match="row 1: the row names no model"):
        cal.audit(tmp_path, engine="local")


def test_a_missing_group_still_reads_none(tmp_path):
    path = tmp_path / "scores.parquet"
    table("small").with_columns(topic=pl.Series([None, "law"] * 200)).unique(
        ["question_id", "model"]
    ).write_parquet(path)
    found = cal.audit(path, engine="local", by=["topic"], resamples=20)
    groups = {(entry["group"] or {}).get("topic") for entry in found["results"]}
    assert groups == {None, "None", "law"}
