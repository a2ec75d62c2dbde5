"""One-step deferral: the same for one question as for many, to the budget, as promised."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from calibrant.core import InputError
from calibrant.trust import CostMatrix, load_policy
from calibrant.trust.deferral.answers import VECTOR, Aim, Answers, QuestionEmbedding
from calibrant.trust.deferral.choice import Target, choose_policy, given_tolerance, per_question
from calibrant.trust.deferral.mixing import (
    at_accuracy,
    at_budget,
    betting_p,
    certified_settings,
    hash_share,
)
from calibrant.trust.deferral.policy import MixedPolicy, ValuePolicy
from calibrant.trust.deferral.strategies import StrategyOptions, fit_strategies
from calibrant.trust.deferral.value import ValueModel

MODELS = ("small", "middle", "large")
ONLY_VALUE = StrategyOptions(strategies=("value",))


def world(n, seed, *, missing=0.0):
    """Topics that the small model knows, tokens as cost, and confidences that tell something."""
    rng = np.random.default_rng(seed)
    topic = rng.choice(["easy", "mixed", "hard"], n)
    ease = np.select([topic == "easy", topic == "mixed"], [2.0, 0.5], -1.0)
    skill = np.array([0.0, 0.8, 1.6])
    chance = 1 / (1 + np.exp(-(ease[:, None] + skill + rng.normal(0, 1, (n, 3)))))
    right = (rng.random((n, 3)) < chance).astype(float)
    said = np.clip(0.15 + 0.8 * chance, 0.01, 0.99)
    said[rng.random((n, 3)) < missing] = np.nan
    tokens = rng.integers(20, 200, (n, 3))
    cost = tokens * np.array([0.1, 0.5, 2.0])
    extra = {m: pl.DataFrame({"tokens": tokens[:, k]}) for k, m in enumerate(MODELS)}
    return Answers(MODELS, pl.DataFrame({"topic": topic}), said, right, cost, extra)


def walk(policy, answers, row):
    """Follow the policy with one question and return who answers and what was asked."""
    question = {"question_id": str(row), "topic": answers.features["topic"][row]}
    asked = {}
    while (step := policy.route(question, asked)).action == "ask":
        at = MODELS.index(step.model)
        said = answers.confidence[row, at]
        tokens = int(answers.answer_features[step.model]["tokens"][row])
        asked[step.model] = {"confidence": None if np.isnan(said) else said, "tokens": tokens}
    return step.model, list(asked)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_one_question_is_routed_as_many_are(tmp_path, direct, missing):
    answers = world(1500, 0, missing=missing)
    model = ValueModel(MODELS, Aim()).fit(answers)
    (who,), (spent,) = model.run(model.prepare(answers), np.array([0.002]), direct=direct)
    policy = MixedPolicy(ValuePolicy(model, 0.002, direct), ((0.002, direct),) * 2, 0.0)
    policy.save(tmp_path / "policy.json")
    again = load_policy(tmp_path / "policy.json")
    for row in range(0, 1500, 9):
        name, asked = walk(again, answers, row)
        assert name == MODELS[who[row]]
        cost = sum(answers.cost[row, MODELS.index(model)] for model in asked)
        assert cost == pytest.approx(spent[row])


def test_a_step_serves_unseen_topics():
    answers = world(1500, 0)
    policy = ValuePolicy(ValueModel(MODELS, Aim()).fit(answers), 0.002, direct=True)
    said = {"small": {"confidence": 0.5, "tokens": 50}}
    assert policy.route({"topic": "never seen"}, said).model in MODELS


def test_a_model_may_be_skipped_and_price_decides():
    answers = world(3000, 1)
    model = ValueModel(MODELS, Aim()).fit(answers)
    prepared = model.prepare(answers)
    (free, dear), _ = model.run(prepared, np.array([0.0, 1.0]), direct=False)
    assert (dear == 0).all()
    assert (free == 2).mean() > 0.3
    policy = ValuePolicy(model, 0.0005, direct=False)
    paths = {tuple(walk(policy, answers, row)[1]) for row in range(300)}
    assert ("small", "large") in paths, "the middle model is never skipped"


def test_bad_answers_are_refused():
    policy = ValuePolicy(ValueModel(MODELS, Aim()).fit(world(400, 0)), 0.002, direct=False)
    with pytest.raises(InputError, match="no model 'smal'"):
        policy.route({"topic": "easy"}, {"smal": 0.5})
    with pytest.raises(InputError, match="between 0 and 1"):
        policy.route({"topic": "easy"}, {"small": {"confidence": 3.0, "tokens": 3}})
    with pytest.raises(InputError, match="'topic' is missing"):
        policy.route({}, {"small": {"confidence": 0.3, "tokens": 3}})


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(1, 10), st.floats(0, 1)), min_size=1, max_size=8))
def test_no_pair_of_settings_beats_the_mix(points):
    cost, accuracy = np.array(points).T
    budget = float(np.median(cost))
    found = at_budget(cost, accuracy, budget)
    if found is None:
        assert cost.min() > budget
        return
    assert found.cost <= budget + 1e-9
    for one in range(len(cost)):
        for two in range(len(cost)):
            for share in np.linspace(0, 1, 5):
                if (1 - share) * cost[one] + share * cost[two] <= budget:
                    reached = (1 - share) * accuracy[one] + share * accuracy[two]
                    assert found.accuracy >= reached - 1e-9


def test_accuracy_is_bought_at_the_lowest_cost():
    found = at_accuracy(np.array([1.0, 2.0, 9.0]), np.array([0.5, 0.7, 0.8]), 0.6)
    assert (found.first, found.second, found.cost) == (0, 1, 1.5)
    assert at_accuracy(np.array([1.0]), np.array([0.5]), 0.6) is None


def test_hash_deals_even_shares():
    share = np.array([hash_share(f"question {k}") for k in range(4000)])
    assert abs((share < 0.3).mean() - 0.3) < 0.03


def test_budget_is_kept_on_unseen_questions_and_the_promise_holds(tmp_path):
    seen, unseen = world(4000, 2), world(4000, 3)
    largest = seen.cost[:, -1].mean()
    found = choose_policy(seen, StrategyOptions(), Target(budget=0.5), seed=0)
    policy = MixedPolicy(found.policy, found.dials, found.share)
    walked = [walk(policy, unseen, row) for row in range(1500)]
    cost = [sum(unseen.cost[r, MODELS.index(m)] for m in w[1]) for r, w in enumerate(walked)]
    right = [unseen.correct[r, MODELS.index(w[0])] for r, w in enumerate(walked)]
    # The upper end of the cost stays inside, so that the mean lies a little below.
    assert 0.44 * largest < np.mean(cost) < 0.515 * largest
    assert np.mean(right) == pytest.approx(found.accuracy.value, abs=0.04)
    singles = seen.correct.mean(axis=0)
    assert found.accuracy.value > singles[1]
    assert set(found.reasons) == {"risk", "calibration", "confidence", "router", "single"}


def test_a_strategy_that_another_beats_is_refused_with_the_reason():
    with pytest.raises(InputError, match=r"'risk' is not saved: it costs .* less accurate"):
        choose_policy(
            world(4000, 2), StrategyOptions(), Target(budget=0.5, strategy="risk"), seed=0
        )


def test_impossible_budgets_are_refused():
    with pytest.raises(InputError, match="no policy costs as little"):
        choose_policy(world(1000, 0), ONLY_VALUE, Target(budget=0.001), seed=0)


def test_betting_is_rarely_wrong_at_the_edge():
    wrong = 0
    for seed in range(400):
        values = (np.random.default_rng(seed).random(300) < 0.5).astype(float)
        wrong += betting_p(values, 0.5) <= 0.1
    assert wrong <= 55


def test_guarantee_is_kept_and_where_nothing_passes_the_largest_answers():
    kept = 0
    truth = world(20_000, 999)
    for seed in range(12):
        found = choose_policy(world(2500, seed), ONLY_VALUE, Target(margin=0.05), seed=seed)
        assert found.certified is not None
        policy = found.policy.with_dial(found.dials[0])
        if found.strategy == "single":
            kept += 1
            continue
        money, prepared = np.array([policy.money]), policy.model.prepare(truth)
        (who,), _ = policy.model.run(prepared, money, direct=policy.direct)
        accuracy = truth.correct[np.arange(len(who)), who].mean()
        kept += accuracy >= truth.correct[:, -1].mean() - 0.05
    assert kept >= 10
    hopeless = choose_policy(world(300, 0), ONLY_VALUE, Target(margin=0.0001), seed=0)
    assert (hopeless.strategy, hopeless.certified) == ("single", 0)


def test_settings_are_tested_in_order_up_to_the_first_failure():
    reference = np.ones(500)
    right = np.stack([np.ones(500), np.zeros(500), np.ones(500)])
    spent = np.ones((3, 500))
    passed = certified_settings(right, spent, reference, [0, 1, 2], margin=0.05, delta=0.1)
    assert passed == [0]
    dear = certified_settings(
        right, spent, reference, [0], margin=0.05, delta=0.1, budget=0.5, dearest=2.0
    )
    assert dear == []


def test_costs_of_the_user_enter_doubt_and_worth():
    aim = Aim("class", CostMatrix(c10=1, c01=9))
    said = np.array([0.05, 0.2, 0.9])
    # Cut at 0.1: the first decides 0, the others 1; a missed outcome costs nine times as much.
    np.testing.assert_allclose(aim.doubt(said), [0.05, 0.8 / 9, 0.1 / 9])
    np.testing.assert_allclose(aim.worth(said, np.array([1.0, 0.0, 1.0])), [0.0, 8 / 9, 1.0])
    plain = Aim("class")
    np.testing.assert_allclose(plain.doubt(said), [0.05, 0.2, 0.1])


def test_neighbours_are_found_by_cosine():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi / 2, 600)
    length = rng.uniform(0.1, 10, 600)
    table = pl.DataFrame({"x": length * np.cos(angle), "y": length * np.sin(angle)})
    right = np.column_stack([angle < np.pi / 4, angle >= np.pi / 4]).astype(float)
    answers = Answers(("a", "b"), table, np.full((600, 2), 0.5), right, np.ones((600, 2)))
    options = StrategyOptions(strategies=("router_knn",), neighbours=15)
    (fitted,) = fit_strategies(answers, [answers], options, 0)
    accuracy = fitted.policy.accuracy(pl.DataFrame({"x": [9.0, 0.01], "y": [1.0, 0.2]}))
    np.testing.assert_allclose(accuracy, [[1, 0], [0, 1]])


def test_neighbours_look_at_the_whole_embedding(tmp_path):
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(400, 12))
    # What decides is a direction that the components given as features do not show.
    right = np.column_stack([vectors[:, 11] > 0, vectors[:, 11] <= 0]).astype(float)
    table = pl.DataFrame({"topic": ["x"] * 400})
    cost = np.ones((400, 2))
    answers = Answers(("a", "b"), table, np.full((400, 2), 0.5), right, cost, {}, vectors)
    options = StrategyOptions(strategies=("router_knn",), neighbours=15)
    (fitted,) = fit_strategies(answers, [answers], options, 0)
    probe = np.zeros(12)
    probe[11] = 3.0
    about = {"column": "q", "embedder": "letters", "centre": [0.0] * 12, "axes": [[1.0] * 12]}
    policy = MixedPolicy(fitted.policy, (100.0, 100.0), 0.0, {}, embedding=about)
    policy.save(tmp_path / "policy.json")
    loaded = load_policy(tmp_path / "policy.json")
    assert loaded.route({VECTOR: probe}, {}).model == "a"
    assert loaded.route({VECTOR: -probe}, {}).model == "b"
    with pytest.raises(InputError, match="embedding"):
        loaded.route({"q": "abc"}, {})

    class Letters:
        name = "letters"

        def embed(self, texts):
            return [probe if "a" in text else -probe for text in texts]

    told = loaded.embed_with(Letters())
    assert [told.route({"q": text}, {}).model for text in ("abc", "xyz")] == ["a", "b"]
    with pytest.raises(InputError, match="fitted with letters"):
        QuestionEmbedding({**about, "embedder": "letters"}, type("Other", (), {"name": "other"})())


def test_a_tolerance_is_saved_with_its_promise_or_refused():
    answers = world(1500, 3)
    options = StrategyOptions(strategies=("value", "confidence"))
    # Confidences of other questions and no topic: whoever asks everybody then picks at random.
    others = np.random.default_rng(0).permutation(1500)
    blind = replace(
        answers,
        features=pl.DataFrame({"topic": ["any"] * 1500}),
        confidence=answers.confidence[others],
    )
    with pytest.raises(InputError, match=r"not saved: at the same cost .* more accurate"):
        given_tolerance(blind, options, 0.1, seed=0)
    alone = StrategyOptions(strategies=("risk",))
    found = given_tolerance(answers, alone, 0.35, seed=0)
    assert found.strategy == "risk"
    assert found.dials == (0.35, 0.35)
    unseen = world(6000, 99)
    risk = found.policy.risk(unseen)
    stops = risk <= 0.35
    who = np.where(stops.any(axis=1), stops.argmax(axis=1), risk.argmin(axis=1))
    reached = unseen.correct[np.arange(6000), who].mean()
    assert found.accuracy.low - 0.02 < reached < found.accuracy.high + 0.02
    with pytest.raises(InputError, match="at least 250 questions"):
        given_tolerance(world(200, 3), options, 0.3, seed=0)


def test_mixes_average_question_by_question():
    found = at_budget(np.array([1.0, 3.0]), np.array([0.5, 0.7]), 2.0)
    values = np.array([[0.0, 1.0], [1.0, 1.0]])
    assert per_question(found, values).tolist() == [0.5, 1.0]
    assert json.loads(json.dumps(found.share)) == 0.5
