"""`compare` as its users call it: Python, command line, JSON."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.report import render_markdown
from support import call, model_scores


def two_models(n=400, seed=0):
    rng = np.random.default_rng(seed)
    parts = []
    for name, skill in (("small", 0.4), ("large", 0.75)):
        correct = rng.random(n) < skill
        confidence = np.clip(0.8 + 0.1 * correct + 0.05 * rng.standard_normal(n), 0, 1)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(n),
                    "model": name,
                    "domain": np.where(np.arange(n) % 2, "odd", "even"),
                    "confidence": confidence,
                    "correct": correct,
                }
            )
        )
    return pl.concat(parts)


def candidates_of(table):
    rng = np.random.default_rng(1)
    models = table["model"].unique(maintain_order=True).to_list()
    return pl.DataFrame(
        [
            {
                "question_id": str(question),
                "judge": judge,
                "author": author,
                "answer": f"{author}-{question}",
                "confidence": float(np.clip(0.6 + 0.2 * (judge == author), 0, 1) * rng.random()),
            }
            for question in range(400)
            for judge in models
            for author in models
        ]
    )


def test_fixed_names_of_the_document(tmp_path):
    path, out = tmp_path / "t.parquet", tmp_path / "c.json"
    two_models().write_parquet(path)
    done = call("compare", path, "--json", out)
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["schema"] == "calibrant.compare/1"
    entry = document["results"][0]
    assert set(entry["accuracy"]) == {"value", "low", "high", "n"}
    for view in ("raw", "ia", "da"):
        for metric in ("brier", "ece"):
            assert entry["views"][view][metric]["low"] is not None
    assert entry["verification"]["passive_floor"] is not None
    pair = document["pairs"][0]
    assert {pair["a"], pair["b"]} == {"small", "large"}
    assert set(pair["reversal"]) == {"da", "ia", "os_weakest", "os_strongest", "sda"}
    assert (pair["verdict"], pair["winner"]) == ("more accurate, alike", "large")
    assert pair["depends_on"] is None
    assert isinstance(pair["tie"], bool)
    assert 0 < pair["retention"] < 1


def test_same_seed_same_bytes():
    table = two_models()
    first, second = (cal.compare(table, seed=3).to_dict() for _ in range(2))
    assert first == second
    assert first != cal.compare(table, seed=4).to_dict()


def test_candidate_view_and_self_preference():
    table = two_models()
    document = cal.compare(table, candidates=candidates_of(table)).to_dict()
    assert "ca" in document["pairs"][0]["gaps"]
    biases = {row["judge"]: row["bias"] for row in document["self_preference"]}
    assert biases["small"]["low"] > 0
    assert "Self-preference" in render_markdown(document)


def test_groups_have_comparisons_of_their_own():
    document = cal.compare(two_models(), by=["domain"]).to_dict()
    assert [pair["group"] for pair in document["pairs"]] == [
        None,
        {"domain": "even"},
        {"domain": "odd"},
    ]


def test_different_answers_under_one_id_are_refused():
    table = two_models()
    pool = candidates_of(table).with_columns(
        answer=pl.when(pl.col("judge") == "small").then(pl.lit("x")).otherwise("answer")
    )
    with pytest.raises(InputError, match="different answers by"):
        cal.compare(table, candidates=pool)


def test_methods_may_have_pools_of_other_answers():
    table = two_models()
    pool = candidates_of(table).with_columns(method=pl.lit("confidence"))
    other = pool.with_columns(pl.col("answer").str.to_uppercase(), method=pl.lit("another"))
    found = cal.compare(table, candidates=pl.concat([pool, other]), resamples=50)
    assert "ca" in found["pairs"][0]["gaps"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.filter(pl.col("model") == "small"), "at least two models"),
        (
            lambda t: t.with_columns(
                question_id=pl.when(pl.col("model") == "small")
                .then(pl.col("question_id") + 1000)
                .otherwise("question_id")
            ),
            "no question in common",
        ),
        (
            lambda t: t.with_columns(
                correct=pl.when(pl.col("model") == "small").then(False).otherwise("correct")
            ),
            "small has accuracy 0",
        ),
    ],
)
def test_errors_name_the_rule(change, words):
    with pytest.raises(InputError, match=words):
        cal.compare(change(two_models()))


def test_mmlu_pro_views_agree_with_plain_numpy(shared_data):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    a, b = "gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"
    column = "logit_perplexity_confidence"
    document = cal.compare(
        path, models=[a, b], confidence=column, on_invalid="drop", resamples=50
    ).to_dict()
    wide = {
        name: pl.read_parquet(path)
        .filter((pl.col("model") == name) & pl.col(column).is_between(0, 1))
        .sort("question_id")
        for name in (a, b)
    }
    common = np.intersect1d(*(wide[name]["question_id"].to_numpy() for name in wide))
    assert document["pairs"][0]["accuracy_gap"]["n"] == common.size
    rows = {name: wide[name].filter(pl.col("question_id").is_in(common)) for name in wide}
    accuracy = {name: rows[name]["correct"].mean() for name in rows}
    for entry in document["results"]:
        part = rows[entry["model"]]
        c, z = part[column].to_numpy().astype(float), part["correct"].to_numpy().astype(float)
        own, target = accuracy[entry["model"]], min(accuracy.values())
        w = np.where(z == 1, target / own, (1 - target) / (1 - own))
        place = np.minimum((c * 15).astype(int), 14)
        gaps = np.bincount(place, weights=w * (c - z), minlength=15)
        assert entry["views"]["da"]["ece"]["value"] == pytest.approx(
            np.abs(gaps).sum() / w.sum(), abs=1e-12
        )
        assert entry["views"]["da"]["brier"]["value"] == pytest.approx(
            (w * (c - z) ** 2).sum() / w.sum(), abs=1e-12
        )


def two_methods(never_right="b"):
    rng = np.random.default_rng(3)
    rows = [
        {
            "question_id": f"q{i}",
            "model": model,
            "method": method,
            "confidence": 7.5 if method == "number_of_classes" else rng.uniform(0.3, 1),
            "correct": 0 if (method, model) == ("verb", never_right) else int(rng.random() < 0.6),
            "topic": "law" if i % 2 else "sport",
        }
        for i in range(80)
        for model in ("a", "b")
        for method in ("sem1", "verb", "number_of_classes")
    ]
    return pl.DataFrame(rows)


def test_what_cannot_be_compared_is_listed_and_the_rest_is_compared():
    result = cal.compare(two_methods(), resamples=50)
    assert {entry["method"] for entry in result["results"]} == {"sem1"}
    reasons = {entry["method"]: entry["reason"] for entry in result["not_compared"]}
    assert set(reasons) == {"verb", "number_of_classes"}
    assert reasons["verb"].startswith("b has accuracy 0")
    assert "no probability" in reasons["number_of_classes"]
    shown = render_markdown(result.to_dict())
    assert "Not compared: verb, because b has accuracy 0" in shown
    assert result["dropped"] == {}, "a score that is no probability breaks no rule"


def test_the_rest_does_not_depend_on_what_cannot_be_compared():
    table = two_methods()
    alone = cal.compare(table.filter(pl.col("method") == "sem1"), resamples=50)
    assert cal.compare(table, resamples=50)["pairs"] == alone["pairs"]
    assert alone["not_compared"] == []


def test_a_group_that_cannot_be_compared_is_named():
    table = two_methods(never_right=None).filter(pl.col("method") == "sem1")
    always = (pl.col("topic") == "law") & (pl.col("model") == "a")
    table = table.with_columns(correct=pl.when(always).then(1).otherwise("correct"))
    result = cal.compare(table, by=["topic"], resamples=50)
    (entry,) = result["not_compared"]
    assert entry["group"] == {"topic": "law"}
    assert {str(part["keys"]["group"]) for part in result["summaries"]} == {
        "None",
        "{'topic': 'sport'}",
    }


def test_where_nothing_can_be_compared_the_reason_is_raised(tmp_path):
    path = tmp_path / "scores.csv"
    two_methods().filter(pl.col("method") != "sem1").write_csv(path)
    with pytest.raises(InputError, match=r"scores\.csv: verb: b has accuracy 0.*none of the 2"):
        cal.compare(path, resamples=50)
    two_methods().filter(pl.col("method") == "number_of_classes").write_csv(path)
    with pytest.raises(InputError, match=r"number_of_classes: the score is no probability"):
        cal.compare(path, resamples=50)


def test_a_comparison_says_how_it_was_made(tmp_path):
    path = tmp_path / "scores.csv"
    two_methods().write_csv(path)
    document = cal.compare(path, models=["b", "a"], method="method", resamples=50, seed=4).to_dict()
    assert document["settings"] == {
        "bins": 15,
        "target": "weakest",
        "level": 0.95,
        "resamples": 50,
        "lipschitz": 1.0,
        "margin": 0.05,
        "models": ["b", "a"],
        "by": [],
        "repeats": False,
        "on_invalid": "missing",
        "graded": False,
        "columns": {"method": "method"},
    }
    assert document["seed"] == 4
    assert document["bins"] == 15
    assert document["input"][0]["path"] == str(path)


@pytest.mark.parametrize("column", ["question_id", "judge", "author"])
def test_a_candidate_without_a_name_is_refused(column):
    pool = pl.DataFrame(
        {"question_id": ["q0", "q0"], "judge": ["a", "b"], "author": "a", "confidence": 0.5}
    ).with_columns(pl.when(pl.int_range(2) == 1).then(None).otherwise(column).alias(column))
    with pytest.raises(InputError, match=f"row 2: a row of the candidates names no {column}"):
        cal.compare(two_methods(), candidates=pool)


def test_a_model_that_is_never_right_is_named_and_the_others_are_compared():
    rng = np.random.default_rng(5)
    rows = [
        {"question_id": i, "model": name, "confidence": rng.random(), "correct": rng.random() < p}
        for name, p in (("small", 0.4), ("large", 0.8), ("broken", 0.0))
        for i in range(80)
    ]
    table = pl.DataFrame(rows)
    result = cal.compare(table, resamples=50)
    assert [entry["model"] for entry in result["results"]] == ["small", "large"]
    (entry,) = result["not_compared"]
    assert entry["model"] == "broken"
    assert "never right (80 answers)" in entry["reason"]
    told = render_markdown(result.to_dict())
    assert "Not compared: broken / confidence, because it is never right" in told
    without = cal.compare(table.filter(pl.col("model") != "broken"), resamples=50)
    assert result["pairs"] == without["pairs"]
    with pytest.raises(InputError, match="broken has accuracy 0"):
        cal.compare(table, models=["small", "broken"], resamples=50)


def test_a_model_that_lost_all_its_rows_is_named():
    rng = np.random.default_rng(6)
    rows = [
        {"question_id": i, "model": name, "confidence": said, "correct": rng.random() < 0.6}
        for name in ("small", "large", "silent")
        for i in range(80)
        for said in [None if name == "silent" else rng.random()]
    ]
    result = cal.compare(pl.DataFrame(rows), on_invalid="drop", resamples=50)
    assert result["emptied_models"] == ["silent"]
    assert "silent has no usable row" in str(result)


def test_incomplete_candidates_shrink_their_own_view_alone():
    table = two_models()
    pool = candidates_of(table).filter(pl.col("question_id").cast(pl.Int64) < 150)
    pair = cal.compare(table, candidates=pool, resamples=50)["pairs"][0]
    assert pair["n"] == pair["gaps"]["raw"]["ece"]["n"] == 400
    assert pair["gaps"]["ca"]["ece"]["n"] == pair["judges"]["gap"]["n"] == 150


def test_the_margin_decides_what_counts_as_equal():
    rng = np.random.default_rng(9)
    parts = []
    for name in ("a", "b"):
        chance = rng.beta(4, 2, 4_000)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(4_000),
                    "model": name,
                    "confidence": chance,
                    "correct": rng.random(4_000) < chance,
                }
            )
        )
    table = pl.concat(parts)
    wide, narrow = (cal.compare(table, margin=m, resamples=200)["pairs"][0] for m in (0.05, 0.001))
    assert (wide["verdict"], narrow["verdict"]) == ("equivalent", "undecided")
    assert wide["evidence"]["equivalence_bound"] < 0.05
    assert "equally well calibrated within 5 points" in wide["text"]


def test_one_model_that_lacks_questions_takes_none_from_the_others():
    table = two_models()
    rng = np.random.default_rng(3)
    few = pl.DataFrame(
        {
            "question_id": np.arange(30),
            "model": "rare",
            "domain": "even",
            "confidence": rng.random(30),
            "correct": rng.random(30) < 0.5,
        }
    )
    alone = cal.compare(table, resamples=50)["pairs"][0]
    document = cal.compare(pl.concat([table, few]), resamples=50)
    (beside,) = [p for p in document["pairs"] if {p["a"], p["b"]} == {"small", "large"}]
    assert beside["n"] == 400
    for view in ("raw", "da", "ia"):
        for metric, gap in alone["gaps"][view].items():
            assert beside["gaps"][view][metric] == pytest.approx(gap, abs=1e-6)
    assert document["summaries"][0]["questions_shared_by_all"] == 30


def test_sentences_say_the_level_that_was_asked_for():
    document = cal.compare(two_models(), level=0.9, resamples=100)
    texts = " ".join(claim["text"] for claim in document["claims"])
    assert "90 % interval" in texts
    assert "95 %" not in texts


def test_candidates_explain_the_verdict_with_a_claim_of_their_own():
    table = two_models()
    grades = {
        (str(row["question_id"]), row["model"]): row["correct"]
        for row in table.iter_rows(named=True)
    }
    sure = pl.DataFrame(
        [
            {**row, "confidence": 0.95 if row["judge"] == "small" else 0.9 * right + 0.05}
            for row in candidates_of(table).iter_rows(named=True)
            for right in [grades[row["question_id"], row["author"]]]
        ]
    )
    document = cal.compare(table, candidates=sure, resamples=200)
    (claim,) = [c for c in document["claims"] if c["id"] == "compare.judges_better"]
    assert claim["outcome"] == "shown"
    assert "large is the better calibrated judge" in claim["text"]


def test_the_share_without_a_confidence_is_that_of_the_answers():
    rng = np.random.default_rng(11)
    rows = []
    for name, share in (("small", 0.6), ("large", 0.8)):
        for i, ok in enumerate(rng.random(600) < share):
            said = np.clip(share + 0.2 + (0.06 if ok else -0.06) + 0.08 * rng.normal(), 0.05, 0.99)
            missing = rng.random() < (0.05 if ok else 0.25)
            rows.append({"question_id": i, "model": name, "correct": int(ok),
                         "confidence": None if missing else float(said)})  # fmt: skip
    table = pl.DataFrame(rows)
    pair = cal.compare(table, resamples=100)["pairs"][0]
    share = table["confidence"].null_count() / table.height
    assert pair["evidence"]["unstated"] == pytest.approx(share)
    assert pair["depends_on"] == "missing"
    assert f"without a stated confidence ({100 * share:.0f} %)" in pair["text"]


def test_progress_is_told_model_by_model():
    told = []
    cal.compare(
        model_scores(("small", "middle", "large")),
        resamples=20,
        watch=lambda *step: told.append(step),
    )
    assert told == [("models compared", done, 3) for done in (1, 2, 3)]
