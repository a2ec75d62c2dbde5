"""On tables of which audits used to say something false, audit and compare say the same."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError

FAST = {"resamples": 50}


def table(**models):
    """Return models on shared questions, each from confidences and whether it is right."""
    return pl.concat(
        pl.DataFrame({"confidence": said, "correct": np.asarray(right, int)}).with_columns(
            model=pl.lit(name), question_id=pl.int_range(len(said))
        )
        for name, (said, right) in models.items()
    )


def told(document, name):
    return [claim for claim in document["claims"] if claim["id"] == name]


def told_under(document, model):
    verdicts = {entry["model"]: entry["verdict"]["calibration"] for entry in document["results"]}
    return verdicts[model] == "under-confident"


def calibrated(rng, said):
    return said, rng.random(said.size) < said


# Of the first rows the order looks like drift, by chance: what is said is of these rows.
@pytest.mark.parametrize(("seed", "outcome"), [(1, "depends"), (2, "shown")])
def test_crossed_values_are_an_error_in_both(seed, outcome):
    rng = np.random.default_rng(seed)
    said = rng.choice([0.95, 1.0], 3_000)
    rows = table(
        crossed=(said, rng.random(3_000) < np.where(said == 0.95, 1.0, 0.95)),
        right=calibrated(rng, rng.choice([0.95, 1.0], 3_000)),
    )
    audit, compare = cal.audit(rows, **FAST), cal.compare(rows, **FAST)
    errors = {entry["model"]: entry["metrics"]["error"]["value"] for entry in audit["results"]}
    assert errors["crossed"] > 0.03 > 0.02 > errors["right"]
    outcomes = {c["subject"]["model"]: c["outcome"] for c in told(audit, "audit.miscalibrated")}
    assert outcomes == {"crossed": outcome, "right": "equivalent"}
    assert ("data.dependent" in [w["id"] for w in audit["data"]["warnings"]]) == (seed == 1)
    (sentence,) = (c["text"] for c in told(audit, "audit.miscalibrated") if c["outcome"] == outcome)
    assert sentence.startswith(f"crossed: calibration error {100 * errors['crossed']:.2g} points")
    (verdict,) = told(compare, "compare.better_calibrated")
    assert verdict["outcome"] == "shown"
    assert verdict["text"].startswith("right is better calibrated than crossed")


def test_a_model_that_is_never_right_is_never_called_better():
    rng = np.random.default_rng(2)
    rows = table(
        never=(np.full(400, 0.95), np.zeros(400)), other=calibrated(rng, rng.uniform(0.5, 1, 400))
    )
    first = cal.audit(rows, **FAST)["claims"][0]
    assert (first["subject"]["model"], first["outcome"]) == ("never", "shown")
    assert "is never right (400 answers): over-confident by 95 points" in first["text"]
    with pytest.raises(InputError, match="never has accuracy 0"):
        cal.compare(rows, **FAST)


def test_missing_confidences_make_no_model_right_more_often():
    rng = np.random.default_rng(3)
    false, under = 0, 0
    for _ in range(6):
        said, right = calibrated(rng, rng.uniform(0.5, 1, 500))
        other = calibrated(rng, rng.uniform(0.5, 1, 500))
        lost = ~right & (rng.random(500) < 0.6)
        rows = table(mute=(np.where(lost, np.nan, said), right), other=other)
        audit, compare = cal.audit(rows, **FAST), cal.compare(rows, **FAST)
        # The same accuracy in both, of all graded answers.
        of_audit, of_compare = (
            {e["model"]: e["accuracy"] for e in entries}
            for entries in ([{**e, **e["metrics"]} for e in audit["results"]], compare["results"])
        )
        for model, accuracy in of_audit.items():
            assert accuracy["value"] == pytest.approx(of_compare[model]["value"])
            assert accuracy["n"] == of_compare[model]["n"] == 500
        false += any(c["outcome"] == "shown" for c in told(compare, "compare.more_accurate"))
        under += told_under(audit, "mute")
    # On rows with a confidence alone both were claimed in every run.
    assert false <= 1
    assert under <= 1


def test_topics_with_effects_decide_nothing_in_either():
    rng = np.random.default_rng(4)
    false = 0
    for _ in range(6):
        topic = np.repeat(np.arange(12), 60)
        models = {}
        for name in ("a", "b"):
            effect = 0.1 * rng.choice([-1, 1], 12)[topic]
            said = rng.choice([0.5, 0.6, 0.7, 0.8], topic.size)
            models[name] = (said, rng.random(topic.size) < said + effect)
        rows = table(**models).with_columns(topic=pl.Series(np.tile(topic, 2)))
        audit = cal.audit(rows, cluster="topic", **FAST)
        compare = cal.compare(rows, cluster="topic", **FAST)
        shown = [c["id"] for d in (audit, compare) for c in d["claims"] if c["outcome"] == "shown"]
        false += any(not name.endswith("separates") for name in shown)
    assert false <= 2
