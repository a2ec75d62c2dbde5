import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core import InputError
from calibrant.epistemic import ConfidenceGroups
from calibrant.epistemic.features import FeatureEncoder
from calibrant.epistemic.groups import adjusted, gap_test
from calibrant.epistemic.rules import leaf_rules, readable_thresholds, short_decimal
from calibrant.epistemic.tree import grow_tree


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 10))
def test_short_decimal_lies_between(low, width):
    assert low <= short_decimal(low, low + width) < low + width


def test_printed_rules_are_what_is_computed():
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "age": rng.integers(18, 80, 3000),
            "score": rng.normal(size=3000),
            "topic": rng.choice(["law", "maths", "art", "sport"], 3000),
        }
    )
    target = (
        (table["age"] > 40).cast(pl.Float64) * (table["topic"] == "law").cast(pl.Float64)
        + 0.3 * table["score"]
    ).to_numpy() + rng.normal(size=3000)
    encoder = FeatureEncoder().fit(table, target)
    matrix = encoder.transform(table)
    grown = grow_tree(matrix, target, max_leaf_nodes=10, min_samples_leaf=50)
    tree = readable_thresholds(grown, matrix)
    np.testing.assert_array_equal(tree.apply(matrix), grown.apply(matrix))
    leaves = tree.apply(matrix)
    for leaf, rule in enumerate(leaf_rules(tree, encoder.features_, frozenset(["age"]))):
        np.testing.assert_array_equal(_holds(rule, table), leaves == leaf)


def _holds(rule, table):
    """Read a rule as a person would."""
    result = np.ones(table.height, dtype=bool)
    for part in rule.split(" and "):
        name, sign, value = part.split(" ", 2)
        column = table[name].to_numpy()
        if sign == "in":
            result &= np.isin(column, value.strip("{}").split(", "))
        elif sign == "not":
            result &= ~np.isin(column, value.removeprefix("in ").strip("{}").split(", "))
        elif name == "topic":
            result &= (column == value) if sign == "=" else (column != value)
        else:
            number = float(value)
            result &= {
                "<=": column <= number,
                ">": column > number,
                ">=": column >= number,
                "=": column == number,
            }[sign]
    return result


def test_holm_and_benjamini_hochberg_by_hand():
    p = [0.01, 0.02, 0.03, 0.9]
    np.testing.assert_allclose(adjusted(p, "holm"), [0.04, 0.06, 0.06, 0.9])
    np.testing.assert_allclose(adjusted(p, "bh"), [0.04, 0.04, 0.04, 0.9])
    with pytest.raises(InputError, match="control must be"):
        adjusted(p, "bonferroni")


def test_a_rare_outcome_that_is_absent_by_chance_is_no_proof():
    assert gap_test(np.full(60, 0.02), np.zeros(60))[2] > 0.2


def test_a_certain_confidence_that_fails_is_proof():
    assert gap_test(np.ones(60), np.r_[np.zeros(20), np.ones(40)])[2] < 1e-6


def test_false_flags_stay_at_the_nominal_rate_on_redrawn_labels():
    rng = np.random.default_rng(0)
    runs, flagged = 60, 0
    for seed in range(runs):
        table = {"a": rng.choice(["p", "q", "r", "s"], 1500), "b": rng.normal(size=1500)}
        score = rng.beta(2, 3, 1500)
        y = rng.random(1500) < score
        found = ConfidenceGroups(seed=seed).fit(table, score, y).groups_
        flagged += any(group.flagged for group in found)
    assert flagged <= 8, "5 % of 60 runs is 3; more than 8 has a chance of 0.4 %"


@pytest.mark.data
def test_uci_adult_women_are_found_over_confident(shared_data):
    table = pl.read_parquet(shared_data / "tabular" / "uci_adult_with_probs.parquet")
    features = table.select("age", "sex", "education_num", "race", "hours_per_week")
    found = ConfidenceGroups().fit(features, table["p_lr3"].to_numpy(), table["y"].to_numpy())
    women = next(group for group in found.groups_ if group.rule == "sex = Female")
    assert women.flagged
    assert women.mean_confidence == pytest.approx(0.204, abs=0.01)
    assert women.rate == pytest.approx(0.109, abs=0.01)
    assert women.gap_interval[0] < 0.204 - 0.109 < women.gap_interval[1]
    rng = np.random.default_rng(0)
    redrawn = rng.random(table.height) < table["p_lr3"].to_numpy()
    again = ConfidenceGroups().fit(features, table["p_lr3"].to_numpy(), redrawn)
    assert not any(group.flagged for group in again.groups_)
