"""Watching a stream: no false alarms beyond the promise, real changes found."""

import datetime as dt
import io
import math
import subprocess
import sys
import threading
import time

import numpy as np
import orjson
import polars as pl
import pytest
from simulations import _monitor_years
from simulations._planning_monitor import WORLDS, watch

from calibrant.cli.terminal import announce
from calibrant.core import InputError
from calibrant.core.arrays import Estimate
from calibrant.data.sources import objects
from calibrant.labels import CalibrationMonitor, ChangeDetector, perfect_region, verified_region
from calibrant.labels.watching.batch import (
    BatchEntry,
    StreamBatch,
    batch_estimates,
    drift_rate,
)
from calibrant.labels.watching.days import WaitingDays
from calibrant.verbs.decide import decide
from calibrant.verbs.monitor import monitor


def stream(days=60, per_day=100, change=30, size=0.15, seed=0):
    rng = np.random.default_rng(seed)
    n = days * per_day
    day = np.arange(n) // per_day
    p = rng.beta(6, 1, n)
    y = rng.random(n) < np.clip(p - 0.05 - np.where(day >= change, size, 0), 0, 1)
    start = dt.datetime(2026, 1, 1)
    return pl.DataFrame(
        {
            "time": [start + dt.timedelta(days=int(k)) for k in day],
            "confidence": p,
            "correct": y.astype(int),
        }
    )


def test_false_alarms_are_rare_and_changes_are_found():
    worlds = dict(WORLDS)
    quiet = watch(("q", worlds["nothing, 5 draws a question, baseline 500"]), 15)
    # 15 years at a nominal 5 %: four or more alarms have probability 0.5 %
    assert quiet["early"] <= 3 / 15
    mixed = watch(("m", worlds["only the mix, baseline 500"]), 15)
    assert mixed["early"] <= 3 / 15
    found = watch(("f", worlds["-0.10, baseline 500"]), 10)
    assert found["found"] == 1.0
    assert found["median"] <= 12
    assert abs(found["start"]) <= 3
    assert found["again"] <= 0.2


def test_centring_at_the_days_own_mean_would_hide_nothing_but_raise_alarms():
    """A question with many rows counts once: as rows of their own they raise false alarms."""
    rng = np.random.default_rng(0)
    alarms = {True: 0, False: 0}
    for run in range(12):
        for units in alarms:
            rng = np.random.default_rng(run)

            def batch(questions, rng=rng):
                p = np.repeat(rng.random(questions) ** 0.2, 25)
                own = np.repeat(rng.random(questions), 25)
                return p, (own < p).astype(float), np.repeat(np.arange(questions), 25)

            detector = ChangeDetector(horizon=100)
            p, y, q = batch(40)
            detector.set_baseline(p, y, q if units else None)
            for _ in range(100):
                p, y, q = batch(4)
                if detector.update(p, y, q if units else None):
                    alarms[units] += 1
                    break
    assert alarms[True] <= 3
    assert alarms[False] >= 9


def test_labels_that_come_late_are_taken_once_and_counted(tmp_path):
    rows = stream(days=40, change=99, size=0.0).with_row_index("question_id")
    rng = np.random.default_rng(3)
    slow = pl.Series(rng.random(rows.height) < 0.3)
    first = rows.with_columns(correct=pl.when(slow).then(None).otherwise(pl.col("correct")))
    options = {"time": "time", "state": tmp_path / "state.json"}
    monitor(first, baseline_rows=500, **options)
    again = monitor(rows, **options)
    in_all = again["results"][0]["n"]
    assert again["late"] == slow.sum()
    assert again["repeated"] == rows.height - slow.sum()
    late = [entry for entry in again["data"]["warnings"] if entry["id"] == "data.late_labels"]
    assert [f"{slow.sum():,} labels came late and count on the day they came" in entry["text"]
            for entry in late] == [True]  # fmt: skip
    once_more = monitor(rows, **options)
    assert (once_more["late"], once_more["repeated"]) == (0, rows.height)
    assert "data.late_labels" not in {entry["id"] for entry in once_more["data"]["warnings"]}
    assert once_more["results"][0]["n"] == in_all


def test_a_saved_state_goes_on_as_if_never_stopped(tmp_path):
    rows = stream(days=60, change=30, size=0.12)
    options = {"time": "time", "baseline_rows": 1000}
    whole = monitor(rows, **options)
    state = tmp_path / "state.json"
    cut = dt.datetime(2026, 1, 20)
    monitor(rows.filter(pl.col("time") < cut), state=state, **options)
    # Days that were seen already may come again: they are left out and counted.
    rest = monitor(
        rows.filter(pl.col("time") >= cut - dt.timedelta(days=3)), state=state, time="time"
    )
    assert rest["repeated"] == 300
    assert rest["results"][0]["alarms"] == whole["results"][0]["alarms"]
    assert rest["results"][0]["capital"] == whole["results"][0]["capital"]
    assert len(rest["results"][0]["history"]) == len(whole["results"][0]["history"])
    assert state.stat().st_size < 300_000
    state.write_text('{"schema": "other"}')
    with pytest.raises(InputError, match="no state of a monitor"):
        monitor(rows, state=state, **options)
    state.write_text('{"schema": ' + "[" * 100_000)
    with pytest.raises(InputError, match="cannot be read"):
        monitor(rows, state=state, **options)


def test_the_watch_goes_on_after_an_alarm():
    rng = np.random.default_rng(3)
    day = np.arange(20_000) // 100
    p = rng.beta(6, 1, 20_000)
    gone = 0.15 * (day >= 40) + 0.15 * (day >= 120)
    y = (rng.random(20_000) < np.clip(p - 0.05 - gone, 0, 1)).astype(int)
    found = monitor({"confidence": p, "correct": y}, every=100, baseline_rows=2000)
    alarms = found["results"][0]["alarms"]
    assert len(alarms) == 2
    assert [abs(a["since_batch"] - b) <= 3 for a, b in zip(alarms, (21, 101), strict=True)]
    assert found["schema"] == "calibrant.monitor/2"
    assert found["claims"][0]["outcome"] == "shown"


def test_rows_without_an_outcome_are_counted_and_left_out():
    rows = stream()
    hidden = rows.with_columns(
        pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.col("correct")).alias("correct")
    )
    found = monitor(hidden, time="time", baseline_rows=500)["results"][0]
    assert found["unlabelled"] == 4000
    assert found["alarm"]["direction"] == "over-confident"
    with pytest.raises(InputError, match="no row of the stream has an outcome"):
        monitor(rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("correct")), time="time")


def test_a_few_labels_that_are_all_wrong_leave_room():
    found = batch_estimates(np.array([0.5, 0.55, 0.6, 0.6, 0.65]), np.zeros(5))
    assert found["accuracy"].high == pytest.approx(0.434, abs=1e-3)
    assert found["mean_confidence"].low < 0.58 < found["mean_confidence"].high
    # The lower end is that of the accuracy, with these confidences; residuals alone say 0.52.
    assert 0 < found["gap"].low < 0.15 < 0.58 < found["gap"].high


def test_the_drift_of_three_batches_is_hardly_known():
    """The line through three points has one degree of freedom: Student's quantile is 12.7."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        history = [
            BatchEntry(str(day), float(day), 50, 0, same, same, same, 1.0, False)
            for day, gap in enumerate(rng.normal(0, 0.05, 3))
            for same in [Estimate(gap, gap, gap, n=50)]
        ]
        slope = drift_rate(history)
        inside += slope.low <= 0 <= slope.high
    assert 0.92 < inside / 400 < 0.98


def test_one_label_says_nearly_nothing():
    found = batch_estimates(np.array([0.9]), np.ones(1))
    assert (found["mean_confidence"].low, found["mean_confidence"].high) == (0.0, 1.0)
    assert found["gap"].low < -0.8
    assert found["gap"].high > 0.6
    assert all(-1 <= e.low <= e.value <= e.high <= 1 for e in found.values())


@pytest.mark.parametrize("n", [5, 10, 40])
def test_the_interval_of_a_small_batch_covers(n):
    """Confidences that follow the outcome, that do not, that are constant, and rare successes."""
    rng = np.random.default_rng(0)
    worlds = {
        "follows": (lambda: rng.random(n), lambda p: p, 0.0),
        "does not": (lambda: rng.random(n), lambda p: np.full(n, 0.5), 0.0),
        "constant": (lambda: np.full(n, 0.9), lambda p: np.full(n, 0.7), 0.2),
        "rare": (lambda: rng.beta(2, 2, n), lambda p: np.full(n, 0.05), 0.45),
    }
    for name, (confidences, chance, truth) in worlds.items():
        inside = 0
        for _ in range(600):
            p = confidences()
            gap = batch_estimates(p, (rng.random(n) < chance(p)).astype(float))["gap"]
            inside += gap.low <= truth <= gap.high
        assert inside / 600 > 0.9, name


def test_a_wrong_bet_would_raise_false_alarms():
    """Guards the simulation: without the division by starts the promise breaks."""
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(60):
        monitor_ = CalibrationMonitor(perfect_region(tolerance=0.0))
        monitor_.region.low[:] = 0.05  # claims that the model is under-confident: wrong
        for _ in range(30):
            p = rng.beta(6, 1, 100)
            monitor_.update(p, rng.random(100) < p)
        false += monitor_.alarm_batch is not None
    assert false > 50


def test_alarm_names_time_direction_and_start():
    frame = stream()
    result = monitor(frame, time="time", baseline_rows=2000, precision=0.05)["results"][0]
    alarm = result["alarm"]
    assert "2026-01-31" <= alarm["when"] <= "2026-02-20"
    assert "2026-01-25" <= alarm["since"] <= alarm["when"]
    assert alarm["direction"] == "over-confident"
    assert alarm["p_value"] <= 0.05
    assert result["drift_per_day"]["low"] > 0
    assert result["expiry"]["verified"] == "2026-01-20"
    assert result["expiry"]["date"] > "2026-01-20"


def test_days_in_several_files_are_one_stream(tmp_path):
    frame = stream()
    frame[:3000].write_parquet(tmp_path / "a.parquet")
    frame[3000:].write_parquet(tmp_path / "b.parquet")
    both = monitor([tmp_path / "a.parquet", tmp_path / "b.parquet"], time="time")
    assert both.to_dict()["results"] == monitor(frame, time="time").to_dict()["results"]


def test_baseline_table_and_given_drift():
    frame = stream()
    result = monitor(
        frame[2000:],
        time="time",
        baseline=frame[:2000],
        precision=0.02,
        drift=0.001,
        verified=dt.date(2026, 1, 20),
        every="week",
    )["results"][0]
    assert result["alarm"] is not None
    assert result["expiry"]["date"] == "2026-02-09"


def test_without_time_rows_are_counted():
    result = monitor(stream(), every=500)["results"][0]
    assert result["batches"] == 12
    assert result["history"][0]["when"] == "batch 1"
    assert result["drift_per_day"] is None


def test_names_in_a_stream_are_kept_as_they_are_written(tmp_path):
    path = tmp_path / "stream.csv"
    path.write_text("question_id,model,confidence,correct\n01,4.10,0.5,1\n1,4.1,0.7,0\n")
    (table,) = objects.follow_file(path, 10, 0.01)
    assert table["question_id"].to_list() == ["01", "1"]
    assert table["model"].to_list() == ["4.10", "4.1"]
    path.write_text("confidence,confidence,correct\n0.1,0.9,1\n")
    with pytest.raises(InputError, match="'confidence' 2 times"):
        list(objects.follow_file(path, 10, 0.01))


def test_standard_input_and_growing_file(tmp_path, monkeypatch):
    frame = stream(days=10).drop("time")
    monkeypatch.setattr(sys, "stdin", io.StringIO(frame.write_ndjson()))
    tables = list(objects.read_stdin(300))
    assert [table.height for table in tables] == [300, 300, 300, 100]
    path = tmp_path / "grow.csv"
    lines = frame.write_csv().splitlines(keepends=True)
    path.write_text("".join(lines[:400]), encoding="utf-8")

    def grow():
        with path.open("a", encoding="utf-8") as file:
            for line in lines[400:]:
                file.write(line[:3])
                file.flush()
                file.write(line[3:])
            time.sleep(0.1)

    thread = threading.Thread(target=grow)
    thread.start()
    got = pl.concat(objects.follow_file(path, 250, 3.0), how="vertical_relaxed")
    thread.join()
    assert got.equals(frame.cast(got.schema))


def test_command_line_follows_standard_input():
    frame = stream(days=30, change=10, size=0.3).drop("time")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from calibrant.cli.main import main; main()",
            "monitor",
            "-",
            "--every",
            "100",
            "--json",
            "-",
            "--fail-on-alarm",
        ],
        input=frame.write_ndjson().encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"ALARM" in done.stderr
    assert orjson.loads(done.stdout)["results"][0]["alarm"]["direction"] == "over-confident"


@pytest.mark.parametrize(
    "options",
    [
        {"every": "fortnight"},
        {"every": 0},
        {"every": -5},
        {"every": math.nan},
        {"every": "0 days"},
        {"every": ""},
        {"time": "clock"},
        {"baseline_rows": 10**6},
        {"baseline_rows": 10, "baseline": {"confidence": [0.5], "correct": [1]}},
        {"alpha": 0.0},
    ],
)
def test_impossible_requests_are_refused(options):
    with pytest.raises(InputError):
        monitor(stream(days=3), **options)


def test_a_refused_length_of_batches_says_what_to_give():
    with pytest.raises(InputError) as refused:
        monitor(stream(days=3), every=0)
    assert "got 0" in str(refused.value)
    assert refused.value.hint == (
        "give hour, day, week, month, or a whole number of rows from 1 on"
    )


def parts_with_a_late_change():
    """Five batches of baseline and seven more in one table, then a drop in the next ones."""
    rows = stream(days=20, change=11, size=0.2).drop("time")
    hidden = rows[1200:1300].with_columns(pl.lit(None, dtype=pl.Int64).alias("correct"))
    return [rows[:1200], hidden, rows[1300:1450], rows[1450:]]


def test_batches_are_counted_through_all_tables():
    """The baseline and batches without labels count too, so that no number comes twice."""
    found = monitor(parts_with_a_late_change(), every=100, baseline_rows=500)["results"][0]
    numbers = [int(row["when"].split()[1]) for row in found["history"]]
    assert numbers == [*range(6, 13), *range(14, 22)]
    alarm = found["alarms"][0]
    assert (alarm["since"], alarm["when"]) == ("batch 12", "batch 14")


def test_a_saved_state_counts_on(tmp_path):
    first, *rest = parts_with_a_late_change()
    state = tmp_path / "state.json"
    monitor(first, every=100, baseline_rows=500, state=state)
    found = monitor(rest, every=100, state=state)["results"][0]
    assert [row["when"] for row in found["history"][-2:]] == ["batch 20", "batch 21"]


def test_no_change_begins_after_its_alarm():
    """Tables in the wrong order are refused; rows that keep coming count when they come."""
    rows = stream(days=40, change=20, size=0.3)
    late = [rows[2000:3000], rows[:2000]]
    with pytest.raises(InputError, match="rows of 2026-01-01 come after rows of 2026-01-30"):
        monitor(late, time="time")
    coming = [rows[:1900], rows[2000:2100], rows[1900:2000], rows[2100:]]
    found = monitor(iter(coming), time="time")["results"][0]
    days = [row["when"] for row in found["history"]]
    assert days == sorted(days)
    assert len(days) == 40
    assert all(alarm["since"] <= alarm["when"] for alarm in found["alarms"])


def test_a_broken_promise_is_said_at_once(tmp_path, capsys):
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 3000)
    policy = tmp_path / "policy.json"
    decide(
        {"confidence": sure, "correct": (rng.random(3000) < sure).astype(int)},
        max_error=0.1,
        save=policy,
    )
    worse = {"confidence": sure, "correct": (rng.random(3000) < sure - 0.3).astype(int)}
    rows = iter(pl.DataFrame(worse).iter_rows(named=True))
    monitor(rows, every=100, policy=policy, on_alarm=announce, stream="live rows")
    said = capsys.readouterr().err.splitlines()
    assert any("the promise has expired. Since about batch 1, " in line for line in said)
    assert any("calibration is off. Since about batch 1, " in line for line in said)
    assert all(line.startswith("ALARM at batch ") for line in said)


def test_the_promise_is_held_against_what_comes_after_the_baseline(tmp_path):
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 3000)
    kept = (rng.random(3000) < sure).astype(int)
    policy = tmp_path / "policy.json"
    decide({"confidence": sure, "correct": kept}, max_error=0.1, save=policy)
    # A bad start that was verified as it is, and a stream that keeps the promise.
    right = np.where(np.arange(3000) < 1000, rng.random(3000) < 0.2, kept).astype(int)
    table = {"confidence": sure, "correct": right}
    whole = monitor(table, every=100, policy=policy)["results"][0]["promise"]
    later = monitor(table, every=100, policy=policy, baseline_rows=1000)["results"][0]["promise"]
    after = {name: column[1000:] for name, column in table.items()}
    alone = monitor(after, every=100, policy=policy)["results"][0]["promise"]
    assert whole["broken"] is not None
    assert later["broken"] is None
    assert (later["given"], later["error"]["value"]) == (alone["given"], alone["error"]["value"])
    assert later["evidence"] == pytest.approx(alone["evidence"])


def test_the_sign_of_a_difference_is_what_its_sentence_says():
    """Fewer right answers than said: a gap above 0 in the table, and fewer in the sentence."""
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.3, 0.7, 2000)
    for moved, word, sign in ((-0.25, "fewer", -1), (0.25, "more", 1)):
        right = (rng.random(2000) < sure + moved).astype(int)
        found = monitor({"confidence": sure, "correct": right}, every=100)
        entry = found["results"][0]
        assert f"points {word} right answers" in found["claims"][0]["text"]
        assert entry["alarm"]["shift"] * sign > 0.2
        assert all(row["gap"]["value"] * sign < 0 for row in entry["history"])


def test_bad_times_name_the_row():
    frame = {"confidence": [0.5, 0.6], "correct": [1, 0], "time": ["2026-01-01", "soon"]}
    with pytest.raises(InputError, match="row 2"):
        monitor(frame, time="time")
    good = frame | {"time": ["2026-01-01", "2026-01-02T03:00:00Z"]}
    assert monitor(good, time="time")["results"][0]["batches"] == 2


def test_region_of_an_empty_bin_allows_everything():
    region = verified_region(np.full(300, 0.95), np.ones(300))
    assert region.low[0] == -1.0
    assert region.high[0] == 1.0
    assert math.isclose(region.alpha, 0.025)


def test_a_second_change_is_told_against_what_was_learnt_after_the_first():
    """It once said 'more right answers than its confidence says' of a model that said too much."""
    rng = np.random.default_rng(8)
    said = np.full(9000, 0.9)
    chance = np.repeat([0.9, 0.4, 0.65], 3000)
    right = (rng.random(said.size) < chance).astype(int)
    found = monitor({"confidence": said, "correct": right}, every=300).to_dict()
    (entry,) = found["results"]
    assert len(entry["alarms"]) == 2
    text = next(c["text"] for c in found["claims"] if c["id"] == "monitor.alarm")
    assert text.startswith("Calibration has changed since about batch 21 (the last of 2 times): ")
    assert "more right answers" in text
    assert "than before" in text
    assert "confidence says" not in text


def test_an_alarm_without_a_baseline_claims_no_change():
    rng = np.random.default_rng(3)
    sure = rng.uniform(0.5, 1.0, 2000)
    off = {"confidence": sure, "correct": (rng.random(2000) < sure - 0.3).astype(int)}
    text = monitor(off, every=100)["claims"][0]["text"]
    assert text.startswith("Calibration is off since about batch 1: ")
    good = (rng.random(2000) < sure).astype(int)
    later = np.where(np.arange(2000) < 1000, good, off["correct"])
    table = {"confidence": sure, "correct": later}
    text = monitor(table, every=100, baseline_rows=500)["claims"][0]["text"]
    assert text.startswith("Calibration has changed since about batch ")


def test_a_table_of_several_models_names_whose_batches_it_shows():
    rng = np.random.default_rng(4)
    sure = rng.uniform(0.5, 1.0, 1200)
    worse = np.repeat([0.0, 0.4], 600)
    table = {
        "model": ["steady"] * 600 + ["drifting"] * 600,
        "confidence": sure,
        "correct": (rng.random(1200) < sure - worse).astype(int),
    }
    found = monitor(table, every=100)
    assert [entry["alarm"] is None for entry in found["results"]] == [True, False]
    short = str(found)
    assert "batch 1 ALARM" in short or "ALARM" in short.split("when")[1]
    assert "drifting / confidence." in short


def grouped_days(days, *, mix=0.5, drop=0.0, change=20, seed=0, rows=60):
    """Days of two groups of different accuracy; the mix or one group's accuracy changes."""
    rng = np.random.default_rng(seed)
    parts = []
    for day in range(days):
        law = rng.random(rows) < (mix if day >= change else 0.5)
        said = rng.uniform(0.5, 1.0, rows)
        chance = said - np.where(law, 0.35, 0.0) - drop * law * (day >= change)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": [f"{day}-{k}" for k in range(rows)],
                    "time": [dt.date(2026, 1, 1) + dt.timedelta(days=day)] * rows,
                    "topic": np.where(law, "law", "art"),
                    "confidence": said,
                    "correct": (rng.random(rows) < chance).astype(int),
                }
            )
        )
    return pl.concat(parts)


def test_a_new_mix_of_groups_is_told_apart_from_quality():
    base = grouped_days(30, seed=1)
    moved = grouped_days(60, mix=0.9)
    plain = monitor(moved, time="time", baseline=base)["results"][0]
    assert plain["alarm"] is not None
    found = monitor(moved, time="time", baseline=base, group="topic")
    entry = found["results"][0]
    assert entry["alarm"] is None
    assert entry["mix"]["alarm"]["group"] in ("law", "art")
    assert entry["mix"]["alarms"][0]["since"] in ("2026-01-15", "2026-01-22")
    texts = " ".join(claim["text"] for claim in found["claims"])
    assert "the mix changed:" in texts.lower()
    assert "At equal confidence in the same group no change is shown." in texts


def test_an_alarm_names_the_group_that_changed():
    base = grouped_days(30, seed=1)
    found = monitor(grouped_days(60, drop=0.3), time="time", baseline=base, group="topic")
    alarm = found["results"][0]["alarms"][0]
    assert alarm["group"] == "law"
    assert alarm["group_shift"] < -0.15
    assert found["results"][0]["mix"]["alarm"] is None
    assert "most in law" in found["claims"][0]["text"] or len(found["results"][0]["alarms"]) > 1
    with pytest.raises(InputError, match="no column 'subject' of groups"):
        monitor(base, time="time", group="subject")


def test_days_wait_until_their_labels_are_in(tmp_path):
    """Wrong answers are labelled five days later than right ones: that is no change."""
    base, rows = grouped_days(30, seed=1), grouped_days(60, seed=2)
    day = pl.Series([int(name.split("-")[0]) for name in rows["question_id"]])
    comes = day + 1 + 5 * (rows["correct"] == 0).cast(pl.Int64)
    options = {"time": "time", "baseline": base, "state": tmp_path / "state.json"}
    for today in range(60):
        known = pl.when(pl.Series(comes <= today)).then(pl.col("correct"))
        table = rows.with_columns(correct=known).filter(pl.Series(day <= today))
        found = monitor(table, **options)
    entry = found["results"][0]
    assert entry["alarm"] is None
    assert entry["waiting"]["days"] == 6
    assert entry["n"] + entry["waiting"]["labels"] == int((comes <= 59).sum())
    told = [w["text"] for w in found["data"]["warnings"] if w["id"] == "data.waiting_labels"]
    assert "Labels take up to 6 days here" in told[0]


def test_days_whose_rows_all_have_a_label_are_judged_while_delays_are_learnt(tmp_path):
    """Rows are listed before their labels come: a day is complete after six days, not after 30."""
    base, rows = grouped_days(30, seed=1), grouped_days(20, seed=2)
    day = pl.Series([int(name.split("-")[0]) for name in rows["question_id"]])
    comes = day + 1 + 5 * (rows["correct"] == 0).cast(pl.Int64)
    options = {"time": "time", "baseline": base, "state": tmp_path / "state.json"}
    for today in range(20):
        known = pl.when(pl.Series(comes <= today)).then(pl.col("correct"))
        table = rows.with_columns(correct=known).filter(pl.Series(day <= today))
        found = monitor(table, **options)
    entry = found["results"][0]
    assert entry["n"] == 14 * 60, "labels of days 0 to 13"
    assert entry["waiting"]["until"] == "2026-01-31"
    told = [w["text"] for w in found["data"]["warnings"] if w["id"] == "data.waiting_labels"]
    assert "Until 2026-01-31 the watch learns how long labels take" in told[0]


def test_days_are_judged_in_their_order():
    """A day that is complete waits for an earlier one: easy days would come first otherwise."""
    late = WaitingDays(delays={5: 100}, newest=0.0, start=0.0)
    rows = {0.0: 3, 1.0: 2}

    def arrive(labels):
        for day, count in labels.items():
            said, question = np.full(count, 0.5), np.arange(count)
            batch = StreamBatch(str(day), day, said, np.ones(count), question, unlabelled=1)
            late.take(batch, rows[day])
        return late.settle(labels)

    assert arrive({0.0: 1, 1.0: 0}) == ([], [])
    assert arrive({1.0: 2}) == ([], [])
    late = WaitingDays.from_dict(late.to_dict())
    stray, due = arrive({0.0: 2})
    assert not stray
    assert [batch.label for batch in due] == ["0.0", "1.0"]


@pytest.mark.parametrize("delay", [None, "wrong"])
def test_years_side_by_side_are_those_of_the_watch(delay):
    """The replay that the published rates come from is the product, day by day."""
    rng = np.random.default_rng(3)
    rows = _monitor_years.made_rows(rng, 5000, steps=10)
    years = [
        _monitor_years.real_year(rng, rows, per_day=10, drop=drop, delay=delay)
        for drop in (0.3, 0.0)
    ]
    told = _monitor_years.watched_together(years)
    assert told == [_monitor_years.watched(*year) for year in years]
    assert told[0][0] >= _monitor_years.CHANGE
    assert [lost for _, _, lost in told] == [0, 0]
