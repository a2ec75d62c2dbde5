"""Data without a single label is refused, with what to do about it.

A calibrated model and one that is wrong by a constant can state the same confidences. So every
number without labels is wrong for one of them (The Verification Tax, theorem 7).
"""

import numpy as np

from calibrant.core.arrays import MaybeArray
from calibrant.core.errors import UnavailableError
from calibrant.core.hints import Call, Hint

NO_LABELS_REASON = "calibration needs a right/wrong column, and no row has a label"
NO_LABELS_HINT = Hint(
    "label a small batch: `{next}`, fill the column `correct`, then `{add}`",
    next=Call("label next", "TABLE", out="batch.csv"),
    add=Call("label add", "TABLE", "batch.csv"),
)


def require_labels(correct: MaybeArray, *, source: str | None = None) -> None:
    """Refuse an input that has not a single label, with the reason and the next step.

    Parameters
    ----------
    correct
        The outcomes, or None where there is no column of them.
    source
        What the message calls the input.

    Examples
    --------
    >>> require_labels([float("nan"), 1.0])
    >>> require_labels(None)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.UnavailableError: calibration needs a right/wrong column, and no row ...
    """
    if correct is not None:
        values = np.asarray(correct, dtype=np.float64)
        if np.isfinite(values).any():
            return
    raise UnavailableError(NO_LABELS_REASON, source=source, hint=NO_LABELS_HINT)
