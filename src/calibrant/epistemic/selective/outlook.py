"""What more labels would allow, judged by the errors seen so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from calibrant.core.arrays import Floats
from calibrant.epistemic.selective.certify import labels_to_certify

# Two thirds of the labels certify.
CERTIFYING = 2 / 3
_FEWEST_SEEN = 25
_TIMES = (2, 4, 10)


def labels_for_any(
    reached: Floats, errors: Floats, n: int, max_error: float, delta: float
) -> int | None:
    """Return about how many labels would certify some threshold; None where none seems able to.

    Examples
    --------
    >>> labels_for_any(np.array([50.0, 100.0]), np.array([3.0, 20.0]), 100, 0.1, 0.1)
    2283
    """
    needed = []
    for count, wrong in zip(reached.tolist(), errors.tolist(), strict=True):
        if count < _FEWEST_SEEN:
            continue
        answered = labels_to_certify((wrong + 1) / (count + 2), max_error, delta)
        if answered is not None:
            needed.append(answered / (count / n) / CERTIFYING)
    return int(np.ceil(min(needed))) if needed else None


def shares_with_more(
    reached: Floats, errors: Floats, labels: int, start: int, max_error: float, delta: float
) -> list[dict[str, Any]]:
    """Return the share that 2, 4 and 10 times the labels would likely certify, and the limit."""
    total = reached[-1]
    rate = (errors + 1) / (reached + 2)

    def share(passes: npt.NDArray[np.bool_]) -> float:
        after = passes[start:]
        last = len(after) if after.all() else int(np.argmin(after))
        return float(reached[start + last - 1] / total) if last else 0.0

    found = []
    for times in _TIMES:
        n = np.rint(times * reached)
        passes = bdtr(np.floor(rate * n), n.astype(np.int64), max_error) <= delta
        found.append({"labels": times * labels, "share": share(passes)})
    return [*found, {"labels": None, "share": share(rate <= max_error)}]
