"""No labels, no claim: why a label-free 'calibration' number is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.errors import UnavailableError
from calibrant.core.hints import Call, Hint

__all__ = ["NO_LABELS_REASON", "require_labels"]

NO_LABELS_REASON = (
    "calibration cannot be estimated without labels: a perfectly calibrated model and one that "
    "is wrong by a constant produce the same confidences, so every label-free number errs by at "
    "least min(L, 1)/2 on one of them, however many rows there are (The Verification Tax, "
    "Theorem 7)"
)
NO_LABELS_HINT = Hint(
    "label a small batch: `{next}`, fill the column `correct`, then `{add}`; a judge's verdicts "
    "are noisy labels: give them as {judge} beside a few gold labels",
    next=Call("label next", "TABLE", out="batch.csv"),
    add=Call("label add", "TABLE", "batch.csv"),
)


def require_labels(
    correct: ArrayLike | None, *, source: str | None = None, columns: Sequence[str] = ()
) -> None:
    """Refuse an input that has not a single label, with the reason and the next step.

    Parameters
    ----------
    correct
        The outcomes, or None where there is no column of them.
    source
        What the message calls the input.
    columns
        The columns that are there: one of them may hold the outcomes under another name.

    Examples
    --------
    >>> require_labels([float("nan"), 1.0])
    >>> require_labels(None)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.UnavailableError: calibration cannot be estimated without labels: ...
    """
    if correct is not None:
        values = np.asarray(correct, dtype=np.float64)
        if np.isfinite(values).any():
            return
    if columns:
        raise UnavailableError(
            f"there is no column 'correct', and {NO_LABELS_REASON}",
            source=source,
            hint=Hint(
                "if another column holds the outcomes, name it with {correct} (there are: {0}); "
                "if none does, ",
                ", ".join(columns),
            )
            + NO_LABELS_HINT,
        )
    raise UnavailableError(NO_LABELS_REASON, source=source, hint=NO_LABELS_HINT)
