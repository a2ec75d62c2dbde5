"""Candidate answers: the same ones for every judge, each once; preference for one's own."""

import numpy as np
import polars as pl
import pytest

from calibrant.comparison.compare import compare_models
from calibrant.comparison.entries import candidate_views, complete_questions, self_preference
from calibrant.comparison.questions import CandidateTable, align_candidates, resample_counts
from comparison.worlds import block_of, table_of


def rows_of(scores, answers=None):
    judges, authors, questions = scores.shape
    return [
        {
            "question_id": str(i),
            "judge": f"m{j}",
            "author": f"m{a}",
            "confidence": scores[j, a, i],
            "answer": f"{a}" if answers is None else answers[a][i],
        }
        for i in range(questions)
        for j in range(judges)
        for a in range(authors)
    ]


def test_a_candidate_that_two_models_named_counts_once():
    confidence = np.array([[[0.9, 0.5], [0.9, 0.5]], [[0.4, 0.5], [0.4, 0.5]]])
    pool = CandidateTable(
        confidence, np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0, 0], [0, 1]])
    )
    found = candidate_views(pool, resample_counts(2, 2, 0), 0, (0, 1), bins=15)
    # One shared candidate on the first question, two different ones on the second.
    assert found.scores.brier[0] == pytest.approx((0.1**2 + 2 * 0.5**2) / 3, abs=1e-12)


def test_missing_candidates_shrink_their_own_view_alone():
    rng = np.random.default_rng(0)
    z = (rng.random((3, 60)) < 0.6).astype(float)
    scores = rng.random((3, 3, 60))
    rows = [r for r in rows_of(scores) if not (r["judge"] == "m2" and int(r["question_id"]) >= 10)]
    table = table_of(rng.random((3, 60)), z).with_columns(
        question_id=pl.col("question_id").str.strip_prefix("q")
    )
    document = compare_models(table, candidates=pl.DataFrame(rows), resamples=20)
    sizes = {(p["a"], p["b"]): (p["n"], p["gaps"]["ca"]["ece"].n) for p in document["pairs"]}
    assert sizes == {("m0", "m1"): (60, 60), ("m0", "m2"): (60, 10), ("m1", "m2"): (60, 10)}
    assert document["results"][0]["views"]["ca"]["ece"].n == 10


@pytest.mark.parametrize("rows_at_once", [1, 3, 1000])
def test_candidates_are_put_in_their_places_whatever_their_order(rows_at_once, monkeypatch):
    """Shuffled rows, strangers, a null, and a second score for a place: the first one stays."""
    monkeypatch.setattr("calibrant.comparison.questions._SLICE", rows_at_once)
    rng = np.random.default_rng(1)
    expected = rng.random((2, 2, 4))
    answers = [["0", "0", "same", "0"], ["1", "1", "same", "1"]]
    rows = rows_of(expected, answers)
    rows = [rows[i] for i in rng.permutation(16)]
    strange = [{**rows[0], "judge": "m9"}, {**rows[0], "question_id": "9"}]
    empty, again = {**rows[0], "confidence": None}, {**rows[0], "confidence": 0.987}
    block = block_of(np.full((2, 4), 0.5), [[1, 0, 1, 0], [0, 0, 1, 1]])
    pool = align_candidates(pl.DataFrame([empty, *strange, *rows, again]), block)
    np.testing.assert_array_equal(pool.confidence, expected)
    assert (pool.identity[0] == pool.identity[1]).tolist() == [False, False, True, False]
    assert complete_questions(pool, (0, 1)).tolist() == [0, 1, 2, 3]


def judges_of(skills, n, rng, *, bias=0.0):
    """Judges that know the answer or do not; who gave it does not matter, but for the bias."""
    knows = rng.random((len(skills), n)) < np.array(skills)[:, None]
    guess = rng.integers(1, 40, (len(skills), n))
    answers = np.where(knows, 0, guess)
    correct = (answers == 0).astype(float)
    sure = np.where(correct[None] == 1, 0.95, 0.05)
    scores = np.where(knows[:, None], sure, 0.5) + 0.05 * rng.standard_normal(
        (*[len(skills)] * 2, n)
    )
    for judge in range(len(skills)):
        scores[judge, judge] += bias * (judge == 0)
    same = answers[:, None] == answers[None]
    return CandidateTable(np.clip(scores, 0, 1), correct, np.argmax(same, axis=1))


def test_unbiased_judges_of_different_skill_show_no_preference():
    rng = np.random.default_rng(2)
    pool = judges_of((0.4, 0.8), 4_000, rng)
    counts = resample_counts(4_000, 300, 0)
    # Own minus others' answers at equal grade, as the paper has it: skill looks like preference.
    own, other = pool.confidence[0, 0], pool.confidence[0, 1]
    right = own[pool.correct[0] == 1].mean() - other[pool.correct[1] == 1].mean()
    assert right > 0.15
    for row in self_preference(pool, ("m0", "m1"), counts, level=0.95):
        assert row["bias"].low <= 0 <= row["bias"].high
        assert abs(row["bias"].value) < 0.01


def test_a_judge_that_prefers_its_own_answers_is_found():
    pool = judges_of((0.4, 0.8, 0.6), 4_000, np.random.default_rng(3), bias=0.2)
    rows = self_preference(pool, ("m0", "m1", "m2"), resample_counts(4_000, 300, 0), level=0.95)
    assert rows[0]["bias"].value == pytest.approx(0.2, abs=0.03)
    for row in rows[1:]:
        assert abs(row["bias"].value) < 0.02
