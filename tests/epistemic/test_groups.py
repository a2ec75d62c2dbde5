"""Groups beyond the overall error: what is found, what is not, what is named and what is served."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant
from calibrant.core import InputError
from calibrant.trust import ConfidenceGroups, GroupCorrector, gap_difference
from calibrant.trust.group_rules import (
    Condition,
    GroupRule,
    candidate_rules,
    parse_rule,
    short_decimal,
    text_groups,
    word_vectors,
)
from calibrant.verbs.groups import vector_matrix


def people(n, seed, overall=0.1, plant=0.0):
    """Everybody is over-confident by `overall`; the young of one department by `plant` more."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "dept": rng.choice([f"d{i}" for i in range(8)], n),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
        }
    )
    f = np.clip(rng.beta(5, 2, n), 0.02, 0.98)
    inside = ((table["dept"] == "d3") & (table["age"] <= 40)).to_numpy()
    p = np.clip(f - overall - plant * inside, 0.01, 0.99)
    return table, f, (rng.random(n) < p).astype(float), inside


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 10))
def test_short_decimal_lies_between(low, width):
    assert low <= short_decimal(low, low + width) < low + width


def test_an_error_that_all_share_flags_nobody():
    flagged = 0
    for seed in range(30):
        table, f, y, _ = people(1500, seed)
        found = ConfidenceGroups(seed=seed).fit(table, f, y)
        flagged += any(group.flagged for group in found.groups_)
    assert flagged <= 5


def test_planted_group_comes_first_its_echoes_do_not_and_the_interval_holds_it():
    first, covered, flags = 0, 0, []
    for seed in range(8):
        table, f, y, _ = people(6000, seed, plant=0.25)
        groups = ConfidenceGroups(seed=seed).fit(table, f, y).groups_
        top = groups[0]
        first += top.flagged and "dept = d3" in top.rule and "age" in top.rule
        covered += top.beyond.low <= 0.25 <= top.beyond.high
        flags.append(sum(group.flagged for group in groups))
        echo = next(group for group in groups if group.rule == "dept = d3")
        assert echo.flagged or echo.echo_of is None or echo.echo_of == top.rule
    assert first >= 7
    assert covered >= 7
    assert np.mean(flags) < 2


def test_seeds_agree():
    table, f, y, _ = people(6000, 0, plant=0.25)
    rules = {
        tuple(g.rule for g in ConfidenceGroups(seed=s).fit(table, f, y).groups_ if g.flagged)
        for s in range(3)
    }
    assert len(rules) == 1


def test_every_rule_is_what_it_says():
    table, *_ = people(800, 0)
    found = candidate_rules(table, 50)
    blocks = np.concatenate([block for _, block in found.blocks()])
    for at in range(0, len(found), 7):
        rule = found.rule(at)
        by_row = [rule.holds(row) for row in table.iter_rows(named=True)]
        np.testing.assert_array_equal(rule.mask(table), by_row)
        np.testing.assert_array_equal(rule.mask(table), found.mask(at))
        np.testing.assert_array_equal(blocks[at].astype(bool), by_row)
        assert sum(by_row) >= 50
        again = GroupRule.from_dict(json.loads(json.dumps(rule.to_dict())))
        np.testing.assert_array_equal(again.mask(table), by_row)


def test_named_groups_and_their_difference():
    table, f, y, inside = people(6000, 1, plant=0.25)
    found = ConfidenceGroups(named=["young d3: dept=d3 and age<=40", "sex = f"]).fit(table, f, y)
    named = [group for group in found.groups_ if group.kind == "named"]
    assert [group.rule for group in named] == ["young d3", "sex = f"]
    assert named[0].n == inside.sum()
    assert named[0].flagged
    assert not named[1].flagged
    (pair,) = found.differences_
    assert pair.gap.low > 0.1
    assert pair.p_adjusted < 0.01


def test_difference_covers_the_truth_at_its_level():
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        f = rng.random(600)
        a = rng.random(600) < 0.3 + 0.4 * f
        y = (rng.random(600) < np.clip(f - 0.1 * a, 0.02, 0.98)).astype(float)
        found, *_ = gap_difference(f, y, a, ~a)
        covered += found.low <= 0.1 <= found.high
    assert covered >= 180


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agee<3", "'agee', which is not there"),
        ("age", "is no comparison"),
        ("sex<f", "a category"),
        ("sex=x", "never has that value"),
        ("age<x", "a number"),
    ],
)
def test_rules_that_cannot_be_read(text, message):
    with pytest.raises(InputError, match=message):
        parse_rule(text, people(100, 0)[0])


def test_corrected_confidence_is_served_as_fitted(tmp_path):
    table, f, y, inside = people(6000, 2, plant=0.25)
    corrector = ConfidenceGroups().fit(table, f, y).corrector_
    corrected = corrector.predict(table, f)
    assert abs((corrected - y)[inside].mean()) < 0.02
    assert ((corrected - y) ** 2).mean() < ((corrector.recalibrated(f) - y) ** 2).mean()
    corrector.save(tmp_path / "corrector.json")
    again = GroupCorrector.load(tmp_path / "corrector.json")
    rows = list(table.head(200).iter_rows(named=True))
    served = [again.predict_one(row, c) for row, c in zip(rows, f, strict=False)]
    np.testing.assert_allclose(served, corrected[:200], atol=1e-12)
    saved = json.loads((tmp_path / "corrector.json").read_text())
    del saved["shifts"]
    (tmp_path / "older.json").write_text(json.dumps(saved))
    with pytest.raises(InputError, match="of another version: KeyError 'shifts'"):
        GroupCorrector.load(tmp_path / "older.json")


def test_of_several_rows_of_a_question_one_is_used():
    table, f, y, _ = people(1000, 0)
    units = np.repeat(np.arange(1000), 3)
    tripled = pl.concat([table] * 3).with_row_index().with_columns(pl.col("index") % 1000)
    order = np.argsort(tripled["index"].to_numpy(), kind="stable")
    found = ConfidenceGroups().fit(
        tripled[order].drop("index"), np.repeat(f, 3), np.repeat(y, 3), units=units
    )
    assert found.left_out_ == 2000


def test_too_few_rows_are_refused():
    table, f, y, _ = people(60, 0)
    with pytest.raises(InputError, match="at least 100 labelled rows; there are 60"):
        ConfidenceGroups().fit(table, f, y)


def test_texts_are_named_by_their_words_and_examples():
    law = ["which court hears the appeal", "the judge and the court of law", "court law appeal"]
    maths = ["sum of two primes", "the sum of angles", "is the sum even"]
    texts = (law + maths) * 40
    found = text_groups(word_vectors(texts), texts, count=2)
    labels = dict(zip(texts, found.label, strict=True))
    assert len({labels[text] for text in law}) == 1
    assert "court" in labels[law[0]]
    assert "sum" in labels[maths[0]]
    assert set(found.about[labels[law[0]]]["examples"]) == set(law)


def test_vectors_are_checked():
    with pytest.raises(InputError, match="of one length"):
        vector_matrix(pl.Series("v", [[1.0], [1.0, 2.0]]))
    with pytest.raises(InputError, match="not vectors"):
        vector_matrix(pl.Series("v", [1.0]))


def test_a_condition_on_a_missing_value_is_refused():
    with pytest.raises(InputError, match="'age' is missing"):
        GroupRule((Condition("age", "<", 3.0),)).holds({"sex": "f"})


def test_the_curve_for_everyone_is_the_recalibration_of_all_rows():
    """Groups overlap and take up the level: the curve must not be that of rows outside of all."""
    rng = np.random.default_rng(3)
    f = rng.uniform(0.1, 0.9, 6000)
    kind = rng.integers(0, 2, 6000)
    y = (rng.random(6000) < np.clip(f + np.where(kind == 1, 0.25, -0.1), 0, 1)).astype(int)
    table = {"confidence": f, "correct": y, "kind": [f"k{k}" for k in kind]}
    curve = calibrant.groups(table, features=["kind"])["results"][0]["reliability"]
    assert curve["regions"]
    for said, shown in zip(curve["confidence"], curve["recalibrated"], strict=True):
        near = np.abs(f - said) < 0.05
        assert abs(shown - y[near].mean()) < 0.12


def test_a_group_that_the_confidence_decides_has_no_gap_at_equal_confidence():
    rng = np.random.default_rng(0)
    said = rng.beta(4, 2, 300)
    right = (rng.random(300) < said).astype(float)
    found = ConfidenceGroups().fit({"copy": said}, said, right)
    assert found.tested_ == 0
    assert found.groups_ == []
    two = np.where(said < 0.6, 0.4, 0.8)
    with pytest.raises(InputError, match="follows from the confidence alone"):
        ConfidenceGroups(named=["copy <= 0.5"]).fit({"copy": two}, two, right)


def test_columns_without_a_group_are_said_to_have_none():
    rng = np.random.default_rng(1)
    table = {"confidence": np.full(200, 0.8), "correct": (rng.random(200) < 0.7) * 1}
    document = calibrant.groups(table, features=["confidence"])
    text = document["claims"][0]["text"]
    assert text.startswith("These columns make no group to test")
    assert "0 groups" not in str(document)
