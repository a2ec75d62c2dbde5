"""`decide --unit`: whole documents, runs that stop, claims that are dropped, rows that cluster."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.trust.selective.certify import certify, rows_per_label

FIELDS = ["vendor", "date", "total", "items"]


def documents(count=600, seed=0):
    """A table of fields: one row per document and field."""
    rng = np.random.default_rng(seed)
    log_odds = 4 - rng.normal(0, 1.2, (count, 1)) + rng.normal(0, 0.8, (count, len(FIELDS)))
    said = (1 / (1 + np.exp(-log_odds))).round(3)
    right = rng.random(said.shape) < said
    return pl.DataFrame(
        {
            "doc": np.repeat([f"d{n}" for n in range(count)], len(FIELDS)),
            "field": FIELDS * count,
            "confidence": said.ravel(),
            "correct": right.ravel().astype(int),
        }
    )


def wide(table):
    docs = table["doc"].unique(maintain_order=True)
    columns = {
        f"{field}_{name}": table.filter(pl.col("field") == field)[name]
        for field in FIELDS
        for name in ("confidence", "correct")
    }
    return pl.DataFrame({"doc": docs, **columns})


def runs(count=400, seed=1):
    rng = np.random.default_rng(seed)
    rows = []
    for run in range(count):
        good = rng.random() < 0.6
        for step in range(rng.integers(3, 12)):
            low = not good and step > 2
            said = np.clip(rng.normal(0.35 if low else 0.85, 0.12), 0.01, 0.99)
            rows.append({"run": f"r{run}", "step": step, "confidence": said, "correct": int(good)})
    return pl.DataFrame(rows)


@pytest.mark.parametrize("score", ["product", "min", "mean"])
def test_a_saved_policy_lets_whole_documents_pass(score, tmp_path):
    table, file = documents(), tmp_path / "p.json"
    found = cal.decide(table, unit="doc", score=score, max_error=0.15, save=file)
    (entry,) = found["results"]
    assert (entry["n"], entry["unit"]["rows"], entry["certified"]) == (600, 2400, True)
    assert entry["unit"]["rows_alone"] > entry["answered"]["value"]
    policy = cal.load_policy(file)
    units = table.group_by("doc", maintain_order=True).agg("confidence", pl.col("correct").min())
    passed = np.array([policy.answers(said) for said in units["confidence"].to_list()])
    assert passed.mean() == pytest.approx(entry["answered"]["value"])
    assert 1 - units["correct"].to_numpy()[passed].mean() == pytest.approx(entry["error"]["value"])
    assert policy.decide_many(units).tolist() == passed.tolist()
    assert policy.check(units.drop("correct")).outcome == "as certified"
    assert not any(policy.answers(said) for said in ([0.999, None, 0.999], []))


def test_a_wide_table_is_the_same_documents():
    table = documents()
    long, side = (
        cal.decide(data, unit="doc", max_error=0.15)["results"][0] for data in (table, wide(table))
    )
    for name in ("n", "threshold", "answered", "error"):
        assert side[name] == long[name]
    assert sorted(f["field"] for f in side["unit"]["fields"]) == sorted(FIELDS)
    assert [f["gap"] for f in long["unit"]["fields"]] == [f["gap"] for f in side["unit"]["fields"]]
    assert cal.groups(wide(table), unit="doc", features=["field"])["results"][0]["n"] == 2400


def test_what_is_left_of_a_document_is_no_document():
    table = documents().with_columns(
        confidence=pl.when(pl.int_range(pl.len()) % 97 == 0).then(None).otherwise("confidence")
    )
    (entry,) = cal.decide(table, unit="doc", max_error=0.15)["results"]
    lost = table.filter(pl.col("confidence").is_null())["doc"].n_unique()
    assert (entry["n"], entry["unit"]["left_out"]) == (600 - lost, lost)
    first = pl.int_range(pl.len()) == 0
    empty = documents().with_columns(doc=pl.when(first).then(pl.lit("")).otherwise("doc"))
    with pytest.raises(InputError, match="1 rows belong to no unit: doc is empty"):
        cal.decide(empty, unit="doc", max_error=0.15)


def test_runs_stop_where_a_step_is_unsure(tmp_path):
    table, file = runs(), tmp_path / "p.json"
    (entry,) = cal.decide(table, unit="run", stop=True, max_error=0.1, save=file)["results"]
    policy = cal.load_policy(file)
    groups = table.group_by("run", maintain_order=True).agg("confidence", pl.first("correct"))
    stopped = np.array([policy.stops(said) for said in groups["confidence"].to_list()])
    assert stopped.mean() == pytest.approx(entry["answered"]["value"])
    assert stopped.any()
    assert groups["correct"].to_numpy()[stopped].mean() <= 0.1
    assert 0 < entry["unit"]["steps_saved"] < 1
    with pytest.raises(InputError, match="says when a run stops"):
        policy.answers([0.9])
    with pytest.raises(InputError, match="different outcomes"):
        cal.decide(documents(), unit="doc", stop=True, max_error=0.1)


def test_claims_are_dropped_until_few_answers_keep_a_wrong_one(tmp_path):
    table, file = documents(), tmp_path / "p.json"
    (entry,) = cal.decide(table, unit="doc", drop=True, max_error=0.1, save=file)["results"]
    policy = cal.load_policy(file)
    kept = np.concatenate(
        [policy.keeps(part["confidence"].to_list()) for part in table.partition_by("doc")]
    )
    assert kept.mean() == pytest.approx(entry["answered"]["value"])
    wrong = table.filter(pl.Series(kept) & (pl.col("correct") == 0))["doc"].n_unique()
    assert wrong / 600 == pytest.approx(entry["error"]["value"])
    assert wrong / 600 <= 0.1
    assert policy.keeps([None, 1.0]) == [False, True]


def test_rows_of_a_cluster_count_as_fewer_labels():
    table = documents().with_columns(question_id=pl.int_range(pl.len()).cast(pl.String))
    alone = cal.decide(table, max_error=0.05)["results"][0]
    (entry,) = cal.decide(table, cluster="doc", max_error=0.05)["results"]
    assert (entry["together"]["column"], entry["together"]["clusters"]) == ("doc", 600)
    assert 600 < entry["together"]["labels"] < 2400
    assert entry["threshold"] >= alone["threshold"]
    text = cal.decide(table, cluster="doc", max_error=0.05)["claims"][0]["text"]
    assert "because rows of one doc hang together" in text


def test_rows_that_repeat_a_question_are_together():
    table = documents().rename({"doc": "question_id"}).drop("field")
    (entry,) = cal.decide(table, repeats=True, max_error=0.05)["results"]
    assert (entry["together"]["column"], entry["together"]["clusters"]) == ("question", 600)


def test_a_promise_about_rows_names_the_unit_that_they_are_parts_of():
    (told,) = [
        note for note in cal.decide(documents(), max_error=0.15)["data"]["notes"] if "whole" in note
    ]
    assert told.startswith("Each doc has one row of each field")
    assert "unit='doc'" in told or 'unit="doc"' in told
    for quiet in ({"unit": "doc"}, {"cluster": "doc"}):
        notes = cal.decide(documents(), max_error=0.15, **quiet)["data"].get("notes", ())
        assert not any("whole" in note for note in notes)
    alone = documents().drop("field")
    assert not any("whole" in n for n in cal.decide(alone, max_error=0.15)["data"].get("notes", ()))


def test_one_outcome_on_every_step_of_a_run_is_noticed():
    table = runs(seed=2).with_columns(task=pl.int_range(pl.len()) % 7)
    found = cal.audit(table, resamples=100)
    (block,) = found["results"]
    assert block["questions"] == 400
    assert [groups["kind"] for groups in block["dependence"]["groups"]] == ["unit"]
    (told,) = found["data"]["warnings"]
    assert "All rows of one run have the same outcome" in told["text"]
    named = cal.audit(table, unit="run", resamples=100)["results"][0]["metrics"]["confidence_gap"]
    assert block["metrics"]["confidence_gap"]["low"] == pytest.approx(named["low"], abs=1e-9)
    # Outcomes of steps are none of runs, and few runs are alike by chance.
    tossed = np.random.default_rng(0).integers(0, 2, len(table))
    of_steps = table.with_columns(correct=pl.Series(tossed))
    assert not cal.audit(of_steps, resamples=50)["data"].get("warnings")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "min"}, "score is about whole units"),
        ({"unit": "doc", "score": "min", "stop": True}, "give one of"),
        ({"unit": "doc", "features": ["field"]}, "give one of"),
        ({"unit": "doc", "cluster": "field"}, "name two columns"),
        ({"unit": "doc", "drop": True, "costs": {"wrong": 9, "ask": 1}}, "rows are dropped by"),
        ({"unit": "paper"}, "no column"),
    ],
)
def test_what_does_not_go_together_is_said(options, message):
    with pytest.raises(InputError, match=message):
        cal.decide(documents(60), max_error=0.1, **options)


def test_rows_that_are_alike_are_worth_one():
    rng = np.random.default_rng(2)
    bad, cluster = np.repeat(rng.random(200) < 0.1, 5).astype(float), np.repeat(np.arange(200), 5)
    worth = rows_per_label(np.ones(1000), bad, cluster, np.ones(1))
    assert worth[0] == pytest.approx(5, rel=0.05)
    single = rows_per_label(np.ones(1000), rng.permutation(bad), cluster, np.ones(1))
    assert single[0] < 1.5


def test_a_promise_of_rows_holds_where_they_cluster():
    """At the limit itself whatever is certified is a broken promise."""
    rng, broken = np.random.default_rng(3), {"rows": 0, "clusters": 0}
    cluster = np.repeat(np.arange(80), 8)
    for _ in range(150):
        rate = rng.beta(0.1, 0.9, 80)
        wrong = (rng.random(640) < rate[cluster]).astype(float)
        score = rng.normal(size=80)[cluster] + rng.normal(size=640)
        for name, code in (("rows", None), ("clusters", cluster)):
            found = certify(score, wrong, max_error=0.1, delta=0.1, cluster=code)
            broken[name] += found.threshold is not None
    assert broken["rows"] > 30
    assert broken["clusters"] <= 22
