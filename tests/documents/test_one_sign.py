"""A gap has one sign in every document: confidence minus share right, above 0 is over-confident."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.document import plain
from calibrant.labels.labelling.labellers import judged_estimates

DOCUMENTS = sorted((Path(__file__).parents[1] / "golden/documents").glob("*.json.gz"))


def number(value):
    return value.get("value") if isinstance(value, dict) else value


def gaps_of(part, path=""):
    """Yield every gap that stands beside a confidence and a share right: path, gap, difference."""
    if isinstance(part, list):
        for entry in part:
            yield from gaps_of(entry, path)
    if not isinstance(part, dict):
        return
    stated = next((part[key] for key in ("mean_confidence", "confidence") if key in part), None)
    right = next((part[key] for key in ("accuracy", "rate") if key in part), None)
    for key, value in part.items():
        yield from gaps_of(value, f"{path}.{key}")
        if key in ("gap", "confidence_gap", "overall_gap"):
            values = [number(one) for one in (value, stated, right)]
            if all(isinstance(one, float) for one in values):
                yield f"{path}.{key}", values[0], values[1] - values[2]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name.partition(".")[0])
def test_the_gap_of_a_document_is_confidence_minus_share_right(path):
    document = json.loads(gzip.decompress(path.read_bytes()))
    for where, gap, difference in gaps_of(document):
        assert gap == pytest.approx(difference, abs=1e-6), where


def test_most_kinds_of_documents_hold_a_gap():
    held = {
        path.name.partition("-")[0]
        for path in DOCUMENTS
        if list(gaps_of(json.loads(gzip.decompress(path.read_bytes()))))
    }
    assert {"audit", "groups", "label", "monitor"} <= held


def values_of(part, key):
    if isinstance(part, list):
        for entry in part:
            yield from values_of(entry, key)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name == key:
                yield number(value)
            yield from values_of(value, key)


def test_an_over_confident_model_has_gaps_above_0_in_every_document(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    stated = rng.choice([0.6, 0.7, 0.8, 0.9], 1200)
    table = {
        "question_id": [f"q{n}" for n in range(1200)],
        "confidence": stated,
        "correct": (rng.random(1200) < stated - 0.4).astype(int),
        "topic": rng.choice(["law", "art"], 1200),
    }
    pool = pl.DataFrame(table)
    pool.drop("correct").write_csv("pool.csv")
    cal.label_next("pool.csv", out="batch.csv", size=100, who="ann")
    batch = pl.read_csv("batch.csv", infer_schema=False).drop("correct")
    batch.join(pool.select("question_id", "correct"), on="question_id").write_csv("batch.csv")
    cal.label_add("pool.csv", "batch.csv", who="ann")
    documents = {
        "audit": cal.audit(table),
        "groups": cal.groups(table, features=["topic"]),
        "monitor": cal.monitor(table, every=200),
        "label": cal.label_status("pool.csv"),
        "people and a judge": judged_estimates(
            stated, np.where(np.arange(1200) < 300, table["correct"], np.nan), table["correct"]
        ),
    }
    for name, document in documents.items():
        parts = plain(document)
        found = [*values_of(parts, "gap"), *values_of(parts, "confidence_gap")]
        if name == "people and a judge":
            parts = [parts["gap"], *parts["bins"]]
            found = [*values_of(parts, "combined"), *values_of(parts, "judge_only")]
        sizes = [gap for gap in found if isinstance(gap, float)]
        assert sizes, name
        assert min(sizes) > 0.0, name


def test_a_state_of_the_first_version_is_turned_when_it_is_read(tmp_path):
    rng = np.random.default_rng(0)
    stated = rng.uniform(0.5, 1.0, 600)
    rows = {"confidence": stated, "correct": (rng.random(600) < stated - 0.2).astype(int)}
    path = tmp_path / "state.json"
    cal.monitor(rows, every=200, state=path)
    state = json.loads(path.read_text())
    assert state["schema"] == "calibrant.monitor_state/2"
    for entry in state["watches"][0]["history"]:
        value, low, high, *others = entry["gap"]
        assert value > 0
        entry["gap"] = [-value, -high, -low, *others]
    path.write_text(json.dumps({**state, "schema": "calibrant.monitor_state/1"}))
    later = cal.monitor(rows, every=200, state=path)["results"][0]
    assert len(later["history"]) == 6
    assert all(
        row["gap"]["value"] > 0 and row["gap"]["low"] < row["gap"]["high"]
        for row in later["history"]
    )
