"""The views of the literature: golden properties, to 1e-12, on the questions that both have."""

import numpy as np
import pytest

from calibrant.comparison.compare import compare_models
from calibrant.comparison.footings import effective_size
from calibrant.comparison.questions import align_models, resample_counts
from calibrant.core.errors import InputError
from comparison.worlds import block_of, table_of, views_of


def plain(c, z, w=None, bins=15):
    """Brier and ECE as the papers write them."""
    w = np.ones(c.size) if w is None else w
    place = np.minimum((c * bins).astype(int), bins - 1)
    gaps = np.bincount(place, w * (c - z), bins)
    return (w @ (c - z) ** 2) / w.sum(), np.abs(gaps).sum() / w.sum()


def weights(z, target):
    return np.where(z == 1, target / z.mean(), (1 - target) / (1 - z.mean()))


@pytest.fixture
def three():
    rng = np.random.default_rng(0)
    hard = rng.random(400)
    skill = np.array([0.3, 0.5, 0.8])[:, None]
    correct = (rng.random((3, 400)) < np.clip(skill + 0.3 * (hard - 0.5), 0, 1)).astype(float)
    confidence = np.clip(0.7 + 0.2 * correct + 0.1 * rng.standard_normal((3, 400)), 0, 1)
    return block_of(confidence, correct)


def test_proposition_1_brier_is_linear_in_accuracy():
    """BS(a) = a E[(1-c)^2 | right] + (1-a) E[c^2 | wrong] under shared conditional confidence."""
    right, wrong = np.array([0.9, 0.7, 0.8, 1.0]), np.array([0.6, 0.2, 0.5, 0.1])
    slope = np.mean((1 - right) ** 2) - np.mean(wrong**2)
    for copies_right, copies_wrong in [(1, 1), (3, 1), (1, 5), (7, 2)]:
        c = np.r_[np.tile(right, copies_right), np.tile(wrong, copies_wrong)]
        z = np.r_[np.ones(4 * copies_right), np.zeros(4 * copies_wrong)]
        _, views = views_of(block_of([c, c], [z, z]), resamples=2)
        brier = views[0][1].paper["raw"].brier[0]
        assert brier == pytest.approx(np.mean(wrong**2) + slope * z.mean(), abs=1e-12)


@pytest.mark.parametrize("target", ["weakest", "strongest", "mean", 0.35])
def test_pairs_agree_with_plain_computation(three, target):
    _, views = views_of(three, target=target)
    c, z = three.confidence, three.correct
    for a, b in ((0, 2), (2, 0), (1, 2)):
        accuracies = [z[a].mean(), z[b].mean()]
        rules = {"weakest": min, "strongest": max, "mean": np.mean}
        goal = target if isinstance(target, float) else rules[target](accuracies)
        same = z[a] == z[b]
        found = views[a][b]
        expected = {
            "raw": plain(c[a], z[a]),
            "da": plain(c[a], z[a], weights(z[a], goal)),
            "ia": plain(c[a][same], z[a][same]),
        }
        for view, (brier, ece) in expected.items():
            assert found.paper[view].brier[0] == pytest.approx(brier, abs=1e-12)
            assert found.paper[view].ece[0] == pytest.approx(ece, abs=1e-12)
        assert found.paper["ia"].n == same.sum()
        assert found.target == pytest.approx(goal, abs=1e-12)
        w = weights(z[a], goal)
        assert found.effective == pytest.approx(w.sum() ** 2 / (w @ w))


def test_every_pair_uses_the_questions_that_both_have(three):
    """A third model that lacks most questions takes none from the other two."""
    c, z = three.confidence.copy(), three.correct.copy()
    c[1, 30:] = z[1, 30:] = np.nan
    c[0, :20] = z[0, :20] = np.nan
    survey, views = views_of(block_of(c, z))
    assert [survey.both[a, b, 0] for a, b in ((0, 2), (0, 1), (1, 2))] == [380, 10, 30]
    found = views[2][0]
    rows = slice(20, None)
    goal = min(z[0, rows].mean(), z[2, rows].mean())
    brier, ece = plain(c[2, rows], z[2, rows], weights(z[2, rows], goal))
    assert found.n == 380
    assert found.paper["da"].ece[0] == pytest.approx(ece, abs=1e-12)
    assert found.paper["da"].brier[0] == pytest.approx(brier, abs=1e-12)
    document = compare_models(table_of(c, z), resamples=20)
    counts = {(pair["a"], pair["b"]): pair["n"] for pair in document["pairs"]}
    assert counts == {("m0", "m1"): 10, ("m0", "m2"): 380, ("m1", "m2"): 30}
    assert {row.model: row.missing for row in document["missing"]} == {
        "m0": 20, "m1": 370, "m2": 0,
    }  # fmt: skip


def test_resamples_agree_with_naive_resampling(three):
    counts = resample_counts(400, 5, 1).counts
    _, views = views_of(three, resamples=5, rng=1)
    for draw in range(1, 6):
        rows = np.repeat(np.arange(400), counts[:, draw].astype(int))
        c, z = three.confidence[:, rows], three.correct[:, rows]
        goal = z[:2].mean(axis=1).min()
        same = z[0] == z[1]
        for a, b in ((0, 1), (1, 0)):
            found = views[a][b].paper
            brier, ece = plain(c[a], z[a], weights(z[a], goal))
            assert found["da"].brier[draw] == pytest.approx(brier, abs=1e-5)
            assert found["da"].ece[draw] == pytest.approx(ece, abs=1e-5)
            assert found["ia"].ece[draw] == pytest.approx(
                plain(c[a][same], z[a][same])[1], abs=1e-5
            )


def test_da_at_own_accuracy_is_raw(three):
    for m in range(3):
        survey, views = views_of(three, target=float(three.correct[m].mean()))
        own = views[m][m]
        assert own.paper["da"].ece[0] == pytest.approx(own.paper["raw"].ece[0], abs=1e-12)
        assert own.target_curve(survey.accuracy(m, m)[:1])[0] == pytest.approx(
            own.paper["raw"].ece[0], abs=1e-12
        )


def test_graded_outcomes_split_into_right_and_wrong_parts():
    """A grade z counts as z of a right and 1 - z of a wrong answer, in every view."""
    rng = np.random.default_rng(2)
    c, z = rng.random((2, 300)), rng.choice([0.0, 0.25, 0.5, 1.0], (2, 300))
    _, views = views_of(block_of(c, z))
    goal = z.mean(axis=1).min()
    for a, b in ((0, 1), (1, 0)):
        up, down = goal / z[a].mean(), (1 - goal) / (1 - z[a].mean())
        place = np.minimum((c[a] * 15).astype(int), 14)
        residual = up * z[a] * (c[a] - 1) + down * (1 - z[a]) * c[a]
        ece = np.abs(np.bincount(place, residual, 15)).sum() / 300
        assert views[a][b].paper["da"].ece[0] == pytest.approx(ece, abs=1e-12)
        assert views[a][b].paper["raw"].brier[0] == pytest.approx(
            np.mean((c[a] - z[a]) ** 2), abs=1e-12
        )


def test_constant_confidence_with_grades_is_more_accurate_and_alike():
    rng = np.random.default_rng(3)
    z = np.stack(
        [rng.choice([0.0, 0.5, 1.0], 500, p=p) for p in ((0.5, 0.3, 0.2), (0.1, 0.3, 0.6))]
    )
    document = compare_models(table_of(np.full((2, 500), 0.8), z), resamples=200)
    (pair,) = document["pairs"]
    assert abs(pair["gaps"]["da"]["ece"].value) < 1e-12
    assert (pair["verdict"], pair["winner"]) == ("more accurate, alike", "m1")
    assert "both state their confidence alike" in pair["text"]
    assert all(row["uninformative"] for row in document["league"]["entries"])
    assert not any(row["placed"] for row in document["league"]["entries"])


def test_effective_size_needs_both_outcomes():
    assert effective_size(np.array([100.0, 100.0]), 0.5) == pytest.approx(200)
    assert np.isnan(effective_size(np.array([0.0, 10.0]), 0.5))


class TestErrors:
    def test_rows_without_a_model(self):
        table = table_of(np.full((2, 3), 0.5), np.ones((2, 3)))
        table = table.with_columns(model=table["model"].replace("m1", None))
        with pytest.raises(InputError, match="3 of 6 rows have no model"):
            align_models(table)

    def test_one_model_only(self):
        with pytest.raises(InputError, match="at least two models, got 1"):
            align_models(table_of(np.full((1, 3), 0.5), np.ones((1, 3))))

    def test_unknown_model(self):
        with pytest.raises(InputError, match="there is no model 'm9'"):
            align_models(table_of(np.full((2, 3), 0.5), np.ones((2, 3))), ["m0", "m9"])

    def test_no_question_in_common(self):
        c = np.array([[0.5, np.nan], [np.nan, 0.5]])
        with pytest.raises(InputError, match=r"no question in common .*m0 1, m1 1"):
            compare_models(table_of(c, np.array([[1.0, 0.0], [1.0, 0.0]])))

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_accuracy_0_or_1_names_the_model(self, value):
        correct = np.vstack([np.full(4, value), [1, 0, 1, 0]])
        with pytest.raises(InputError, match=f"m0 has accuracy {value:g}"):
            compare_models(table_of(np.full((2, 4), 0.5), correct), resamples=10)

    def test_unknown_target(self):
        with pytest.raises(InputError, match="target is weakest, mean, strongest or a number"):
            compare_models(table_of(np.full((2, 4), 0.5), np.eye(2, 4)), target="best")


def test_a_model_alone_is_aligned_as_in_its_pairs_on_average():
    rng = np.random.default_rng(4)
    c, z = rng.random((3, 400)), (rng.random((3, 400)) < 0.6).astype(float)
    _, views = views_of(block_of(c, z), resamples=20)
    pairs = [views[0][b].paper["ia"] for b in (1, 2)]
    together = sum(pair.n * pair.brier[0] for pair in pairs) / sum(pair.n for pair in pairs)
    assert views[0][0].paper["ia"].brier[0] == pytest.approx(together)
