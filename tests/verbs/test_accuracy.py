"""Grades without a confidence: shares right, repeats, differences of pairs."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.verbs.accuracy import _share


def graded(questions=200, repeats=1, seed=0, skills=(("small", 0.0), ("large", 1.0))):
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 1.5, questions)
    return pl.DataFrame(
        [
            {"question_id": f"q{n}", "model": model, "correct": int(rng.random() < chance[n])}
            for model, skill in skills
            for chance in [1 / (1 + np.exp(hard - skill))]
            for n in range(questions)
            for _ in range(repeats)
        ]
    )


def test_an_audit_says_how_often_each_model_is_right_and_that_no_more_can_be_told(tmp_path):
    table = graded()
    found = cal.audit(table)
    assert found["schema"] == "calibrant.accuracy/1"
    assert "no confidence" in found["data"]["notes"][0]
    for entry in found["results"]:
        rows = table.filter(pl.col("model") == entry["model"])["correct"]
        ends = binomtest(int(rows.sum()), rows.len()).proportion_ci(method="wilson")
        assert entry["accuracy"]["value"] == pytest.approx(rows.mean())
        assert entry["accuracy"]["low"] == pytest.approx(ends.low, abs=1e-3)
        assert entry["disagree"] is None
    assert found["next"]["command"] == "calibrant methods"
    page = tmp_path / "page.html"
    found.to_html(page)
    assert "large is right more often than small" in page.read_text(encoding="utf-8")


def test_compare_tests_pairs_exactly_and_corrects_for_their_number():
    table = graded(skills=(("a", 0.0), ("b", 1.0), ("c", 1.0)))
    pairs = cal.compare(table)["pairs"]
    wide = table.pivot("model", index="question_id", values="correct")
    for pair in pairs:
        d = (wide[pair["a"]] - wide[pair["b"]]).to_numpy()
        assert pair["difference"]["value"] == pytest.approx(d.mean())
        assert pair["p"] == pytest.approx(binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue)
    ordered = sorted(pair["p"] for pair in pairs)
    assert min(pair["p_adjusted"] for pair in pairs) == pytest.approx(3 * ordered[0])


def test_answers_that_repeat_are_between_questions():
    once, found = cal.audit(graded(seed=3)), cal.audit(graded(repeats=8, seed=3))
    entry = found["results"][0]
    assert entry["n"] == 1600
    assert entry["questions"] == 200
    rows = graded(repeats=8, seed=3).filter(pl.col("model") == entry["model"])
    mixed = rows.group_by("question_id").agg(pl.col("correct").mean())["correct"]
    assert entry["disagree"]["value"] == pytest.approx(((mixed > 0) & (mixed < 1)).mean())
    width = [e["accuracy"]["high"] - e["accuracy"]["low"] for e in (entry, once["results"][0])]
    # Eight answers to each of 200 questions are nearer to 200 labels than to 1,600.
    assert 0.4 < width[0] / width[1] < 1


@pytest.mark.parametrize("units", [12, 60])
def test_the_interval_covers_where_rows_hang_together(units):
    rng, inside = np.random.default_rng(units), 0
    code = np.repeat(np.arange(units), 6)
    for _ in range(600):
        rate = rng.beta(2, 1, units)
        found = _share((rng.random(code.size) < rate[code]).astype(float), code, 0.95)
        inside += found.low <= 2 / 3 <= found.high
    assert inside / 600 > 0.925


def test_a_column_that_may_be_a_confidence_is_asked_about():
    table = graded().with_columns(surety=pl.Series(np.random.default_rng(0).random(400)))
    with pytest.raises(InputError, match="no column 'confidence'"):
        cal.audit(table.rename({"surety": "latent"}))


def test_one_outcome_on_every_step_of_a_run_widens_the_interval():
    steps = np.random.default_rng(0).integers(2, 9, 300)
    good = np.repeat(np.random.default_rng(1).random(300) < 0.6, steps)
    table = {"run": np.repeat([f"r{n}" for n in range(300)], steps), "correct": good.astype(int)}
    (by_row,) = cal.audit({"correct": table["correct"]})["results"]
    found = cal.audit(table)
    (by_run,) = found["results"]
    width = [one["accuracy"]["high"] - one["accuracy"]["low"] for one in (by_run, by_row)]
    assert width[0] > 1.7 * width[1]
    assert "All rows of one run have the same outcome" in found["data"]["warnings"][0]["text"]
