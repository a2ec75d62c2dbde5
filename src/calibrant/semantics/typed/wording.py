"""Sentences that deny each other, and lists of things in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calibrant.semantics.text.words import singular, word_list
from calibrant.semantics.typed.relation import Relation, Verdict, decided

_DENIALS = frozenset(
    word_list("not never no none nobody nothing neither nor cannot without hardly")
)
_SHORTENED = re.compile(r"\b(ca|wo)n't\b|n't\b")
_OPPOSITES = (
    "safe unsafe|legal illegal|possible impossible|true false|dead alive|guilty innocent"
    "|increase decrease|increased decreased|rises falls|rose fell|positive negative|before after"
    "|above below|more less|left right|buy sell|win lose|won lost|stable unstable|convex concave"
    "|odd even|accepted rejected|passed failed|passed rejected|approved rejected|maximum minimum"
    "|hot cold|always never|likely unlikely|happy unhappy|finite infinite|married unmarried"
    "|equal unequal|even uneven|important unimportant|correct incorrect|visible invisible"
    "|mortal immortal|regular irregular|relevant irrelevant|open closed|up down|rise fall"
    "|started ended|gained lost|larger smaller|higher lower|faster slower|older younger"
)
_AGAINST: dict[str, set[str]] = {}
# Words that carry their own denial: 'unsafe' is 'not safe'.
_DENYING: dict[str, str] = {}
for _pair in _OPPOSITES.split("|"):
    _one, _other = _pair.split()
    _AGAINST.setdefault(_one, set()).add(_other)
    _AGAINST.setdefault(_other, set()).add(_one)
    if _other.endswith(_one):
        _DENYING[_other] = _one
_FILLERS = frozenset(
    word_list(
        "the a an is was are were be been it he she they that this does do did has have had will "
        "would of in on at to for by and very really"
    )
)
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
    found = _WORD.findall(plain) if len(text) <= 160 else []
    alone = len(found) == 1 and found[0] in _AGAINST
    if not alone and not 2 <= len(found) <= _MOST_WORDS + 4:
        return None
    denials, words = 0, []
    for word in found:
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
    turned = 0
    words, others = a.words, b.words
    if len(words) == len(others) > 1:
        unlike = [(x, y) for x, y in zip(words, others, strict=True) if x != y]
        if unlike and all(y in _AGAINST.get(x, ()) for x, y in unlike):
            turned, others = len(unlike), words
    if not (a.denials or b.denials or turned):
        return None
    if sorted(map(_stem, words)) == sorted(map(_stem, others)):
        return decided((a.denials + b.denials + turned) % 2 == 0, "negation")
    shared = len(set(words) & set(others)) / len(set(words) | set(others))
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
    if len(text) > 300 or any(letter.isdigit() for letter in text):
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
