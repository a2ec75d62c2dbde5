"""Log-probs are checked before they are believed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.clients.answers.tokens import Alternatives, TokenLogprob, TokenLogprobs

PLACEHOLDER = -9000.0
"""Endpoints write -9999 where they do not know a log-probability."""
ROUNDING = 1e-4
"""Some endpoints compute in half precision: a hair above 0 is rounding."""
EXCESS = 0.02
"""The same for the sum of the alternatives' probabilities."""


def refusal(logprobs: Sequence[TokenLogprob]) -> str | None:
    """Return why these log-probs cannot be believed, or None.

    Refused are values above 0, placeholders (-9999), values that are not finite, alternatives
    whose probabilities add up to more than 1, and 0 everywhere where no alternative shows that
    the model was indeed certain.

    Examples
    --------
    >>> refusal([TokenLogprob("Par", -0.2), TokenLogprob("is", 0.0)])
    >>> refusal([TokenLogprob("Par", -0.2), TokenLogprob("is", -9999.0)])
    'token 2 of 2 has log-prob -9999: a placeholder, not a log-probability'
    >>> refusal([TokenLogprob("Par", 0.0), TokenLogprob("is", 0.0)])
    'all 2 log-probs are 0: the endpoint does not compute them'
    """
    # Almost every answer is sound: one quick pass decides, the words are found afterwards.
    columns = TokenLogprobs.of(logprobs)
    values = columns.values
    if not values:
        return None
    lowest, highest = min(values), max(values)
    if not (lowest > PLACEHOLDER and highest <= ROUNDING and not math.isnan(sum(values))):
        return _bad_value(values)
    tops = columns.tops
    if lowest == highest == 0.0 and (tops is None or min(tops.values) >= -1.0):
        # No alternative far below 0 shows that the model was indeed certain.
        return f"all {len(values)} log-probs are 0: the endpoint does not compute them"
    return None if tops is None else _bad_alternatives(tops)


def _bad_value(values: Sequence[float]) -> str:
    for position, value in enumerate(values, start=1):
        place = f"token {position} of {len(values)} has log-prob {value:g}"
        if math.isnan(value):
            return f"{place}: not a number"
        if value > ROUNDING:
            return f"{place}: a log-probability is never above 0"
        if value <= PLACEHOLDER:
            return f"{place}: a placeholder, not a log-probability"
    raise AssertionError("a sound sequence was called bad")


def _bad_alternatives(tops: Alternatives) -> str | None:
    # An endpoint that does not compute alternatives shows it at once: a few tokens are enough.
    for index in range(min(4, len(tops.counts))):
        values = tops.values[tops.place(index)]
        if len(values) > 1 and sum(map(math.exp, values)) > 1.0 + EXCESS:
            return (
                f"the alternatives of token {index + 1} of {len(tops.counts)} have "
                f"probabilities that add up to {sum(map(math.exp, values)):.3g}"
            )
    return None
