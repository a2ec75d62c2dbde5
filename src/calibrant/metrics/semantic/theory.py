"""What the theory of Sem-ECE predicts: biases, regimes and bounds."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtr

from calibrant.core.arrays import Array, Floats, Ints, MaybeArray
from calibrant.metrics.semantic.pool import DrawPool
from calibrant.metrics.stats.binning import width_edges

JENSEN_BOUNDARY = 0.30600159048124065


"""lam*: below it the upward bias of Sem1 exceeds the downward bias of Sem2.

The root of phi(2 lam) = 4 lam Phi(-2 lam).
"""


def jensen_bias(half_margin: ArrayLike) -> Floats:
    """Return J(lam) = phi(2 lam) - 2 lam Phi(-2 lam), the leading upward bias of Sem1.

    In units of sqrt(p/n): E[c1 - c*] = sqrt(p/n) J(lam).
    """
    twice = 2 * np.asarray(half_margin, dtype=np.float64)
    # scipy.stats takes half a second to load for this density.
    density = np.exp(-np.square(twice) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(density - selection_bias(half_margin))


def selection_bias(half_margin: ArrayLike) -> Floats:
    """Return S(lam) = 2 lam Phi(-2 lam), the leading downward bias of Sem2.

    In units of sqrt(p/n): E[c2 - c*] = -sqrt(p/n) S(lam).
    """
    twice = 2 * np.asarray(half_margin, dtype=np.float64)
    return np.asarray(twice * ndtr(-twice))


def standardised_margin(margin: ArrayLike, mass: ArrayLike, n: ArrayLike) -> Floats:
    """Return D / sqrt(p / n): the top-two margin in units of its leading standard error."""
    spread = np.sqrt(np.asarray(mass, dtype=np.float64) / np.asarray(n, dtype=np.float64))
    return np.asarray(margin, dtype=np.float64) / spread


def predicted_gap(
    margin: ArrayLike, mass: ArrayLike, n: ArrayLike, *, selection_n: MaybeArray = None
) -> float:
    """Return the leading-order Sem1-ECE minus Sem2-ECE under over-confidence.

    The mean of `predicted_gaps`. Only the two leading classes are in it: `pool_gap` also has the
    others.
    """
    return float(np.mean(predicted_gaps(margin, mass, n, selection_n=selection_n)))


def predicted_gaps(
    margin: ArrayLike, mass: ArrayLike, n: ArrayLike, *, selection_n: MaybeArray = None
) -> Floats:
    """Return the leading-order E[c1 - c2] of each question (Theorem 5.6).

    With one block of n draws for both estimators this is sqrt(p) phi(2 lam) / sqrt(n). Where
    Sem2 selects on a smaller block of a shared pool, pass its size as `selection_n`: then the
    Jensen part is taken at n and the selection part at `selection_n`.
    """
    upward, downward = _biases(margin, mass, n, selection_n)
    return upward + downward


def _biases(
    margin: ArrayLike, mass: ArrayLike, n: ArrayLike, selection_n: MaybeArray
) -> tuple[Floats, Floats]:
    """Return how far Sem1 is too high and Sem2 too low, to leading order."""
    modes = (jensen_bias, n), (selection_bias, n if selection_n is None else selection_n)
    upward, downward = (
        np.sqrt(np.asarray(mass, dtype=np.float64) / np.asarray(size, dtype=np.float64))
        * bias(standardised_margin(margin, mass, size) / 2)
        for bias, size in modes
    )
    return upward, downward


def oracle_advantage(
    margin: ArrayLike, mass: ArrayLike, n: ArrayLike, *, selection_n: MaybeArray = None
) -> Floats:
    """Return how much closer Sem2's confidence is to unlimited draws than Sem1's (Theorem 5.7).

    To leading order, per question and under over-confidence: sqrt(p/n) (J(lam) - S(lam)), positive
    exactly where lam < lam*. Its mean predicts |Sem1-ECE - ECE*| - |Sem2-ECE - ECE*| for
    questions that are all Jensen-dominated. `selection_n` as in `predicted_gaps`.

    Examples
    --------
    >>> oracle_advantage([0.0, 0.3], [1.0, 1.0], 50).round(4).tolist()
    [0.0564, -0.0042]
    """
    upward, downward = _biases(margin, mass, n, selection_n)
    return upward - downward


def regimes(margin: ArrayLike, mass: ArrayLike, classes: ArrayLike, n: ArrayLike) -> Array:
    """Name the regime of each question: ``jensen``, ``low-margin`` or ``large-margin``.

    Jensen-dominated where lam < lam*; large margin where mt^2 >= log K; low margin between. A
    question with one observed class has log K = 0 and is of large margin.

    Examples
    --------
    >>> regimes([0.0, 0.1, 0.9], [1.0, 1.0, 1.0], [2, 5, 2], 50).tolist()
    ['jensen', 'low-margin', 'large-margin']
    """
    standard = standardised_margin(margin, mass, n)
    large = standard**2 >= np.log(np.asarray(classes, dtype=np.float64))
    jensen = standard / 2 < JENSEN_BOUNDARY
    # log 2 = 0.69 exceeds (2 lam*)^2 = 0.38, so 'jensen' lies inside low margin for every K >= 2.
    return np.where(large, "large-margin", np.where(jensen, "jensen", "low-margin"))


def selection_error_bound(
    margin: ArrayLike, mass: ArrayLike, classes: ArrayLike, n: ArrayLike
) -> Floats:
    """Return (K - 1) exp(-n D^2 / (2 p)), a bound on choosing another class than the mode.

    It bounds a probability, so it is cut at 1, where it says nothing.
    """
    standard = standardised_margin(margin, mass, n)
    rivals = np.asarray(classes, dtype=np.float64) - 1
    return np.minimum(rivals * np.exp(-(standard**2) / 2), 1.0)


def pointwise_bias_bound(
    margin: ArrayLike, mass: ArrayLike, classes: ArrayLike, n: ArrayLike, *, held_out: bool = False
) -> Floats:
    """Return the bound of Theorem 5.1 on |E[c] - c*| of each question, cut at 1.

    The smaller of C sqrt(log(2K) / (2n)) and the selection-error bound. The constant is 1 for
    Sem1 and 2 for Sem2 (`held_out`): the selected class falls short by at most two deviations of
    a frequency.

    Examples
    --------
    >>> pointwise_bias_bound([0.0, 0.8], [0.8, 0.9], [5, 3], 50).round(4).tolist()
    [0.1517, 0.0]
    """
    constant = 2.0 if held_out else 1.0
    count = np.asarray(n, dtype=np.float64)
    uniform = constant * np.sqrt(np.log(2 * np.asarray(classes, dtype=np.float64)) / (2 * count))
    return np.minimum(uniform, selection_error_bound(margin, mass, classes, n))


def confidence_error_bound(
    top: ArrayLike,
    margin: ArrayLike,
    mass: ArrayLike,
    classes: ArrayLike,
    n: ArrayLike,
    *,
    evaluation_n: MaybeArray = None,
) -> Floats:
    """Return the bound on E|c - c*|: Theorem 5.3 (Sem1), or 5.4 with `evaluation_n` (Sem2).

    Both are cut at 1, the largest error that a frequency can have.

    Parameters
    ----------
    top
        Probability of the mode.
    margin, mass, classes, n
        Top-two margin and mass, number of classes, size of the selection block.
    evaluation_n
        Size of the held-out block; None for Sem1.
    """
    p1 = np.asarray(top, dtype=np.float64)
    size = np.asarray(n if evaluation_n is None else evaluation_n, dtype=np.float64)
    bound = np.sqrt(p1 * (1 - p1) / size) + selection_error_bound(margin, mass, classes, n)
    if evaluation_n is None:
        uniform = np.log(2 * np.asarray(classes, dtype=np.float64)) / (2 * np.asarray(n))
        bound = np.minimum(np.sqrt(uniform), bound)
    return np.asarray(np.minimum(bound, 1.0))


# Numbers that one chunk of questions holds at once.
_CHUNK = 2_000_000


_TINY = 1e-300


def pool_gap(pool: DrawPool, selection_n: Ints) -> float:
    """Return the predicted mean of c1 - c2.

    Per question, the larger of two predictions: the expansion for the two leading classes, which
    the published theory has, and independent Poisson counts for all classes, which see that with
    many rivals one of them is soon ahead by chance.

    Examples
    --------
    >>> from calibrant.metrics.semantic import pool_draws
    >>> pool = pool_draws(["a"] * 20, np.arange(20) % 10, np.zeros(20))
    >>> round(pool_gap(pool, np.array([10])), 3)
    0.12
    """
    first, second = pool.top_two()
    two = predicted_gaps(first - second, first + second, pool.size, selection_n=selection_n)
    number = many_class_gaps(pool.answers / pool.size[:, None], pool.size, selection_n)
    return float(np.maximum(two, number).mean())


def many_class_gaps(shares: ArrayLike, n: ArrayLike, selection_n: ArrayLike) -> Floats:
    """Return E[c1 - c2] of each question where class counts are independent Poisson numbers.

    Parameters
    ----------
    shares
        (questions, classes) probabilities, zero-padded; they may add up to less than 1.
    n, selection_n
        Draws, and draws of the selection block, per question.
    """
    table = -np.sort(-np.asarray(shares, dtype=np.float64), axis=1)
    table = table[:, : max(int((table > 0).sum(axis=1).max(initial=1)), 1)]
    draws = np.broadcast_to(np.asarray(n, dtype=np.int64), table.shape[:1])
    block = np.broadcast_to(np.asarray(selection_n, dtype=np.int64), table.shape[:1])
    keys = np.column_stack([draws, block, table])
    kinds, inverse = np.unique(keys, axis=0, return_inverse=True)
    gaps = np.empty(len(kinds))
    for size in np.unique(kinds[:, :2], axis=0):
        rows = np.flatnonzero((kinds[:, :2] == size).all(axis=1))
        step = max(1, int(_CHUNK // (table.shape[1] * (size[0] + 1))))
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            gaps[part] = _gaps(kinds[part, 2:], int(size[0]), int(size[1]))
    return gaps[inverse.reshape(-1)]


def _gaps(shares: Floats, n: int, block: int) -> Floats:
    upward = 1 - np.exp(np.log(np.maximum(_poisson(shares, n)[1], _TINY)).sum(axis=1))
    chance, below = _poisson(shares, block)
    strictly = below - chance
    # A rival that holds as many draws wins half of the time.
    rival = np.log(np.maximum((below + strictly) / 2, _TINY))
    lead = (chance * np.exp(rival.sum(axis=1, keepdims=True) - rival)).sum(axis=2)
    lead = np.where(shares > 0, lead, 0.0)
    selected = (lead * shares).sum(axis=1) / lead.sum(axis=1)
    return np.asarray(upward.sum(axis=1) / n - selected)


def _poisson(shares: Floats, draws: int) -> tuple[Floats, Floats]:
    """Return chance and cumulative chance of 0 to `draws`, (questions, classes, counts)."""
    counts = np.arange(draws + 1.0)
    mean = draws * shares[:, :, None]
    logs = counts * np.log(np.maximum(mean, _TINY)) - mean - gammaln(counts + 1)
    chance = np.where(mean > 0, np.exp(logs), counts == 0)
    return chance, np.minimum(np.cumsum(chance, axis=2), 1.0)


def ece_bound(
    confidence: ArrayLike, *, confidence_error: float, selection_error: float, bins: int = 10
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
    confidence: ArrayLike, *, confidence_error: float, selection_error: float, bins: int = 10
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
    confidences = np.asarray(confidence, dtype=np.float64)
    count, _ = np.histogram(confidences[confidences < 1], bins=width_edges(bins))
    density = bins * count.max() / confidences.size
    crossing = 4 * np.sqrt(2 * density * (bins - 1) * confidence_error)
    return float(min(selection_error + confidence_error + crossing, 1.0))


def near_an_edge(confidence: ArrayLike, n: ArrayLike, *, bins: int = 10) -> float:
    """Return the share of questions within a standard error of a bin's edge: condition (8).

    The leading-order theory of the gap asks that this be far below ``1 / sqrt(n)``.

    Examples
    --------
    >>> near_an_edge([0.55, 0.95, 0.45, 1.0], 50), near_an_edge([0.55, 0.95, 0.45, 1.0], 500)
    (0.5, 0.0)
    """
    confidences = np.asarray(confidence, dtype=np.float64)
    error = np.sqrt(confidences * (1 - confidences) / np.asarray(n, dtype=np.float64))
    return float(np.mean((_distance(confidences, bins) <= error) & (error > 0)))


def _distance(confidence: Floats, bins: int) -> Floats:
    """Return how far each confidence lies from the nearest inner edge of a bin; 1 without any."""
    inner = width_edges(bins)[1:-1]
    if not inner.size:
        return np.ones(confidence.size)
    return np.asarray(np.abs(confidence[:, None] - inner).min(axis=1))
