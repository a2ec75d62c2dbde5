"""A curve from confidence to the chance of being right: log odds at knots, averaged over roughness.

Discrete and continuous confidences take one rule. Straight lines in the normal score of the rank
and in the log odds of the confidence carry most of it; parts of unknown size carry the rest. Every
kind of curve has a Gaussian posterior around its mode, and the kinds are weighed by their evidence.
"""

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from scipy import special

from calibrant.core.arrays import Floats, Indices

MOST_KNOTS = 20
MOST_FINE_KNOTS = 39
MOST_GROUPS = 200
# Ranks and confidences nearer to the ends than this count as this far away. Whether a model's
# .9999 says more than its .98 the labels decide: kinds of curves differ in their edge
# (docs/simulations/mend.md).
_RANK_EDGE = 0.005
_FINE_EDGE, _EDGE, _COARSE_EDGE = 1e-6, 1e-4, 0.02
_LEVEL_SD = 2.5
_KERNEL_LENGTH = 0.5
_JITTER = 1e-5
_STEPS = 50
# Likelihoods of thousands of labels are told apart down to this.
_ROUNDING = 1e-8


class Parts(NamedTuple):
    """Sizes, in log odds, of what a curve may have beside its straight lines.

    `edge` is how near to 0 and 1 a confidence still tells something; `rise` the slope that is
    expected of the line in the log odds of the confidence.
    """

    smooth: float = 0.0
    rough: float = 0.0
    loose: float = 0.0
    edge: float = _EDGE
    rise: float = 0.0


class Belief(Struct, frozen=True):
    """What is thought of the curve before labels.

    Parameters
    ----------
    slope
        Standard deviation of either slope, in log odds per standard deviation.
    kinds
        Kinds of curves: a smooth part, a rough one (it may jump), and one loose at every knot.
    shares
        How likely each kind is.
    """

    slope: float
    kinds: tuple[Parts, ...]
    shares: tuple[float, ...]


# The map is a smooth curve; the belief behind promises and intervals also holds steps and waves,
# which a smooth belief would promise away: see docs/simulations/mend.md.
_EDGES = (_FINE_EDGE, _EDGE, _COARSE_EDGE)
PLAIN = Belief(
    0.5,
    (
        *(Parts(smooth=size, edge=edge) for size in (0.0, 0.15) for edge in _EDGES),
        *(Parts(smooth=size) for size in (0.3, 0.6, 1.2)),
        Parts(edge=_FINE_EDGE, rise=0.8),
    ),
    (0.15, 0.15, 0.15, 0.06, 0.06, 0.06, 0.14, 0.09, 0.05, 0.09),
)
WIDE = Belief(
    1.0,
    (
        Parts(rough=0.6),
        Parts(rough=1.2),
        Parts(rough=2.4),
        Parts(rough=0.6, loose=0.3),
        Parts(rough=0.6, loose=0.6),
    ),
    (0.25, 0.25, 0.2, 0.2, 0.1),
)


class Grid(Struct, frozen=True):
    """Where labelled confidences lie: groups of equal mass, and knots among them.

    Parameters
    ----------
    group
        Group of each row.
    centre
        Mean confidence of each group.
    knots
        Confidences at which the curve has a value; between them it is linear in log odds.
    hat
        Share of each knot in the value at each group, shape (groups, knots).
    mass
        Share of the rows that each knot stands for.
    rank
        Normal scores of the knots' ranks, with mean 0 and standard deviation 1 over the rows.
    """

    group: Indices
    centre: Floats
    knots: Floats
    hat: Floats
    mass: Floats
    rank: Floats

    def odds(self, edge: float) -> Floats:
        """Return the log odds of the knots, held off 0 and 1, scaled as the ranks are."""
        inside = np.clip(self.knots, edge, 1 - edge)
        return _scaled(special.logit(inside), self.mass)

    def sums(self, values: Floats) -> Floats:
        """Return the sum of a value of the rows in each group."""
        return np.asarray(np.bincount(self.group, values, len(self.centre)), dtype=np.float64)


def lay_grid(confidence: Floats, weights: Floats, *, fine: bool = False) -> Grid:
    """Return the grid of confidences; labels have no part in it. A fine one has more knots.

    Examples
    --------
    >>> grid = lay_grid(np.array([0.5, 0.9, 0.9, 1.0]), np.ones(4))
    >>> grid.knots.tolist(), grid.group.tolist()
    ([0.5, 0.9, 1.0], [0, 1, 1, 2])
    """
    group = _groups(confidence)
    total = np.bincount(group, weights)
    centre = np.bincount(group, confidence * weights) / total
    middle = (np.cumsum(total) - total / 2) / total.sum()
    places = _knot_places(middle, MOST_KNOTS)
    if fine:
        places = np.union1d(places, _knot_places(middle, MOST_FINE_KNOTS))
    knots = centre[places]
    hat = hat_matrix(knots, centre)
    mass = total @ hat / total.sum()
    rank = special.ndtri(np.clip(middle[places], _RANK_EDGE, 1 - _RANK_EDGE))
    return Grid(group, centre, knots, hat, mass, _scaled(rank, mass))


def _groups(confidence: Floats) -> Indices:
    """Return the group of each row: its value where there are few, else a slice of equal mass."""
    values, group = np.unique(confidence, return_inverse=True)
    if len(values) > MOST_GROUPS:
        cuts = np.unique(np.quantile(confidence, np.linspace(0, 1, MOST_GROUPS + 1)[1:-1]))
        slices = np.searchsorted(cuts, confidence, side="right")
        _, group = np.unique(slices, return_inverse=True)
    return group.astype(np.intp)


def _knot_places(middle: Floats, most: int) -> Indices:
    """Return the groups that are knots: all where they are few, else at even ranks."""
    if len(middle) <= most:
        return np.arange(len(middle))
    targets = np.linspace(middle[0], middle[-1], most)
    return np.unique(np.clip(np.searchsorted(middle, targets - 1e-12), 0, len(middle) - 1))


def hat_matrix(knots: Floats, at: Floats) -> Floats:
    """Return the share of each knot in the value at each place; outside the knots it is constant.

    Examples
    --------
    >>> hat_matrix(np.array([0.0, 1.0]), np.array([-1.0, 0.25])).tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    if len(knots) == 1:
        return np.ones((len(at), 1))
    remaining = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    share = np.clip((at - knots[remaining]) / (knots[remaining + 1] - knots[remaining]), 0, 1)
    hat = np.zeros((len(at), len(knots)))
    rows = np.arange(len(at))
    hat[rows, remaining] = 1 - share
    hat[rows, remaining + 1] = share
    return hat


def _scaled(values: Floats, mass: Floats) -> Floats:
    centred = values - mass @ values
    return np.asarray(centred / max(float(np.sqrt(mass @ centred**2)), 1e-9))


class Posterior(Struct, frozen=True):
    """Posterior of the log odds at the knots, one Gaussian per kind of curve.

    Parameters
    ----------
    modes
        Shape (kinds, knots).
    curvatures
        Inverse covariance of each Gaussian, shape (kinds, knots, knots).
    weights
        How likely each kind is now.
    evidence
        Log probability of the labels under the belief.
    """

    modes: Floats
    curvatures: Floats
    weights: Floats
    evidence: float

    @property
    def rates(self) -> Floats:
        """The chance of being right at each knot, averaged over the kinds."""
        return np.asarray(np.clip(self.weights @ special.expit(self.modes), 1e-4, 1 - 1e-4))

    def draws(self, size: int, rng: np.random.Generator) -> Floats:
        """Return drawn log odds, shape (size, knots)."""
        parts = []
        for mode, curvature, number in zip(
            self.modes, self.curvatures, rng.multinomial(size, self.weights), strict=True
        ):
            # With H = L L', solving L' x = e gives covariance 1 / H.
            lower = np.linalg.cholesky(curvature)
            noise = rng.standard_normal((len(mode), number))
            parts.append(mode + np.linalg.solve(lower.T, noise).T)
        return np.concatenate(parts)


def fit_curves(grid: Grid, total: Floats, right: Floats, belief: Belief) -> list[Posterior]:
    """Return a posterior for each set of labels on one grid; all are fitted at once.

    Parameters
    ----------
    grid
        The grid of the confidences.
    total, right
        Labels, and right ones, per set and group: shape (sets, groups).
    belief
        What is thought of the curve before labels.
    """
    expected, covariances = _prior(grid, belief)
    precision = np.linalg.inv(covariances)
    sets, kinds = len(total), len(precision)
    modes, curvatures, fits = _modes(
        grid.hat,
        np.repeat(total, kinds, axis=0),
        np.repeat(right, kinds, axis=0),
        np.tile(expected, (sets, 1)),
        np.tile(precision, (sets, 1, 1)),
    )
    evidence = fits - np.linalg.slogdet(curvatures)[1] / 2
    evidence = evidence.reshape(sets, kinds) + np.linalg.slogdet(precision)[1] / 2
    evidence += np.log(belief.shares)
    weights = special.softmax(evidence, axis=1)
    knots = len(grid.knots)
    return [
        Posterior(*parts)
        for parts in zip(
            modes.reshape(sets, kinds, knots),
            curvatures.reshape(sets, kinds, knots, knots),
            weights,
            special.logsumexp(evidence, axis=1).tolist(),
            strict=True,
        )
    ]


def _prior(grid: Grid, belief: Belief) -> tuple[Floats, Floats]:
    """Return the expected log odds at the knots and their covariance, kind by kind."""
    distance = np.abs(grid.rank[:, None] - grid.rank) / 2 / _KERNEL_LENGTH
    smooth = (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance)
    rough, loose = np.exp(-distance), np.eye(len(grid.knots))
    plain = _LEVEL_SD**2 + belief.slope**2 * np.outer(grid.rank, grid.rank) + _JITTER * loose
    odds = {edge: grid.odds(edge) for edge in {part.edge for part in belief.kinds}}
    covariances = [
        plain
        + belief.slope**2 * np.outer(odds[part.edge], odds[part.edge])
        + part.smooth**2 * smooth
        + part.rough**2 * rough
        + part.loose**2 * loose
        for part in belief.kinds
    ]
    expected = [part.rise * odds[part.edge] for part in belief.kinds]
    return np.stack(expected), np.stack(covariances)


def _modes(
    hat: Floats, total: Floats, right: Floats, expected: Floats, precision: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return modes, curvatures and penalised log likelihoods of many fits, by Newton's steps."""
    start = special.logit((right.sum(axis=1) + 0.5) / (total.sum(axis=1) + 1))
    place = start[:, None] + expected
    # A group lies between two knots, so that its labels touch two neighbours of the curvature.
    squares, products = hat**2, hat[:, :-1] * hat[:, 1:]
    knot = np.arange(hat.shape[1])

    def pulled(values: Floats) -> Floats:
        return np.asarray((precision @ (values - expected)[:, :, None])[:, :, 0])

    def fit_of(values: Floats) -> Floats:
        log_odds = values @ hat.T
        # log(1 + e^x), in half the time of logaddexp.
        either = np.maximum(log_odds, 0) + np.log1p(np.exp(-np.abs(log_odds)))
        fit = (right * log_odds - total * either).sum(axis=1)
        return np.asarray(fit - ((values - expected) * pulled(values)).sum(axis=1) / 2)

    def curvature_of(rate: Floats) -> Floats:
        weight = total * rate * (1 - rate)
        curvature = precision.copy()
        curvature[:, knot, knot] += weight @ squares
        between = weight @ products
        curvature[:, knot[:-1], knot[1:]] += between
        curvature[:, knot[1:], knot[:-1]] += between
        return curvature

    reached = fit_of(place)
    for _ in range(_STEPS):
        rate = special.expit(place @ hat.T)
        slope = (right - total * rate) @ hat - pulled(place)
        step = np.linalg.solve(curvature_of(rate), slope[:, :, None])[:, :, 0]
        length = np.ones(len(place))
        improved = fit_of(place + step)
        while (worse := (improved < reached - _ROUNDING) & (length > 1e-6)).any():
            length[worse] /= 2
            improved = fit_of(place + length[:, None] * step)
        place = place + length[:, None] * step
        gained, reached = np.max(improved - reached), improved
        if gained < _ROUNDING:
            break
    return place, curvature_of(special.expit(place @ hat.T)), reached
