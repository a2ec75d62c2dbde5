"""Log-probabilities of a log are believed only where they can be those of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.records.convert.log import LogBuilder, finite_number
from calibrant.records.texts.spelling import spells

# A hair above 0 is rounding; far below, a writer says that it does not know.
_HIGHEST, _LOWEST = 1e-4, -9000.0
_NAMES = ("token", "text")


def believed_tokens(
    builder: LogBuilder, entries: Sequence[Any], text: str | None
) -> list[float] | None:
    """Return the log-probabilities of an answer's tokens, or None with a note that says why.

    Refused are values that are no log-probability, and tokens that do not spell the text: such
    numbers belong to another answer.

    Parameters
    ----------
    builder
        Where refusals are noted.
    entries
        A number for each token, or a mapping with its ``logprob`` and its text.
    text
        What the tokens must spell; None where the log does not say.

    Examples
    --------
    >>> builder = LogBuilder("mine", "file")
    >>> believed_tokens(builder, [{"token": "Par", "logprob": -0.1}], "London"), builder.notes
    (None, ['some log-probs are not read: the tokens do not spell the answer'])
    """
    if not entries:
        return None
    values = [
        finite_number(entry.get("logprob") if isinstance(entry, Mapping) else entry)
        for entry in entries
    ]
    sound = [value for value in values if value is not None and _LOWEST < value <= _HIGHEST]
    if len(sound) < len(values):
        builder.note("some log-probs are not read: a value is no log-probability")
        return None
    pieces = [_piece(entry) for entry in entries]
    known = [piece for piece in pieces if piece is not None]
    if text is not None and len(known) == len(pieces) and not spells(known, text):
        builder.note("some log-probs are not read: the tokens do not spell the answer")
        return None
    return [min(value, 0.0) for value in sound]


def _piece(entry: Any) -> str | None:
    if not isinstance(entry, Mapping):
        return None
    return next((entry[name] for name in _NAMES if isinstance(entry.get(name), str)), None)
