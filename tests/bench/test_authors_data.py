"""What the authors' own data say: scores that differ, answers nobody could read, Table 4."""

import json
from collections import Counter

import polars as pl
import pytest

from calibrant import audit, plan
from calibrant.labels import published_scores, published_steepness
from calibrant.report.terminal import render_text
from support import call

# What the paper prints and the answers as they are today still give, to the printed digit.
TABLE_4 = {
    ("truthfulqa", "llama-3.1-405b-instruct"): (817, 0.234, 0.1947, 2.84, 0.0933),
    ("truthfulqa", "llama-4-maverick"): (817, 0.656, 0.6293, 3.36, 0.1391),
    ("truthfulqa", "qwen3-next-80b"): (817, 0.250, 0.2224, 3.64, 0.1036),
    ("hellaswag", "llama-4-maverick"): (4625, 0.168, None, 1.00, 0.0331),
    ("winogrande", "llama-4-maverick"): (701, 1.000, 0.9577, 1.00, 0.1126),
    ("winogrande", "qwen3-next-80b"): (1198, 0.208, 0.1922, 5.00, 0.0954),
}


@pytest.fixture(scope="module")
def answers(shared_data):
    table = pl.read_parquet(shared_data / "verification_tax" / "answers.parquet")
    table = table.with_columns(pl.col("benchmark", "model").cast(pl.String))
    # Failed calls stand there without a grade, and some questions were asked again.
    return table.filter(pl.col("is_correct").is_not_null()).unique(
        ["benchmark", "model", "question_id"], keep="first", maintain_order=True
    )


def part(answers, benchmark, model=None):
    rows = answers.filter(pl.col("benchmark") == benchmark)
    return rows if model is None else rows.filter(pl.col("model") == model)


@pytest.mark.parametrize("row", TABLE_4, ids="/".join)
def test_the_paper_rule_of_steepness_prints_table_4(answers, row):
    rows = part(answers, *row)
    labels, error, ece, steep, floor = TABLE_4[row]
    columns = {"confidence": "max_conf", "correct": "is_correct"}
    (entry,) = plan(rows, lipschitz_rule="paper", **columns)["measured"]
    found = entry["verification"]
    assert found["labels"] == rows.height == labels
    assert round(found["error_rate"]["value"], 3) == error
    assert round(found["lipschitz"]["value"], 2) == steep
    assert round(found["passive_floor"]["value"], 4) == pytest.approx(floor, abs=1.01e-4)
    if ece is not None:
        said, right = rows["max_conf"].cast(pl.Float64), rows["is_correct"]
        assert round(published_steepness(said, right).ece, 4) == ece


def test_answers_that_nobody_could_read_are_missing_not_wrong(answers, tmp_path):
    path = tmp_path / "winogrande.parquet"
    part(answers, "winogrande", "llama-4-maverick").write_parquet(path)
    done = call("audit", path, "--confidence", "max_conf", "--correct", "is_correct")
    told = " ".join(done.stdout.split())
    assert "No answer could be read in 100 % of the rows of llama-4-maverick" in told
    assert "missing, not wrong" in told
    # What a parser lost is no error of the model.
    assert "OVER-CONFIDENT" not in told
    whole = audit(part(answers, "winogrande"), confidence="max_conf", correct="is_correct")
    (warning,) = [w for w in whole["data"]["warnings"] if w["id"] == "data.unreadable"]
    unread = {"llama-4-maverick", "nemotron-70b", "phi-4-mini"}
    assert set(warning["subject"]["models"]) == unread | {"deepseek-r1-qwen-32b"}
    assert not unread & {str(claim["subject"]["model"]) for claim in whole["claims"]}


def test_a_placeholder_that_is_the_right_answer_somewhere_was_read():
    rows = {"confidence": [0.6] * 80, "answer": ["none", "?"] * 40,
            "correct": [True, False] * 20 + [False] * 40}  # fmt: skip
    (model,) = audit(rows)["data"]["models"]
    assert model["answers_empty"] == 40
    never = {**rows, "correct": [False] * 80, "answer": ["B"] * 80, "note": [""] * 80}
    assert not [w for w in audit(never)["data"]["warnings"] if w["id"] == "data.unreadable"]


def test_the_64_published_pairs_come_from_one_table(shared_data, tmp_path):
    folder = shared_data / "verification_tax"
    pairs = json.loads((folder / "named_model_comparison.json").read_text())["all_comparisons"]
    scores = {
        (p["benchmark"], p[f"model_{s}"]): (p[f"acc_{s}"], p["n"]) for p in pairs for s in "ab"
    }
    rows = [(*key, *value) for key, value in scores.items()]
    path = tmp_path / "published.csv"
    names = ["benchmark", "model", "accuracy", "questions"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(path)
    found = plan(published=path)["theory"]["published_pairs"]
    outcome = {
        (p["benchmark"], frozenset((p["model_a"], p["model_b"]))): p["outcome"] for p in found
    }
    assert len(outcome) == len(pairs) == 64
    both = Counter(
        (p["verdict"], outcome[p["benchmark"], frozenset((p["model_a"], p["model_b"]))])
        for p in pairs
    )
    assert both == {("YES", "shown"): 49, ("NO", "undecided"): 12,
                    ("Marginal", "shown"): 2, ("Marginal", "undecided"): 1}  # fmt: skip
    told = call("plan", "--published", path, "--top", "64").stdout
    assert "51 of 64 pairs of published scores are shown to differ." in told
    assert "Claude 3.5 Sonnet  Llama-4-Maverick" in told  # no name is cut


def test_a_table_of_scores_says_what_it_lacks(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("model,points\na,80\nb,70\n")
    done = call("plan", "--published", path, "--labels", "100")
    assert done.returncode == 2
    assert "a table of published scores has a column accuracy" in done.stderr
    assert "it has model, points: name one accuracy" in done.stderr
    path.write_text("model,accuracy\na,0.8\nb,70\n")
    assert "row 2: an accuracy is a share between 0 and 1" in " ".join(
        call("plan", "--published", path, "--labels", "100").stderr.split()
    )
    path.write_text("model,accuracy,questions\na,0.8,100\nb,0.7,\n")
    blank = call("plan", "--published", path).stderr
    assert "row 2: the number of questions (questions) is missing" in " ".join(blank.split())
    path.write_text("model,accuracy\na,0.8\nb,0.7\n")
    assert "or a column called questions" in call("plan", "--published", path).stderr
    assert [score.labels for score in published_scores(path, 100)] == [100, 100]


def test_sem2_can_answer_for_the_mode_of_the_pool_as_the_authors_code_grades_it(shared_data):
    draws = shared_data / "draws" / "zlin7_triviaqa_500q_20samples.jsonl.gz"
    columns = {"samples": "samples", "reference": "answer", "resamples": 100}
    own, pool = (audit(draws, label=label, **columns) for label in ("split", "pool"))
    (one,), (other,) = own["sem_ece"], pool["sem_ece"]
    assert (one["label"], other["label"]) == ("split", "pool")
    assert one["sem1"]["value"] == other["sem1"]["value"]
    # More than the 0.012 that the paper finds between Sem1-ECE and Sem2-ECE on SimpleQA.
    assert other["sem2"]["value"] - one["sem2"]["value"] == pytest.approx(0.022, abs=0.003)
    assert pool["settings"]["label"] == "pool"
    assert "graded by the mode of all draws" in " ".join(
        render_text(pool.to_dict(), full=True).split()
    )
