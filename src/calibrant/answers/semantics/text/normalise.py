"""Texts as they really come, wrongly encoded or not, brought to one form in named steps."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import TypeVar

from calibrant.answers.semantics.text.numbers import (
    HAS_DIGIT,
    UNIT_WORDS,
    digits_for_words,
    join_thousands,
    unify_dates,
    unify_years,
)
from calibrant.answers.semantics.text.words import HONORIFICS, known_names, singular
from calibrant.core.errors import require_known

# A UTF-8 text read as Windows-1252 shows these pairs; plain text almost never does.
_MOJIBAKE = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0178\u0192\u02c6-\u02dc\u2013-\u2122]"
)
_WINDOWS = {
    ord(sign): code
    for code in range(0x80, 0xA0)
    if (sign := bytes([code]).decode("cp1252", "ignore"))
}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2060\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Two blanks and no counted run: a pattern that begins with one kind of letter is searched faster.
_BLANKS = re.compile(r"\s\s+")
_LOOKALIKES = str.maketrans(
    "\u2018\u2019\u02bc\u00b4`\u201c\u201d\u00ab\u00bb\u2010\u2011\u2012\u2013\u2014\u2212",
    "'" * 5 + '"' * 4 + "-" * 6,
)
# Letters that Unicode does not decompose; each is written so in plain Latin spelling.
_PLAIN_LETTERS = str.maketrans("øØłŁđĐðÐıəƏħĦ", "oOlLdDdDieEhH") | str.maketrans(
    {"þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ß": "ss"}
)


def clean_text(value: str | bytes | None) -> tuple[str, tuple[str, ...]]:
    r"""Return readable text and what had to be mended to get it.

    Bytes that are not UTF-8 and lone surrogates become U+FFFD. Without notes the text is unchanged.

    Examples
    --------
    >>> clean_text(b"caf\xe9")
    ('caf\ufffd', ('byte 0xe9 at position 3 is not UTF-8',))
    >>> clean_text("plain")
    ('plain', ())
    """
    if value is None:
        return "", ()
    notes: list[str] = []
    if isinstance(value, bytes | bytearray):
        try:
            text = bytes(value).decode("utf-8")
        except UnicodeDecodeError as error:
            notes.append(f"byte 0x{value[error.start]:02x} at position {error.start} is not UTF-8")
            text = bytes(value).decode("utf-8", errors="replace")
    else:
        text = value
    if not text.isascii() and _SURROGATE.search(text):
        notes.append("a lone surrogate is not a character")
        text = _SURROGATE.sub("\ufffd", text)
    if _CONTROL.search(text):
        notes.append("control characters removed")
        text = _CONTROL.sub("", text)
    return text, tuple(notes)


def squeeze(text: str) -> str:
    r"""Return the text with every run of blanks as one: a line break where the run holds one.

    Patterns that allow blanks in several places take time that grows with the square of a run's
    length; after this no run is longer than one.
    """
    return _BLANKS.sub(lambda run: "\n" if "\n" in run[0] or "\r" in run[0] else run[0][0], text)


def repair_mojibake(text: str) -> str:
    r"""Undo UTF-8 that was read as Windows-1252, where the whole text allows it."""
    if text.isascii() or not _MOJIBAKE.search(text):
        return text
    try:
        return text.translate(_WINDOWS).encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def unify_unicode(text: str) -> str:
    """Return the compatibility form (NFKC) with plain quotes, dashes and spaces."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_LOOKALIKES))


def strip_accents(text: str) -> str:
    """Return the text without accents."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.translate(_PLAIN_LETTERS))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


_FRONT_TITLE = re.compile(
    rf"^(?:(?:{'|'.join(sorted(HONORIFICS, key=len, reverse=True))})\b\.?\s+)+(?=\w{{3}})", re.I
)
# Only from the first initial of a run, so that a long run is read once and not from each letter.
_INITIAL_RUN = re.compile(r"(?<![A-Z]\.)(?<![A-Z]\. )\b((?:[A-Z]\.[ ]?){2,})(?=[A-Z][a-z])")
_TWO_INITIALS = re.compile(r"[A-Z]\. ?[A-Z]\.").search
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
    r"^(?:(?:i\s+(?:think|believe|guess|would\s+say)|probably|maybe|perhaps|possibly),?\s+(?:that\s+)?)?"
    r"(?:(?:(?:it|this|that|he|she|they)(?:'s|\s+(?:is|was|are|were|would\s+be))"
    r"|(?:the|my)\s+(?:final\s+|correct\s+|best\s+)?(?:answer|guess)\s*(?:is|was|:))\s*:?\s+)(?=\S)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(\d(?<![\w.]\d)\d*(?:\.\d+)?)\s*(%|°\s?[cf]\b|°|[a-z]+)", re.IGNORECASE)
_MONEY = re.compile(r"(?:us|u\.s\.)?\s?([$€£])\s?(\d+(?:\.\d+)?)", re.IGNORECASE)


def is_formula(text: str) -> bool:
    """Return whether the operators of a text are part of what it says."""
    if _SIGNED_LETTERS.fullmatch(text):
        return True
    plain = text if text.isascii() else text.translate(_ONE_SIGN)
    return bool(_FORMULA.fullmatch(plain) and _OPERATOR.search(plain))


def _initials(text: str) -> str:
    """Return the text with initials spaced alike: ``J.R.R. Tolkien`` as ``J. R. R. Tolkien``."""
    if not _TWO_INITIALS(text):
        return text
    return _INITIAL_RUN.sub(
        lambda match: " ".join(part + "." for part in re.findall(r"[A-Z]", match[1])) + " ", text
    )


def _places(text: str) -> str:
    """Return one name for a thing of the tables, when the whole text is such a name."""
    # Taken-out punctuation leaves spaces behind.
    entry = known_names().get(" ".join(text.split()))
    return text if entry is None else entry[1]


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
    """Return the text without words before the answer that say nothing."""
    return _LEAD_IN.sub("", text.strip())


def _units(text: str) -> str:
    if not HAS_DIGIT(text):
        return text
    if "$" in text or "€" in text or "£" in text:
        text = _MONEY.sub(lambda match: f"{match[2]} {UNIT_WORDS[match[1]]}", text)

    def one_unit(match: re.Match[str]) -> str:
        unit = UNIT_WORDS.get(match[2].lower().replace(" ", ""))
        return f"{match[1]} {unit}" if unit else match[0]

    return _UNIT.sub(one_unit, text)


STEPS: dict[str, Callable[[str], str]] = {
    "mojibake": repair_mojibake,
    "unicode": unify_unicode,
    "accents": strip_accents,
    "thousands": join_thousands,
    "dates": unify_dates,
    "years": unify_years,
    "numbers": digits_for_words,
    "units": _units,
    "lead-ins": strip_lead_in,
    "initials": _initials,
    "honorifics": lambda text: _FRONT_TITLE.sub("", text),
    "articles": _articles,
    "punctuation": _punctuation,
    "case": str.casefold,
    # Before the plurals: 'United States' is a name of the table, 'united state' is none.
    "places": _places,
    "plurals": lambda text: " ".join(map(singular, text.split())),
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
        self._known = Once(self._plain, 500_000)

    def without(self, *names: str) -> Normaliser:
        """Return a normaliser with these steps switched off."""
        Normaliser(names)
        return Normaliser([name for name in self.steps if name not in names])

    def __call__(self, text: str) -> str:
        """Return the plain form; a text of symbols alone stays itself (``+`` is not ``-``)."""
        return self._known[text]

    def _plain(self, text: str) -> str:
        value = squeeze(clean_text(text)[0])
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
