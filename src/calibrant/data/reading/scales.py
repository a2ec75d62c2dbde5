"""Which scale numbers are on: shares, percentages, levels of a questionnaire, or none."""

import re

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.data.reading.record import FRACTION, PERCENT

LEVELS, MIXED, RANK, RANK_DOWN = "levels", "mixed", "rank", "rank-down"
RANKS = frozenset([RANK, RANK_DOWN])
"""Scales of which only the order tells: a high value means sure, or a low one."""
# Tops of questionnaires, and the shares from which a column is surely on one scale.
_TOPS = (4, 5, 7, 10)
_MIXED_LEAST, _SOME, _MOST = 0.03, 0.5, 0.9
_LEAST_LEVELS = 10


class Scale(Struct, frozen=True):
    """A scale, and what makes it doubtful: nothing, `levels`, `mixed` or `rank`."""

    scale: str = FRACTION
    doubt: str = ""


def scale_of(values: Floats, name: str = "") -> Scale:
    """Return the scale that numbers are on, as far as they say it.

    Parameters
    ----------
    values
        Numbers of a column that is a confidence; NaN where there is none.
    name
        Its name: `certainty (1-5)` says which levels there are.

    Examples
    --------
    >>> scale_of(np.array([0.2, 0.9])), scale_of(np.array([55.0, 90.0])).scale
    (Scale(scale='fraction', doubt=''), 'percent')
    >>> scale_of(np.array([1.0, 4.0, 5.0] * 4)), scale_of(np.array([0.9, 0.8, 85.0])).doubt
    (Scale(scale='1-5', doubt='levels'), 'mixed')
    """
    finite = values[np.isfinite(values) & (values != -1)]
    highest = float(finite.max(initial=0.0))
    if highest <= 1 or highest > 100 or finite.min() < 0:
        return Scale()
    positive = finite[finite > 0]
    above = float((positive > 1).mean())
    whole = bool((finite == np.round(finite)).all())
    if highest <= _TOPS[-1]:
        several = finite.size >= _LEAST_LEVELS and np.unique(finite).size > 1
        levels = (
            whole and several and not (above < _SOME and np.unique(finite[finite > 1]).size < 2)
        )
        return Scale(levels_of(finite, name), LEVELS) if levels else Scale()
    if not whole and _is_mixed(finite):
        return Scale(MIXED, MIXED)
    return Scale(PERCENT if above >= _SOME else FRACTION)


def _is_mixed(known_values: Floats) -> bool:
    """Return whether shares and percentages stand in one column."""
    small = float((known_values <= 1).mean())
    if not _MIXED_LEAST < small < 1 - _MIXED_LEAST:
        return False
    shares = ((known_values > 0.3) & (known_values <= 1)).mean()
    return bool(shares > 0.8 * small and (known_values[known_values > 1] > 10).mean() > _MOST)


def levels_of(known: Floats, name: str) -> str:
    """Return the levels that a name states, or else the usual ones that hold all values.

    Examples
    --------
    >>> levels_of(np.array([1.0, 4.0]), "sure"), levels_of(np.array([2.0]), "sure (1-7)")
    ('1-4', '1-7')
    """
    confidence = re.search(r"(\d+)\s*(?:[-–/]|to)+\s*(\d+)", name)
    if confidence and int(confidence[1]) < int(confidence[2]) and known.max() <= int(confidence[2]):
        return f"{int(confidence[1])}-{int(confidence[2])}"
    highest, lowest = float(known.max()), float(known.min())
    top = 10 if "10" in re.findall(r"\d+", name) else next(t for t in _TOPS if t >= highest)
    return f"{0 if lowest < 1 or top == _TOPS[-1] else 1}-{top}"
