"""Recalibrators in scikit-learn's own flows: its checks, pipelines, searches and displays."""

import pickle
import warnings

import matplotlib
import numpy as np
import polars as pl
import pytest
from scipy import special
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from calibrant import Mend, metrics
from calibrant.core import InputError

matplotlib.use("Agg")
ALL = list(metrics.CALIBRATORS.values())


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    true = special.expit(rng.normal(0.3, 1.2, n))
    return special.expit(special.logit(true) * 2.5), (rng.random(n) < true).astype(int)


@pytest.mark.parametrize("kind", [*ALL, Mend])
def test_scikit_learns_checks_of_a_calibrator(kind):
    # The tag 'one column, no table of features', as IsotonicRegression has it, leaves one of
    # the common checks. `CalibratedClassifier` goes through all of them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(kind(), on_fail=None)
    assert [check["status"] for check in found] == ["passed"]


@pytest.mark.parametrize("kind", [*ALL, Mend])
def test_scikit_learns_checks_that_need_no_features(kind):
    # Without that tag all checks run. Those that index two dimensions, or whose values are no
    # shares, fail for IsotonicRegression and for us; the others pass.
    class Tagged(kind):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array = True
            return tags

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(Tagged(), on_fail=None)
    passed = {check["check_name"] for check in found if check["status"] == "passed"}
    assert passed >= {
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_repr",
        "check_estimator_sparse_matrix",
        "check_estimators_unfitted",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_supervised_y_no_nan",
        "check_valid_tag_types",
    }


def test_scikit_learns_checks_of_the_classifier_have_no_exception():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(metrics.CalibratedClassifier(), on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in found) >= 55


@pytest.mark.parametrize("kind", ALL)
def test_clone_and_pickle(kind):
    confidence, correct = rows()
    fitted = kind().fit(confidence, correct)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(confidence)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert (again.predict(confidence) == fitted.predict(confidence)).all()


@pytest.mark.parametrize("kind", ALL)
def test_one_and_two_columns_are_the_same_scores(kind):
    confidence, correct = rows()
    flat = kind().fit(confidence, correct).predict(confidence)
    column = confidence[:, None]
    both = np.column_stack([1 - confidence, confidence])
    series = pl.Series(confidence)
    for shape in (column, both, series):
        assert (kind().fit(shape, correct).predict(shape) == flat).all()
    proba = kind().fit(both, correct).predict_proba(both)
    assert (proba[:, 1] == flat).all()
    assert proba.sum(axis=1) == pytest.approx(1)


def test_other_shapes_are_refused():
    confidence, correct = rows(20)
    with pytest.raises(InputError, match=r"\(n, 2\), got \(20, 3\)"):
        Mend().fit(np.ones((20, 3)), correct)
    with pytest.raises(InputError, match="sum to 1"):
        metrics.PlattCalibrator().fit(np.column_stack([confidence, confidence]), correct)
    with pytest.raises(InputError, match=r"\(n, 2\), got \(20, 3\)"):
        metrics.PlattCalibrator().fit(np.ones((20, 3)), correct)
    with pytest.raises(InputError, match="no option 'bins'"):
        metrics.PlattCalibrator().set_params(bins=3)


@pytest.mark.parametrize("kind", ALL)
def test_sample_weight_is_weights(kind):
    confidence, correct = rows()
    weights = np.random.default_rng(1).integers(0, 4, len(correct))
    one = kind().fit(confidence, correct, sample_weight=weights).predict(confidence)
    other = kind().fit(confidence, correct, weights=weights).predict(confidence)
    assert (one == other).all()
    assert (one != kind().fit(confidence, correct).predict(confidence)).any()
    with pytest.raises(InputError, match="give one"):
        kind().fit(confidence, correct, weights, weights=weights)


@pytest.mark.parametrize("kind", ALL)
def test_cross_validated_probabilities(kind):
    confidence, correct = rows()
    proba = cross_val_predict(kind(), confidence[:, None], correct, method="predict_proba")
    assert proba.shape == (600, 2)
    assert brier_score_loss(correct, proba[:, 1]) < brier_score_loss(correct, confidence)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "neg_brier_score"])
def test_a_search_finds_the_better_option(scoring):
    confidence, correct = rows(2_000)
    grid = {"bins": [1, 20]}
    search = GridSearchCV(metrics.HistogramCalibrator(), grid, scoring=scoring, cv=3)
    search.fit(confidence[:, None], correct, sample_weight=np.ones(2_000))
    assert search.best_params_ == {"bins": 20}


def test_in_a_pipeline():
    confidence, correct = rows()
    chain = make_pipeline(metrics.TemperatureCalibrator(), metrics.IsotonicCalibrator())
    chain.set_params(temperaturecalibrator__edge=1e-4).fit(confidence[:, None], correct)
    assert chain.predict_proba(confidence[:, None]).shape == (600, 2)
    assert chain.score(confidence[:, None], correct) > -brier_score_loss(correct, confidence)


def test_the_classifier_does_what_scikit_learns_does():
    # No saturated scores: scikit-learn merges those that differ by less than 1e-15, we do not.
    X, y = make_classification(2_000, n_informative=6, n_redundant=6, random_state=0)
    X, test, y, _ = train_test_split(X, y, random_state=0)
    ours = metrics.CalibratedClassifier(GaussianNB(), method="isotonic").fit(X, y)
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", ensemble=False).fit(X, y)
    expected = theirs.predict_proba(test)
    assert ours.predict_proba(test) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", metrics.CALIBRATORS)
def test_the_classifier_mends_what_copied_features_break(method):
    # Copies of features count as new evidence for naive Bayes: it becomes over-confident.
    X, y = make_classification(3_000, n_informative=3, n_redundant=15, random_state=0)
    X, test, y, outcome = train_test_split(X, y, random_state=0)
    plain = GaussianNB().fit(X, y).predict_proba(test)[:, 1]
    ours = metrics.CalibratedClassifier(GaussianNB(), method=method).fit(X, y)
    mended = ours.predict_proba(test)[:, 1]
    assert brier_score_loss(outcome, mended) < brier_score_loss(outcome, plain)
    assert metrics.smooth_ece(mended, outcome) < metrics.smooth_ece(plain, outcome)


@pytest.mark.parametrize("method", [*metrics.CALIBRATORS, metrics.BetaCalibrator(penalty=0.1)])
def test_the_classifier_takes_every_calibrator_and_several_classes(method):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    made = metrics.CalibratedClassifier(GaussianNB(), method=method, cv=3).fit(X, names)
    assert made.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert (made.predict(X) == names).mean() > 0.9
    assert len(made.calibrators_) == 3


def test_an_unknown_calibrator_is_named():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="no calibrator 'plat'"):
        metrics.CalibratedClassifier(method="plat").fit(X, y)


def test_the_display_shows_the_bins():
    confidence, correct = rows()
    bins = metrics.reliability_bins(confidence, correct, bins=5, strategy="mass")
    labels = np.array(["no", "yes"])[correct]
    both = np.column_stack([1 - confidence, confidence])
    display = metrics.ReliabilityDisplay.from_predictions(
        labels, both, n_bins=5, strategy="quantile", pos_label="yes", name="model"
    ).plot()
    x, y = display.line_.get_data()
    assert (x == bins.confidence).all()
    assert (y == bins.rate).all()
    assert display.ax_.get_legend() is not None
    with pytest.raises(InputError, match="pos_label"):
        metrics.ReliabilityDisplay.from_predictions(labels, confidence)


def test_the_display_of_a_classifier():
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    display = metrics.ReliabilityDisplay.from_estimator(model, X, y, n_bins=10)
    expected = metrics.reliability_bins(model.predict_proba(X)[:, 1], y, bins=10)
    assert (display.bins.rate == expected.rate).all()
    assert display.name == "GaussianNB"


def test_mend_goes_through_a_search_and_says_when_it_is_not_fitted():
    confidence, correct = rows(300)
    with pytest.raises(NotFittedError):
        check_is_fitted(Mend())
    search = GridSearchCV(Mend(), {"seed": [0, 1]}, scoring="neg_brier_score", cv=2)
    found = search.fit(confidence, correct).best_estimator_
    assert found.map_.n == 300
    both = np.column_stack([1 - confidence, confidence])
    assert (found.predict(both) == found.predict(confidence)).all()
