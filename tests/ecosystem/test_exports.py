"""Exports, read back with the tools that they are meant for."""

import json
import sys
import types
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
import yaml
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calibrant as cal
from calibrant.core.errors import InputError, MissingDependencyError
from calibrant.integrations.exports import (
    to_every_eval_ever,
    to_frame,
    to_junit,
    to_mlflow,
    to_model_card,
    to_model_index,
    to_table,
)
from calibrant.metrics import METRICS
from calibrant.metrics.scorers import scorers


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


def test_model_index_is_yaml_with_every_interval(audit):
    card = yaml.safe_load(to_model_index(audit, model="m: 1", dataset="D", dataset_type="d/e"))
    (entry,) = card["model-index"]
    assert entry["name"] == "m: 1"
    (result,) = entry["results"]
    metrics = {metric["type"]: metric for metric in result["metrics"]}
    ece = audit["results"][0]["metrics"]["ece"]
    assert metrics["ece"]["value"] == pytest.approx(ece["value"], abs=1e-6)
    assert f"[{ece['low']:.3f}, {ece['high']:.3f}]" in metrics["ece"]["name"]
    assert all("n = 300" in metric["name"] for metric in metrics.values())


def test_card_section_is_markdown(audit):
    text = to_model_card(audit)
    assert text.startswith("## Calibration")
    assert "<&>" not in text  # a hostile name is neutralised
    assert "| --- |" in text


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


TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def fields(**properties):
    """A JSON schema of an object whose named fields are all required."""
    return {"type": "object", "required": list(properties), "properties": properties}


INTERVAL = fields(lower=NUMBER, upper=NUMBER, confidence_level=NUMBER)
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
# The required fields of Every Eval Ever 0.2.1; a continuous score must state its range.
EVERY_EVAL_EVER = fields(
    schema_version={"const": "0.2.1"},
    evaluation_id=TEXT,
    retrieved_timestamp=TEXT,
    source_metadata=fields(
        source_type={"enum": ["documentation", "evaluation_run"]},
        source_organization_name=TEXT,
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
    ),
    eval_library=fields(name=TEXT, version=TEXT),
    model_info=fields(name=TEXT, id=TEXT),
    evaluation_results={
        "type": "array",
        "minItems": 1,
        "items": fields(
            evaluation_name=TEXT,
            source_data=fields(dataset_name=TEXT, source_type={"const": "other"}),
            metric_config=fields(
                lower_is_better={"type": "boolean"},
                score_type={"const": "continuous"},
                min_score=NUMBER,
                max_score=NUMBER,
            ),
            score_details=fields(
                score=SHARE,
                uncertainty=fields(num_samples={"type": "integer"}, confidence_interval=INTERVAL),
            ),
        ),
    },
) | {"additionalProperties": False}


def test_records_of_every_eval_ever(audit, tmp_path):
    about = {"dataset": "D", "organization": "me", "relationship": "third_party"}
    path = tmp_path / "records.jsonl"
    text = to_every_eval_ever(audit, path, timestamp=7, **about)
    assert path.read_text(encoding="utf-8") == text
    (record,) = map(json.loads, text.splitlines())
    jsonschema.validate(record, EVERY_EVAL_EVER)
    found = {entry["evaluation_name"]: entry for entry in record["evaluation_results"]}
    ece = audit["results"][0]["metrics"]["ece"]
    entry = found["D: ece (confidence)"]
    assert entry["score_details"]["score"] == ece["value"]
    assert entry["score_details"]["uncertainty"]["num_samples"] == 300
    assert entry["score_details"]["uncertainty"]["confidence_interval"] == {
        "lower": ece["low"],
        "upper": ece["high"],
        "confidence_level": 0.95,
    }
    assert entry["metric_config"]["lower_is_better"]
    assert not found["D: auroc (confidence)"]["metric_config"]["lower_is_better"]
    with pytest.raises(InputError, match="third_party"):
        to_every_eval_ever(audit, **about | {"relationship": "friend"})


def test_an_undefined_measure_is_left_out_of_the_record():
    audit = cal.audit([0.5, 0.6, 0.7], [1, 1, 1], resamples=20)
    assert audit["results"][0]["metrics"]["auroc"]["value"] is None
    about = {"dataset": "D", "organization": "me", "relationship": "other"}
    record = json.loads(to_every_eval_ever(audit, **about))
    names = [entry["evaluation_name"] for entry in record["evaluation_results"]]
    assert "D: auroc (confidence)" not in names
    assert "D: brier (confidence)" in names


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


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_results_as_a_table(audit, tmp_path, ending):
    path = tmp_path / f"results.{ending}"
    to_table(audit, path)
    table = cal.records.read_table(path)
    assert table.height == len(audit["results"][0]["metrics"])
    row = table.filter(table["metric"] == "ece").row(0, named=True)
    ece = audit["results"][0]["metrics"]["ece"]
    assert {key: row[key] for key in ece} == pytest.approx(ece)
    assert to_frame(audit).to_arrow().num_rows == len(to_frame(audit).to_pandas()) == table.height


def test_a_table_has_a_known_ending(audit, tmp_path):
    with pytest.raises(InputError, match="parquet"):
        to_table(audit, tmp_path / "results.xlsx")
