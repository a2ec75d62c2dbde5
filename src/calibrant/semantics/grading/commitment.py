"""Does an answer that names the reference mean it? Clauses that deny it, and signs of doubt.

Only grammar is read: a denial in the clause of the mention, an 'or' beside it, a turn in its
sentence. There is no list of wordings for 'mentioned, not meant': such lists do not carry over to
other texts. What shows a sign and is not settled by its clause stays as it is and is doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from calibrant.semantics.text.words import word_list

_MOST_READ = 6000
_DENIAL = (
    r"not|never|neither|nor|without|except|excluding|unlike|cannot|nobody|rather\sthan"
    r"|instead\sof|other\sthan|anything\sbut|[a-z]{2,6}n't"
)
_TURN = r"but|however|although|though|yet|actually|instead|whereas|contrary"
_SIGN = re.compile(rf"\b(?:{_DENIAL}|no|or|{_TURN}|wrong|incorrect|false|mistaken)\b|\?", re.I)
# Normalised words without which no stance needs to be read; 't' is what is left of "isn't".
SIGNS = frozenset(
    word_list(
        "not never neither nor without except excluding unlike cannot nobody rather instead other "
        "anything t no or but however although though yet actually whereas contrary wrong "
        "incorrect false mistaken"
    )
)
_CLAUSE = re.compile(
    rf"[.;:!?\n)]+\s|,\s(?:and|which|who)\s|[,\s](?:{_TURN.replace('|instead', '')})\s|\s[-–—]\s",
    re.I,
)
_SENTENCE = re.compile(r"(?<=\w{3})[.!?\n]+\s")
# A denial before the mention, with no comma and few words between.
_BEFORE = re.compile(rf"\b(?:{_DENIAL}|no)\b(?:\s[\w'-]+){{0,5}}\s?[\"'(]?$", re.I)
_EMPHASIS = re.compile(
    r"\b(?:not\s(?:only|just|merely)|no\sdoubt|(?:none|no\s?(?:one|body))\s(?:other\sthan|but)"
    r"|nothing\s(?:but|other\sthan)|anyone\sbut|anything\sbut)\b[^,.;]{0,30}$",
    re.I,
)
_AFTER = re.compile(
    r"^[\"')]?\s?(?:(?:is|was|are|were|would\sbe|has\sbeen)(?:n't|\snot|\snever)\b"
    r"|(?:is|was|are|were|would\sbe|'s)\s(?:\w+ly\s)?(?:wrong|incorrect|false|mistaken|untrue)\b"
    r"|\?\s?no\b)",
    re.I,
)
_OR = re.compile(r"^[\"')]?,?\s(?:[\w'-]+,?\s){0,3}or\s|^[\"')]?\s?/\s?\w", re.I)
_OR_BEFORE = re.compile(r"\bor\s(?:[\w'-]+\s){0,2}[\"'(]?$|\beither\b[^.;]{0,40}$", re.I)


def stance(text: str, aliases: Iterable[str], question: str | None = None) -> str | None:
    """Return how an answer stands to the references that it names.

    ``denied`` (every mention stands in a clause that denies it), ``open`` (a choice with 'or', or
    a denial or turn in the same sentence), None where nothing speaks against it.

    Examples
    --------
    >>> stance("It was not Paris, it was Rome.", ["Paris"])
    'denied'
    >>> stance("It was Rome, not Paris.", ["Rome"]), stance("Paris or Rome", ["Paris"])
    ('open', 'open')
    >>> stance("It is Paris, on the Seine.", ["Paris"]) is None
    True
    """
    if question and re.search(rf"\b(?:{_DENIAL}|no)\b", question):
        return None
    text = text[:_MOST_READ]
    found = [_one(text, match) for alias in aliases for match in _mentions(alias).finditer(text)]
    if found and all(each == "denied" for each in found):
        return "denied"
    return "open" if any(found) else None


@lru_cache(maxsize=20_000)
def _mentions(alias: str) -> re.Pattern[str]:
    words = re.findall(r"\w+", alias)[:12]
    between = r"\W{1,3}".join(map(re.escape, words))
    return re.compile(rf"\b{between}\b" if words else r"(?!)", re.I)


def _one(text: str, mention: re.Match[str]) -> str | None:
    before = _last_part(_CLAUSE, text[max(0, mention.start() - 200) : mention.start()])
    after = text[mention.end() : mention.end() + 200]
    if _EMPHASIS.search(before):
        return None
    if _BEFORE.search(before) or _AFTER.match(after):
        return "denied"
    if _OR.match(after) or _OR_BEFORE.search(before):
        return "open"
    sentence = _last_part(_SENTENCE, text[max(0, mention.start() - 200) : mention.start()])
    sentence += " " + _SENTENCE.split(after, maxsplit=1)[0]
    return "open" if _SIGN.search(sentence) else None


def _last_part(pattern: re.Pattern[str], text: str) -> str:
    end = 0
    for match in pattern.finditer(text):
        end = match.end()
    return text[end:]
