import json

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from calibrant.core import InputError
from calibrant.trust import BoostedResiduals, HonestTree
from calibrant.trust.trees import Tree, grow_tree


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4)).astype(np.float32).astype(np.float64)
    return x, x[:, 0] * x[:, 1] + rng.normal(size=3000)


@pytest.mark.parametrize("leaves", [None, 8])
def test_exact_tree_is_that_of_scikit_learn(sample, leaves):
    x, y = sample
    ours = grow_tree(x, y, max_leaf_nodes=leaves)
    peer = DecisionTreeRegressor(min_samples_leaf=15, max_leaf_nodes=leaves, random_state=0)
    np.testing.assert_array_equal(ours.leaf_values()[ours.apply(x)], peer.fit(x, y).predict(x))
    assert ours.n_leaves == peer.get_n_leaves()


@pytest.mark.parametrize("times", [1, 4])
def test_leaves_keep_their_minimum_and_both_walks_agree(sample, times):
    # Four times the rows are more than an exact tree is grown on.
    x, y = (np.concatenate([part] * times) for part in sample)
    tree = grow_tree(x, y, min_samples_leaf=20)
    leaves = tree.apply(x)
    assert np.bincount(leaves, minlength=tree.n_leaves).min() >= 20
    assert [tree.apply_one(row) for row in x[:300].tolist()] == leaves[:300].tolist()


def test_histogram_tree_captures_as_much_as_the_exact_one(sample):
    x, _ = sample
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2
    many = np.concatenate([x] * 4), np.concatenate([y] * 4)
    left = [
        np.var(y - t.leaf_values()[t.apply(x)])
        for t in (grow_tree(*many, max_leaf_nodes=32), grow_tree(x, y, max_leaf_nodes=32))
    ]
    assert 1 - left[0] / np.var(y) == pytest.approx(1 - left[1] / np.var(y), abs=0.02)


def test_boosted_trees_are_as_good_as_those_of_scikit_learn(sample):
    from sklearn.ensemble import HistGradientBoostingRegressor

    x, y = sample
    ours = BoostedResiduals().fit(x[:2000], y[:2000])
    peer = HistGradientBoostingRegressor(learning_rate=0.05, early_stopping=False, random_state=0)
    truth = x[2000:, 0] * x[2000:, 1]
    off = [
        np.mean((m.predict(x[2000:]) - truth) ** 2) for m in (ours, peer.fit(x[:2000], y[:2000]))
    ]
    assert off[0] < off[1]


def test_boosted_trees_predict_alike_for_one_row_and_many_and_once_read_again(sample):
    x, y = sample
    model = BoostedResiduals(iterations=5).fit(x, y)
    again = BoostedResiduals.from_dict(json.loads(json.dumps(model.to_dict())))
    rows = [dict(zip(["x0", "x1", "x2", "x3"], row, strict=True)) for row in x[:50].tolist()]
    many = model.predict(x[:50])
    assert [again.predict_one(row) for row in rows] == pytest.approx(many.tolist(), abs=1e-12)
    np.testing.assert_array_equal(again.predict(x[:50]), many)


def test_plain_data_gives_the_same_tree(sample):
    x, y = sample
    tree = grow_tree(x, y)
    again = Tree.from_dict(json.loads(json.dumps(tree.to_dict())))
    np.testing.assert_array_equal(again.apply(x), tree.apply(x))


def test_a_tree_without_a_split_has_one_leaf():
    tree = grow_tree(np.zeros((40, 1)), np.arange(40.0))
    assert tree.n_leaves == 1
    assert tree.apply(np.zeros((3, 1))).tolist() == [0, 0, 0]


def test_leaf_means_come_from_the_evaluation_part_only(sample):
    x, y = sample
    shape, fill = np.arange(1500), np.arange(1500, 3000)
    tree = HonestTree(max_leaf_nodes=6).fit_parts(x[shape], y[shape], x[fill], y[fill])
    leaves = tree.apply(x[fill])
    for leaf in range(6):
        assert tree.values_[leaf] == pytest.approx(y[fill][leaves == leaf].mean())
    shifted = HonestTree(max_leaf_nodes=6).fit_parts(x[shape], y[shape], x[fill], y[fill] + 7)
    np.testing.assert_allclose(shifted.values_, tree.values_ + 7)


def test_a_leaf_with_less_than_two_evaluation_rows_borrows_from_its_ancestor():
    x = np.r_[np.zeros(50), np.ones(50), np.full(50, 2.0)].reshape(-1, 1)
    y = np.r_[np.zeros(50), np.full(50, 5.0), np.full(50, 9.0)]
    fill = np.array([[0.0], [0.0], [1.0], [2.0], [2.0]])
    tree = HonestTree(min_samples_leaf=20).fit_parts(x, y, fill, np.array([0.0, 1, 4, 8, 10]))
    assert tree.tree_.n_leaves == 3
    low, middle, high = tree.predict(np.array([[0.0], [1.0], [2.0]]))
    assert (low, high) == (0.5, 9.0)
    # The root splits off the zeros first, so the middle leaf shares its parent with the twos.
    assert middle == pytest.approx((4 + 8 + 10) / 3)


def test_too_few_rows_are_refused(sample):
    x, y = sample
    with pytest.raises(InputError, match="fewer than two leaves"):
        HonestTree().fit(x[:40], y[:40])
