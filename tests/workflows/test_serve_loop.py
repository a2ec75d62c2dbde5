"""The loop closes: served rows are labelled late, the promise breaks, a new policy is fitted."""

import asyncio
import datetime as dt
import math

import numpy as np
import polars as pl
import pytest
from benchmarks import serving_year

import calibrant as cal
from calibrant.data.label_schema import ItemKey
from calibrant.data.label_store import LabelStore
from clients.server import Endpoint
from workflows.test_serve_promise import question, saved, served

CERTAIN = math.log(0.9)


def asked(number):
    day = dt.date(2026, 1, 1) + dt.timedelta(days=number // 10)
    known = {"question_id": str(number), "time": f"{day}T12:00:00Z"}
    return question(f"What is {number}?", calibrant=known)


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        server.behaviour.logprob = lambda position: CERTAIN
        yield server


def labels_of(path, numbers, right):
    """Write labels in an order of chance: people label late, and not in the order of the rows."""
    table = pl.DataFrame({"question_id": [str(n) for n in numbers], "correct": right})
    table.sample(fraction=1.0, shuffle=True, seed=0).write_csv(path)


def serve_and_label(folder, endpoint, right, labels="labels.csv", **more):
    """Serve 300 questions, label them, and return the last answer with what `/metrics` says."""
    policy = saved(folder / "policy.json")

    async def act():
        labelled = folder / labels
        async with served(folder, policy, endpoint.url, watch=labelled, **more) as (ask, front):
            for start in range(0, 300, 20):
                await asyncio.gather(*(ask(asked(n)) for n in range(start, start + 20)))
            before = await ask(asked(900))
            if labels.endswith(".csv"):
                labels_of(labelled, range(300), right)
            else:
                write_store(labelled, folder / "served.jsonl", right)
            await front.watch.look()
            return before, await ask(asked(901)), await ask(None, "/metrics", "GET", raw=True)

    return asyncio.run(act())


def write_store(path, rows, right):
    served_rows = pl.read_ndjson(rows).filter(pl.col("question_id").cast(int) < 300)
    store = LabelStore(path)
    keys = [ItemKey(row["question_id"], row["answer"]) for row in served_rows.iter_rows(named=True)]
    store.add_wave(keys, [1.0] * len(keys), design="random", frame=len(keys))
    while items := store.take("ann"):
        for item in items:
            verdict = right[int(item.key.question_id)]
            store.label(item.id, "ann", "right" if verdict else "wrong")
    store.close()


@pytest.mark.parametrize("labels", ["labels.csv", "served.jsonl.labels.sqlite"])
def test_a_promise_that_labels_break_is_told_to_every_caller(tmp_path, endpoint, labels):
    wrong = np.random.default_rng(0).random(300) < 0.5
    before, after, metrics = serve_and_label(tmp_path, endpoint, ~wrong, labels)
    assert before[1]["calibrant"]["promise"].startswith("at most 10%")
    assert (after[0], after[1]["calibrant"]["decision"]) == (200, "answer")
    assert after[1]["calibrant"]["promise"].startswith("none: ")
    assert after[2]["X-Calibrant-Promise"].startswith("none: ")
    assert "calibrant_promise_expired 1" in metrics[1]


def test_a_broken_promise_defers_everything_where_that_was_chosen(tmp_path, endpoint):
    wrong = np.random.default_rng(0).random(300) < 0.5
    _, after, _ = serve_and_label(tmp_path, endpoint, ~wrong, on_shift="defer")
    assert after[0] == 409


def test_a_promise_that_is_kept_stays(tmp_path, endpoint):
    wrong = np.random.default_rng(1).random(300) < 0.07
    _, after, metrics = serve_and_label(tmp_path, endpoint, ~wrong)
    assert after[1]["calibrant"]["promise"].startswith("at most 10%")
    assert "calibrant_promise_expired 0" in metrics[1]


def test_a_policy_refitted_on_served_rows_is_measured_as_the_one_before(tmp_path, endpoint):
    right = np.random.default_rng(2).random(300) < 0.95
    serve_and_label(tmp_path, endpoint, right)
    rows = pl.read_ndjson(tmp_path / "served.jsonl")
    labels = pl.read_csv(tmp_path / "labels.csv", schema_overrides={"question_id": pl.String})
    labelled = rows.join(labels, on="question_id")
    labelled.write_ndjson(tmp_path / "labelled.jsonl")
    cal.decide(tmp_path / "labelled.jsonl", max_error=0.1, save=tmp_path / "again.json")
    cal.audit(tmp_path / "labelled.jsonl", resamples=20)

    async def act():
        policy = tmp_path / "again.json"
        async with served(tmp_path, policy, endpoint.url, confidence="perplexity") as (ask, _):
            return await ask(asked(7))

    status, body, _ = asyncio.run(act())
    assert status == 200
    assert body["calibrant"]["confidence"] == pytest.approx(0.9)


@pytest.mark.parametrize("moved", [False, True])
def test_questions_unlike_the_labelled_ones_are_told_to_callers_and_metrics(
    tmp_path, endpoint, moved
):
    rng = np.random.default_rng(0)
    said = rng.uniform(0.6, 1.0, 1200)
    table = pl.DataFrame({"confidence": said, "correct": (rng.random(1200) < said).astype(int)})
    policy = tmp_path / "policy.json"
    cal.decide(table.with_columns(model=pl.lit("m")), max_error=0.3, save=policy)
    levels = [math.log(x) for x in rng.uniform(0.6, 0.7 if moved else 1.0, 300)]
    firsts = [0]

    def logprob(position):
        # Asked twice of every token: for itself, and for its alternative.
        firsts[0] += position == 0
        return levels[(firsts[0] - 1) // 2]

    endpoint.behaviour.logprob = logprob

    async def act():
        async with served(tmp_path, policy, endpoint.url, on_shift="defer") as (ask, front):
            for start in range(0, 240, 20):
                await asyncio.gather(*(ask(asked(n)) for n in range(start, start + 20)))
            await front.watch.look()
            endpoint.behaviour.logprob = lambda position: CERTAIN
            last = await ask(asked(999))
            return last, (await ask(None, "/metrics", "GET", raw=True))[1]

    (status, body, headers), metrics = asyncio.run(act())
    assert (body["calibrant"]["shift"] is not None) is moved
    assert ("X-Calibrant-Shift" in headers) is moved
    assert f"calibrant_shifted {int(moved)}" in metrics
    assert status == (409 if moved else 200)


def test_a_recorded_year_with_late_labels_kills_and_an_exchanged_model(shared_data, monkeypatch):
    monkeypatch.setattr(serving_year, "DATA", shared_data)
    served_rows, events, lost = serving_year.year()
    assert [what for _, what in events] == ["broken", "refitted"]
    (broken, _), (refitted, _) = events
    assert serving_year.EXCHANGED < broken < refitted
    assert lost == 0
    assert served_rows["number"].n_unique() == served_rows.height
    unwatched = served_rows.filter("unwatched")
    assert unwatched.height == serving_year.WATCH_KILLS * serving_year.PER_DAY
    assert not unwatched["promised"].any()
    given = served_rows.filter(pl.col("answered") & ~pl.col("unwatched"))
    marked = given.filter(pl.col("day").is_between(broken, refitted, closed="left"))
    assert not marked["promised"].any()
    # The traffic itself is told to have changed before the labels show that it has.
    told = given.filter(pl.col("promised").not_())["day"].min()
    assert serving_year.EXCHANGED < told <= broken
    for low, high in ((0, serving_year.EXCHANGED), (refitted, serving_year.DAYS)):
        kept = given.filter(pl.col("day").is_between(low, high, closed="left"))
        assert kept["promised"].all()
        assert 1 - kept["correct"].mean() <= serving_year.ALPHA
