"""A policy is data: whatever somebody writes into it, it is refused in words or it is served."""

import asyncio
import copy
import itertools
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from benchmarks._served_world import saved_policy

import calibrant as cal
from calibrant.apps.serve import open_engine
from calibrant.core.errors import CalibrantError, InputError
from calibrant.models.study.prompts import study_recipe
from calibrant.trust.policy import RawScore, SelectivePolicy
from collect.studies import write_study

PROMISE = {"max_error": 0.1, "delta": 0.1, "certified": True}
GONE = object()
BAD = (GONE, None, -1, 1.5, 1e308, 10**400, "x", "", True, [None], {"x": 1})


def table(rows=1200):
    rng = np.random.default_rng(0)
    said = rng.uniform(0.3, 1.0, rows)
    topics = np.array(["law", "math"])[rng.integers(0, 2, rows)]
    return pl.DataFrame(
        {
            "confidence": said,
            "correct": (rng.random(rows) < said).astype(int),
            "model": "m",
            "topic": topics,
            "tokens": rng.integers(1, 900, rows),
        }
    )


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """One saved policy of every kind."""
    folder = tmp_path_factory.mktemp("policies")
    rows = table()
    cal.decide(rows.drop("topic", "tokens"), max_error=0.3, save=folder / "plain.json")
    cal.decide(rows, max_error=0.3, features=["topic", "tokens"], save=folder / "learned.json")
    cal.decide(rows, max_error=0.35, each="topic", save=folder / "groups.json")
    cal.mend(rows.drop("topic", "tokens"), save=folder / "mend.json")
    saved_policy(folder / "mixed.json")
    study = write_study(folder / "study", "http://127.0.0.1:9/v1")
    asked = study_recipe(study, "verb", ("verb",))
    fitted = {"model": "oracle", "method": "verb", "asked": asked}
    SelectivePolicy(RawScore(), 0.5, PROMISE, "2026-11-17", 9, fitted).save(folder / "study.json")
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def places(value, path=()):
    """Yield the path of every part; of a list the first and the last."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list) and value:
        for at in sorted({0, len(value) - 1}):
            yield from places(value[at], (*path, at))


def damaged(data, path, bad):
    data = copy.deepcopy(data)
    *above, last = path
    part = data
    for name in above:
        part = part[name]
    if bad is GONE:
        del part[last]
    else:
        part[last] = bad
    return data


def use(path, folder):
    """Do with a policy what is done with policies."""
    policy = cal.load_policy(path)
    row = {"question_id": "1", "text": "t", "topic": "law", "tokens": 3, "confidence": 0.5,
           "length": 3}  # fmt: skip
    assert policy.decide(row) in ("answer", "ask")
    asked = {}
    while (step := policy.route(row, asked)).action == "ask":
        assert step.model in policy.models
        assert step.model not in asked
        asked[step.model] = row
    assert step.action in ("answer", "defer")
    assert step.risk is None or 0 <= step.risk <= 1
    many = [{**row, "confidence": said} for said in np.linspace(0.3, 1, 60)]
    if policy.profile is not None:
        assert policy.check(many).text
    assert policy.ends_when
    assert all(isinstance(name, str) for name in (*policy.models, *policy.needs))
    promise = policy.promise
    for name in ("max_error", "delta"):
        assert promise.get(name) is None or 0 < promise[name] < 1
    threshold = getattr(policy, "threshold", None)
    assert threshold is None or 0 <= threshold <= 1
    assert policy.expires is None or policy.expires.year > 2000


def serve(path, folder):
    """Do with a policy what is done before it is served."""
    policy = cal.load_policy(path)
    recipe = policy.fitted_on.get("asked") or {"not_live": "a table"}
    engine = open_engine(
        path, endpoints=dict.fromkeys(policy.models, "http://127.0.0.1:9/v1"), keys={}, price={},
        per_token=False, ledger=folder / "l.sqlite",
        measured_by=None if recipe["not_live"] is None else "perplexity",
    )  # fmt: skip
    assert engine.policy.promise
    asyncio.run(engine.close())


def outcome(data, folder, work):
    path = folder / "p.json"
    path.write_text(json.dumps(data))
    try:
        work(path, folder)
    except CalibrantError:
        return "refused"
    return "served"


KINDS = ("plain", "learned", "groups", "mend", "mixed", "study")


@pytest.mark.filterwarnings("ignore:the ledger has no new backup")
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_stands_in_a_policy_is_refused_or_served(policies, kind, tmp_path):
    whole = policies[kind]
    found, faults = Counter(), []
    for work, path in itertools.product((use, serve), places(whole)):
        if work is serve and path[0] not in ("fitted_on", "promise"):
            continue
        for bad in BAD:
            data = damaged(whole, path, bad)
            try:
                found[outcome(data, tmp_path, work)] += 1
            except Exception as error:  # noqa: BLE001 - told below
                faults.append(f"{path} = {bad!r}: {type(error).__name__} {error}"[:160])
    assert not faults, f"{len(faults)} of {found}:\n" + "\n".join(faults[:60])
    assert found["refused"] > 200


@pytest.mark.parametrize("change", [{"threshold": -1}, {"threshold": 1.5}, {"n": -3},
                                    {"promise": {"max_error": 0.0, "certified": True}},
                                    {"promise": {"max_error": 0.1, "delta": 7}},
                                    {"promise": {"certified": "yes"}}])  # fmt: skip
def test_numbers_out_of_range_are_refused_with_what_to_type(policies, change, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps({**policies["plain"], **change}))
    with pytest.raises(InputError, match="the policy is damaged") as refused:
        cal.load_policy(path)
    assert next(iter(change)) in refused.value.rule
    assert "calibrant.decide(" in str(refused.value)
