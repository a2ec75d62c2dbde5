"""An answer and the confidence written beside it: 'Paris | 0.9', 'Confidence: very high'."""

import re
from dataclasses import dataclass

from calibrant.semantics.stated_value import (
    ABSENT,
    CONFIDENCE_LABEL,
    StatedValue,
    after_label,
    check_scale,
    read_value,
)
from calibrant.semantics.text.encoding import clean_text, squeeze

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
        Whether phrases such as 'very likely' count (see `calibrant.semantics.stated_value`).

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
    check_scale(scale)
    plain = squeeze(clean_text(text)[0].strip()[:_LONGEST])
    boxed = _BOXED.findall(plain)
    if boxed:
        return read_value(boxed[-1], scale, words, anywhere=True)
    labels = list(CONFIDENCE_LABEL.finditer(plain))
    found = [after_label(label, plain, scale, words) for label in labels]
    for value in reversed(found):
        if value.value is not None:
            return value
    why = next((value for value in reversed(found) if value.reason != "absent"), None)
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
        value = read_value(CONFIDENCE_LABEL.sub("", parts[1]), scale, words).value
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
            chances[match["rank"]] = read_value(match["body"], scale, words).value
    return [Stated(answer, chances.get(rank)) for rank, answer in guesses.items() if answer]
