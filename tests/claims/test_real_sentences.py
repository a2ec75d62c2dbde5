"""Every sentence about 16 real models, computed again from the rows by other code."""

import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calibrant as cal
from support import real_data

COLUMN = "verbal_numerical_confidence"
NUMBER = r"(\d+(?:\.\d+)?)"
DIRECTION = re.compile(
    rf"^(?P<model>\S+) says {NUMBER} %, is right {NUMBER} %"
    rf"(?: \({NUMBER} % with answers that state no confidence\))?: "
    rf"over-confident by {NUMBER} points \(95 % interval {NUMBER} to {NUMBER}\)"
)
ERROR = re.compile(
    rf"^(?P<model>\S+): calibration error {NUMBER} points \(95 % interval {NUMBER} to {NUMBER}\), "
    rf"measured in {NUMBER} bins\."
)
RANKS = re.compile(
    rf"^The confidence of (?P<model>\S+) (?:hardly )?separates right from wrong answers: "
    rf"AUROC {NUMBER}"
)
RESTS = re.compile(rf" This rests on {NUMBER} % of the rows\.$")


OVER = "audit.over_confident"
LIMITED = re.compile(
    rf"^(?P<model>\S+?)(?: says .*: over-confident by|: calibration error) {NUMBER} points on "
    r"these (?:rows and )?14 values of category, mixed as here(?:: more than chance)?\. "
    r"For others like them this is not shown\."
)


@pytest.fixture(scope="module")
def path():
    return real_data() / "scores" / "mmlu_pro_16_models.parquet"


@pytest.fixture(scope="module")
def document(path):
    """An audit of the rows as independent: without their categories, in another order."""
    table = pl.read_parquet(path, columns=["question_id", "model", "correct", COLUMN])
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    return cal.audit(shuffled, confidence=COLUMN, on_invalid="drop", resamples=20)


@pytest.fixture(scope="module")
def limited(path):
    """An audit of the file as it is: rows of one category hang together."""
    return cal.audit(path, confidence=COLUMN, on_invalid="drop", resamples=20)


@pytest.fixture(scope="module")
def rows(path):
    table = pl.read_parquet(path, columns=["model", "correct", COLUMN])
    return {
        str(model): (
            part[COLUMN].cast(pl.Float64).to_numpy(),
            part["correct"].cast(pl.Float64).to_numpy(),
        )
        for (model,), part in table.partition_by("model", as_dict=True).items()
    }


def stated(rows, model):
    said, right = rows[model]
    there = (said >= 0) & (said <= 1)
    return said[there], right[there]


def said_of(document, name):
    return [claim["text"] for claim in document["claims"] if claim["id"] == f"audit.{name}"]


def numbers(pattern, text):
    found = pattern.match(text)
    assert found is not None, text
    model, *rest = found.groups()
    return model, [None if part is None else float(part) for part in rest]


def near(told, share, half=0.5):
    """Whether a number in percent or points is that share, rounded to a whole number."""
    return abs(told - 100 * share) <= half + 1e-6


def by_cells(said, right):
    """Return the size of gaps by value, the rarely stated ones together, with their shares."""
    own, values = 0, np.unique(said)
    total, rest = 0.0, np.ones(said.size, bool)
    for value in values:
        here = said == value
        if here.sum() >= max(25, said.size / 200):
            own += 1
            total += abs((said - right)[here].sum())
            rest &= ~here
    return own, (total + abs((said - right)[rest].sum())) / said.size


def test_no_model_is_forgotten(document, rows):
    told = {numbers(DIRECTION, text)[0] for text in said_of(document, "over_confident")}
    usable = {model for model in rows if stated(rows, model)[0].size}
    assert told == usable
    assert len(told) == 15
    assert document["emptied_models"] == sorted(set(rows) - usable) == ["phi-4"]


def test_directions_are_those_of_the_rows(document, rows):
    for text in said_of(document, "over_confident"):
        model, (says, right, of_all, over, low, high) = numbers(DIRECTION, text)
        said, outcome = stated(rows, model)
        graded = rows[model][1][~np.isnan(rows[model][1])]
        gap = said - outcome
        error = gap.std(ddof=1) / gap.size**0.5
        assert near(says, said.mean())
        assert near(right, outcome.mean())
        assert near(right if of_all is None else of_all, graded.mean())
        assert near(over, gap.mean())
        assert near(low, gap.mean() - 1.96 * error, 0.6)
        assert near(high, gap.mean() + 1.96 * error, 0.6)
        if "whatever the missing confidences said" in text:
            # Even if all answers without a confidence had said 0.
            lost = graded.size - said.size
            worst = (gap.sum() - (graded.sum() - outcome.sum())) / (said.size + lost)
            assert worst > 2 * error


def test_errors_are_those_of_the_cells(document, rows):
    assert len(said_of(document, "miscalibrated")) == 15
    for text in said_of(document, "miscalibrated"):
        model, (error, low, high, bins) = numbers(ERROR, text)
        own, total = by_cells(*stated(rows, model))
        # Values that are stated rarely share one slice of the scale.
        assert own + 1 == bins
        # What noise adds to gaps of thousands of rows is below half a point.
        assert near(error, total, 1.0)
        assert low <= error <= high
        assert near(low, total, 2.5)
        assert near(high, total, 2.5)


def test_areas_are_those_of_ranks(document, rows):
    assert len(said_of(document, "separates")) == 15
    for text in said_of(document, "separates"):
        model, (area,) = numbers(RANKS, text)
        said, right = stated(rows, model)
        ranks = stats.rankdata(said)
        hits = right.sum()
        own = (ranks[right == 1].sum() - hits * (hits + 1) / 2) / (hits * (said.size - hits))
        assert abs(area - own) <= 0.0051
        assert ("hardly" in text) == (own < 0.54)


def test_the_first_sentence_is_about_all_of_them(document, rows):
    first = document["claims"][0]["text"]
    gaps = {m: float(np.subtract(*stated(rows, m)).mean()) for m in rows if stated(rows, m)[0].size}
    low, high = (round(100 * end) for end in (min(gaps.values()), max(gaps.values())))
    assert first.startswith(f"All 15 models say more than they know, by {low} to {high} points.")
    errors = {model: by_cells(*stated(rows, model))[1] for model in gaps}
    best, worst = min(errors, key=errors.get), max(errors, key=errors.get)
    assert re.search(rf"from \d+ points \({best}, .* to \d+ points \({worst}, ", first)


def test_what_a_sentence_rests_on_is_the_share_of_rows_with_a_confidence(document, rows):
    for text in said_of(document, "miscalibrated"):
        model = ERROR.match(text)["model"]
        share = stated(rows, model)[0].size / rows[model][0].size
        found = RESTS.search(text)
        assert (share > 0.99) if found is None else near(float(found[1]), share, 0.51)
    # It is said once of each model.
    assert not any(RESTS.search(text) for text in said_of(document, "separates"))


def test_what_is_shown_of_these_categories_alone_is_that_of_their_rows(limited, rows, path):
    assert pl.read_parquet(path, columns=["category"])["category"].n_unique() == 14
    counts = {"over_confident": 0, "miscalibrated": 0}
    for name in counts:
        claims = [c for c in limited["claims"] if c["id"] == f"audit.{name}"]
        assert len(claims) == 15
        for claim in claims:
            assert claim["outcome"] in ("shown", "depends"), claim["text"]
            if claim["outcome"] == "shown":
                assert claim["low"] > 0
                continue
            counts[name] += 1
            model, (size,) = numbers(LIMITED, claim["text"])
            said, right = stated(rows, model)
            gap = said - right
            total = gap.mean() if name == "over_confident" else by_cells(said, right)[1]
            assert near(size, total)
            assert claim["low"] <= total <= claim["high"]
            # Of the rows themselves it is far beyond chance.
            assert total > 5 * gap.std(ddof=1) / gap.size**0.5
    assert min(counts.values()) > 0


def test_intervals_between_categories_are_wider_than_those_of_rows(document, limited):
    widths = [
        {c["subject"]["model"]: c["high"] - c["low"] for c in found["claims"] if c["id"] == OVER}
        for found in (document, limited)
    ]
    assert all(widths[1][model] > 2 * width for model, width in widths[0].items())
    # No sentence is about all models where most are of these categories alone.
    assert not [c for c in limited["claims"] if c["id"] == "audit.models_over_confident"]
