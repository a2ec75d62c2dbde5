"""An answer as rules compare it, and how strongly its words speak for a reference."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from itertools import islice, product

import orjson

from calibrant.answers.semantics.mathematics import looks_like_formula
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
from calibrant.answers.semantics.text.words import (
    GENERIC,
    SMALL_WORDS,
    listed,
    near_word,
    phrases,
    singular,
)
from calibrant.answers.semantics.typed import (
    LONGEST,
    UNWORDED,
    Types,
    one_spelling,
    read_types,
    spelling_key,
)
from calibrant.answers.semantics.typed.quantities import Quantity

STOP_WORDS = frozenset(listed("stop words"))
_POWERS = str.maketrans({"²": "^2", "³": "^3"})
# Types whose brackets and signs the key leaves out.
_WRITTEN = frozenset(("complexity", "interval", "listing", "code", "formula"))
_BRACKET = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*")
_HAS_NUMBER = re.compile(r"\d")
_NUMERAL = re.compile(r"\d+(?:\.\d+)?")
_ROMAN = frozenset("".join(each) for size in range(1, 6) for each in product("ivx", repeat=size))
_MOST_NAMED = 6
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
PLACE_FRONT = frozenset(listed("first words of places"))


@dataclass(frozen=True, slots=True)
class Cues:
    """What the question says about its answers; its words where it asks for one of many."""

    person: bool = False
    year: bool = False
    known: bool = False
    question: str = ""
    asked: frozenset[str] = frozenset()


@lru_cache(maxsize=20_000)
def read_cues(question: str | None) -> Cues:
    """Return what a question says about its answers: it asks who, or for a year."""
    if not question:
        return Cues()
    one_of_many = question if _ONE_OF_MANY.search(question) else ""
    words = frozenset(map(singular, _WORD.findall(one_of_many.casefold())))
    return Cues(bool(_WHO.search(question)), bool(_YEAR.search(question)), True, question, words)


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
        blocks.update(UNWORDED & self.types.keys())
        if self.types.keys() & {"interval", "era"}:
            blocks.add("quantity")
        if "sentence" in self.types:
            blocks.update(word[:3] for word in self.types["sentence"].words)
        if self.formula:
            blocks.add("formula")
        if self.yes is not None:
            blocks.add("yes or no")
        if self.date is not None:
            blocks.add("date")
        blocks.add("~" + " ".join(spelling_key(one_spelling(word)) for word in self.words[:4]))
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


class FormReader:
    """Read answers into forms, each distinct text once."""

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
        # 'Henry VIII': a numeral tells things apart as a figure does.
        marks = _ROMAN.intersection(words[1:])
        short = len(text) <= 80 and bool(numbers)
        compact = text.strip().rstrip(".")
        body = strip_lead_in(text) if "lead-ins" in self.normaliser.steps else text
        equation = _EQUATION.match(body) if short else None
        variable, body = (equation[1], equation[2]) if equation else ("", body)
        types: Types = {}
        if len(body) <= LONGEST:
            plain = strip_accents(unify_unicode(body.translate(_POWERS)))
            types = read_types(plain.strip().rstrip("!"))
        yes = _YES_OR_NO.match(text) if len(text) <= 40 else None
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
            # 'Kim Jung-sook', 'Deir al-Balah': one capital letter in a joined word is enough.
            named=":" not in text
            and _few_words(text, _JOINED, SMALL_WORDS, lambda word: any(map(str.isupper, word))),
            yes=None if yes is None else yes[1] is not None,
            variable=variable,
            formula=looks_like_formula(values),
            listing=bool(_LIST.search(_SUFFIX_COMMA.sub("", text))),
            acronym=acronym,
        )


def _few_words(
    text: str, word: re.Pattern[str], small: frozenset[str], fits: Callable[[str], bool]
) -> bool:
    """Return whether a text has one to six words but for small ones, and all of them fit."""
    plain = text.replace("\u2019", "'").replace("'s", "")
    words = (each[0] for each in word.finditer(plain) if each[0].lower() not in small)
    first = list(islice(words, _MOST_NAMED + 1))
    return 0 < len(first) <= _MOST_NAMED and all(map(fits, first))


# The weights of the phrase model; the file says how they were fitted.
_MODEL = orjson.loads(resources.files(__package__).joinpath("phrase_model.json").read_bytes())
INTERCEPT: float = _MODEL["intercept"]
WEIGHTS: dict[str, float] = _MODEL["weights"]
# Share of answers that people accept although they share no word with any reference.
NO_COMMON_WORD: float = _MODEL["no_common_word"]


_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+(?:\+\+|#)?")
# Dates as the normaliser writes them, 'xx' for a part that is not told.
_DATE = re.compile(r"\b(\d{4}|x{4})_(\d{2}|xx)_(\d{2}|xx)\b")
_ENDINGS = frozenset(("st", "nd", "rd", "th"))
_UNSURE = re.compile(rf"\b(?:{phrases('unsure')})\b", re.IGNORECASE)
_GLUED_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z]{3})")
# A footnote mark is often glued to a year ('20102').
_GLUED_YEAR = re.compile(r"^(?:1[0-9]|20)\d{3}$")
_MAYBE_GLUED = re.compile(r"[a-z\d](?:[A-Z][a-z]|(?<=[a-z])\d|(?<=\d)[a-z]{3})").search
# '950.00' is 950.
_WHOLE = re.compile(r"\.0+$")
_MOST_READ = 6000
_SAYS_MORE = 2
_DENIALS = frozenset(listed("denials"))


@dataclass(frozen=True)
class Bag:
    """The words of a text, in order and as a set, with an index by first letter."""

    raw: str
    key: str
    words: tuple[str, ...]
    known: frozenset[str]
    content: tuple[str, ...]
    dates: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def by_letter(self) -> dict[str, list[str]]:
        """Words long enough to have near spellings, by first letter."""
        index = defaultdict[str, list[str]](list)
        for word in self.known:
            if len(word) > 4:
                index[word[0]].append(word)
        return index

    def has(self, word: str) -> bool:
        """Return whether the word or a near spelling of it is there."""
        return word in self.known or near_word(word, self.by_letter.get(word[0], []))


class BagReader:
    """Turn texts into bags of words, each distinct text once."""

    def __init__(self, normaliser: Normaliser | None = None) -> None:
        self.normaliser = normaliser or Normaliser()
        self._known = Once(self._read, 200_000)

    def __call__(self, text: str) -> Bag:
        """Return the bag of one text."""
        return self._known[text]

    def _read(self, text: str) -> Bag:
        text = squeeze(text[:_MOST_READ])
        key = self.normaliser(text)
        words = words_of(key)
        vocabulary = set(words) | {w[:4] for w in words if len(w) == 5 and _GLUED_YEAR.match(w)}
        if _MAYBE_GLUED(text):
            # 'wasByron': a missing space hides both words.
            vocabulary.update(_TOKEN.findall(self.normaliser(_GLUED_WORD.sub(" ", text))))
        content = tuple(word for word in words if word not in STOP_WORDS) or tuple(words)
        dates = tuple(match.groups() for match in _DATE.finditer(key)) if "_" in key else ()
        return Bag(text, key, tuple(words), frozenset(vocabulary), content, dates)


def words_of(key: str) -> list[str]:
    """Return the words of a normalised text, endings of figures left out."""
    words: list[str] = []
    for word in _TOKEN.findall(key):
        if not (word in _ENDINGS and words and words[-1].isdigit()):
            words.append(_WHOLE.sub("", word) if "." in word else word)
    return words


def _share(words: Sequence[str], bag: Bag) -> float:
    return sum(map(bag.has, words)) / len(words) if words else 0.0


def other_date(answer: Bag, reference: Bag) -> bool:
    """Return whether the answer tells dates, and none of them can be the reference's."""
    if len(reference.dates) != 1 or not answer.dates:
        return False
    targets = reference.dates[0]
    return not any(
        all(x == y or "x" in x or "x" in y for x, y in zip(date, targets, strict=True))
        for date in answer.dates
    )


def speaks_of_else(answer: Bag, references: Sequence[Bag], question: Bag) -> bool:
    """Return whether an answer may mention a reference and mean something else.

    It denies something, or it leaves the question aside: 'It was long thought to be Rembrandt,
    until Vermeer was shown' takes up less than a third of the question's words, and has two or
    more that neither question nor references have.

    Examples
    --------
    >>> read = BagReader()
    >>> question, right = read("Who painted the Milkmaid?"), [read("Vermeer")]
    >>> speaks_of_else(read("Critics long took Vermeer for Rembrandt"), right, question)
    True
    >>> speaks_of_else(read("The Milkmaid was painted by Vermeer in Delft"), right, question)
    False
    """
    if _DENIALS & (answer.known - question.known):
        return True
    known = (question, *references)
    topic = set(question.content).difference(*(each.known for each in references))
    # Near spellings are looked for where the words themselves are too few: few answers get there.
    if 3 * len(topic & answer.known) >= len(topic) or 3 * sum(map(answer.has, topic)) >= len(topic):
        return False
    additions = {w for w in answer.content if not any(each.has(w) for each in known)}
    return len(additions) >= _SAYS_MORE


def evidence(
    answer: Bag, reference: Bag, question: Bag, *, aliases: int = 1
) -> dict[str, float] | None:
    """Return what speaks for the answer, each in [0, 1] or a logarithm; None without evidence.

    Words of the question tell nothing: they are left out of `fresh_share` and of what the
    answer adds. `figures_missing` is the share of the reference's figures that the answer
    lacks, `other_date` whether it tells only other dates, `precision` the share of the answer's own
    words that the reference has.

    Examples
    --------
    >>> read = BagReader()
    >>> found = evidence(read("It was Tom Hanks"), read("Tom Hanks"), read("Who was it?"))
    >>> found["fresh_share"], found["contained"]
    (1.0, 1.0)
    """
    gold = tuple(word for word in reference.content if word not in GENERIC) or reference.content
    if not gold:
        return None
    request = question.known
    fresh = [word for word in gold if word not in request] or list(gold)
    share = _share(gold, answer)
    added = [word for word in answer.content if word not in request]
    precision = _share(added, reference)
    if share == 0.0 and precision == 0.0:
        return None
    figures = [word for word in gold if word[0].isdigit()]
    missing = sum(word not in answer.known for word in figures) / len(figures) if figures else 0.0
    other_figures = any(word[0].isdigit() and word not in request for word in answer.known)
    contained = f" {' '.join(reference.words)} " in f" {' '.join(answer.words)} "
    return {
        "fresh_share": _share(fresh, answer),
        "contained": float(contained),
        "figures_missing": missing,
        "figures_conflict": float(bool(figures) and missing == 1.0 and other_figures),
        "other_date": float(other_date(answer, reference)),
        "precision": precision,
        "all_precise": float(bool(added) and precision == 1.0),
        "last_word": float(answer.has(gold[-1])),
        "first_word": float(answer.has(gold[0])),
        "answer_length": math.log1p(len(answer.words)),
        "unsure": float(bool(_UNSURE.search(answer.raw))),
        "aliases": math.log1p(aliases),
        "short": float(len(answer.words) < 8),
    }


def phrase_probability(features: Mapping[str, float]) -> float:
    """Return the probability that people accept the answer, from its features."""
    total = INTERCEPT + sum(weight * features[name] for name, weight in WEIGHTS.items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
