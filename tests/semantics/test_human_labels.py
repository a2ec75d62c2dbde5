"""Real data: agreement with people and with a recorded judge, without any model."""

import numpy as np
import polars as pl
import pytest
from studies._semantics_unseen import FIRST_TRIED, BareGrader, unseen_rows, without_word_lists
from studies.semantics import Row, contains, load_rows, token_share

from calibrant.answers.semantics import (
    Grader,
    Normaliser,
    agreement,
    cluster_answers,
    extract_answer,
    grade_answers,
    same_partition,
)


@pytest.fixture(scope="module")
def rows(shared_data):
    return load_rows(shared_data)


def kappas(rows):
    plain = Normaliser(["unicode", "accents", "case", "punctuation", "articles"])
    found = {
        "ours": grade_answers(
            [row.answer for row in rows],
            [row.references for row in rows],
            questions=[row.question for row in rows],
        ),
        "containment": [contains(row, plain) for row in rows],
        "share": [token_share(row, plain) for row in rows],
    }
    truth = [row.right for row in rows]
    return {
        name: agreement(grades, truth, resamples=50)["kappa"].value
        for name, grades in found.items()
    }


def test_evouna_rows_that_the_fit_has_not_seen(rows):
    chosen = [row for row in rows if row.part == "held out"]
    assert len(chosen) > 8000
    found = kappas(chosen[::2])
    assert found["ours"] >= 0.78  # asked for: 0.74
    assert found["ours"] > max(found["containment"], found["share"]) + 0.05


def test_nq301_beats_containment_and_token_share(rows):
    found = kappas([row for row in rows if row.part == "nq301"])
    assert found["ours"] > max(found["containment"], found["share"]) + 0.02


def test_shared_words_alone_reach_what_is_asked_for(rows):
    """No rule and no word list was made with the reported rows in view: there are none."""
    with without_word_lists():
        grade = BareGrader(FIRST_TRIED).fit([row for row in rows if row.part == "fit"])
        chosen = [row for row in rows if row.part == "held out"]
        found = agreement(
            [grade(row) for row in chosen], [row.right for row in chosen], resamples=50
        )
    assert found["kappa"].value >= 0.76  # asked for: 0.74


def test_labels_that_were_never_looked_at(rows, shared_data):
    unseen = unseen_rows(shared_data, {row.question for row in rows}, Row)
    for part, least in (("Natural Questions", 0.78), ("TriviaQA", 0.53)):
        found = kappas([row for row in unseen if row.part == part][::2])
        assert found["ours"] > least
        assert found["ours"] > max(found["containment"], found["share"]) + 0.04


def test_fit_and_report_share_no_question(rows):
    fitted = {row.question for row in rows if row.part == "fit"}
    others = {row.question for row in rows if row.part != "fit"}
    assert not fitted & others


@pytest.fixture(scope="module")
def mace(shared_data):
    return pl.read_parquet(shared_data / "mace" / "deepseek_v3.parquet").to_dicts()


def test_partitions_are_those_of_the_recorded_judge(mace):
    same = [
        same_partition(cluster_answers(row["samples"], question=row["question"]), row["cluster"])
        for row in mace
    ]
    assert np.mean(same) >= 0.98


def test_greedy_grades_are_those_of_the_recorded_judge(mace):
    grader = Grader()
    same = [
        bool(
            grader.grade(
                extract_answer(row["greedy_answer"]).answer,
                row["references"],
                question=row["question"],
            ).correct
        )
        == row["greedy_correct"]
        for row in mace
    ]
    assert np.mean(same) >= 0.99  # asked for: 0.98


def test_stated_confidences_are_those_that_the_authors_read(mace):
    found = [extract_answer(row["verb_raw"], stated=True).confidence for row in mace]
    theirs = [row["verb_conf"] for row in mace]
    read = [(a, b) for a, b in zip(found, theirs, strict=True) if a is not None]
    assert len(read) / len(mace) > 0.99
    assert np.mean([abs(a - b) < 1e-9 for a, b in read]) > 0.99
