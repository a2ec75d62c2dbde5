"""Verified, tie or unverifiable: a claim beside the floor and beside what the data show."""

from __future__ import annotations

from typing import Any

from calibrant.core.estimate import Estimate

__all__ = ["claim_verdict", "verdict_word"]


def verdict_word(*, shown: bool, above_floor: bool) -> str:
    """Return the verdict on a claim.

    Parameters
    ----------
    shown
        Whether the interval on this very data excludes 'no difference'.
    above_floor
        Whether the claimed size is at least the worst-case floor.

    Examples
    --------
    >>> verdict_word(shown=True, above_floor=False)
    'unverifiable'
    """
    if shown and above_floor:
        return "verified"
    return "unverifiable" if shown or above_floor else "tie"


def claim_verdict(gap: Estimate, *, floor: float, claim: str = "the difference") -> dict[str, Any]:
    """Judge a claimed difference, for example between two models or before and after.

    Parameters
    ----------
    gap
        The difference with its (paired) interval.
    floor
        The worst-case floor with constant 1; NaN where it cannot be stated.
    claim
        What the difference is, for the sentence.

    Returns
    -------
    dict
        ``verdict`` (verified, tie or unverifiable), ``floor``, ``resolution`` (half the
        interval: what this data resolves) and ``text``.

    Examples
    --------
    >>> claim_verdict(Estimate(0.04, 0.02, 0.06, n=900), floor=0.03)["verdict"]
    'verified'
    >>> claim_verdict(Estimate(0.01, -0.01, 0.03, n=900), floor=0.03)["verdict"]
    'tie'
    """
    shown = gap.low > 0.0 or gap.high < 0.0
    above = abs(gap.value) >= floor
    word = verdict_word(shown=shown, above_floor=above)
    seen = "excludes 0" if shown else "includes 0"
    if floor != floor:
        size = "the worst-case floor cannot be stated here"
    else:
        size = f"it is {'above' if above else 'below'} the worst-case floor {floor:.3f}"
    phrase = "a tie" if word == "tie" else word
    return {
        "verdict": word,
        "floor": floor,
        "resolution": (gap.high - gap.low) / 2,
        "text": f"{claim} is {phrase}: its interval {seen}, and {size} ({gap.n:,} labels)",
    }
