"""Numbers in words and digits, with separators, scales and units; dates in their many spellings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial

from calibrant.answers.semantics.text.words import listed, table

HAS_DIGIT = re.compile(r"\d").search
_ONES = {word: value for value, word in enumerate(listed("ones"))}
_TENS = {word: 10 * value for value, word in enumerate(listed("tens"), start=2)}
_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_ORDINALS = {word: value for value, word in enumerate(listed("ordinals"), start=1)}
_ORDINALS |= {word[:-1] + "ieth": value for word, value in _TENS.items()}
_CARDINAL = "|".join(sorted([*_ONES, *_TENS, *_SCALES], key=len, reverse=True))
_ORDINAL = "|".join(sorted(_ORDINALS, key=len, reverse=True))
_RUN = re.compile(
    rf"\b(?:{_CARDINAL})(?:(?:[\s-]+and)?[\s-]+(?:{_CARDINAL}))*(?:[\s-]+(?:{_ORDINAL}))?\b"
    rf"|\b(?:{_ORDINAL})\b",
    re.IGNORECASE,
)
_VALUES = _ORDINALS | _TENS | _ONES | _SCALES
_NUMBER_WORDS = frozenset((*_VALUES, *(f"{scale}s" for scale in _SCALES)))
_WORDS = re.compile(r"[a-z]+").findall
# Cheap signs without which the patterns of a step cannot match: most texts have none of them.
_GROUPED = re.compile(r"\d[,' .]\d{3}").search
_MOST_WORDS = 20
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:[,' ]\d{3})+)(?![\d])")
_DOTTED = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3}){2,})(?!\d|[.,]\d)")
_SCALED = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)[\s-]*(hundred|thousand|million|billion|trillion)s?\b", re.IGNORECASE
)
UNIT_WORDS = table("units")


def digits_for_words(text: str) -> str:
    """Return the text with number words as digits and ordinals as ``5th``.

    Examples
    --------
    >>> digits_for_words("one thousand and twenty-three soldiers of the fifth legion")
    '1023 soldiers of the 5th legion'
    >>> digits_for_words("1.5 million")
    '1500000'
    """
    if _NUMBER_WORDS.isdisjoint(_WORDS(text.lower())):
        return text
    return _RUN.sub(_run, _SCALED.sub(_scaled, text) if HAS_DIGIT(text) else text)


def _scaled(match: re.Match[str]) -> str:
    value = float(match[1]) * _SCALES[match[2].lower()]
    return str(int(value)) if value.is_integer() and value < 1e15 else match[0]


def _run(match: re.Match[str]) -> str:
    words = [word for word in _WORDS(match[0].lower()) if word != "and"]
    # 'seconds' after a number are a unit of time, not an order.
    before = match.string[max(0, match.start() - 8) : match.start()].rstrip()
    if words == ["second"] and before[-1:].isdigit():
        return match[0]
    ordinal = words[-1] in _ORDINALS
    if len(words) > 1 and words[-1] == "second" and words[-2] not in _TENS:
        return f"{_value(words[:-1])} second"
    value = _value(words)
    return _ordinal(value) if ordinal else str(value)


def _value(words: list[str]) -> int | str:
    # Nobody writes a number in so many words; 'hundred' said often would be one of many digits.
    if len(words) > _MOST_WORDS:
        return _side_by_side(words)
    total = current = 0
    previous = math.inf
    for word in words:
        if word in _SCALES:
            scale = _SCALES[word]
            if scale == 100:
                current = max(current, 1) * 100
                previous = 100
            else:
                total += max(current, 1) * scale
                current, previous = 0, math.inf
            continue
        step = _VALUES.get(word, 0)
        # 'nineteen eighty' and 'one two' are no sums: keep the parts side by side.
        if (current and step >= previous) or (current % 100 and current % 100 < 20):
            return _side_by_side(words)
        current += step
        previous = step if step >= 20 else 1
    return total + current


def _side_by_side(words: list[str]) -> str:
    if len(words) in (2, 3) and words[0] in _ONES and 10 <= _ONES[words[0]] < 20:
        tail = _value(words[1:])
        if isinstance(tail, int) and 10 <= tail < 100:
            return str(_ONES[words[0]] * 100 + tail)
    return " ".join(str(_VALUES.get(word, word)) for word in words)


def _ordinal(value: int | str) -> str:
    if isinstance(value, str):
        return value
    last = value % 100
    ending = "th" if 10 <= last <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


def join_thousands(text: str) -> str:
    """Return the text with thousands separators taken out.

    Examples
    --------
    >>> join_thousands("1,000 or 1 000 000 or 1.000.000, but 3,14")
    '1000 or 1000000 or 1000000, but 3,14'
    """
    if not _GROUPED(text):
        return text
    joined = _THOUSANDS.sub(lambda m: m[1] + re.sub(r"[,' ]", "", m[2]), text)
    return _DOTTED.sub(lambda m: m[1].replace(".", ""), joined)


_MONTHS = {name: number for number, name in enumerate(listed("months"), start=1)}
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
_THREE_LETTERS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
# A figure before or after a month, in small letters.
_BEFORE_MONTH = re.compile(rf"\d(?:[-/]\d|(?:st|nd|rd|th)?\s+(?:of\s+)?{_THREE_LETTERS})").search
_AFTER_MONTH = re.compile(rf"{_THREE_LETTERS}[a-z]*\.?\s*,?\s+(?:of\s+)?\d").search
_CANONICAL = re.compile(r"^(\d{4}|x{4})_(\d{2}|xx)_(\d{2}|xx)$")
_YEAR_ALONE = re.compile(
    r"^(?:in |the year |year |circa |c\. ?)*([12]\d{3})(?: ?(?:ad|ce))?\.?$", re.I
)
_SHORT_RANGE = re.compile(r"(?<!\d)([12]\d)(\d{2})\s*[-/]\s*(\d{2})(?!\d)")
_LONG_RANGE = re.compile(r"(?<!\d)([12]\d{3})\s*-\s*([12]\d{3})(?!\d)")
_DECADE = re.compile(r"\b([12]\d{2}0)'?s\b")
_YEARS = re.compile(r"\d(?:\s*[-/]\s*\d|'?s)").search


@dataclass(frozen=True, slots=True)
class Date:
    """A date; a part that is not given is None."""

    year: int | None
    month: int | None = None
    day: int | None = None

    def agrees(self, other: Date) -> bool:
        """Return whether no part that both give differs."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


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
    if not HAS_DIGIT(text):
        return text
    low = text.lower()
    if not _BEFORE_MONTH(low) and not _AFTER_MONTH(low):
        return text
    for pattern, parts in _PATTERNS:
        text = pattern.sub(partial(_canonical, parts=parts), text)
    return _SLASHED.sub(_slashed, text)


def _canonical(match: re.Match[str], parts: tuple[str, ...]) -> str:
    date = dict(zip(parts, match.groups(), strict=True))
    word = date.get("month", "")
    month = int(word) if word.isdigit() else _MONTHS[word.lower()[:3]]
    day = int(date["day"]) if "day" in date else None
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return match[0]
    shown_day = "xx" if day is None else f"{day:02d}"
    return f"{date.get('year', 'xxxx')}_{month:02d}_{shown_day}"


def _slashed(match: re.Match[str]) -> str:
    first, second = int(match[1]), int(match[2])
    for day, month in ((first, second), (second, first)):
        if 12 < day <= 31 and 1 <= month <= 12:
            return f"{match[3]}_{month:02d}_{day:02d}"
    return match[0]


def unify_years(text: str) -> str:
    """Return the text with year ranges and decades in one spelling.

    Examples
    --------
    >>> unify_years("the 1979-80 season"), unify_years("1960's")
    ('the 1979 to 1980 season', '1960s')
    """
    if not _YEARS(text):
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
