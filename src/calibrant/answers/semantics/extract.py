r"""The final answer in a reply: \boxed{}, <answer>, 'Answer:', JSON, letters; or none at all."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

import orjson

from calibrant.answers.semantics.stated import parse_stated
from calibrant.answers.semantics.text.normalise import clean_text, squeeze
from calibrant.answers.semantics.text.words import phrases

_ALONE = re.compile(
    rf"^(?:i\s+)?(?:{phrases('refusals')})"
    r"(?:\s+(?:the\s+)?(?:answer|question|it|that|this|for\s+sure))?\W*$",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"^\W*(?:{phrases('openings of refusals')})", re.IGNORECASE)
_TURN = re.compile(rf"\b(?:{phrases('turns of refusals')})\b", re.IGNORECASE)
_HAS_CONTENT = re.compile(r"\w|[-+=<>]|[^\x00-\x7f\u00a0\u2000-\u206f\ufffd]")


def not_attempted(text: str) -> str | None:
    """Return ``"empty"`` or ``"refusal"`` where the text attempts no answer, else None.

    A refusal that goes on to give an answer counts as an attempt.

    Examples
    --------
    >>> not_attempted("  "), not_attempted("I don't know."), not_attempted("Paris")
    ('empty', 'refusal', None)
    >>> not_attempted("As an AI I have no live data, but Jim Brown holds the record.") is None
    True
    """
    plain = text.strip().replace("\u2019", "'")
    if not plain or not _HAS_CONTENT.search(plain):
        return "empty"
    plain = plain[:400]
    opening = _OPENING.match(plain)
    refused = opening and not _TURN.search(plain[opening.end() :])
    return "refusal" if refused or _ALONE.match(plain) else None


_TAGGED = re.compile(r"<\s*answer\s*>(.*?)(?:<\s*/\s*answer\s*>|$)", re.IGNORECASE | re.DOTALL)
_THINKING = re.compile(r"<\s{0,4}(/?)\s{0,4}(think|thinking)\s{0,4}>", re.IGNORECASE)
_LABELLED = re.compile(
    r"(?:^|\n|[.!?:;)]\s+|\*\*|\s-\s)\s*(?:so,?\s+|thus,?\s+|therefore,?\s+|hence,?\s+|#+\s*)?"
    r"(?:\*\*|__)?(?:the\s+)?(?:final\s+|correct\s+|best\s+|my\s+)?(?:answer|guess)"
    r"(?:\s+is\s*:?|\s*\*\*\s*:|\s*:)\s*(?:\*\*|__)?[ \t]*(?P<answer>[^\n]+|\n\s*[^\n]+)",
    re.IGNORECASE,
)
# 'So it is Paris.' at the end of a reply, where no answer is labelled.
_CONCLUDED = re.compile(
    r"(?:^|[.!?\n]\s?)(?:so|thus|therefore|hence),?\s(?:it(?:'s|\sis|\swas)|that(?:'s|\sis))\s"
    r"(?P<answer>[^.!?\n]{1,80})[.!]?\s?$",
    re.IGNORECASE,
)
_JSON_KEYS = ("final_answer", "answer", "guess", "response", "result", "prediction")
_LETTER_ALONE = re.compile(r"^\W*(?:option|choice|answer)?\W*([A-Z])\W*$", re.IGNORECASE)
_LETTER_FRONT = re.compile(r"^\W*(?:option|choice)?\s*\(?([A-Z])\s*[).:\]-]+\s*(\S.*)?$", re.DOTALL)
_LETTER_NAMED = re.compile(r"\b(?:option|choice|answer\s+is|answer:)\s*\(?([A-Z])\)?(?![\w'])")
_LETTER_END = r"(?=\W*$|\s*[).:])"
_TRUE = re.compile(rf"^\W*(?:(?:true|yes|correct|right)\b|a{_LETTER_END})", re.IGNORECASE)
_FALSE = re.compile(
    rf"^\W*(?:(?:false|no|incorrect|wrong|not\s+(?:true|correct))\b|b{_LETTER_END})", re.IGNORECASE
)
_STATES = re.compile(
    r"\|\s*(?:confidence\W*)?(?:0?\.\d+|[01](?:\.0+)?|\d{1,3}\s?%)\W*$"
    r"|(?:^|[\n.;,(|])\W{0,4}(?:my\s+)?confidence\b[^\n]{0,40}\d",
    re.IGNORECASE | re.MULTILINE,
)
_LONG = 4000
_CONCLUSION = 120
_OPTION_LENGTH = 300
_MOST_BOXES = 20


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found.

    `answer` is None where nothing was attempted or no answer could be read; `status` says
    which: attempted, refusal, empty or unparsed. `rule` names the form that was recognised,
    `notes` what had to be mended in the text.
    """

    answer: str | None
    status: str
    rule: str
    confidence: float | None = None
    notes: tuple[str, ...] = ()


def extract_answer(
    text: str | bytes | None,
    *,
    kind: str = "open",
    choices: Sequence[str] | None = None,
    stated: bool | None = None,
    scale: str = "auto",
    words: bool = True,
) -> Extraction:
    r"""Find the final answer in a reply.

    Parameters
    ----------
    text
        The reply, as text or as raw bytes.
    kind
        ``open``, ``choice``, ``number`` or ``binary``.
    choices
        The options of a choice question, in order A, B, ..
    stated
        Whether the reply was asked to state a confidence beside the answer. By default one is
        read only where it cannot be anything else (``Paris | 0.92``, ``Confidence: 85%``).
    scale, words
        How a confidence is read, see `parse_confidence`.

    Examples
    --------
    >>> extract_answer(r"So we get \boxed{\frac{1}{2}}.").answer
    '\\frac{1}{2}'
    >>> extract_answer("Let me think. Answer: Paris.").answer
    'Paris'
    >>> extract_answer("(B) Paris", kind="choice", choices=["Rome", "Paris"]).answer
    'B'
    >>> extract_answer("I don't know").status
    'refusal'
    >>> extract_answer("Paris | 0.92").confidence
    0.92
    """
    plain, notes = clean_text(text)
    plain = _without_thinking(plain)
    confidence = None
    if stated or (stated is None and _STATES.search(plain)):
        pair = parse_stated(plain, scale=scale, words=words)
        if stated or (pair.confidence is not None and pair.answer):
            confidence = pair.confidence
            plain = pair.answer or ""
    answer, rule = _find(plain)
    if missing := not_attempted(answer):
        return Extraction(None, missing, rule, confidence, notes)
    if kind == "choice" or choices:
        letter = extract_letter(answer, choices) or extract_letter(plain, choices)
        if letter is None:
            return Extraction(None, "unparsed", rule, confidence, notes)
        return Extraction(letter, "attempted", f"{rule}+letter", confidence, notes)
    return Extraction(answer, "attempted", rule, confidence, notes)


def _without_thinking(text: str) -> str:
    """Return the text without what stands between a thinking tag and the next one that ends it.

    Tags are paired from the left in one pass: thousands of open tags take no longer than text.
    """
    open_tags: dict[str, int] = {}
    cuts: list[tuple[int, int]] = []
    for tag in _THINKING.finditer(text):
        kind = tag[2].lower()
        if not tag[1]:
            open_tags.setdefault(kind, tag.start())
        elif kind in open_tags:
            start = open_tags[kind]
            open_tags = {name: place for name, place in open_tags.items() if place < start}
            while cuts and cuts[-1][0] > start:
                cuts.pop()
            cuts.append((start, tag.end()))
    starts, ends = [start for start, _ in cuts], [end for _, end in cuts]
    return "".join(text[a:b] for a, b in zip([0, *ends], [*starts, len(text)], strict=True))


def _find(plain: str) -> tuple[str, str]:
    if "boxed" in plain and (boxed := _last_boxed(plain)) is not None:
        return boxed, "boxed"
    if "<" in plain and (tagged := _TAGGED.findall(plain)):
        return tagged[-1].strip(), "tag"
    if "{" in plain and (value := _json_answer(plain)) is not None:
        return value, "json"
    end = squeeze(plain[-_LONG:]) if len(plain) > 7 else ""
    if labelled := list(_LABELLED.finditer(end)):
        return _trim(labelled[-1]["answer"]), "label"
    if concluded := _CONCLUDED.search(end, max(0, len(end) - _CONCLUSION)):
        return _trim(concluded["answer"]), "conclusion"
    return _trim(plain), "whole"


def _trim(text: str) -> str:
    return text.strip("*_\"'` \n\t\r").rstrip(" .\n\t\r").strip("*\"'`")


def _last_boxed(text: str) -> str | None:
    r"""Return the content of the last \boxed{..}, braces balanced; None where it is not closed."""
    start = len(text)
    for _ in range(_MOST_BOXES):
        start = text.rfind("\\boxed", 0, start)
        if start < 0:
            return None
        brace = text.find("{", start)
        if brace < 0 or text[start + 6 : brace].strip():
            continue
        depth = 0
        for position in range(brace, min(len(text), brace + _LONG)):
            depth += (text[position] == "{") - (text[position] == "}")
            if depth == 0:
                inner = text[brace + 1 : position].strip()
                return re.sub(r"^\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}$", r"\1", inner)
    return None


def _json_answer(text: str) -> str | None:
    fenced = [part.strip().removeprefix("json").lstrip() for part in text.split("```")[1:-1]]
    for candidate in [*fenced, text[text.find("{") : text.rfind("}") + 1]]:
        try:
            value: Any = orjson.loads(candidate) if candidate.startswith("{") else None
        except orjson.JSONDecodeError:
            continue
        for key in _JSON_KEYS if isinstance(value, dict) else ():
            if isinstance(value.get(key), str | int | float):
                return str(value[key]).strip()
    return None


def extract_letter(text: str, choices: Sequence[str] | None = None) -> str | None:
    """Return the option letter that a reply names, with or without the option's text.

    Where letter and text contradict each other, or two letters are named, there is none.

    Examples
    --------
    >>> extract_letter("Option C."), extract_letter("paris", ["Rome", "Paris"])
    ('C', 'B')
    >>> extract_letter("(A) Paris", ["Rome", "Paris"]) is None
    True
    """
    plain = text.strip()[:_OPTION_LENGTH]
    letters = ascii_uppercase[: len(choices) if choices else 26]
    if len(plain) <= 40 and (alone := _LETTER_ALONE.match(plain)):
        return alone[1].upper() if alone[1].upper() in letters else None
    if by_text := _option_by_text(plain, choices):
        return by_text
    if front := _LETTER_FRONT.match(plain):
        described = _option_by_text(front[2] or "", choices)
        return front[1] if front[1] in letters and described in (None, front[1]) else None
    names = set(_LETTER_NAMED.findall(plain)) & set(letters)
    return names.pop() if len(names) == 1 else None


def _option_by_text(plain: str, choices: Sequence[str] | None) -> str | None:
    target, *options = (
        " ".join(re.sub(r"[^\w\s]", " ", option.casefold()).split())
        for option in (plain, *(choices or ()))
    )
    return ascii_uppercase[options.index(target)] if target and options.count(target) == 1 else None


def parse_vote(text: str | bytes | None) -> bool | None:
    """Read a vote on an answer: True/False, yes/no, correct/incorrect, A/B (A is true).

    Examples
    --------
    >>> parse_vote("(A) True"), parse_vote("INCORRECT"), parse_vote("maybe")
    (True, False, None)
    """
    plain = clean_text(text)[0].strip()
    boxed = _last_boxed(plain)
    plain = plain if boxed is None else boxed
    if _FALSE.match(plain):
        return False
    return True if _TRUE.match(plain) else None
