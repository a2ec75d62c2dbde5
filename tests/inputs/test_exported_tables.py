"""Tables as people export them are read without an option, or asked about with the option."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data import load_scores
from calibrant.findings.claims.next_step import next_step
from inputs.exported import ASKED, READ, RIGHT, SAID, N, database, thrice, two_confidences
from support import ROOT, call

ODD = {"every row three times": thrice, "two columns of confidence": two_confidences}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "table.any"


@pytest.mark.parametrize("name", READ)
def test_a_table_is_read_as_it_is_meant(name, path):
    READ[name](path)
    scores = load_scores(path)
    assert scores.graded["correct"].mean() == pytest.approx(np.mean(RIGHT), abs=0.02) or name in ODD
    if name in ODD:
        return
    said = np.sort(scores.frame["confidence"].to_numpy())
    if not scores.dropped:
        np.testing.assert_allclose(said, np.sort(SAID), atol=1e-12)
        assert scores.frame["correct"].cast(bool).sum() == sum(RIGHT)
    assert N - scores.frame.height <= 8


@pytest.mark.parametrize("name", READ)
def test_the_next_step_needs_no_more_than_the_first(name, path):
    READ[name](path)
    step = next_step(cal.audit("table.any", resamples=20).to_dict())
    done = call(*shlex.split(step.command.partition(" && ")[0])[1:])
    assert done.returncode == 0, f"{step.command}\n{done.stderr}"


VERBS = {
    "audit": {"resamples": 20},
    "compare": {"resamples": 20},
    "groups": {},
    "decide": {"max_error": 0.3},
    "mend": {},
    "plan": {"precision": 0.1},
    "monitor": {"every": 40},
    "cascade": {"price": [1, 8], "random_splits": 2},
    "label_status": {"existing": "random"},
    "label_next": {"out": "batch.csv", "size": 10},
}
# What a verb asks for that no reading of the table gives.
ASKS = {
    "compare": r"at least two models|no question in common",
    "groups": r"which columns make the groups",
    "decide": r"a promise needs one graded answer per question",
    "label_next": r"every item of the table is labelled or given out",
    "cascade": r"the table has one model, a cascade takes two|no question is answered by all"
    r"|a cascade needs one",
}


@pytest.mark.parametrize("name", READ)
def test_every_verb_reads_it_and_what_it_says_next_can_be_done(name, path):
    READ[name](path)
    models = sorted(load_scores(path).frame["model"].unique())
    VERBS["cascade"]["models"] = models if len(models) > 1 else [*models, "larger"]
    for verb, options in VERBS.items():
        try:
            step = next_step(getattr(cal, verb)("table.any", **options).to_dict())
        except InputError as error:
            # What cannot be done is said with a way out.
            if re.search(ASKS.get(verb, "nothing is asked"), str(error)) and error.hint:
                continue
            raise
        if verb == "label_next":
            pl.read_csv("batch.csv").with_columns(correct=pl.lit(1)).write_csv("batch.csv")
        command = shlex.split(step.command.partition(" && ")[0])[1:] if step else ["serve"]
        if command[0] not in ("serve", "view"):
            done = call(*command)
            assert done.returncode == 0, f"{verb}: {step.command}\n{done.stderr}"


@pytest.mark.parametrize("name", ASKED)
def test_a_doubt_is_a_question_that_names_the_option(name, path):
    write, *ways = ASKED[name]
    write(path)
    with pytest.raises(InputError) as caught:
        cal.audit("table.any", resamples=20)
    caught.value.for_shell()
    for way in ways:
        assert way in str(caught.value)


@pytest.mark.parametrize("what", ["#scores", "#SELECT probability AS p, outcome AS y FROM scores"])
def test_a_table_of_a_database_is_named_or_asked_for(what, path):
    database(path, "scores", "old_scores")
    assert load_scores(f"{path}{what}").frame["confidence"].to_list() == SAID
    assert cal.audit(f"table.any{what}", resamples=20)["input"][0]["path"] == "table.any"
    with pytest.raises(InputError, match="no table 'score'"):
        load_scores(f"{path}#score")


def test_models_are_compared_on_the_questions_that_numbers_name(path):
    READ["two models, questions numbered in a column Nr"](path)
    found = cal.compare("table.any", resamples=20)
    assert found["reading"]["columns"]["question_id"] == "Nr"
    assert found["pairs"][0]["n"] == N // 2
    numbered = pl.read_csv(path).with_columns(pl.col("Nr").alias("#")).drop("Nr")
    for name in "ab":
        rows = numbered.filter(llm=name).drop("llm").sample(fraction=1.0, shuffle=True, seed=1)
        rows.write_csv(f"{name}.csv")
    again = cal.compare(["a.csv", "b.csv"], resamples=20)
    assert (again["pairs"][0]["n"], again["data"]["questions"]) == (N // 2, N // 2)


def test_models_side_by_side_answer_the_question_of_their_row(path):
    READ["spreadsheet, two models side by side"](path)
    found = cal.compare("table.any", resamples=20)
    assert [(pair["a"], pair["b"], pair["n"]) for pair in found["pairs"]] == [
        ("GPT-4o", "Claude", N // 2)
    ]
    watched = cal.monitor("table.any", every=40)["data"]["warnings"][0]["text"]
    for sentence in (found["reading"]["sentence"], watched):
        assert "GPT-4o and Claude as models side by side" in sentence
    rows = load_scores(path).frame.sort("model", "question_id")
    for model, half in (("GPT-4o", slice(0, N // 2)), ("Claude", slice(N // 2, N))):
        own = rows.filter(model=model).sort(pl.col("question_id").cast(pl.Int64))
        assert own["confidence"].to_list() == pytest.approx(SAID[half])
        assert own["correct"].cast(bool).to_list() == RIGHT[half]


def test_a_batch_that_nobody_labelled_leaves_the_outcomes_of_the_file(path):
    READ["spreadsheet, two models side by side"](path)
    path.write_text(path.read_text().replace(",y\n", ",\n", 1))
    before = cal.audit("table.any", resamples=20)["results"]
    batch = cal.label_next("table.any", out="batch.csv", size=10)
    assert path.with_name("table.any.labels.sqlite").is_file()
    assert cal.audit("table.any", resamples=20)["results"] == before
    rows = pl.read_csv("batch.csv").with_columns(correct=pl.lit(1))
    rows.write_csv("batch.csv")
    assert batch["results"]
    cal.label_add("table.any", "batch.csv")
    # Labels that people gave come first: how the rows of the file were chosen is not known.
    assert cal.audit("table.any", resamples=20)["results"][0]["n"] <= 10


def test_models_side_by_side_may_be_named_and_share_an_outcome_or_not(path):
    names = ["said by A", "B thinks", "A was it", "B was it"]
    cells = zip(SAID, SAID[::-1], map(int, RIGHT), map(int, RIGHT[::-1]), strict=True)
    pl.DataFrame(list(cells), schema=names, orient="row").write_csv(path)
    said, right = ",".join(names[:2]), ",".join(names[2:])
    both = load_scores(path, confidence=said, correct=right)
    assert both.frame.group_by("model").agg(pl.col("correct").sum())["correct"].to_list() == (
        [sum(RIGHT)] * 2
    )
    assert both.frame["model"].unique().sort().to_list() == ["B thinks", "said by A"]
    shared = load_scores(path, confidence=said, correct="A was it")
    assert shared.frame["model"].unique().to_list() == ["model"]
    assert shared.frame["method"].n_unique() == 2
    with pytest.raises(InputError, match="columns for confidence: 1, columns for correct: 2"):
        load_scores(path, confidence=names[0], correct=right)
    with_model = pl.read_csv(path).with_columns(model=pl.lit("a"))
    with pytest.raises(InputError, match="column model names models too"):
        load_scores(with_model, confidence=said, correct=right)


@pytest.mark.parametrize(
    "names",
    [
        ["GPT confidence", "Claude confidence", "GPT right", "Llama right"],
        ["GPT confidence", "GPT prob", "GPT right", "Claude right"],
        ["GPT confidence", "Claude confidence", "correct", "Claude right"],
    ],
)
def test_what_stands_side_by_side_in_part_is_asked_about(names):
    cells = zip(SAID, SAID[::-1], map(int, RIGHT), map(int, RIGHT[::-1]), strict=True)
    with pytest.raises(InputError, match=r"Several columns may be meant"):
        load_scores(pl.DataFrame(list(cells), schema=names, orient="row"))


def test_row_numbers_of_one_model_are_no_questions(path):
    frame = pl.DataFrame({"id": range(N), "confidence": SAID, "correct": RIGHT})
    assert load_scores(frame).assumed == ("question_id", "model", "method")


def test_runs_without_ids_are_repeated_answers_by_their_place(path):
    ASKED["two runs, without ids"][0](path)
    scores = load_scores(path, repeats=True)
    assert scores.frame["question_id"].n_unique() == N // 2
    assert "same place of each run" in scores.reading.repeats
    assert cal.audit(path, method="run", resamples=20)["results"][1]["method"] == "1"


def test_one_slip_among_a_thousand_rows_is_counted_and_many_stop():
    rng = np.random.default_rng(1)
    said = rng.uniform(0.5, 1, 2_000)
    table = {"confidence": np.append(said, 1.7), "correct": rng.random(2_001) < 0.7}
    scores = load_scores(table)
    assert (scores.dropped, scores.dropped_rows) == (
        {"confidence_above_1": 1},
        {"confidence_above_1": [2_001]},
    )
    assert scores.graded.height == 2_001
    table["confidence"][:3] = 1.2
    with pytest.raises(InputError, match="4 of 2001 rows"):
        load_scores(table)


def listed():
    """Return the lines of the documentation about these tables: name, and what is said."""
    lines = [["what is exported", "what is said"]]
    for name, write in READ.items():
        path = Path(f"{len(lines)}.any")
        write(path)
        reading = load_scores(path).reading
        said = " ".join(filter(None, (reading.sentence, reading.repeats)))
        lines.append([name, said or "read as it is"])
    for name, (_, *ways) in ASKED.items():
        shown = [f"`{way}`".replace("table.any", "runs.db") for way in ways]
        lines.append([name, f"a question that names {' and '.join(shown)}"])
    return lines


def test_the_documentation_lists_them_all(path):
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    with (ROOT / "docs" / "files" / "exports.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.reader(file))
    assert listed() == written
    shown = re.findall(r"^\| (.*) \| (.*) \|$", text.split("## What people export", 1)[1], re.M)
    assert [row for row in map(list, shown[2:7]) if row not in written] == []
    assert f"[All {len(written) - 1} exports]" in text


def test_accuracy_is_ranked_on_every_graded_row(shared_data):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    said = {"confidence": "verbal_numerical_confidence", "on_invalid": "drop"}
    found = cal.plan(path, precision=0.05, rank="accuracy", **said)["leaderboard"]
    rows = pl.read_parquet(path).group_by("model").agg(pl.col("correct").cast(float).mean())
    right = dict(rows.iter_rows())
    assert found["questions"] == 12_032
    for entry in found["results"]:
        assert entry["accuracy"]["value"] == right[entry["model"]]


def test_compared_accuracies_are_those_of_every_graded_row(shared_data):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    names = ["Meta-Llama-3.1-70B-Instruct-Turbo", "Meta-Llama-3.1-8B-Instruct-Turbo"]
    said = {"confidence": "verbal_numerical_confidence", "on_invalid": "drop"}
    found = cal.compare(path, models=names, resamples=20, **said)
    rows = pl.read_parquet(path).group_by("model")
    stated = pl.col("verbal_numerical_confidence").is_between(0, 1)
    facts = rows.agg(pl.col("correct").cast(float).mean(), pl.len(), stated.sum().alias("stated"))
    known = {name: tuple(counts) for name, *counts in facts.iter_rows()}
    assert [entry["model"] for entry in found["results"]] == names
    for entry in found["results"]:
        told = (entry["accuracy"]["value"], entry["accuracy"]["n"], entry["n"])
        assert told == known[entry["model"]]
    assert "2 models · 12,032 questions" in str(found)


def test_a_share_of_the_questions_says_which_it_leaves_out():
    rng = np.random.default_rng(0)
    said = rng.uniform(0.5, 1, 1_000)
    right = rng.random(1_000) < 0.68 + 0.3 * said
    whole = cal.decide({"confidence": said, "correct": right}, max_error=0.2)["claims"][0]
    assert "May answer 100 % of the questions alone" in whole["text"]
    said[::5] = np.nan
    part = cal.decide({"confidence": said, "correct": right}, max_error=0.2)["claims"][0]
    assert "100 % of the questions that state a confidence (80 % of all) alone" in part["text"]
