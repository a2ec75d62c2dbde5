"""Dates in their many spellings, brought to one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from calibrant.semantics.text.numbers import HAS_DIGIT
from calibrant.semantics.text.words import word_list

_MONTHS = {
    name: number
    for number, name in enumerate(
        word_list(
            "january february march april may june july august september october november december"
        ),
        start=1,
    )
}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_NAME = r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?" + (
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(\d{4})"
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?"
_PATTERNS = (
    (re.compile(rf"\b{_WEEKDAY}{_NAME}\s+{_DAY}\s*,?\s+{_YEAR}\b", re.I), ("month", "day", "year")),
    (
        re.compile(rf"\b{_WEEKDAY}{_DAY}\s+(?:of\s+)?{_NAME}\s*,?\s+{_YEAR}\b", re.I),
        ("day", "month", "year"),
    ),
    (re.compile(r"(?<![\d-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d-])"), ("year", "month", "day")),
    (re.compile(r"(?<![\d/])(\d{4})/(\d{1,2})/(\d{1,2})(?![\d/])"), ("year", "month", "day")),
    (re.compile(rf"\b{_NAME}\s*,?\s+(?:of\s+)?{_YEAR}\b", re.I), ("month", "year")),
    (re.compile(rf"\b{_NAME}\s+{_DAY}\b(?!\s*,?\s*\d)", re.I), ("month", "day")),
    (re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_NAME}(?=\W|$)(?!\s*,?\s*\d)", re.I), ("day", "month")),
)
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])")
_MAYBE = re.compile(r"\d[-/]\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE)
_CANONICAL = re.compile(r"^(\d{4}|x{4})_(\d{2}|xx)_(\d{2}|xx)$")
_YEAR_ALONE = re.compile(
    r"^(?:in |the year |year |circa |c\. ?)*([12]\d{3})(?: ?(?:ad|ce))?\.?$", re.I
)
_SHORT_RANGE = re.compile(r"(?<!\d)([12]\d)(\d{2})\s*[-/]\s*(\d{2})(?!\d)")
_LONG_RANGE = re.compile(r"(?<!\d)([12]\d{3})\s*-\s*([12]\d{3})(?!\d)")
_DECADE = re.compile(r"\b([12]\d{2}0)'?s\b")


@dataclass(frozen=True, slots=True)
class Date:
    """A date; a part that is not given is None."""

    year: int | None
    month: int | None = None
    day: int | None = None

    def contains(self, other: Date) -> bool:
        """Return whether every part given here is the same in `other`."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(mine is None or mine == theirs for mine, theirs in pairs)


def unify_dates(text: str) -> str:
    """Return the text with every date in the form ``1969_07_20`` (``xx`` where not given).

    Examples
    --------
    >>> unify_dates("on July 20th, 1969") == unify_dates("on 20 July 1969") == "on 1969_07_20"
    True
    >>> unify_dates("Dec. 1972"), unify_dates("May 5")
    ('1972_12_xx', 'xxxx_05_05')
    >>> unify_dates("03/04/1999")  # could be March or April: left as it is
    '03/04/1999'
    """
    if not _MAYBE.search(text) or not HAS_DIGIT(text):
        return text
    for pattern, parts in _PATTERNS:
        text = pattern.sub(partial(_canonical, parts=parts), text)
    return _SLASHED.sub(_slashed, text)


def _canonical(match: re.Match[str], parts: tuple[str, ...]) -> str:
    found = dict(zip(parts, match.groups(), strict=True))
    word = found.get("month", "")
    month = int(word) if word.isdigit() else _MONTHS[word.lower()[:3]]
    day = int(found["day"]) if "day" in found else None
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return match[0]
    shown_day = "xx" if day is None else f"{day:02d}"
    return f"{found.get('year', 'xxxx')}_{month:02d}_{shown_day}"


def _slashed(match: re.Match[str]) -> str:
    first, second = int(match[1]), int(match[2])
    if first > 12 >= second >= 1 and first <= 31:
        return f"{match[3]}_{second:02d}_{first:02d}"
    if second > 12 >= first >= 1 and second <= 31:
        return f"{match[3]}_{first:02d}_{second:02d}"
    return match[0]


def unify_years(text: str) -> str:
    """Return the text with year ranges and decades in one spelling.

    Examples
    --------
    >>> unify_years("the 1979-80 season"), unify_years("1960's")
    ('the 1979 to 1980 season', '1960s')
    """
    if not HAS_DIGIT(text):
        return text
    text = _SHORT_RANGE.sub(_expand, text)
    text = _LONG_RANGE.sub(r"\1 to \2", text)
    return _DECADE.sub(r"\1s", text)


def _expand(match: re.Match[str]) -> str:
    # 1979-80 is a range; 1979-12 is more likely a month.
    if int(match[3]) <= int(match[2]):
        return match[0]
    return f"{match[1]}{match[2]} to {match[1]}{match[3]}"


def parse_date(text: str) -> Date | None:
    """Read a text that is a date or a year and nothing else.

    Examples
    --------
    >>> parse_date("July 20, 1969.")
    Date(year=1969, month=7, day=20)
    >>> parse_date("in 1969")
    Date(year=1969, month=None, day=None)
    >>> parse_date("12 monkeys") is None
    True
    """
    plain = text.strip().rstrip(".")
    if not plain or len(plain) > 40 or not HAS_DIGIT(plain):
        return None
    year = _YEAR_ALONE.match(plain)
    if year:
        return Date(int(year[1]))
    match = _CANONICAL.match(unify_dates(plain).removeprefix("on ").removeprefix("in "))
    if match is None:
        return None
    parts = [None if part.startswith("x") else int(part) for part in match.groups()]
    return Date(*parts)
