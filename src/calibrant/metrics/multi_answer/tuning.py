"""Choose a threshold on a development part, and report on the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.metrics.multi_answer.leaves import leaves
from calibrant.metrics.multi_answer.macro import macro_auroc


@dataclass(frozen=True, slots=True)
class Tuned:
    """The chosen threshold, AUROC of every threshold on the development part, and of the
    chosen one on the rest.
    """

    threshold: float
    curve: tuple[tuple[float, float], ...]
    development: Estimate
    rest: Estimate


def development_part(
    question_id: Sequence[str], strata: Sequence[str], *, share: float = 0.2, seed: int = 0
) -> NDArray[np.bool_]:
    """Return which rows belong to the development part.

    The part holds `share` of the questions of every stratum (rounded). A question is in it
    under every model and method.

    Examples
    --------
    >>> development_part([f"q{i}" for i in range(10)], ["a"] * 10).tolist().count(True)
    2
    """
    if not 0 < share < 1:
        raise InputError(f"the development share lies between 0 and 1, got {share}")
    names = np.asarray(question_id).astype(str)
    groups = np.asarray(strata).astype(str)
    chosen: set[str] = set()
    for group in sorted(set(groups.tolist())):
        questions = sorted(set(names[groups == group].tolist()))
        order = named_stream(seed, "development", group).permutation(len(questions))
        chosen.update(questions[index] for index in order[: round(share * len(questions))])
    return np.array([name in chosen for name in names.tolist()])


def tune_threshold(
    score_at: Callable[[float], tuple[Array, Array]],
    grid: Sequence[float],
    development: NDArray[np.bool_],
    domain: Sequence[str],
    subtype: Sequence[str] | None = None,
    *,
    level: float = 0.95,
) -> Tuned:
    """Return the threshold with the highest macro AUROC on the development part.

    Parameters
    ----------
    score_at
        From a threshold to confidence and outcome of all rows.
    grid
        Thresholds to try; the smallest one wins a tie.
    development
        Which rows belong to the development part.
    domain, subtype
        Parts of the macro average, row by row.
    level
        Coverage of the intervals.
    """
    kinds = None if subtype is None else np.asarray(subtype)
    sides = []
    for mask in (development, ~development):
        rows = np.flatnonzero(mask)
        parts = leaves(np.asarray(domain)[rows], None if kinds is None else kinds[rows])
        sides.append((rows, parts))
    (dev_rows, dev_parts), (rest_rows, rest_parts) = sides
    found = []
    for threshold in sorted(grid):
        confidence, correct = score_at(threshold)
        estimate = macro_auroc(
            confidence[dev_rows], correct[dev_rows], dev_parts, level=level
        ).estimate
        found.append((threshold, estimate))
    defined = [pair for pair in found if not np.isnan(pair[1].value)]
    if not defined:
        raise InputError("no threshold has an AUROC on the development part: too few questions")
    best, estimate = max(defined, key=lambda pair: (pair[1].value, -pair[0]))
    confidence, correct = score_at(best)
    rest = macro_auroc(confidence[rest_rows], correct[rest_rows], rest_parts, level=level)
    curve = tuple((threshold, value.value) for threshold, value in found)
    return Tuned(best, curve, estimate, rest.estimate)
