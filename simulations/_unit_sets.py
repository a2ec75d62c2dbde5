"""Sets of classes with a promise, beside the conformal sets of MAPIE on the same data."""

from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import polars as pl
from benchmarks.harness import DATA
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant.trust.units import PredictionSets
from simulations._pieces import RUNS, broken_rates, markdown_table

SEED = 62


def class_sets():
    """Sets of classes: ours against split conformal sets, by MAPIE where it is installed."""
    rng, rows = np.random.default_rng(SEED + 6), []
    for sharpness in (0.5, 1.0, 3.0):
        world = partial(classes, rng, sharpness=sharpness)
        for count in (100, 500):
            rows += _set_rows(f"{sharpness:g}", count, world, world(8_000))
    return _set_table("sharpness", rows)


def real_sets():
    """Probabilities of the four options of HellaSwag by three models; all answers are the truth."""
    table = pl.read_parquet(DATA / "verification_tax" / "answers.parquet")
    table = table.filter(pl.col("benchmark") == "hellaswag", pl.col("options").list.len() == 4)
    rng, rows = np.random.default_rng(SEED + 7), []
    for model in sorted(set(table["model"].cast(pl.String))):
        part = table.filter(
            pl.col("model") == model, pl.col("correct_letter").is_in([*"ABCD"]),
            pl.col("options").list.sum() > 0,
        )  # fmt: skip
        p = np.array(part["options"].to_list()) + 1e-9
        label = np.array(["ABCD".index(letter) for letter in part["correct_letter"]])
        pool = p / p.sum(axis=1, keepdims=True), label
        for count in (100, 500) if len(label) > 1000 else ():
            rows += _set_rows(model, count, partial(_drawn, rng, pool), pool)
    return _set_table("model", rows)


def _drawn(rng, pool, count):
    p, label = pool
    at = rng.choice(len(label), count, replace=False)
    return p[at], label[at]


def _set_rows(name, count, draw, fresh):
    result = {}
    for _ in range(RUNS):
        p, label = draw(count)
        sets = {"decide --sets": PredictionSets.fit(p, label, max_error=0.1).covers}
        for rule, covers in (sets | mapie_sets(p, label)).items():
            inside = covers(fresh[0])
            missed = 1 - inside[np.arange(len(inside)), fresh[1]].mean()
            result.setdefault(rule, []).append((missed > 0.1, inside.sum(axis=1).mean()))
    return [[name, count, rule, *broken_rates(runs)] for rule, runs in result.items()]


def _set_table(head, rows):
    return markdown_table([head, "labels", "rule", "promise broken", "mean size"], rows)


class Stated(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are their own probabilities."""

    def __init__(self, classes=2):
        self.classes, self.classes_ = classes, np.arange(classes)

    def fit(self, *_):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, rows):
        return rows

    def predict(self, rows):
        return rows.argmax(axis=1)


def mapie_sets(p, label):
    """Return what gives sets by the two scores of MAPIE; nothing where it is not installed."""
    if find_spec("mapie") is None:
        return {}
    classification = import_module("mapie.classification")
    sets = {}
    for score in ("lac", "aps"):
        peer = classification.SplitConformalClassifier(
            Stated(p.shape[1]), confidence_level=0.9, conformity_score=score, random_state=0
        )
        peer.conformalize(p, label)
        sets[f"MAPIE {score}"] = lambda rows, peer=peer: peer.predict_set(rows)[1][:, :, 0]
    return sets


def classes(rng, count, *, sharpness):
    """Stated probabilities of six classes, over-sure where sharpness is above 1, and the class."""
    true = rng.dirichlet(np.full(6, 0.5), count)
    label = (rng.random((count, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, 5)
    stated = (true + 1e-6) ** sharpness
    return stated / stated.sum(axis=1, keepdims=True), label
