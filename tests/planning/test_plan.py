"""`calibrant plan` and `calibrant label` as a user meets them."""

import numpy as np
import orjson
import polars as pl
import pytest

from calibrant.core import InputError
from calibrant.core.errors import UnavailableError
from calibrant.report.terminal import render_text
from calibrant.verbs.label import label_status
from calibrant.verbs.plan import plan


def scores(n=600, models=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    parts = []
    for name in models:
        p = rng.beta(5, 1, n)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": [f"q{k}" for k in range(n)],
                    "text": [f"What is {k}?" for k in range(n)],
                    "model": name,
                    "answer": rng.choice(["x", "y"], n),
                    "confidence": p,
                    "correct": (rng.random(n) < np.clip(p - 0.1, 0, 1)).astype(float),
                }
            )
        )
    return pl.concat(parts)


def test_plan_answers_in_both_directions():
    there = plan(precision=0.01, error_rate=0.05, lipschitz=2.0)
    assert there["passive_labels"] == 100_000
    back = plan(labels=100_000, error_rate=0.05, lipschitz=2.0)
    assert back["results"][0]["passive_precision"] == pytest.approx(0.01)
    assert back["passive_labels"] is None


def test_plan_builds_up_step_by_step():
    found = plan(
        precision=0.02,
        error_rate=0.05,
        stages="2,2",
        groups=4,
        smallest_share=0.1,
        model_count=2,
        drift=0.01,
        start="2026-01-01",
    )
    passive = [row["passive_labels"] for row in found["rows"]]
    assert passive == [6250, 31_250, 1_250_000, 2_500_000]
    assert found["results"][0]["expiry"]["date"] == "2026-03-02"
    assert found["results"][0]["expiry"]["half_life"] == pytest.approx(2.0)


def test_plan_curve_holds_the_figure():
    curve = plan(precision=0.01, error_rate=0.05)["curve"]
    assert len(curve) == 33
    slope = np.polyfit(
        np.log([point["precision"] for point in curve[:20]]),
        np.log([point["passive_labels"] for point in curve[:20]]),
        1,
    )[0]
    assert slope == pytest.approx(-3.0, abs=0.01)


def test_plan_measures_on_a_table_and_ranks():
    found = plan(scores(), rank="accuracy", precision=0.02)
    assert [entry["model"] for entry in found["measured"]] == ["a", "b"]
    assert found["leaderboard"]["questions"] == 600
    assert "Measured on the table" in found.to_markdown()
    assert "Leaderboard" in found.to_markdown()
    assert plan(scores())["results"][0]["labels"] == 600


def test_plan_by_claim_needs_no_outcome():
    pool = scores().drop("correct")
    found = plan(pool, claim="ece<0.1", by=["answer"])
    whole = [entry for entry in found["plans"] if entry["group"] is None]
    assert [entry["model"] for entry in whole] == ["a", "b"]
    assert len(found["plans"]) == 6
    needed = whole[0]["needed"]
    assert needed["calibrated"]["one_look"] <= needed["calibrated"]["all_looks"]
    assert needed["calibrated"]["one_look"] < needed["half"]["one_look"]
    assert found["claims"][0]["id"] == "plan.labels_needed"
    assert found["claims"][0]["outcome"] == "depends"
    back = plan(pool, labels=needed["calibrated"]["one_look"])["plans"][0]["shows"]
    assert back["calibrated"] == pytest.approx(0.1, abs=0.005)
    with pytest.raises(InputError, match="nobody knows how the others were chosen"):
        plan(
            scores().with_columns(
                correct=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.col("correct"))
            ),
            precision=0.1,
        )
    with pytest.raises(InputError, match=r"ece<0\.05"):
        plan(pool, claim="brier<0.1")


def test_a_ranking_that_was_asked_for_is_printed_first():
    assert "rank interval" in str(plan(scores(), rank="accuracy"))
    assert "rank interval" not in str(plan(scores()))


def test_plan_ranks_subject_by_subject():
    rows = scores(400).with_columns(topic=pl.col("question_id").str.slice(1, 1))
    found = plan(rows, rank="accuracy", by=["topic"])["subjects"]
    assert [entry["n"] for entry in found] == sorted((e["n"] for e in found), reverse=True)
    assert {"largest_gap", "floor", "above_floor", "instability"} <= set(found[0])


def never_right(rows, name="silent"):
    return rows.filter(pl.col("model") == "b").with_columns(
        model=pl.lit(name), correct=pl.lit(0.0).cast(rows.schema["correct"])
    )


def test_a_model_that_is_never_right_is_named_and_not_ranked():
    rows = scores(400).with_columns(topic=pl.col("question_id").str.slice(1, 1))
    found = plan(pl.concat([rows, never_right(rows)]), rank="accuracy", by=["topic"])
    board = found["leaderboard"]
    assert {entry["model"] for entry in board["results"]} == {"a", "b"}
    assert (len(board["pairs"]), board["questions"]) == (1, 400)
    assert all(set(entry["accuracy"]) == {"a", "b"} for entry in found["subjects"])
    assert found["data"]["warnings"][0]["text"] == (
        "silent is never right (400 answers). It is left out of the ranking."
    )


def test_a_model_that_is_never_right_is_ranked_where_one_other_is_left():
    rows = scores(400).filter(pl.col("model") == "a")
    silent = never_right(scores(400))
    found = plan(pl.concat([rows, silent]), rank="accuracy")
    assert {entry["model"] for entry in found["leaderboard"]["results"]} == {"a", "silent"}
    assert all("left out" not in warning["text"] for warning in found["data"]["warnings"])


def test_the_rest_of_the_paper_is_within_reach():
    found = plan(
        labels=14_000, error_rate=0.05, precision=0.05, growth=0.5, size=1e6, decay=0.25,
        label_rate=100.0, transfer=0.05, correlation=0.5, perturbed_error=0.1, stages="2,2",
        published=(0.902, 0.919),
    )["theory"]  # fmt: skip
    assert found["horizon"]["passive"] == pytest.approx(14_000)
    assert found["scaling"]["labels"] == pytest.approx(1000)
    assert found["dynamics"]["passive"]["outcome"] == "from"
    assert found["transfer"]["labels"] == 400
    assert found["effective_labels"] == 7000
    assert found["depth"]["deepest"] == 5
    assert found["published"]["outcome"] == "shown"
    assert set(found["robustness_floor"]) == {"passive", "active"}
    many = plan(labels=164, published=(0.9, 0.92, 0.95))["theory"]["published_pairs"]
    assert [(pair["a"], pair["b"]) for pair in many] == [(0.9, 0.92), (0.9, 0.95), (0.92, 0.95)]
    assert {pair["outcome"] for pair in many} == {"undecided"}
    asked = {"labels": 14_000, "error_rate": 0.05, "rounds": (0.1, 0.5)}
    assert plan(**asked)["theory"]["rounds"] == 4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": 0.1},
        {"precision": -0.1, "error_rate": 0.1},
        {"precision": 0.1, "error_rate": 0.1, "stages": "2,x"},
        {"precision": 0.1, "error_rate": 0.1, "start": "tomorrow", "drift": 0.1},
    ],
)
def test_plan_refuses_half_a_question(options):
    with pytest.raises(InputError):
        plan(**options)


def test_below_the_phase_transition_the_plan_says_so():
    notes = plan(labels=5, error_rate=0.01)["results"][0]["notes"]
    assert "phase transition" in notes[0]


def test_errors_name_the_file(tmp_path):
    table = tmp_path / "bad.csv"
    pl.DataFrame({"confidence": [0.5, 1.5], "correct": [1, None]}).write_csv(table)
    with pytest.raises(InputError, match=r"bad\.csv, row 2"):
        label_status(table)


def test_label_free_table_to_audit_is_refused(tmp_path):
    from calibrant.verbs.audit import audit

    table = tmp_path / "free.csv"
    pl.DataFrame({"confidence": [0.5, 0.9]}).write_csv(table)
    with pytest.raises((UnavailableError, InputError)) as caught:
        audit(str(table))
    assert "label" in str(caught.value)


def test_documents_are_json_and_seeded(tmp_path):
    from calibrant.core.document import dump_document

    hidden = scores().with_columns(
        correct=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.col("correct"))
    )
    store = tmp_path / "labels.sqlite"
    for make in (
        lambda: plan(scores(), rank="ece"),
        lambda: plan(hidden.drop("correct"), claim="ece<0.1", labels=200),
        lambda: label_status(hidden, existing="random", labels=store),
    ):
        first, second = (dump_document(make().to_dict()) for _ in range(2))
        assert first == second
        assert orjson.loads(first)["schema"].startswith("calibrant.")


ASKED = {
    "may be equal: undecided": {"published": (0.902, 0.919), "labels": 164},
    "largest size still verified": {"labels": 14_000, "error_rate": 0.05, "growth": 0.5},
    "labels at size 1e+06": {"labels": 10, "error_rate": 0.05, "growth": 0.5, "size": 1e6},
    "labelling keeps up": {"error_rate": 0.05, "decay": 0.3, "label_rate": 100.0,
                           "precision": 0.02},
    "deepest pipeline": {"error_rate": 0.05, "stages": (2.0, 2.0), "labels": 14_000,
                         "precision": 0.02},
    "labels for a shift": {"error_rate": 0.05, "transfer": 0.02, "precision": 0.02},
    "independent labels": {"error_rate": 0.05, "labels": 1000, "correlation": 0.3},
    "recalibrations whose gain can be seen": {"error_rate": 0.05, "labels": 14_000,
                                              "rounds": (0.1, 0.5)},
    "two-phase audit": {"error_rate": 0.16, "labels": 10_000, "lipschitz": 2.5, "two_phase": True},
    "0 of 3 pairs of published scores": {"published": (0.9, 0.92, 0.95), "labels": 164},
    "when perturbed": {"error_rate": 0.05, "labels": 1000, "perturbed_error": 0.1},
    "if the groups are known": {"error_rate": 0.3, "grouping_loss": 0.01},
    "if a temperature is off": {"scores": "pool", "labels": 300},
    "confidence against the size of its gap": {"scores": "pool"},
}  # fmt: skip


@pytest.mark.parametrize("told", ASKED)
def test_the_rest_of_the_paper_is_asked_for_and_answered(told):
    options = dict(ASKED[told])
    if options.pop("scores", None):
        rng = np.random.default_rng(0)
        p = rng.uniform(0, 1, 600)
        options["scores"] = {"confidence": p, "correct": (rng.random(600) < p).astype(int)}
    found = plan(**options)
    assert found["theory"]
    assert told in render_text(found, width=120, full=True)


def test_labels_for_a_grouping_loss_need_less_where_a_confidence_is_known():
    alone = plan(error_rate=0.3, grouping_loss=0.01)
    assert alone["theory"]["grouping"] == {
        "loss": 0.01,
        "noise": pytest.approx(0.21),
        "labels": 130,
    }
    assert alone["results"][0]["labels"] == 130
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.3, 2_000)
    table = {"confidence": p, "correct": (rng.random(2_000) < p).astype(int)}
    sharp = plan(table, grouping_loss=0.01)["theory"]["grouping"]
    assert sharp["noise"] == pytest.approx((p * (1 - p)).mean(), rel=0.1)
    assert (
        sharp["labels"]
        < 0.6 * plan(error_rate=0.5, grouping_loss=0.01)["theory"]["grouping"]["labels"]
    )
    assert plan(table, grouping_loss=0.01)["plans"] == []
    with pytest.raises(InputError, match=r"above 0 and at most 0\.25"):
        plan(error_rate=0.3, grouping_loss=0)


def test_a_claim_about_all_answers_takes_more_labels_than_one_about_the_pool():
    p = np.random.default_rng(0).beta(6, 2, 600)
    pool, wide = (
        plan({"confidence": p}, claim="ece<0.1", target=target)["plans"][0]["needed"]
        for target in ("pool", "population")
    )
    assert wide["calibrated"]["one_look"] > pool["calibrated"]["one_look"]


def test_a_labelled_table_says_that_its_labels_answer():
    """Nothing is left to label; a pool of which some rows are open is planned for as it is."""
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 300)
    table = {"confidence": sure, "correct": (rng.random(300) < sure).astype(int)}
    found = plan(table, claim="ece<0.1")
    text = "All 300 rows have a label already. An audit says what they show"
    assert found["data"]["warnings"][0]["text"].startswith(text)
    assert text in str(found)
    assert plan({"confidence": sure}, claim="ece<0.1")["data"]["warnings"] == []
    assert plan(precision=0.1, error_rate=0.2)["data"]["warnings"] == []


def test_no_error_among_few_answers_is_no_error_rate_of_zero():
    rng = np.random.default_rng(8)
    table = {"confidence": rng.beta(4, 2, 60), "correct": np.ones(60)}
    found = plan(table, claim="ece<0.05")
    (rate,) = [block["verification"]["error_rate"] for block in found["measured"]]
    assert rate["value"] == 0
    assert found["results"][0]["error_rate"] == rate["high"] > 0.02
    assert found["passive_labels"] > 100
    assert found["data"]["warnings"][-1]["text"] == (
        "No labelled answer is wrong. The worst case takes an error rate of 6 %, which is still "
        "possible."
    )
    assert plan(table, claim="ece<0.05", error_rate=0.3)["data"]["warnings"][-1]["id"] != (
        "data.no_error"
    )


def test_an_error_is_never_easier_to_rule_out_than_none():
    """Two labels 'can show an error below 51 points; below 50, if its error is half of that'."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.3, 1, 2).round(2)
        shows = plan(pl.DataFrame({"confidence": p}), labels=2)["plans"][0]["shows"]
        assert shows["half"] is None or shows["calibrated"] <= shows["half"]


def stages_table(slopes, n=6000):
    """Return a pipeline's log: per stage a confidence whose gap has this slope."""
    rng = np.random.default_rng(5)
    parts = []
    for name, slope in slopes.items():
        p = rng.random(n)
        chance = np.clip(0.5 + (1 + slope) * (p - 0.5), 0, 1)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(n),
                    "model": name,
                    "confidence": p,
                    "correct": (rng.random(n) < chance).astype(int),
                }
            )
        )
    return pl.concat(parts)


def test_the_steepness_of_a_pipeline_is_read_from_its_log():
    table = stages_table({"retrieve": -0.3, "answer": -0.8})
    found = plan(table, stages="measured", precision=0.05)
    pipeline = found["theory"]["pipeline"]
    assert pipeline["names"] == ["retrieve", "answer"]
    first, last = pipeline["stages"]
    assert pipeline["bound"] == pytest.approx(first * last + 1)
    assert pipeline["whole"]["value"] == pytest.approx(last)
    assert found["settings"]["stages"] == [first, last]


def test_one_stage_is_no_pipeline():
    with pytest.raises(InputError, match="two stages"):
        plan(stages_table({"answer": -0.5}), stages="measured", precision=0.05)
    with pytest.raises(InputError, match="about a table"):
        plan(stages="measured", precision=0.05, error_rate=0.1)


def drawn_twice(questions, draws, seed, *, sharp=(0.9, 0.6)):
    """Two models that are right on the same share; the first repeats itself more often."""
    rng = np.random.default_rng(seed)
    rows = []
    for model, share in zip("ab", sharp, strict=True):
        right = rng.random(questions) < 0.5
        leads = rng.random((questions, draws)) < share
        answer = np.where(leads, np.where(right, "gold", "no")[:, None],
                          rng.choice(["x", "y", "z"], (questions, draws)))  # fmt: skip
        asked = {"question": [f"q{n}" for n in range(questions)], "samples": answer.tolist()}
        rows.append(pl.DataFrame(asked).with_columns(model=pl.lit(model)))
    return pl.concat(rows).with_columns(gold=pl.lit("gold"))


def test_draws_plan_the_questions_that_tell_two_models_apart(tmp_path):
    table = drawn_twice(150, 10, 1)
    found = plan(table, samples="samples", reference="gold", question="question")
    (pair,) = found["theory"]["meanings"]
    assert (pair["model_a"], pair["model_b"], pair["questions"], pair["draws"]) == (
        "a",
        "b",
        150,
        10,
    )
    # Both are right in half of the questions: the gap differs by what they repeat.
    assert pair["difference"]["low"] < 0.3 < pair["difference"]["high"]
    assert found["settings"]["samples"] == "samples"
    told = render_text(found)
    assert "a and b differ by meaning" in told
    assert "label next" not in told
    by_draws = {step["draws"]: step["questions"] for step in pair["needed"]}
    assert set(by_draws) == {5, 10, 20}
    smaller = plan(table, samples="samples", reference="gold", precision=0.1)["theory"]["meanings"]
    # A third of the difference takes about nine times the questions.
    ratio = smaller[0]["needed"][1]["questions"] / by_draws[10]
    assert ratio == pytest.approx((pair["aim"] / 0.1) ** 2, rel=0.1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"claim": "ece<0.05"}, "claim is about scores"),
        ({"cluster": "model"}, "cluster is about scores"),
        ({"rank": "ece"}, "rank is about scores"),
    ],
)
def test_options_about_scores_are_refused_beside_draws(options, told):
    with pytest.raises(InputError, match=told):
        plan(drawn_twice(30, 4, 0), samples="samples", reference="gold", **options)


def test_a_plan_by_meaning_says_what_it_lacks():
    table = drawn_twice(30, 4, 0)
    columns = {"samples": "samples", "reference": "gold"}
    with pytest.raises(InputError, match="compares two models, got one"):
        plan(table.filter(pl.col("model") == "a"), **columns)
    few = table.with_columns(pl.col("samples").list.head(2))
    with pytest.raises(InputError, match="needs 4 draws of a question, got 2"):
        plan(few, **columns)
    apart = table.with_columns(question=pl.col("model") + pl.col("question"))
    with pytest.raises(InputError, match="a and b have 0 questions in common"):
        plan(apart, **columns)
    with pytest.raises(InputError, match="none is given"):
        plan(samples="samples")
