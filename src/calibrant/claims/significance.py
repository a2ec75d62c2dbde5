"""The tests behind the claims of an audit: perfect calibration, mean gap, margins, separation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scipy import special

from calibrant.claims.margins import gap_within
from calibrant.core.estimate import Estimate
from calibrant.stats.clusters import FEWEST
from calibrant.stats.perfect_law import rank_p_value

if TYPE_CHECKING:
    from calibrant.metrics.cell_block import CellBlock
    from calibrant.metrics.row_block import RowBlock

_NOTHING_TESTED = {"expected_ece": None, "high_ece": None, "p_value": None, "simulations": 0}
SEPARATION_MARGIN = 0.05


def gap_p_value(gap: Estimate, other: float) -> float:
    """Return the p-value of 'confidence equals accuracy on average': the larger of two.

    Student's, from the spread between units, is 0 where a rare outcome is absent by chance. The
    other takes its spread from the very confidences that are in doubt.

    Examples
    --------
    >>> round(gap_p_value(Estimate(0.1, 0.0, 0.2, n=1_000), 0.01), 3)
    0.05
    """
    # The end towards 0 decides: where it reaches 0, p is what the interval leaves out.
    reach = gap.value - gap.low if gap.value > 0 else gap.high - gap.value
    if not math.isfinite(reach) or reach <= 0:
        return other
    degrees = max(gap.n - 1, 1)
    error = reach / float(special.stdtrit(degrees, (1 + gap.level) / 2))
    student = 2 * float(special.stdtr(degrees, -abs(gap.value) / error))
    return student if math.isnan(other) else max(student, other)


def block_tests(
    block: RowBlock | CellBlock,
    metrics: Mapping[str, Any],
    margin: float,
    missing: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the tests of one block, each with its own p-value.

    Parameters
    ----------
    block
        Rows or sums.
    metrics
        Its estimates; those of the mean gap and of the AUROC are used.
    margin
        Errors and mean gaps below it do not matter.
    missing
        What is known about answers without a confidence, see `calibrant.claims.missing`.
    """
    cells, gap = block.cell_error, metrics["confidence_gap"]
    few = cells.clusters is not None and cells.clusters.count < FEWEST
    agrees = None if few else gap_within(gap, margin)
    within = cells.within(margin)
    return {
        "calibration": None if few else _test(cells.p_calibrated),
        "gap": None if few else _with_missing(_gap_p_value(block, gap), missing),
        "within_margin": {
            "gap": None if agrees is None else {"p_value": agrees},
            "error": {
                "p_value": within.p_value,
                "upper": cells.interval(0.95)[1],
                "at_best": cells.at_best(),
                "reachable": within.reachable,
                "accuracy_agrees": within.agrees and not few,
                "smooth": within.smooth,
                "values": cells.table.count - cells.table.slices,
                "slices": cells.table.slices,
            },
        },
        "separation": separation_test(metrics["auroc"], _rank_p_value(block, metrics)),
    }


def classic_test(block: RowBlock | CellBlock) -> dict[str, Any]:
    """Return what a calibrated model would show in bins of equal width: a number, no claim."""
    if not block.independent:
        return dict(_NOTHING_TESTED)
    test = block.calibration_test(block.bins)
    return {
        "expected_ece": test.expected,
        "high_ece": test.high,
        "p_value": test.p_value,
        "simulations": test.simulations,
    }


def _test(p_value: float) -> dict[str, Any] | None:
    return None if math.isnan(p_value) else {"p_value": p_value}


def _with_missing(p_value: float, missing: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the test of the mean gap of all answers, those without a confidence too.

    It holds whatever they would have said, or else on the rows with a confidence and on all rows,
    reweighted by outcome.
    """
    if missing is None or math.isnan(p_value):
        return _test(p_value)
    likely = missing["reweighted"]
    same = likely is not None and likely["value"] * missing["with_confidence"]["value"] > 0
    both = max(p_value, likely["p_value"]) if same else 1.0
    return {"p_value": min(both, missing["worst_case"]["p_value"]), "p_rows": p_value}


def _gap_p_value(block: RowBlock | CellBlock, gap: Estimate) -> float:
    cells = block.cell_error
    if block.one_class and block.independent and block.shares is None:
        return cells.p_one_sided
    return gap_p_value(gap, cells.p_gap)


def _rank_p_value(block: RowBlock | CellBlock, metrics: Mapping[str, Any]) -> float:
    """Return the p-value of ranks where rows are alike; elsewhere that of the interval stands."""
    if not block.independent or block.shares is not None:
        return 0.0
    sums = block.cell_error.sums
    return rank_p_value(sums.rows, sums.right, metrics["auroc"].value)


def separation_test(
    auroc: Estimate, rank_p: float = 0.0, margin: float = SEPARATION_MARGIN
) -> dict[str, Any] | None:
    """Return the p-values of 'the AUROC is not 0.5' and of 'it is within a margin of 0.5'.

    The first is the larger of that of ranks and that of the interval of the AUROC, taken as
    normal on the logit scale; the second follows from the interval.

    Examples
    --------
    >>> found = separation_test(Estimate(0.7, 0.65, 0.745, n=500))
    >>> found["p_value"] < 1e-9, found["p_within"] > 0.99
    (True, True)
    """
    ends = (auroc.value, auroc.low, auroc.high)
    if not all(map(math.isfinite, ends)) or not 0 < auroc.low < auroc.high < 1:
        return None
    quantile = float(special.ndtri((1 + auroc.level) / 2))
    at, low, high = (float(special.logit(min(max(end, 1e-9), 1 - 1e-9))) for end in ends)
    error = max((high - low) / (2 * quantile), 1e-12)
    reach = float(special.logit(0.5 + margin))
    within = max(special.ndtr(-(reach - at) / error), special.ndtr(-(reach + at) / error))
    own = 2 * float(special.ndtr(-abs(at) / error))
    return {"p_value": max(own, rank_p), "p_within": float(within)}
