"""Normalisation in named steps, each of which can be switched off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from calibrant.answers.semantics.text import encoding
from calibrant.answers.semantics.text.names import drop_honorifics, merge_initials
from calibrant.answers.semantics.text.numbers import (
    HAS_DIGIT,
    UNIT_WORDS,
    digits_for_words,
    join_thousands,
    unify_dates,
    unify_years,
)
from calibrant.answers.semantics.text.words import one_known_name, singular
from calibrant.core.errors import require_known

_DOTTED_ABBREVIATION = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_POSSESSIVE = re.compile(r"(?<=\w)'s\b", re.IGNORECASE)
_TWO_LETTERS = re.compile(r"[A-Za-z]\.[A-Za-z]\.").search
# Kept: a point or comma inside a number, a minus before a number, the plus and sharp of C++, C#.
# The sign comes first and its neighbours after it: so letters are passed over quickly.
_PUNCTUATION = re.compile(
    r"[^\w\s%$€£°](?:(?<![.,+#-])|(?<=[.,])(?:(?<!\d.)|(?!\d))|(?<=[+#])(?<![A-Za-z+].)|(?<=-)(?!\d))"
)
# A formula is made of numbers, single letters, brackets and operators, at least one of which cannot
# be mere punctuation: 3 + 4 is not 3 - 4, and < 5 is not > 5.
_FORMULA = re.compile(r"(?:[\d\s.,()\[\]{}+*/^=<>≤≥≠-]|(?<![^\W\d_])[^\W\d_](?![^\W\d_]))+")
_OPERATOR = re.compile(
    r"[\w)\]}]\s*[+*^=<>≤≥≠]|^\s*[<>≤≥≠]|[)\]}]\s*[-/]|[-/]\s*[(\[{]|^\s*\d+\s*/\s*\d+\s*$"
)
_ONE_SIGN = str.maketrans("×·÷−", "**/-")
# A grade of school, or a blood group.
_SIGNED_LETTERS = re.compile(r"\s*[A-Za-z]{1,2}[-−]\s*")
_INNER_HYPHEN = re.compile(r"-(?<=\w-)(?=\w)")
_ARTICLES = frozenset(("a", "an", "the"))
# 'It is Paris', 'I think it was Paris': words before the answer that say nothing.
_LEAD_IN = re.compile(
    r"(?:(?:i\s+(?:think|believe|guess|would\s+say)|probably|maybe|perhaps|possibly),?\s+(?:that\s+)?)?"
    r"(?:(?:(?:it|this|that|he|she|they)(?:'s|\s+(?:is|was|are|were|would\s+be))"
    r"|(?:the|my)\s+(?:final\s+|correct\s+|best\s+)?(?:answer|guess)\s*(?:is|was|:))\s*:?\s+)(?=\S)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(\d(?<![\w.]\d)\d*(?:\.\d+)?)\s*(%|°\s?[cf]\b|°|[a-z]+)", re.IGNORECASE)
_MONEY = re.compile(r"(?:us|u\.s\.)?\s?([$€£])\s?(\d+(?:\.\d+)?)", re.IGNORECASE)


def is_formula(text: str) -> bool:
    """Return whether the operators of a text are part of what it says.

    Examples
    --------
    >>> [is_formula(text) for text in ("(4*5)-(10-6)", "x < 3", "A-", "1914-1918", "Rome (Italy)")]
    [True, True, True, False, False]
    """
    if _SIGNED_LETTERS.fullmatch(text):
        return True
    plain = text if text.isascii() else text.translate(_ONE_SIGN)
    return bool(_FORMULA.fullmatch(plain) and _OPERATOR.search(plain))


def _punctuation(text: str) -> str:
    if is_formula(text):
        return "".join(text.translate(_ONE_SIGN).split())
    if _TWO_LETTERS(text):
        text = _DOTTED_ABBREVIATION.sub(lambda match: match[0].replace(".", ""), text)
    if "'" in text:
        text = _POSSESSIVE.sub("", text)
    return _PUNCTUATION.sub(" ", _INNER_HYPHEN.sub(" ", text.replace("&", " and ")))


def _articles(text: str) -> str:
    # 'Vitamin A' and option 'A' keep their letter: only an article before a word goes.
    words = text.split()
    if len(words) < 2 or is_formula(text):
        return text
    start = words[0].lower() in _ARTICLES
    first = [] if len(words) - start > 1 and words[start] in _ARTICLES else [words[start]]
    inner = [word for word in words[start + 1 : -1] if word not in _ARTICLES and word != "The"]
    return " ".join((*first, *inner, *words[max(start + 1, len(words) - 1) :]))


def strip_lead_in(text: str) -> str:
    """Return the text without words before the answer that say nothing.

    Examples
    --------
    >>> strip_lead_in("I think it's 5 miles")
    '5 miles'
    """
    text = text.strip()
    lead = _LEAD_IN.match(text)
    return text[lead.end() :] if lead else text


def _units(text: str) -> str:
    if not HAS_DIGIT(text):
        return text
    if "$" in text or "€" in text or "£" in text:
        text = _MONEY.sub(lambda match: f"{match[2]} {UNIT_WORDS[match[1]]}", text)
    return _UNIT.sub(_one_unit, text)


def _one_unit(match: re.Match[str]) -> str:
    unit = UNIT_WORDS.get(match[2].lower().replace(" ", ""))
    return f"{match[1]} {unit}" if unit else match[0]


def _plurals(text: str) -> str:
    return " ".join(map(singular, text.split()))


STEPS: dict[str, Callable[[str], str]] = {
    "mojibake": encoding.repair_mojibake,
    "unicode": encoding.unify_unicode,
    "accents": encoding.strip_accents,
    "thousands": join_thousands,
    "dates": unify_dates,
    "years": unify_years,
    "numbers": digits_for_words,
    "units": _units,
    "lead-ins": strip_lead_in,
    "initials": merge_initials,
    "honorifics": drop_honorifics,
    "articles": _articles,
    "punctuation": _punctuation,
    "case": str.casefold,
    # Before the plurals: 'United States' is a name of the table, 'united state' is none.
    "places": one_known_name,
    "plurals": _plurals,
}


T = TypeVar("T")


class Once(dict[str, T]):
    """What a function returns for each text, worked out once; no more than `most` are kept."""

    def __init__(self, work: Callable[[str], T], most: int) -> None:
        super().__init__()
        self.work, self.most = work, most

    def __missing__(self, text: str) -> T:
        """Work it out."""
        value = self.work(text)
        if len(self) < self.most:
            self[text] = value
        return value


class Normaliser:
    """Bring a text to its plain form by the named steps, always in the order of `STEPS`.

    Parameters
    ----------
    steps
        Names of the steps to take; all by default.

    Examples
    --------
    >>> plain = Normaliser()
    >>> plain("The 1,000 Islands"), plain("one thousand islands")
    ('1000 island', '1000 island')
    >>> Normaliser().without("plurals", "numbers")("The Two Towers")
    'two towers'
    >>> Normaliser(["case"]).steps
    ('case',)
    """

    def __init__(self, steps: Iterable[str] | None = None) -> None:
        targets = list(STEPS) if steps is None else list(steps)
        require_known(targets, STEPS, "there is no normalisation step {}")
        self.steps: tuple[str, ...] = tuple(name for name in STEPS if name in targets)
        self._functions = tuple(STEPS[name] for name in self.steps)
        self._known = Once(self._compute, 500_000)

    def without(self, *names: str) -> Normaliser:
        """Return a normaliser with these steps switched off."""
        Normaliser(names)
        return Normaliser([name for name in self.steps if name not in names])

    def __call__(self, text: str) -> str:
        """Return the plain form; a text of symbols alone stays itself (``+`` is not ``-``)."""
        return self._known[text]

    def _compute(self, text: str) -> str:
        value = encoding.squeeze(encoding.clean_text(text)[0])
        for function in self._functions:
            value = function(value)
        return " ".join(value.split()) or " ".join(text.casefold().split())


def normalise(text: str, *, steps: Iterable[str] | None = None) -> str:
    """Return the plain form of one text.

    Examples
    --------
    >>> normalise("Côte d'Ivoire.")
    'ivory coast'
    >>> normalise("July 20th, 1969") == normalise("20 July 1969")
    True
    """
    return Normaliser(steps)(text)
