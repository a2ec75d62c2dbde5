import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from calibrant.cli.main import app
from calibrant.core import InputError
from calibrant.report import render_text
from calibrant.report.captions import title_line
from calibrant.trust import GroupCorrector, load_policy
from calibrant.verbs.cascade import cascade
from calibrant.verbs.decide import decide
from calibrant.verbs.groups import groups


@pytest.fixture(scope="module")
def table():
    """One row per question and model; topics the models are not equally good at."""
    rng = np.random.default_rng(0)
    n = 1200
    topic = rng.choice(["law", "maths", "art"], n)
    rows = []
    for model, skill in (("small", [0.3, 0.8, 0.6]), ("large", [0.8, 0.85, 0.8])):
        chance = np.select([topic == "law", topic == "maths"], skill[:2], skill[2])
        rows.append(
            pl.DataFrame(
                {
                    "question_id": [f"q{i}" for i in range(n)],
                    "model": [model] * n,
                    "topic": topic,
                    "tokens": rng.integers(5, 50, n),
                    "confidence": np.clip(chance.mean() + 0.1 * rng.normal(size=n), 0, 1),
                    "correct": (rng.random(n) < chance).astype(int),
                }
            )
        )
    return pl.concat(rows)


def test_groups_document_has_the_fixed_names(table):
    one = groups(table, features=["topic", "tokens"], models=["small"]).to_dict()
    assert one["schema"] == "calibrant.groups/1"
    assert set(one["grouping_loss"]) == {"value", "low", "high", "n"}
    assert one["calibration_loss"]["value"] is not None
    law = next(group for group in one["groups"] if group["rule"] == "topic = law")
    assert law["flagged"]
    assert law["gap"] == pytest.approx(law["mean_confidence"] - law["rate"])
    assert {"rule", "n", "mean_confidence", "rate", "gap", "flagged"} <= set(law)
    several = groups(table, features=["topic"]).to_dict()
    assert [entry["model"] for entry in several["results"]] == ["small", "large"]


def test_estimators_of_the_literature_stand_beside_the_default(table):
    plain = groups(table, features=["topic"], models=["small"])
    for name in ("tree", "binned"):
        found = groups(table, features=["topic"], models=["small"], estimator=name)
        assert found["grouping_loss"] == plain["grouping_loss"]
        assert found["claims"] == plain["claims"]
        assert found["results"][0]["published_loss"]["value"] is not None
        assert "as published" in render_text(found.to_dict(), full=True)
    assert "published_loss" not in plain["results"][0]


def test_groups_of_one_seed_are_the_same_bytes(table):
    first, again = (groups(table, features=["topic"], seed=3).to_dict() for _ in range(2))
    assert first == again


def test_cascade_document_and_saved_policy(table, tmp_path):
    result = cascade(
        table,
        models=["small", "large"],
        features=["topic", "tokens"],
        price={"small": 1, "large": 5},
        random_splits=3,
        save=tmp_path / "policy.json",
    ).to_dict()
    entry = result["results"][0]
    assert entry["features"] == {"question": ["topic"], "answer": ["tokens"]}
    names = [strategy["name"] for strategy in entry["strategies"]]
    assert names == ["value", "risk", "calibration", "confidence", "router"]
    risk = entry["strategies"][1]
    assert risk["area"]["value"] > entry["strategies"][2]["area"]["value"], "topics matter here"
    policy = load_policy(tmp_path / "policy.json")
    assert policy.route({"topic": "never seen", "question_id": "1"}, {}).action == "ask"
    promise = entry["policy"]["promise"]
    assert promise["accuracy"]["low"] < promise["accuracy"]["value"]
    assert policy.promise["cost"] == promise["cost"]
    assert {claim["id"] for claim in result["claims"]} <= {
        "cascade.beats_largest",
        "cascade.guarantee",
    }
    assert any(point["pareto"] for strategy in entry["strategies"] for point in strategy["curve"])
    assert entry["learning_curve"][0]["labels"] < entry["learning_curve"][-1]["labels"]
    assert (tmp_path / "policy.json").exists()


def test_class_decisions_of_all_strategies_use_the_costs(table):
    outcome = table.filter(pl.col("model") == "large").select("question_id", y="correct")
    both = table.join(outcome, on="question_id").with_columns(correct="y").drop("y")
    entry = cascade(
        both,
        models=["small", "large"],
        features=["topic"],
        price={"small": 1, "large": 5},
        random_splits=2,
        decision="class",
        costs={"c10": 1, "c01": 9},
    )["results"][0]
    said = both.filter(pl.col("model") == "large")
    missed = ((said["confidence"] < 0.1) & (said["correct"] == 1)).mean()
    false = ((said["confidence"] >= 0.1) & (said["correct"] == 0)).mean()
    worth = 1 - (9 * missed + false) / 9
    assert entry["measure"] == "worth"
    assert entry["models"][1]["accuracy"]["value"] == pytest.approx(worth, abs=0.03)


def test_command_line_writes_json_and_reads_it_as_a_person_would(table, tmp_path):
    path = tmp_path / "scores.csv"
    table.write_csv(path)
    run = CliRunner().invoke(
        app,
        [
            "groups",
            str(path),
            "--features",
            "topic,tokens",
            "--models",
            "small",
            "--json",
            str(tmp_path / "g.json"),
        ],
    )
    assert run.exit_code == 0, run.output
    assert "topic = law" in run.output
    assert json.loads((tmp_path / "g.json").read_text())["groups"]
    run = CliRunner().invoke(
        app,
        [
            "cascade",
            str(path),
            "--models",
            "small,large",
            "--price",
            "1,5",
            "--features",
            "topic",
            "--random-splits",
            "2",
            "--json",
            "-",
        ],
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["schema"] == "calibrant.cascade/1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"models": ["small", "larg"]}, "no model 'larg'"),
        ({"models": ["large", "small"]}, "cheapest first"),
        ({"models": ["small"]}, "at least two models"),
        ({"price": None}, "needs costs"),
        ({"price": {"small": 1}}, "price of the model 'large'"),
        ({"strategies": ("luck",)}, "no strategy 'luck'"),
        ({"colour": "red"}, "no option 'colour'"),
        ({"random_splits": 1}, "at least 2 splits"),
        ({"features": ["tokens"], "strategies": ("risk",)}, "known before any model is asked"),
        ({"costs": {"c10": 0, "c01": 0}}, "> 0, got"),
    ],
)
def test_bad_cascades_are_refused(table, options, words):
    given = {
        "models": ["small", "large"],
        "features": ["topic"],
        "price": {"small": 1, "large": 5},
        "random_splits": 2,
    }
    with pytest.raises(InputError, match=words):
        cascade(table, **{**given, **options})


def test_a_cascade_needs_no_column_but_the_confidence(tmp_path):
    rng = np.random.default_rng(1)
    said = rng.uniform(0.05, 0.99, 1000)
    right = np.concatenate([rng.random(1000) < said, rng.random(1000) < 0.9]).astype(int)
    bare = {
        "question_id": [f"q{number}" for number in range(1000)] * 2,
        "model": ["small"] * 1000 + ["large"] * 1000,
        "confidence": np.concatenate([said, np.full(1000, 0.9)]),
        "correct": right,
    }
    found = cascade(
        bare,
        models=["small", "large"],
        price=[1, 5],
        random_splits=2,
        budget=0.7,
        save=tmp_path / "policy.json",
    ).to_dict()
    names = {entry["name"] for entry in found["results"][0]["strategies"]}
    assert names == {"value", "calibration", "confidence"}
    policy = load_policy(tmp_path / "policy.json")
    assert policy.route({"question_id": "q1"}, {}).model == "small"
    sure = policy.route({"question_id": "q1"}, {"small": 0.98})
    unsure = policy.route({"question_id": "q1"}, {"small": 0.1})
    assert (sure.action, unsure.action) == ("answer", "ask")


def test_bad_groups_are_refused(table):
    with pytest.raises(InputError, match="no column 'topics'"):
        groups(table, features=["topics"])
    with pytest.raises(InputError, match="which columns make the groups") as refused:
        groups(table, features=[])
    assert str(refused.value.hint) == 'name columns, for example features=["topic", "tokens"]'
    holes = table.with_columns(topic=pl.when(pl.col("tokens") > 6).then("topic"))
    with pytest.raises(InputError, match="feature 'topic' is missing in"):
        groups(holes, features=["topic"], on_invalid="error")
    for how in (None, "drop"):
        dropped = groups(holes, features=["topic"], on_invalid=how).to_dict()["dropped"]
        assert dropped["feature_missing"] == holes["topic"].null_count()
    with pytest.raises(InputError, match=r"at least 100 labelled rows.*model small"):
        groups(table.filter(pl.col("question_id").str.len_chars() <= 2), features=["topic"])


def test_groups_named_saved_and_told(table, tmp_path):
    result = groups(
        table.filter(pl.col("model") == "small"),
        features=["topic", "tokens"],
        group=["long answers: tokens>5"],
        costs={"c10": 2, "c01": 1},
        save=tmp_path / "corrector.json",
    ).to_dict()
    ids = {claim["id"] for claim in result["claims"]}
    assert {"groups.recalibration", "groups.grouping_loss", "groups.decision_risk"} <= ids
    assert "groups.stands_out" in ids
    assert result["results"][0]["copy_check"]["passed"] in (True, False)
    named = [g for g in result["groups"] if g["kind"] == "named"]
    assert [group["rule"] for group in named] == ["long answers"]
    (told,) = [claim for claim in result["claims"] if claim["id"] == "groups.named"]
    assert told["subject"]["rule"] == "long answers"
    # What decisions cost in a group, and what better ones would save there.
    law = next(group for group in result["groups"] if group["rule"] == "topic = law")
    assert law["saved"]["value"] <= law["cost"]["value"]
    small = table.filter((pl.col("model") == "small") & (pl.col("topic") == "law"))
    one = small["confidence"].to_numpy() >= 2 / 3
    right = small["correct"].to_numpy() == 1
    paid = np.where(one & ~right, 2.0, 0.0) + np.where(~one & right, 1.0, 0.0)
    assert law["cost"]["value"] == pytest.approx(paid.mean())
    corrector = GroupCorrector.load(tmp_path / "corrector.json")
    assert 0 <= corrector.predict_one({"topic": "x", "tokens": 3}, 0.5) <= 1


def test_several_models_are_summed_up(table):
    result = groups(table, features=["topic"]).to_dict()
    assert len(result["results"]) == 2
    assert all(set(row) >= {"rule", "models", "of"} for row in result["across"])


def test_texts_and_vectors_become_groups(table):
    rows = table.filter(pl.col("model") == "small").with_columns(
        text=pl.lit("a question about ") + pl.col("topic") + pl.lit(" and things"),
        vector=pl.concat_list(pl.col("tokens").cast(pl.Float64), pl.lit(1.0)),
    )
    result = groups(rows, features=["vector"], embed="text", embed_with="words").to_dict()
    about = result["embedding"]["groups"]
    assert set(about) == {"vector group", "text about"}
    assert all(len(item["examples"]) <= 3 for item in about["text about"].values())
    assert not any("text_1" in group["rule"] for group in result["groups"])


def test_decide_promises_saves_and_loads(table, tmp_path):
    rows = table.filter(pl.col("model") == "large")
    result = decide(rows, max_error=0.4, save=tmp_path / "policy.json").to_dict()
    entry = result["results"][0]
    policy = load_policy(tmp_path / "policy.json")
    assert policy.threshold == entry["threshold"]
    assert result["claims"][0]["id"] == "decide.error_limit"
    assert policy.fitted_on["model"] == "large"
    # All labels certify where no score is learned.
    assert policy.n == result["claims"][0]["n"] == entry["answered"]["n"] == rows.height
    text = result["claims"][0]["text"]
    assert f"for questions like the {rows.height:,} labelled ones" in text
    assert "Holds overall, not for each group." in text
    assert f"{rows.height:,} rows" in title_line(result)
    # A learned score takes a third of them.
    learned = decide(rows, max_error=0.4, features=["tokens"]).to_dict()["results"][0]
    assert learned["answered"]["n"] == rows.height - rows.height // 3
    with pytest.raises(InputError, match="the table has 2"):
        decide(table, max_error=0.4, save=tmp_path / "policy.json")
    with pytest.raises(InputError, match="a limit on the error, or costs"):
        decide(rows)
