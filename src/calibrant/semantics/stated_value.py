"""One confidence as people and models write it: '0.92', '85 %', 'High (90%)', '8 out of 10'."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from calibrant.core import InputError
from calibrant.semantics.text.numbers import digits_for_words
from calibrant.semantics.text.words import phrases, table

CONFIDENCE_WORDS = {phrase: float(value) for phrase, value in table("confidence").items()}
CONFIDENCE_LABEL = re.compile(
    rf"(?:{phrases('confidence labels')})"
    r"(?:\s?[(（](?P<scale>[^)）\n]{0,40})[)）])?[\s*_\"'`]*(?:is|of|:|：|=|-|\|)?[\s*_\"'`:]*",
    re.IGNORECASE,
)
SCALES = ("auto", "probability", "percent", "mixed")
_NUMBER = r"[-+]?(?:\d{1,3}(?:[,'\u202f]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d{1,3})?"
_PERCENT = phrases("percent")
_OUT_OF = r"[(\[]?(?:/|out\sof|of|von|sur|de|su|из)\s?(?P<out>\d{1,4}(?:\.0)?)\b[)\]]?"
_UNIT = rf"\s?(?:(?P<percent>{_PERCENT})|{_OUT_OF})"
_VALUE = re.compile(
    rf"(?P<number>{_NUMBER})(?:\s?(?:%\s?)?(?:-|–|to|and|bis|à|a|и|до|～|~)\s?(?P<upper>{_NUMBER}))?"
    rf"(?:{_UNIT})?",
    re.IGNORECASE,
)
_BOUND = re.compile(rf"(?:{phrases('bounds')})\s?$", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|isn't|no|never|nicht|pas|non|não)\s(?:\w+\s)?$", re.IGNORECASE)
_WORDS = re.compile(
    r"(?<!\w)("
    + "|".join(sorted(map(re.escape, CONFIDENCE_WORDS), key=len, reverse=True))
    + r")(?!\w)",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[,'\u202f]\d{3})+(?:\.\d+)?")
_BARE = re.compile(r"(?<![\d.,])(\d{2,3})(?:\.\d+)?(?![\d.,%％]|\s?(?:%|％|/|per|out))")
# Two ends further apart than this say too little to be read as their middle.
_WIDEST = 0.2
_READ = 60
_QUOTES = "\"'`*_~<>()[]{} \t"


@dataclass(frozen=True, slots=True)
class StatedValue:
    """A confidence in [0, 1], or None and why: absent, out of range, two values, a bound, ..

    Examples
    --------
    >>> StatedValue(None, "out of range").reason
    'out of range'
    """

    value: float | None
    reason: str | None = None


ABSENT = StatedValue(None, "absent")


def check_scale(scale: str) -> None:
    """Refuse a scale that is none."""
    if scale not in SCALES:
        raise InputError(f"scale is one of {', '.join(SCALES)}, got {scale!r}")


def scale_of_all(texts: Iterable[str], scale: str) -> str:
    """Return how bare numbers above 1 are read in texts that answer one prompt.

    One text that says 8 may mean 8 of 100 or 8 of 10. Beside others that say 85 it is a
    percentage.

    Examples
    --------
    >>> scale_of_all(["Paris | 85", "Rome | 8"], "auto"), scale_of_all(["Rome | 8"], "auto")
    ('mixed', 'auto')
    """
    if scale != "auto":
        return scale
    return "mixed" if any(_says_percent(text) for text in texts) else "auto"


def _says_percent(text: str) -> bool:
    match = _BARE.search(text, max(0, len(text) - _READ))
    return match is not None and 10 < int(match[1]) <= 100


def read_value(text: str, scale: str, words: bool, *, anywhere: bool = False) -> StatedValue:
    """Read the value at the start of a text, or the only one in it.

    Examples
    --------
    >>> read_value("High (90%)", "auto", True).value
    0.9
    >>> read_value("80-90%", "auto", True).value, read_value("8", "auto", True).reason
    (0.85, '8 of 10 or 8 %')
    """
    plain = digits_for_words(text.strip().strip(_QUOTES))
    phrase = _WORDS.search(plain) if anywhere else _WORDS.match(plain)
    start = _after_level(plain, phrase) if phrase is not None else 0
    matches = list(_VALUE.finditer(plain, start)) if anywhere or phrase else []
    if not matches:
        first = _VALUE.match(plain)
        matches = [] if first is None else [first]
    if matches:
        return _one_of(matches, plain, scale, alone=anywhere)
    if phrase is None or not words:
        return ABSENT
    return _level(phrase, plain)


def _after_level(plain: str, phrase: re.Match[str]) -> int:
    """Return where a number may stand that says what a level means: 'High (90%)', 'High - 0.9'."""
    if phrase.start():
        return 0
    return phrase.end() if re.match(r"\s?[-(\[:,=–]", plain[phrase.end() :]) else len(plain)


def _one_of(matches: list[re.Match[str]], plain: str, scale: str, *, alone: bool) -> StatedValue:
    if _BOUND.search(plain[: matches[0].start()][-16:]):
        return StatedValue(None, "a bound, not a value")
    values = [_scaled(match, scale) for match in matches]
    if alone and len({each.value for each in values}) > 1:
        return StatedValue(None, "several values")
    return values[0]


def _level(phrase: re.Match[str], plain: str) -> StatedValue:
    if _DENIED.search(plain[: phrase.start()][-24:]):
        return StatedValue(None, "a level that is denied")
    value = CONFIDENCE_WORDS[phrase[1].lower()]
    others = {CONFIDENCE_WORDS[found.lower()] for found in _WORDS.findall(plain[:_READ])}
    return StatedValue(value) if others == {value} else StatedValue(None, "several levels")


def _scaled(match: re.Match[str], scale: str) -> StatedValue:
    low = _one(match["number"], match, scale)
    if match["upper"] is None or low.value is None:
        return low
    high = _one(match["upper"], match, scale)
    if high.value is None:
        return high
    if not 0.0 <= high.value - low.value <= _WIDEST + 1e-9:
        return StatedValue(None, "a wide range")
    return StatedValue(round((low.value + high.value) / 2, 12))


def _one(number: str, match: re.Match[str], scale: str) -> StatedValue:
    value = _as_number(number)
    if match["out"]:
        whole = float(match["out"])
        value = value / whole if whole else math.nan
    elif match["percent"] or scale == "percent":
        value = round(value / 100.0, 12)
    elif scale != "probability" and value > 1.0:
        if scale == "auto" and value <= 10.0:
            return StatedValue(None, f"{number} of 10 or {number} %")
        value = round(value / 100.0, 12)
    return StatedValue(value) if 0.0 <= value <= 1.0 else StatedValue(None, "out of range")


def _as_number(text: str) -> float:
    """Return the number; '0,850' has a decimal comma, '1,238' a separator of thousands."""
    if _THOUSANDS.fullmatch(text.lstrip("+-")) and not text.lstrip("+-").startswith("0"):
        return float(re.sub(r"[,'\u202f]", "", text))
    try:
        return float(text.replace(",", ".", 1).replace(",", ""))
    except ValueError:  # '1,000.1e999' has two points then: no number, and no confidence
        return math.nan


_PERCENT_SCALE = re.compile(r"[%％]|100|percent|prozent", re.IGNORECASE)
_TO_TEN = re.compile(r"\b(?:0|1)\s?(?:-|–|to|bis|à|a)\s?(?P<most>5|7|10)\b", re.IGNORECASE)


def after_label(label: re.Match[str], text: str, scale: str, words: bool) -> StatedValue:
    """Read what follows a label; its brackets may say the scale: 'Confidence (1-10): 8'."""
    told = label["scale"] or ""
    rest = text[label.end() : label.end() + _READ]
    most = _TO_TEN.search(told)
    if most is not None and (bare := re.match(rf"({_NUMBER})(?!\s?[%/\d])", rest)) is not None:
        value = _as_number(bare[1]) / float(most["most"])
        return StatedValue(value) if 0.0 <= value <= 1.0 else StatedValue(None, "out of range")
    if scale == "auto" and _PERCENT_SCALE.search(told):
        scale = "percent"
    found = read_value(rest, scale, words)
    if found.reason != "absent":
        return found
    line = rest.split("\n", maxsplit=1)[0]
    return read_value(line, scale, words, anywhere=True)
