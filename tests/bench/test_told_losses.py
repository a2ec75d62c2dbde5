"""What `bench evaluate` says of rows with rounding noise, of lost rows and of graded outcomes."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from studies._confidence_tables import local_draws

from calibrant import audit
from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import annotate
from calibrant.bench.evaluate import bench_evaluate
from calibrant.bench.macro import leaves, macro_auroc
from calibrant.bench.significance import compare_aurocs
from calibrant.core.errors import InputError
from calibrant.data import Study, load_scores
from support import call


def flat(text):
    """Return a text on one line."""
    return " ".join(text.split())


NAMES = "semantic_entropy_conf,consistency_conf"


@pytest.fixture(scope="module")
def deepseek(shared_data):
    return shared_data / "mace" / "deepseek_v3.parquet"


def evaluated(table, names=NAMES, **options):
    columns = {"confidence": names, "correct": "greedy_correct"}
    return bench_evaluate(table, **columns, reference="consistency_conf", resamples=100, **options)


def test_confidences_that_only_rounding_carries_over_1_are_1(deepseek):
    raw = pl.read_parquet(deepseek)["semantic_entropy_conf"]
    assert raw.filter(raw > 1).len() == 3_115
    assert float(raw.max()) == 1.000000000001
    kept, dropped = evaluated(deepseek), evaluated(deepseek, on_invalid="drop")
    # Before, 3,115 of 6,000 rows went, and 'accuracy rises by 35 points' was said of the rest.
    for document in (kept, dropped):
        assert document["data"]["rows"] == document["data"]["rows_read"] == 12_000
        assert document["losses"] == []
        entropy, agreement = document["results"]
        assert [entry["n"] for entry in (entropy, agreement)] == [6_000, 6_000]
        gains = [entry["change"]["gap"]["accuracy"] for entry in (entropy, agreement)]
        assert gains == pytest.approx([0.0813, 0.0813], abs=1e-4)


def test_everywhere_a_table_is_read_noise_is_the_end_of_the_range(tmp_path):
    values = [1 + 9e-10, -9e-10, 0.5, 1.0]
    table = {"confidence": values, "correct": [1, 0, 1, 0]}
    assert load_scores(table).frame["confidence"].to_list() == [1.0, 0.0, 0.5, 1.0]
    percent = {"confidence": [100 * v for v in values], "correct": [1, 0, 1, 0]}
    read = load_scores(percent, scale="percent").frame["confidence"].to_list()
    assert read == pytest.approx([1.0, 0.0, 0.5, 1.0], abs=0)
    for beyond in (1 + 2e-9, -2e-9):
        with pytest.raises(InputError, match="the confidence must be at"):
            load_scores({"confidence": [beyond, 0.5], "correct": [1, 0]}, on_invalid="error")
    path = tmp_path / "noise.parquet"
    pl.DataFrame(table).write_parquet(path)
    whole, streamed = (audit(path, engine=engine) for engine in (None, "local"))
    briers = [part["results"][0]["metrics"]["brier"]["value"] for part in (whole, streamed)]
    assert briers == pytest.approx([(0.25 + 1) / 4] * 2, abs=1e-6)


def test_a_method_that_lost_rows_leads_nothing_and_is_told_in_the_header(deepseek, tmp_path):
    recorded = pl.read_parquet(deepseek)
    table = recorded.with_columns(pl.col("semantic_entropy_conf") * 1.1)
    path = tmp_path / "stretched.parquet"
    table.write_parquet(path)
    columns = ("--confidence", f"{NAMES},verb_conf", "--correct", "greedy_correct")
    more = ("--on-invalid", "drop", "--reference", "consistency_conf")
    done = call("bench", "evaluate", path, *columns, *more)
    assert done.returncode == 0, done.stderr
    title, told = done.stdout.splitlines()[0], flat(done.stdout)
    assert "3,161 rows left out" in title
    assert "semantic_entropy_conf lost 3,115 of 6,000 rows (3,115 confidence_above_1)" in told
    assert "verb_conf 46 of 6,000 rows (46 confidence_missing)" in told
    said = told.partition("RANKS BEST")[2].partition(" method mean")[0]
    assert "Of 2 methods" in said
    assert "semantic_entropy_conf" not in said
    document = evaluated(path, f"{NAMES},verb_conf", on_invalid="drop")
    assert not any("semantic_entropy_conf" in str(claim) for claim in document["claims"])
    assert [entry["compared"] for entry in document["results"]] == [False, True, True]
    alone = bench_evaluate(
        path, confidence=NAMES, correct="greedy_correct", on_invalid="drop",
        reference="semantic_entropy_conf", resamples=100,
    )  # fmt: skip
    assert [claim["id"] for claim in alone["claims"]] == ["bench.misled_by_k"]
    assert alone["multiplicity"]["tests"] == 0


@pytest.fixture(scope="module")
def tied(shared_data):
    """Sem1, Sem2 and two others on 560 questions, 50 draws each: ties give shares."""
    draws, questions = local_draws(shared_data)
    math = pl.col("source") == "math_small"
    area = pl.when(math).then(pl.lit("math")).otherwise(pl.col("source").str.slice(5))
    questions = questions.filter(pl.col("source") != "webquestions").with_columns(domain=area)
    draws = draws.filter(pl.col("model") == "qwen2.5-coder-1.5b")
    draws = draws.join(questions.select("question_id"), on="question_id")
    draws, semantics = annotate(draws, questions)
    methods = ("sem1", "sem2", "consistency", "sca")
    return score_table(draws, semantics, questions, methods=methods).scores


def test_grades_between_0_and_1_are_outcomes_of_all_rows(tied):
    shares = (pl.col("correct") > 0) & (pl.col("correct") < 1)
    assert tied.filter(shares).height == 335
    document = bench_evaluate(tied, reference="consistency", resamples=200)
    assert {entry["n"] for entry in document["results"]} == {560}
    by_method = {entry["method"]: entry for entry in document["results"]}
    areas = {m: entry["mixes"][-1]["auroc"]["value"] for m, entry in by_method.items()}
    # On the 244 questions without ties Sem2 looked like .89, and led.
    assert areas["sem2"] == pytest.approx(0.751, abs=0.002)
    assert max(areas, key=areas.get) == "sca"
    (best,) = (claim for claim in document["claims"] if claim["id"] == "bench.best_method")
    assert best["outcome"] == "undecided"
    assert best["subject"]["method"] == "sca"
    accuracy = by_method["sem2"]["by_k"][0]["accuracy"]["value"]
    ones = tied.filter((pl.col("method") == "sem2") & (pl.col("k") == 1))
    expected = ones.group_by("domain").agg(pl.col("correct").mean())["correct"].mean()
    assert accuracy == pytest.approx(expected, abs=1e-12)


def test_the_table_of_ties_is_evaluated_without_a_word_on_options(tied, tmp_path):
    path = tmp_path / "scores.parquet"
    tied.write_parquet(path)
    done = call("bench", "evaluate", path, "--reference", "consistency", "--resamples", "100")
    assert done.returncode == 0, done.stderr
    assert f"calibrant audit {path} --graded" in flat(done.stdout.replace("\\\n", ""))


@pytest.mark.parametrize("seed", range(3))
def test_a_graded_area_is_that_of_rows_split_into_right_and_wrong_ones(seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 9, 300) / 8
    grade = rng.choice([0, 0.25, 0.5, 1], 300)
    parts = leaves(["a"] * 300)
    split = roc_auc_score(np.r_[np.ones(300), np.zeros(300)], np.r_[score, score],
                          sample_weight=np.r_[grade, 1 - grade])  # fmt: skip
    assert macro_auroc(score, grade, parts).estimate.value == pytest.approx(split, abs=1e-12)
    other = rng.random(300)
    test = compare_aurocs((score, grade), (other, grade), parts, items=None, rng=seed)
    # The draws of the test scatter about the same difference.
    middle = (test.difference.low + test.difference.high) / 2
    assert middle == pytest.approx(test.difference.value, abs=0.02)


def test_missing_columns_and_questions_are_named(tmp_path):
    scores, questions = tmp_path / "s.csv", tmp_path / "q.csv"
    scores.write_text("question_id,method,confidence,correct\n1,a,.5,1\n2,a,.6,0\n")
    done = call("bench", "evaluate", scores)
    assert "there are no columns 'k' and 'domain' in the scores" in flat(done.stderr)
    questions.write_text("question_id,domain\n1,x\n2,y\n")
    done = call("bench", "evaluate", scores, "--questions", questions)
    assert f"no column 'k' in the scores and the questions ({questions})" in flat(done.stderr)
    questions.write_text("question_id,domain,k\n1,x,1\n")
    done = call("bench", "evaluate", scores, "--questions", questions)
    assert "row 2: the question 2 has no 'k' and 'domain'" in flat(done.stderr)


def test_a_study_leaves_out_what_it_lacks_as_its_help_says(tied, tmp_path):
    lacking = pl.when(pl.col("question_id") == "q0600").then(None).otherwise(pl.col("confidence"))
    beyond = tied.with_columns(confidence=lacking * pl.lit(1.0)).with_columns(
        confidence=pl.when((pl.col("question_id") == "q0601") & (pl.col("method") == "sem1"))
        .then(1.5)
        .otherwise("confidence")
    )
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.toml").write_text("")
    Study(folder).write("scores", beyond)
    document = bench_evaluate(folder, reference="consistency", resamples=100)
    assert document["dropped"] == {"confidence_missing": 4, "confidence_above_1": 1}
    by_method = {loss["method"]: loss["left_out"] for loss in document["losses"]}
    assert by_method == {"sem1": 2, "sem2": 1, "consistency": 1, "sca": 1}
    with pytest.raises(InputError, match="confidence"):
        bench_evaluate(folder, reference="consistency", resamples=100, on_invalid="error")
