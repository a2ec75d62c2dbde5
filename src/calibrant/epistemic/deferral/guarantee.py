"""A promise for a cascade: as accurate as the largest model but for a margin, by betting tests.

References
----------
Waudby-Smith and Ramdas 2024 (betting); Angelopoulos et al. 2021 (learn then test).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.core.arrays import Floats

_LARGEST_BET = 0.75


def betting_p(values: Floats, mean: float) -> float:
    """Return a p value of 'the mean of values in [0, 1] is at most `mean`', valid for any n.

    Examples
    --------
    >>> betting_p(np.full(100, 0.9), 0.5) < 0.001
    True
    >>> betting_p(np.full(100, 0.4), 0.5)
    1.0
    """
    n = len(values)
    step = np.arange(1, n + 1)
    centre = (0.5 + np.cumsum(values)) / (step + 1)
    spread = (0.25 + np.cumsum((values - centre) ** 2)) / (step + 1)
    # A bet may look at earlier values only.
    before = np.concatenate([[0.25], spread[:-1]])
    bet = np.minimum(_LARGEST_BET / max(mean, 1e-9), np.sqrt(2 * np.log(10) / (n * before)))
    wealth = np.cumsum(np.log1p(np.maximum(bet * (values - mean), -0.999)))
    return float(np.exp(-max(float(wealth.max()), 0.0)))


def certified_settings(
    right: Floats,
    spent: Floats,
    reference: Floats,
    order: Sequence[int],
    *,
    margin: float,
    delta: float,
    budget: float | None = None,
    dearest: float | None = None,
) -> list[int]:
    """Return the settings that pass, in the order of testing, up to the first failure.

    Parameters
    ----------
    right, spent
        Whether each setting's answer is right, and what it cost, shape (settings, questions), on
        questions that chose neither the settings nor their order.
    reference
        Whether the largest model is right.
    order
        Order of testing, most promising first, fixed on other questions.
    margin
        How much less accurate than the largest model is tolerated.
    delta
        Chance that the promise fails.
    budget, dearest
        Largest mean cost that is promised too, and the most that one question can cost.
    """
    passed = []
    for at in order:
        p = betting_p((right[at] - reference + 1) / 2, (1 - margin) / 2)
        if budget is not None and dearest is not None:
            cheap = np.clip(1 - spent[at] / dearest, 0.0, 1.0)
            p = max(p, betting_p(cheap, 1 - budget / dearest))
        if p > delta:
            break
        passed.append(at)
    return passed
