"""The league: a score that no accuracy moves, tiers that chance does not make."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.comparison.compare import compare_models
from calibrant.comparison.league import corp_parts, place_models, tiers, win_matrix
from calibrant.comparison.statements import CLIP
from calibrant.core.arrays import Estimate
from calibrant.metrics import corp
from comparison.worlds import block_of, calibrated, table_of, views_of


def score(c, z):
    """1 - Brier / 0.25 at even odds, row by row."""
    a = z.mean()
    moved = expit(logit(np.clip(c, CLIP, 1 - CLIP)) - logit(a))
    w = np.where(z == 1, 0.5 / a, 0.5 / (1 - a))
    return 1 - (w @ (moved - z) ** 2) / c.size / 0.25


def test_the_score_agrees_with_plain_computation_in_data_and_resamples():
    rng = np.random.default_rng(0)
    models = [calibrated(odds, 500, rng) for odds in (-0.5, 1.5)]
    block = block_of([c for c, _ in models], [z for _, z in models])
    from calibrant.comparison.questions import resample_counts

    counts = resample_counts(500, 10, 3).counts
    _, views = views_of(block, resamples=10, rng=3)
    for m, (c, z) in enumerate(models):
        assert views[m][m].score[0] == pytest.approx(score(c, z), abs=1e-12)
        for draw in range(1, 11):
            rows = np.repeat(np.arange(500), counts[:, draw].astype(int))
            assert views[m][m].score[draw] == pytest.approx(score(c[rows], z[rows]), abs=2e-3)


def test_parts_of_the_score_add_up():
    rng = np.random.default_rng(1)
    c, z = calibrated(1.0, 4_000, rng, moved=0.8)
    survey, views = views_of(block_of([c, c], [z, z]), resamples=2)
    even, raw = corp_parts(survey, 0, even=True), corp_parts(survey, 0, even=False)
    assert (even["dsc"] - even["mcb"]) / 0.25 == pytest.approx(views[0][0].score[0], abs=2e-3)
    whole = corp(c, z)
    for name in ("mcb", "dsc", "unc"):
        assert raw[name] == pytest.approx(getattr(whole, name), abs=1e-3)


def test_a_constant_scores_nothing_and_calibrated_models_score_alike():
    rng = np.random.default_rng(2)
    models = [calibrated(odds, 40_000, rng) for odds in (-1.5, 0.0, 2.5)]
    models.append((np.full(40_000, 0.1), models[1][1]))
    models.append((np.full(40_000, models[1][1].mean()), models[1][1]))
    found = [score(c, z) for c, z in models]
    assert np.ptp(found[:3]) < 0.05
    assert found[3] < -0.5
    assert abs(found[4]) < 1e-9


@pytest.mark.parametrize("n", [300, 1_000])
def test_timid_constant_and_noise_have_no_place(n):
    for run in range(3):
        rng = np.random.default_rng([n, run])
        hard = rng.normal(0, 1.2, n)
        models = [calibrated(odds, n, rng, difficulty=hard) for odds in (0.0, 1.0, 2.0)]
        models += [(np.full(n, 0.1), models[1][1]), (np.full(n, 0.75), models[1][1])]
        models += [(rng.random(n), models[2][1])]
        table = table_of([c for c, _ in models], [z for _, z in models])
        league = compare_models(table, resamples=150, rng=rng)["league"]
        found = {row["model"]: row for row in league["entries"]}
        assert all(found[name]["uninformative"] for name in ("m3", "m4"))
        assert [found[f"m{m}"]["tier"] for m in range(5)] == [1, 1, 1, None, None]
        assert league["entries"][-1]["tier"] is None


def verdict(a, b, word, winner=None):
    return {"a": a, "b": b, "verdict": word, "winner": winner}


def row(name, score, *, placed=True):
    return {"model": name, "score": Estimate(score, score - 0.1, score + 0.1, 50), "placed": placed}


def test_tiers_and_ranks_follow_the_verdicts_alone():
    pairs = [verdict("a", other, "better", "a") for other in "bcd"]
    pairs += [verdict("b", "d", "better", "b"), verdict("c", "d", "only more accurate", "c")]
    pairs += [verdict("b", "c", "equivalent")]
    rows = [
        row("d", 0.9),
        row("c", 0.2),
        row("b", 0.3),
        row("a", -0.5),
        row("e", 0.9, placed=False),
    ]
    league = place_models(rows, pairs)
    assert [entry["model"] for entry in league["entries"]] == ["a", "b", "c", "d", "e"]
    assert [entry["tier"] for entry in league["entries"]] == [1, 2, 2, 3, None]
    assert [entry["rank"] for entry in league["entries"]] == [
        {"low": 1, "high": 1},
        {"low": 2, "high": 3},
        {"low": 2, "high": 4},
        {"low": 3, "high": 4},
        None,
    ]
    assert league["winner"] == "a"
    assert tiers({"a": {"c"}, "b": {"a"}, "c": {"b"}}) == dict.fromkeys("abc", 1)


def test_the_win_matrix_has_every_pair_twice():
    pairs = [verdict("x", "y", "better", "x"), verdict("x", "z", "only more accurate", "z")]
    assert win_matrix(["x", "y", "z"], pairs) == [
        [None, "better", "only less accurate"],
        ["worse", None, None],
        ["only more accurate", None, None],
    ]
