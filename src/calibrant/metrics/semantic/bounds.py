"""How far an error by meaning can lie from that with unlimited draws (Theorem 5.2)."""

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats
from calibrant.stats.binning import width_edges


def ece_bound(
    confidence: npt.ArrayLike, *, confidence_error: float, selection_error: float, bins: int = 10
) -> float:
    """Return the first form of Theorem 5.2, at the best eta and cut at 1.

    ``d + e + 2 (e / eta + P(a confidence lies within eta of an edge))`` with e the confidence
    error and d the selection error; the confidences at hand stand for those of unlimited draws.

    Examples
    --------
    >>> round(ece_bound([0.55, 0.95], confidence_error=0.001, selection_error=0.0), 4)
    0.041
    >>> ece_bound([0.55, 0.95], confidence_error=0.1, selection_error=0.0)
    1.0
    """
    far = _distance(np.asarray(confidence, dtype=np.float64), bins)
    # Between two distances only e / eta changes, and falls: the best eta lies just below one.
    eta = np.unique(np.append(far[far > 0], 1.0))
    near = np.searchsorted(np.sort(far), eta) / far.size
    crossing = 2 * (confidence_error / eta + near).min()
    return float(min(selection_error + confidence_error + crossing, 1.0))


def density_bound(
    confidence: npt.ArrayLike, *, confidence_error: float, selection_error: float, bins: int = 10
) -> float:
    """Return the second form of Theorem 5.2, cut at 1: ``d + e + 4 sqrt(2 M (L - 1) e)``.

    M is the largest density of confidences below 1 over the L bins. Certain answers have none;
    they lie at no inner edge.

    Examples
    --------
    >>> even = (np.arange(1000) + 0.5) / 1000
    >>> round(density_bound(even, confidence_error=0.001, selection_error=0.0), 3)
    0.538
    """
    said = np.asarray(confidence, dtype=np.float64)
    count, _ = np.histogram(said[said < 1], bins=width_edges(bins))
    density = bins * count.max() / said.size
    crossing = 4 * np.sqrt(2 * density * (bins - 1) * confidence_error)
    return float(min(selection_error + confidence_error + crossing, 1.0))


def near_an_edge(confidence: npt.ArrayLike, n: npt.ArrayLike, *, bins: int = 10) -> float:
    """Return the share of questions within a standard error of a bin's edge: condition (8).

    The leading-order theory of the gap asks that this be far below ``1 / sqrt(n)``.

    Examples
    --------
    >>> near_an_edge([0.55, 0.95, 0.45, 1.0], 50), near_an_edge([0.55, 0.95, 0.45, 1.0], 500)
    (0.5, 0.0)
    """
    said = np.asarray(confidence, dtype=np.float64)
    error = np.sqrt(said * (1 - said) / np.asarray(n, dtype=np.float64))
    return float(np.mean((_distance(said, bins) <= error) & (error > 0)))


def _distance(confidence: Floats, bins: int) -> Floats:
    """Return how far each confidence lies from the nearest inner edge of a bin; 1 without any."""
    inner = width_edges(bins)[1:-1]
    if not inner.size:
        return np.ones(confidence.size)
    return np.asarray(np.abs(confidence[:, None] - inner).min(axis=1))
