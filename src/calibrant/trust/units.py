"""Rows that belong together: fields of a document, claims of an answer, steps of a run.

A promise about rows is none about units: where single fields are wrong in at most 10 % of cases, a
document of eight fields is wrong far more often. Here a unit becomes one row, with one score and
one outcome, and what certifies rows certifies units. Of several classes it is a set that is
promised: as few classes as hold the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from calibrant.core.arrays import Floats, Ints
from calibrant.core.document import Stored
from calibrant.core.errors import InputError, require_known
from calibrant.metrics.stats.units import appearance_codes


def _product(confidence: Floats, unit: Ints, count: int) -> Floats:
    # A sum of logarithms: hundreds of fields leave nothing of a product.
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.bincount(unit, np.log(confidence), count)))


def _least(confidence: Floats, unit: Ints, count: int) -> Floats:
    least = np.full(count, np.inf)
    np.minimum.at(least, unit, confidence)
    return least


def _mean(confidence: Floats, unit: Ints, count: int) -> Floats:
    return np.asarray(np.bincount(unit, confidence, count) / np.bincount(unit, minlength=count))


# How the confidences of a unit become one: the chance that all rows are right if they were
# independent, that of the weakest row, and the average.
UNIT_SCORES: Mapping[str, Callable[[Floats, Ints, int], Floats]] = {
    "product": _product,
    "min": _least,
    "mean": _mean,
}


STOP, DROP = "stop", "drop"
"""Scores of a unit that end a run early, and that take single rows out of it."""


_MEASURES = {**UNIT_SCORES, STOP: lambda *unit: 1.0 - _least(*unit), DROP: _least}


@dataclass(frozen=True)
class UnitScore(Stored):
    """What is held against the threshold of a whole unit, made of the confidences of its rows.

    Parameters
    ----------
    how
        ``product``, ``min`` or ``mean``; ``stop``: one minus the least, for a run that ends early;
        ``drop``: the least, where rows below the threshold are taken out.

    Examples
    --------
    >>> round(UnitScore().of([0.9, 0.8, 0.99]), 4), UnitScore("min").of([0.9, 0.8])
    (0.7128, 0.8)
    """

    kind = stored_as = "unit"
    names = ("confidence",)

    how: str = "product"

    def __post_init__(self) -> None:
        require_known([self.how], _MEASURES, "there is no score {} of a unit")

    def of(self, confidences: ArrayLike) -> float:
        """Return the score of one unit from the confidences of its rows."""
        values = np.asarray(confidences, dtype=np.float64).reshape(-1)
        if not values.size:
            raise InputError("a unit has at least one confidence")
        bad = values[~((values >= 0) & (values <= 1))]
        if bad.size:
            raise InputError(f"each confidence of a unit must be between 0 and 1, got {bad[0]:g}")
        return float(_MEASURES[self.how](values, np.zeros(values.size, dtype=np.int64), 1)[0])

    def require_pass(self) -> None:
        """Refuse to let a unit pass by a score that stops runs, or drops rows."""
        if self.how in (STOP, DROP):
            name, says = {
                STOP: ("stops", "when a run stops"),
                DROP: ("keeps", "which rows are kept"),
            }[self.how]
            raise InputError(
                f"this policy lets no unit pass: it says {says}",
                hint=f"use policy.{name}([0.9, 0.8])",
            )

    def predict(self, frame: pl.DataFrame) -> Floats:
        """Return the score of each unit of a table: of its list of confidences, or as it is."""
        column = frame["confidence"]
        if not column.dtype.is_nested():
            return np.asarray(column.cast(pl.Float64).to_numpy())
        return np.array([self.predict_one({"confidence": cell}) for cell in column.to_list()])

    def predict_one(self, row: Mapping[str, Any]) -> float:
        """Return the score of one unit; of one with a row without a confidence none is enough."""
        confidence = row.get("confidence")
        if not isinstance(confidence, Sequence | np.ndarray) or isinstance(confidence, str):
            raise InputError(
                "this policy is about whole units: it takes the confidences of all rows of one",
                hint="give a list, such as policy.answers([0.9, 0.8])",
            )
        is_known = [value for value in confidence if value is not None and value == value]
        return self.of(is_known) if is_known and len(is_known) == len(confidence) else -np.inf


class UnitRows(Struct, frozen=True):
    """One row per unit, in the order of first appearance.

    Parameters
    ----------
    name
        What each unit is called.
    score
        Its score.
    wrong
        1 where any of its rows is wrong.
    rows
        How many rows it has.
    """

    name: Sequence[object]
    score: Floats
    wrong: Floats
    rows: Ints


def unit_codes(unit: ArrayLike) -> tuple[list[object], Ints]:
    """Return the names of units in order of first appearance, and the number of each row's unit."""
    names, codes = appearance_codes(np.asarray(unit))
    return names.tolist(), codes


def unit_rows(
    confidence: ArrayLike, correct: ArrayLike, unit: ArrayLike, *, score: str = "product"
) -> UnitRows:
    """Return one row per unit: wrong if any of its rows is.

    Parameters
    ----------
    confidence, correct
        Confidences in [0, 1] and outcomes, one per row, none missing.
    unit
        What each row belongs to.
    score
        ``product``, ``min`` or ``mean`` of the unit's confidences.

    Examples
    --------
    >>> found = unit_rows([0.9, 0.9, 0.5], [1, 0, 1], ["a", "a", "b"])
    >>> found.name, found.score.round(2).tolist(), found.wrong.tolist(), found.rows.tolist()
    (['a', 'b'], [0.81, 0.5], [1.0, 0.0], [2, 1])
    """
    how = UnitScore(score).how
    names, code = unit_codes(unit)
    c, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    wrong = -_least(y, code, len(names)) + 1.0
    rows = np.bincount(code, minlength=len(names))
    return UnitRows(names, _MEASURES[how](c, code, len(names)), wrong, rows)


def run_rows(confidence: ArrayLike, succeeded: ArrayLike, unit: ArrayLike) -> UnitRows:
    """Return one row per run for stopping it early: what is lost if it is stopped and was right.

    A run is stopped at the first step whose confidence is at most t: it is, where its least
    confidence is that low. The score is one minus that least confidence, and 'wrong' is a run that
    would have succeeded: a certified threshold s keeps the share of those among the stopped below
    the limit, with t = 1 - s.

    Examples
    --------
    >>> found = run_rows([0.9, 0.2, 0.8], [1, 1, 0], ["a", "a", "b"])
    >>> found.score.round(2).tolist(), found.wrong.tolist()
    ([0.8, 0.2], [1.0, 0.0])
    """
    names, code = unit_codes(unit)
    y = np.asarray(succeeded, dtype=np.float64)
    least, most = _least(y, code, len(names)), -_least(-y, code, len(names))
    if (least != most).any():
        name = names[int(np.argmax(least != most))]
        raise InputError(
            f"run {name!r} has steps with different outcomes; stopping needs the outcome of the "
            "whole run on each of its steps"
        )
    low = _least(np.asarray(confidence, dtype=np.float64), code, len(names))
    rows = np.bincount(code, minlength=len(names))
    return UnitRows(names, 1.0 - low, least, rows)


def steps_saved(confidence: ArrayLike, unit: ArrayLike, at_most: float) -> float:
    """Return the share of all steps that are never taken when runs stop at a confidence `at_most`.

    Rows of a run stand in the order of its steps.

    Examples
    --------
    >>> steps_saved([0.9, 0.2, 0.8, 0.9], ["a", "a", "a", "b"], 0.3)
    0.25
    """
    _, code = unit_codes(unit)
    order = np.argsort(code, kind="stable")
    low = np.asarray(confidence, dtype=np.float64)[order] <= at_most
    grouped = code[order]
    start = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    earlier: Ints = np.cumsum(low) - low
    # Steps after the one that stops the run: some earlier step of the same run was that low.
    skipped = earlier > np.repeat(earlier[start], np.diff(np.r_[start, len(grouped)]))
    return float(skipped.mean())


def tolerance_rank(n: int, error: float, delta: float) -> int | None:
    """Return the least k such that the k-th smallest of n values covers 1 - error of all others.

    It does with probability 1 - `delta` at least, whatever the distribution (Wilks, 1941). None
    where n is too small for that.

    Examples
    --------
    >>> tolerance_rank(100, 0.1, 0.1), tolerance_rank(20, 0.1, 0.1)
    (95, None)
    """
    # Loaded here: it takes half a second, and most verbs need none of it.
    from scipy.stats import binom

    k = int(binom.isf(delta, n, 1.0 - error)) + 1
    return k if k <= n else None


def backoff_threshold(
    confidence: ArrayLike, correct: ArrayLike, unit: ArrayLike, *, max_error: float, delta: float
) -> float | None:
    """Return the confidence above which claims are kept, so that few answers keep a wrong one.

    With probability 1 - `delta` over the units drawn, at most `max_error` of all units have a wrong
    claim with a confidence above the threshold. A unit whose wrong claims are all dropped passes,
    one of which nothing is left as well. None where there are too few units.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> said, unit = rng.random(2000), np.repeat(np.arange(400), 5)
    >>> right = rng.random(2000) < 0.6 + 0.4 * said
    >>> 0.5 < backoff_threshold(said, right, unit, max_error=0.1, delta=0.1) < 1
    True
    """
    names, code = unit_codes(unit)
    c, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    # The highest confidence of a wrong claim: what has to be dropped. Without one, nothing has.
    requirement = -_least(np.where(y < 1, -c, 0.0), code, len(names))
    k = tolerance_rank(len(names), max_error, delta)
    return None if k is None else float(np.sort(requirement)[k - 1])


class PredictionSets(Struct, frozen=True):
    """Sets of classes with a promise: at most `max_error` of them miss the right one.

    Parameters
    ----------
    mass
        The most likely classes are taken until they hold more than this.
    max_error, delta
        What is promised, and the largest chance that the promise fails.
    n
        How many labels certified it.
    """

    mass: float
    max_error: float
    delta: float
    n: int

    @classmethod
    def fit(
        cls, probabilities: ArrayLike, label: ArrayLike, *, max_error: float, delta: float = 0.1
    ) -> PredictionSets:
        """Find the least mass that keeps the promise.

        Parameters
        ----------
        probabilities
            One row per item, one column per class.
        label
            Number of the right class of each item.
        max_error, delta
            Largest share of sets without the right class, and the largest chance of more.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> p = rng.dirichlet(np.full(4, 0.5), 600)
        >>> right = np.array([rng.choice(4, p=row) for row in p])
        >>> sets = PredictionSets.fit(p, right, max_error=0.1)
        >>> bool(sets.covers(p)[np.arange(600), right].mean() > 0.9)
        True
        """
        p = _checked(probabilities)
        right = np.asarray(label)
        if right.shape != p.shape[:1]:
            raise InputError(f"{len(p)} rows of probabilities and {right.size} labels")
        k = tolerance_rank(len(p), max_error, delta)
        if k is None:
            raise InputError(
                f"{len(p)} labels are too few for sets that miss at most {max_error:g}"
            )
        before = mass_before(p)[np.arange(len(p)), right.astype(np.int64)]
        return cls(float(np.sort(before)[k - 1]), max_error, delta, len(p))

    def covers(self, probabilities: ArrayLike) -> NDArray[np.bool_]:
        """Return for each item and class whether the class is in its set; none is empty."""
        # Sums of the same shares differ in their last digit.
        return np.asarray(mass_before(_checked(probabilities)) <= self.mass + 1e-12)


@dataclass(frozen=True)
class ClassSets(Stored):
    """Sets of the most likely classes that hold more than a mass, as a policy serves them.

    Examples
    --------
    >>> ClassSets(["spam", "news", "mail"]).holds([0.7, 0.05, 0.25], 0.9)
    ['spam', 'mail']
    """

    kind = stored_as = "sets"
    names = ("confidence",)

    classes: Sequence[str]

    def holds(self, probabilities: ArrayLike, mass: float | None) -> list[str]:
        """Return the classes of a set, most likely first; all of them without a promise."""
        p = np.asarray(probabilities, dtype=np.float64).reshape(1, -1)
        if p.shape[1] != len(self.classes):
            raise InputError(
                f"a set needs {len(self.classes)} probabilities, one for each of "
                f"{', '.join(self.classes[:8])}; got {p.shape[1]}"
            )
        inside = PredictionSets(1.0 if mass is None else mass, 0.5, 0.5, 1).covers(p)[0]
        return [self.classes[place] for place in np.argsort(-p[0], kind="stable") if inside[place]]

    def predict(self, _rows: object) -> Floats:
        """Refuse: a set is no answer."""
        raise InputError("this policy gives sets of classes", hint="use policy.holds([0.7, 0.3])")

    predict_one = predict


def _checked(probabilities: ArrayLike) -> Floats:
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] < 2:
        raise InputError("probabilities need one row per item and a column per class")
    if not ((p >= 0) & (p <= 1)).all():
        row = int(np.argmax(~((p >= 0) & (p <= 1)).all(axis=1)))
        raise InputError(f"row {row + 1} has a probability that is not between 0 and 1")
    return p


def mass_before(p: Floats) -> Floats:
    """Return for each class the mass of those that are more likely: 0 for the most likely one.

    A class counts its own mass in the usual score. Sets of a sure model are larger by that: of four
    options 1.8 on average instead of 1.1, where the most likely one is right in 89 %.
    """
    order = np.argsort(-p, axis=1, kind="stable")
    ordered = np.take_along_axis(p, order, 1)
    mass = np.empty_like(p)
    np.put_along_axis(mass, order, np.cumsum(ordered, axis=1) - ordered, 1)
    return mass
