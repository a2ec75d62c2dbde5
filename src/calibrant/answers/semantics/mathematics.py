"""Formulas of the same value or expression, by a computer algebra system (extra `math`).

A formula that grows too large once it is multiplied out is left alone: algebra never ends on it.
"""

import logging
import math
import re
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
    """
    if _WORKED_OUT.search(text) or "{{" in text.replace(" ", ""):
        return False
    plain = text.replace("\\left", "").replace("\\right", "").replace("\\{", "(")
    plain = plain.replace("\\}", ")")
    for angle in _ANGLE.finditer(plain):
        start = angle.end()
        opens = plain[start : start + 1] in tuple(_OPENING)
        inside = plain[start : _group_end(plain, start) if opens else start + 12]
        if _product(inside) > _LARGEST_FACTOR and _LETTER.search(_COMMAND.sub(" ", inside)):
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
    tower = _POWER.match(text, end) is not None
    return None if _product(inside) > _HIGHEST_EXPONENT or tower else (_product(inside), end)


def _group_end(text: str, start: int) -> int:
    depth, end = 0, start
    while end < len(text):
        depth += (text[end] in _OPENING) - (text[end] in _CLOSING)
        end += 1
        if not depth:
            break
    return end


def _product(text: str) -> int:
    """Return the numbers of a text multiplied: side by side they are a product."""
    return math.prod(max(1, int(number[:4])) for number in _NUMBER.findall(text))


_LONGEST = 120
_FORMULA = re.compile(
    r"\\[a-z]+|[\d)\]}a-z]\s?[-+*/^=<>]\s?[\d(\[{a-z\\-]|\d[a-z]\b|\{[^{}]*\}", re.I
)
_WORDS = re.compile(r"(?<!\\)\b[A-Za-z]{4,}\b")


def looks_like_formula(text: str) -> bool:
    r"""Return whether a text is a formula, and one that can be worked out in bounded time."""
    if len(text) > _LONGEST or _WORDS.search(text) or not _FORMULA.search(text):
        return False
    return is_small_formula(text)


def algebra() -> Any:
    """Return the algebra system, or say what to install.

    Its notice that it runs without an alarm, which threads cannot have, is kept back:
    `looks_like_formula` lets nothing through that needs one.
    """
    library = optional_import("math_verify", extra="math", purpose="comparing formulas")
    for name in ("math_verify.parser", "math_verify.grader"):
        logging.getLogger(name).addFilter(_says_more_than_no_alarm)
    return library


def _says_more_than_no_alarm(record: logging.LogRecord) -> bool:
    return "Timeout is disabled" not in record.getMessage()


@lru_cache(maxsize=50_000)
def same_formula(a: str, b: str) -> bool | None:
    r"""Return whether two formulas mean the same; None where one cannot be read.

    Decimals count as the numbers they are: 0.333 is not 1/3.
    """
    library = algebra()
    if not all(len(text) <= _LONGEST and is_small_formula(text) for text in (a, b)):
        return None
    left, right = (
        library.parse(f"${text.strip().rstrip('.').strip('$ ')}$", parsing_timeout=None)
        for text in (a, b)
    )
    if not left or not right:
        return None
    # An equation on one side only ('x = 2' and '2') is read from either direction.
    orders = ((left, right), (right, left))
    return any(library.verify(*each, timeout_seconds=None) for each in orders)
