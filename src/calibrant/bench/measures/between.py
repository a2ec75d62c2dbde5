"""Do models differ in what more right answers do to them: confidence lost, answers known?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace
from scipy import special

from calibrant.bench.measures.leaves import ScoreRows
from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate
from calibrant.metrics.stats.multiplicity import holm


def between_models(
    rows: Mapping[str, Mapping[str, ScoreRows]],
    coverage: pl.DataFrame | None,
    probability: Sequence[str],
    ks: Sequence[int],
    level: float,
) -> list[dict[str, Any]]:
    """Return, per pair of models, how differently they change from few right answers to many.

    A change is the mean over domains at the largest number of right answers minus that at the
    smallest. Two models are compared question by question, on those that both have; p-values are
    Welch's, corrected by Holm's rule over all rows of this list.

    Parameters
    ----------
    rows
        Scores by model and method.
    coverage
        Columns question_id, model, coverage; None leaves known answers out.
    probability
        Methods whose score is a probability: only their confidences can be compared.
    ks
        Numbers of right answers.
    level
        Coverage of the intervals.
    """
    if len(ks) < 2:
        return []
    tested = [
        {"quantity": quantity, "method": method, "a": a, "b": b, **difference}
        for quantity, method, values in _quantities(rows, coverage, probability)
        for a, b in combinations(values, 2)
        if (difference := _difference(values[a], values[b], (ks[0], ks[-1]), level)) is not None
    ]
    for test, p in zip(tested, holm([test["p_value"] for test in tested]), strict=True):
        test["p_adjusted"] = float(p)
    return tested


def _quantities(
    rows: Mapping[str, Mapping[str, ScoreRows]],
    coverage: pl.DataFrame | None,
    probability: Sequence[str],
) -> Iterator[tuple[str, str | None, dict[str, ScoreRows]]]:
    """Yield what is compared, the confidence in an answer or the answers known: rows by model."""
    for method in probability:
        yield "confidence", method, {m: own[method] for m, own in rows.items() if method in own}
    if coverage is not None:
        counts = {}
        for model, by_method in rows.items():
            first = next(iter(by_method.values()))
            part = coverage.filter(pl.col("model") == model)
            answers = dict(zip(part["question_id"], part["coverage"].cast(pl.Float64), strict=True))
            values = np.array([answers.get(name, math.nan) for name in first.question.tolist()])
            counts[model] = replace(first, confidence=values).take(~np.isnan(values))
        yield "known answers", None, counts


def _difference(
    a: ScoreRows, b: ScoreRows, ends: tuple[int, int], level: float
) -> dict[str, Any] | None:
    first, second = a.shared(b)
    # A part with one question at either end shows no spread: it is left out.
    names = set.intersection(
        *({leaf.name for leaf in first.of_k([k]).leaves() if leaf.rows.size > 1} for k in ends)
    )
    changes, squares, fourth, n = [0.0, 0.0, 0.0], 0.0, 0.0, 0
    for k, sign in zip(ends, (-1.0, 1.0), strict=True):
        position = np.flatnonzero(first.k == k)
        here, exists = first.take(position), second.take(position)
        parts = [leaf for leaf in here.leaves() if leaf.name in names]
        if not parts:
            return None
        total = sum(leaf.weight for leaf in parts)
        for leaf in parts:
            values = (here.confidence[leaf.rows], exists.confidence[leaf.rows])
            gap: Floats = values[0] - values[1]
            weight = leaf.weight / total
            for place, subset in enumerate((gap, *values)):
                changes[place] += sign * weight * float(subset.mean())
            square = weight**2 * float(gap.var(ddof=1)) / leaf.rows.size
            squares += square
            fourth += square**2 / (leaf.rows.size - 1)
            n += leaf.rows.size
    value, error = changes[0], math.sqrt(squares)
    if error == 0:
        return None
    freedom = squares**2 / fourth
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    estimate = Estimate(value, value - reach, value + reach, n=n, level=level, interval="student")
    p = float(2 * special.stdtr(freedom, -abs(value) / error))
    return {"difference": estimate, "change_a": changes[1], "change_b": changes[2], "p_value": p}
