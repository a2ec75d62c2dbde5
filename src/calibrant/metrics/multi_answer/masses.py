"""How mass is shared between meanings: histograms, and thresholds that fit them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.confidence import DrawTable, class_mass


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


def mass_histogram(table: DrawTable, *, bins: int = 10) -> list[dict[str, Any]]:
    """Return, per model, how many meanings have which mass (Fig. 9 of the paper).

    The mass of a meaning is the summed probability of its draws, not normalised: it may exceed
    1, and the last bin holds those that do.

    Parameters
    ----------
    table
        Draws with log-probs and meanings.
    bins
        Bins of equal width from 0 to 1.

    Returns
    -------
    list of dict
        ``model``, ``edges`` (bins + 1 of them) and ``counts`` (bins + 1: the last one is above 1);
        models without log-probs are left out.

    Examples
    --------
    >>> from calibrant.confidence import Question, table_of
    >>> logs = [[float(np.log(p))] for p in (0.6, 0.6, 0.3, 0.02)]
    >>> table = table_of([Question(classes=[0, 0, 1, 2], token_logprobs=logs, model="m")])
    >>> mass_histogram(table, bins=2)
    [{'model': 'm', 'edges': [0.0, 0.5, 1.0], 'counts': [2, 0, 1]}]
    """
    classes = table.samples.classes
    mass = class_mass(table.samples)
    known = classes.answered & ~np.isnan(mass)
    models = table.model.gather(classes.unit[known]).to_numpy()
    edges = np.round(np.linspace(0.0, 1.0, bins + 1), 12)
    found = []
    for model in dict.fromkeys(models.tolist()):
        own = mass[known][models == model]
        inside = np.histogram(own[own <= 1.0], bins=edges)[0]
        counts = [*inside.tolist(), int(np.count_nonzero(own > 1.0))]
        found.append({"model": model, "edges": edges.tolist(), "counts": counts})
    return found
