import numpy as np
import polars as pl
import pytest

from calibrant.core import InputError
from calibrant.data.features import FeatureEncoder, as_frame
from calibrant.trust import HonestTree


def fitted(**options):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"kind": rng.choice(["a", "b", "c"], 600), "size": rng.normal(size=600)})
    target = (table["kind"] == "b").to_numpy().astype(float)
    return HonestTree(**options).fit(table, target), table


def test_categories_are_ranked_by_their_mean_target():
    encoder = FeatureEncoder().fit({"x": ["p", "q", "r"] * 2}, np.array([3.0, 1, 2, 3, 1, 2]))
    assert encoder.features_[0].levels == ("q", "r", "p")


def test_unseen_category_is_an_error_that_names_it():
    tree, _ = fitted()
    with pytest.raises(InputError, match=r"row 2: .*category 'z'.*known: a, b, c"):
        tree.predict({"kind": ["a", "z"], "size": [0.0, 0.0]})
    with pytest.raises(InputError, match="category 'z'"):
        tree.predict_one({"kind": "z", "size": 0.0})


def test_unseen_category_gets_no_correction_where_that_rule_is_chosen():
    tree, _ = fitted(unseen="calibration")
    assert tree.predict({"kind": ["z"], "size": [0.0]}).tolist() == [0.0]
    assert tree.predict_one({"kind": "z", "size": 0.0}) == 0.0


def test_one_query_is_predicted_as_in_the_table():
    tree, table = fitted()
    batch = tree.predict(table.head(50))
    assert [tree.predict_one(row) for row in table.head(50).to_dicts()] == batch.tolist()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"kind": ["a"]}, "feature 'size' is missing"),
        ({"kind": ["a"], "size": [None]}, "feature 'size' is missing|was a number"),
        ({"kind": [None], "size": [1.0]}, "feature 'kind' is missing"),
        ({"kind": ["a"], "size": [float("nan")]}, "must be a finite number"),
        ({"kind": ["a"], "size": ["big"]}, "was a number"),
    ],
)
def test_missing_and_odd_features_are_refused(table, words):
    tree, _ = fitted()
    with pytest.raises(InputError, match=words):
        tree.predict(table)


@pytest.mark.parametrize(
    "query", [{"kind": "a"}, {"kind": "a", "size": None}, {"kind": None, "size": 1.0}]
)
def test_missing_features_of_one_query_are_refused(query):
    tree, _ = fitted()
    with pytest.raises(InputError):
        tree.predict_one(query)


def test_identifiers_are_refused():
    with pytest.raises(InputError, match="256 categories"):
        FeatureEncoder().fit({"id": [f"q{i}" for i in range(256)]}, np.zeros(256))
    with pytest.raises(InputError, match="2-d"):
        as_frame(np.zeros(3))
    with pytest.raises(InputError, match="not a number or a category"):
        FeatureEncoder().fit({"x": [[1], [2]]}, np.zeros(2))
