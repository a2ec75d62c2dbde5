"""The list of metrics: every entry is whole, and whatever lists metrics reads it."""

import json
import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import ClaimFailed
from calibrant.findings.documents.entries import Metrics
from calibrant.metrics import METRICS, audited, metric_estimates, paired_gap
from calibrant.metrics.__main__ import metric_table, page_with_table
from calibrant.metrics.blocks.cell_block import CellBlock
from calibrant.metrics.blocks.families import Metric, mean_of
from calibrant.metrics.blocks.grid import cell_grid, cell_sums
from calibrant.metrics.scorers import scorers
from calibrant.report.glossary import explain
from calibrant.report.page.parts import metric_columns
from support import ROOT, model_scores
from support import call as run


def streamed(confidence, correct, bins=15):
    return CellBlock(
        cell_sums(confidence, correct, cell_grid(bins)),
        cell_grid(bins),
        level=0.95,
        resamples=100,
        rng=np.random.default_rng(0),
    )


def drawn(n, power=1.3, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1.2, n)
    return confidence, (rng.random(n) < confidence**power).astype(np.int8)


def single(n):
    confidence, correct = drawn(n)
    return confidence.astype(np.float32), correct


def round_numbers(n):
    confidence, correct = drawn(n)
    return np.clip(confidence.round(1), 0.1, 0.9), correct


def one_cell(n):
    """All confidences in a cell, wrong rows before right ones: the most that cells can hide."""
    width = 1 / cell_grid(15).cells
    confidence = 0.5 + width * np.linspace(0.01, 0.99, n)
    return confidence, (np.arange(n) > n // 3).astype(np.int8)


def few_cells(n):
    """Steps inside some cells, in order and against it."""
    rng = np.random.default_rng(4)
    width = 1 / cell_grid(15).cells
    cell = rng.choice([100, 20_000, 20_001, 45_000], n)
    within = rng.random(n)
    confidence = (cell + within) * width
    return confidence, (rng.random(n) < np.where(cell == 20_000, 1 - within, within)).astype(
        np.int8
    )


def all_right(n):
    confidence, _ = drawn(n)
    return confidence, np.ones(n, np.int8)


WORLDS = {
    "60,000 rows": lambda: drawn(60_000),
    "far off": lambda: drawn(20_000, 3.0),
    "40 rows": lambda: drawn(40),
    "single precision": lambda: single(20_000),
    "round numbers": lambda: round_numbers(5_000),
    "one cell": lambda: one_cell(300),
    "few cells": lambda: few_cells(2_000),
    "all right": lambda: all_right(500),
}


@pytest.mark.filterwarnings("ignore::calibrant.core.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("name", audited())
@pytest.mark.parametrize("world", WORLDS)
def test_streamed_is_in_memory_within_the_stated_bound(world, name):
    confidence, correct = WORLDS[world]()
    block = streamed(confidence, correct)
    found, bound = block.estimate(METRICS[name]).value, block.errors[name]
    value = METRICS[name](confidence, correct)
    assert bound >= 0
    assert abs(found - value) <= bound + 1e-12 or (math.isnan(found) and math.isnan(value))
    if world == "60,000 rows":
        # A bound that says nothing would pass as well. Slices of the scale end inside cells.
        assert bound < (0.01 if name == "error" else 1e-4)


@pytest.mark.parametrize("name", audited())
def test_an_interval_of_cells_is_wider_by_the_bound(name):
    confidence, correct = few_cells(2_000)
    # Streams of random numbers go on: a block is asked once.
    _, low, high, _ = streamed(confidence, correct).interval_of(METRICS[name].family)
    block = streamed(confidence, correct)
    least, most = METRICS[name].range
    wide = block.estimates()[name]
    assert wide.low == max(low - block.errors[name], least)
    assert wide.high == min(high + block.errors[name], most)


def test_a_metric_of_audits_without_a_bound_cannot_be_declared():
    facts = {"name": "half", "title": "half", "words": "Half.", "value": lambda c, y: 0.5}
    with pytest.raises(TypeError, match="has a family, with its bound"):
        Metric(**facts)
    assert Metric(**facts, audit="never")([], []) == 0.5


def test_facts_are_whole():
    titles = [metric.title for metric in METRICS.values()]
    assert len(set(titles)) == len(titles)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.words[0].isupper()
        assert metric.words.endswith(".")
        assert metric.range[0] < metric.range[1]


def test_documents_name_the_metrics_of_audits_in_their_order():
    assert Metrics.__struct_fields__ == audited()


def test_the_page_of_the_documentation_is_current():
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert page == page_with_table(page), "run python -m calibrant.metrics"


DISTANCE = Metric(
    name="mean_distance",
    title="distance",
    words="Mean distance of confidence and outcome.",
    value=lambda c, y, weights=None: float(np.average(np.abs(np.subtract(c, y)), weights=weights)),
    group="score",
    main=True,
    family=mean_of(lambda c, y: np.abs(c - y)),
)


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setitem(METRICS, DISTANCE.name, DISTANCE)


@pytest.mark.usefixtures("added")
def test_a_metric_that_is_added_is_everywhere(tmp_path):
    table = model_scores(("small",))
    c, y = table["confidence"].to_numpy(), table["correct"].to_numpy()
    value = float(np.abs(c - y).mean())
    table.write_parquet(tmp_path / "t.parquet")
    memory = cal.audit(table, resamples=20)["results"][0]["metrics"]["mean_distance"]
    (entry,) = cal.audit(tmp_path / "t.parquet", resamples=20, engine="local")["results"]
    cells = entry["metrics"]["mean_distance"]
    assert memory["value"] == pytest.approx(value)
    assert memory["low"] < value < memory["high"]
    assert abs(cells["value"] - value) <= entry["sketch_error"]["mean_distance"]
    assert cells["low"] == pytest.approx(memory["low"], abs=1e-4)
    assert metric_estimates(c, y, names=["mean_distance"])["mean_distance"].high == memory["high"]
    assert paired_gap("mean_distance", c, y, c / 2, y).interval == "paired-influence"
    assert "neg_mean_distance" in scorers()
    assert explain("distance") == DISTANCE.words
    assert DISTANCE.words in metric_table()
    assert metric_columns()[-1]["title"] == "distance"
    assert Metrics.__struct_fields__ != audited(), "its line in documents/entries.py is missed"


@pytest.mark.usefixtures("added")
def test_a_metric_that_is_added_is_in_commands(tmp_path):
    table = tmp_path / "t.csv"
    model_scores().write_csv(table)
    out = tmp_path / "audit.json"
    words = ("audit", table, "--resamples", 20)
    assert run(*words, "--fail-if", "mean_distance>0.9", "--json", out).returncode == 0
    assert run(*words, "--fail-if", "mean_distance>0.01").returncode == ClaimFailed.exit_code
    assert "mean_distance" in json.loads(out.read_text())["results"][0]["metrics"]
    shown = run(*words, "--full", "--sort", "mean_distance").stdout
    assert "distance" in shown
    html = tmp_path / "page.html"
    assert run(*words, "--html", html).returncode == 0
    assert DISTANCE.words in html.read_text()


def test_scores_that_only_rank_have_the_metrics_that_take_any_score():
    table = model_scores(("small",), ("number_of_classes",))
    (entry,) = cal.audit(table, resamples=20)["results"]
    assert list(entry["metrics"]) == [n for n in audited() if not METRICS[n].probability]
