"""One promise for a whole unit: documents of fields, runs of steps, answers of claims."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core.errors import InputError
from calibrant.trust.selective.certify import certify
from calibrant.trust.units import (
    UnitScore,
    backoff_threshold,
    run_rows,
    steps_saved,
    tolerance_rank,
    unit_rows,
)

SHARES = st.lists(st.floats(0.01, 1), min_size=1, max_size=30)


@given(SHARES)
def test_a_product_is_below_the_least_which_is_below_the_mean(confidences):
    product, least, mean = (UnitScore(how).of(confidences) for how in ("product", "min", "mean"))
    assert product <= least * (1 + 1e-12) <= mean * (1 + 1e-9)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1), st.booleans()), min_size=1))
def test_a_unit_is_wrong_where_any_of_its_rows_is(rows):
    unit, confidence, right = zip(*rows, strict=True)
    units = unit_rows(confidence, right, unit)
    for name, score, wrong, count in zip(
        units.name, units.score, units.wrong, units.rows, strict=True
    ):
        inside = [(c, y) for u, c, y in rows if u == name]
        assert count == len(inside)
        assert wrong == (not all(y for _, y in inside))
        assert score == pytest.approx(np.prod([c for c, _ in inside]), abs=1e-12)


def test_hundreds_of_fields_do_not_lose_their_product():
    assert UnitScore().of(np.full(400, 0.9)) == pytest.approx(0.9**400)


@pytest.mark.parametrize("values", [[], [1.2], [float("nan")]])
def test_what_is_no_confidence_is_refused(values):
    with pytest.raises(InputError, match="confidence"):
        UnitScore().of(values)


def test_an_unknown_score_is_named():
    with pytest.raises(InputError, match="'mode'"):
        unit_rows([0.5], [1], ["a"], score="mode")


def test_a_run_has_one_outcome():
    with pytest.raises(InputError, match="run 'a' has steps with different outcomes"):
        run_rows([0.5, 0.6], [1, 0], ["a", "a"])


@pytest.mark.parametrize("n", [22, 50, 400])
@pytest.mark.parametrize("error", [0.05, 0.1, 0.2])
def test_the_order_statistic_covers_what_it_promises(n, error):
    rng = np.random.default_rng(n)
    k = tolerance_rank(n, error, 0.1)
    if k is None:
        assert (1 - error) ** n > 0.1
        return
    covered = np.sort(rng.random((4000, n)), axis=1)[:, k - 1]
    assert (covered < 1 - error).mean() < 0.1 + 3 * np.sqrt(0.09 / 4000)
    if k > 1:
        nearer = np.sort(rng.random((4000, n)), axis=1)[:, k - 2]
        assert (nearer < 1 - error).mean() > 0.1 - 3 * np.sqrt(0.09 / 4000)


def test_a_step_after_the_one_that_stops_is_saved():
    unit = ["a", "a", "b", "a", "b"]
    assert steps_saved([0.1, 0.9, 0.9, 0.9, 0.9], unit, 0.2) == pytest.approx(2 / 5)
    assert steps_saved([0.5] * 5, unit, 0.2) == 0


def test_rows_of_like_fields_promise_nothing_of_documents():
    """A promise per field breaks for documents; the promise per document holds."""
    rng = np.random.default_rng(3)
    broken = {"fields": 0, "documents": 0}
    for _ in range(40):
        hard = rng.normal(0, 1.2, (8000, 1))
        log_odds = 3 - hard + rng.normal(0, 0.8, (8000, 8))
        said, right = (
            1 / (1 + np.exp(-log_odds)),
            rng.random((8000, 8)) < 1 / (1 + np.exp(-log_odds)),
        )
        unit = np.repeat(np.arange(500), 8)
        fields = certify(said[:500].ravel(), 1.0 - right[:500].ravel(), max_error=0.1, delta=0.1)
        units = unit_rows(said[:500].ravel(), right[:500].ravel(), unit)
        documents = certify(units.score, units.wrong, max_error=0.1, delta=0.1)
        bad = ~right[500:].all(1)
        for name, passed in (
            ("fields", said[500:].min(1) >= (fields.threshold or 2)),
            ("documents", said[500:].prod(1) >= (documents.threshold or 2)),
        ):
            broken[name] += passed.any() and bad[passed].mean() > 0.1
    assert broken["fields"] > 30
    assert broken["documents"] <= 8


@pytest.mark.data
def test_real_claims_keep_their_promise_per_answer(shared_data):
    """995 claims in 150 answers: what a certified threshold leaves wrong among held-out answers."""
    claims = pl.read_parquet(shared_data / "judges" / "claims_conformal_factuality.parquet")
    claims = claims.with_columns(
        grade=pl.col("annotation").str.strip_chars().str.slice(0, 1)
    ).filter(pl.col("grade").is_in(["Y", "N", "S", "U"]))
    said = claims["both"].rank().to_numpy() / claims.height
    right, unit = (claims["grade"] == "Y").to_numpy(), claims["unit"].to_numpy()
    names, rng, broken = np.unique(unit), np.random.default_rng(0), []
    for _ in range(100):
        labelled = np.isin(unit, rng.choice(names, 90, replace=False))
        at = backoff_threshold(
            said[labelled], right[labelled], unit[labelled], max_error=0.2, delta=0.1
        )
        kept = ~labelled & (said > at) & ~right
        left = np.unique(unit[~labelled])
        broken.append(np.isin(left, unit[kept]).mean() > 0.2)
    # The other 60 of these 150 answers are a small and a dependent sample of the truth.
    assert np.mean(broken) < 0.25
