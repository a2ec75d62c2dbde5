"""Many models of few rows: the numbers of each are those it has alone."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal

MODELS, ROWS = 300, 20
# What does not depend on how many other models there are.
OWN = ("n", "questions", "metrics", "calibration_test", "reliability", "thresholds", "verification")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    confidence = rng.random(MODELS * ROWS).round(2)
    return pl.DataFrame(
        {
            "model": np.repeat([f"m{number}" for number in range(MODELS)], ROWS),
            "question_id": np.tile(np.arange(ROWS), MODELS),
            "confidence": confidence,
            "correct": (rng.random(MODELS * ROWS) < confidence).astype(int),
        }
    )


@pytest.fixture(scope="module")
def entries(table):
    found = cal.audit(table, resamples=100)["results"]
    assert len(found) == MODELS
    return {entry["model"]: entry for entry in found}


def assert_alike(a, b, where):
    """Hold two documents against each other: words alike, numbers to the twelfth digit.

    Special functions of few numbers are computed here, of many by scipy.
    """
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_alike(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for place, pair in enumerate(zip(a, b, strict=True)):
            assert_alike(*pair, f"{where}[{place}]")
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-12, abs=1e-15, nan_ok=True), where
    else:
        assert a == b, where


@pytest.mark.parametrize("number", [0, 1, 57, 123, 298, 299])
def test_a_model_has_the_numbers_it_has_alone(table, entries, number):
    name = f"m{number}"
    (alone,) = cal.audit(table.filter(pl.col("model") == name), resamples=100)["results"]
    for key in OWN:
        assert_alike(entries[name][key], alone[key], key)
    tests = ("calibration", "gap")
    assert [entries[name]["significance"][test]["p_value"] for test in tests] == [
        alone["significance"][test]["p_value"] for test in tests
    ]


def test_another_name_moves_simulated_ends_alone(table):
    """Each block draws from a stream of its own, named after it: what is not drawn stays."""
    one = table.filter(pl.col("model") == "m7")
    first, second = (
        cal.audit(one.with_columns(model=pl.lit(name)), resamples=2000)["results"][0]
        for name in ("a", "b")
    )
    for key in ("n", "questions", "calibration_test", "thresholds"):
        assert first[key] == second[key], key
    for key in ("calibration", "gap"):
        assert first["significance"][key] == second["significance"][key], key
    assert first["reliability"]["bins"] == second["reliability"]["bins"]
    assert first["metrics"].keys() == second["metrics"].keys()
    for key, estimate in first["metrics"].items():
        again = second["metrics"][key]
        assert estimate["value"] == again["value"], key
        for end in ("low", "high"):
            assert estimate[end] == pytest.approx(again[end], abs=0.05), key
    drawn = "resolution"
    assert {**first["verification"], drawn: 0} == {**second["verification"], drawn: 0}


def test_every_verdict_is_about_its_own_model(entries):
    for name, entry in entries.items():
        if entry["verdict"]["calibration"] != "not-a-probability":
            assert entry["verdict"]["how"].startswith(f"{name} says"), entry["verdict"]


def test_verdicts_of_groups_are_told_apart(table):
    split = table.head(2 * ROWS).with_columns(
        part=pl.when(pl.col("question_id") < 10).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    found = cal.audit(split, by=["part"], resamples=100)["results"]
    texts = [entry["verdict"]["how"] for entry in found]
    assert len(found) == 6
    assert len(set(texts)) == 6


def test_another_seed_gives_other_ends(table):
    one = table.head(ROWS)
    ends = [
        cal.audit(one, resamples=100, seed=seed)["results"][0]["metrics"]["ece"]["high"]
        for seed in (0, 1)
    ]
    assert ends[0] != ends[1]
