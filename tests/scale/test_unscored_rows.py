"""Accuracy is over all graded answers: in memory, streamed, and summed part by part elsewhere."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.batches import table_parts
from calibrant.data.part_sums import PartSums, sum_part
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.sources.streaming import sum_plan

N = 3_000


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(4)
    said = rng.choice([0.6, 0.75, 0.9], N)
    right = rng.random(N) < said
    stated = rng.random(N) > np.where(right, 0.02, 0.4)
    frame = pl.DataFrame(
        {
            "question": np.arange(N),
            "model": rng.choice(["a", "b"], N),
            "topic": rng.choice(["x", "y"], N),
            "correct": right.astype(int),
            "confidence": said,
        }
    ).with_columns(confidence=pl.when(pl.Series(stated)).then("confidence"))
    frame.write_parquet(tmp_path / "scores.parquet", row_group_size=500)
    return frame, tmp_path / "scores.parquet"


def told(entry):
    accuracy = entry["metrics"]["accuracy"]
    rounded = [round(accuracy[name], 12) for name in ("value", "low", "n")]
    return (entry["n"], entry["missing"]["rows"], *rounded)


def by_place(document):
    return {(e["model"], *(e["group"] or {}).values()): told(e) for e in document["results"]}


def test_accuracy_counts_answers_without_a_confidence(table):
    frame, path = table
    in_memory = by_place(cal.audit(path, by=["topic"], resamples=20))
    assert by_place(cal.audit(path, by=["topic"], resamples=20, engine="local")) == in_memory
    for (model, *topic), (n, lost, value, _, graded) in in_memory.items():
        own = frame.filter(pl.col("model") == model, pl.col("topic").is_in(topic or ["x", "y"]))
        assert value == pytest.approx(own["correct"].mean(), abs=1e-11)
        assert (n, lost, graded) == (
            own["confidence"].count(),
            own["confidence"].null_count(),
            own.height,
        )


def test_parts_count_them_by_model_and_group(table):
    frame, path = table[0], str(table[1])
    plan = sum_plan(path, ReadingOptions(), bins=15, by=("topic",)).plan
    total = PartSums()
    for part in table_parts(path, plan.columns):
        total.add(sum_part(part, plan))
    lost = frame.filter(pl.col("confidence").is_null())
    counts = lost.group_by("model", "topic", "correct").len()
    found = {
        (model, value, outcome): int(rows)
        for (model, _, _, value), pair in total.unscored.items()
        for outcome, rows in enumerate(pair)
        if rows
    }
    assert found == {tuple(row[:3]): row[3] for row in counts.rows()}


def test_questions_with_several_rows_count_between_questions():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(60), 5)
    right = (rng.random(60) < 0.6)[ids].astype(int)
    said = pl.Series(rng.uniform(0.5, 1, 300))
    frame = pl.DataFrame({"question_id": ids, "correct": right, "confidence": said}).with_columns(
        confidence=pl.when(pl.int_range(300) % 7 > 0).then("confidence")
    )
    entry = cal.audit(frame, repeats=True, resamples=20)["results"][0]
    accuracy = entry["metrics"]["accuracy"]
    assert accuracy["value"] == pytest.approx(right.mean())
    assert accuracy["n"] == 60
    # Rows of a question agree: 300 rows tell as much as 60.
    assert accuracy["high"] - accuracy["low"] > 0.2
