"""How good a grader is on this data, from grades that people checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.stats.graded.checks import Checked

_DRAWS = 1000
# Strata whose grade says right, as in `Graded.strata`.
_ACCEPTED = np.array([False, False, True, True])


def grader_report(
    checked: Checked, rng: np.random.Generator, level: float = 0.95
) -> dict[str, Any]:
    """Return how often grades are wrong in all answers, and how far they agree with people.

    Every check counts for as many answers as it stands for.

    Returns
    -------
    report
        ``wrong`` (grades found wrong), ``error`` (share of all grades, with its interval),
        ``accepted_wrong`` and ``rejected_right`` (shares of accepted and rejected answers) and
        ``kappa``.

    Examples
    --------
    >>> from calibrant.stats.graded.checks import Graded
    >>> graded = Graded.of_chances(np.full(100, 0.7), np.repeat([1.0, 0.0], 50), np.full(100, 0.5))
    >>> rows = np.arange(0, 100, 2)
    >>> found = grader_report(Checked(graded, rows, rows < 45), np.random.default_rng(0))
    >>> found["wrong"], round(found["error"]["value"], 2), round(found["kappa"], 2)
    (2, 0.04, 0.92)
    """
    size = checked.graded.counts
    used = (size > 0) & (checked.checks > 0)
    rate = np.where(used, checked.errors / np.maximum(checked.checks, 1.0), 0.0)
    drawn = checked.drawn_rates(_DRAWS, rng)[:, used] @ size[used] / size[used].sum()
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    wrong = size * rate
    kept = [float((size - wrong)[used & side].sum()) for side in (_ACCEPTED, ~_ACCEPTED)]
    lost = [float(wrong[used & side].sum()) for side in (_ACCEPTED, ~_ACCEPTED)]
    value = float(wrong[used].sum() / size[used].sum()) if used.any() else float("nan")
    return {
        "wrong": int(checked.wrong.sum()),
        "error": {"value": value, "low": min(float(low), value), "high": max(float(high), value)},
        "accepted_wrong": _share(lost[0], kept[0]),
        "rejected_right": _share(lost[1], kept[1]),
        "kappa": _kappa(kept, lost),
    }


def _share(part: float, rest: float) -> float | None:
    return part / (part + rest) if part + rest else None


def _kappa(kept: list[float], lost: list[float]) -> float | None:
    """Return Cohen's kappa of grades and people, by weighted counts."""
    whole = sum(kept) + sum(lost)
    if not whole:
        return None
    accepted, right = (kept[0] + lost[0]) / whole, (kept[0] + lost[1]) / whole
    chance = accepted * right + (1 - accepted) * (1 - right)
    return None if chance == 1.0 else (sum(kept) / whole - chance) / (1 - chance)
