"""How mass is shared between meanings: histograms, and thresholds that fit them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.confidence import DrawTable, class_mass

__all__ = ["mass_grid", "mass_histogram"]


def _masses(table: DrawTable) -> NDArray[np.float64]:
    mass = class_mass(table.samples)
    known = table.samples.classes.answered & ~np.isnan(mass)
    return mass[known]


def mass_grid(table: DrawTable, *, points: int = 12) -> tuple[float, ...]:
    """Return thresholds for sca that fit the masses at hand: 0 and quantiles of the masses.

    A fixed grid up to 0.5 says nothing about masses of 0.001, nor about sums over draws of 5.

    Parameters
    ----------
    table
        Draws with log-probs and meanings.
    points
        Quantiles taken, evenly spaced from the least mass to the largest.

    Examples
    --------
    >>> from calibrant.confidence import Question, table_of
    >>> logs = [[float(np.log(p))] for p in (0.4, 0.4, 0.1, 0.02)]
    >>> mass_grid(table_of([Question(classes=[0, 0, 1, 2], token_logprobs=logs)]), points=3)
    (0.0, 0.02, 0.1, 0.8)
    """
    masses = _masses(table)
    if not masses.size:
        return (0.0,)
    found = np.quantile(masses, np.linspace(0.0, 1.0, points))
    return tuple(sorted({0.0, *(float(f"{value:.3g}") for value in found)}))


def mass_histogram(
    table: DrawTable, *, rank: int = 1, bins: int = 20
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return counts and edges of the share of the rank-th largest meaning (Fig. 9 and 10).

    Shares are masses over the summed mass of the question's answered meanings; a question with
    fewer meanings has the share 0.

    Examples
    --------
    >>> from calibrant.confidence import Question, table_of
    >>> logs = [[float(np.log(p))] for p in (0.6, 0.3, 0.1)]
    >>> counts, edges = mass_histogram(
    ...     table_of([Question(classes=[0, 1, 2], token_logprobs=logs)]), rank=2, bins=4)
    >>> counts.tolist(), edges.tolist()
    ([0, 1, 0, 0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    classes = table.samples.classes
    mass = np.where(classes.answered, np.nan_to_num(class_mass(table.samples)), 0.0)
    spread = -np.sort(-classes.spread(mass, 0.0), axis=1)
    total = spread.sum(axis=1)
    column = spread[:, rank - 1] if rank <= spread.shape[1] else np.zeros(total.size)
    share = column[total > 0] / total[total > 0]
    counts, edges = np.histogram(share, bins=bins, range=(0.0, 1.0))
    return counts.astype(np.int64), edges
