"""Many tests at once: p-values corrected for their number."""

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: the chance of any false claim is bounded by the level.

    Nothing is assumed about how the tests depend on each other, so confidences of one model on
    the same questions may be tested together.

    Parameters
    ----------
    p_values
        Valid p-values, shape (m,).

    References
    ----------
    Holm (1979), 'A simple sequentially rejective multiple test procedure'.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.5]).tolist()
    [0.03, 0.08, 0.5]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
