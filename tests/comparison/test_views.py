"""ACE: golden properties of the views, to 1e-12."""

import numpy as np
import polars as pl
import pytest

from calibrant.comparison.aligned import Candidates, align_candidates, align_models
from calibrant.comparison.engine import Comparer
from calibrant.comparison.resampled import resample_counts
from calibrant.comparison.views import binned_rows, distribution_weights, score_rows
from calibrant.core.errors import InputError


def scores_table(confidence, correct):
    models, questions = confidence.shape
    return pl.DataFrame(
        {
            "question_id": [f"q{i}" for _ in range(models) for i in range(questions)],
            "model": [f"m{m}" for m in range(models) for _ in range(questions)],
            "confidence": confidence.ravel(),
            "correct": correct.ravel().astype(float),
        }
    )


@pytest.fixture
def three_models():
    rng = np.random.default_rng(0)
    hard = rng.random(400)
    skill = np.array([0.3, 0.5, 0.8])[:, None]
    correct = (rng.random((3, 400)) < np.clip(skill + 0.3 * (hard - 0.5), 0, 1)).astype(float)
    confidence = np.clip(0.7 + 0.2 * correct + 0.1 * rng.standard_normal((3, 400)), 0, 1)
    return align_models(scores_table(confidence, correct))


def test_proposition_1_brier_is_linear_in_accuracy():
    """BS(a) = a E[(1-c)^2 | right] + (1-a) E[c^2 | wrong] under shared conditional confidence."""
    right, wrong = np.array([0.9, 0.7, 0.8, 1.0]), np.array([0.6, 0.2, 0.5, 0.1])
    slope = np.mean((1 - right) ** 2) - np.mean(wrong**2)
    intercept = np.mean(wrong**2)
    for copies_right, copies_wrong in [(1, 1), (3, 1), (1, 5), (7, 2)]:
        c = np.r_[np.tile(right, copies_right), np.tile(wrong, copies_wrong)]
        z = np.r_[np.ones(4 * copies_right), np.zeros(4 * copies_wrong)]
        brier, _ = score_rows(binned_rows(c, z, bins=15))
        assert brier == pytest.approx(intercept + slope * z.mean(), abs=1e-12)


@pytest.mark.parametrize("q", [0.2, 0.5, 0.85])
@pytest.mark.parametrize("a", [0.1, 0.5, 0.75])
def test_constant_confidence(q, a):
    z = np.r_[np.ones(round(200 * a)), np.zeros(200 - round(200 * a))]
    brier, ece = score_rows(binned_rows(np.full(200, q), z, bins=15))
    assert ece == pytest.approx(abs(a - q), abs=1e-12)
    assert brier == pytest.approx(q**2 + a * (1 - 2 * q), abs=1e-12)


@pytest.mark.parametrize("target", [0.05, 0.4, 0.9])
def test_weighted_accuracy_equals_the_target(target):
    z = np.r_[np.ones(30), np.zeros(70)]
    w = distribution_weights(z, target)
    assert w @ z / w.sum() == pytest.approx(target, abs=1e-12)


def test_da_at_own_accuracy_is_raw(three_models):
    for m in range(3):
        rows = binned_rows(three_models.confidence[m], three_models.correct[m], bins=15)
        w = distribution_weights(three_models.correct[m], float(three_models.accuracy[m]))
        assert score_rows(rows, w) == pytest.approx(score_rows(rows), abs=1e-12)


def test_pair_agrees_with_plain_computation(three_models):
    comparer = Comparer(three_models, resample_counts(400, 10, 0))
    pair = comparer.pair(0, 2)
    target = three_models.accuracy.min()
    same = three_models.correct[0] == three_models.correct[2]
    assert pair.retention == pytest.approx(same.mean(), abs=1e-12)
    assert pair.target == pytest.approx(target, abs=1e-12)
    for place, m in enumerate((0, 2)):
        c, z = three_models.confidence[m], three_models.correct[m]
        rows = binned_rows(c, z, bins=15)
        expected = {
            "raw": score_rows(rows),
            "da": score_rows(rows, distribution_weights(z, float(target))),
            "ia": score_rows(binned_rows(c[same], z[same], bins=15)),
        }
        for view, (brier, ece) in expected.items():
            found = pair.views[view][place]
            assert found.brier[0] == pytest.approx(brier, abs=1e-12)
            assert found.ece[0] == pytest.approx(ece, abs=1e-12)


def test_instance_aligned_accuracies_are_equal(three_models):
    same = three_models.correct[0] == three_models.correct[1]
    assert three_models.correct[0, same].mean() == three_models.correct[1, same].mean()


def test_resamples_agree_with_naive_resampling(three_models):
    resamples = resample_counts(400, 5, 1)
    pair = Comparer(three_models, resamples).pair(0, 1)
    for draw in range(1, 6):
        rows = np.repeat(np.arange(400), resamples.counts[:, draw].astype(int))
        c, z = three_models.confidence[:, rows], three_models.correct[:, rows]
        target = z[:2].mean(axis=1).min()
        for m in range(2):
            weights = distribution_weights(z[m], float(target))
            brier, ece = score_rows(binned_rows(c[m], z[m], bins=15), weights)
            assert pair.views["da"][m].brier[draw] == pytest.approx(brier, abs=1e-5)
            assert pair.views["da"][m].ece[draw] == pytest.approx(ece, abs=1e-5)


def test_target_curve_passes_through_raw(three_models):
    comparer = Comparer(three_models, resample_counts(400, 2, 0))
    own = three_models.accuracy[1]
    curve = comparer.target_curve(1, np.array([own]))
    assert curve[0] == pytest.approx(comparer.league()[1]["raw"].ece[0], abs=1e-12)


def test_candidate_named_by_two_models_counts_once():
    confidence = np.array([[[0.9], [0.9]], [[0.4], [0.4]]])
    pool = Candidates(confidence, np.array([[1.0], [1.0]]), np.array([[0], [0]]))
    table = scores_table(np.array([[0.9, 0.2], [0.4, 0.3]]), np.array([[1, 0], [1, 0]]))
    aligned = align_models(table)
    twice = Candidates(
        np.concatenate([confidence, np.full((2, 2, 1), 0.5)], axis=2),
        np.array([[1.0, 0.0], [1.0, 0.0]]),
        np.array([[0, 0], [0, 1]]),
    )
    pair = Comparer(aligned, resample_counts(2, 2, 0), candidates=twice).pair(0, 1)
    # One shared candidate on the first question, two different ones on the second.
    assert pair.views["ca"][0].brier[0] == pytest.approx((0.1**2 + 2 * 0.5**2) / 3, abs=1e-12)
    assert pool.identity.tolist() == [[0], [0]]


def test_align_candidates_keeps_complete_questions():
    table = scores_table(np.full((2, 3), 0.5), np.array([[1, 0, 1], [0, 0, 1]]))
    aligned = align_models(table)
    rows = [
        {"question_id": f"q{i}", "judge": j, "author": a, "confidence": 0.5, "answer": f"{a}{i}"}
        for i in range(3)
        for j in ("m0", "m1")
        for a in ("m0", "m1")
        if not (i == 2 and j == "m1")
    ]
    pool, part = align_candidates(pl.DataFrame(rows), aligned)
    assert part.questions.tolist() == ["q0", "q1"]
    assert pool.confidence.shape == (2, 2, 2)


@pytest.mark.parametrize("rows_at_once", [1, 3, 1000])
def test_candidates_are_put_in_their_places_whatever_their_order(rows_at_once, monkeypatch):
    """Shuffled rows, strangers, a null, and a second score for a place: the first one stays."""
    monkeypatch.setattr("calibrant.comparison.aligned._SLICE", rows_at_once)
    rng = np.random.default_rng(1)
    expected = rng.random((2, 2, 4))
    rows = [
        {
            "question_id": f"q{i}",
            "judge": f"m{j}",
            "author": f"m{a}",
            "confidence": expected[j, a, i],
            "answer": "same" if i == 2 else f"{a}",
        }
        for i in range(4)
        for j in range(2)
        for a in range(2)
    ]
    rows = [rows[i] for i in rng.permutation(16)]
    strange = [{**rows[0], "judge": "m9"}, {**rows[0], "question_id": "q9"}]
    empty, again = {**rows[0], "confidence": None}, {**rows[0], "confidence": 0.987}
    table = pl.DataFrame([empty, *strange, *rows, again])
    aligned = align_models(
        scores_table(np.full((2, 4), 0.5), np.array([[1, 0, 1, 0], [0, 0, 1, 1]]))
    )
    pool, part = align_candidates(table, aligned)
    order = [int(name[1]) for name in part.questions]
    np.testing.assert_array_equal(pool.confidence, expected[:, :, order])
    shared = pool.identity[0] == pool.identity[1]
    assert shared.tolist() == [number == 2 for number in order]


class TestErrors:
    def test_no_question_in_common(self):
        table = pl.DataFrame(
            {
                "question_id": ["a", "b"],
                "model": ["x", "y"],
                "confidence": [0.5, 0.5],
                "correct": [1.0, 0.0],
            }
        )
        with pytest.raises(InputError, match=r"no question in common .*x 1, y 1"):
            align_models(table)

    def test_one_model_only(self):
        with pytest.raises(InputError, match="at least two models, got 1"):
            align_models(scores_table(np.full((1, 3), 0.5), np.ones((1, 3))))

    def test_unknown_model(self):
        table = scores_table(np.full((2, 3), 0.5), np.ones((2, 3)))
        with pytest.raises(InputError, match="there is no model 'm9'"):
            align_models(table, ["m0", "m9"])

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_accuracy_0_or_1_names_the_model(self, value):
        correct = np.vstack([np.full(4, value), [1, 0, 1, 0]])
        aligned = align_models(scores_table(np.full((2, 4), 0.5), correct))
        with pytest.raises(InputError, match=f"m0 has accuracy {value:g}"):
            Comparer(aligned, resample_counts(4, 2, 0))
