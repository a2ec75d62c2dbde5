"""`audit` as its users call it: arrays, tables, draws, command line, JSON, claims."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError, UnavailableError
from support import call as run

METRICS = ("ece", "ece_debiased", "smooth_ece", "brier", "log_loss", "auroc", "aurc")
VERIFICATION = ("error_rate", "lipschitz", "passive_floor", "active_floor", "accuracy_floor")


def sample(n=600, shift=0.2, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.3, 1.0, n)
    return confidence, (rng.random(n) < confidence - shift).astype(float)


def plain_ece(confidence, correct, bins=15):
    """Independent of calibrant: floor, sum, absolute value."""
    place = np.minimum(np.floor(confidence * bins).astype(int), bins - 1)
    return sum(
        abs((confidence[place == b] - correct[place == b]).sum()) for b in range(bins)
    ) / len(confidence)


def test_fixed_names_of_the_document(tmp_path):
    confidence, correct = sample()
    path, out = tmp_path / "t.csv", tmp_path / "a.json"
    pl.DataFrame({"p": confidence, "y": correct, "m": "one", "q": range(600)}).write_csv(path)
    done = run(
        "audit", path, "--confidence", "p", "--correct", "y", "--model", "m", "--question", "q",
        "--bins", "15", "--json", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["schema"] == "calibrant.audit/1"
    assert document["dropped"] == {}
    (entry,) = document["results"]
    assert (entry["model"], entry["method"], entry["n"]) == ("one", "p", 600)
    for name in METRICS:
        found = entry["metrics"][name]
        assert found["low"] <= found["value"] <= found["high"], name
    for name in VERIFICATION:
        assert name in entry["verification"]
    assert entry["metrics"]["ece"]["value"] == pytest.approx(
        plain_ece(confidence, correct), abs=1e-12
    )


def test_arrays_dataframe_and_file_agree(tmp_path):
    confidence, correct = sample()
    frame = pl.DataFrame({"confidence": confidence, "correct": correct})
    frame.write_parquet(tmp_path / "t.parquet")
    found = [
        cal.audit(confidence, correct)["results"][0]["metrics"]["ece"],
        cal.audit(frame.to_pandas())["results"][0]["metrics"]["ece"],
        cal.audit(tmp_path / "t.parquet")["results"][0]["metrics"]["ece"],
    ]
    assert found[0] == found[1] == found[2]


def test_same_seed_same_bytes_and_blocks_do_not_depend_on_each_other():
    confidence, correct = sample()
    two = pl.DataFrame(
        {
            "question_id": list(range(600)) * 2,
            "model": ["a"] * 600 + ["b"] * 600,
            "confidence": np.r_[confidence, confidence[::-1]],
            "correct": np.r_[correct, correct[::-1]],
        }
    )
    both = cal.audit(two, seed=5)
    assert both.to_dict() == cal.audit(two, seed=5).to_dict()
    alone = cal.audit(two.filter(pl.col("model") == "b"), seed=5)
    assert both["results"][1]["metrics"] == alone["results"][0]["metrics"]


def test_groups():
    confidence, correct = sample()
    frame = pl.DataFrame(
        {"confidence": confidence, "correct": correct, "half": ["x"] * 300 + ["y"] * 300}
    )
    groups = [entry["group"] for entry in cal.audit(frame, by=["half"])["results"]]
    assert groups == [None, {"half": "x"}, {"half": "y"}]


def test_repeated_questions_widen_the_interval():
    confidence, correct = sample(200)
    once = cal.audit(confidence, correct)["results"][0]["metrics"]["brier"]
    frame = pl.DataFrame(
        {
            "question_id": np.repeat(np.arange(200), 5),
            "confidence": np.repeat(confidence, 5),
            "correct": np.repeat(correct, 5),
        }
    )
    with pytest.raises(InputError, match="more than once"):
        cal.audit(frame)
    entry = cal.audit(frame, repeats=True)["results"][0]
    five = entry["metrics"]["brier"]
    assert entry["questions"] == 200
    assert five["value"] == pytest.approx(once["value"], abs=1e-12)
    assert five["high"] - five["low"] == pytest.approx(once["high"] - once["low"], rel=0.05)


def test_scores_that_are_no_probability_are_refused_until_recalibrated():
    rng = np.random.default_rng(1)
    correct = rng.random(400) < 0.5
    frame = pl.DataFrame(
        {"confidence": 3.0 * correct + rng.standard_normal(400), "correct": correct}
    ).with_columns(method=pl.lit("sca"))
    entry = cal.audit(frame)["results"][0]
    assert "ece" not in entry["metrics"]
    assert entry["metrics"]["auroc"]["value"] > 0.9
    assert entry["verdict"]["calibration"] == "not-a-probability"
    again = cal.audit(frame, recalibrate="platt")["results"][0]
    assert again["metrics"]["ece"]["value"] < 0.1


def test_label_free_input_is_refused_with_the_reason_and_the_next_step(tmp_path):
    frame = pl.DataFrame({"confidence": [0.5, 0.6]})
    for table in (frame, frame.with_columns(correct=pl.lit(None, dtype=pl.Float64))):
        with pytest.raises(UnavailableError, match="label_next"):
            cal.audit(table)
    frame.write_csv(tmp_path / "t.csv")
    done = run("audit", tmp_path / "t.csv")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "there is a confidence (confidence), but no column 'correct'" in said
    assert f"`calibrant label next {tmp_path / 't.csv'} --out batch.csv`" in said


def test_draws_with_meanings_get_a_sem_ece_block():
    rng = np.random.default_rng(2)
    draws = pl.DataFrame(
        {
            "question_id": np.repeat(np.arange(60), 20),
            "class_id": rng.integers(0, 3, 1200),
        }
    ).with_columns(correct=(pl.col("class_id") == 0).cast(pl.Float64))
    document = cal.audit(draws).to_dict()
    assert document["results"] == []
    (block,) = document["sem_ece"]
    assert block["sem1"]["value"] > block["sem2"]["value"]
    assert block["convergence"]["points"][0]["n"] == 10
    assert "Sem2-ECE" in str(cal.audit(draws))


@pytest.mark.parametrize(
    ("claim", "code"),
    [("ece>0.05", 1), ("ece>0.9", 0), ("ece.low>0.05", 1), ("auroc.low<0.99", 1), ("nice>1", 2),
     ("ece", 2)],
)  # fmt: skip
def test_fail_if(claim, code, tmp_path):
    confidence, correct = sample()
    pl.DataFrame({"confidence": confidence, "correct": correct}).write_csv(tmp_path / "t.csv")
    done = run("audit", tmp_path / "t.csv", "--fail-if", claim)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def degenerate():
    rng = np.random.default_rng(3)
    return {
        "one row": ([0.7], [1]),
        "two rows": ([0.7, 0.2], [1, 0]),
        "all right": (rng.random(50), np.ones(50)),
        "all wrong": (rng.random(50), np.zeros(50)),
        "constant confidence": (np.full(50, 0.7), rng.random(50) < 0.7),
        "certain and right": (np.ones(30), np.ones(30)),
        "certain and wrong": (np.ones(30), np.zeros(30)),
    }


@pytest.mark.parametrize("case", degenerate())
def test_degenerate_data_give_an_exact_answer_or_say_undefined(case):
    confidence, correct = degenerate()[case]
    entry = cal.audit(confidence, correct)["results"][0]
    expected = plain_ece(np.asarray(confidence, float), np.asarray(correct, float))
    assert entry["metrics"]["ece"]["value"] == pytest.approx(expected, abs=1e-12)
    if len(set(map(float, correct))) == 1:
        assert entry["metrics"]["auroc"]["value"] is None
        assert any("auroc" in note for note in entry["notes"])
    assert str(cal.audit(confidence, correct))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("confidence,correct\n", "no rows"),
        ("confidence,correct\nhigh,1\n", "row 1: the confidence must be a number"),
        ("confidence;correct\n0,8.5;1\n", "(confidence = '0,8.5')"),
        ("confidence,correct\n0.5,perhaps\n", "(correct = 'perhaps')"),
        (
            "confidence,verdict_of_mine\n0.5,1\n",
            "there is a confidence (confidence), but no column 'correct'",
        ),
        (
            "confidence,mine\n0.5,1\n",
            "name that column with --correct (there are: confidence, mine)",
        ),
        (
            "level_of_mine,correct\n0.5,1\n",
            "there are grades (correct), but there is no column 'confidence'",
        ),
    ],
)
def test_bad_files_give_exit_code_2_and_a_message(content, words, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    done = run("audit", path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "bad.csv" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cut_name_is_read_and_told(tmp_path):
    path = tmp_path / "cut.csv"
    path.write_text("confidenc,correct\n0.5,1\n0.7,0\n")
    done = run("audit", path)
    assert done.returncode == 0, done.stderr
    assert "Read confidenc as the confidence." in " ".join(done.stdout.split())


def test_mmlu_pro_ece_per_model_equals_an_independent_computation(shared_data, tmp_path):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    column, out = "logit_perplexity_confidence", tmp_path / "a.json"
    done = run("audit", path, "--confidence", column, "--on-invalid", "drop", "--json", out)
    assert done.returncode == 0, done.stderr
    raw = pl.read_parquet(path)
    results = json.loads(out.read_text())["results"]
    assert len(results) == 16
    for entry in results:
        part = raw.filter((pl.col("model") == entry["model"]) & pl.col(column).is_between(0, 1))
        assert entry["n"] == part.height
        expected = plain_ece(
            part[column].to_numpy().astype(np.float64), part["correct"].to_numpy().astype(float)
        )
        found = entry["metrics"]["ece"]
        assert found["value"] == pytest.approx(expected, abs=1e-12)
        assert found["low"] <= found["value"] <= found["high"]


def test_hard_questions_carry_their_text_where_the_data_has_it(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "question_id": f"q{question}",
            "model": "m",
            "draw": draw,
            "class_id": int(place),
            "correct": float(place == 0),
            "text": f"What is {question} plus one?",
        }
        for question in range(30)
        for draw, place in enumerate(rng.choice(3, size=10, p=[0.5, 0.3, 0.2]))
    ]
    table = pl.DataFrame(rows)
    with_text = cal.audit(table, resamples=20)["sem_ece"][0]["hardest"]
    assert with_text[0]["text"] == f"What is {with_text[0]['question_id'][1:]} plus one?"
    without = cal.audit(table.drop("text"), resamples=20)["sem_ece"][0]["hardest"]
    assert "text" not in without[0]


def any_scores(n=400):
    rng = np.random.default_rng(0)
    score = rng.normal(0, 3, n)
    return score, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


@pytest.mark.parametrize("name", ["platt", "isotonic"])
def test_recalibration_turns_any_score_into_a_probability(name, tmp_path):
    score, right = any_scores()
    path = tmp_path / "scores.csv"
    pl.DataFrame({"logit": score, "correct": right}).write_csv(path)
    entry = cal.audit(path, confidence="logit", recalibrate=name, resamples=20)["results"][0]
    assert entry["probability"]
    assert entry["verdict"]["calibration"] == "undecided"
    assert abs(entry["metrics"]["mean_confidence"]["value"] - right.mean()) < 0.02
    outside = int(((score < 0) | (score > 1)).sum())
    assert any(f"{outside} of the scores of logit lie outside" in note for note in entry["notes"])
    as_arrays = cal.audit(score, right, recalibrate=name, resamples=20)["results"][0]
    assert as_arrays["n"] == 400


def test_a_single_score_outside_is_mapped_on_the_scale_of_all():
    """Cross-fitting leaves it out of one fold, whose map must be on the same scale."""
    rng = np.random.default_rng(1)
    score = np.append(rng.uniform(0, 1, 99), 4.0)
    right = (rng.random(100) < 0.5).astype(int)
    assert cal.audit(score, right, recalibrate="platt", resamples=20)["results"][0]["n"] == 100


def test_the_raw_score_stays_refused_and_the_way_out_is_said():
    score, right = any_scores()
    with pytest.raises(InputError, match="at least 0") as error:
        cal.audit(score, right)
    assert 'recalibrate="platt"' in str(error.value)


@pytest.mark.parametrize("name", ["temperature", "beta", "histogram"])
def test_calibrators_that_need_a_confidence_refuse_a_score_by_name(name):
    score, right = any_scores()
    with pytest.raises(InputError, match=f"{name} calibration takes confidences") as error:
        cal.audit(score, right, recalibrate=name)
    assert "platt or isotonic" in str(error.value)


def test_minus_one_among_confidences_stays_a_refusal():
    with pytest.raises(InputError, match="usually codes a refusal"):
        cal.audit([0.9, 0.6, -1.0, 0.4], [1, 0, 1, 0], recalibrate="platt", on_invalid="error")


def test_an_unknown_calibrator_is_named():
    with pytest.raises(InputError, match="there is no calibrator 'plat'") as error:
        cal.audit([0.9, 0.6], [1, 0], recalibrate="plat")
    assert "platt" in str(error.value)


def test_only_methods_with_scores_outside_are_taken_as_scores():
    score, right = any_scores(200)
    table = {
        "method": ["logit"] * 200 + ["verb"] * 200,
        "question_id": [*range(200)] * 2,
        "confidence": [*score, *([0.5] * 199), -1.0],
        "correct": [*right, *right],
    }
    with pytest.raises(InputError, match="usually codes a refusal"):
        cal.audit(table, recalibrate="platt", on_invalid="error")
    kept = cal.audit(table, recalibrate="platt", resamples=20)
    assert kept["dropped"] == {"confidence_minus_one": 1}
    assert [entry["n"] for entry in kept["results"]] == [200, 199]
