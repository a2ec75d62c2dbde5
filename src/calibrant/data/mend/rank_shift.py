"""Do new values differ from those of before? A test by ranks, in the standard library alone."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from calibrant.core.errors import InputError

_LEVEL = 0.01


class ShiftCheck(NamedTuple):
    """Whether new confidences are like those of the labels."""

    shifted: bool
    p: float
    n: int

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        if self.shifted:
            return (
                f"New confidences differ from those of the labels (p={self.p:.2g}): the promise "
                "does not hold for them. Label 100."
            )
        return f"No difference to the confidences of the labels is shown (p={self.p:.2g})."


def rank_shift(before: Sequence[float], new: Sequence[float], n: int) -> ShiftCheck:
    """Test whether `new` values differ from those of `n` rows, whose quantiles are `before`.

    Examples
    --------
    >>> rank_shift([0.5, 0.6, 0.7, 0.8], [0.9] * 50, 100).shifted
    True
    """
    reference = sorted(before)
    if not reference or not new:
        raise InputError("a check needs confidences, and a map with its reference")
    ranks_before = [_mid_rank(reference, value) for value in reference]
    mean = sum(ranks_before) / len(ranks_before)
    spread = sum((rank - mean) ** 2 for rank in ranks_before) / len(ranks_before)
    if spread == 0:
        equal = all(value == reference[0] for value in new)
        return ShiftCheck(not equal, 1.0 if equal else 0.0, len(new))
    ranks = [_mid_rank(reference, value) for value in new]
    error = math.sqrt(spread * (1 / len(new) + 1 / n))
    p = math.erfc(abs(sum(ranks) / len(ranks) - mean) / error / math.sqrt(2))
    return ShiftCheck(p < _LEVEL, p, len(new))


def _mid_rank(ordered: Sequence[float], value: float) -> float:
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))
