import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core import InputError
from calibrant.core.errors import SchemaError
from calibrant.trust import Cascade, Router, choose, load_policy
from calibrant.trust.deferral.answers import model_matrix
from calibrant.trust.deferral.strategies import pareto

MODELS = ["small", "medium", "large"]
PRICE = {"small": 1.0, "medium": 4.0, "large": 10.0}


@pytest.fixture(scope="module")
def answered():
    """Queries of two kinds; the small model fails on one of them without knowing it."""
    rng = np.random.default_rng(0)
    n = 4000
    kind = rng.choice(["easy", "hard"], n)
    size = rng.normal(size=n)
    hard = kind == "hard"
    chance = {
        "small": np.where(hard, 0.2, 0.9),
        "medium": np.where(hard, 0.6, 0.9),
        "large": np.full(n, 0.85),
    }
    right = {name: (rng.random(n) < p).astype(float) for name, p in chance.items()}
    said = {name: np.clip(p.mean() + 0.1 * rng.normal(size=n), 0, 1) for name, p in chance.items()}
    return pl.DataFrame({"kind": kind, "size": size}), said, right


@pytest.fixture(scope="module", params=["tree", "boosting", "forest"])
def policy(answered, request):
    return Cascade(MODELS, tolerance=0.2, model=request.param).fit(*answered, price=PRICE)


def test_batch_and_single_route_agree(answered, policy):
    features, said, _ = answered
    batch = policy.route_batch(features, said)
    for row in range(60):
        answers, step = {}, policy.route(features.row(row, named=True), {})
        while step.action == "ask":
            answers[step.model] = said[step.model][row]
            step = policy.route(features.row(row, named=True), answers)
        assert step.model == MODELS[batch.chosen[row]]
        assert len(answers) == batch.asked[row]


def test_saved_policy_decides_bit_for_bit_the_same(answered, policy, tmp_path):
    features, said, _ = answered
    policy.save(tmp_path / "policy.json")
    again = load_policy(tmp_path / "policy.json").policy
    before, after = policy.route_batch(features, said), again.route_batch(features, said)
    np.testing.assert_array_equal(before.chosen, after.chosen)
    query = features.row(0, named=True)
    assert policy.route(query, {"small": 0.6}) == again.route(query, {"small": 0.6})
    policy.save(tmp_path / "first.json")
    again.save(tmp_path / "second.json")
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_epistemic_risk_defers_where_confidence_cannot_know(answered):
    features, said, right = answered
    hard = (features["kind"] == "hard").to_numpy()
    risk = Cascade(MODELS, tolerance=0.3).fit(features, said, right, price=PRICE)
    blind = Cascade(MODELS, rule="calibration", tolerance=0.45).fit(
        features, said, right, price=PRICE
    )
    chosen = risk.route_batch(features, said).chosen
    assert (chosen[~hard] == 0).mean() > 0.95
    assert (chosen[hard] == 0).mean() < 0.05
    seen = blind.route_batch(features, said).chosen
    assert abs((seen[hard] == 0).mean() - (seen[~hard] == 0).mean()) < 0.1


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_choose_follows_the_rule_row_by_row(seed, tolerance):
    risk = np.random.default_rng(seed).random((20, 3))
    found = choose(risk, tolerance)
    for row in range(20):
        stops = [m for m in range(3) if risk[row, m] <= tolerance]
        assert found.chosen[row] == (stops[0] if stops else int(np.argmin(risk[row])))
        assert found.asked[row] == (stops[0] + 1 if stops else 3)


def test_a_model_without_confidence_never_stops_the_cascade(answered, policy):
    features, _, _ = answered
    query = features.row(0, named=True)
    assert policy.route(query, {"small": None}).model == "medium"
    silent = policy.route(query, {"small": None, "medium": None, "large": None})
    assert (silent.action, silent.model) == ("answer", "large")
    nothing = {name: np.full(features.height, np.nan) for name in MODELS}
    assert set(policy.route_batch(features, nothing).chosen) == {2}


def test_answer_features_are_known_once_the_model_has_answered():
    rng = np.random.default_rng(0)
    n = 3000
    length = rng.integers(1, 100, n)
    right = {"a": (rng.random(n) < np.where(length > 50, 0.2, 0.9)), "b": rng.random(n) < 0.8}
    said = {"a": np.full(n, 0.55), "b": np.full(n, 0.8)}
    table = {"topic": rng.choice(["x", "y"], n)}
    policy = Cascade(["a", "b"], tolerance=0.3).fit(
        table, said, right, price={"a": 1, "b": 5}, answer_features={"a": {"length": length}}
    )
    query = {"topic": "x"}
    assert policy.route(query, {"a": {"confidence": 0.55, "length": 10}}).action == "answer"
    assert policy.route(query, {"a": {"confidence": 0.55, "length": 90}}).model == "b"
    with pytest.raises(InputError, match="feature 'length' is missing"):
        policy.route(query, {"a": 0.55})


def test_class_decisions_use_the_threshold_of_the_costs():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 4000)
    y = (rng.random(4000) < np.where(group == 1, 0.9, 0.1)).astype(float)
    said = {"blind": np.full(4000, 0.55), "seeing": np.where(group == 1, 0.9, 0.1)}
    policy = Cascade(["blind", "seeing"], decision="class").fit(
        {"group": group}, said, y, price={"blind": 1, "seeing": 9}
    )
    chosen = policy.route_batch({"group": group}, said).chosen
    assert (chosen[group == 1] == 0).all(), "0.55 decides 1, which is right here"
    assert (chosen[group == 0] == 1).all()


def test_errors_of_a_served_query(answered, policy):
    query = {"kind": "easy", "size": 0.0}
    with pytest.raises(InputError, match="feature 'size' is missing"):
        policy.route({"kind": "easy"}, {"small": 0.5})
    with pytest.raises(InputError, match="category 'odd'"):
        policy.route({"kind": "odd", "size": 0.0}, {"small": 0.5})
    with pytest.raises(InputError, match="no model 'smal'"):
        policy.route(query, {"smal": 0.5})
    with pytest.raises(InputError, match="order of the cascade"):
        policy.route(query, {"medium": 0.5})
    with pytest.raises(InputError, match="between 0 and 1"):
        policy.route(query, {"small": 1.5})


def test_bad_fits_are_refused(answered):
    features, said, right = answered
    with pytest.raises(InputError, match="groups need at least"):
        Cascade(MODELS).fit(
            features[:50],
            {m: said[m][:50] for m in MODELS},
            {m: right[m][:50] for m in MODELS},
            price=PRICE,
        )
    with pytest.raises(InputError, match="price of the model 'large' is missing"):
        Cascade(MODELS).fit(features, said, right, price={"small": 1, "medium": 2})
    with pytest.raises(InputError, match="> 0, got"):
        Cascade(MODELS, costs={"c10": 0, "c01": 0})
    with pytest.raises(InputError, match="rule must be"):
        Cascade(MODELS, rule="luck")
    with pytest.raises(InputError, match="one row per query"):
        model_matrix(np.zeros((3, 2)), MODELS, 3, "confidence")


@pytest.mark.parametrize("kind", ["tree", "knn"])
def test_router_sends_queries_where_they_pay_and_survives_saving(answered, kind, tmp_path):
    features, _, right = answered
    table = features.with_columns(hard=(pl.col("kind") == "hard").cast(pl.Float64))
    router = Router(MODELS, kind=kind, willingness=30.0).fit(table, right, price=PRICE)
    chosen = router.choose(table)
    hard = table["hard"].to_numpy() == 1
    # A tree of unlimited depth follows some noise, as the baseline of the paper does.
    assert (chosen[~hard] == 0).mean() > 0.65
    assert (chosen[hard] > 0).mean() > 0.9
    router.save(tmp_path / "router.json")
    again = load_policy(tmp_path / "router.json").policy
    np.testing.assert_array_equal(again.choose(table), chosen)
    for row in range(20):
        assert again.route(table.row(row, named=True)).model == MODELS[chosen[row]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a JSON"),
        ('{"schema": "calibrant.audit/1"}', "calibrant.policy/1"),
        ('{"schema": "calibrant.policy/1", "kind": "oracle"}', "unknown kind"),
        ('{"schema": "calibrant.policy/1", "kind": "cascade"}', "damaged"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path, text, words):
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=words):
        load_policy(path)


def test_policy_file_is_plain_numbers_and_names(policy, tmp_path):
    policy.save(tmp_path / "policy.json")
    data = json.loads((tmp_path / "policy.json").read_text())
    assert data["schema"] == "calibrant.policy/1"
    assert [stage["name"] for stage in data["stages"]] == MODELS


@given(st.integers(0, 2**31))
def test_pareto_set_is_what_nothing_beats(seed):
    rng = np.random.default_rng(seed)
    cost, accuracy = rng.integers(0, 6, 15).astype(float), rng.integers(0, 6, 15).astype(float)
    kept = pareto(cost, accuracy)
    for i in range(15):
        beaten = any(
            (cost[j] <= cost[i] and accuracy[j] > accuracy[i])
            or (cost[j] < cost[i] and accuracy[j] >= accuracy[i])
            for j in range(15)
        )
        if kept[i]:
            assert not beaten


@pytest.fixture(scope="module")
def excess(answered):
    return Cascade(MODELS, rule="excess", tolerance=0.0).fit(*answered, price=PRICE)


def test_without_any_tolerance_an_answer_that_nobody_betters_is_given(answered, excess):
    """Easy questions end at the small model; hard ones go on. Risk alone would ask everyone."""
    features, said, right = answered
    hard = (features["kind"] == "hard").to_numpy()
    routed = excess.route_batch(features, said)
    # The middle model is as good on easy questions: whether it is asked there is a toss.
    assert np.mean(routed.asked[~hard] == 1) > 0.4
    assert np.mean(routed.asked[hard] == 1) < 0.02
    plain = Cascade(MODELS, rule="risk", tolerance=0.0).fit(*answered, price=PRICE)
    assert np.mean(plain.route_batch(features, said).asked == 1) < 0.3
    hits = np.stack([right[name] for name in MODELS], axis=1)
    got = hits[np.arange(len(hits)), routed.chosen].mean()
    assert got > max(right[name].mean() for name in MODELS) - 0.01


def test_excess_risk_is_what_a_later_model_adds(answered, excess):
    features, said, _ = answered
    hard = (features["kind"] == "hard").to_numpy()
    first, last = excess.stages_[0], excess.stages_[-1]
    risk = first.risk(features, said["small"], excess.aim)
    # The best later model is right in 85 % of the hard questions, the small one in 20 %.
    assert abs(risk[hard].mean() - 0.65) < 0.05
    assert (risk >= 0).all()
    assert (last.risk(features, said["large"], excess.aim) == 0).all()


def test_excess_risk_is_saved_and_served_one_by_one(answered, excess, tmp_path):
    features, said, _ = answered
    excess.save(tmp_path / "policy.json")
    again = load_policy(tmp_path / "policy.json").policy
    batch = again.route_batch(features, said)
    for row in range(40):
        answers, step = {}, again.route(features.row(row, named=True), {})
        while step.action == "ask":
            answers[step.model] = said[step.model][row]
            step = again.route(features.row(row, named=True), answers)
        assert step.model == MODELS[batch.chosen[row]]
