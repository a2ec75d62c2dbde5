"""Formulas of the same value or expression, by a computer algebra system (extra `math`).

A formula that grows too large once it is multiplied out is left alone: algebra never ends on it.
"""

import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from calibrant.core.names import optional_import

_DEEPEST = 4
_MOST_TERMS = 300
_HIGHEST_DEGREE, _HIGHEST_EXPONENT = 2_000, 200
_OPENING, _CLOSING = "([{", ")]}"
# Limits, sums and integrals are worked out, not compared.
_WORKED_OUT = re.compile(r"\\(?:lim|sum|prod|i*int|oint|bigcup|bigcap)(?![a-z])|!")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_LETTER = re.compile(r"[A-Za-z]")
# An exponent: a group, or what stands before the next sign.
_POWER = re.compile(r"(?:\^|\*\*)\s*")
_EXPONENT = re.compile(r"-?\s*(?:\d+|\\[a-zA-Z]+|[A-Za-z])?")
_PRODUCT = re.compile(r"[*^!]|\\(?:cdot|times|binom|sqrt)(?![a-z])|\d{3}|\d\s+\d|\d[eE]\d")
_NUMBER = re.compile(r"\d+")
# The sine of 99 x is a polynomial of degree 99 in that of x.
_ANGLE = re.compile(r"(?:sin|cos|tan|cot|sec|csc)h?(?![a-z])(?:\s*\^\s*(?:\{[^{}]*\}|\w))?\s*")
_LARGEST_FACTOR = 12


def is_small_formula(text: str) -> bool:
    r"""Return whether a formula can be worked out in bounded time.

    Brackets are at most four deep. Exponents are small numbers or letters. Multiplied out, the
    formula has at most some hundred terms.

    Examples
    --------
    >>> [is_small_formula(text) for text in (r"\frac{x^2+1}{(x+1)^3}", "(a+b+c)^2", "2^{n+1}")]
    [True, True, True]
    >>> [is_small_formula(text) for text in ("9^{99*99*99}", "(a+b+c+d)^{40}", "((9^{99})^{99})^9")]
    [False, False, False]
    """
    if _WORKED_OUT.search(text) or "{{" in text.replace(" ", ""):
        return False
    plain = text.replace("\\left", "").replace("\\right", "").replace("\\{", "(")
    plain = plain.replace("\\}", ")")
    if any(_is_large_angle(plain, angle.end()) for angle in _ANGLE.finditer(plain)):
        return False
    degree = _degree(plain)
    if degree is None or degree > _HIGHEST_DEGREE:
        return False
    letters = len(set(_LETTER.findall(_COMMAND.sub(" ", plain))))
    return math.comb(degree + letters, letters) <= _MOST_TERMS or letters == 0


def _degree(text: str) -> int | None:
    """Return the degree of the product of all groups; None where it cannot be bounded."""
    sums = [0]
    place = 0
    last = 0
    while place < len(text):
        power = _POWER.match(text, place)
        if power is not None:
            raised = _exponent(text, power.end())
            if raised is None:
                return None
            exponent, place = raised
            # What was raised has been added once.
            sums[-1] += last * (exponent - 1) if last else exponent
            last = 0
            continue
        letter = text[place]
        if letter in _OPENING:
            sums.append(0)
            if len(sums) > _DEEPEST + 1:
                return None
        elif letter in _CLOSING and len(sums) > 1:
            last = max(1, sums.pop())
            sums[-1] += last
        elif not letter.isspace():
            last = 0
        place += 1
    return sum(sums)


def _exponent(text: str, start: int) -> tuple[int, int] | None:
    """Return the largest value of the exponent that starts here, and where it ends."""
    if start < len(text) and text[start] in _OPENING:
        end = _group_end(text, start)
        inside = text[start:end]
        if _PRODUCT.search(inside):
            return None
    else:
        bare = _EXPONENT.match(text, start)
        end = start if bare is None else bare.end()
        inside = text[start:end]
        if "\\" in inside and text[end : end + 1] in ("(", "[", "{"):
            return None
    # Numbers side by side are multiplied.
    value = math.prod(max(1, int(number[:4])) for number in _NUMBER.findall(inside))
    tower = _POWER.match(text, end) is not None
    return None if value > _HIGHEST_EXPONENT or tower else (value, end)


def _group_end(text: str, start: int) -> int:
    depth, end = 0, start
    while end < len(text):
        depth += (text[end] in _OPENING) - (text[end] in _CLOSING)
        end += 1
        if not depth:
            break
    return end


def _is_large_angle(text: str, start: int) -> bool:
    """Return whether an angle is a letter with a large factor."""
    opens = start < len(text) and text[start] in _OPENING
    inside = text[start : _group_end(text, start)] if opens else text[start : start + 12]
    factor = math.prod(max(1, int(number[:4])) for number in _NUMBER.findall(inside))
    return factor > _LARGEST_FACTOR and _LETTER.search(_COMMAND.sub(" ", inside)) is not None


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
    if len(text) > _LONGEST or _WORDS.search(text) or not _FORMULA.search(text):
        return False
    return is_small_formula(text)


def algebra() -> Any:
    """Return the algebra system, or say what to install."""
    return optional_import("math_verify", extra="math", purpose="comparing formulas")


@lru_cache(maxsize=50_000)
def same_formula(a: str, b: str) -> bool | None:
    r"""Return whether two formulas mean the same; None where one cannot be read.

    Decimals count as the numbers they are: 0.333 is not 1/3.
    """
    library = algebra()
    if not all(len(text) <= _LONGEST and is_small_formula(text) for text in (a, b)):
        return None
    with _quiet():
        left, right = _parsed(library, a), _parsed(library, b)
        if not left or not right:
            return None
        # An equation on one side only ('x = 2' and '2') is read from either direction.
        return bool(
            library.verify(left, right, timeout_seconds=None)
            or library.verify(right, left, timeout_seconds=None)
        )


def _parsed(library: Any, text: str) -> list[Any]:
    plain = text.strip().rstrip(".").strip("$ ")
    parsed: list[Any] = library.parse(f"${plain}$", parsing_timeout=None)
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
