"""scipy's isotonic regression without the rest of `scipy.optimize`.

The package takes a quarter of a second to load, more than most audits need for anything else, and
one compiled function of it is used here. Where that function is not found as expected, the public
one is taken: the numbers are the same.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrant.core.arrays import Floats

Pooled: TypeAlias = tuple[Floats, NDArray[np.intp]]


def pooled_adjacent(values: Floats, weights: Floats, *, spent: bool = False) -> Pooled:
    """Return the rising fit to values, and where its blocks begin.

    Parameters
    ----------
    values, weights
        Of equal length; weights above 0.
    spent
        Whether both are needed no more, and may be overwritten.

    Examples
    --------
    >>> fitted, starts = pooled_adjacent(np.array([1.0, 3.0, 2.0]), np.ones(3))
    >>> fitted.tolist(), starts.tolist()
    ([1.0, 2.5, 2.5], [0, 1])
    """
    if not spent:
        values, weights = (np.array(given, np.float64) for given in (values, weights))
    return _routine()(values, weights)


@cache
def _routine() -> Callable[[Floats, Floats], Pooled]:
    folder = Path(scipy.__file__).parent / "optimize"
    spec = importlib.machinery.PathFinder.find_spec("_pava_pybind", [str(folder)])
    if spec is None or spec.loader is None:
        return _public
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = _compiled(module.pava)
        fitted, starts = found(np.array([1.0, 3.0, 2.0]), np.ones(3))
    except (ImportError, AttributeError, TypeError, ValueError):
        return _public
    return found if fitted.tolist() == [1.0, 2.5, 2.5] and starts.tolist() == [0, 1] else _public


def _compiled(pava: Any) -> Callable[[Floats, Floats], Pooled]:
    """Return the compiled routine, which works in place."""

    def pooled(values: Floats, weights: Floats) -> Pooled:
        # The starts of blocks have one place more than values.
        starts = np.full(values.shape[0] + 1, -1, np.intp)
        fitted, _, starts, blocks = pava(values, weights, starts)
        return fitted, starts[:blocks]

    return pooled


def _public(values: Floats, weights: Floats) -> Pooled:
    from scipy.optimize import isotonic_regression

    found = isotonic_regression(values, weights=weights)
    return found.x, found.blocks[:-1]
