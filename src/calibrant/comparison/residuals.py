"""Residuals of bins: the calibration error of a model on one footing, in data and resamples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from calibrant.comparison.ece_interval import ece_estimate
from calibrant.core.arrays import Floats

# Resamples behind a 90 % interval: it is worked out for thousands of pairs.
_ENOUGH = 400


@dataclass(frozen=True)
class Residuals:
    """What one footing shows of one model.

    `seen` (bins,) and `drawn` (bins, resamples) are residuals of the data and of the resamples:
    share of the bin times its gap, whose absolute sum is the error. `squares` is the plug-in
    squared error in the data and in every resample, `debiased` the one of the data without the
    part that noise adds, `excess` by how much the resamples overstate the variance of the squared
    error. Resamples are kept in single precision: thousands of pairs are held at a time.
    """

    seen: Floats
    drawn: npt.NDArray[np.float32]
    squares: npt.NDArray[np.float32]
    debiased: float
    excess: float

    @cached_property
    def error(self) -> Floats:
        """Calibration error in the data and in every resample."""
        return self.moved_error(np.zeros_like(self.seen))

    def moved_error(self, by: Floats) -> Floats:
        """Return the error with the residuals of all resamples moved, (bins,)."""
        noisy = np.abs(self.drawn + by.astype(np.float32)[:, None]).sum(axis=0, dtype=np.float64)
        return np.append(np.abs(self.seen + by).sum(), noisy)

    @property
    def table(self) -> Floats:
        """(bins, 1 + resamples) residuals, the data first."""
        return np.hstack([self.seen[:, None], self.drawn])

    @cached_property
    def range_90(self) -> tuple[float, float]:
        """90 % interval of the error; footings that several pairs share work it out once."""
        return self.moved_range(np.zeros_like(self.seen))

    def moved_range(self, by: Floats) -> tuple[float, float]:
        """Return the 90 % interval of the error with all residuals moved, (bins,)."""
        found = ece_estimate(self.table[:, : _ENOUGH + 1] + by[:, None], 0, level=0.9)
        return found.low, found.high


def residuals_of(residuals: Floats, shares: Floats) -> Residuals:
    """Return the errors that follow from residuals and shares of bins, (bins, 1 + resamples)."""
    held = shares > 0
    squares = (np.square(residuals) / np.where(held, shares, 1.0)).sum(axis=0, where=held)
    squares[~np.isfinite(residuals).all(axis=0)] = np.nan
    sound = np.isfinite(squares[1:])
    drawn = residuals[:, 1:] if sound.all() else residuals[:, 1:][:, sound]
    debiased = excess = np.nan
    if drawn.shape[1] > 1 and np.isfinite(squares[0]):
        inside = shares[:, 0] > 0
        ratio = drawn[inside].var(axis=1, ddof=1) / shares[inside, 0]
        debiased = float(squares[0] - ratio.sum())
        excess = float(4 * np.square(ratio).sum())
    return Residuals(
        residuals[:, 0].copy(),
        residuals[:, 1:].astype(np.float32),
        squares.astype(np.float32),
        debiased,
        excess,
    )
