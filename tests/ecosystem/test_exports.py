"""Exports, read back with the tools that they are meant for."""

import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calibrant as cal
from calibrant.core.errors import InputError, MissingDependencyError
from calibrant.metrics import METRICS
from calibrant.metrics.scorers import scorers
from calibrant.report.exports import to_junit, to_mlflow


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(4)
    confidence = rng.uniform(0.4, 1, 300)
    table = {
        "confidence": confidence,
        "correct": rng.random(300) < confidence - 0.2,
        "model": ["a/b <&> \x00\u263a"] * 300,
    }
    return cal.audit(table, resamples=50)


def test_junit_counts_what_fails(audit):
    ece = audit["results"][0]["metrics"]["ece"]["value"]
    xml = to_junit(audit, [f"ece>{ece - 0.01}", f"ece>{ece + 0.01}", "auroc.low<0.99"])
    suite = ElementTree.fromstring(xml)
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    failed = [case.find("failure") is not None for case in suite.iter("testcase")]
    assert failed == [True, False, True]
    assert "\u263a" in suite.find("testcase").get("classname")


def test_junit_writes_the_file(audit, tmp_path):
    path = tmp_path / "junit.xml"
    to_junit(audit, ["ece>0.9"], path)
    assert ElementTree.parse(path).getroot().get("failures") == "0"


def test_mlflow_gets_numbers_and_the_document(audit, monkeypatch):
    logged = {}
    fake = types.ModuleType("mlflow")
    fake.log_metrics = lambda metrics: logged.update(metrics=metrics)
    fake.log_dict = lambda document, name: logged.update(document=document, name=name)
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    to_mlflow(audit)
    ece = audit["results"][0]["metrics"]["ece"]
    found = {key.rsplit("/", 1)[1]: value for key, value in logged["metrics"].items()}
    assert (found["ece"], found["ece.low"], found["n"]) == (ece["value"], ece["low"], 300)
    assert logged["document"]["schema"] == "calibrant.audit/1"


def test_mlflow_absent_names_the_install_command(audit, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        to_mlflow(audit)


def test_every_metric_has_a_scorer():
    assert {name.removeprefix("neg_") for name in scorers()} == {*METRICS} - {"confidence_gap"}


@pytest.mark.parametrize("name", sorted(scorers()))
def test_scorers_agree_with_the_metric(name):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(C=0.05, max_iter=1000).fit(X[::2], y[::2])
    probabilities = model.predict_proba(X)
    confidence = probabilities.max(axis=1)
    correct = (model.predict(X) == y).astype(float)
    plain = METRICS[name.removeprefix("neg_")](confidence, correct)
    sign = -1 if name.startswith("neg_") else 1
    assert scorers()[name](model, X, y) == pytest.approx(sign * plain)


def test_scorers_in_a_search_and_cross_validation():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    search = GridSearchCV(
        LogisticRegression(max_iter=500), {"C": [1e-5, 1.0]}, scoring=scorers()["neg_brier"], cv=3
    ).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    values = cross_val_score(search.best_estimator_, X, y, scoring=scorers()["neg_ece"], cv=3)
    assert ((values < 0) & (values > -0.2)).all()


def test_the_brier_scorer_of_a_binary_classifier_is_scikit_learns():
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(max_iter=5000).fit(StandardScaler().fit_transform(X), y)
    X = StandardScaler().fit_transform(X)
    # The squared error is the same whichever of the two classes is looked at.
    expected = brier_score_loss(y, model.predict_proba(X)[:, 1])
    assert -scorers()["neg_brier"](model, X, y) == pytest.approx(expected)


def test_without_probabilities_there_is_no_confidence():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="predict_proba"):
        scorers()["neg_ece"](LinearSVC().fit(X, y), X, y)
