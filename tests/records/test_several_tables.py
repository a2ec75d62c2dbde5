"""Several tables as one: whose rows are lost, and which rows are one question."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core import InputError
from calibrant.data import load_scores

RNG = np.random.default_rng(3)


def table(n, *, bad=0, **columns):
    confidence = RNG.random(n)
    correct = (RNG.random(n) < confidence).astype(int)
    confidence[:bad] = 1.5
    return pl.DataFrame({"confidence": confidence, "correct": correct, **columns})


@pytest.fixture
def write(tmp_path):
    def written(name, frame):
        frame.write_csv(tmp_path / f"{name}.csv")
        return tmp_path / f"{name}.csv"

    return written


def texts(document):
    return [warning["text"] for warning in document["data"]["warnings"]]


def test_rows_that_a_file_lost_are_those_of_its_model(write):
    files = [write("alpha", table(60, bad=30)), write("beta", table(60))]
    found = cal.audit(files, on_invalid="drop", resamples=20)
    by_model = {entry["model"]: entry for entry in found["data"]["models"]}
    assert set(by_model) == {"alpha", "beta"}
    assert [by_model[name]["dropped"] for name in ("alpha", "beta")] == [30, 0]
    assert any("50 % of the rows of alpha are missing or unusable" in text for text in texts(found))


def test_row_numbers_of_tables_of_unequal_length_are_no_ids(write):
    files = [write("alpha", table(80)), write("beta", table(50))]
    found = cal.audit(files, resamples=20)
    assert found["data"]["questions"] == 130
    assert all(entry["missing"] == 0 for entry in found["data"]["models"])
    assert texts(found) == []
    with pytest.raises(InputError, match="no question in common"):
        cal.compare(files)


def test_row_numbers_of_equally_long_tables_are_taken_as_ids_and_that_is_said(write):
    files = [write("alpha", table(80)), write("beta", table(80))]
    found = cal.compare(files)
    assert found["data"]["questions_shared_by_all"] == 80
    assert texts(found) == [
        "The tables have no question ids: rows of the same number are taken as one question."
    ]


def test_days_of_one_model_without_ids_are_rows_of_their_own(write):
    files = [write("day1", table(60, model="m")), write("day2", table(60, model="m"))]
    assert cal.audit(files, resamples=20)["results"][0]["questions"] == 120


def test_a_table_with_ids_is_not_paired_with_the_row_numbers_of_another(write):
    ids = [str(number) for number in range(1, 51)]
    files = [write("alpha", table(50, question_id=ids)), write("beta", table(50))]
    assert load_scores(files).frame["question_id"].n_unique() == 100


def test_columns_known_by_their_names_are_told_of_every_table(write):
    first = table(40).rename({"confidence": "p"})
    second = table(40).rename({"confidence": "conf"})
    found = cal.audit([write("alpha", first), write("beta", second)], resamples=20)
    assert "Read p or conf as the confidence." in texts(found)


def test_files_of_one_name_in_two_folders_are_two_models(tmp_path):
    files = []
    for folder in ("small", "large"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "scores.csv")
        table(60).write_csv(files[-1])
    found = cal.audit(files, resamples=20)
    assert [entry["model"] for entry in found["results"]] == ["small/scores", "large/scores"]
    draws = table(
        60, question_id=np.arange(60) // 4, draw=np.arange(60) % 4, class_id=0
    ).with_columns(class_id="correct")
    for file in files:
        draws.drop("confidence").write_csv(file)
    meanings = cal.audit(files, resamples=20)["sem_ece"]
    assert [entry["model"] for entry in meanings] == ["small/scores", "large/scores"]


@pytest.mark.parametrize("again", ["alpha.csv", "./alpha.csv"])
def test_a_file_that_is_given_twice_is_refused(write, monkeypatch, again):
    monkeypatch.chdir(write("alpha", table(40)).parent)
    with pytest.raises(InputError, match="the file is given twice"):
        cal.audit(["alpha.csv", again])
