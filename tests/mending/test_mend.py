"""The map that people take home: verdicts, files, updates, checks, tables."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special

from calibrant.core.errors import InputError, SchemaError
from calibrant.data.mend import Mend
from calibrant.data.recalibration_map import load_mend, save_maps
from calibrant.metrics.recalibration.mend_fit import Labels, fit_value

VALUES = np.array([0.7, 0.8, 0.9, 0.95, 1.0])


def over_confident(n, seed=0, by=0.25):
    rng = np.random.default_rng(seed)
    c = rng.choice(VALUES, n, p=[0.1, 0.15, 0.35, 0.25, 0.15])
    return c, (rng.random(n) < c - by).astype(float)


@pytest.fixture(scope="module")
def fitted():
    return Mend().fit(*over_confident(2000)).map_


def test_what_is_said_and_what_it_means(fitted):
    assert fitted.verdict == "mended"
    assert fitted.probability(0.9) == pytest.approx(0.65, abs=0.04)
    low, high = fitted.interval(0.9)
    assert low < 0.65 < high
    assert fitted.promise["off_by"] < 0.06
    assert fitted.promise["gain"] == pytest.approx(0.0625, abs=0.015)


def test_one_probability_equals_many(fitted):
    at = np.linspace(0, 1, 57)
    alone = [fitted.probability(float(c)) for c in at]
    np.testing.assert_allclose(fitted.probabilities(at), alone, atol=1e-12)


def test_a_calibrated_confidence_is_left_nearly_as_it_is():
    rng = np.random.default_rng(1)
    c = rng.beta(8, 2, 2000)
    left = Mend().fit(c, rng.random(2000) < c).map_
    assert left.verdict == "not worth it"
    assert left.probability(0.83) == pytest.approx(0.83, abs=0.01)
    assert left.promise["off_by"] is None


def test_few_labels_are_served_and_promised_nothing():
    """They were answered with the raw confidence: 25 points off where 12 were within reach."""
    few = Mend().fit(*over_confident(30)).map_
    assert few.verdict == "too few"
    assert few.promise["off_by"] is None
    low, high = few.interval(0.9)
    assert low < 0.65 < high
    assert low <= few.probability(0.9) <= high
    off = [
        np.abs(Mend().fit(*over_confident(30, seed)).predict(VALUES) - (VALUES - 0.25)).mean()
        for seed in range(20)
    ]
    assert np.mean(off) < 0.12


def test_few_labels_of_a_calibrated_model_are_not_believed_over_it():
    """What is stated is one of the curves that labels are held against."""
    off, curve = [], []
    for seed in range(40):
        rng = np.random.default_rng([seed, 4])
        c = rng.beta(8, 2, 60)
        labels = Labels.of(c, (rng.random(60) < c).astype(float))
        at = rng.beta(8, 2, 500)
        for errors, prior in ((off, 0.2), (curve, 0.0)):
            found = fit_value(replace(labels, as_stated=prior))
            value = special.expit(np.interp(at, found.grid.knots, found.log_odds))
            errors.append(np.abs(value - at).mean())
    assert np.mean(off) < 0.75 * np.mean(curve)


@pytest.mark.parametrize("truth", ["calibrated", "over-confident", "a step"])
def test_intervals_of_few_labels_cover(truth):
    """The interval of one probability is meant to cover in 95 of 100 cases."""
    rates = {
        "calibrated": lambda c: c,
        "over-confident": lambda c: c - 0.25,
        "a step": lambda c: np.where(c < 0.8, 0.3, 0.75),
    }[truth]
    inside = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 6])
        c = np.clip(rng.beta(8, 2, 50), 0.26, 0.999)
        fitted = Mend(seed=seed).fit(c, rng.random(50) < rates(c)).map_
        for at in np.quantile(c, [0.1, 0.3, 0.5, 0.7, 0.9]).tolist():
            low, high = fitted.interval(at)
            inside.append(low - 1e-9 <= rates(np.array(at)) <= high + 1e-9)
    assert np.mean(inside) > 0.92


def test_a_file_gives_the_same_numbers(fitted, tmp_path):
    path = tmp_path / "mend.json"
    fitted.save(path)
    again = load_mend(path)
    for c in (0.0, 0.7, 0.83, 0.95, 1.0):
        assert again.probability(c) == fitted.probability(c)
        assert again.interval(c) == fitted.interval(c)
    data = json.loads(path.read_text())
    assert data["schema"] == "calibrant.mend/1"
    assert set(data["map"]) == {"knots", "log_odds", "low", "high"}
    assert path.stat().st_size < 20_000


def test_several_maps_are_chosen_by_name(fitted, tmp_path):
    from msgspec import structs

    path = tmp_path / "mend.json"
    renamed = [structs.replace(fitted, model=name) for name in "ab"]
    save_maps([renamed[0], structs.replace(renamed[1], offset=1.0)], path)
    assert load_mend(path, model="b").offset == 1.0
    with pytest.raises(InputError, match=r"2 maps fit; the file has a .*, b"):
        load_mend(path)
    with pytest.raises(InputError, match="no map fits"):
        load_mend(path, model="c")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "calibrant.mend/1"}', '{"schema": "calibrant.policy/1"}']
)
def test_damaged_files_are_refused_by_name(text, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=r"broken\.json"):
        load_mend(path)


def test_loading_and_asking_needs_the_standard_library_alone(fitted, tmp_path):
    path = tmp_path / "mend.json"
    fitted.save(path)
    code = (
        "import sys, calibrant; "
        f"calibrant.load_mend({str(path)!r}).probability(0.9); "
        "print({'numpy', 'scipy', 'polars', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("value", [-0.1, 1.1, 91.0, math.nan])
def test_what_is_no_confidence_is_refused(fitted, value):
    with pytest.raises(InputError, match="between 0 and 1"):
        fitted.probability(value)


def test_new_labels_move_the_map_and_end_the_promise(fitted):
    c, _ = over_confident(100, seed=3)
    moved = fitted.update(c, np.zeros(100))
    assert moved.probability(0.9) < fitted.probability(0.9) - 0.05
    assert moved.promise["off_by"] is None
    assert fitted.promise["off_by"] is not None
    same = fitted.update(c, fitted.probabilities(c))
    assert same.offset == pytest.approx(0, abs=1e-6)


def test_a_shift_of_confidences_is_seen_and_none_is_not(fitted):
    alike = [fitted.check(over_confident(100, seed=10 + run)[0]).shifted for run in range(60)]
    assert sum(alike) <= 3
    rng = np.random.default_rng(0)
    higher = rng.choice(VALUES, 100, p=[0.02, 0.03, 0.15, 0.4, 0.4])
    found = fitted.check(higher)
    assert found.shifted
    assert "promise does not hold" in found.text


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_tables_get_columns_and_stay_what_they_are(fitted, kind):
    table = kind({"id": [1, 2, 3], "confidence": [0.7, 0.9, None]})
    mended = fitted.apply(table)
    assert isinstance(mended, kind)
    assert list(mended.columns) == ["id", "confidence", "mended", "mended_low", "mended_high"]
    assert mended["mended"].to_list()[1] == fitted.probability(0.9)
    assert pl.Series(mended["mended"]).is_null().to_list() == [False, False, True]
    assert list(table.columns) == ["id", "confidence"]


def test_scikit_learn_copies_and_calls_it():
    from sklearn.base import clone

    copy = clone(Mend(seed=3))
    assert copy.seed == 3
    c, y = over_confident(300)
    chances = copy.fit(c[:, None], y).predict_proba(c[:, None])
    assert chances.shape == (300, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("fits", [20, 60])
def test_the_promise_holds_and_a_calibrated_model_is_left_alone(fits):
    held, mended = [], []
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        c = rng.beta(8, 2, 300)
        truth = np.where(c < 0.8, 0.3, 0.75)
        found = Mend(seed=seed).fit(c, rng.random(300) < truth).map_
        held.append(np.abs(found.probabilities(c) - truth).mean() <= found.promise["off_by"])
        mended.append(Mend(seed=seed).fit(c, rng.random(300) < c).map_.verdict == "mended")
    assert np.mean(held) >= 0.95
    assert np.mean(mended) <= 0.05
