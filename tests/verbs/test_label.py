"""`calibrant label` as a user meets it: batches, people, weights; the table stays as it is."""

import gzip
import hashlib
import zipfile

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.core import InputError
from calibrant.data.formats import store_path
from calibrant.data.label_schema import ItemKey
from calibrant.data.label_store import LabelStore
from calibrant.verbs.label import label_add, label_export, label_next, label_status
from calibrant.verbs.monitor import monitor


def scores(n=300, models=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    parts = []
    for name in models:
        p = rng.beta(5, 1, n)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": [f"{k:04d}" for k in range(n)],
                    "text": [f"What is {k}?" for k in range(n)],
                    "model": name,
                    "answer": [
                        f"{k / 4:.2f}" if name == "a" or k % 2 else "7.50" for k in range(n)
                    ],
                    "confidence": p,
                    "correct": (rng.random(n) < np.clip(p - 0.1, 0, 1)).astype(float),
                }
            )
        )
    frame = pl.concat(parts)
    # The same answer to the same question is right or wrong, whoever gives it.
    first = frame.group_by("question_id", "answer").agg(pl.col("correct").first())
    return frame.drop("correct").join(
        first, on=["question_id", "answer"], how="left", maintain_order="left"
    )


def written(folder, truth, kind="csv"):
    path = folder / f"pool.{kind}"
    pool = truth.drop("correct")
    {"csv": pool.write_csv, "parquet": pool.write_parquet, "jsonl": pool.write_ndjson}[kind](path)
    return path


def fill(batch, truth, *, empty=0, spreadsheet=False, flip=()):
    frame = (
        pl.read_csv(batch, infer_schema=False)
        if batch.suffix == ".csv"
        else pl.read_ndjson(batch, infer_schema_length=None).with_columns(pl.all().cast(pl.String))
    )
    right = {(r["question_id"], r["answer"]): r["correct"] for r in truth.to_dicts()}
    labels = [
        str(int(right[row["question_id"], row["answer"]] != (number in flip)))
        for number, row in enumerate(frame.to_dicts())
    ]
    labels[:empty] = [None] * empty
    frame = frame.with_columns(pl.Series("correct", labels, dtype=pl.String))
    if spreadsheet:
        # What a spreadsheet does to a text file: 0012 is 12 and 3.50 is 3.5.
        frame = frame.with_columns(
            pl.col("question_id").cast(pl.Int64), pl.col("answer").cast(pl.Float64)
        )
    frame.write_csv(batch) if batch.suffix == ".csv" else frame.write_ndjson(batch)


@pytest.mark.parametrize(
    ("kind", "ending"), [("csv", "csv"), ("parquet", "csv"), ("jsonl", "jsonl")]
)
def test_batches_go_out_and_come_back(tmp_path, kind, ending):
    truth = scores()
    table = written(tmp_path, truth, kind)
    before = hashlib.sha256(table.read_bytes()).hexdigest()
    for number in (1, 2):
        batch = tmp_path / f"batch{number}.{ending}"
        sent = label_next(table, batch, size=60, seed=1)
        assert sent["batch"]["items"] == 60
        text = batch.read_text()
        assert "confidence" not in text
        assert '"model"' not in text
        fill(batch, truth, empty=2, spreadsheet=ending == "csv" and number == 2)
        state = label_add(table, batch, precision=0.5)
        assert state["added"]["labels"] == 58
        assert state["added"]["left_empty"] == 2
        # Taken twice, a batch changes nothing.
        assert label_add(table, batch)["added"]["labels"] == 0
    assert state["people"]["decided"] == 2 * 58
    for entry in state["results"]:
        part = truth.filter(pl.col("model") == entry["model"])
        assert entry["accuracy"]["low"] <= part["correct"].mean() <= entry["accuracy"]["high"]
        wide = entry["population"]["accuracy"]
        assert wide["high"] - wide["low"] > entry["accuracy"]["high"] - entry["accuracy"]["low"]
    out = tmp_path / "labelled.csv"
    label_export(table, out)
    final = pl.read_csv(out, infer_schema=False)
    assert final["question_id"].str.len_chars().unique().to_list() == [4]
    merged = final.join(truth, on=["question_id", "answer", "model"], how="left")
    assert (merged["correct"].cast(pl.Float64) == merged["correct_right"]).all()
    # One label serves both models where they gave the same answer.
    shared = final.group_by("question_id", "answer").len().filter(pl.col("len") == 2)
    assert shared.height > 10
    assert hashlib.sha256(table.read_bytes()).hexdigest() == before
    with pytest.raises(InputError, match="never written"):
        label_add(table, batch, out=table)


def test_a_workbook_goes_out_and_comes_back(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    truth = scores(60, ("a",))
    table, batch = written(tmp_path, truth), tmp_path / "batch.xlsx"
    label_next(table, batch, size=10)
    book = openpyxl.load_workbook(batch)
    sheet = book.active
    column = [cell.value for cell in sheet[1]].index("correct") + 1
    for row in range(2, 12):
        sheet.cell(row, column).value = 1
    book.save(batch)
    assert label_add(table, batch)["added"]["labels"] == 10


def test_odd_letters_go_out_and_come_back(tmp_path):
    """A workbook takes no control characters and cuts long texts; a table takes no zero byte."""
    pytest.importorskip("openpyxl")
    answers = ["bell \x07", "red \x1b[31m", "zero \x00 byte", "a\rb", "=1+1", "x" * 40_000]
    truth = scores(len(answers), ("a",)).with_columns(answer=pl.Series(answers))
    for ending in ("xlsx", "csv"):
        table = written(tmp_path, truth, "parquet")
        batch = tmp_path / f"batch.{ending}"
        label_next(table, batch, size=len(answers))
        fill_column(batch)
        assert label_add(table, batch)["added"]["labels"] == len(answers)
        store_path(table).unlink()


def fill_column(batch):
    """Write 1 into the column `correct`, as a person does."""
    if batch.suffix == ".csv":
        frame = pl.read_csv(batch, infer_schema=False)
        frame.with_columns(correct=pl.lit("1")).write_csv(batch)
        return
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(batch)
    sheet = book.active
    column = [cell.value for cell in sheet[1]].index("correct") + 1
    for row in range(2, sheet.max_row + 1):
        sheet.cell(row, column).value = 1
    book.save(batch)


@pytest.mark.parametrize("form", ["utf-16", "cr", "semicolons", "a gzipped one"])
def test_a_batch_is_read_however_a_spreadsheet_saved_it(tmp_path, form):
    truth = scores(60, ("a",))
    table, batch = written(tmp_path, truth), tmp_path / "batch.csv"
    label_next(table, batch, size=10)
    fill_column(batch)
    text = batch.read_text()
    batch.write_bytes(
        {
            "utf-16": text.encode("utf-16"),
            "cr": text.replace("\n", "\r").encode(),
            "semicolons": text.replace(",", ";").encode(),
            "a gzipped one": gzip.compress(text.encode()),
        }[form]
    )
    assert label_add(table, batch)["added"]["labels"] == 10


def test_two_columns_of_labels_are_refused(tmp_path):
    table, batch = written(tmp_path, scores(60, ("a",))), tmp_path / "batch.csv"
    label_next(table, batch, size=10)
    fill_column(batch)
    batch.write_text(batch.read_text().replace(",note\n", ",correct\n"))
    with pytest.raises(InputError, match="names the column 'correct' 2 times"):
        label_add(table, batch)
    batch.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"calibrant.label_next\(TABLE\) wrote"):
        label_add(table, batch)


def test_a_damaged_workbook_is_refused_in_a_line(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    table, batch = written(tmp_path, scores(60, ("a",))), tmp_path / "batch.xlsx"
    label_next(table, batch, size=10)
    fill_column(batch)
    good = batch.read_bytes()
    for raw in (b"PK\x03\x04", good[:200], good[: len(good) // 2]):
        batch.write_bytes(raw)
        with pytest.raises(InputError, match="the workbook cannot be read"):
            label_add(table, batch)
    with zipfile.ZipFile(batch, "w") as packed:
        packed.writestr("a.txt", "no workbook")
    with pytest.raises(InputError, match="the workbook cannot be read"):
        label_add(table, batch)
    batch.write_bytes(good)
    monkeypatch.setenv("CALIBRANT_MOST_UNPACKED_BYTES", "100")
    with pytest.raises(InputError, match="unpacks to more than 100 bytes"):
        label_add(table, batch)
    monkeypatch.delenv("CALIBRANT_MOST_UNPACKED_BYTES")
    book = openpyxl.load_workbook(batch)
    book.active.cell(1, book.active.max_column + 1).value = "correct"
    book.save(batch)
    with pytest.raises(InputError, match="names the column 'correct' 2 times"):
        label_add(table, batch)


def test_two_people_get_different_items_but_for_the_overlap(tmp_path):
    truth = scores()
    table = written(tmp_path, truth)
    taken = {}
    for who in ("ann", "bob"):
        batch = tmp_path / f"{who}.csv"
        label_next(table, batch, size=80, who=who, overlap=0.25)
        taken[who] = set(pl.read_csv(batch)["item"])
        fill(batch, truth, flip=range(0, 80, 16) if who == "bob" else ())
        label_add(table, batch, who=who)
    both = taken["ann"] & taken["bob"]
    assert 8 <= len(both) <= 40
    people = label_status(table)["people"]
    assert people["pairs"] == len(both)
    assert people["labels"] == {"ann": 80, "bob": 80}
    assert people["kappa"]["low"] < people["kappa"]["value"]
    store = LabelStore(store_path(table))
    conflict = [state for state in store.states() if state.status == "conflict"]
    assert len(conflict) == people["conflicts"]
    for state in conflict:
        store.label(state.item.id, "eve", "right", final=True)
    after = label_status(table)["people"]
    assert after["conflicts"] == 0
    assert after["decided"] == people["decided"] + people["conflicts"]


def test_wrong_batches_are_refused(tmp_path):
    truth = scores(50, ("a",))
    table, batch = written(tmp_path, truth), tmp_path / "batch.csv"
    label_next(table, batch, size=10)
    good = pl.read_csv(batch, infer_schema=False)

    def refused(frame, match):
        frame.write_csv(batch)
        with pytest.raises(InputError, match=match):
            label_add(table, batch)

    refused(good, "no label is filled in")
    refused(good.with_columns(correct=pl.lit("maybe")), "row 1")
    filled = good.with_columns(correct=pl.lit("yes"))
    refused(filled.with_columns(answer=pl.lit("z")), "the item stands for question")
    refused(filled.with_columns(item=pl.lit("i00")), "was not drawn from this table")
    refused(pl.concat([filled, filled]), "twice")
    refused(filled.drop("item"), "a batch has the column 'item'")
    filled.write_csv(batch)
    label_add(table, batch)
    filled.with_columns(correct=pl.lit("no")).write_csv(batch)
    assert label_add(table, batch)["added"] == {
        "labels": 0, "changed": 10, "left_empty": 0, "written": str(store_path(table)),
    }  # fmt: skip
    scores(80, ("a",)).drop("correct").write_csv(table)
    with pytest.raises(InputError, match="new ones had no chance"):
        label_status(table)


def test_outcomes_in_the_table_count_only_where_they_are_a_random_choice(tmp_path):
    truth = scores(600, ("a",)).with_columns(
        judge=pl.when(pl.int_range(pl.len()) % 10 == 0)
        .then(1 - pl.col("correct"))
        .otherwise(pl.col("correct")),
    )
    hidden = truth.with_columns(
        correct=pl.when(pl.int_range(pl.len()) % 4 == 0).then(pl.col("correct"))
    )
    store = tmp_path / "x.sqlite"
    ignored = label_status(hidden, labels=store)
    assert ignored["results"][0]["labelled"] == 0
    assert ignored["labels_in_file"] == 150
    used = label_status(hidden, labels=store, existing="random", judge="judge")
    assert used["results"][0]["labelled"] == 150
    judged = used["results"][0]["judge"]["accuracy"]
    assert judged["gold_saved"] > 40
    assert judged["width_ratio"] < 0.85
    assert used["results"][0]["side_leaves"] < 0.7
    with pytest.raises(InputError, match="no place beside it"):
        label_next(hidden, tmp_path / "b.csv")
    # Where every row has an outcome nobody chose, and looking leaves no file behind.
    table = tmp_path / "all.csv"
    truth.write_csv(table)
    assert label_status(table)["results"][0]["labelled"] == 600
    assert not store_path(table).exists()
    with pytest.raises(InputError, match="no column"):
        label_status(hidden, labels=store, judge="jury")


def test_labels_of_a_pool_are_a_baseline_with_their_weights(tmp_path):
    truth = scores(600, ("a",))
    table, batch = written(tmp_path, truth), tmp_path / "batch.csv"
    label_next(table, batch, size=150, design="pps")
    fill(batch, truth)
    label_add(table, batch)
    label_next(table, batch, size=100, design="pps")
    fill(batch, truth)
    label_add(table, batch)
    store = LabelStore(store_path(table))
    assert {wave.uniform for wave in store.waves()} == {True, False}
    label_export(table, out=tmp_path / "labels.csv")
    labelled = pl.read_csv(tmp_path / "labels.csv", schema_overrides={"question_id": pl.String})
    assert labelled["label_weight"].n_unique() > 10
    assert labelled["label_weight"].sum() == pytest.approx(600, rel=0.1)
    watched = monitor(truth, baseline=labelled.rename({"label_weight": "w"}), every=200)
    assert watched["results"][0]["alarm"] is None


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=12, unique=True), st.integers(0, 99))
def test_ids_and_answers_come_back_byte_for_byte(tmp_path_factory, keys, seed):
    store = LabelStore(tmp_path_factory.mktemp("s") / "s.sqlite")
    items = [ItemKey(question, answer) for question, answer in keys]
    store.add_wave(items, [0.5] * len(items), design="random", frame=len(items))
    rng = np.random.default_rng(seed)
    expected = {}
    for _ in range(len(items) * 2):
        found = store.take("ann")
        if not found or rng.random() < 0.2:
            taken = store.undo("ann")
            if taken is not None:
                expected.pop(taken.key)
            continue
        label = str(rng.choice(["right", "wrong", "unsure"]))
        store.label(found[0].id, "ann", label)
        expected[found[0].key] = label
    states = {state.item.key: state for state in store.states()}
    assert set(states) == set(items)
    for key, state in states.items():
        assert state.labels.get("ann") == expected.get(key)
    again = LabelStore(store.path)
    assert [s.labels for s in again.states()] == [s.labels for s in store.states()]
    with pytest.raises(Exception, match="append-only"):
        store._db.execute("DELETE FROM items")


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_two_programs_on_one_store_agree_with_one_that_reads_it_anew(tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("s") / "s.sqlite"
    programs = [LabelStore(path), LabelStore(path)]
    rng = np.random.default_rng(seed)
    for step in range(40):
        store, who = programs[rng.integers(2)], str(rng.choice(["ann", "bob", "cai"]))
        if step % 10 == 0:
            keys = [ItemKey(f"{step}-{k}") for k in range(4)]
            store.add_wave(keys, [0.5] * 4, design="random", frame=99, twice=rng.permutation(2))
        if rng.random() < 0.2:
            store.undo(who)
        elif given_out := store.take(who, keeps=bool(rng.random() < 0.2), now=100.0 * step):
            label = str(rng.choice(["right", "wrong", "unsure", "skip"]))
            store.label(given_out[0].id, who, label, final=bool(rng.random() < 0.1), now=0.0)
        anew = LabelStore(path)
        for one in programs:
            assert one.states() == anew.states()
            assert one.open_for(who, now=100.0 * step) == anew.open_for(who, now=100.0 * step)
        anew.close()


def test_a_request_costs_no_more_after_two_thousand_labels(tmp_path):
    store = LabelStore(tmp_path / "s.sqlite")
    steps = 0

    def count():
        nonlocal steps
        steps += 1
        return 0

    store._db.set_progress_handler(count, 10)
    costs = []
    for wave in range(40):
        keys = [ItemKey(f"{wave}-{k}") for k in range(50)]
        store.add_wave(keys, [0.5] * 50, design="random", frame=9_999, twice=range(5))
        steps = 0
        for _ in range(50):
            (item,) = store.take("ann")
            store.label(item.id, "ann", "right")
            store.states()
        costs.append(steps)
    assert len(store.states()) == 2_000
    assert costs[-1] < 1.2 * costs[1]
