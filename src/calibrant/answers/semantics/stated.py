"""An answer and the confidence written beside it: 'Paris | 0.9', 'very high', '8 out of 10'."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from calibrant.answers.semantics.text.normalise import clean_text, squeeze
from calibrant.answers.semantics.text.numbers import digits_for_words
from calibrant.answers.semantics.text.words import phrases, table
from calibrant.core import InputError

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
    if not matches and (first := _VALUE.match(plain)):
        matches = [first]
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
    peers = {CONFIDENCE_WORDS[word.lower()] for word in _WORDS.findall(plain[:_READ])}
    return StatedValue(value) if peers == {value} else StatedValue(None, "several levels")


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
    bracket = label["scale"] or ""
    remainder = text[label.end() : label.end() + _READ]
    most = _TO_TEN.search(bracket)
    if most is not None and (bare := re.match(rf"({_NUMBER})(?!\s?[%/\d])", remainder)) is not None:
        value = _as_number(bare[1]) / float(most["most"])
        return StatedValue(value) if 0.0 <= value <= 1.0 else StatedValue(None, "out of range")
    if scale == "auto" and _PERCENT_SCALE.search(bracket):
        scale = "percent"
    confidence = read_value(remainder, scale, words)
    if confidence.reason != "absent":
        return confidence
    line = remainder.split("\n", maxsplit=1)[0]
    return read_value(line, scale, words, anywhere=True)


_BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_REST = 60
_LONGEST = 4000
# Used where runs of blanks are one blank.
_DASHED = re.compile(r"^(?P<answer>.+?)\s?(?::|-|–|—|\()\s?(?P<rest>[^:()\n]{1,30}?)\)?\s?$")
_BULLET = re.compile(
    r"^\s*(?:(?:\(?\d{1,2}[.):]|[-*•])\s+|(?:G\d{1,2}|Guess\s*\d{0,2}|Answer\s*\d{0,2})\s*[:.)]\s*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stated:
    """An answer and the confidence written beside it; None where it could not be read."""

    answer: str | None
    confidence: float | None


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
    >>> read_confidence("Confidence: 1,238,222").reason
    'out of range'
    >>> read_confidence("0.9 or 0.3").reason, read_confidence("over 90%").reason
    ('several values', 'a bound, not a value')
    """
    if scale not in SCALES:
        raise InputError(f"scale is one of {', '.join(SCALES)}, got {scale!r}")
    plain = squeeze(clean_text(text)[0].strip()[:_LONGEST])
    boxed = _BOXED.findall(plain)
    if boxed:
        return read_value(boxed[-1], scale, words, anywhere=True)
    labels = list(CONFIDENCE_LABEL.finditer(plain))
    values = [after_label(label, plain, scale, words) for label in labels]
    for value in reversed(values):
        if value.value is not None:
            return value
    why = next((value for value in reversed(values) if value.reason != "absent"), None)
    if why is not None:
        return why
    if len(plain) > _REST or (not labels and "\n" in plain):
        return ABSENT
    return read_value(plain, scale, words, anywhere=True)


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
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    for line in lines:
        bar = _at_bar(line.strip("\"'` "))
        if bar:
            value = read_value(CONFIDENCE_LABEL.sub("", bar[1]), scale, words).value
            if value is not None:
                return Stated(_tidy(bar[0]) or None, value)
    labels = list(CONFIDENCE_LABEL.finditer(plain))
    if not labels:
        return Stated(_tidy(plain) or None, None)
    confidence = parse_confidence(plain, scale=scale, words=words)
    before = plain[: labels[-1].start()].rstrip(' \t\n(,;|-*_[{"')
    return Stated(_tidy(before) or None, confidence)


def _at_bar(line: str) -> tuple[str, str] | None:
    """Return what stands before and after the last bar (or a tab near the end) of a line."""
    place = line.rfind("|")
    if place < 0:
        place = line.find("\t", max(0, len(line) - _REST - 1))
    answer, remainder = line[: max(0, place)].rstrip(), line[place + 1 :].lstrip()
    return (answer, remainder) if answer and len(remainder) <= _REST else None


def _at_dash(line: str) -> tuple[str, str] | None:
    match = _DASHED.match(line)
    return None if match is None else (match["answer"], match["rest"])


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
    plain = clean_text(text)[0]
    lines = [squeeze(line).strip().strip("\"'`") for line in plain.splitlines() if line.strip()]
    pairs = _guess_pairs(lines, scale, words)
    if pairs:
        return pairs
    guesses = []
    for line in lines:
        body = _BULLET.sub("", line)
        parts = _at_bar(body) or _at_dash(body)
        if parts is None:
            continue
        value = read_value(CONFIDENCE_LABEL.sub("", parts[1]), scale, words).value
        answer = _tidy(parts[0])
        if answer and (value is not None or "|" in body):
            guesses.append(Stated(answer, value))
    return guesses


_GUESS_LINE = re.compile(r"^(?P<kind>[GP])(?P<rank>\d{1,2})\s*[:.)]\s*(?P<body>.*)$", re.IGNORECASE)


def _guess_pairs(lines: list[str], scale: str, words: bool) -> list[Stated]:
    guesses: dict[str, str] = {}
    chances: dict[str, float | None] = {}
    for line in lines:
        match = _GUESS_LINE.match(line)
        if match is None:
            continue
        if match["kind"].upper() == "G":
            guesses[match["rank"]] = _tidy(match["body"])
        else:
            chances[match["rank"]] = read_value(match["body"], scale, words).value
    return [Stated(answer, chances.get(rank)) for rank, answer in guesses.items() if answer]
