"""The league: a score that no accuracy moves, tiers that chance does not make."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.comparison.compare import compare_models
from calibrant.comparison.league import corp_parts, standings, win_matrix
from calibrant.comparison.odds import CLIP
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
    from calibrant.comparison.resampled import resample_counts

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
def test_timid_constant_and_noise_are_never_in_the_first_tier(n):
    for run in range(3):
        rng = np.random.default_rng([n, run])
        hard = rng.normal(0, 1.2, n)
        models = [calibrated(odds, n, rng, difficulty=hard) for odds in (0.0, 1.0, 2.0)]
        models += [(np.full(n, 0.1), models[1][1]), (np.full(n, 0.75), models[1][1])]
        models += [(rng.random(n), models[2][1])]
        table = table_of([c for c, _ in models], [z for _, z in models])
        league = compare_models(table, resamples=150, rng=rng)["league"]
        tiers = {row["model"]: row["tier"] for row in league["entries"]}
        assert min(tiers[name] for name in ("m3", "m4", "m5")) > 1
        flags = {row["model"]: row["uninformative"] for row in league["entries"]}
        assert flags["m3"]
        assert flags["m4"]
        assert not flags["m1"]


def test_tiers_and_ranks_follow_who_beats_whom():
    places = standings(4, {(0, 1): 8.0, (0, 2): 8.0, (0, 3): 8.0, (1, 3): 6.0, (2, 3): 0.5,
                           (1, 2): -0.2})  # fmt: skip
    assert [place.tier for place in places] == [1, 2, 2, 3]
    assert [(place.rank_low, place.rank_high) for place in places] == [
        (1, 1),
        (2, 3),
        (2, 4),
        (3, 4),
    ]
    circle = standings(3, {(0, 1): 9.0, (1, 2): 9.0, (0, 2): -9.0})
    assert [place.tier for place in circle] == [1, 1, 1]


def test_the_win_matrix_has_every_pair_twice():
    pairs = [
        {"a": "x", "b": "y", "outcome": "shown", "winner": "x"},
        {"a": "x", "b": "z", "outcome": "equivalent", "winner": None},
    ]
    assert win_matrix(["x", "y", "z"], pairs) == [
        [None, "better", "equivalent"],
        ["worse", None, None],
        ["equivalent", None, None],
    ]
