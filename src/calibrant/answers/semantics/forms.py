"""An answer seen from the sides that rules compare: words, number, date, proper name."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product

from calibrant.answers.semantics.mathematics import looks_like_formula
from calibrant.answers.semantics.text.names import SMALL_WORDS
from calibrant.answers.semantics.text.normalise import (
    Normaliser,
    Once,
    is_formula,
    squeeze,
    strip_accents,
    strip_lead_in,
    unify_unicode,
)
from calibrant.answers.semantics.text.numbers import Date, parse_date
from calibrant.answers.semantics.text.words import listed, singular
from calibrant.answers.semantics.typed import LONGEST, UNWORDED, Types, read_types
from calibrant.answers.semantics.typed.quantities import Quantity
from calibrant.answers.semantics.typed.wording import one_spelling, spelling_key

STOP_WORDS = frozenset(listed("stop words"))
_POWERS = str.maketrans({"²": "^2", "³": "^3"})
# Types whose brackets and signs the key leaves out.
_WRITTEN = frozenset(("complexity", "interval", "listing", "code", "formula"))
_BRACKET = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*")
_HAS_NUMBER = re.compile(r"\d")
_NUMERAL = re.compile(r"\d+(?:\.\d+)?")
_ROMAN = frozenset("".join(each) for size in range(1, 6) for each in product("ivx", repeat=size))
_LAST_LETTER = re.compile(r"\w [A-Z]\W*$")
_TAIL, _MOST_NAMED = 40, 6
_WORD = re.compile(r"[^\W\d_]+")
_JOINED = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_LIST = re.compile(r"[,;\n/|]|\b(?:and|or)\b", re.IGNORECASE)
# 'x = 2': the number is what is said about x.
_EQUATION = re.compile(r"^\W{0,3}([A-Za-z])\s?=\s?([^=]{1,60})$")
_YES_OR_NO = re.compile(
    r"^\W{0,3}(?:(yes|yeah|yep|true|correct)|no|nope|false|incorrect)\b[\s,.!;:-]{0,3}"
    r"(?:(?:it|he|she|they|that|this|there|i|we|you)\s)?"
    r"(?:(?:does|do|did|is|was|are|were|has|have|had|can|could|will|would)(?:n't|\snot)?)?\W{0,3}$",
    re.IGNORECASE,
)
_SUFFIX_COMMA = re.compile(r",(?=\s*(?:Jr|Sr|II|III)\b)")
_ACRONYM = re.compile(r"^(?:[A-Z]\.?){2,6}$")
_WHO = re.compile(
    r"\b(?:who|whom|whose|person|people|actor|actress|author|singer|winner|president|king|queen"
    r"|player|scientist|writer|director|name of the (?:man|woman))\b",
    re.IGNORECASE,
)
# 'Name one language.': many answers are right, and many names of the kind look alike.
_ONE_OF_MANY = re.compile(
    r"^\W{0,3}(?:please\s)?(?:name|list|give|mention|state|identify|provide|tell me)\s"
    r"(?:me\s)?(?:one|a|an|any|some|two|three|\d+)\b|\bname (?:one|any)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:what|which|in what|in which)\s+year\b|\byear\s+did\b", re.IGNORECASE)
_PLACE_FRONT = frozenset(listed("first words of places"))


@dataclass(frozen=True, slots=True)
class Cues:
    """What the question says about its answers.

    `one_of_many`: it asks for one member of a kind; `asked` holds its words then.
    """

    person: bool = False
    year: bool = False
    known: bool = False
    one_of_many: bool = False
    asked: frozenset[str] = frozenset()
    question: str = ""


@lru_cache(maxsize=20_000)
def read_cues(question: str | None) -> Cues:
    """Return what a question says about its answers.

    Examples
    --------
    >>> read_cues("Who wrote Hamlet?").person, read_cues("In what year did it end?").year
    (True, True)
    >>> read_cues("Name one language.").one_of_many
    True
    """
    if not question:
        return Cues()
    person, year = bool(_WHO.search(question)), bool(_YEAR.search(question))
    if not _ONE_OF_MANY.search(question):
        return Cues(person, year, known=True, question=question)
    request = frozenset(singular(word) for word in _WORD.findall(question.casefold()))
    return Cues(person, year, known=True, one_of_many=True, asked=request, question=question)


@dataclass(frozen=True, slots=True)
class Form:
    """One distinct answer, read once."""

    raw: str
    key: str
    words: tuple[str, ...]
    content: tuple[str, ...]
    bare: str
    numbers: frozenset[str]
    types: Types
    date: Date | None
    proper: bool
    named: bool
    yes: bool | None
    variable: str
    formula: bool
    listing: bool
    acronym: str

    @property
    def blocks(self) -> set[str]:
        """Keys of which two forms share at least one wherever a rule could join them."""
        blocks = {word[:3] for word in self.content} | {self.bare}
        blocks.update(name for name in UNWORDED if name in self.types)
        if self.types.keys() & {"interval", "era"}:
            blocks.add("quantity")
        if "sentence" in self.types:
            blocks.update(word[:3] for word in self.types["sentence"].words)
        blocks.add("~" + " ".join(spelling_key(one_spelling(word)) for word in self.words[:4]))
        if self.formula:
            blocks.add("formula")
        if self.yes is not None:
            blocks.add("yes or no")
        if self.date is not None:
            blocks.add("date")
        if self.acronym:
            blocks.add("=" + self.acronym)
        elif 2 <= len(self.content) <= 6:
            blocks.add("=" + "".join(word[0] for word in self.content))
        return blocks

    @property
    def identity(self) -> str:
        """What tells distinct answers apart: the key, and all signs where they carry meaning."""
        if not _WRITTEN & self.types.keys():
            return self.key
        return f"{self.key}\0{''.join(self.raw.split())}"

    @property
    def quantity(self) -> Quantity | None:
        """The number that the answer is, where it is one."""
        value: Quantity | None = self.types.get("quantity")
        return value

    @property
    def place_like(self) -> bool:
        """Return whether the first word is one that starts names of places."""
        return bool(self.words) and self.words[0] in _PLACE_FRONT


class FormReader:
    """Read answers into forms, each distinct text once.

    Examples
    --------
    >>> reader = FormReader()
    >>> form = reader("The United Nations (UN)")
    >>> form.key, form.bare, form.acronym
    ('united nation un', 'united nation', '')
    """

    def __init__(self, normaliser: Normaliser | None = None) -> None:
        self.normaliser = normaliser or Normaliser()
        self._known = Once(self._read, 200_000)

    def __call__(self, text: str) -> Form:
        """Return the form of one answer."""
        return self._known[text]

    def _read(self, values: str) -> Form:
        key = self.normaliser(values)
        text = squeeze(values)
        words = tuple(key.split())
        content = tuple(word for word in words if word not in STOP_WORDS) or words
        bare = key
        # In a formula brackets are no remark that may be left out.
        if ("(" in text or "[" in text) and not is_formula(text):
            without = _BRACKET.sub(" ", text).strip()
            bare = self.normaliser(without) if without else key
        numbers = frozenset(_NUMERAL.findall(key)) if _HAS_NUMBER.search(key) else frozenset()
        # 'Henry VIII', 'Vitamin C': a last numeral or letter tells things apart as a figure does.
        marks = set(_ROMAN.intersection(words[1:]))
        if _LAST_LETTER.search(text[-_TAIL:]):
            marks.add(words[-1])
        short = len(text) <= 80 and bool(numbers)
        compact = text.strip().rstrip(".")
        body = strip_lead_in(text) if "lead-ins" in self.normaliser.steps else text
        equation = _EQUATION.match(body) if short else None
        variable, body = (equation[1], equation[2]) if equation else ("", body)
        types: Types = {}
        if len(body) <= LONGEST:
            plain = strip_accents(unify_unicode(body.translate(_POWERS)))
            types = read_types(plain.strip().rstrip("!"))
        acronym = compact.replace(".", "").lower() if _ACRONYM.match(compact) else ""
        return Form(
            raw=values,
            key=key,
            words=words,
            content=content,
            bare=bare,
            numbers=numbers | marks,
            types=types,
            date=parse_date(body) if short else None,
            proper=_few_words(text, _WORD, STOP_WORDS, lambda word: word[0].isupper()),
            named=_is_named(text),
            yes=_yes_or_no(text),
            variable=variable,
            formula=looks_like_formula(values),
            listing=bool(_LIST.search(_SUFFIX_COMMA.sub("", text))),
            acronym=acronym,
        )


def _is_named(text: str) -> bool:
    """Return whether a short text is a name, its small words aside ('canton of Jura')."""
    # 'Kim Jung-sook', 'Deir al-Balah': one capital letter in a joined word is enough.
    return ":" not in text and _few_words(
        text, _JOINED, SMALL_WORDS, lambda word: any(map(str.isupper, word))
    )


def _few_words(
    text: str, word: re.Pattern[str], small: frozenset[str], fits: Callable[[str], bool]
) -> bool:
    """Return whether a text has one to six words but for small ones, and all of them fit."""
    plain = text.replace("\u2019", "'").replace("'s", "")
    words = (each[0] for each in word.finditer(plain) if each[0].lower() not in small)
    first = list(islice(words, _MOST_NAMED + 1))
    return 0 < len(first) <= _MOST_NAMED and all(map(fits, first))


def _yes_or_no(text: str) -> bool | None:
    match = _YES_OR_NO.match(text) if len(text) <= 40 else None
    return None if match is None else match[1] is not None
