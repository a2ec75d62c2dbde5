import numpy as np
import polars as pl
import pytest
from tests.epistemic.worlds import draw, true_grouping_loss, truth

from calibrant.core import InputError
from calibrant.trust import BinnedGroupingLoss, GroupingLoss, TreeGroupingLoss
from calibrant.trust.residual_models import linear_bound
from calibrant.trust.trees import FOLDS, boosted_residuals, encode


@pytest.fixture(scope="module")
def exact():
    return true_grouping_loss()


def shares(n, runs, exact, make):
    found = []
    for seed in range(runs):
        x, f, y = draw(n, np.random.default_rng(seed))
        found.append(make(seed).fit(x, f, y).value_ / exact)
    return np.array(found)


def test_lower_bound_that_beats_the_binned_estimator_at_equal_rows(exact):
    ours = shares(1000, 30, exact, lambda seed: TreeGroupingLoss(repeats=1, seed=seed))
    binned = shares(1000, 30, exact, lambda seed: BinnedGroupingLoss(seed=seed))
    error = ours.std() / np.sqrt(30)
    assert ours.mean() <= 1 + 3 * error
    assert ours.mean() > 0.7
    assert ours.mean() - binned.mean() > 0.2


def test_consistent_from_below(exact):
    small = shares(1000, 20, exact, lambda seed: TreeGroupingLoss(repeats=1, seed=seed)).mean()
    large = shares(20_000, 3, exact, lambda seed: TreeGroupingLoss(repeats=1, seed=seed)).mean()
    assert small < large
    assert 0.95 < large < 1.05


def test_nothing_is_found_where_the_confidence_is_the_truth():
    values = []
    for seed in range(40):
        x, _, y = draw(2000, np.random.default_rng(seed))
        found = TreeGroupingLoss(repeats=1, seed=seed).fit(x, truth(x), y)
        values.append((found.value_, found.interval_[0] <= 0 <= found.interval_[1]))
    values = np.array(values)
    assert values[:, 0].min() < 0, "a debiased estimate of 0 is negative about half of the time"
    assert abs(values[:, 0].mean()) < 0.003
    assert values[:, 1].mean() >= 0.85


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_other_models_bound_the_loss_as_well(exact, model):
    x, f, y = draw(6000, np.random.default_rng(0))
    found = TreeGroupingLoss(model=model, repeats=1).fit(x, f, y)
    assert 0.5 * exact < found.value_
    assert found.interval_[0] < exact


def test_linear_bound_never_exceeds_the_squared_truth():
    rng = np.random.default_rng(0)
    residual = rng.normal(size=500)
    for scale in (0.0, 0.5, 1.0, 2.0):
        assert linear_bound(scale * residual, residual).value <= np.mean(residual**2) + 1e-12


def test_the_parts_add_up_to_the_brier_score():
    x, f, y = draw(3000, np.random.default_rng(0))
    parts = TreeGroupingLoss(repeats=3).fit(x, f**2, y).decomposition_
    assert parts.calibration.value + parts.grouping.value + parts.rest.value == pytest.approx(
        parts.brier.value
    )
    assert parts.epistemic.value == pytest.approx(parts.calibration.value + parts.grouping.value)
    assert parts.calibration.low > 0, "a squared confidence is not calibrated"


def test_same_seed_same_numbers_and_order_of_columns_does_not_matter():
    x, f, y = draw(2000, np.random.default_rng(0))
    first, again = (TreeGroupingLoss(repeats=2, seed=4).fit(x, f, y) for _ in range(2))
    assert first.interval_ == again.interval_
    assert first.value_ != TreeGroupingLoss(repeats=2, seed=5).fit(x, f, y).value_


def test_rows_of_one_question_stay_in_one_part():
    x, f, y = draw(2000, np.random.default_rng(0))
    units = np.repeat(np.arange(500), 4)
    fit = TreeGroupingLoss(repeats=1).fit(x, f, y, units=units).fits_[0]
    assert np.isin(units, units[fit.evaluation]).sum() == len(fit.evaluation)


@pytest.mark.parametrize("name", ["platt", "isotonic", "beta", "temperature"])
def test_every_recalibration_can_be_used(name, exact):
    x, f, y = draw(4000, np.random.default_rng(0))
    assert 0.7 * exact < TreeGroupingLoss(recalibration=name, repeats=1).fit(x, f, y).value_


def test_bad_input_is_refused():
    x, f, y = draw(200, np.random.default_rng(0))
    with pytest.raises(InputError, match="groups need at least"):
        TreeGroupingLoss().fit(x[:60], f[:60], y[:60])
    with pytest.raises(InputError, match="rarer outcome"):
        TreeGroupingLoss().fit(x, f, np.r_[1.0, np.zeros(199)])
    with pytest.raises(InputError, match=r"row 1: .*between 0 and 1, got 2"):
        TreeGroupingLoss().fit(x, f + 2, y)
    with pytest.raises(InputError, match="rows of features"):
        TreeGroupingLoss().fit(x[:-1], f, y)
    with pytest.raises(InputError, match="no recalibration"):
        TreeGroupingLoss(recalibration="plat").fit(x, f, y)


def test_uci_adult_poor_score_has_the_larger_grouping_loss(shared_data):
    table = pl.read_parquet(shared_data / "tabular" / "uci_adult_with_probs.parquet")
    features = table.select("age", "sex", "education_num", "marital_status", "hours_per_week")
    poor, good = (
        TreeGroupingLoss(repeats=1).fit(features, table[name].to_numpy(), table["y"].to_numpy())
        for name in ("p_lr3", "p_hgb")
    )
    assert poor.interval_[0] > 0.02
    assert good.interval_[1] < 0.002


def five_acting_features(n, seed):
    """A calibrated confidence that knows one of six features; a tree catches half of the rest."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 5))
    p = 1 / (1 + np.exp(-1.5 * x.sum(axis=1)))
    return x, np.full(n, 0.5), (rng.random(n) < p).astype(float), float(((p - 0.5) ** 2).mean())


def test_what_more_rows_would_catch_raises_the_upper_end_only():
    x, f, y, _ = five_acting_features(3000, 0)
    found = TreeGroupingLoss(repeats=3).fit(x, f, y)
    low, high = found.interval_
    assert found.still_rising_
    assert found.gain_ > 0
    assert found.gain_ == pytest.approx(np.mean([fit.gain.value for fit in found.fits_]))
    assert high - found.value_ > found.value_ - low + found.gain_


def test_a_tree_that_has_found_everything_rises_no_more():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, size=4000)
    y = rng.random(4000) < np.where(x == 1, 0.8, 0.2)
    found = TreeGroupingLoss().fit({"x": x}, np.full(4000, 0.5), y)
    low, high = found.interval_
    assert not found.still_rising_
    assert high - found.value_ == pytest.approx(found.value_ - low, rel=0.05)


def test_models_other_than_trees_have_no_gain():
    x, f, y, _ = five_acting_features(600, 1)
    found = TreeGroupingLoss(model="forest", repeats=1).fit(x, f, y)
    assert found.gain_ == 0
    assert not found.still_rising_


def test_with_few_rows_only_the_lower_end_is_claimed():
    """What a tree on 80 rows misses is anyone's guess; all that is left bounds it."""
    x, f, y, _ = five_acting_features(200, 0)
    found = TreeGroupingLoss(repeats=1).fit(x, f, y)
    fit = found.fits_[0]
    low, high = found.interval_
    assert found.too_few_
    assert fit.fitted == 80
    assert low < found.value_ < high
    squares = (fit.recalibrator.transform(f)[fit.evaluation] - y[fit.evaluation]) ** 2
    error = squares.std(ddof=1) / np.sqrt(squares.size)
    assert high == pytest.approx(squares.mean() + 1.959964 * error)
    plain = TreeGroupingLoss(repeats=1).fit(*five_acting_features(700, 0)[:3])
    assert not plain.too_few_
    assert plain.interval_[1] < plain.fits_[0].left.value


def test_the_truth_lies_inside_with_few_rows_too():
    inside = []
    for seed in range(60):
        x, f, y, _ = five_acting_features(200, seed)
        low, high = TreeGroupingLoss(repeats=1, seed=seed).fit(x, f, y).interval_
        inside.append(low <= 0.0976 <= high)
    assert np.mean(inside) > 0.93, "without the bound it is about a third"


def test_few_questions_are_few_however_many_rows_they_have():
    x, f, y, _ = five_acting_features(2000, 0)
    found = TreeGroupingLoss(repeats=1).fit(x, f, y, units=np.arange(2000) // 5)
    assert found.fits_[0].fitted == 160
    assert found.too_few_


def test_a_copy_of_the_confidence_is_no_grouping_loss():
    claimed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        f = rng.beta(2, 2, 1500)
        y = rng.random(1500) < np.clip(0.5 + 0.35 * np.sin(6 * f), 0.02, 0.98)
        found = GroupingLoss(seed=seed).fit({"copy": f}, f, y)
        claimed += found.lower_ > 0
    assert claimed <= 3
    # The paper's estimator takes the misfit of Platt scaling for a grouping loss.
    assert TreeGroupingLoss(seed=0).fit({"copy": f}, f, y).interval_[0] > 0


def test_two_hundred_noise_categories_leak_nothing():
    ours, binned = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        f = rng.beta(2, 2, 2000)
        y = rng.random(2000) < f
        noise = {"noise": rng.integers(0, 200, 2000).astype(str)}
        ours.append(GroupingLoss(seed=seed).fit(noise, f, y).lower_)
        binned.append(BinnedGroupingLoss(seed=seed).fit(noise, f, y).value_)
    assert np.count_nonzero(ours) <= 2
    assert abs(np.mean(binned)) < 0.003


def test_bound_lies_below_the_truth_and_says_most_of_it():
    lower, value = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 4, 2000)
        f = 0.15 + 0.7 / (1 + np.exp(-rng.normal(size=2000)))
        y = rng.random(2000) < f + np.array([-0.12, -0.04, 0.04, 0.12])[group]
        found = GroupingLoss(seed=seed).fit({"group": group.astype(str)}, f**3, y)
        lower.append(found.lower_)
        value.append(found.value_)
    assert np.mean(np.array(lower) > 0.008) <= 0.1
    assert np.mean(np.array(lower) > 0) >= 0.9
    assert 0.005 < np.mean(value) < 0.0085


def test_rows_of_one_question_are_counted_once():
    rng = np.random.default_rng(0)
    x, f = rng.integers(0, 2, 400), rng.random(400)
    y = (rng.random(400) < np.clip(f + 0.2 * x - 0.1, 0, 1)).astype(float)
    units = np.repeat(np.arange(400), 5)
    once = GroupingLoss(seed=1).fit({"x": x}, f, y)
    again = GroupingLoss(seed=1).fit(
        {"x": np.repeat(x, 5)}, np.repeat(f, 5), np.repeat(y, 5), units=units
    )
    assert again.estimate_.n == 400
    assert again.brier_.high - again.brier_.low == pytest.approx(
        once.brier_.high - once.brier_.low, rel=0.01
    )


def test_trees_never_see_the_fold_they_predict():
    rng = np.random.default_rng(0)
    n = 600
    fold = np.arange(n) % FOLDS
    table = pl.DataFrame({"x": rng.random(n), "c": rng.choice(list("abcdef"), n)})
    encoded = encode(table)
    targets = np.tile(rng.normal(size=n), (FOLDS, 1))
    before = boosted_residuals(encoded, targets, fold)
    changed = targets.copy()
    changed[2, fold == 2] += 5.0
    after = boosted_residuals(encoded, changed, fold)
    np.testing.assert_array_equal(before, after)
    changed[2, fold == 3] += 5.0
    assert np.abs(boosted_residuals(encoded, changed, fold)[2] - before[2]).max() > 0.5


def test_trees_find_what_two_features_say_together():
    rng = np.random.default_rng(1)
    n = 4000
    table = pl.DataFrame({"x": rng.random(n), "c": rng.choice(list("abcdefgh"), n)})
    inside = ((table["x"] > 0.5) & table["c"].is_in(["b", "g"])).to_numpy()
    targets = np.tile(0.4 * inside + 0.1 * rng.normal(size=n), (FOLDS, 1))
    fold = np.arange(n) % FOLDS
    found = boosted_residuals(encode(table), targets, fold)[fold, np.arange(n)]
    assert found[inside].mean() > 0.33
    # Bins are as wide as a thirty-second of the rows, so that a few at the edge are mistaken.
    assert np.quantile(np.abs(found[~inside]), 0.98) < 0.05
