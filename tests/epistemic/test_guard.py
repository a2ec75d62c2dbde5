"""Traffic without labels is held against what a policy was made on."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.trust import Cascade, Step
from calibrant.trust.traffic_shift import Profile, same_spread


def answers(n, seed, hard=0.1, power=1.0, extra=0.0):
    rng = np.random.default_rng(seed)
    topic = np.where(rng.random(n) < hard, "law", "art")
    topic = np.where(rng.random(n) < extra, "new", topic)
    said = rng.random(n).round(3) ** power
    wrong = rng.random(n) < (1 - said) * np.where(topic == "law", 0.8, 0.2)
    table = {"confidence": said, "correct": (~wrong).astype(int), "topic": topic}
    return pl.DataFrame(table)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guard")
    answers(2000, 0).write_csv(folder / "labelled.csv")
    path = folder / "policy.json"
    cal.decide(folder / "labelled.csv", max_error=0.1, group="topic", save=path)
    return path


def test_one_group_gives_the_usual_chi_square():
    before, now = np.array([[40.0, 60.0, 25.0]]), np.array([[30.0, 20.0, 45.0]])
    usual = chi2_contingency(np.vstack([before, now]), correction=False).pvalue
    assert same_spread(before, now) == pytest.approx(usual, rel=0.15)


def test_a_new_mix_of_groups_alone_is_not_taken_for_new_confidences():
    # Law has lower confidences: with more of it, confidences are lower in all but not inside.
    rng = np.random.default_rng(1)

    def rows(n, law):
        topic = np.where(rng.random(n) < law, "law", "art")
        said = rng.beta(np.where(topic == "law", 2, 6), 2)
        return pl.DataFrame({"confidence": said, "topic": topic})

    profile = Profile.of(rows(2000, 0.1), "topic")
    assert profile.check(rows(700, 0.6)).outcome == "mix changed"
    assert profile.check(rows(700, 0.6).drop("topic")).outcome == "expired"


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "as certified"),
        ({"hard": 0.4}, "mix changed"),
        ({"power": 3.0}, "expired"),
        ({"extra": 0.2}, "new groups"),
    ],
)
def test_each_change_has_its_outcome_and_its_next_command(policy, change, outcome):
    found = cal.load_policy(policy).check(answers(700, 5, **change).drop("correct"))
    assert found.outcome == outcome
    assert found.holds is (outcome in ("as certified", "new groups"))
    wanted = {"mix changed": "decide", "expired": "label serve"}.get(outcome)
    assert (found.call.verb if found.call else None) == wanted
    assert ("new (2" in found.text) is (outcome == "new groups")


def test_few_rows_and_missing_columns_are_said(policy):
    found = cal.load_policy(policy).check([{"confidence": 0.5}] * 10)
    assert found.outcome == "as certified"
    assert found.unchecked == ["topic"]
    assert "Not checked, because the rows lack it: topic" in found.text


def test_monitor_takes_traffic_without_labels_and_names_the_next_command(policy, tmp_path):
    path = tmp_path / "traffic.csv"
    answers(900, 6, hard=0.5).drop("correct").write_csv(path)
    told = cal.monitor(path, policy=policy).to_dict()
    assert told["traffic"]["outcome"] == "mix changed"
    assert told["claims"][0]["id"] == "monitor.traffic"
    again = told["traffic"]["next"]
    assert "--traffic" in again
    assert "--group topic" in again
    new = cal.decide(policy.parent / "labelled.csv", max_error=0.1, traffic=path, group="topic",
                     save=tmp_path / "new.json")  # fmt: skip
    assert new["results"][0]["promise"]["for"] == "traffic"
    assert cal.load_policy(tmp_path / "new.json").check(answers(900, 7, hard=0.5)).holds


def test_every_kind_of_policy_has_the_same_methods(policy, tmp_path):
    loaded = cal.load_policy(policy)
    rows = [{"confidence": 0.99, "topic": "art"}, {"confidence": 0.99, "topic": "never"}]
    said = [{"model": {"confidence": 0.99}}] * 2
    assert loaded.route_batch(rows) == [Step("ask", "model")] * 2
    assert loaded.route_batch(rows, said) == [Step("answer", "model"), Step("defer", "model")]
    assert loaded.expires is None
    assert "policy.check(rows)" in loaded.ends_when
    with pytest.raises(InputError, match="1 rows of answers for 2 questions"):
        loaded.route_batch(rows, said[:1])
    table = answers(3000, 8)
    cal.mend(table, save=tmp_path / "mend.json")
    mended = cal.load_policy(tmp_path / "mend.json")
    assert mended.answers(0.4)
    assert mended.route({}, {mended.models[0]: 0.4}).action == "answer"
    assert mended.check(table).outcome == "as certified"
    assert mended.check(answers(3000, 9, power=3.0)).outcome == "expired"


def test_a_cascade_sends_a_category_never_labelled_to_the_last_model(tmp_path):
    rng = np.random.default_rng(2)
    n = 400
    table = pl.DataFrame({"topic": rng.choice(["law", "art"], n)})
    said = {"small": rng.random(n), "large": rng.random(n)}
    right = {name: (rng.random(n) < values).astype(float) for name, values in said.items()}
    fitted = Cascade(["small", "large"], tolerance=0.9).fit(
        table, said, right, price={"small": 1, "large": 5}
    )
    fitted.save(tmp_path / "policy.json")
    data = json.loads((tmp_path / "policy.json").read_text())
    assert data["kind"] == "cascade"
    mixed = cal.load_policy(tmp_path / "policy.json")
    assert mixed.decide({"confidence": 0.9, "topic": "law"}) == "answer"
    rows = pl.concat([
        table.with_columns(model=pl.lit(name), confidence=pl.Series(said[name]),
                           correct=pl.Series(right[name]), question_id=pl.int_range(n))
        for name in said
    ])  # fmt: skip
    cal.cascade(rows, models=["small", "large"], features=["topic"], price=[1, 5],
                random_splits=2, strategies=["value"], save=tmp_path / "verb.json")  # fmt: skip
    saved = cal.load_policy(tmp_path / "verb.json")
    assert saved.known["topic"] == ["art", "law"]
    assert saved.route({"topic": "new"}, {}) == Step("ask", "large")
    assert saved.route({"topic": "new"}, {"large": 0.1}) == Step("answer", "large")
