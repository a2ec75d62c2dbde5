"""Class probabilities: each class by itself, and sets of classes with a promise."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError

NAMES = ["spam", "news", "mail", "ads"]


def table(count=800, sharpness=1.6, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.dirichlet([0.5] * 4, count)
    label = (rng.random((count, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    stated = (true + 1e-6) ** sharpness
    stated /= stated.sum(axis=1, keepdims=True)
    columns = {f"p_{name}": stated[:, place] for place, name in enumerate(NAMES)}
    return pl.DataFrame({**columns, "label": [NAMES[place] for place in label]})


def test_every_class_is_audited_and_tested_with_the_others():
    data = table()
    found = cal.audit(data, "label", probs="p_", classwise=True, resamples=100)
    whole, *classes = found["results"]
    assert whole["n"] == 3200
    assert sorted(block["group"]["class"] for block in classes) == sorted(NAMES)
    for block in classes:
        name = block["group"]["class"]
        says = data[f"p_{name}"].mean()
        right = (data["label"] == name).mean()
        assert block["metrics"]["accuracy"]["value"] == pytest.approx(right)
        gap = block["metrics"]["confidence_gap"]["value"]
        assert gap == pytest.approx(says - right, abs=1e-9)
    about = {c["subject"].get("group") is not None for c in found["claims"] if "over" in c["id"]}
    assert about <= {True}


def test_sets_hold_the_right_class_and_are_served(tmp_path):
    file, data = tmp_path / "sets.json", table(1500)
    options = {"probs": "p_", "correct": "label", "sets": True, "max_error": 0.1}
    (entry,) = cal.decide(data, **options, save=file)["results"]
    policy, fresh = cal.load_policy(file), table(4000, seed=1)
    rows = fresh.select(pl.col("^p_.*$")).rows()
    held = [policy.holds(row) for row in rows]
    missed = np.mean(
        [label not in names for label, names in zip(fresh["label"], held, strict=True)]
    )
    assert missed < 0.1 + 3 * np.sqrt(0.09 / 4000)
    assert np.mean([len(names) for names in held]) == pytest.approx(
        entry["sets"]["mean_size"], abs=0.15
    )
    assert sum(entry["sets"]["sizes"]) == entry["n"] == 1500
    assert all(
        row[NAMES.index(names[0])] == max(row) for row, names in zip(rows, held, strict=True)
    )
    with pytest.raises(InputError, match="gives sets of classes"):
        policy.answers(0.9)
    with pytest.raises(InputError, match="needs 4 probabilities"):
        policy.holds([0.5, 0.5])


def test_too_few_labels_say_how_many_are_needed():
    (entry,) = (found := cal.decide(
        table(20), probs="p_", correct="label", sets=True, max_error=0.1
    ))["results"]  # fmt: skip
    assert (entry["certified"], entry["labels_needed"]) == (False, 22)
    assert "22 labels" in found["claims"][0]["text"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"correct": "label", "sets": True, "confidence": "p_spam"}, "needs class prob"),
        ({"label": "other"}, {"correct": "label", "probs": "p_", "sets": True}, "holds 'other'"),
        ({}, {"probs": "p_", "correct": "label", "sets": True, "stop": True}, "about whole units"),
    ],
)
def test_what_sets_need_is_said(change, options, message):
    data = table(100).with_columns(**{name: pl.lit(word) for name, word in change.items()})
    with pytest.raises(InputError, match=message):
        cal.decide(data, max_error=0.1, **options)
