"""Data without a single label is refused, with what to do about it.

A calibrated model and one that is wrong by a constant can state the same confidences. So every
number without labels is wrong for one of them (The Verification Tax, theorem 7).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.calls import Call
from calibrant.core.errors import UnavailableError
from calibrant.core.hints import Hint

NO_LABELS_REASON = "without labels nobody can tell whether the confidence is right"
# Names under which tables hold several sampled answers to a question.
_SAMPLED = frozenset(
    {"samples", "answers", "generations", "responses", "draws", "completions", "outputs"}
)
NO_LABELS_HINT = Hint(
    "label a small batch: `{next}`, fill the column `correct`, then `{add}`",
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
    calibrant.core.errors.UnavailableError: without labels nobody can tell ...
    """
    if correct is not None:
        values = np.asarray(correct, dtype=np.float64)
        if np.isfinite(values).any():
            return
    sampled = next((name for name in columns if name.lower() in _SAMPLED), None)
    if sampled is not None:
        raise UnavailableError(
            f"there is no column 'correct', and {NO_LABELS_REASON}",
            source=source,
            hint=Hint(
                "if {0} holds sampled answers, have them graded: {samples} and {reference} with "
                "the column of right answers (there are: {1})",
                repr(sampled),
                ", ".join(columns),
                samples=sampled,
            ),
        )
    if columns:
        raise UnavailableError(
            f"there is no column 'correct', and {NO_LABELS_REASON}",
            source=source,
            hint=Hint(
                "name that column with {correct} (there are: {0}); without one, label a batch: "
                "`{next}`",
                ", ".join(columns),
                next=Call("label next", "TABLE", out="batch.csv"),
            ),
        )
    raise UnavailableError(NO_LABELS_REASON, source=source, hint=NO_LABELS_HINT)
