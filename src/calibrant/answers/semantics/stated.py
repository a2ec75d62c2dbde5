"""An answer and the confidence written beside it: 'Paris | 0.9', 'very high', '8 out of 10'."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from calibrant.answers.semantics.text.normalise import clean_text, squeeze
from calibrant.answers.semantics.text.numbers import digits_for_words
from calibrant.answers.semantics.text.words import phrases, table
from calibrant.core import InputError

SCALES = ("auto", "probability", "percent", "mixed")
_LEVELS = {phrase: float(value) for phrase, value in table("confidence").items()}
_LABEL = re.compile(
    rf"(?:{phrases('confidence labels')})"
    r"(?:\s?[(（](?P<scale>[^)）\n]{0,40})[)）])?[\s*_\"'`]*(?:is|of|:|：|=|-|\|)?[\s*_\"'`:]*",
    re.IGNORECASE,
)
_NUMBER = r"[-+]?(?:\d{1,3}(?:[,'\u202f]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d{1,3})?"
_OUT_OF = r"[(\[]?(?:/|out\sof|of|von|sur|de|su|из)\s?(?P<out>\d{1,4}(?:\.0)?)\b[)\]]?"
_VALUE = re.compile(
    rf"(?P<number>{_NUMBER})(?:\s?(?:%\s?)?(?:-|–|to|and|bis|à|a|и|до|～|~)\s?(?P<upper>{_NUMBER}))?"
    rf"(?:\s?(?:(?P<percent>{phrases('percent')})|{_OUT_OF}))?",
    re.IGNORECASE,
)
_BOUND = re.compile(rf"(?:{phrases('bounds')})\s?$", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|isn't|no|never|nicht|pas|non|não)\s(?:\w+\s)?$", re.IGNORECASE)
_WORDS = re.compile(
    rf"(?<!\w)({'|'.join(sorted(map(re.escape, _LEVELS), key=len, reverse=True))})(?!\w)",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"[+-]?(?!0)\d{1,3}(?:[,'\u202f]\d{3})+(?:\.\d+)?")
_BARE = re.compile(r"(?<![\d.,])(\d{2,3})(?:\.\d+)?(?![\d.,%％]|\s?(?:%|％|/|per|out))")
_PERCENT_SCALE = re.compile(r"[%％]|100|percent|prozent", re.IGNORECASE)
_TO_TEN = re.compile(r"\b(?:0|1)\s?(?:-|–|to|bis|à|a)\s?(?P<most>5|7|10)\b", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
# Used where runs of blanks are one blank.
_DASHED = re.compile(r"^(.+?)\s?(?::|-|–|—|\()\s?([^:()\n]{1,30}?)\)?\s?$")
_BULLET = re.compile(
    r"^\s*(?:(?:\(?\d{1,2}[.):]|[-*•])\s+|(?:G\d{1,2}|Guess\s*\d{0,2}|Answer\s*\d{0,2})\s*[:.)]\s*)",
    re.IGNORECASE,
)
_GUESS_LINE = re.compile(r"^([GP])(\d{1,2})\s*[:.)]\s*(.*)$", re.IGNORECASE)
# Two ends further apart than this say too little to be read as their middle.
_WIDEST = 0.2
_READ, _LONGEST = 60, 4000
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


@dataclass(frozen=True, slots=True)
class Stated:
    """An answer and the confidence written beside it; None where it could not be read."""

    answer: str | None
    confidence: float | None


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
    bare = (_BARE.search(text, max(0, len(text) - _READ)) for text in texts)
    return "mixed" if any(number and 10 < int(number[1]) <= 100 for number in bare) else "auto"


def _read_value(text: str, scale: str, words: bool, *, anywhere: bool = False) -> StatedValue:
    """Read the value at the start of a text, or the only one in it."""
    plain = digits_for_words(text.strip().strip(_QUOTES))
    level = _WORDS.search(plain) if anywhere else _WORDS.match(plain)
    start = 0
    if level is not None and not level.start():
        # 'High (90%)', 'High - 0.9': what a level means.
        start = level.end() if re.match(r"\s?[-(\[:,=–]", plain[level.end() :]) else len(plain)
    matches = list(_VALUE.finditer(plain, start)) if anywhere or level else []
    if not matches and (first := _VALUE.match(plain)):
        matches = [first]
    if matches:
        if _BOUND.search(plain[: matches[0].start()][-16:]):
            return StatedValue(None, "a bound, not a value")
        values = [_scaled(match, scale) for match in matches]
        several = anywhere and len({each.value for each in values}) > 1
        return StatedValue(None, "several values") if several else values[0]
    if level is None or not words:
        return StatedValue(None, "absent")
    if _DENIED.search(plain[: level.start()][-24:]):
        return StatedValue(None, "a level that is denied")
    levels = {_LEVELS[word.lower()] for word in (level[1], *_WORDS.findall(plain[:_READ]))}
    several = len(levels) > 1
    return StatedValue(None, "several levels") if several else StatedValue(levels.pop())


def _scaled(match: re.Match[str], scale: str) -> StatedValue:
    low = _one_end(match["number"], match, scale)
    if match["upper"] is None or low.value is None:
        return low
    high = _one_end(match["upper"], match, scale)
    if high.value is None:
        return high
    if not 0.0 <= high.value - low.value <= _WIDEST + 1e-9:
        return StatedValue(None, "a wide range")
    return StatedValue(round((low.value + high.value) / 2, 12))


def _one_end(number: str, match: re.Match[str], scale: str) -> StatedValue:
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
    return _within(value)


def _within(value: float) -> StatedValue:
    return StatedValue(value) if 0.0 <= value <= 1.0 else StatedValue(None, "out of range")


def _as_number(text: str) -> float:
    """Return the number; '0,850' has a decimal comma, '1,238' a separator of thousands."""
    if _THOUSANDS.fullmatch(text):
        return float(re.sub(r"[,'\u202f]", "", text))
    try:
        return float(text.replace(",", ".", 1).replace(",", ""))
    except ValueError:  # '1,000.1e999' has two points then: no number, and no confidence
        return math.nan


def _after_label(label: re.Match[str], text: str, scale: str, words: bool) -> StatedValue:
    """Read what follows a label; its brackets may say the scale: 'Confidence (1-10): 8'."""
    bracket = label["scale"] or ""
    remainder = text[label.end() : label.end() + _READ]
    most = _TO_TEN.search(bracket)
    if most is not None and (bare := re.match(rf"({_NUMBER})(?!\s?[%/\d])", remainder)) is not None:
        return _within(_as_number(bare[1]) / float(most["most"]))
    if scale == "auto" and _PERCENT_SCALE.search(bracket):
        scale = "percent"
    confidence = _read_value(remainder, scale, words)
    if confidence.reason != "absent":
        return confidence
    return _read_value(remainder.split("\n", maxsplit=1)[0], scale, words, anywhere=True)


def parse_confidence(text: str, *, scale: str = "auto", words: bool = True) -> float | None:
    r"""Read the one confidence that a text states.

    Parameters
    ----------
    text
        A short reply (``0.9``, ``85%``, ``\boxed{85}``) or a text with 'Confidence: ..'.
    scale
        ``"probability"`` reads a bare 1 as 1.0 and refuses 85; ``"percent"`` reads it as 0.01;
        ``"auto"`` reads bare numbers up to 1 as probabilities and from 10 to 100 as per cent: 8
        may be 8 of 10. ``"mixed"`` reads that as per cent too.
    words
        Whether phrases such as 'very likely' count (see `calibrant.answers.semantics.stated`).

    Returns
    -------
    confidence
        In [0, 1], or None where there is none, it is out of range or ambiguous: nothing is
        clipped. `read_confidence` says why. A narrow range is read as its middle.

    Examples
    --------
    >>> parse_confidence("Confidence: 85%"), parse_confidence("0.9"), parse_confidence("high")
    (0.85, 0.9, 0.8)
    >>> parse_confidence("High (90%)"), parse_confidence("Confidence (1-10): 8")
    (0.9, 0.8)
    >>> parse_confidence("Confidence: 150%") is None
    True
    >>> parse_confidence(r"\boxed{70}"), parse_confidence("eighty percent")
    (0.7, 0.8)
    """
    return read_confidence(text, scale=scale, words=words).value


def read_confidence(text: str, *, scale: str = "auto", words: bool = True) -> StatedValue:
    r"""Read the one confidence that a text states, and say why where there is none.

    Examples
    --------
    >>> read_confidence("Confidence: 1,238,222").reason, read_confidence("80-90%").value
    ('out of range', 0.85)
    >>> read_confidence("0.9 or 0.3").reason, read_confidence("over 90%").reason
    ('several values', 'a bound, not a value')
    """
    if scale not in SCALES:
        raise InputError(f"scale is one of {', '.join(SCALES)}, got {scale!r}")
    plain = squeeze(clean_text(text)[0].strip()[:_LONGEST])
    if boxed := _BOXED.findall(plain):
        return _read_value(boxed[-1], scale, words, anywhere=True)
    labels = list(_LABEL.finditer(plain))
    values = [_after_label(label, plain, scale, words) for label in reversed(labels)]
    statements = [value for value in values if value.reason != "absent"]
    if statements:
        return next((value for value in statements if value.value is not None), statements[0])
    if len(plain) > _READ or (not labels and "\n" in plain):
        return StatedValue(None, "absent")
    return _read_value(plain, scale, words, anywhere=True)


def parse_stated(text: str, *, scale: str = "auto", words: bool = True) -> Stated:
    r"""Read an answer together with its confidence.

    Understands ``answer | 0.92``, ``Answer: .. Confidence: ..`` and ``Guess: .. Probability: ..``.

    Examples
    --------
    >>> parse_stated("Paris | 0.92")
    Stated(answer='Paris', confidence=0.92)
    >>> parse_stated("Answer: Paris\nConfidence: 85%")
    Stated(answer='Paris', confidence=0.85)
    >>> parse_stated("Paris")
    Stated(answer='Paris', confidence=None)
    """
    plain = clean_text(text)[0].strip()
    for line in plain.splitlines():
        if bar := _at_bar(line.strip().strip("\"'` ")):
            value = _read_value(_LABEL.sub("", bar[1]), scale, words).value
            if value is not None:
                return Stated(_tidy(bar[0]) or None, value)
    labels = list(_LABEL.finditer(plain))
    if not labels:
        return Stated(_tidy(plain) or None, None)
    before = plain[: labels[-1].start()].rstrip(' \t\n(,;|-*_[{"')
    return Stated(_tidy(before) or None, parse_confidence(plain, scale=scale, words=words))


def _at_bar(line: str) -> tuple[str, str] | None:
    """Return what stands before and after the last bar (or a tab near the end) of a line."""
    place = line.rfind("|")
    if place < 0:
        place = line.find("\t", max(0, len(line) - _READ - 1))
    answer, remainder = line[: max(0, place)].rstrip(), line[place + 1 :].lstrip()
    return (answer, remainder) if answer and len(remainder) <= _READ else None


def _tidy(text: str) -> str:
    return _BULLET.sub("", text.strip()).strip().strip("\"'`*").strip()


def parse_top_k(text: str, *, scale: str = "auto", words: bool = True) -> list[Stated]:
    r"""Read a list of guesses with their confidences, one per line or G1/P1 pairs.

    Examples
    --------
    >>> parse_top_k("Paris | 0.7\nLyon | 0.2")
    [Stated(answer='Paris', confidence=0.7), Stated(answer='Lyon', confidence=0.2)]
    >>> parse_top_k("G1: Paris\nP1: 0.7\nG2: Lyon\nP2: 20%")
    [Stated(answer='Paris', confidence=0.7), Stated(answer='Lyon', confidence=0.2)]
    """
    lines = [squeeze(line).strip().strip("\"'`") for line in clean_text(text)[0].splitlines()]
    paired = [match.groups() for match in map(_GUESS_LINE.match, lines) if match]
    answers = {rank: _tidy(body) for kind, rank, body in paired if kind.upper() == "G"}
    chances = {
        rank: _read_value(body, scale, words).value
        for kind, rank, body in paired
        if kind.upper() == "P"
    }
    pairs = [Stated(answer, chances.get(rank)) for rank, answer in answers.items() if answer]
    if pairs:
        return pairs
    guesses = []
    for line in lines:
        body = _BULLET.sub("", line)
        dashed = _DASHED.match(body)
        parts = _at_bar(body) or (dashed and dashed.groups())
        if parts is None:
            continue
        value = _read_value(_LABEL.sub("", parts[1]), scale, words).value
        answer = _tidy(parts[0])
        if answer and (value is not None or "|" in body):
            guesses.append(Stated(answer, value))
    return guesses
