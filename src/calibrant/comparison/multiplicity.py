"""Many pairs at once: which model is better, corrected for the number of pairs looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from calibrant.comparison.ece_interval import gap_bias
from calibrant.comparison.verdict import pair_verdict
from calibrant.stats.multiplicity import holm

__all__ = ["correct_pairs", "gap_p_value"]

Floats: TypeAlias = npt.NDArray[np.float64]
CONTROL = "holm"


def gap_p_value(replicates: Floats, units: float) -> float:
    """Return the two-sided p-value of 'the two models have the same error'; NaN without spread.

    A share of resamples is never below one in their number, too coarse for what is corrected for
    many pairs. This takes the spread of the resamples and Student's law. The gap counts only for
    what its largest bias leaves of it (`gap_bias`).

    Parameters
    ----------
    replicates
        Gap in the data, then in every resample.
    units
        Questions behind the gap, effective ones where they are weighted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(gap_p_value(np.append(0.1, 0.1 + 0.05 * rng.standard_normal(4000)), 200), 2)
    0.05
    """
    drawn = replicates[1:][np.isfinite(replicates[1:])]
    if drawn.size < 2 or not np.isfinite(replicates[0]):
        return math.nan
    spread, gap = float(drawn.std(ddof=1)), float(replicates[0])
    if spread == 0:
        return 1.0 if gap == 0 else math.nan
    towards = gap_bias(replicates) * math.copysign(1.0, gap)
    left = max(abs(gap) - max(towards, 0.0), 0.0)
    return float(2 * special.stdtr(max(units - 1, 1), -left / spread))


def correct_pairs(parts: Sequence[Mapping[str, Any]], level: float) -> dict[str, Any]:
    """Say which model of each pair is better once all pairs count, in place; return the rule.

    Every pair gets ``p_adjusted`` and ``better`` by view, ``reversal_resolved`` and ``verdict``
    that rest on them; every summary the number of resolved reversals. Whole methods and groups
    of questions are families of their own, and so is each view: one decides, the others
    corroborate. A tie by its own interval is never better, whatever its p-value; a pair that
    stands alone is judged by its interval.

    Parameters
    ----------
    parts
        Per method and group: ``pairs`` and ``summary``, see `compare_models`.
    level
        Coverage of the intervals; claims are held to 1 - level.
    """
    alpha = round(1 - level, 12)
    pairs = [pair for part in parts for pair in part["pairs"]]
    families = {
        "whole": [pair for pair in pairs if not pair.get("group")],
        "groups": [pair for pair in pairs if pair.get("group")],
    }
    for family in families.values():
        _correct(family, alpha)
    for part in parts:
        if part["summary"].get("cases"):
            part["summary"]["resolved_reversals"] = {
                view: int(sum(pair["reversal_resolved"][view] for pair in part["pairs"]))
                for view in part["summary"]["resolved_reversals"]
            }
    counts = {name: {"pairs": len(family)} for name, family in families.items()}
    return {"control": CONTROL, "alpha": alpha, **counts}


def _correct(pairs: Sequence[dict[str, Any]], alpha: float) -> None:
    for pair in pairs:
        pair["p_adjusted"] = dict.fromkeys(pair["p_value"], math.nan)
    for view in dict.fromkeys(view for pair in pairs for view in pair["p_value"]):
        tested = [pair for pair in pairs if not math.isnan(pair["p_value"].get(view, math.nan))]
        adjusted = holm([pair["p_value"][view] for pair in tested])
        for pair, value in zip(tested, adjusted, strict=True):
            pair["p_adjusted"][view] = float(value)
    for pair in pairs:
        pair["pairs"] = len(pairs)
        pair["better"] = {view: _better(pair, view, alpha) for view in pair["p_value"]}
        pair["reversal_resolved"] = {
            view: None not in (found := (pair["better"]["raw"], pair["better"][view]))
            and found[0] != found[1]
            for view in pair["reversal"]
        }
        pair["verdict"] = pair_verdict(pair)


def _better(pair: Mapping[str, Any], view: str, alpha: float) -> str | None:
    """Return the model that is shown to be better calibrated in this view, or None."""
    if pair["ties"][view]["ece"]:
        return None
    if pair["pairs"] > 1 and not pair["p_adjusted"][view] <= alpha:
        return None
    return str(pair["a"] if pair["gaps"][view]["ece"].value < 0 else pair["b"])
