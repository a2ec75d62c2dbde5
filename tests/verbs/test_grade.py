"""grade and audit of sampled answers: one line from raw answers to Sem-ECE."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.report import render_text
from collect.endpoint import Oracle
from support import call as run


def sampled(questions=40, draws=20, seed=0, stated=False):
    """Sums whose answers are drawn from a known law; the right one is among them."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(questions):
        right = 10 + number
        shares = rng.dirichlet(np.full(4, 0.5))
        drawn = right + rng.choice(4, draws, p=shares)
        texts = [str(value) for value in drawn]
        if stated:
            texts = [f"{text}\nConfidence: {rng.integers(50, 100)}%" for text in texts]
        rows.append(
            {
                "id": f"q{number}",
                "question": f"{number} + 10?",
                "gold": str(right),
                "answers": texts,
                "kind_of_sum": "even" if number % 2 == 0 else "odd",
            }
        )
    return pl.DataFrame(rows)


def test_one_command_from_samples_to_sem_ece(tmp_path):
    sampled().write_ndjson(tmp_path / "samples.jsonl")
    out = tmp_path / "audit.json"
    done = run(
        "audit", tmp_path / "samples.jsonl", "--samples", "answers", "--reference", "gold",
        "--json", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Guessed columns: id (question ids)" in " ".join(done.stdout.split())
    document = json.loads(out.read_text())
    (block,) = document["sem_ece"]
    assert (block["questions"], block["draws"], block["bins"]) == (40, 20, 10)
    assert block["sem1"]["low"] <= block["sem1"]["value"] <= block["sem1"]["high"]
    rows = {
        entry["method"]: entry["metrics"]["ece"]["value"]
        for entry in document["results"]
        if entry["probability"]
    }
    # One number of bins and one law of splits: both places say the same.
    assert rows["sem1"] == pytest.approx(block["sem1"]["value"], abs=1e-12)
    assert rows["sem2"] == pytest.approx(block["sem2"]["value"], abs=1e-12)


def test_grade_writes_a_study_whose_audit_says_the_same(tmp_path):
    sampled().write_ndjson(tmp_path / "samples.jsonl")
    done = run("grade", tmp_path / "samples.jsonl", "--out", tmp_path / "study")
    assert done.returncode == 0, done.stderr
    assert "Guessed columns" in done.stdout
    study = cal.audit(tmp_path / "study", resamples=50)["sem_ece"][0]
    direct = cal.audit(
        tmp_path / "samples.jsonl", samples="answers", reference="gold", resamples=50
    )["sem_ece"][0]
    for name in ("sem1", "sem2"):
        assert study[name]["value"] == direct[name]["value"]


def test_a_study_is_not_overwritten(tmp_path):
    sampled(5).write_ndjson(tmp_path / "samples.jsonl")
    assert run("grade", tmp_path / "samples.jsonl", "--out", tmp_path / "s").returncode == 0
    again = run("grade", tmp_path / "samples.jsonl", "--out", tmp_path / "s")
    assert again.returncode == 2
    assert "holds a study already" in again.stderr


def test_stated_confidence_is_audited_with_and_without_imputation():
    block = cal.audit(sampled(stated=True), samples="answers", resamples=50)["sem_ece"][0]
    assert block["ver"]["parse_failures"] == 0
    assert block["ver"]["ece"]["value"] == block["ver"]["ece_imputed"]["value"]
    half = sampled(stated=True).with_columns(
        pl.col("answers").list.eval(
            pl.when(pl.int_range(pl.len()) % 2 == 0)
            .then(pl.element())
            .otherwise(pl.element().str.split("\n").list.first())
        )
    )
    block = cal.audit(half, samples="answers", resamples=50)["sem_ece"][0]
    assert block["ver"]["parse_failures"] == 0.5
    assert block["ver"]["ece_imputed"]["value"] > block["ver"]["ece"]["value"]


def test_what_clustering_changes_is_measured_against_identical_wordings():
    table = pl.DataFrame(
        {
            "id": range(30),
            "gold": ["Lima"] * 30,
            "answers": [["Lima", "It is Lima.", "lima", "Quito"]] * 30,
        }
    )
    block = cal.audit(table, samples="answers", resamples=50)["sem_ece"][0]
    shift = block["clustering_shift"]
    assert shift["same_partition"] == 0
    # Confidence 3/4 against 2/4, always right: the error grows by a quarter without clustering.
    assert shift["sem1"]["value"] == pytest.approx(-0.25)


def test_right_answers_that_stayed_apart_are_told_with_what_they_can_change():
    table = pl.DataFrame(
        {
            "id": range(30),
            "question": ["Which city?"] * 30,
            "gold": ["Lima"] * 30,
            "answers": [["Lima", "Lima", "Lima Peru", "Quito"]] * 30,
        }
    )
    document = cal.audit(table, samples="answers", resamples=50).to_dict()
    texts = [warning["text"] for warning in document["data"]["warnings"]]
    assert any("In 30 of 30 questions several meanings match" in text for text in texts)
    block = document["sem_ece"][0]
    assert "needs one" in block["noise_floor"]["refused"]
    # Confidence 2/4 against 3/4, always right: the error would be a quarter smaller.
    assert block["right_joined_shift"]["sem1"]["value"] == pytest.approx(0.25)
    shown = render_text(document, full=True)
    assert "if all answers that are graded right were one meaning" in " ".join(shown.split())


def test_known_siblings_beside_the_samples_are_wrong():
    table = pl.DataFrame(
        {
            "id": ["b"],
            "question": ["Which language is spoken there?"],
            "gold": ["Libon Bikol"],
            "answers": [["Bikol", "Libon Bikol", "Libon Bikol"]],
            "siblings": [["Bikol", "Central Bikol"]],
        }
    )
    entry = cal.grade(table)["results"][0]
    assert (entry["classes"], entry["right"], entry["wrong"]) == (2, 2, 1)
    assert cal.grade(table.drop("siblings"))["results"][0]["right"] == 3


def test_groups_of_questions():
    document = cal.audit(sampled(), samples="answers", by=["kind_of_sum"], resamples=50).to_dict()
    groups = [block["group"] for block in document["sem_ece"]]
    assert groups == [None, {"kind_of_sum": "even"}, {"kind_of_sum": "odd"}]
    assert sum(b["questions"] for b in document["sem_ece"][1:]) == 40


def draws_table(questions=60, models=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for number in range(questions):
            shares = rng.dirichlet(np.full(4, 0.5))
            right = rng.choice(4, p=shares)
            for drawn in rng.choice(4, 20, p=shares):
                rows.append((f"q{number}", model, f"class {drawn}", int(drawn == right)))
    return pl.DataFrame(rows, schema=["qid", "model", "class_id", "correct"], orient="row")


def test_draws_tables_take_texts_as_classes_another_id_and_bins():
    table = draws_table(models=("a",))
    found = cal.audit(table, question="qid", bins=5, resamples=50)["sem_ece"][0]
    numbers = table.with_columns(pl.col("class_id").str.tail(1).cast(pl.Int64))
    same = cal.audit(numbers.rename({"qid": "question_id"}), bins=5, resamples=50)["sem_ece"][0]
    assert found["bins"] == 5
    assert found["sem2"] == same["sem2"]


def test_the_curve_ends_with_the_result_and_hard_questions_show_their_classes():
    block = cal.audit(draws_table(models=("a",)), question="qid", resamples=50)["sem_ece"][0]
    last = block["convergence"]["points"][-1]
    assert (last["n"], last["sem1"], last["sem2"]) == (20, block["sem1"], block["sem2"])
    assert {"sem1_band", "sem2_band", "n"} <= set(block["strata"][0])
    hardest = block["hardest"][0]
    assert sum(found["draws"] for found in hardest["answers"]) <= hardest["n"]
    assert hardest["answers"][0]["answer"].startswith("class ")


def test_several_draws_files_are_several_models(tmp_path):
    table = draws_table()
    for name in ("a", "b"):
        own = table.filter(pl.col("model") == name).drop("model")
        own.write_csv(tmp_path / f"{name}.csv")
    document = cal.audit(
        [tmp_path / "a.csv", tmp_path / "b.csv"], question="qid", resamples=50
    ).to_dict()
    assert [block["model"] for block in document["sem_ece"]] == ["a", "b"]
    pooled = document["sem_ece_pooled"]
    assert (pooled["models"], pooled["questions"]) == (2, 120)
    assert sum(row["n"] for row in pooled["reliability"]["sem2"]) == 120


@pytest.mark.parametrize(("claim", "code"), [("sem2_ece>0.9", 0), ("sem2_ece>0", 1), ("foo>1", 2)])
def test_checks_on_meanings(claim, code, tmp_path):
    draws_table().write_csv(tmp_path / "draws.csv")
    done = run("audit", tmp_path / "draws.csv", "--question", "qid", "--fail-if", claim)
    assert done.returncode == code, done.stderr


def test_an_undefined_metric_of_samples_fails_the_check(tmp_path):
    """Every answer is wrong, so that nothing separates right from wrong."""
    table = sampled().with_columns(gold=pl.lit("none of these"))
    table.write_ndjson(tmp_path / "samples.jsonl")
    done = run(
        "audit", tmp_path / "samples.jsonl", "--samples", "answers", "--reference", "gold",
        "--fail-if", "auroc<0",
    )  # fmt: skip
    assert done.returncode == 1
    assert "auroc.value is undefined" in done.stderr


def test_one_draw_of_each_question_is_refused_in_words():
    with pytest.raises(cal.InputError, match=r"fewer than two draws \(60\)"):
        cal.audit(draws_table().unique(["qid", "model"]), question="qid")


def test_compare_pairs_sem2_ece_of_draws():
    table = draws_table(questions=150)
    document = cal.compare(table, question="qid", resamples=100).to_dict()
    assert document["bins"] == 10
    (pair,) = [entry for entry in document["pairs"] if entry["method"] == "sem2"]
    blocks = {b["model"]: b for b in cal.audit(table, question="qid", resamples=50)["sem_ece"]}
    difference = blocks["a"]["sem2"]["value"] - blocks["b"]["sem2"]["value"]
    assert pair["gaps"]["raw"]["ece"]["value"] == pytest.approx(difference, abs=1e-9)


def test_a_limit_of_the_judge_is_said_and_what_was_asked_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    questions = pl.DataFrame(
        {
            "id": [f"q{k}" for k in range(6)],
            "question": "Where is it?",
            "gold": "the town on the river",
            "answers": [[f"a place {k} on a river", "town beside river", "the river"] * 2
                        for k in range(6)],
        }
    )  # fmt: skip
    questions.write_ndjson(tmp_path / "samples.jsonl")
    with Oracle() as oracle:
        options = {"judge": "gpt-5-mini", "judge_url": oracle.url, "max_judge_calls": 5}
        document = cal.grade(tmp_path / "samples.jsonl", **options)
        assert len(oracle.calls) == document["semantics"]["judge_calls"] == 5
        assert all("temperature" not in call for call in oracle.calls)
        left = document["semantics"]["judge_calls_refused"]
        told = f"The judge was asked 5 questions, the limit. Rules decided {left} more"
        assert told in " ".join(render_text(document).split())
        audit = cal.audit(
            tmp_path / "samples.jsonl", samples="answers", reference="gold", **options, resamples=20
        )
        assert any(w["text"].startswith(told) for w in audit["data"]["warnings"])
        assert len(oracle.calls) == 5  # paid once


def test_a_second_judge_widens_the_interval():
    table = draws_table(models=("a",), questions=100).rename({"qid": "question_id"})
    rng = np.random.default_rng(1)
    other = table["class_id"].to_numpy().copy()
    flip = rng.random(other.size) < 0.02
    other[flip] = "elsewhere"
    judged = table.with_columns(
        second_class_id=pl.Series(other),
        second_correct=pl.when(pl.Series(flip)).then(0).otherwise(pl.col("correct")),
    )
    block = cal.audit(judged, resamples=100)["sem_ece"][0]
    wide, plain = block["judging"]["sem2"], block["sem2"]
    assert block["judging"]["errors"]["together"] > 0
    assert wide["high"] - wide["low"] > plain["high"] - plain["low"]


def test_why_tells_what_the_grades_of_a_question_rest_on():
    table = pl.DataFrame(
        {
            "id": ["q1", "q1", "q2"],
            "question": ["Where is Yangon?", "Where is Yangon?", "Capital of Peru?"],
            "gold": ["Myanmar", "Myanmar", "Lima"],
            "model": ["a", "b", "a"],
            "answer": ["Burma", "Thailand", "Lima"],
        }
    )
    found = cal.grade(table, why="q1")
    told = {entry["model"]: entry for entry in found["why"]}
    assert (told["a"]["correct"], told["a"]["rule"]) == (True, "exact")
    assert told["a"]["known_as"] == "country: myanmar (known_names.txt)"
    assert (told["b"]["correct"], told["b"]["rule"]) == (False, "country")
    assert told["b"]["missing"] == ["myanmar"]
    assert "country: myanmar (known_names.txt)" in render_text(found)
    assert "why" not in cal.grade(table)
    with pytest.raises(cal.InputError, match="no question has the id 'q7'"):
        cal.grade(table, why="q7")
