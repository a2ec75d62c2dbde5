"""Agreement with independent implementations, on simulated and on real data."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk
from sklearn.isotonic import IsotonicRegression

from calibrant import metrics

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    relplot_metrics = pytest.importorskip("relplot.metrics")
    reference = pytest.importorskip("calibration.utils")


def simulated(seed, n, power, digits=None):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n) if digits is None else rng.random(n).round(digits)
    return confidence, (rng.random(n) < confidence**power).astype(int)


def real_sets(folder):
    recid = pl.read_csv(folder / "tabular" / "dgj20_recid.csv")
    for name in ("logitpredprobs", "gbmpredprobs", "mturkpredprobs", "compaspredprobs.linear"):
        yield name, recid[name].to_numpy(), recid["two_year_recid"].to_numpy()
    flares = pl.read_csv(folder / "tabular" / "dgj20_SF.FC.C1.csv", null_values="NA")
    for name in ("NOAA", "SIDC", "DAFFS"):
        kept = flares.select(name, "rlz.C1").drop_nulls()
        yield name, kept[name].to_numpy().astype(float), kept["rlz.C1"].to_numpy()
    games = pl.read_parquet(folder / "tabular" / "uci_adult_with_probs.parquet")
    for name in ("p_lr3", "p_hgb"):
        kept = games.select(name, "y").drop_nulls()
        yield name, kept[name].to_numpy().astype(float), kept["y"].to_numpy().astype(int)


@pytest.mark.parametrize("n", [1, 7, 200, 5_000])
@pytest.mark.parametrize("power", [1.0, 1.05, 2.0])
@pytest.mark.parametrize("digits", [None, 1])
def test_smooth_ece_equals_relplot(n, power, digits):
    confidence, correct = simulated(n, n, power, digits)
    value, width = relplot_metrics.smECE(confidence, correct, return_width=True)
    assert metrics.smooth_ece(confidence, correct) == pytest.approx(value, abs=1e-9)
    assert metrics.smooth_ece_bandwidth(confidence, correct) == width


@pytest.mark.parametrize("step", [2, 3, 4, 5, 7, 8, 9, 10, 11, 100, 700, 1024])
def test_smooth_ece_equals_relplot_at_every_kind_of_grid(step):
    confidence, correct = simulated(step, 3_000, 1.2)
    value = relplot_metrics.smECE_sigma(confidence, correct, step / 1024)
    assert metrics.smooth_ece(confidence, correct, bandwidth=step / 1024) == pytest.approx(
        value, abs=1e-12
    )


def test_smooth_ece_equals_relplot_on_real_data(shared_data):
    for name, confidence, correct in real_sets(shared_data):
        value = relplot_metrics.smECE(confidence, correct)
        assert metrics.smooth_ece(confidence, correct) == pytest.approx(value, abs=1e-9), name


def test_corp_equals_isotonic_regression_on_real_data(shared_data):
    for name, confidence, correct in real_sets(shared_data):
        fit = IsotonicRegression(out_of_bounds="clip").fit(confidence, correct).predict(confidence)
        raw, refit = ((confidence - correct) ** 2).mean(), ((fit - correct) ** 2).mean()
        base = ((correct.mean() - correct) ** 2).mean()
        parts = metrics.corp(confidence, correct)
        assert parts.mcb == pytest.approx(raw - refit, abs=1e-9), name
        assert parts.dsc == pytest.approx(base - refit, abs=1e-9), name
        assert parts.unc == pytest.approx(base, abs=1e-12), name
        assert parts.score == pytest.approx(parts.mcb - parts.dsc + parts.unc, abs=1e-12), name


@pytest.mark.parametrize("bins", [10, 20])
def test_binned_errors_equal_uncertainty_calibration(bins):
    confidence, correct = simulated(3, 2_000, 1.5)
    args = (confidence, correct)
    width, mass = reference.get_equal_prob_bins, reference.get_equal_bins
    common = {"num_bins": bins, "mode": "marginal"}
    for scheme, strategy in ((width, "width"), (mass, "mass")):
        for norm, power in (("l1", 1), ("l2", 2)):
            expected = reference.lower_bound_scaling_ce(
                *args, p=power, debias=False, binning_scheme=scheme, **common
            )
            found = metrics.ece(*args, bins=bins, strategy=strategy, norm=norm)
            assert found == pytest.approx(expected, abs=1e-12)
        expected = reference.lower_bound_scaling_ce(
            *args, p=2, debias=True, binning_scheme=scheme, **common
        )
        found = metrics.ece_debiased(*args, bins=bins, strategy=strategy, norm="l2")
        assert found == pytest.approx(expected, abs=1e-12)


def test_normal_debiasing_is_the_limit_of_the_resampled_one():
    confidence, correct = simulated(4, 1_000, 1.2)
    groups = reference.bin(
        list(zip(confidence, correct, strict=True)), reference.get_equal_prob_bins(confidence, 10)
    )
    state = np.random.get_state()  # noqa: NPY002 - the reference draws from the global stream
    np.random.seed(0)  # noqa: NPY002
    resampled = reference.normal_debiased_ce(groups, power=1, resamples=20_000)
    np.random.set_state(state)  # noqa: NPY002
    exact = metrics.ece_debiased(confidence, correct, bins=10, estimator="normal")
    assert exact == pytest.approx(resampled, abs=3e-4)


def test_real_data_equal_uncertainty_calibration_where_definitions_coincide(shared_data):
    for name, confidence, correct in real_sets(shared_data):
        correct = correct.astype(int)
        expected = reference.get_ece(confidence, correct, num_bins=16, mode="marginal")
        on_edge = np.isin(confidence, np.arange(1, 16) / 16).any()
        if not on_edge:  # there an edge belongs to the lower bin
            assert metrics.ece(confidence, correct, bins=16) == pytest.approx(expected, abs=1e-12)
        size = confidence.size - confidence.size % 8
        few, right = confidence[:size], correct[:size]
        if np.unique(few).size == size:  # ties are split differently
            expected = reference.get_ece_em(few, right, num_bins=8, mode="marginal")
            found = metrics.ece(few, right, bins=8, strategy="mass")
            assert found == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_rankings_equal_scikit_learn(digits, weighted):
    confidence, correct = simulated(5, 800, 1.5, digits)
    weights = np.random.default_rng(0).random(800) if weighted else None
    pairs = {
        "auroc": sk.roc_auc_score,
        "auprc": sk.average_precision_score,
        "brier": sk.brier_score_loss,
    }
    for name, function in pairs.items():
        found = getattr(metrics, name)(confidence, correct, weights=weights)
        assert found == pytest.approx(function(correct, confidence, sample_weight=weights)), name
    inside = (confidence > 0) & (confidence < 1)
    few = None if weights is None else weights[inside]
    found = metrics.log_loss(confidence[inside], correct[inside], weights=few)
    assert found == pytest.approx(
        sk.log_loss(correct[inside], confidence[inside], sample_weight=few)
    )


def test_aurc_is_the_mean_over_orders_of_ties():
    confidence, correct = simulated(6, 60, 1.0, digits=1)
    rng = np.random.default_rng(0)

    def one_order():
        order = np.lexsort((rng.random(60), -confidence))
        return np.mean(np.cumsum(1 - correct[order]) / np.arange(1, 61))

    orders = np.array([one_order() for _ in range(4_000)])
    error = orders.std() / np.sqrt(orders.size)
    assert metrics.aurc(confidence, correct) == pytest.approx(orders.mean(), abs=4 * error)


def test_the_parts_of_the_brier_score_sum_to_it():
    confidence, correct = simulated(7, 500, 1.5)
    weights = np.random.default_rng(1).random(500)
    for strategy in ("width", "mass"):
        parts = metrics.brier_decomposition(confidence, correct, strategy=strategy, weights=weights)
        total = parts.reliability - parts.resolution + parts.uncertainty + parts.within
        assert parts.brier == pytest.approx(total, abs=1e-14)
        assert parts.brier == pytest.approx(metrics.brier(confidence, correct, weights=weights))


def test_over_and_under_confidence_sum_to_ece():
    confidence, correct = simulated(8, 500, 1.1)
    both = metrics.over_confidence(confidence, correct) + metrics.under_confidence(
        confidence, correct
    )
    assert both == pytest.approx(metrics.ece(confidence, correct), abs=1e-14)


def test_certain_and_wrong_is_infinite_and_absent_rows_do_not_count():
    assert metrics.log_loss([1.0, 0.5], [0, 1]) == np.inf
    assert metrics.log_loss([1.0, 0.5], [0, 1], weights=[0, 1]) == pytest.approx(np.log(2))
    assert metrics.log_loss([1.0, 0.0], [1, 0]) == 0.0
