"""Numbers in words and digits, with separators, scales and units; dates in their many spellings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from calibrant.answers.semantics.text.words import listed, table

HAS_DIGIT = re.compile(r"\d").search
_ONES = {word: value for value, word in enumerate(listed("ones"))}
_TENS = {word: 10 * value for value, word in enumerate(listed("tens"), start=2)}
_SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12
}  # fmt: skip
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
_ORDINAL_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:[,' ]\d{3})+)(?![\d])")
_DOTTED = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3}){2,})(?!\d|[.,]\d)")
_SCALED = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)[\s-]*(hundred|thousand|million|billion|trillion)s?\b", re.IGNORECASE
)
UNIT_WORDS = table("units")


def digits_for_words(text: str) -> str:
    """Return the text with number words as digits and ordinals as ``5th``."""
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
    if len(words) > 1 and words[-1] == "second" and words[-2] not in _TENS:
        return f"{_value(words[:-1])} second"
    value = _value(words)
    if words[-1] not in _ORDINALS or isinstance(value, str):
        return str(value)
    teen = 10 <= value % 100 <= 20
    return f"{value}th" if teen else f"{value}{_ORDINAL_ENDINGS.get(value % 10, 'th')}"


def _value(words: list[str]) -> int | str:
    # Nobody writes a number in so many words; 'hundred' said often would be one of many digits.
    if len(words) > _MOST_WORDS:
        return _side_by_side(words)
    total = current = 0
    previous = math.inf
    for word in words:
        step = _VALUES.get(word, 0)
        if word == "hundred":
            current, previous = max(current, 1) * 100, 100
        elif word in _SCALES:
            total += max(current, 1) * step
            current, previous = 0, math.inf
        # 'nineteen eighty' and 'one two' are no sums: keep the parts side by side.
        elif (current and step >= previous) or (current % 100 and current % 100 < 20):
            return _side_by_side(words)
        else:
            current += step
            previous = step if step >= 20 else 1
    return total + current


def _side_by_side(words: list[str]) -> str:
    if len(words) in (2, 3) and 10 <= _ONES.get(words[0], 0) < 20:
        tail = _value(words[1:])
        if isinstance(tail, int) and 10 <= tail < 100:
            return str(_ONES[words[0]] * 100 + tail)
    return " ".join(str(_VALUES.get(word, word)) for word in words)


def join_thousands(text: str) -> str:
    """Return the text with thousands separators taken out."""
    if not _GROUPED(text):
        return text
    joined = _THOUSANDS.sub(lambda m: m[1] + re.sub(r"[,' ]", "", m[2]), text)
    return _DOTTED.sub(lambda m: m[1].replace(".", ""), joined)


_MONTHS = {name: number for number, name in enumerate(listed("months"), start=1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_NAME = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    + (r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?")
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?"
# '13/12/1999' can be read in one way only, '03/04/1999' in two: that one is left as it is.
_LATE_DAY, _MONTH = r"(?P<day>1[3-9]|2\d|3[01])", r"(?P<month>0?[1-9]|1[0-2])"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_WEEKDAY}{_NAME}\s+{_DAY}\s*,?\s+{_YEAR}\b",
        rf"\b{_WEEKDAY}{_DAY}\s+(?:of\s+)?{_NAME}\s*,?\s+{_YEAR}\b",
        rf"(?<![\d-]){_YEAR}-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})(?![\d-])",
        rf"(?<![\d/]){_YEAR}/(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})(?![\d/])",
        rf"\b{_NAME}\s*,?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b{_NAME}\s+{_DAY}\b(?!\s*,?\s*\d)",
        rf"\b{_DAY}\s+(?:of\s+)?{_NAME}(?=\W|$)(?!\s*,?\s*\d)",
        rf"(?<![\d/]){_LATE_DAY}/{_MONTH}/{_YEAR}(?![\d/])",
        rf"(?<![\d/]){_MONTH}/{_LATE_DAY}/{_YEAR}(?![\d/])",
    )
]
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
    """Return the text with every date in the form ``1969_07_20`` (``xx`` where not given)."""
    if not HAS_DIGIT(text):
        return text
    low = text.lower()
    if not _BEFORE_MONTH(low) and not _AFTER_MONTH(low):
        return text
    for pattern in _DATES:
        text = pattern.sub(_canonical, text)
    return text


def _canonical(match: re.Match[str]) -> str:
    date = match.groupdict()
    month = int(date["month"]) if date["month"].isdigit() else _MONTHS[date["month"].lower()[:3]]
    day = date.get("day")
    if not 1 <= month <= 12 or (day and not 1 <= int(day) <= 31):
        return match[0]
    return f"{date.get('year', 'xxxx')}_{month:02d}_{day.zfill(2) if day else 'xx'}"


def unify_years(text: str) -> str:
    """Return the text with year ranges and decades in one spelling."""
    if not _YEARS(text):
        return text
    text = _SHORT_RANGE.sub(_short_range, text)
    text = _LONG_RANGE.sub(r"\1 to \2", text)
    return _DECADE.sub(r"\1s", text)


def _short_range(match: re.Match[str]) -> str:
    # 1979-80 is a range; 1979-12 is more likely a month.
    century, first, last = match.groups()
    return f"{century}{first} to {century}{last}" if int(last) > int(first) else match[0]


def parse_date(text: str) -> Date | None:
    """Read a text that is a date or a year and nothing else."""
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
