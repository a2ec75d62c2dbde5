"""plan, label, audit and compare answer one question with one test, on the same rows."""

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.sources.options import ReadingOptions
from calibrant.labels import pool as pools

MARGIN = 0.02
ROLES = ("confidence", "correct", "model", "method", "question", "answer")
QUIET = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
)


@st.composite
def tables(draw, most=500):
    """Models on shared questions: spread or tied confidences, calibrated, over, under or wavy."""
    n = draw(st.integers(60, most))
    models = draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    together = draw(st.sampled_from([0.0, 0.6]))
    hard = rng.random(n)
    parts = []
    for number in range(models):
        a, b = draw(st.sampled_from([(8, 1), (3, 2), (2, 2), (30, 1)]))
        p = rng.beta(a, b, n)
        if draw(st.booleans()):
            p = np.round(p, 1)
        off = draw(st.sampled_from([0.0, 0.0, 0.05, 0.2, -0.15, "wavy"]))
        chance = p + 0.15 * np.sin(8 * p) if off == "wavy" else p - off
        luck = np.where(rng.random(n) < together, hard, rng.random(n))
        parts.append(
            pl.DataFrame(
                {
                    "question_id": [f"{k:04d}" for k in range(n)],
                    "model": f"m{number}",
                    "confidence": p,
                    "correct": (luck < np.clip(chance, 0.02, 0.98)).astype(float),
                }
            )
        )
    return pl.concat(parts)


def open_pool(table, *, columns, **drawn):
    return pools.open_pool(table, asked=ReadingOptions(**columns), **drawn)


def by_model(entries):
    return {entry["model"]: entry for entry in entries}


def side(estimate):
    """Which side of 0 an interval lies on, or 0 where it holds 0 or ends within a tenth of it."""
    low, high = estimate["low"], estimate["high"]
    near = 0.1 * (high - low)
    return 1 if low > near else -1 if high < -near else 0


def differs(one, other, rel):
    return abs(one - other) > rel * max(abs(one), abs(other)) + 1e-9


def check(audited, planned, labelled, compared):
    """What the four say about each model is one answer."""
    assert audited
    for model, audit in audited.items():
        plan, label, own = planned[model], labelled[model], compared[model]
        metrics, tests = audit["metrics"], audit["significance"]
        # plan and audit: the very same tests.
        assert plan["significance"] == tests, model
        # compare: the same values, and intervals of the same data.
        pairs = (
            (own["accuracy"], metrics["accuracy"]),
            (own["mean_confidence"], metrics["mean_confidence"]),
            (own["views"]["raw"]["ece"], metrics["ece"]),
            (own["views"]["raw"]["brier"], metrics["brier"]),
            (own["companions"]["over_confidence"], metrics["confidence_gap"]),
        )
        for there, here in pairs:
            assert not differs(there["value"], here["value"], 1e-9), model
        wide = label["population"]
        sides = {
            side(metrics["confidence_gap"]),
            side(own["companions"]["over_confidence"]),
            side(wide["gap"]),
        }
        assert not {-1, 1} <= sides, (model, "opposite directions")
        clear = {
            side(metrics["confidence_gap"]) or None,
            side(wide["gap"]) or None,
        } - {None}
        assert len(clear) <= 1, model
        # Nobody calls an error small that another one has shown to be large.
        assert metrics["ece"]["low"] <= wide["ece_upper"] + 1e-9
        assert wide["ece"]["low"] <= tests["within_margin"]["error"]["upper"] + 1e-9


def four(table, label_options, table_of_plan=None):
    planned = cal.plan(table if table_of_plan is None else table_of_plan)
    status = cal.label_status(table, **label_options)
    labels = label_options.get("labels")
    audit = cal.audit(table, resamples=100, margin=MARGIN, labels=labels)
    compare = cal.compare(table, resamples=100, labels=labels)
    return (
        by_model(audit["results"]),
        by_model(planned["measured"]),
        by_model(status["results"]),
        by_model(compare["results"]),
    )


@QUIET
@given(tables())
def test_a_table_that_is_labelled_throughout(table):
    check(*four(table, {"existing": "random"}))


@settings(QUIET, max_examples=4)
@given(tables(most=300), st.integers(0, 1000))
def test_labels_that_are_a_random_choice_of_questions(tmp_path_factory, table, seed):
    folder = tmp_path_factory.mktemp("pool")
    pool, exported = folder / "pool.parquet", folder / "labels.parquet"
    table.drop("correct").write_parquet(pool)
    truth = dict(zip(zip(table["question_id"], table["model"], strict=True), table["correct"],
                     strict=True))  # fmt: skip
    models = table["model"].n_unique()
    many = max(table.height // (2 * models), 40) * models
    work = open_pool(
        pool, columns={**dict.fromkeys(ROLES), "on_invalid": "error"}, design="random",
        whole_questions=True, overlap=0.0, seed=seed, wave=many,
    )  # fmt: skip
    # Whole questions: whoever stops in the middle of one loses its other models.
    for item in work.session.take("ann", many):
        said = "right" if truth[item.key.question_id, item.key.model] else "wrong"
        work.session.store.label(item.id, "ann", said)
    cal.label_export(pool, out=exported)
    rows = pl.read_parquet(exported)
    assert rows.group_by("question_id").len()["len"].n_unique() == 1
    check(*four(pool, {}, exported))


def test_a_clear_case_is_told_alike_by_all():
    """25 points over-confident, and calibrated within 10 points: four verbs, one answer each."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 3000)
    names = [f"{k:04d}" for k in range(3000)]
    parts = [
        pl.DataFrame(
            {"question_id": names, "model": model, "confidence": p,
             "correct": (rng.random(3000) < p - off).astype(float)}
        )
        for model, off in (("calibrated", 0.0), ("over", 0.25))
    ]  # fmt: skip
    table = pl.concat(parts)
    audited, planned, labelled, compared = four(table, {"existing": "random", "threshold": 0.1})
    for model, below in (("calibrated", True), ("over", False)):
        assert (audited[model]["significance"]["within_margin"]["error"]["upper"] < 0.1) is below
        assert (planned[model]["significance"]["within_margin"]["error"]["upper"] < 0.1) is below
        assert (labelled[model]["population"]["ece_upper"] < 0.1) is below
        assert (labelled[model]["stop"]["bounds"]["high"] < 0.1) is below
        assert (compared[model]["views"]["raw"]["ece"]["high"] < 0.1) is below
    claims = cal.label_status(table, existing="random", threshold=0.1)["claims"]
    told = {claim["subject"]["model"]: claim["text"] for claim in claims}
    assert "below" in told["calibrated"]
    assert "above" in told["over"]
    audit = cal.audit(table, resamples=100, margin=0.1)["claims"]
    small = {c["subject"]["model"]: c["outcome"] for c in audit if c["id"] == "audit.miscalibrated"}
    assert small == {"calibrated": "equivalent", "over": "shown"}


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_forecast_of_a_plan_is_the_bound_of_label(share):
    """`plan --labels` on a pool: label then shows the threshold that was promised in 80 %."""
    rng = np.random.default_rng(1)
    p = rng.beta(6, 2, 800)
    labels = int(share * 400)
    promised = cal.plan({"confidence": p}, labels=labels)["plans"][0]["shows"]["calibrated"]
    shown = 0
    for seed in range(60):
        draws = np.random.default_rng([2, seed])
        y = (draws.random(800) < p).astype(object)
        y[draws.permutation(800)[labels:]] = None
        found = cal.label_status({"confidence": p, "correct": y.tolist()}, existing="random")
        shown += found["results"][0]["ece_upper"] < promised
    assert 39 <= shown <= 58
