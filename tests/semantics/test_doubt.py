"""Doubt about grades reaches the document of an audit."""

import polars as pl
import pytest

from calibrant import audit
from calibrant.answers.graded_samples import grade_samples
from calibrant.answers.samples import read_samples

DOUBTFUL = pl.DataFrame(
    {
        "question": [f"Who was number {i}?" for i in range(40)],
        "gold": ["John Adams"] * 40,
        "answers": [
            ["John Quincy Adams", "John Quincy Adams", "Nobody"] if i % 2 else ["John Adams"] * 3
            for i in range(40)
        ],
    }
)


def test_semantics_carry_the_chance_of_each_grade():
    graded = grade_samples(read_samples(DOUBTFUL)).semantics
    own = graded.filter(pl.col("question_id") == "Who was number 1?")
    assert own["chance"][0] == pytest.approx(0.8)
    assert graded["chance"].max() == pytest.approx(0.99)


def test_an_audit_says_how_doubtful_its_grades_are():
    document = audit(DOUBTFUL, samples="answers", reference="gold")
    grading = document["results"][0]["grading"]
    assert grading["answers"] == 40
    assert grading["doubtful"] == 0.5
    assert grading["checked"] == 0
    # Half of the answers are right at 0.75, the others at 0.99: odds may be three times off.
    assert grading["accuracy"]["low"] < 0.75
    assert grading["accuracy"]["high"] > 0.94
    warnings = document["data"]["warnings"]
    assert any("50 % of the grades are doubtful" in told["text"] for told in warnings)


def test_several_models_without_checks_share_a_warning():
    models = ("a", "b", "c", "d", "e")
    both = pl.concat([DOUBTFUL.with_columns(pl.lit(name).alias("model")) for name in models])
    told = audit(both, samples="answers", reference="gold")["data"]["warnings"]
    warnings = [one for one in told if one["id"] == "data.grades"]
    assert [one["subject"]["models"] for one in warnings] == [list(models)]
    assert warnings[0]["text"].startswith("5 models are graded by rules: 50 % of their grades")


def test_grades_that_were_given_have_no_doubt_of_ours():
    given = DOUBTFUL.with_columns(pl.Series("correct", [[1, 1, 0]] * 40))
    document = audit(given, samples="answers", correct="correct")
    assert all("grading" not in entry for entry in document["results"])
