"""Answering alone: certified thresholds, costs, and policies that are served as they were saved."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import calibrant
from calibrant.core.errors import InputError
from calibrant.trust.policy import SelectivePolicy
from calibrant.trust.selective.certify import (
    AskingCosts,
    TrafficMix,
    certify,
    chance_of_so_few,
    cheapest,
)
from calibrant.trust.selective.fit import Selective


def world(n, seed, slope=0.4):
    rng = np.random.default_rng(seed)
    said = np.round(rng.random(n), 3)
    wrong = rng.random(n) < slope * (1 - said)
    return said, (~wrong).astype(float)


def richer(n, seed):
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {"tokens": rng.integers(1, 900, n), "topic": rng.choice(["law", "art", "maths"], n)}
    )
    said = rng.random(n)
    chance = 0.45 + 0.3 * (table["tokens"].to_numpy() < 300) + 0.2 * (table["topic"] == "law")
    return table, said, (rng.random(n) < chance.to_numpy()).astype(float)


def true_error(threshold, slope=0.4):
    """Errors among answers of confidence uniform on [threshold, 1]."""
    return slope * (1 - threshold) / 2


def test_promise_is_broken_at_most_as_often_as_said():
    broken = 0
    for seed in range(400):
        said, right = world(600, seed)
        policy = Selective(max_error=0.1, delta=0.1, seed=seed).fit(None, said, right).policy_
        broken += policy.threshold is not None and true_error(policy.threshold) > 0.1
    assert broken <= binom.ppf(0.99, 400, 0.1)


def test_most_confident_answers_may_be_the_worst_and_still_most_are_certified():
    rng = np.random.default_rng(3)
    said = rng.random(3000)
    right = (rng.random(3000) < np.where(said > 0.9, 0.5, 0.95)).astype(float)
    assert Selective(max_error=0.2).fit(None, said, right).share_.value > 0.8


def test_first_failure_ends_the_sequence():
    score = np.repeat([0.9, 0.5, 0.1], 200)
    wrong = np.concatenate([np.zeros(200), np.ones(200), np.zeros(200)])
    found = certify(score, wrong, max_error=0.4, delta=0.1)
    assert found.threshold == 0.9  # 200 of 600 are wrong in all, but 200 of 400 on the way


def test_a_step_passes_by_the_binomial_law():
    for errors, rows in ((0, 22), (3, 60), (17, 240)):
        chance = chance_of_so_few(np.array([float(errors)]), np.array([float(rows)]), 0.1)[0]
        assert chance == pytest.approx(binom.cdf(errors, rows, 0.1))


def mixed_world(n, seed, hard):
    """Two groups; the hard one is wrong more often at the same confidence."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < hard, "hard", "easy")
    said = np.round(rng.random(n), 3)
    wrong = rng.random(n) < (1 - said) * np.where(group == "hard", 0.9, 0.15)
    return pl.Series("topic", group), said, (~wrong).astype(float)


def error_for_mix(policy, hard):
    topic, said, right = mixed_world(20_000, 12345, hard)
    given = policy.decide_many(pl.DataFrame({"confidence": said, "topic": topic}))
    return (1 - right[given]).mean() if given.any() else 0.0


def test_a_promise_for_the_traffic_holds_there_where_one_for_the_labels_breaks():
    broken = {"labels": 0, "traffic": 0}
    for seed in range(60):
        topic, said, right = mixed_world(800, seed, hard=0.05)
        coming, new, _ = mixed_world(2000, seed + 10_000, hard=0.6)
        traffic = pl.DataFrame({"confidence": new, "topic": coming})
        for name, given in (("labels", None), ("traffic", traffic)):
            fit = Selective(max_error=0.1).fit(None, said, right, groups=topic, traffic=given)
            broken[name] += error_for_mix(fit.policy_, 0.6) > 0.105
    assert broken["labels"] > 40
    assert broken["traffic"] <= binom.ppf(0.99, 60, 0.1)


def test_weights_of_the_traffic_give_the_rate_of_its_mix():
    score, group = np.tile([0.9, 0.1], 50), np.repeat([0, 1], 50)
    wrong = np.where(group == 0, 0.0, 1.0)
    mix = TrafficMix(group, np.full(10, 0.5), np.array([0] * 8 + [1] * 2))
    rows, errors = mix.curve(score, wrong, np.array([0.1]))
    assert errors / rows == pytest.approx([0.2])
    assert rows == pytest.approx([1 / (0.8**2 / 50 + 0.2**2 / 50)])


def test_every_group_keeps_its_own_promise_and_few_labels_are_asked():
    topic, said, right = mixed_world(6000, 1, hard=0.3)
    topic[0] = "rare"
    policy = Selective(max_error=0.1, each=True).fit(None, said, right, groups=topic).policy_
    assert set(policy.thresholds) == {"easy", "hard"}
    assert policy.thresholds["hard"] > policy.thresholds["easy"]
    for name in ("rare", "never seen", None):
        assert policy.decide({"confidence": 1.0, "topic": name}) == "ask"
    for group, hard in (("easy", 0.0), ("hard", 1.0)):
        assert error_for_mix(policy, hard) <= 0.11, group


@pytest.mark.parametrize("features", [["topic"], []])
def test_an_unseen_category_is_asked_however_it_is_used(features, tmp_path):
    topic, said, right = mixed_world(3000, 2, hard=0.3)
    table = {"confidence": said, "correct": right, "topic": topic}
    given = {"features": features} if features else {"group": "topic"}
    calibrant.decide(table, max_error=0.2, save=tmp_path / "p.json", **given)
    policy = calibrant.load_policy(tmp_path / "p.json")
    assert policy.decide({"confidence": 1.0, "topic": "easy"}) == "answer"
    assert policy.decide({"confidence": 1.0, "topic": "new"}) == "ask"
    rows = pl.DataFrame({"confidence": [1.0, 1.0], "topic": ["easy", "new"]})
    assert policy.decide_many(rows).tolist() == [True, False]


def test_nothing_certified_never_answers_and_says_how_many_labels_would():
    said, right = world(60, 0)
    found = Selective(max_error=0.05).fit(None, said, right)
    assert found.policy_.threshold is None
    assert not found.policy_.answers(1.0)
    assert found.labels_needed_ is None or found.labels_needed_ > 60


def test_the_labels_that_are_asked_for_certify_as_often_as_said():
    said, right = world(200, 13)
    needed = Selective(max_error=0.1).fit(None, said, right).labels_needed_
    assert needed is not None
    assert needed > 200
    certified = 0
    for seed in range(60):
        more, grades = world(needed, 100 + seed)
        fit = Selective(max_error=0.1).fit(None, more, grades)
        certified += fit.policy_.threshold is not None
    assert certified >= 36


def test_cheapest_threshold_is_the_lowest_of_all():
    said, right = world(500, 1)
    wrong = 1 - right
    costs = AskingCosts(wrong=8, ask=1)
    grid = np.unique(said)
    best = cheapest(said, wrong, grid, costs)
    spent = [costs.per_row(said >= t, wrong).mean() for t in grid]
    assert costs.per_row(said >= best, wrong).mean() == pytest.approx(min(spent))


def test_costs_alone_find_the_optimum_and_measure_it_without_optimism():
    said, right = world(20_000, 5)
    found = Selective(costs={"wrong": 5, "ask": 1}).fit(None, said, right)
    # Wrong with chance 0.4 (1 - c): asking is cheaper where that exceeds 1 / 5, below c = 0.5.
    assert found.policy_.threshold == pytest.approx(0.5, abs=0.12)
    assert found.cost_.policy.low < 0.5 + 5 * 0.5 * 0.1 < found.cost_.policy.high + 0.02
    assert found.cost_.saved.low > 0


def test_costs_and_limit_together_stay_certified():
    said, right = world(3000, 2)
    limit = Selective(max_error=0.1).fit(None, said, right)
    both = Selective(max_error=0.1, costs={"wrong": 20, "ask": 1}).fit(None, said, right)
    assert both.policy_.threshold in limit.certified_.passed
    assert both.policy_.threshold >= limit.policy_.threshold


@pytest.mark.parametrize("learned", [False, True])
def test_saved_loaded_and_served_alike(tmp_path, learned):
    table, said, right = richer(1500, 0)
    right = np.where(said > 0.6, 1.0, right)
    features = table if learned else None
    policy = Selective(max_error=0.2).fit(features, said, right, fitted_on={"source": "x"}).policy_
    assert policy.threshold is not None
    policy.save(tmp_path / "policy.json")
    data = json.loads((tmp_path / "policy.json").read_text())
    assert {"promise", "made", "n", "fitted_on", "threshold"} <= set(data)
    assert data["promise"]["max_error"] == 0.2
    assert data["n"] == (1000 if learned else 1500)
    again = SelectivePolicy.from_dict(data)
    rows = table.with_columns(confidence=said)
    many = policy.decide_many(rows)
    one = [again.decide(row) == "answer" for row in rows.iter_rows(named=True)]
    assert many.tolist() == one
    assert 0 < many.mean() < 1


def test_rows_that_a_policy_cannot_read():
    table, said, right = richer(900, 0)
    policy = Selective(max_error=0.4).fit(table, said, right).policy_
    with pytest.raises(InputError, match=r"needs .*tokens"):
        policy.answers(0.9)
    with pytest.raises(InputError, match="'tokens' is missing"):
        policy.decide({"confidence": 0.5, "topic": "law"})
    with pytest.raises(InputError, match="between 0 and 1"):
        policy.decide({"confidence": 1.5, "tokens": 3, "topic": "law"})
    assert policy.decide({"confidence": None, "tokens": 3, "topic": "law"}) == "ask"


@pytest.mark.parametrize("bad", [{"max_error": 0.0}, {"max_error": 1.0}, {}, {"costs": {"ask": 1}}])
def test_options_that_make_no_sense(bad):
    with pytest.raises(InputError):
        Selective(**bad)


def test_a_confidence_stored_in_single_precision_is_served_as_it_is_printed():
    rng = np.random.default_rng(4)
    said = rng.choice(np.array([0.6, 0.8, 0.9], dtype=np.float32), 3_000).astype(float)
    right = (rng.random(3_000) < np.where(said < 0.7, 0.3, 0.95)).astype(float)
    policy = Selective(max_error=0.1).fit(None, said, right).policy_
    assert policy.threshold == 0.8
    assert policy.answers(0.8)
    assert policy.answers(float(np.float32(0.8)))
    assert not policy.answers(0.79)


def test_a_limit_below_a_tenth_of_a_percent_is_said_as_it_was_asked():
    rng = np.random.default_rng(1)
    said = rng.beta(3, 1.5, 1500)
    table = {"confidence": said, "correct": (rng.random(1500) < said) * 1}
    (claim,) = calibrant.decide(table, max_error=0.0001)["claims"]
    assert claim["text"] == (
        "No threshold keeps wrong answers at 0.01 % or below with certainty. Even without "
        "an error that "
        "takes 23,025 labels; there are 1,500."
    )


def test_a_policy_of_another_version_is_refused_with_the_command_that_makes_it_anew(tmp_path):
    """Columns of a learned score were once stored by names, without an encoder."""
    table, said, right = richer(900, 2)
    rows = table.with_columns(confidence=said, correct=right)
    rows.write_csv(tmp_path / "labelled.csv")
    saved = tmp_path / "policy.json"
    calibrant.decide(
        tmp_path / "labelled.csv", max_error=0.3, features=["tokens", "topic"], save=saved
    )
    data = json.loads(saved.read_text())
    data["score"]["columns"] = {"names": ["confidence", "tokens", "topic"]}
    saved.write_text(json.dumps(data))
    with pytest.raises(InputError, match="of another version") as caught:
        calibrant.load_policy(saved)
    caught.value.for_shell()
    told = str(caught.value)
    assert "fit it again on the same labels: calibrant decide" in told
    assert "labelled.csv --max-error 0.3 --features tokens,topic --save" in told
