"""A confidence that a reply states in words of a fixed form."""

from __future__ import annotations

import re

_STATED = re.compile(
    r"confidence\W{0,4}\s*(?:score|level)?\W{0,4}:\W{0,4}\s*(\d{1,3}(?:\.\d+)?)(?![\d,])\s*(%|/\s*100)?",
    re.IGNORECASE,
)


def stated_percent(reply: str) -> float | None:
    r"""Return the confidence of the last line ``Confidence: 85%`` as a fraction, or None.

    A number without a percent sign is a percentage above 1 and a fraction below; what is above
    100 % is none.

    Examples
    --------
    >>> stated_percent("Answer: 4\nConfidence: 85%"), stated_percent("**Confidence:** 0.4")
    (0.85, 0.4)
    >>> stated_percent("I am confident."), stated_percent("Confidence: 850%")
    (None, None)
    >>> stated_percent("Confidence: 1,238,222") is None
    True
    """
    found = _STATED.findall(reply)
    if not found:
        return None
    number, unit = found[-1]
    value = float(number)
    if unit or value > 1.0:
        value /= 100.0
    return value if value <= 1.0 else None
