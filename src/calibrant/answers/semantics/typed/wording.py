"""What rules say about two answers: spellings of names, denials, lists in words."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from calibrant.answers.semantics.text.names import TITLES, spelling_variant
from calibrant.answers.semantics.text.numbers import HAS_DIGIT
from calibrant.answers.semantics.text.words import (
    listed,
    listed_kind,
    pairs,
    singular,
    within_edits,
)


class Relation(Enum):
    """SAME and DIFFERENT decide.

    LIKELY joins only where it points to one class alone (a surname and one full name).
    UNSURE is left to embeddings or a judge, and means 'not joined' without them.
    """

    SAME = "same"
    LIKELY = "likely"
    UNSURE = "unsure"
    DIFFERENT = "different"


Verdict = tuple[Relation, str]


def decided(same: bool, rule: str) -> Verdict:
    """Return the verdict of a rule that tells same from different."""
    return (Relation.SAME if same else Relation.DIFFERENT), rule


# Letters that stand for one sound in names from other scripts, longest first.
_SOUNDS = (
    ("tch", "c"), ("sch", "s"), ("kh", "k"), ("gh", "g"), ("dh", "d"), ("th", "t"), ("ph", "f"),
    ("sh", "s"), ("ch", "c"), ("ck", "k"), ("ts", "c"), ("tz", "c"), ("ou", "u"), ("oo", "u"),
    ("ee", "i"), ("ae", "a"), ("oe", "o"), ("ue", "u"), ("q", "k"), ("g", "k"), ("y", "i"),
    ("j", "i"), ("w", "v"),
)  # fmt: skip
_DOUBLED = re.compile(r"(.)\1+")
# British and American endings of common words.
_BRITISH = (
    (re.compile(r"(?<=\w{2})our(?=$|s$|ed$|ing$|ful$|able$)"), "or"),
    (re.compile(r"(?<=[bt])re$"), "er"),
    (re.compile(r"(?<=\w{3})is(?=e$|ed$|es$|ing$|ation$)"), "iz"),
    (re.compile(r"yse(?=$|d$|s$)"), "yze"),
    (re.compile(r"ogue$"), "og"),
    (re.compile(r"ae|oe"), "e"),
    (re.compile(r"ll(?=ed$|ing$|er$)"), "l"),
    (re.compile(r"ence$"), "ense"),
    (re.compile(r"ium$"), "um"),
    (re.compile(r"ph(?=ur)"), "f"),
    (re.compile(r"amme$"), "am"),
    (re.compile(r"^grey$"), "gray"),
    (re.compile(r"^tyre$"), "tire"),
)
_LONGEST_ALIKE = 7
_SHORTEST_SPELLING = 5
_SMALL = frozenset(["the", "of", "de", "la", "el", "von", "van", "a", "an"])
_YOUNGER = frozenset(["jr", "sr", "junior", "senior"])


@lru_cache(maxsize=50_000)
def spelling_key(word: str) -> str:
    """Return a word as it sounds, so that transliterations of one name agree.

    Examples
    --------
    >>> spelling_key("gaddafi") == spelling_key("qaddafi"), spelling_key("monet") == "manet"
    (True, False)
    """
    for letters, sound in _SOUNDS:
        word = word.replace(letters, sound)
    return _DOUBLED.sub(r"\1", word)


@lru_cache(maxsize=50_000)
def one_spelling(word: str) -> str:
    """Return a common word in its American spelling.

    Examples
    --------
    >>> one_spelling("colour"), one_spelling("centre"), one_spelling("four")
    ('color', 'center', 'four')
    """
    if len(word) < 4 or word in ("four", "hour", "tour", "your", "pour", "sour", "otherwise"):
        return word
    for pattern, plain in _BRITISH:
        word = pattern.sub(plain, word)
    return word


def compare_words(a: tuple[str, ...], b: tuple[str, ...], *, named: bool) -> Verdict | None:
    """Compare two short answers word by word; `named` tells names from common words.

    Examples
    --------
    >>> compare_words(("gaddafi",), ("qaddafi",), named=True)[0].value
    'same'
    >>> compare_words(("manet",), ("monet",), named=True)
    (<Relation.DIFFERENT: 'different'>, 'look-alike')
    >>> compare_words(("austria",), ("australia",), named=True)[1]
    'country'
    """
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
    if min(len(x), len(y)) > _LONGEST_ALIKE or not close:
        return False
    return not (len(x) != len(y) and spelling_variant(x, y))


def unexplained(a: tuple[str, ...], b: tuple[str, ...]) -> str | None:
    """Return what one name has beside the other that may make it somebody or something else.

    Examples
    --------
    >>> unexplained(("john", "adams"), ("john", "quincy", "adams"))
    'middle name'
    >>> unexplained(("paris",), ("paris", "saint", "germain"))
    'leftover word'
    >>> unexplained(("king", "charles"), ("charles",)) is None
    True
    """
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
    """Read a short sentence; None for single words and long texts.

    Examples
    --------
    >>> read_sentence("The drug is not safe") == read_sentence("The drug is unsafe")
    True
    """
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
    """Compare what two sentences deny; None where neither denies or they speak of other things.

    Examples
    --------
    >>> def told(a, b):
    ...     return compare_sentences(read_sentence(a), read_sentence(b))[0].value
    >>> told("He never married", "He married"), told("The bill was passed", "The bill was rejected")
    ('different', 'different')
    """
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
    """Read a list of things in words; a name with its place ('Portland, Oregon') is none.

    Examples
    --------
    >>> read_things("red, green and blue")
    ('red', 'green', 'blue')
    >>> read_things("Portland, Oregon") is None
    True
    """
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
