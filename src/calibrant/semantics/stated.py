"""Confidence that a model writes down: '0.92', '85%', 'Confidence: very high', 'answer | 0.9'."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from calibrant.core import InputError
from calibrant.semantics.text.encoding import clean_text, squeeze
from calibrant.semantics.text.numbers import digits_for_words

# Medians of the number people give to each phrase, rounded to 0.05, after the surveys of
# Kent (1964) and Fagen-Ulmschneider (2018). Only read where the option allows it.
CONFIDENCE_WORDS: dict[str, float] = {
    "absolutely certain": 1.0,
    "completely certain": 1.0,
    "certain": 0.95,
    "almost certain": 0.95,
    "almost certainly": 0.95,
    "nearly certain": 0.95,
    "extremely likely": 0.95,
    "highly likely": 0.9,
    "very likely": 0.9,
    "very high": 0.9,
    "very good chance": 0.8,
    "high": 0.8,
    "probable": 0.7,
    "probably": 0.7,
    "likely": 0.7,
    "we believe": 0.7,
    "better than even": 0.6,
    "moderate": 0.5,
    "medium": 0.5,
    "about even": 0.5,
    "even chance": 0.5,
    "somewhat likely": 0.6,
    "somewhat unlikely": 0.35,
    "probably not": 0.25,
    "unlikely": 0.2,
    "improbable": 0.15,
    "low": 0.2,
    "little chance": 0.1,
    "very unlikely": 0.1,
    "highly unlikely": 0.05,
    "very low": 0.1,
    "chances are slight": 0.1,
    "almost no chance": 0.05,
    "impossible": 0.0,
}
_SCALES = ("auto", "probability", "percent")
_NUMBER = r"(?P<number>[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d{1,3})?)"
_VALUE = re.compile(
    _NUMBER
    + r"\s*(?P<percent>%|percent\b|per\s+cent\b|(?:/|out\s+of)\s*(?P<out>\d{1,4}(?:\.0)?))?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:confidence(?:\s+(?:score|level|rating|value))?|certainty|probability|p\s*\(\s*true\s*\)"
    r"|likelihood|how\s+likely)"
    r"(?:\s*\([^)\n]{0,40}\))?[\s*_\"'`]*(?:is|of|:|=|-|\|)?[\s*_\"'`:]*",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_REST = 60
# Used where runs of blanks are one blank.
_DASHED = re.compile(r"^(?P<answer>.+?)\s?(?::|-|–|—|\()\s?(?P<rest>[^:()\n]{1,30}?)\)?\s?$")
_BULLET = re.compile(
    r"^\s*(?:(?:\(?\d{1,2}[.):]|[-*•])\s+|(?:G\d{1,2}|Guess\s*\d{0,2}|Answer\s*\d{0,2})\s*[:.)]\s*)",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, CONFIDENCE_WORDS), key=len, reverse=True)) + r")\b",
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
        ``"auto"`` reads bare numbers up to 1 as probabilities and from there to 100 as per cent.
    words
        Whether phrases such as 'very likely' count (see `CONFIDENCE_WORDS`).

    Returns
    -------
    confidence
        In [0, 1], or None where there is none or it is out of range: nothing is clipped.

    Examples
    --------
    >>> parse_confidence("Confidence: 85%"), parse_confidence("0.9"), parse_confidence("high")
    (0.85, 0.9, 0.8)
    >>> parse_confidence("Confidence: 150%") is None
    True
    >>> parse_confidence(r"\boxed{70}"), parse_confidence("eighty percent")
    (0.7, 0.8)
    """
    if scale not in _SCALES:
        raise InputError(f"scale is one of {', '.join(_SCALES)}, got {scale!r}")
    plain = clean_text(text)[0].strip()[:4000]
    boxed = _BOXED.findall(plain)
    if boxed:
        plain = boxed[-1]
    else:
        labels = list(_LABEL.finditer(plain))
        if labels:
            found = [_read(plain[label.end() : label.end() + 60], scale, words) for label in labels]
            told = [value for value in found if value is not None]
            if told:
                return told[-1]
            if len(plain) > 60:
                return None
        elif len(plain) > 60 or "\n" in plain:
            return None
    return _read(plain, scale, words, anywhere=True)


def _read(text: str, scale: str, words: bool, *, anywhere: bool = False) -> float | None:
    """Read the value at the start of `text` (or the only one in it)."""
    plain = digits_for_words(text.strip().strip("\"'`*_~<>()[]{} \t"))
    match = _VALUE.search(plain) if anywhere else _VALUE.match(plain)
    if match is not None:
        if anywhere and len(_VALUE.findall(plain)) > 1:
            return None
        return _scaled(match, scale)
    if not words:
        return None
    phrase = _WORDS.search(text) if anywhere else _WORDS.match(plain)
    return None if phrase is None else CONFIDENCE_WORDS[phrase[1].lower()]


def _scaled(match: re.Match[str], scale: str) -> float | None:
    value = float(match["number"].replace(",", "."))
    if match["out"]:
        whole = float(match["out"])
        value = value / whole if whole else math.nan
    elif match["percent"] or scale == "percent" or (scale == "auto" and value > 1.0):
        value = round(value / 100.0, 12)
    return value if 0.0 <= value <= 1.0 else None


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
            value = _read(_LABEL.sub("", bar[1]), scale, words)
            if value is not None:
                return Stated(_tidy(bar[0]) or None, value)
    labels = list(_LABEL.finditer(plain))
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
    answer, rest = line[: max(0, place)].rstrip(), line[place + 1 :].lstrip()
    return (answer, rest) if answer and len(rest) <= _REST else None


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
    found = []
    for line in lines:
        body = _BULLET.sub("", line)
        parts = _at_bar(body) or _at_dash(body)
        if parts is None:
            continue
        value = _read(_LABEL.sub("", parts[1]), scale, words)
        answer = _tidy(parts[0])
        if answer and (value is not None or "|" in body):
            found.append(Stated(answer, value))
    return found


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
            chances[match["rank"]] = _read(match["body"], scale, words)
    return [Stated(answer, chances.get(rank)) for rank, answer in guesses.items() if answer]
