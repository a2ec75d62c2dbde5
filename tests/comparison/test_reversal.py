"""The paper's printed Tables 10 to 14, through the reversal summary."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calibrant.comparison.reversal import (
    accuracy_gap_bins,
    gap_correlation,
    gap_quadrants,
    reversal_summary,
)

TABLES = pl.read_csv(Path(__file__).parent / "fixtures" / "ace_tables_10_to_14.csv")


def ece_gaps(table):
    return {view: table[f"{view}_ece"].to_numpy() for view in ("raw", "ca", "da", "ia")}


def test_tables_10_to_14_exclusive_patterns():
    summary = reversal_summary(ece_gaps(TABLES))
    assert summary["cases"] == 105
    counts = {name: entry["count"] for name, entry in summary["patterns"].items()}
    assert counts == {
        "none": 39,
        "DA+IA": 21,
        "CA only": 17,
        "DA only": 10,
        "all": 10,
        "IA only": 6,
        "CA+DA": 2,
    }
    shares = {name: round(100 * e["share"].value, 1) for name, e in summary["patterns"].items()}
    assert shares == {
        "none": 37.1,
        "DA+IA": 20.0,
        "CA only": 16.2,
        "DA only": 9.5,
        "all": 9.5,
        "IA only": 5.7,
        "CA+DA": 1.9,
    }
    assert round(100 * summary["agreement"].value, 1) == 82.9


def test_tables_10_to_14_contradict_the_stated_shares():
    """The text states 34 of 120 cases without a reversal; the printed 105 alone hold 39."""
    summary = reversal_summary(ece_gaps(TABLES))
    stated = round(0.283 * 120)
    assert stated == 34
    assert summary["patterns"]["none"]["count"] > stated


@pytest.mark.parametrize(
    ("method", "share"), [("Verbalize", 28.6), ("P(True)", 37.1), ("Self-Consistency", 45.7)]
)
def test_tables_10_to_14_no_reversal_by_method(method, share):
    part = TABLES.filter(pl.col("method") == method)
    summary = reversal_summary(ece_gaps(part))
    assert round(100 * summary["patterns"]["none"]["share"].value, 1) == share


def test_correlation_about_the_origin_does_not_depend_on_the_order_of_a_pair():
    rng = np.random.default_rng(0)
    accuracy, gap = rng.standard_normal((2, 30))
    flip = rng.choice([-1, 1], 30)
    first = gap_correlation(accuracy, gap, centred=False)
    second = gap_correlation(accuracy * flip, gap * flip, centred=False)
    assert first.value == pytest.approx(second.value, abs=1e-12)
    assert first.low < first.value < first.high


def test_quadrants_and_bins_count_every_case():
    gaps = ece_gaps(TABLES)
    assert sum(gap_quadrants(gaps["raw"], gaps["da"]).values()) == 105
    rows = accuracy_gap_bins(TABLES["accuracy_gap"].to_numpy() / 100, gaps)
    assert sum(row["cases"] for row in rows) == 105


def test_correlation_is_pearsons():
    rng = np.random.default_rng(1)
    accuracy, gap = rng.standard_normal((2, 30)) + 1
    assert gap_correlation(accuracy, gap).value == pytest.approx(np.corrcoef(accuracy, gap)[0, 1])
