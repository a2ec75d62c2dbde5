"""Smooth calibration error: no bins, a kernel whose width the data choose."""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import InputError
from calibrant.core.arrays import Floats, MaybeArray, Stream
from calibrant.metrics.inputs import Checked, check
from calibrant.metrics.stats import binning

# Numbers in single precision.
Singles: TypeAlias = NDArray[np.float32]
# The grids of the bandwidths 2/1024, 4/1024 and 8/1024, which the search visits in this order
# from the coarsest: one pass onto the finest serves all three.
NESTED = {1281: 2561, 2561: 5121}


_LEAST_MEAN = 0.1


class SmoothGrids:
    """Grid sums of one data set, made when a bandwidth first asks for them."""

    def __init__(self, data: Checked) -> None:
        self._data = _steady(data)
        self._sums: dict[int, binning.GridSums] = {}
        self._spectra: dict[int, NDArray[np.complex128]] = {}
        # By bandwidth.
        self.errors: dict[float, float] = {}

    def sums(self, points: int) -> binning.GridSums:
        """Return the sums on a grid of `points` points."""
        if points not in self._sums:
            if finer := NESTED.get(points):
                sums = self.sums(finer)
                parts = binning.every_other(sums.residual), binning.every_other(sums.weight)
                self._sums[points] = binning.GridSums(*parts)
            else:
                self._sums[points] = binning.grid_sums(*self._data, points)
        return self._sums[points]

    def error(self, bandwidth: float) -> float:
        """Return the smoothed calibration error at a bandwidth."""
        if bandwidth not in self.errors:
            points = binning.grid_points(bandwidth)
            sums = self.sums(points)
            if points not in self._spectra:
                self._spectra[points] = binning.SmoothingPlan.transform(sums.residual)
            plan = binning.plan_on(bandwidth, points)
            self.errors[bandwidth] = plan.error(self._spectra[points], sums.weight)
        return self.errors[bandwidth]

    @cached_property
    def bandwidth(self) -> float:
        """The bandwidth that equals its own error."""
        return binning.fixed_point_bandwidth(self.error)


def _steady(data: Checked) -> Checked:
    """Return the data with weights that are not far below 1 on average.

    The published density carries a constant beside the weights of the rows, which very small
    weights would drown in: only their ratios may count.
    """
    if data.weights is None or (mean := data.total / data.rows) >= _LEAST_MEAN:
        return data
    return Checked(data.confidence, data.correct, data.weights / mean)


def smooth_ece(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bandwidth: float | None = None,
    weights: MaybeArray = None,
) -> float:
    r"""Return the smooth calibration error, in [0, 1]; 0 is best.

    Residuals (confidence minus outcome) are smoothed with a Gaussian kernel reflected at 0 and
    1, and the absolute smoothed residual is averaged over the density of the confidences. The
    bandwidth is the one that equals the error it gives, so nothing has to be chosen; the value
    is within a constant factor of the distance to the nearest calibrated predictor and is
    consistent, which ECE with fixed bins is not.

    The published grid is mirrored at 0 and 1 without doubling its end points. So rows with a
    confidence of exactly 0 or 1 count half; it matters where many have one and their gap differs
    from that of the others. It is kept, so that values are those published, and the interval of
    `metric_estimates` counts them alike.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    bandwidth
        A fixed bandwidth in (0, 1]; chosen from the data where None.
    weights
        A weight of 2 counts as two equal rows.

    References
    ----------
    Blasiok, Nakkiran (2023), 'Smooth ECE: principled reliability diagrams via kernel smoothing'.

    Examples
    --------
    >>> round(smooth_ece([0.9, 0.9, 0.9, 0.9], [1, 1, 0, 0]), 3)
    0.4
    """
    if bandwidth is not None and not 1e-4 <= bandwidth <= 1:
        raise InputError(f"bandwidth is from 0.0001 to 1, got {bandwidth!r}")
    grids = SmoothGrids(check(confidence, correct, weights))
    return grids.error(grids.bandwidth if bandwidth is None else float(bandwidth))


def smooth_ece_bandwidth(
    confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None
) -> float:
    """Return the bandwidth that `smooth_ece` chooses, a multiple of 1/1024 in (0, 1].

    Examples
    --------
    >>> smooth_ece_bandwidth([0.9, 0.9, 0.9, 0.9], [1, 1, 0, 0])
    0.400390625
    """
    return SmoothGrids(check(confidence, correct, weights)).bandwidth


# Grid steps per bandwidth that are fine enough for an interval.
STEPS_PER_BANDWIDTH = 3


class SmoothTask(NamedTuple):
    """One block: its data on grids, the scatter of a row, and its stream of random numbers.

    `scatter` is by how much the variance of the data's units exceeds that of rows, over their
    number.
    """

    grids: SmoothGrids
    scatter: float
    stream: Stream


@lru_cache(maxsize=8)
def _draws(seed: int, count: int, points: int) -> Singles:
    """Return normal numbers; the last ones are kept, for other bandwidths and other models."""
    return np.random.default_rng(seed).standard_normal((points, count), dtype=np.float32)


class Nodes(NamedTuple):
    """The places of a grid that hold rows: residuals, weights, weights for the variance, noise."""

    at: Floats
    residual: Floats
    weight: Floats
    drawn: Floats
    draws: Singles


class Published:
    """One block on its grids, each of which serves several bandwidths."""

    def __init__(self, task: SmoothTask, count: int) -> None:
        self._grids, self.scatter = task.grids, task.scatter
        # The same noise at every bandwidth, so that the ends change smoothly with it. Each number
        # stands for itself and its negative.
        self._draws = partial(_draws, int(task.stream.integers(2**63)), count)
        self._nodes: dict[tuple[int, int], Nodes] = {}

    def nodes(self, bandwidth: float) -> Nodes:
        """Return the places with rows of the grid that is fine enough for a bandwidth."""
        points = binning.grid_points(max(bandwidth, 0.01))
        steps = points - 1
        # The coarsest grid, of every other point, that is fine enough.
        while steps % 2 == 0 and steps / 2 * bandwidth >= STEPS_PER_BANDWIDTH:
            steps //= 2
        key = (points, steps)
        if key not in self._nodes:
            whole = self._grids.sums(points)
            of_value = self._grids.sums(binning.grid_points(self._grids.bandwidth))
            sums = _as_published(whole, of_value)
            while sums.shape[1] > steps + 1:
                sums = binning.every_other(sums)
            residual, weight, sample = sums
            # Places of the grid without rows have no residual and no noise.
            filled = np.flatnonzero(weight)
            place, draws = binning.even_steps(weight.size)[filled], self._draws(weight.size)[filled]
            noisy = np.maximum(sample[filled], 0.0) * whole.weight.sum()
            self._nodes[key] = Nodes(place, residual[filled], weight[filled], noisy, draws)
        return self._nodes[key]


class Place(NamedTuple):
    """One block at one bandwidth: where its rows are, and residuals and weights smoothed."""

    scatter: float
    nodes: Nodes
    scale: float
    matrix: Floats
    density: Floats
    smoothed: Floats

    @classmethod
    def of(cls, block: Published, bandwidth: float) -> Place:
        """Return a block at a bandwidth."""
        nodes = block.nodes(bandwidth)
        matrix = binning.smoothing_matrix(bandwidth, nodes.at)
        density = nodes.weight @ matrix
        scale = 1 / density.sum()
        smoothed = (nodes.residual @ matrix) * scale
        return cls(block.scatter, nodes, scale, matrix, density * scale, smoothed)

    def add_noise(self, variance: Floats, out: Singles) -> None:
        """Write the smoothed noise by point and draw; a residual has this variance there."""
        node = np.interp(self.nodes.at, binning.even_steps(variance.size), variance)
        error = np.sqrt(self.nodes.drawn * node * self.scatter)
        spreading = self.matrix * (self.scale * error[:, None])
        _product(spreading.astype(np.float32).T, self.nodes.draws, out)


def _product(left: Singles, right: Singles, out: Singles) -> None:
    """Write left @ right, in pieces too small for BLAS to split over threads.

    On a busy machine waiting for a second thread costs a hundred times the product itself.
    """
    columns = max(250_000 // max(left.size, 1), 1)
    for start in range(0, right.shape[1], columns):
        out[:, start : start + columns] = left @ right[:, start : start + columns]


def _as_published(whole: binning.GridSums, of_value: binning.GridSums) -> Floats:
    """Return residuals and weights as smooth ECE counts them, and weights for their variance.

    The published mirrored grid has its two end points once, all others twice, so that rows at
    exactly 0 or 1 count half. The interval has to count them alike, or it is one of another
    number than the value. A sum that is halved has a quarter of its variance.

    Parameters
    ----------
    whole
        Sums on the grid of the interval.
    of_value
        Sums on the grid of the value; its end points are what is halved.
    """
    sums = np.array([whole.residual, whole.weight, whole.weight])
    residual, weight = (part[:: part.size - 1] for part in (of_value.residual, of_value.weight))
    ends = sums[:, :: sums.shape[1] - 1]
    for pair, part in zip(ends, (0.5 * residual, 0.5 * weight, 0.75 * weight), strict=True):
        pair -= part
    return sums
