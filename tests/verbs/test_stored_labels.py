"""Labels that people made are the outcomes of audits, comparisons and baselines."""

import datetime as dt
import json
import sqlite3

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core import InputError
from calibrant.data.formats import store_path
from calibrant.data.label_store import LabelStore
from calibrant.data.sources.options import ReadingOptions
from calibrant.labels.labelling.power import labels_for_claim
from calibrant.labels.pool import open_pool


def pool_file(folder, *, n=600, models=("m",), kind="csv", seed=0, answers=3):
    """A pool with ids such as 0012 and answers such as 2.50, and which of its answers are right."""
    rng = np.random.default_rng(seed)
    rows, truth = [], {}
    for number in range(n):
        key = f"{number:04d}"
        right = f"{rng.integers(answers)}.50"
        for model in models:
            p = float(rng.beta(6, 2))
            other = [f"{k}.50" for k in range(answers) if f"{k}.50" != right]
            answer = right if rng.random() < p else str(rng.choice(other))
            rows.append(
                {"question_id": key, "model": model, "answer": answer, "confidence": p, "pad": 1}
            )
            truth[key, answer] = answer == right
    path = folder / f"pool.{kind}"
    table = pl.DataFrame(rows)
    table.write_csv(path) if kind == "csv" else table.write_parquet(path)
    return path, truth


def label(path, truth, count, **options):
    work = open_pool(path, asked=ReadingOptions(on_invalid="error"), **options)
    session = work.session
    for part in [40] * (count // 40) + [count % 40]:
        for item in session.take("ann", part) if part else ():
            word = "right" if truth[item.key.question_id, item.key.answer] else "wrong"
            session.store.label(item.id, "ann", word)
    return session


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_audit_finds_the_labels_beside_the_pool(tmp_path, kind):
    path, truth = pool_file(tmp_path, kind=kind)
    before = path.read_bytes()
    label(path, truth, 200)
    found = cal.audit(path, resamples=100)["results"][0]
    assert found["n"] == 200
    assert found["metrics"]["accuracy"]["low"] < np.mean(list(truth.values())) + 0.05
    assert any("200 labels of 600 rows" in note for note in found["notes"])
    assert path.read_bytes() == before


def test_uneven_labels_are_weighted_back(tmp_path):
    """Items drawn with larger chances where outcomes are unsure: the plain mean is off."""
    plain, weighted, whole = [], [], []
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path, truth = pool_file(folder, n=500, seed=seed)
        session = label(path, truth, 240, design="pps", wave=80, seed=seed)
        rows = session.labelled_rows()
        plain.append(rows["correct"].mean())
        weighted.append(cal.audit(path, resamples=50)["results"][0]["metrics"]["accuracy"]["value"])
        table = pl.read_csv(path, infer_schema=False)
        pairs = zip(table["question_id"], table["answer"], strict=True)
        whole.append(np.mean([truth[pair] for pair in pairs]))
    off = np.abs(np.mean(plain) - np.mean(whole))
    assert np.abs(np.mean(weighted) - np.mean(whole)) < 0.015 < off


def test_a_pool_in_memory_takes_the_store_that_is_named(tmp_path):
    path, truth = pool_file(tmp_path)
    label(path, truth, 120, labels=tmp_path / "kept.sqlite")
    table = pl.read_csv(path, infer_schema=False).cast({"confidence": pl.Float64})
    assert cal.audit(table, labels=tmp_path / "kept.sqlite")["results"][0]["n"] == 120
    with pytest.raises(InputError, match="no store of labels"):
        cal.audit(table, labels=tmp_path / "elsewhere.sqlite")


def test_outcomes_in_the_table_win_only_where_all_rows_have_one(tmp_path):
    path, truth = pool_file(tmp_path)
    label(path, truth, 150)
    table = pl.read_csv(path, infer_schema=False)
    made = [int(truth[pair]) for pair in zip(table["question_id"], table["answer"], strict=True)]
    table.with_columns(pl.Series("correct", made)).write_csv(path)
    assert cal.audit(path, resamples=50)["results"][0]["n"] == 600
    some = [y if k < 90 else None for k, y in enumerate(made)]
    table.with_columns(pl.Series("correct", some)).write_csv(path)
    assert cal.audit(path, resamples=50)["results"][0]["n"] == 150


def test_outcomes_of_some_rows_are_refused_without_a_store(tmp_path):
    path, _ = pool_file(tmp_path)
    table = pl.read_csv(path, infer_schema=False)
    some = [1 if k < 90 else None for k in range(table.height)]
    table.with_columns(pl.Series("correct", some)).write_csv(path)
    with pytest.raises(InputError, match="outcome is missing"):
        cal.audit(path)
    with pytest.raises(InputError, match="nobody knows how"):
        cal.monitor(path, baseline=path)


def test_missing_outcomes_are_told_for_what_they_are(tmp_path):
    path, _ = pool_file(tmp_path)
    table = pl.read_csv(path, infer_schema=False)
    some = [1 if k < 90 else None for k in range(table.height)]
    table.with_columns(pl.Series("correct", some)).write_csv(path)
    with pytest.raises(InputError) as refused:
        cal.audit(path)
    said = str(refused.value)
    assert said.index("label_serve") < said.index("only where chance decided") < said.index("drop")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("design", ["stratified", "pps", "random"])
def test_an_exported_table_is_audited_as_the_pool_itself(tmp_path, kind, design):
    path, truth = pool_file(tmp_path, n=800)
    label(path, truth, 240, design=design, wave=80)
    out = tmp_path / f"labels.{kind}"
    cal.label_export(path, out=out)
    here, there = (cal.audit(place, resamples=50)["results"][0] for place in (path, out))
    assert here["metrics"] == there["metrics"]
    assert here["significance"] == there["significance"]
    assert any("labels of a draw" in note for note in there["notes"])
    table = pl.read_parquet(out) if kind == "parquet" else pl.read_csv(out)
    plain = table.select("question_id", "confidence", "correct")
    free = cal.audit(plain, resamples=50)["results"][0]["metrics"]
    if design == "pps":
        assert free["accuracy"]["value"] != here["metrics"]["accuracy"]["value"]
    same = free["accuracy"] == here["metrics"]["accuracy"]
    assert same == (design == "random")


def test_an_exported_table_of_unequal_chances_is_not_taken_for_a_free_choice(tmp_path):
    path, truth = pool_file(tmp_path, n=500, models=("a", "b"))
    label(path, truth, 240, design="pps", wave=80)
    out = tmp_path / "labels.csv"
    cal.label_export(path, out=out)
    for call in (
        lambda: cal.compare(out),
        lambda: cal.groups(out, features=["pad"]),
        lambda: cal.groups(path, features=["pad"]),
    ):
        with pytest.raises(InputError, match="unequal chances"):
            call()


def test_an_exported_table_of_single_answers_is_no_comparison(tmp_path):
    path, truth = pool_file(tmp_path, models=("a", "b"))
    label(path, truth, 200, labels=tmp_path / "answers.sqlite")
    cal.label_export(path, out=tmp_path / "answers.csv", labels=tmp_path / "answers.sqlite")
    with pytest.raises(InputError, match="questions on which models agree"):
        cal.compare(tmp_path / "answers.csv")
    label(path, truth, 200, labels=tmp_path / "whole.sqlite", whole_questions=True, wave=60)
    cal.label_export(path, out=tmp_path / "whole.csv", labels=tmp_path / "whole.sqlite")
    assert cal.compare(tmp_path / "whole.csv", resamples=50)["pairs"][0]["n"] > 50


def test_a_store_of_an_earlier_program_is_read(tmp_path):
    """Nobody kept how its draws were spread: they count as left to chance."""
    path, truth = pool_file(tmp_path)
    session = label(path, truth, 200)
    new = cal.audit(path, resamples=50)["results"][0]["metrics"]["accuracy"]
    session.store.close()
    with sqlite3.connect(session.store.path) as store:
        store.execute("DROP TABLE spread")
    old = cal.audit(path, resamples=50)["results"][0]["metrics"]["accuracy"]
    assert old["value"] == new["value"]
    assert old["low"] != new["low"]


def test_a_plan_is_for_the_whole_pool_while_it_is_being_labelled(tmp_path):
    path, truth = pool_file(tmp_path, n=500)
    before = cal.plan(path, claim="ece<0.1")["plans"]
    label(path, truth, 200)
    after = cal.plan(path, claim="ece<0.1")
    assert after["plans"] == before
    assert before[0]["items"] == 500
    assert after["measured"][0]["n"] == 200
    audited = cal.audit(path, resamples=50)["results"][0]["significance"]
    assert after["measured"][0]["significance"] == audited


def test_single_answers_are_no_fair_choice_of_questions(tmp_path):
    path, truth = pool_file(tmp_path, models=("a", "b"))
    label(path, truth, 200, labels=tmp_path / "answers.sqlite")
    with pytest.raises(InputError, match="questions on which models agree") as refused:
        cal.compare(path, labels=tmp_path / "answers.sqlite")
    assert "whole_questions" in str(refused.value)
    label(path, truth, 200, labels=tmp_path / "uneven.sqlite", design="pps", wave=80)
    with pytest.raises(InputError, match="unequal chances"):
        cal.compare(path, labels=tmp_path / "uneven.sqlite")


def test_models_are_compared_on_whole_questions(tmp_path):
    path, truth = pool_file(tmp_path, models=("a", "b"))
    session = label(
        path, truth, 301, labels=tmp_path / "whole.sqlite", whole_questions=True, wave=60
    )
    found = cal.compare(path, labels=tmp_path / "whole.sqlite", resamples=100)
    pair = found["pairs"][0]
    counts = session.labelled_rows().group_by("question_id").len()["len"]
    assert pair["n"] == (counts == 2).sum()
    assert (counts < 2).sum() <= 1  # the last question came back in part
    # Questions of every kind have their share: agreement is not over-drawn.
    table = pl.read_csv(path, infer_schema=False)
    agree = table.group_by("question_id").agg(pl.col("answer").n_unique() == 1)
    drawn = session.labelled_rows()["question_id"].unique()
    share = agree.filter(pl.col("question_id").is_in(drawn.implode()))["answer"].mean()
    assert abs(share - agree["answer"].mean()) < 0.11


def test_ids_with_leading_zeros_in_a_baseline(tmp_path):
    path, truth = pool_file(tmp_path)
    label(path, truth, 150)
    rng = np.random.default_rng(1)
    p = rng.beta(6, 2, 900)
    stream = tmp_path / "stream.csv"
    pl.DataFrame(
        {"question_id": [f"s{k}" for k in range(900)], "model": "m", "confidence": p,
         "correct": (rng.random(900) < p).astype(int)}
    ).write_csv(stream)  # fmt: skip
    found = cal.monitor(stream, baseline=path)["results"][0]
    assert found["reference"] == "the baseline of 150 labels"
    assert found["alarm"] is None


def test_a_promise_expires_and_goes_on_from_its_state(tmp_path):
    rng = np.random.default_rng(2)
    p = rng.beta(6, 2, 4000)
    table = {"confidence": p, "correct": (rng.random(4000) < p).astype(int)}
    policy = tmp_path / "policy.json"
    cal.decide(table, max_error=0.1, save=policy)
    q = rng.beta(6, 2, 4000)
    fall = np.where(np.arange(4000) < 2000, 0.0, 0.2)
    stream = pl.DataFrame({"confidence": q, "correct": (rng.random(4000) < q - fall).astype(int)})
    whole = cal.monitor(stream, policy=policy, every=100)
    promise = whole["results"][0]["promise"]
    assert promise["max_error"] == 0.1
    assert 20 <= int(promise["broken"]["since"].split()[1]) <= 24
    claim = next(claim for claim in whole["claims"] if claim["id"] == "monitor.promise")
    assert claim["outcome"] == "shown"
    assert "the promise has expired" in claim["text"].lower()
    state = tmp_path / "state.json"
    for part in (stream[:1500], stream[1500:]):
        last = cal.monitor(part, policy=policy, every=100, state=state)
    assert last["results"][0]["promise"]["broken"] == promise["broken"]
    kept = cal.monitor(stream[:2000], policy=policy, every=100)
    assert kept["results"][0]["promise"]["broken"] is None


def test_a_policy_for_another_model_or_without_a_promise_is_refused(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.beta(6, 2, 3000)
    table = {"confidence": p, "correct": (rng.random(3000) < p).astype(int)}
    policy = tmp_path / "policy.json"
    cal.decide(table, max_error=0.1, save=policy)
    named = pl.DataFrame(table).with_columns(model=pl.lit("other"))
    with pytest.raises(InputError, match="for which the policy was made"):
        cal.monitor(named, policy=policy)
    saved = json.loads(policy.read_text())
    saved["promise"]["max_error"] = None
    saved["profile"] = None
    policy.write_text(json.dumps(saved))
    with pytest.raises(InputError, match="promises no error"):
        cal.monitor(table, policy=policy)


@pytest.mark.parametrize("every", ["hour", "day"])
def test_a_row_of_the_year_9999_makes_no_millions_of_periods(every):
    rng = np.random.default_rng(4)
    p = rng.beta(6, 2, 400)
    times = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=k // 4) for k in range(400)]
    times[-1] = dt.datetime(9999, 12, 31, 23)
    table = pl.DataFrame(
        {"confidence": p, "correct": (rng.random(400) < p).astype(int), "at": times}
    )
    found = cal.monitor(table, time="at", every=every)["results"][0]
    assert len(found["history"]) <= 101
    assert found["history"][-1]["when"].startswith("9999-12-31")


def test_plan_label_and_audit_agree_on_the_number_of_labels(tmp_path):
    """A plan for 80 %: with that many labels, label and audit show the claim about as often."""
    threshold, shown = 0.12, {"label": 0, "audit": 0}
    rng = np.random.default_rng(5)
    p = rng.beta(6, 2, 1200)
    planned = labels_for_claim(p, threshold, looking_on=False).one_look
    runs = 40
    for seed in range(runs):
        folder = tmp_path / str(seed)
        folder.mkdir()
        y = np.random.default_rng(seed).random(1200) < p
        path = folder / "pool.parquet"
        names = [f"{k:04d}" for k in range(1200)]
        pl.DataFrame({"question_id": names, "model": "m", "confidence": p}).write_parquet(path)
        work = open_pool(path, asked=ReadingOptions(on_invalid="error"), wave=planned, seed=seed)
        for item in work.session.take("ann", planned):
            right = y[int(item.key.question_id)]
            work.session.store.label(item.id, "ann", "right" if right else "wrong")
        status = cal.label_status(path)["results"][0]
        shown["label"] += status["ece_upper"] < threshold
        audited = cal.audit(path, resamples=20, margin=threshold)["results"][0]
        shown["audit"] += audited["significance"]["within_margin"]["error"]["upper"] < threshold
    # 80 % of 40 is 32; labels 20 % off would show about 26 or 36.
    assert 26 <= shown["label"] <= 39
    assert 24 <= shown["audit"] <= 39


def test_a_store_without_a_label_takes_no_outcomes_away(tmp_path):
    # The outcome has a name of its own, and somebody opened the page for labels and left.
    path = tmp_path / "answers.csv"
    rows = [f"Q{i}?,{60 + i % 40}%,{'yes' if i % 3 else 'no'}" for i in range(90)]
    path.write_text("\n".join(["Question,Certainty,Correct?", *rows]))
    before = cal.audit(path)["results"]
    LabelStore(store_path(path))
    assert cal.audit(path)["results"] == before


def test_a_map_says_who_read_its_answers_where_that_is_known(tmp_path):
    path, truth = pool_file(tmp_path)
    label(path, truth, 200)
    found = cal.mend(path, save=tmp_path / "map.json").results[0]
    assert found.fitted_on["labels_by"] == "people"
    assert cal.load_mend(tmp_path / "map.json").fitted_on["labels_by"] == "people"
    rows = {"confidence": np.linspace(0.5, 0.9, 60), "correct": np.arange(60) % 3 > 0}
    assert "labels_by" not in cal.mend(rows).results[0].fitted_on
