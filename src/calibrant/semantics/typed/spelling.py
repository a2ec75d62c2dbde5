"""Names: known to be one, spelt in two ways, or only alike to look at."""

from __future__ import annotations

import re
from functools import lru_cache

from calibrant.semantics.text.names import TITLES, spelling_variant
from calibrant.semantics.text.places import is_country
from calibrant.semantics.text.words import within_edits, word_list
from calibrant.semantics.typed.relation import Relation, Verdict

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
_SMALL = frozenset(word_list("the of de la el von van a an"))
_YOUNGER = frozenset(word_list("jr sr junior senior"))


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
    if is_country(" ".join(a)) and is_country(" ".join(b)):
        return Relation.DIFFERENT, "country"
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
    left = [word for word in long if word not in short]
    if set(left) <= _YOUNGER:
        return "younger or older"
    if all(len(word) == 1 for word in left):
        return None
    between = len(short) > 1 and long[0] == short[0] and long[-1] == short[-1]
    return "middle name" if between else "leftover word"


def _plain(words: tuple[str, ...]) -> list[str]:
    """Return the words of a name without titles in front and small words."""
    kept = [word for word in words if word not in _SMALL]
    while len(kept) > 1 and kept[0] in TITLES:
        kept = kept[1:]
    return kept
