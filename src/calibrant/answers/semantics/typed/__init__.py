"""Answers of a type that says by itself what is equal: numbers, eras, lists, formulas, code, ...

`read_types` reads a text once, `compare_types` compares two readings by the first type that both
have. Classes and grades use the same comparison. Where a type does not decide, the relation is
UNSURE and the grade doubtful.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from calibrant.answers.semantics.text.numbers import HAS_DIGIT
from calibrant.answers.semantics.text.words import (
    TITLES,
    listed,
    listed_kind,
    pairs,
    singular,
    within_edits,
)
from calibrant.answers.semantics.typed.notation import (
    Interval,
    compare_code,
    compare_formulas,
    compare_intervals,
    read_code,
    read_complexity,
    read_formula,
    read_interval,
    read_listing,
)
from calibrant.answers.semantics.typed.quantities import (
    Quantity,
    Relation,
    Verdict,
    compare_quantities,
    decided,
    read_era,
    read_numeral,
    read_quantity,
)

# Letters that stand for one sound in names from other scripts, longest first.
_SOUNDS = pairs("sounds")
_DOUBLED = re.compile(r"(.)\1+")
# British endings of common words, and American ones.
_BRITISH = (
    (re.compile(r"(?<=\w{2})our(?=$|s$|ed$|ing$|ful$|able$)"), "or"),
    (re.compile(r"(?<=[bt])re$"), "er"),
    (re.compile(r"(?<=\w{3})is(?=e$|ed$|es$|ing$|ation$)"), "iz"),
    (re.compile(r"yse(?=$|d$|s$)"), "yze"),
    (re.compile(r"(?<=og)ue$|(?<=am)me$"), ""),
    (re.compile(r"ae|oe"), "e"),
    (re.compile(r"ll(?=ed$|ing$|er$)"), "l"),
    (re.compile(r"ence$"), "ense"),
    (re.compile(r"ium$"), "um"),
    (re.compile(r"ph(?=ur)"), "f"),
    (re.compile(r"(?<=^gr)ey$"), "ay"),
    (re.compile(r"(?<=^t)yre$"), "ire"),
)
_NOT_BRITISH = frozenset(["four", "hour", "tour", "your", "pour", "sour", "otherwise"])
_LONGEST_ALIKE = 7
_SHORTEST_SPELLING = 5
_SMALL = frozenset(["the", "of", "de", "la", "el", "von", "van", "a", "an"])
_YOUNGER = frozenset(["jr", "sr", "junior", "senior"])


@lru_cache(maxsize=50_000)
def spelling_key(word: str) -> str:
    """Return a word as it sounds, so that transliterations of one name agree."""
    for letters, sound in _SOUNDS:
        word = word.replace(letters, sound)
    return _DOUBLED.sub(r"\1", word)


def one_spelling(word: str) -> str:
    """Return a common word in its American spelling.

    Examples
    --------
    >>> one_spelling("colour"), one_spelling("centre"), one_spelling("four")
    ('color', 'center', 'four')
    """
    if len(word) > 3 and word not in _NOT_BRITISH:
        for pattern, plain in _BRITISH:
            word = pattern.sub(plain, word)
    return word


def compare_words(a: tuple[str, ...], b: tuple[str, ...], *, named: bool) -> Verdict | None:
    """Compare two short answers word by word; `named` tells names from common words."""
    kind = listed_kind(" ".join(a))
    if kind is not None and a != b and kind == listed_kind(" ".join(b)):
        return Relation.DIFFERENT, kind
    if len(a) != len(b) or len(a) > 4:
        return None
    unlike = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    if all(one_spelling(x) == one_spelling(y) for x, y in unlike):
        return Relation.SAME, "spelling"
    if not named:
        return None
    long_enough = all(min(len(x), len(y)) >= _SHORTEST_SPELLING for x, y in unlike)
    if long_enough and all(spelling_key(x) == spelling_key(y) for x, y in unlike):
        return Relation.SAME, "spelling"
    # 'Dave' and 'David Gahan' are one: beside other words a small difference proves little.
    return (Relation.DIFFERENT, "look-alike") if len(a) == 1 and _look_alike(*unlike[0]) else None


def _look_alike(x: str, y: str) -> bool:
    if x[:1].isdigit() or y[:1].isdigit() or min(len(x), len(y)) < 3:
        return False
    close = within_edits(x, y, 1) or (min(len(x), len(y)) > 4 and within_edits(x, y, 2))
    return close and min(len(x), len(y)) <= _LONGEST_ALIKE


def unexplained(a: tuple[str, ...], b: tuple[str, ...]) -> str | None:
    """Return what one name has beside the other that may make it somebody or something else."""
    short, long = sorted((_plain(a), _plain(b)), key=len)
    if not short or len(short) == len(long) or not set(short) <= set(long):
        return None
    remaining = [word for word in long if word not in short]
    if set(remaining) <= _YOUNGER:
        return "younger or older"
    if all(len(word) == 1 for word in remaining):
        return None
    between = len(short) > 1 and long[0] == short[0] and long[-1] == short[-1]
    return "middle name" if between else "leftover word"


def _plain(words: tuple[str, ...]) -> list[str]:
    """Return the words of a name without titles in front and small words."""
    selection = [word for word in words if word not in _SMALL]
    while len(selection) > 1 and selection[0] in TITLES:
        selection = selection[1:]
    return selection


_DENIALS = frozenset(listed("denials"))
_SHORTENED = re.compile(r"\b(ca|wo)n't\b|n't\b")
_AGAINST: dict[str, set[str]] = {}
# Words that carry their own denial: 'unsafe' is 'not safe'.
_DENYING: dict[str, str] = {}
for _one, _other in pairs("opposites"):
    _AGAINST.setdefault(_one, set()).add(_other)
    _AGAINST.setdefault(_other, set()).add(_one)
    if _other.endswith(_one):
        _DENYING[_other] = _one
_FILLERS = frozenset(listed("fillers"))
_PAST = {"rose": "rise", "fell": "fall", "won": "win", "lost": "lose", "began": "begin"}
_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 14
_SEPARATOR = re.compile(r",\s?(?:and|or)\s|[,;\n]|\s(?:and)\s|\s?&\s?")
_BULLET = re.compile(r"^\s{0,4}(?:\d{1,2}[.)]|[-*•])\s", re.MULTILINE)
_ORDERED = re.compile(
    r"\b(?:order|rank|sequence|steps?|first to last|chronolog|respectively|sort|podium|coordinates?"
    r"|tuple|permutation)\w{0,8}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """How often a sentence denies, and its other words in order."""

    denials: int
    words: tuple[str, ...]


def read_sentence(text: str) -> Sentence | None:
    """Read a short sentence; None for single words and long texts."""
    plain = _SHORTENED.sub(" not", text.lower().replace("cannot", "can not"))
    tokens = _WORD.findall(plain)
    alone = len(tokens) == 1 and tokens[0] in _AGAINST
    if not alone and not 2 <= len(tokens) <= _MOST_WORDS + 4:
        return None
    denials, words = 0, []
    for word in tokens:
        if word in _DENIALS:
            denials += 1
        elif word in _DENYING:
            denials += 1
            words.append(_DENYING[word])
        elif word not in _FILLERS and word != "ca":
            words.append(word)
    return Sentence(denials, tuple(words)) if words and len(words) <= _MOST_WORDS else None


def compare_sentences(a: Sentence, b: Sentence) -> Verdict | None:
    """Compare what two sentences deny; None where neither denies or they speak of other things."""
    flipped = 0
    words, peers = a.words, b.words
    if len(words) == len(peers) > 1:
        unlike = [(x, y) for x, y in zip(words, peers, strict=True) if x != y]
        if unlike and all(y in _AGAINST.get(x, ()) for x, y in unlike):
            flipped, peers = len(unlike), words
    if not (a.denials or b.denials or flipped):
        return None
    if sorted(map(_stem, words)) == sorted(map(_stem, peers)):
        return decided((a.denials + b.denials + flipped) % 2 == 0, "negation")
    shared = len(set(words) & set(peers)) / len(set(words) | set(peers))
    if shared >= 0.6 and (a.denials + b.denials) % 2 and max(a.denials, b.denials) == 1:
        return Relation.UNSURE, "negation"
    return None


def _stem(word: str) -> str:
    word = _PAST.get(word, word)
    for ending in ("ied", "ies", "ed", "es", "ing", "e", "d", "s", "y"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word


def read_things(text: str) -> tuple[str, ...] | None:
    """Read a list of things in words; a name with its place ('Portland, Oregon') is none."""
    if HAS_DIGIT(text):
        return None
    plain = _BULLET.sub("", text.strip().rstrip(".")).lower()
    parts = [part.strip(" .'\"").removeprefix("the ") for part in _SEPARATOR.split(plain)]
    things = tuple(" ".join(map(singular, part.split())) for part in parts if part)
    if not 2 <= len(things) <= 20 or any(len(thing.split()) > 5 for thing in things):
        return None
    named_place = len(things) == 2 and not re.search(r"\sand\s|&|\n|;", plain)
    return None if named_place else things


def compare_things(a: tuple[str, ...], b: tuple[str, ...], asked: str) -> Verdict | None:
    """Compare two lists; their order counts only where the question asks for it."""
    if sorted(a) == sorted(b):
        return decided(a == b or not _ORDERED.search(asked), "list")
    shared = set(a) & set(b)
    if not shared:
        return None
    return (Relation.DIFFERENT, "list") if len(a) == len(b) else (Relation.UNSURE, "part of a list")


Types = dict[str, Any]
LONGEST = 400
_DIGIT = re.compile(r"\d")
# Each type is tried only on texts that hold a sign of it.
_NUMBER = re.compile(
    r"\d|^an?\s|one|two|three|four|five|six|seven|eight|nin|ten|elev|twel|twent|thirt|fift|hundred"
    r"|thousand|illion|dozen|score|gross|hal[fv]|quarter|third",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"\d|\b[IVXLC]{1,6}\b|\bWW|th\b|(?:first|second|third)\b", re.IGNORECASE)
_ERA = re.compile(r"\b(?:bc|bce|ad|ce|b\.c|a\.d|c\.e|century|before)\b", re.IGNORECASE)
_CODE = re.compile(r"[\[({};=:]|lambda|SELECT")
_SYMBOL = re.compile(r"[\[({<>≤≥=^*/+\\;`.]|\d[a-z(]|[a-z]-[a-z]\b|\d-")


@dataclass(frozen=True, slots=True)
class _Type:
    """One type: how a text up to so long is read as it, when to try, how two readings compare.

    `further` says how much more the comparison takes: the question, the tolerance of numbers.
    """

    longest: int
    read: Callable[[str], Any]
    worth_trying: Callable[[str], object]
    compare: Callable[..., Verdict | None]
    further: int = 0


def _complexity(a: tuple[str, str], b: tuple[str, str]) -> Verdict:
    """Compare two classes of running time; another letter with the same inside is in doubt."""
    doubt = a[1] == b[1] and a[0] != b[0]
    return (Relation.UNSURE, "complexity") if doubt else decided(a == b, "complexity")


def _listing(a: tuple[bool, tuple[str, ...]], b: tuple[bool, tuple[str, ...]]) -> Verdict:
    """Compare two lists in brackets; the order counts unless one is a set."""
    if a[0] or b[0]:
        return decided(set(a[1]) == set(b[1]), "set")
    return decided(a[1] == b[1], "sequence")


# In the order in which they decide: '[0, 1)' is an interval before it is a list.
_TYPES: dict[str, _Type] = {
    "complexity": _Type(70, read_complexity, lambda text: "(" in text, _complexity),
    "interval": _Type(60, read_interval, _DIGIT.search, compare_intervals, 1),
    "listing": _Type(LONGEST, read_listing, lambda text: text[:1] in "[({ ", _listing),
    "era": _Type(40, read_era, _ERA.search, lambda a, b: decided(a == b, "era")),
    "quantity": _Type(80, read_quantity, _NUMBER.search, compare_quantities, 2),
    "code": _Type(
        LONGEST, read_code, lambda text: _CODE.search(text) and _SYMBOL.search(text), compare_code
    ),
    "formula": _Type(80, read_formula, _SYMBOL.search, compare_formulas),
    # Other names are left to the rules of names.
    "numeral": _Type(
        60,
        read_numeral,
        _NUMERAL.search,
        lambda a, b: decided(a[1] == b[1], "numeral") if a[0] == b[0] else None,
    ),
    "sentence": _Type(160, read_sentence, bool, compare_sentences),
    "things": _Type(300, read_things, re.compile(r"[,;&\n]| and ").search, compare_things, 1),
}
# Types of which any two texts may be the same without a common word.
UNWORDED = _TYPES.keys() - {"sentence", "things"}


def read_types(text: str) -> Types:
    """Return what a text is, by the name of each type that it can be read as."""
    return {
        name: reading
        for name, each in _TYPES.items()
        if len(text) <= each.longest and each.worth_trying(text)
        if (reading := each.read(text)) is not None
    }


def compare_types(
    a: Types, b: Types, asked: str = "", *, tolerance: float = 1e-9
) -> Verdict | None:
    """Compare two texts by the first type that both have and that tells.

    Examples
    --------
    >>> def told(a, b, asked=""):
    ...     found = compare_types(read_types(a), read_types(b), asked)
    ...     return found and (found[0].value, found[1])
    >>> told("44 BCE", "44 BC"), told("[1,2,3]", "[3,2,1]"), told("O(n)", "O(n log n)")
    (('same', 'era'), ('different', 'sequence'), ('different', 'complexity'))
    >>> told("Louis XIV", "Louis 14"), told("oxygen and hydrogen", "hydrogen and oxygen")
    (('same', 'numeral'), ('same', 'list'))
    >>> told("Paris", "Rome") is None, told("11", "10-12")
    (True, ('unsure', 'range'))
    """
    if not a or not b:
        return None
    for name, each in _TYPES.items():
        verdict = None
        if name in a and name in b:
            further = (asked, tolerance)[: each.further]
            verdict = each.compare(a[name], b[name], *further)
        elif name in a or name in b:
            verdict = _other_type(name, *((a, b) if name in a else (b, a)))
        if verdict is not None:
            return verdict
    return None


def _other_type(name: str, has: Types, lacks: Types) -> Verdict | None:
    """Compare a range with a figure, and a year that names its era with one that does not."""
    figure: Quantity | None = lacks.get("quantity")
    if figure is None:
        return None
    if name == "era" and not figure.unit and figure.number.is_integer():
        kind, year = has[name]
        if kind != "year" or abs(year) != figure.number:
            return Relation.DIFFERENT, "era"
        return (Relation.SAME if year > 0 else Relation.UNSURE), "era"
    interval: Interval | None = has.get("interval") if name == "interval" else None
    if interval is None or not interval.told_as_range:
        return None
    # Inside a range a figure may or may not be what is meant.
    within = interval.low <= figure.number <= interval.high
    return (Relation.UNSURE if within else Relation.DIFFERENT), "range"
