r"""The final answer in a reply: \boxed{}, <answer>, 'Answer:', JSON, letters; or none at all."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from calibrant.answers.semantics.stated import parse_stated
from calibrant.answers.semantics.text.normalise import clean_text, squeeze
from calibrant.answers.semantics.text.words import phrases

NOT_ATTEMPTED = ("refusal", "empty")
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
_FENCE = "```"
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
    plain = _without_thinking(plain) if "<" in plain else plain
    confidence = None
    if stated or (stated is None and _STATES.search(plain)):
        pair = parse_stated(plain, scale=scale, words=words)
        if stated or (pair.confidence is not None and pair.answer):
            confidence = pair.confidence
            plain = pair.answer or ""
    answer, rule = _find(plain)
    missing = not_attempted(answer)
    if missing:
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
    tags = list(_THINKING.finditer(text))
    ends: dict[str, list[re.Match[str]]] = {}
    for tag in reversed(tags):
        if tag[1]:
            ends.setdefault(tag[2].lower(), []).append(tag)
    selection: list[str] = []
    place = 0
    for tag in tags:
        if tag[1] or tag.start() < place:
            continue
        later = ends.get(tag[2].lower(), [])
        while later and later[-1].start() < tag.end():
            later.pop()
        if later:
            selection.append(text[place : tag.start()])
            place = later[-1].end()
    return "".join(selection) + text[place:]


def _find(plain: str) -> tuple[str, str]:
    if "boxed" in plain:
        boxed = _last_boxed(plain)
        if boxed is not None:
            return boxed, "boxed"
    if "<" in plain:
        tagged = _TAGGED.findall(plain)
        if tagged:
            return tagged[-1].strip(), "tag"
    if "{" in plain:
        value = _json_answer(plain)
        if value is not None:
            return value, "json"
    end = squeeze(plain[-_LONG:]) if len(plain) > 7 else ""
    labelled = list(_LABELLED.finditer(end))
    if labelled:
        return _trim(labelled[-1]["answer"]), "label"
    concluded = _CONCLUDED.search(end, max(0, len(end) - _CONCLUSION))
    if concluded:
        return _trim(concluded["answer"]), "conclusion"
    return _trim(plain), "whole"


def _trim(text: str) -> str:
    return text.strip("*_\"'` \n\t\r").rstrip(" .\n\t\r").strip("*\"'`")


def _last_boxed(text: str) -> str | None:
    r"""Return the content of the last \boxed{..}, braces balanced; None where it is not closed."""
    start = text.rfind("\\boxed")
    for _ in range(_MOST_BOXES):
        if start < 0:
            return None
        brace = text.find("{", start)
        if brace >= 0 and not text[start + 6 : brace].strip():
            depth = 0
            for position in range(brace, min(len(text), brace + _LONG)):
                depth += (text[position] == "{") - (text[position] == "}")
                if depth == 0:
                    inner = text[brace + 1 : position].strip()
                    return re.sub(r"^\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}$", r"\1", inner)
        start = text.rfind("\\boxed", 0, start) if start > 0 else -1
    return None


def _json_answer(text: str) -> str | None:
    fenced = [part.strip() for part in text.split(_FENCE)[1:-1]]
    fenced = [part[4:].lstrip() if part[:4].lower() == "json" else part for part in fenced]
    start, end = text.find("{"), text.rfind("}")
    for candidate in [*fenced, text[start : end + 1]]:
        if not candidate.startswith("{"):
            continue
        try:
            value: Any = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            for key in _JSON_KEYS:
                answer = value.get(key)
                if isinstance(answer, str | int | float):
                    return str(answer).strip()
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
    count = len(choices) if choices else 26
    by_text = _option_by_text(plain, choices)
    alone = _LETTER_ALONE.match(plain) if len(plain) <= 40 else None
    if alone:
        return _known_letter(alone[1].upper(), count)
    if by_text:
        return by_text
    front = _LETTER_FRONT.match(plain)
    if front:
        described = _option_by_text((front[2] or "").strip(), choices)
        letter = _known_letter(front[1], count)
        return letter if described is None or described == letter else None
    names = {letter for letter in _LETTER_NAMED.findall(plain) if _known_letter(letter, count)}
    return names.pop() if len(names) == 1 else None


def _known_letter(letter: str, count: int) -> str | None:
    return letter if 0 <= ord(letter) - 65 < count else None


def _option_by_text(plain: str, choices: Sequence[str] | None) -> str | None:
    if not choices or not plain:
        return None
    target = _plain_option(plain)
    hits = [index for index, choice in enumerate(choices) if _plain_option(choice) == target]
    return chr(65 + hits[0]) if len(hits) == 1 and target else None


def _plain_option(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text.casefold()).split())


def parse_vote(text: str | bytes | None) -> bool | None:
    """Read a vote on an answer: True/False, yes/no, correct/incorrect, A/B (A is true).

    Examples
    --------
    >>> parse_vote("(A) True"), parse_vote("INCORRECT"), parse_vote("maybe")
    (True, False, None)
    """
    plain = clean_text(text)[0].strip()
    boxed = _last_boxed(plain) if "boxed" in plain else None
    plain = plain if boxed is None else boxed
    if _FALSE.match(plain):
        return False
    return True if _TRUE.match(plain) else None
