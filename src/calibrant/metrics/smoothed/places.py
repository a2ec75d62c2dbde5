"""Where the rows of a block are on the grids of smooth ECE, and their residuals smoothed."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Floats
from calibrant.metrics.smoothed.smooth import SmoothGrids
from calibrant.stats.common_draws import Stream
from calibrant.stats.kernels import GridSums, even_steps, every_other, grid_points, smoothing_matrix

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
def _draws(seed: int, count: int, points: int) -> NDArray[np.float32]:
    """Return normal numbers; the last ones are kept, for other bandwidths and other models."""
    return np.random.default_rng(seed).standard_normal((points, count), dtype=np.float32)


class Nodes(NamedTuple):
    """The places of a grid that hold rows: residuals, weights, weights for the variance, noise."""

    at: Floats
    residual: Floats
    weight: Floats
    drawn: Floats
    draws: NDArray[np.float32]


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
        points = grid_points(max(bandwidth, 0.01))
        key = (points, _fewest_points(points, bandwidth))
        if key not in self._nodes:
            self._nodes[key] = self._made(*key)
        return self._nodes[key]

    def _made(self, points: int, fewest: int) -> Nodes:
        whole = self._grids.sums(points)
        of_value = self._grids.sums(grid_points(self._grids.bandwidth()))
        sums = _as_published(whole, of_value)
        while sums.shape[1] > fewest:
            sums = every_other(sums)
        residual, weight, drawn = sums
        # Places of the grid without rows have no residual and no noise.
        held = np.flatnonzero(weight)
        return Nodes(
            even_steps(weight.size)[held],
            residual[held],
            weight[held],
            np.maximum(drawn[held], 0.0) * whole.weight.sum(),
            self._draws(weight.size)[held],
        )


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
        matrix = smoothing_matrix(bandwidth, nodes.at)
        density = nodes.weight @ matrix
        scale = 1 / density.sum()
        smoothed = (nodes.residual @ matrix) * scale
        return cls(block.scatter, nodes, scale, matrix, density * scale, smoothed)

    def add_noise(self, variance: Floats, out: NDArray[np.float32]) -> None:
        """Write the smoothed noise by point and draw; a residual has this variance there."""
        node = np.interp(self.nodes.at, even_steps(variance.size), variance)
        error = np.sqrt(self.nodes.drawn * node * self.scatter)
        spreading = self.matrix * (self.scale * error[:, None])
        _product(spreading.astype(np.float32).T, self.nodes.draws, out)


def _product(
    left: NDArray[np.float32], right: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Write left @ right, in pieces too small for BLAS to split over threads.

    On a busy machine waiting for a second thread costs a hundred times the product itself.
    """
    columns = max(250_000 // max(left.size, 1), 1)
    for start in range(0, right.shape[1], columns):
        out[:, start : start + columns] = left @ right[:, start : start + columns]


def _as_published(whole: GridSums, of_value: GridSums) -> Floats:
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
    residual, weight = (
        column[:: column.size - 1] for column in (of_value.residual, of_value.weight)
    )
    ends = sums[:, :: sums.shape[1] - 1]
    for own, part in zip(ends, (0.5 * residual, 0.5 * weight, 0.75 * weight), strict=True):
        own -= part
    return sums


def _fewest_points(points: int, bandwidth: float) -> int:
    """Return the points of the coarsest grid, of every other point, that is fine enough."""
    steps = points - 1
    while steps % 2 == 0 and steps / 2 * bandwidth >= STEPS_PER_BANDWIDTH:
        steps //= 2
    return steps + 1
