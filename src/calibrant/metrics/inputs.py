"""The one place where the arrays of a metric are checked; nothing is copied or clipped."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import InputError, UndefinedMetricWarning
from calibrant.core.arrays import Array, MaybeArray

# Rows looked at once when a check needs a temporary of the input's length.
PIECE = 65_536
# Weights between these can be squared and summed as they are.
_SMALL, _LARGE = 1e-100, 1e100
# A share of the largest weight below which a row changes no digit of any sum.
_NOTHING = 1e-60


class Checked(NamedTuple):
    """Arrays that passed the checks: same length, finite, in range."""

    confidence: Array
    correct: Array
    weights: Array | None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.confidence.shape[0])

    @property
    def total(self) -> float:
        """Sum of the weights, or the number of rows."""
        if self.weights is None:
            return float(self.rows)
        return float(self.weights.sum(dtype=np.float64))

    def present(self) -> Checked:
        """Return the rows that weigh something; a weight of 0 means the row is absent."""
        if self.weights is None or self.weights.all():
            return self
        keep = self.weights > 0
        return Checked(self.confidence[keep], self.correct[keep], self.weights[keep])


def check(
    confidence: ArrayLike,
    correct: ArrayLike,
    weights: MaybeArray = None,
    *,
    probability: bool = True,
    binary: bool = False,
) -> Checked:
    """Check the arrays of a metric and return them as numpy arrays, uncopied where possible.

    Parameters
    ----------
    confidence
        Finite; in [0, 1] where `probability`.
    correct
        Outcomes in [0, 1]; exactly 0 or 1 (or false, true) where `binary`.
    weights
        Finite, not negative, not all zero. A weight of 2 counts as two equal rows in a value.

    Raises
    ------
    InputError
        Names the rule, the first row that breaks it and its value.
    """
    scores = _floats("confidence", confidence)
    outcomes = _numbers("correct", correct)
    if scores.shape != outcomes.shape:
        raise InputError(
            f"confidence and correct have the same length, got {scores.size} and {outcomes.size}"
        )
    if scores.size == 0:
        raise InputError("a metric needs at least one row, got none")
    if probability:
        _in_unit_range("confidence", scores, hint=_SCORE_HINT)
    elif not (np.minimum.reduce(scores) > -math.inf and np.maximum.reduce(scores) < math.inf):
        _refuse("confidence", scores, "is a finite number", np.isfinite)
    if outcomes.dtype != np.bool_:
        _in_unit_range("correct", outcomes, hint="outcomes are 0, 1 or a grade between")
        if binary and is_graded(outcomes):
            hint = "graded outcomes: use Brier, log loss, ECE, CORP, AUROC or AURC, or a threshold"
            rule = "is 0 or 1 for this metric"
            _refuse("correct", outcomes, rule, lambda x: (x == 0) | (x == 1), hint)
    return Checked(scores, outcomes, check_weights(weights, scores.size))


def check_weights(weights: MaybeArray, rows: int) -> Array | None:
    """Check weights for `rows` rows."""
    if weights is None:
        return None
    values = _floats("weights", weights)
    if values.shape != (rows,):
        raise InputError(f"weights have one value per row, got {values.size} for {rows} rows")
    low, high = float(np.minimum.reduce(values)), float(np.maximum.reduce(values))
    if not (low >= 0 and high < math.inf):
        _refuse(
            "weights", values, "are finite and not negative", lambda x: (x >= 0) & np.isfinite(x)
        )
    if high == 0:
        raise InputError("weights are not all zero")
    # Only their ratios count; squares of such numbers would leave the range of a float.
    if not _SMALL < high < _LARGE:
        values, low, high = values / high, low / high, 1.0
    return values if low >= high * _NOTHING else np.where(values < high * _NOTHING, 0.0, values)


def check_bins(bins: int) -> int:
    """Check a number of bins."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= 100_000:
        raise InputError(f"bins is a whole number from 1 to 100,000, got {bins!r}")
    return int(bins)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Check an option that is one of a few words."""
    if value not in choices:
        raise InputError(f"{name} is one of {', '.join(choices)}; got {value!r}")
    return value


def check_level(level: float) -> float:
    """Check the level of an interval."""
    if not 0 < level < 1:
        raise InputError(f"level is between 0 and 1, got {level!r}", hint="0.95 means 95 %")
    return float(level)


def undefined(name: str, reason: str) -> float:
    """Warn that the metric is undefined here and return NaN."""
    warnings.warn(f"{name} is undefined: {reason}", UndefinedMetricWarning, stacklevel=3)
    return math.nan


_SCORE_HINT = (
    "a calibration metric takes probabilities: divide percentages by 100, leave out rows "
    "without a confidence, or recalibrate a score first"
)


def _numbers(name: str, values: ArrayLike) -> Array:
    try:
        # Looked at last: naming it loads the module of masked arrays.
        if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
            # Under a mask lies anything: a masked value is a missing one.
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} is one column of numbers, got rows of unequal length") from None
    if array.ndim != 1:
        raise InputError(f"{name} is one column of numbers, got shape {array.shape}")
    if array.dtype.kind not in "buif":
        if array.size == 0:
            return array.astype(np.float64)
        kind = "text" if array.dtype.kind in "US" else f"dtype {array.dtype}"
        raise InputError(
            f"{name} holds numbers, got {kind} such as {array[0]!r}",
            hint="convert the column to numbers; leave out rows that have none",
        )
    return array


def _floats(name: str, values: ArrayLike) -> Array:
    array = _numbers(name, values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


# Bits of 1.0 by dtype, read as an unsigned integer of the same size.
_BITS_OF_ONE: dict[Any, tuple[Any, int]] = {
    np.dtype(np.float64): (np.uint64, 0x3FF0_0000_0000_0000),
    np.dtype(np.float32): (np.uint32, 0x3F80_0000),
}


def _in_unit_range(name: str, values: Array, *, hint: str) -> None:
    # Numbers from 0 to 1 have bits from 0 to those of 1.0; negative ones, larger ones and NaN
    # have larger bits. One pass thus settles what minimum and maximum need two for.
    bits = _BITS_OF_ONE.get(values.dtype)
    if bits is not None and np.maximum.reduce(values.view(bits[0])) <= bits[1]:
        return
    # A NaN makes both comparisons false, so it is caught here too. The ufuncs' own reduce saves
    # a third of the time of ndarray.min on short arrays.
    if not (np.minimum.reduce(values) >= 0 and np.maximum.reduce(values) <= 1):
        _refuse(name, values, "is a number in [0, 1]", lambda x: (x >= 0) & (x <= 1), hint)


def is_graded(outcomes: Array) -> bool:
    """Return whether checked outcomes hold grades between 0 and 1.

    Examples
    --------
    >>> is_graded(np.array([0.0, 1.0])), is_graded(np.array([0.0, 0.5]))
    (False, True)
    """
    if outcomes.dtype == np.bool_ or outcomes.dtype.kind in "iu":
        return False
    pieces = (outcomes[start : start + PIECE] for start in range(0, outcomes.size, PIECE))
    return not all(bool(((piece == 0) | (piece == 1)).all()) for piece in pieces)


def _refuse(
    name: str, values: Array, rule: str, good: Callable[[Array], Array], hint: str | None = None
) -> None:
    for start in range(0, values.size, PIECE):
        bad = np.flatnonzero(~good(values[start : start + PIECE]))
        if bad.size:
            row = start + int(bad[0])
            raise InputError(f"{name} {rule}, got {values[row].item()!r}", row=row + 1, hint=hint)
