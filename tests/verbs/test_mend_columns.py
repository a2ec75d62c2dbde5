"""`mend` with other columns: read where they pay, saved, applied; and several methods together."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from support import call

RIGHT = {"law": 0.35, "art": 0.85}


def table(n=1200, seed=0, *, tells=True):
    """Return answers whose topic decides how often they are right, or has nothing to do with it."""
    rng = np.random.default_rng(seed)
    topic = rng.choice(list(RIGHT), n)
    rate = np.array([RIGHT[name] for name in topic]) if tells else np.full(n, 0.6)
    return pl.DataFrame(
        {
            "question_id": [f"q{row}" for row in range(n)],
            "confidence": rng.choice([0.8, 0.9, 1.0], n),
            "topic": topic,
            "tokens": rng.integers(5, 400, n),
            "correct": (rng.random(n) < rate).astype(int),
        }
    )


def test_columns_that_tell_more_are_read_saved_and_applied(tmp_path):
    path, saved = tmp_path / "scores.csv", tmp_path / "mend.json"
    table().write_csv(path)
    first = call("mend", path, "--features", "topic,tokens")
    assert "--features topic,tokens --save mend.json" in " ".join(first.stdout.split())
    done = call("mend", path, "--features", "topic,tokens", "--save", saved)
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "With tokens and topic the Brier score falls by a further" in words
    mended = cal.load_mend(saved)
    for topic, rate in RIGHT.items():
        row = {"topic": topic, "tokens": 100}
        low, high = mended.interval(0.9, row)
        assert low < rate < high
        assert abs(mended.probability(0.9, row) - rate) < 0.08
    # Without its columns a row gets what its confidence alone means.
    assert abs(mended.probability(0.9) - 0.6) < 0.08
    fresh = table(40, seed=5)
    applied = mended.apply(fresh)
    for row in applied.iter_rows(named=True):
        assert row["mended"] == pytest.approx(mended.probability(row["confidence"], row), abs=1e-12)
        ends = mended.interval(row["confidence"], row)
        assert (row["mended_low"], row["mended_high"]) == pytest.approx(ends, abs=1e-12)
    with pytest.raises(InputError, match="topic"):
        mended.apply(fresh.drop("topic"))
    assert mended.update([0.9] * 30, [1] * 30).columns is None
    # Another verb reads the confidence alone, and says so.
    read = cal.audit(table(seed=6), mend=saved)
    assert "the map's columns (tokens, topic) are not read" in read["reading"]["mended"]


def test_a_promise_with_columns_holds_on_new_rows():
    found = cal.mend(table(2000), features=["topic", "tokens"])
    (entry,) = found["results"]
    assert entry["columns"]["verdict"] == "mended"
    ids = [claim["id"] for claim in found["claims"]]
    assert ids == ["mend.off_by", "mend.gain", "mend.columns"]
    mended = cal.data.recalibration_map.RecalibrationMap.from_dict(entry)
    fresh = table(20_000, seed=3)
    values = mended.apply(fresh)["mended"].to_numpy()
    truth = fresh["topic"].replace_strict(RIGHT, return_dtype=pl.Float64).to_numpy()
    assert np.abs(values - truth).mean() <= entry["columns"]["promise"]["off_by"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [(300, "300 labels are too few to read topic as well"), (1200, "reads the confidence alone")],
)
def test_columns_that_tell_nothing_are_left_out(rows, words):
    found = cal.mend(table(rows, tells=False), features=["topic"])
    (entry,) = found["results"]
    assert entry["columns"]["verdict"] != "mended"
    assert entry["columns"]["score"] is None
    assert words in found["claims"][-1]["text"]
    assert cal.data.recalibration_map.RecalibrationMap.from_dict(entry).columns is None


def test_several_methods_are_mended_together(tmp_path):
    one = table(900).drop("topic", "tokens")
    rng = np.random.default_rng(4)
    second = pl.Series("confidence", np.where(one["correct"] == 1, 0.8, 0.3) + rng.random(900) / 5)
    long = pl.concat(
        [
            one.with_columns(method=pl.lit("stated")),
            one.with_columns(second, method=pl.lit("draws")),
        ]
    )
    found = cal.mend(long, methods=["stated", "draws"], save=tmp_path / "mend.json")
    (entry,) = found["results"]
    assert (entry["method"], entry["columns"]["names"]) == ("stated", ["draws"])
    assert entry["columns"]["promise"]["gain_low"] > 0.1
    mended = cal.load_mend(tmp_path / "mend.json")
    assert (
        mended.probability(0.9, {"draws": 0.95})
        > 0.8
        > 0.4
        > mended.probability(0.9, {"draws": 0.35})
    )
    assert len(json.loads((tmp_path / "mend.json").read_text())["columns"]["names"]) == 1
    with pytest.raises(InputError, match="drawn"):
        cal.mend(long, methods=["stated", "drawn"])
    twice = pl.concat([long, long.filter(pl.col("method") == "draws")])
    with pytest.raises(InputError, match="several confidences for one question"):
        cal.mend(twice, methods=["stated", "draws"], repeats=True)


def test_the_outcome_is_no_column_to_read():
    with pytest.raises(InputError, match="cannot be a feature"):
        cal.mend(table(), features=["correct"])
