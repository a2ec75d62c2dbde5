"""Ordinary days differ: a weekly rhythm and a spread are no alarm, and cluster is no empty word."""

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.labels.watching.days import OrdinaryDays
from calibrant.labels.watching.detector import ChangeDetector

BASE, DAYS, PER = 42, 200, 50


def year(kind, seed, *, drop=0.0):
    """Return day, confidence, outcome and user of a stream whose days differ by themselves."""
    rng = np.random.default_rng([seed, len(kind)])
    day = np.repeat(np.arange(BASE + DAYS), PER)
    stated = 0.4 + 0.6 * rng.beta(4, 1.5, len(day))
    effect = np.zeros(BASE + DAYS)
    if kind == "strays":
        effect = rng.normal(0, 0.06, BASE + DAYS)
    if kind == "weekends":
        effect = np.where(np.arange(BASE + DAYS) % 7 >= 5, -0.12, 0.05)
    user = rng.integers(0, 10, len(day)) if kind == "users" else np.arange(len(day)) % PER
    by_user = rng.normal(0, 0.2, (BASE + DAYS, PER))[day, user] if kind == "users" else 0.0
    rate = stated - 0.05 + effect[day] + by_user - drop * (day >= BASE + 60)
    return day, stated, (rng.random(len(day)) < np.clip(rate, 0, 1)).astype(int), user


def first_alarm(day, stated, right, user=None, *, days=True):
    detector = ChangeDetector()
    base = day < BASE
    names = None if user is None else np.array([f"{d} {u}" for d, u in zip(day, user, strict=True)])
    known = day.astype(float) if days else None
    detector.set_baseline(
        stated[base],
        right[base],
        None if names is None else names[base],
        day=None if known is None else known[base],
    )
    for now in range(BASE, BASE + DAYS):
        rows = day == now
        unit = None if names is None else names[rows]
        moment = float(now) if days else np.nan
        if detector.update(stated[rows], right[rows], unit, day=moment):
            return now - BASE
    return None


@pytest.mark.parametrize("kind", ["strays", "weekends"])
def test_ordinary_days_are_no_alarm(kind):
    """Without the days 4 of 12 such streams or more raise an alarm; with them at most 1 may."""
    streams = [year(kind, seed)[:3] for seed in range(12)]
    assert sum(first_alarm(*stream, days=False) is not None for stream in streams) >= 4
    assert sum(first_alarm(*stream) is not None for stream in streams) <= 1


def test_a_drop_is_found_all_the_same():
    found = [first_alarm(*year("none", seed, drop=0.1)[:3]) for seed in range(8)]
    assert sum(when is not None and 60 <= when < 90 for when in found) >= 7
    found = [first_alarm(*year("strays", seed, drop=0.15)[:3]) for seed in range(8)]
    assert sum(when is not None and 60 <= when < 120 for when in found) >= 7


def test_a_rhythm_is_learned_and_noise_is_none():
    day, stated, right, _ = year("weekends", 0)
    usual = OrdinaryDays()
    usual.learn(day.astype(float), right - stated)
    # Day 0 was a Thursday, so that days 5 and 6 of seven are Tuesday and Wednesday.
    week = usual.entry().week
    assert week["Tuesday"] > 0.06
    assert week["Thursday"] < 0
    rng = np.random.default_rng(0)
    flat = []
    for _ in range(200):
        usual = OrdinaryDays()
        usual.learn(np.repeat(np.arange(42.0), 30), rng.normal(0, 0.4, 1260))
        flat.append(usual)
    assert sum(usual.week.any() for usual in flat) <= 8
    assert sum(usual.entry().differ for usual in flat) <= 22


def table(kind, seed=0, **more):
    day, stated, right, user = year(kind, seed, **more)
    dates = [dt.date(2026, 1, 1) + dt.timedelta(days=int(number)) for number in day]
    columns = {"time": dates, "confidence": stated, "correct": right, "user": user.astype(str)}
    return pl.DataFrame(columns)


def test_a_reader_is_told_that_days_differ(tmp_path):
    rows = table("strays")
    document = cal.monitor(rows, time="time", baseline_rows=BASE * PER)
    usual = document["results"][0]["ordinary_days"]
    assert usual["differ"]
    assert usual["spread"] > 1.2
    texts = [warning["text"] for warning in document["data"]["warnings"]]
    assert any(text.startswith("Days differ more than their labels explain") for text in texts)
    document.to_html(tmp_path / "page.html")
    assert "Shaded: where ordinary days lie." in (tmp_path / "page.html").read_text()
    plain = cal.monitor(rows.drop("time"), every=PER, baseline_rows=BASE * PER)
    assert any("of 14 days that tell" in warning["text"] for warning in plain["data"]["warnings"])
    assert plain["results"][0]["ordinary_days"]["spread"] is None


def test_days_of_a_baseline_table_count():
    rows = table("strays")
    base, later = rows[: BASE * PER], rows[BASE * PER :]
    document = cal.monitor(later, time="time", baseline=base)
    assert document["results"][0]["ordinary_days"]["days"] >= BASE


def test_cluster_changes_what_a_watch_finds():
    """Users that are right and wrong together within a day: fewer labels than rows."""
    rows = table("users")
    document = [
        cal.monitor(rows, time="time", baseline_rows=BASE * PER, cluster=cluster)["results"][0]
        for cluster in (None, "user")
    ]
    assert document[0]["capital"] != document[1]["capital"]


def test_days_survive_a_state(tmp_path):
    rows = table("strays").with_columns(question_id=pl.int_range(pl.len()).cast(pl.String))
    whole = cal.monitor(rows, time="time", baseline_rows=BASE * PER)["results"][0]
    path = tmp_path / "state.json"
    half = (BASE + 100) * PER
    cal.monitor(rows[:half], time="time", baseline_rows=BASE * PER, state=path)
    again = cal.monitor(rows[half:], time="time", baseline_rows=BASE * PER, state=path)["results"]
    assert again[0]["ordinary_days"] == whole["ordinary_days"]
    assert again[0]["capital"] == pytest.approx(whole["capital"])
    # A state from before ordinary days were known goes on without them.
    state = json.loads(path.read_text())
    detector = state["watches"][0]["detector"]
    detector["version"] = 3
    del detector["usual"]
    path.write_text(json.dumps(state))
    older = cal.monitor(rows[half:], time="time", baseline_rows=BASE * PER, state=path)["results"]
    assert older[0]["ordinary_days"]["spread"] is None
