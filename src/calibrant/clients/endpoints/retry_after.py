"""How long an endpoint asks to wait, in any of the usual dialects."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_WAIT_S = 366 * 86_400.0
MOST_LOOKED_AT = 65_536
_PLAIN_NUMBER = re.compile(r"\d{1,12}(\.\d{1,6})?", re.ASCII)


def retry_after_s(headers: Mapping[str, str], raw: bytes) -> float | None:
    """Return the seconds that the endpoint asks to wait, in any of the usual dialects.

    What is no plain number or date says nothing; what is beyond a year is a year.
    """
    value = headers.get("Retry-After-Ms")
    if value is not None and _PLAIN_NUMBER.fullmatch(value):
        return min(float(value) / 1000.0, LONGEST_WAIT_S)
    value = headers.get("Retry-After")
    if value is None:
        found = re.search(rb'"retryDelay"\s*:\s*"(\d{1,12}(?:\.\d{1,6})?)s"', raw[:MOST_LOOKED_AT])
        return min(float(found.group(1)), LONGEST_WAIT_S) if found else None
    if _PLAIN_NUMBER.fullmatch(value.strip()):
        return min(float(value), LONGEST_WAIT_S)
    if value.strip().isdecimal():
        # More digits than any time has.
        return LONGEST_WAIT_S
    try:
        wait = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError, OSError, IndexError, TypeError):
        return None
    return min(max(0.0, wait), LONGEST_WAIT_S)
