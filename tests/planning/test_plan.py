"""`calibrant plan` and `calibrant label` as a user meets them."""

import numpy as np
import orjson
import polars as pl
import pytest

from calibrant.core import InputError
from calibrant.core.errors import UnavailableError
from calibrant.verbs.label import label_add, label_next, label_status
from calibrant.verbs.plan import plan


def scores(n=600, models=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    parts = []
    for name in models:
        p = rng.beta(5, 1, n)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": [f"q{k}" for k in range(n)],
                    "text": [f"What is {k}?" for k in range(n)],
                    "model": name,
                    "answer": rng.choice(["x", "y"], n),
                    "confidence": p,
                    "correct": (rng.random(n) < np.clip(p - 0.1, 0, 1)).astype(float),
                }
            )
        )
    return pl.concat(parts)


def test_plan_answers_in_both_directions():
    there = plan(precision=0.01, error_rate=0.05, lipschitz=2.0)
    assert there["passive_labels"] == 100_000
    back = plan(labels=100_000, error_rate=0.05, lipschitz=2.0)
    assert back["results"][0]["passive_precision"] == pytest.approx(0.01)
    assert back["passive_labels"] is None


def test_plan_builds_up_step_by_step():
    found = plan(
        precision=0.02,
        error_rate=0.05,
        stages="2,2",
        groups=4,
        smallest_share=0.1,
        models=2,
        drift=0.01,
        start="2026-01-01",
    )
    passive = [row["passive_labels"] for row in found["rows"]]
    assert passive == [6250, 31_250, 1_250_000, 2_500_000]
    assert found["results"][0]["expiry"]["date"] == "2026-03-02"
    assert found["results"][0]["expiry"]["half_life"] == pytest.approx(2.0)


def test_plan_curve_holds_the_figure():
    curve = plan(precision=0.01, error_rate=0.05)["curve"]
    assert len(curve) == 33
    slope = np.polyfit(
        np.log([point["precision"] for point in curve[:20]]),
        np.log([point["passive_labels"] for point in curve[:20]]),
        1,
    )[0]
    assert slope == pytest.approx(-3.0, abs=0.01)


def test_plan_measures_on_a_table_and_ranks():
    found = plan(scores(), rank="accuracy", precision=0.02)
    assert [entry["model"] for entry in found["measured"]] == ["a", "b"]
    assert found["leaderboard"]["questions"] == 600
    assert "Measured on the table" in str(found)
    assert "Leaderboard" in found.to_markdown()
    assert plan(scores())["results"][0]["labels"] == 600


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": 0.1},
        {"precision": -0.1, "error_rate": 0.1},
        {"precision": 0.1, "error_rate": 0.1, "stages": "2,x"},
        {"precision": 0.1, "error_rate": 0.1, "start": "tomorrow", "drift": 0.1},
    ],
)
def test_plan_refuses_half_a_question(options):
    with pytest.raises(InputError):
        plan(**options)


def test_below_the_phase_transition_the_plan_says_so():
    notes = plan(labels=5, error_rate=0.01)["results"][0]["notes"]
    assert "phase transition" in notes[0]


def answer(batch, truth, empty=0):
    frame = pl.read_csv(batch) if batch.suffix == ".csv" else pl.read_ndjson(batch)
    right = truth["correct"].to_numpy()
    labels = [str(int(right[row - 1])) for row in frame["label_row"]]
    labels[:empty] = [None] * empty
    frame = frame.with_columns(pl.Series("correct", labels, dtype=pl.String))
    frame.write_csv(batch) if batch.suffix == ".csv" else frame.write_ndjson(batch)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_labels_go_out_and_come_back(tmp_path, ending):
    truth = scores()
    table = tmp_path / "pool.parquet"
    truth.with_columns(correct=pl.lit(None, dtype=pl.Float64)).write_parquet(table)
    for number in (1, 2, 3):
        batch = tmp_path / f"batch{number}.{ending}"
        sent = label_next(table, batch, size=60, seed=number)
        assert sent["batch"]["number"] == number
        shown = pl.read_csv(batch) if ending == "csv" else pl.read_ndjson(batch)
        assert {"text", "answer", "question_id"} <= set(shown.columns)
        assert "confidence" not in shown.columns
        answer(batch, truth, empty=2)
        state = label_add(table, batch, out=table, precision=0.5)
        assert state["added"]["labels"] == 58
        assert state["added"]["left_empty"] == 2
    for entry in state["results"]:
        assert entry["stop"]["look"] == 3
        assert len(entry["history"]) == 3
        part = truth.filter(pl.col("model") == entry["model"])
        assert entry["accuracy"]["low"] <= part["correct"].mean() <= entry["accuracy"]["high"]
    final = pl.read_parquet(table)
    assert final["correct"].count() == 3 * 58
    known = final["correct"].is_not_null()
    assert (final["correct"].filter(known) == truth["correct"].filter(known)).all()
    assert final.drop("correct", "label_batch").equals(truth.drop("correct"))
    assert "may stop" in str(label_status(table, precision=0.5))


def test_judge_and_peers_steer_and_adjust(tmp_path):
    truth = scores().with_columns(
        judge=pl.when(pl.int_range(pl.len()) % 10 == 0)
        .then(1 - pl.col("correct"))
        .otherwise(pl.col("correct"))
    )
    hidden = truth.with_columns(
        correct=pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.col("correct"))
    )
    state = label_status(hidden, judge="judge")
    judged = state["results"][0]["judge"]
    assert judged["accuracy"]["gold_saved"] > 40
    assert judged["accuracy"]["width_ratio"] < 0.8
    assert "judge alone" in str(state)
    sent = label_next(hidden, tmp_path / "b.csv", peers=True, size=20)
    assert sent["batch"]["side"] == "peers"
    with pytest.raises(InputError, match="not both"):
        label_status(hidden, judge="judge", peers=True)
    with pytest.raises(InputError, match="no column"):
        label_status(hidden, judge="jury")


def test_wrong_batches_are_refused(tmp_path):
    truth = scores(n=50, models=("a",))
    table, batch = tmp_path / "pool.csv", tmp_path / "batch.csv"
    truth.with_columns(correct=pl.lit(None, dtype=pl.Float64)).write_csv(table)
    label_next(table, batch, size=10)
    good = pl.read_csv(batch, schema_overrides={"correct": pl.String})

    def refused(frame, match):
        frame.write_csv(batch)
        with pytest.raises(InputError, match=match):
            label_add(table, batch, out=tmp_path / "out.csv")

    refused(good, "no label is filled in")
    refused(good.with_columns(correct=pl.lit("maybe")), "row 1")
    filled = good.with_columns(correct=pl.lit("yes"))
    refused(filled.with_columns(answer=pl.lit("z")), "the answer is another one")
    refused(filled.with_columns(label_row=51 - pl.col("label_row")), "the question is another one")
    refused(filled.with_columns(label_row=pl.lit(9999)).head(1), "not in the table")
    refused(pl.concat([filled, filled]), "twice")
    refused(filled.drop("label_batch"), "label_batch")
    filled.write_csv(batch)
    label_add(table, batch, out=tmp_path / "out.csv")
    filled.with_columns(correct=pl.lit("no")).write_csv(batch)
    with pytest.raises(InputError, match="opposite label"):
        label_add(tmp_path / "out.csv", batch, out=tmp_path / "out.csv")
    with pytest.raises(InputError, match="this is a batch"):
        label_status(batch)


def test_errors_name_the_file(tmp_path):
    table = tmp_path / "bad.csv"
    pl.DataFrame({"confidence": [0.5, 1.5], "correct": [1, None]}).write_csv(table)
    with pytest.raises(InputError, match=r"bad\.csv, row 2"):
        label_status(table)


def test_label_free_table_to_audit_is_refused(tmp_path):
    from calibrant.verbs.audit import audit

    table = tmp_path / "free.csv"
    pl.DataFrame({"confidence": [0.5, 0.9]}).write_csv(table)
    with pytest.raises((UnavailableError, InputError)) as caught:
        audit(str(table))
    assert "label" in str(caught.value)


def test_documents_are_json_and_seeded(tmp_path):
    from calibrant.core.document import dump_document

    hidden = scores().with_columns(
        correct=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.col("correct"))
    )
    for make in (lambda: plan(scores(), rank="ece"), lambda: label_status(hidden)):
        first, second = (dump_document(make().to_dict()) for _ in range(2))
        assert first == second
        assert orjson.loads(first)["schema"].startswith("calibrant.")
