"""How far a grader agrees with people: accuracy, Cohen's kappa, confusion."""

import math
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.answers.semantics.same.cluster import first_appearance
from calibrant.core import Estimate, InputError, UndefinedMetricWarning, named_stream

Label = bool | None


def cohen_kappa(confusion: npt.ArrayLike) -> float:
    """Return Cohen's kappa of a square table of counts.

    Agreement beyond chance: 1 is full agreement, 0 what two independent markers with these
    rates reach, negative is worse. NaN where chance alone gives full agreement (both use one
    label throughout) or the table is empty.

    References
    ----------
    Cohen, A coefficient of agreement for nominal scales (1960).

    Examples
    --------
    >>> round(cohen_kappa([[20, 5], [10, 15]]), 3)
    0.4
    """
    table = np.asarray(confusion, dtype=float)
    total = table.sum()
    if total == 0:
        return math.nan
    observed = np.trace(table) / total
    expected = float(table.sum(axis=0) @ table.sum(axis=1)) / total**2
    return math.nan if expected == 1.0 else float((observed - expected) / (1.0 - expected))


def agreement(
    found: Sequence[Label],
    truth: Sequence[Label],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare grades with human labels.

    Parameters
    ----------
    found
        Grades: True, False or None (not attempted, not gradable).
    truth
        Human labels of the same answers; a row without a label is left out and counted.
    groups
        What is drawn again in the bootstrap, usually the question; each row where not given.
    resamples, level, seed
        Settings of the percentile bootstrap.

    Returns
    -------
    document
        ``accuracy``, ``kappa``, ``precision`` and ``recall`` of the grade 'correct' as
        estimates; ``confusion`` with counts, not attempted apart; ``n``, ``unlabelled`` and
        ``attempted`` (share). A grade of None counts as 'not correct' in the estimates.

    Examples
    --------
    >>> result = agreement([True, False, None, True], [True, False, False, False])
    >>> result["accuracy"].value, result["confusion"]["not attempted"]
    (0.75, {'right': 0, 'wrong': 1})
    """
    if len(found) != len(truth):
        raise InputError(f"one label per grade is needed, got {len(found)} and {len(truth)}")
    selection = [i for i, label in enumerate(truth) if label is not None]
    if not selection:
        raise InputError("no row has a human label")
    guess = np.array([found[i] is True for i in selection])
    right = np.array([bool(truth[i]) for i in selection])
    none = np.array([found[i] is None for i in selection])
    units = [groups[i] for i in selection] if groups is not None else selection
    by_unit = _cells(guess, right, units)
    rng = named_stream(seed, "agreement")
    # Units with equal counts are interchangeable: draw how often each kind of unit comes up.
    kinds, counts = np.unique(by_unit, axis=0, return_counts=True)
    sample = rng.multinomial(len(by_unit), counts / len(by_unit), size=resamples) @ kinds
    document: dict[str, Any] = {
        "schema": "calibrant.agreement/1",
        "n": len(selection),
        "groups": len(by_unit),
        "unlabelled": len(truth) - len(selection),
        "attempted": float(1.0 - none.mean()),
    }
    values, resampled = _measures(by_unit.sum(axis=0)), _measures(sample)
    for name, value in values.items():
        draws = resampled[name][np.isfinite(resampled[name])]
        document[name] = _estimate(name, float(value), draws, len(by_unit), level)
    marks = {"correct": guess, "incorrect": ~guess & ~none, "not attempted": none}
    document["confusion"] = {
        label: {"right": int((mask & right).sum()), "wrong": int((mask & ~right).sum())}
        for label, mask in marks.items()
    }
    return document


def _cells(
    guess: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_], units: Sequence[Hashable]
) -> npt.NDArray[np.int64]:
    """Count (correct, right), (correct, wrong), (not, right) and (not, wrong) of each unit."""
    index = np.array(first_appearance(units))
    cells = np.zeros((index.max() + 1, 4), dtype=np.int64)
    np.add.at(cells, (index, 2 * (~guess).astype(int) + ~right), 1)
    return cells


def _measures(cells: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    """Return accuracy, kappa, precision and recall of each row of counts."""
    hit, false, missed, refused = np.moveaxis(cells.astype(float), -1, 0)
    total = cells.sum(axis=-1).astype(float)
    guessed, right = (hit + false) / total, (hit + missed) / total
    expected = guessed * right + (1 - guessed) * (1 - right)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "accuracy": (hit + refused) / total,
            "kappa": ((hit + refused) / total - expected) / (1.0 - expected),
            "precision": hit / (hit + false),
            "recall": hit / (hit + missed),
        }


def _estimate(
    name: str, value: float, draws: npt.NDArray[np.float64], units: int, level: float
) -> Estimate:
    if not math.isfinite(value) or not len(draws):
        warnings.warn(
            f"{name} is undefined: one side uses a single label",
            UndefinedMetricWarning,
            stacklevel=3,
        )
        return Estimate(math.nan, math.nan, math.nan, n=units, level=level)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), units, level, "bootstrap-percentile")
