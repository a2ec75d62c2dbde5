"""How sure a grade is: by the rule that gave it, and by how the answer stands to what it names.

The shares were counted on answers that people judged (see `docs/studies/semantics.md`); rules that
met too few of them have a share set by hand below the limit, which makes them doubtful. Of the
answer only grammar is read: a denial in the clause of the mention, an 'or' beside it, a turn in its
sentence. A list of wordings for 'mentioned, not meant' would not carry over to other texts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from calibrant.answers.semantics.text.words import listed
from calibrant.metrics.stats.graded.checks import DOUBT

# Chance that a verdict of the rule is right; rules that are not listed have SURE.
SURE = 0.99
RULES: dict[str, float] = {
    "number": 0.975,
    "name": 0.975,
    "date": 0.8,
    "year": 0.9,
    "figures": 0.85,
    "clash": 0.75,
    "look-alike": 0.75,
    "negation": 0.85,
    "list": 0.8,
    "missing unit": 0.75,
    "range": 0.9,
    "embedding": 0.9,
    "middle name": 0.75,
    "leftover word": 0.75,
    "younger or older": 0.75,
    "denied": 0.85,
}
# What types leave open although they can read both sides: words decide, and doubt stays.
OPEN = frozenset(
    (
        "code", "range", "formula", "complexity", "nearly equal", "negation", "part of a list",
        "era", "look-alike",
    )
)  # fmt: skip
_LEAST_OPEN = 0.9


def rule_probability(correct: bool, rule: str) -> float:
    """Return the chance that an answer is right, given the verdict of a rule.

    Examples
    --------
    >>> rule_probability(True, "exact"), round(rule_probability(False, "date"), 2)
    (0.99, 0.2)
    """
    sure = RULES.get(rule, SURE)
    return sure if correct else 1.0 - sure


def kept_open(probability: float) -> float:
    """Return a probability that is at most so sure, where something speaks against the words."""
    return min(max(probability, 1.0 - _LEAST_OPEN), _LEAST_OPEN)


def is_doubtful(correct: bool | None, probability: float | None) -> bool:
    """Return whether people may well see it otherwise.

    Examples
    --------
    >>> is_doubtful(True, 0.99), is_doubtful(True, 0.9), is_doubtful(False, 0.2)
    (False, True, True)
    """
    if correct is None or probability is None:
        return False
    return (1.0 - probability if correct else probability) > DOUBT


_MOST_READ = 6000
_DENIAL = (
    r"not|never|neither|nor|without|except|excluding|unlike|cannot|nobody|rather\sthan"
    r"|instead\sof|other\sthan|anything\sbut|[a-z]{2,6}n't"
)
_TURN = r"but|however|although|though|yet|actually|instead|whereas|contrary"
_SIGN = re.compile(rf"\b(?:{_DENIAL}|no|or|{_TURN}|wrong|incorrect|false|mistaken)\b|\?", re.I)
SIGNS = frozenset(listed("signs of a stance"))
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
# A name or figure that is an answer of its own: 'Vermeer, a contemporary of Rembrandt'.
_OPENING = re.compile(
    r"\W{0,3}([A-Z0-9][\w'’.-]*(?:\s(?:(?:of|the|de|van|von)\s)?[A-Z0-9][\w'’.-]*){0,4}?)"
    r"\s?(?:[,;(]|\s[-–—]\s|\.\s)"
)
# Longer answers are sentences: what they begin with is mostly not their answer.
_SHORT = 12


def stance(text: str, aliases: Sequence[str], question: str | None = None) -> str | None:
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
    stances = [_one(text, match) for alias in aliases for match in _mentions(alias).finditer(text)]
    if stances and all(each == "denied" for each in stances):
        return "denied"
    return "open" if any(stances) else None


def opens_with_another(text: str, aliases: Sequence[str], question: str) -> bool:
    """Return whether a short answer begins with another thing of the references' kind.

    Examples
    --------
    >>> opens_with_another("Vermeer, a contemporary of Rembrandt", ["Rembrandt"], "Who?")
    True
    """
    opening = _OPENING.match(text)
    if opening is None or len(text.split()) > _SHORT:
        return False
    words, asked = (_words(part) for part in (opening[1], question))
    alike = {alias[:1].isdigit() for alias in aliases} == {opening[1][0].isdigit()}
    return alike and not words <= asked and words.isdisjoint(_words(" ".join(aliases)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


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
    ends = [match.end() for match in pattern.finditer(text)]
    return text[ends[-1] :] if ends else text
