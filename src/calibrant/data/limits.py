"""Sizes above which nothing is read: stated here, and each settable by an environment variable."""

import os
from typing import NamedTuple

from calibrant.core.errors import InputError

# So many rows without an outcome are left out unasked; more may differ from the graded ones.
FEW_UNGRADED = 0.05
# So few confidences out of range are slips of the writer, and not another scale.
FEW_BROKEN = 0.001


class Limit(NamedTuple):
    """A limit as it is unless it is set, and what it bounds."""

    usual: int
    meaning: str


LIMITS = {
    "answer_bytes": Limit(64 * 1024**2, "bytes of an endpoint's answer, decompressed"),
    "draw_characters": Limit(2_000_000, "characters of one draw that are kept"),
    "json_levels": Limit(64, "levels of an answer's JSON that are read"),
    "unpacked_bytes": Limit(2 * 1024**3, "bytes that a packed file may become, all of its parts"),
    "plain_items": Limit(50_000_000, "items of a pickled log, counted as often as referred to"),
}


def variable(name: str) -> str:
    """Return the environment variable of a limit.

    Examples
    --------
    >>> variable("unpacked_bytes")
    'CALIBRANT_MOST_UNPACKED_BYTES'
    """
    return f"CALIBRANT_MOST_{name.upper()}"


def limit(name: str) -> int:
    """Return a limit: what its environment variable says, or what is usual.

    Examples
    --------
    >>> limit("json_levels")
    64
    """
    value = os.environ.get(variable(name))
    if value is None:
        return LIMITS[name].usual
    digits = value.strip().replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and 0 < len(digits) < 16 and int(digits)):
        raise InputError(
            f"{variable(name)} is a whole number above 0, got {value[:40]!r}",
            hint=f"the usual value is {LIMITS[name].usual}",
        )
    return int(digits)


def limit_hint(name: str) -> str:
    """Return how a limit is raised, to be put behind a message.

    Examples
    --------
    >>> limit_hint("unpacked_bytes")
    'set CALIBRANT_MOST_UNPACKED_BYTES to read more'
    """
    return f"set {variable(name)} to read more"
