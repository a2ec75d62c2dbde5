"""What a table says about itself is heeded by every verb, or refused with the words that occur."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError, NoConfidenceError, QuestionError
from calibrant.data import load_scores
from support import call

N = 400


def table(outcome="correct", said="confidence", seed=0, model=None):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.55, 0.6, 0.7, 0.8, 0.9, 0.95], N)
    right = rng.random(N) < p
    columns = {"question_id": [f"q{n}" for n in range(N)], said: p, outcome: right}
    topic = {"topic": np.where(np.arange(N) % 2, "law", "art")}
    return pl.DataFrame(columns | topic | ({"model": [model] * N} if model else {}))


SHARE = table()["correct"].mean()
# How an outcome is written, which word means right, and which would turn it round.
WRITTEN = {
    "0 and 1": (pl.col("correct").cast(pl.Int64), "1", "0"),
    "true and false": (pl.col("correct"), "true", "false"),
    "numbers": (pl.col("correct").cast(pl.Int64) + 1, "2", "1"),
    "words": (
        pl.when("correct").then(pl.lit("fine")).otherwise(pl.lit("broken")),
        "fine",
        "broken",
    ),
}


def rates(verb, data, right):
    """Return the share right that a verb works with."""
    if verb == "decide":
        return [cal.decide(data, max_error=0.45, right=right)["rows"]["right"]]
    if verb == "groups":
        found = cal.groups(data, features=["topic"], right=right)
        return [
            np.average(
                [g["rate"] for g in found["groups"]], weights=[g["n"] for g in found["groups"]]
            )
        ]
    if verb == "compare":
        other = table(seed=1, model="b").with_columns(data["correct"].alias("correct"))
        both = pl.concat(
            [data.with_columns(model=pl.lit("a")), other.select(*data.columns, "model")]
        )
        return [r["accuracy"]["value"] for r in cal.compare(both, right=right)["results"][:1]]
    return [
        cal.audit(data, right=right, resamples=20)["results"][0]["metrics"]["accuracy"]["value"]
    ]


@pytest.mark.parametrize("form", WRITTEN)
def test_right_is_honoured_whatever_an_outcome_is_written_in(form):
    column, right, wrong = WRITTEN[form]
    data = table().with_columns(correct=column)
    assert rates("audit", data, right) == pytest.approx([SHARE])
    assert rates("audit", data, wrong) == pytest.approx([1 - SHARE])
    with pytest.raises(InputError, match="does not occur"):
        rates("audit", data, "excellent")


@pytest.mark.parametrize("verb", ["compare", "groups", "decide", "mend", "label_status"])
@pytest.mark.parametrize("form", ["0 and 1", "words"])
def test_right_reaches_every_verb(verb, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    column, right, wrong = WRITTEN[form]
    data = table(model="a").with_columns(correct=column)
    if verb == "compare":
        data = pl.concat([data, data.with_columns(model=pl.lit("b"))])
    data.write_csv("t.csv")
    extra = {"groups": {"features": ["topic"]}, "decide": {"max_error": 0.45}}.get(verb, {})
    run = getattr(cal, verb)
    with pytest.raises(InputError, match="does not occur"):
        run("t.csv", right="excellent", **extra)
    found = [str(run("t.csv", right=word, **extra).to_dict()) for word in (right, wrong)]
    assert found[0] != found[1]


@pytest.mark.parametrize("name", ["hallucinated", "is_error", "was_wrong"])
def test_a_column_of_errors_is_turned_with_a_sentence(name):
    data = table(name).with_columns((~pl.col(name)).cast(pl.Int64))
    reading = cal.read(data)
    assert reading.options["right"] == "0"
    assert "1 is read as wrong, 0 as right" in " ".join(reading.notes)
    assert cal.audit(reading, resamples=20)["results"][0]["metrics"]["accuracy"][
        "value"
    ] == pytest.approx(SHARE)


@pytest.mark.parametrize("name", ["num_choices", "latency", "doc_id"])
def test_senseless_columns_are_proposed_for_nothing(name):
    values = {
        "num_choices": np.arange(N) % 4 + 2,
        "latency": np.arange(N) / N,
        "doc_id": np.arange(N),
    }
    data = table().drop("confidence").with_columns(pl.Series(name, values[name]))
    columns = {"confidence": "no confidence"}
    with suppress(NoConfidenceError):
        columns = cal.audit(data, resamples=20)["reading"]["columns"]
    assert columns["confidence"] == "no confidence"


@pytest.mark.parametrize("cell", ["~{}%", ">{}%", "Confidence: {}%", "about {} %", "{}/100"])
def test_a_confidence_that_is_stated_is_never_missing(cell):
    data = table().with_columns(
        confidence=pl.Series([cell.format(round(100 * p)) for p in table()["confidence"]])
    )
    document = cal.audit(data, resamples=20)
    assert document["dropped"] == {}
    said = document["results"][0]["metrics"]["mean_confidence"]["value"]
    assert said == pytest.approx(table()["confidence"].mean(), abs=1e-6)


@pytest.mark.parametrize("on_invalid", [None, "drop"])
def test_levels_and_mixed_scales_are_asked_about_and_never_dropped_row_by_row(on_invalid):
    levels = table().with_columns(confidence=(pl.col("confidence") * 5).round().cast(pl.Int64))
    with pytest.raises(QuestionError, match="which means certain"):
        cal.audit(levels, on_invalid=on_invalid)
    place = pl.int_range(pl.len())
    mixed = table().with_columns(
        pl.col("confidence") * pl.when(place % 2 == 0).then(100).otherwise(1)
    )
    with pytest.raises(QuestionError, match="others reach 95") as caught:
        cal.audit(mixed, on_invalid=on_invalid)
    assert caught.value.readings[0].options == {"scale": "mixed"}


def test_scores_of_which_low_means_sure_are_turned():
    data = table(said="entropy").with_columns(entropy=3 - 2.5 * pl.col("entropy"))
    with pytest.raises(QuestionError) as caught:
        cal.audit(data)
    options = caught.value.readings[0].options
    assert options["scale"] == "rank-down"
    area = cal.audit(data, resamples=20, **options)["results"][0]["metrics"]["auroc"]["value"]
    assert area > 0.6
    with pytest.raises(InputError, match="1 - x of shares"):
        load_scores(data, confidence="entropy", correct="correct", scale="uncertainty")


def test_grades_are_right_from_a_bound_on():
    rng = np.random.default_rng(4)
    data = table("grade").with_columns(grade=pl.Series(rng.random(N).round(3)))
    with pytest.raises(QuestionError) as caught:
        cal.audit(data)
    options = caught.value.readings[0].options
    assert options["right"] == ">=0.5"
    value = cal.audit(data, resamples=20, **options)["results"][0]["metrics"]["accuracy"]["value"]
    assert value == pytest.approx((data["grade"] >= 0.5).mean())


def test_words_that_mean_neither_stand_behind_the_wrong_ones():
    words = pl.Series((["yes"] * 6 + ["no"] * 3 + ["unclear?"]) * 40)
    data = table("graded").with_columns(graded=words)
    with pytest.raises(QuestionError) as caught:
        cal.audit(data)
    assert caught.value.readings[0].options["right"] == "yes/no"
    document = cal.audit(data, resamples=20, right="yes/no", correct="graded")
    assert document["results"][0]["n"] == 360


def crossed(few="c1", many="c2", values=("p", "q", "r"), drop=0):
    """Return a table in which each of a few values has a row for each of many."""
    rng = np.random.default_rng(5)
    rows = [(f"k{n}", value) for n in range(80) for value in values]
    p = rng.choice([0.6, 0.7, 0.8, 0.9], len(rows))
    columns = {many: [q for q, _ in rows], few: [value for _, value in rows], "confidence": p}
    frame = pl.DataFrame(columns | {"correct": rng.random(len(rows)) < p})
    return frame.with_columns(topic=pl.Series(rng.choice(["law", "art"], len(rows))))[drop:]


def test_models_and_questions_are_told_by_what_their_columns_hold():
    reading = cal.read(crossed())
    assert reading.columns["model"] == "c1"
    assert reading.columns["question_id"] == "c2"
    assert {"model", "question_id"} <= {*reading.guessed}
    assert len(cal.audit(reading, resamples=20)["results"]) == 3


@pytest.mark.parametrize(
    "data",
    [
        crossed(values=(0, 1, 2)),
        crossed(few="language"),
        crossed(few="annotator"),
        crossed()[::3],
        crossed().sample(fraction=0.5, seed=1),
        pl.concat([crossed(), crossed()[:20]]),
    ],
    ids=["numbers", "languages", "people", "one of them", "few rows", "rows twice"],
)
def test_what_may_be_no_model_is_not_taken_for_one(data):
    assert "model" not in cal.read(data).columns


def test_a_column_called_model_that_holds_scores_names_no_models():
    data = table().with_columns(model=pl.Series(np.arange(N) / N))
    assert cal.audit(data, resamples=20)["results"][0]["n"] == N
    assert "model" not in cal.read(data).columns


def test_two_columns_of_one_name_stop_only_where_they_are_meant(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("note,confidence,correct,note\n" + "a,0.9,1,b\nc,0.4,0,d\n" * 20)
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 40
    with pytest.raises(InputError, match="'note' 2 times"):
        cal.audit(path, cluster="note")


def test_parts_of_a_nested_row_belong_together(tmp_path):
    path = tmp_path / "t.jsonl"
    claim = '{"confidence": 0.%d, "correct": %s}'
    lines = []
    for n in range(30):
        claims = ", ".join(claim % (5 + k, str((n + k) % 3 > 0).lower()) for k in range(3))
        lines.append(f'{{"doc": "d{n}", "claims": [{claims}]}}')
    path.write_text("\n".join(lines))
    reading = cal.read(path)
    assert reading.columns["confidence"] == "claims.confidence"
    assert "belong together" in reading.notes[0]
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 90


def keyed(path, key, *words):
    """Run a command in a terminal, press a key at its question, and return what was shown."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "calibrant", "audit", str(path), *words]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)
    shown, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        # A key that comes before the program listens is lost: it is pressed again.
        if key and b"q to stop: " in shown:
            os.write(parent, key.encode())
        if not select.select([parent], [], [], 1)[0]:
            continue
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        if re.search(rb"q to stop: .*\n", shown):
            key = ""
    if time.monotonic() >= end:
        done.kill()
    os.close(parent)
    return done.wait(), re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


@pytest.fixture
def doubtful(tmp_path):
    path = tmp_path / "doubtful.csv"
    table("edited").with_columns(edited=~pl.col("edited")).write_csv(path)
    return path


def test_a_key_answers_the_question_in_a_terminal(doubtful):
    code, shown = keyed(doubtful, "1")
    assert code == 0, shown
    assert "Read with --confidence confidence --correct edited --right false" in shown
    code, shown = keyed(doubtful, "q")
    assert code == 2
    # On a busy machine a progress bar stands there too.
    assert len(re.findall(r"^calibrant audit .*--", shown, re.M)) == 1


P = pl.col("confidence")
ODD = pl.int_range(pl.len()) % 2 == 1
ASKING = {
    "edited": table("edited").with_columns(edited=~pl.col("edited")),
    "ratings": table().with_columns(confidence=(P * 5).round().cast(pl.Int64)),
    "mixed": table().with_columns(confidence=pl.when(ODD).then(P * 100).otherwise(P)),
}


@pytest.mark.parametrize("name", ASKING)
def test_without_a_terminal_one_complete_command_is_printed(name, tmp_path):
    path = tmp_path / f"{name}.csv"
    ASKING[name].write_csv(path)
    result = call("audit", path, "--bins", 10)
    assert result.returncode == 2
    lines = [x for x in result.stderr.splitlines() if x.startswith("calibrant ")]
    assert len(lines) == 1
    assert "--bins 10" in lines[0]
    done = call(*shlex.split(lines[0])[1:], "--json", "-")
    assert done.returncode == 0
    metrics = json.loads(done.stdout)["results"][0]["metrics"]
    assert metrics["accuracy"]["value"] == pytest.approx(SHARE)
    said = table()["confidence"]
    levels = ((said * 5).round() - 1) / 4 if name == "ratings" else said
    assert metrics["mean_confidence"]["value"] == pytest.approx(levels.mean())


def test_rows_with_a_broken_cell_have_a_command_that_leaves_them_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("confidence,correct\n0.9,1\noops,0\n0.8,1\n0.7,0\n")
    result = call("audit", path)
    assert "row 2" in result.stderr
    assert "oops" in result.stderr
    assert result.stderr.splitlines()[-1] == f"calibrant audit {path} --on-invalid drop"


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (["sample_1", "sample_2", "sample_3"], "sample_1,sample_2,sample_3"),
        ([f"Model Answer {n}" for n in (1, 2, 3)], "Model Answer 1,Model Answer 2,Model Answer 3"),
    ],
)
def test_draws_side_by_side_are_refused_with_a_command_that_grades_them(columns, named, tmp_path):
    path = tmp_path / "wide draws.csv"
    rows = {
        "question": [f"Which is number {n}?" for n in range(40)],
        "reference": list("abcd") * 10,
    }
    draws = {name: list("abca" if k else "bbcd") * 10 for k, name in enumerate(columns)}
    pl.DataFrame(rows | draws).write_csv(path)
    refused = call("audit", path)
    assert refused.returncode == 2
    command = re.search(r"`(.*)`", refused.stderr)[1]
    assert f"--samples '{named}'" in command or f"--samples {named}" in command
    done = call(*shlex.split(command)[1:], "--json", "-")
    assert done.returncode == 0, done.stderr
    entries = {entry["method"]: entry for entry in json.loads(done.stdout)["results"]}
    assert entries["consistency"]["n"] == 40
    # Two of three draws are right, all, all and one.
    assert entries["consistency"]["metrics"]["accuracy"]["value"] == 0.75


def test_answers_that_were_given_are_no_draws():
    given = {"correct_answer_1": ["a"] * 9, "correct_answer_2": ["b"] * 9, "q": list("abcdefghi")}
    with pytest.raises(InputError) as refused:
        cal.audit(given)
    assert "sampled answers" not in str(refused.value)
