"""Intervals, inequalities, ranges, lists in brackets and classes of running time."""

import math
import re
from dataclasses import dataclass

from calibrant.answers.semantics.typed.relation import Relation, Verdict, decided

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_ENDS = re.compile(rf"([\[(])({_NUMBER}|-inf),({_NUMBER}|\+?inf)([\])])")
_BETWEEN = re.compile(rf"({_NUMBER})(<=?)[a-z](<=?)({_NUMBER})")
_ONE_SIDED = re.compile(rf"[a-z]([<>]=?)({_NUMBER})")
_RANGE = re.compile(
    r"(?:between|from)?\s?(\d+(?:\.\d+)?)\s?(?:-|to|and)\s?(\d+(?:\.\d+)?)\s?(%|[a-z]*)\.?"
)
_YEAR = re.compile(r"1\d\d\d|20\d\d")
_LISTED = re.compile(r"\s*([\[({])([^\[\](){}]*)([\])}])\s*\.?")
_CLASS = re.compile(r"\s*([OΘΩoω])\s?\((.{1,60})\)\s*\.?")
_ASKS_INTERVAL = re.compile(r"interval|range|between|domain|inequal", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends, whether each belongs to it, and the unit of a range in words."""

    low: float
    closed_low: bool
    high: float
    closed_high: bool
    unit: str = ""
    told_as_range: bool = False


def read_interval(text: str) -> Interval | None:
    """Read '[0, 1)', '0 < x <= 1', 'x > 3', 'between 10 and 12'.

    Examples
    --------
    >>> read_interval("[0, 1)") == read_interval("[0,1]"), read_interval("x > 3").low
    (False, 3.0)
    >>> read_interval("10-12") == read_interval("between 10 and 12")
    True
    """
    plain = text.replace("≤", "<=").replace("≥", ">=").replace("∞", "inf").lower()
    tight = plain.replace("infinity", "inf").replace(" ", "").rstrip(".")
    if match := _ENDS.fullmatch(tight):
        return Interval(float(match[2]), match[1] == "[", float(match[3]), match[4] == "]")
    if match := _BETWEEN.fullmatch(tight):
        return Interval(float(match[1]), match[2] == "<=", float(match[4]), match[3] == "<=")
    if match := _ONE_SIDED.fullmatch(tight):
        end, closed = float(match[2]), match[1].endswith("=")
        if match[1][0] == ">":
            return Interval(end, closed, math.inf, False)
        return Interval(-math.inf, False, end, closed)
    match = _RANGE.fullmatch(plain.strip())
    if match is None or float(match[1]) >= float(match[2]) or _YEAR.fullmatch(match[1]):
        return None
    return Interval(float(match[1]), True, float(match[2]), True, match[3], told_as_range=True)


def compare_intervals(a: Interval, b: Interval, asked: str) -> Verdict | None:
    """Compare two intervals; two numbers in round or square brackets may be a list instead."""
    if a != b and not (a.told_as_range or b.told_as_range) and not _ASKS_INTERVAL.search(asked):
        both_lists = math.isfinite(a.low + a.high) and math.isfinite(b.low + b.high)
        if both_lists and a.closed_low == a.closed_high and b.closed_low == b.closed_high:
            return None
    return decided(a == b, "interval")


def inside(value: float, interval: Interval) -> Verdict:
    """Compare a single figure with a range: inside it may or may not be what is meant."""
    within = interval.low <= value <= interval.high
    return (Relation.UNSURE if within else Relation.DIFFERENT), "range"


def read_listing(text: str) -> tuple[bool, tuple[str, ...]] | None:
    """Read a list in brackets: whether it is a set, and its entries.

    Examples
    --------
    >>> read_listing("{3, 1, 2}"), read_listing("[1, 2]")
    ((True, ('3', '1', '2')), (False, ('1', '2')))
    """
    match = _LISTED.fullmatch(text)
    if match is None or "," not in match[2]:
        return None
    return match[1] == "{", tuple(part.strip().strip("'\"").lower() for part in match[2].split(","))


def compare_listings(a: tuple[bool, tuple[str, ...]], b: tuple[bool, tuple[str, ...]]) -> Verdict:
    """Compare two lists in brackets; the order counts unless one is a set."""
    if a[0] or b[0]:
        return decided(set(a[1]) == set(b[1]), "set")
    return decided(a[1] == b[1], "sequence")


def read_complexity(text: str) -> tuple[str, str] | None:
    """Read a class of running time: its letter and what is inside.

    Examples
    --------
    >>> read_complexity("O(n log n)") == read_complexity("O(2n*log n)")
    True
    """
    match = _CLASS.fullmatch(text)
    if match is None:
        return None
    inner = match[2].lower().replace("²", "^2").replace("³", "^3").replace("lg", "log")
    tight = re.sub(r"[\s*·{}\\]", "", inner.replace("**", "^"))
    # A constant factor changes no class; '2^n' is none.
    return match[1], re.sub(r"^\d+(?=[a-z])", "", tight)


def compare_complexities(a: tuple[str, str], b: tuple[str, str]) -> Verdict:
    """Compare two classes of running time; another letter with the same inside is in doubt."""
    if a[1] == b[1] and a[0] != b[0]:
        return Relation.UNSURE, "complexity"
    return decided(a == b, "complexity")
