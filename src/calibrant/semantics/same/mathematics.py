"""Formulas: the same value or expression, decided by a computer algebra system (extra `math`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from calibrant.core.optional import optional_import
from calibrant.semantics.same.formula_size import is_small_formula

_LONGEST = 120
_FORMULA = re.compile(
    r"\\[a-z]+|[\d)\]}a-z]\s?[-+*/^=<>]\s?[\d(\[{a-z\\-]|\d[a-z]\b|\{[^{}]*\}", re.I
)
_WORDS = re.compile(r"(?<!\\)\b[A-Za-z]{4,}\b")
_LOGGERS = ("math_verify.parser", "math_verify.grader")


def looks_like_formula(text: str) -> bool:
    r"""Return whether a text is a formula, and one that can be worked out in bounded time.

    Examples
    --------
    >>> [looks_like_formula(text) for text in (r"\frac{1}{2}", "2x+1", "Henry VIII", "9^{9^9}")]
    [True, True, False, False]
    """
    if len(text) > _LONGEST or _WORDS.search(text) or not is_small_formula(text):
        return False
    return bool(_FORMULA.search(text))


def check_mathematics() -> str:
    """Return the name and version of the algebra system, or say what to install."""
    optional_import("math_verify", extra="math", purpose="comparing formulas")
    from importlib.metadata import version

    return f"math-verify {version('math-verify')}"


@lru_cache(maxsize=50_000)
def same_formula(a: str, b: str) -> bool | None:
    r"""Return whether two formulas mean the same; None where one cannot be read.

    Decimals count as the numbers they are: 0.333 is not 1/3.
    """
    found = optional_import("math_verify", extra="math", purpose="comparing formulas")
    if not all(len(text) <= _LONGEST and is_small_formula(text) for text in (a, b)):
        return None
    with _quiet():
        left, right = _parsed(found, a), _parsed(found, b)
        if not left or not right:
            return None
        # An equation on one side only ('x = 2' and '2') is read from either direction.
        return bool(
            found.verify(left, right, timeout_seconds=None)
            or found.verify(right, left, timeout_seconds=None)
        )


def _parsed(found: Any, text: str) -> list[Any]:
    plain = text.strip().rstrip(".").strip("$ ")
    parsed: list[Any] = found.parse(f"${plain}$", parsing_timeout=None)
    return parsed


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back the library's notice that it runs without an alarm, which threads cannot have.

    `looks_like_formula` lets nothing through that needs one.
    """

    def keep(record: logging.LogRecord) -> bool:
        return "Timeout is disabled" not in record.getMessage()

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)
