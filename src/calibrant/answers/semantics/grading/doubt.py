"""How sure a grade is: by the rule that gave it, and by how the answer stands to what it names.

The shares were counted on answers that people judged (see `docs/studies/semantics.md`); rules that
met too few of them have a share set by hand below the limit, which makes them doubtful. Of the
answer a denial in the clause of the mention is read; whether it means what it mentions otherwise no
list of wordings can tell: the embedded judge reads it.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache

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
    "code": 0.8,
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


# What words decided, and a judge that reads may see otherwise; typed rules keep the last word.
WORDS = frozenset(("phrase", "denied", "figures", "embedding"))
# Log-odds of the words and of the judge, joined by a logistic regression on 1,964 answers that
# people judged, none of whose questions the judge had seen.
_BEGIN, _OF_WORDS, _OF_JUDGE = 0.162, 0.473, 0.641
_LEAST_WORDS, _MOST_JUDGE = 0.005, 8.0
# From here on the judge speaks against the words: never sure, whoever is right.
_AGAINST = 1.5


def joined(probability: float, score: float) -> float:
    """Return the chance that an answer is right, from its words and a judge's log-odds.

    Examples
    --------
    >>> round(joined(0.9, 4.0), 3), round(joined(0.9, -4.0), 3), round(joined(0.2, 1.0), 2)
    (0.977, 0.204, 0.54)
    """
    words = _log_odds(min(max(probability, _LEAST_WORDS), 1.0 - _LEAST_WORDS))
    judge = min(max(score, -_MOST_JUDGE), _MOST_JUDGE)
    result = 1.0 / (1.0 + math.exp(-(_BEGIN + _OF_WORDS * words + _OF_JUDGE * judge)))
    against = judge < -_AGAINST if probability >= 0.5 else judge > _AGAINST
    return kept_open(result) if against else result


def _log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


_MOST_READ = 6000
_TURN = r"but|however|although|though|yet|actually|whereas|contrary"
_DENIAL = (
    r"not|never|neither|nor|without|except|excluding|unlike|cannot|nobody|rather\sthan"
    r"|instead\sof|other\sthan|anything\sbut|[a-z]{2,6}n't|no"
)
_CLAUSE = re.compile(rf"[.;:!?\n)]+\s|,\s(?:and|which|who)\s|[,\s](?:{_TURN})\s|\s[-–—]\s", re.I)
# A denial before the mention, with no comma and few words between.
_BEFORE = re.compile(rf"\b(?:{_DENIAL})\b(?:\s[\w'-]+){{0,5}}\s?[\"'(]?$", re.I)
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


def denies(text: str, aliases: Sequence[str], question: str | None = None) -> bool:
    """Return whether every mention of a reference stands in a clause that denies it.

    Examples
    --------
    >>> denies("It was not Paris, it was Rome.", ["Paris"]), denies("Not only Rome", ["Rome"])
    (True, False)
    """
    if question and re.search(rf"\b(?:{_DENIAL})\b", question):
        return False
    text = text[:_MOST_READ]
    mentions = [match for alias in aliases for match in _mentions(alias).finditer(text)]
    return bool(mentions) and all(_denied(text, match) for match in mentions)


@lru_cache(maxsize=20_000)
def _mentions(alias: str) -> re.Pattern[str]:
    words = re.findall(r"\w+", alias)[:12]
    between = r"\W{1,3}".join(map(re.escape, words))
    return re.compile(rf"\b{between}\b" if words else r"(?!)", re.I)


def _denied(text: str, mention: re.Match[str]) -> bool:
    before = _CLAUSE.split(text[max(0, mention.start() - 200) : mention.start()])[-1]
    after = text[mention.end() : mention.end() + 200]
    return not _EMPHASIS.search(before) and bool(_BEFORE.search(before) or _AFTER.match(after))
