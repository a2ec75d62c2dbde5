"""Words and names: lists, endings, near spellings, and what tells a thing from its namesake."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources


@cache
def _lexicon() -> dict[str, list[str]]:
    """Return the lines of every list of `lexicon.txt`."""
    text = resources.files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8")
    lists: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            lines = lists.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return lists


def listed(name: str) -> list[str]:
    """Return the words of a list in `lexicon.txt`."""
    return " ".join(_lexicon()[name]).split()


def phrases(name: str) -> str:
    """Return a pattern for any of the phrases of a list in `lexicon.txt`."""
    return "|".join(_lexicon()[name])


def table(name: str) -> dict[str, str]:
    """Return what each word of a table in `lexicon.txt` stands for."""
    return {word: meaning for meaning, words in pairs(name) for word in words.split(", ")}


def pairs(name: str) -> list[tuple[str, str]]:
    """Return both sides of each line of a table in `lexicon.txt`."""
    sides = (line.partition(": ") for line in _lexicon()[name])
    return [(left, right) for left, _, right in sides]


def listed_kind(name: str) -> str | None:
    """Return ``country`` or ``language`` for the first name of one, normalised."""
    kind, first = known_names().get(name, ("", ""))
    return kind if first == name and kind in ("country", "language") else None


@cache
def known_names() -> dict[str, tuple[str, str]]:
    """Return kind and first name of everything in the tables, by each of its names."""
    return read_names("cldr_names.txt") | read_names("known_names.txt")


def read_names(table: str) -> dict[str, tuple[str, str]]:
    """Return kind and first name by each name of one table."""
    text = resources.files(__package__).joinpath(table).read_text(encoding="utf-8")
    by_name: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, names = line.split("\t")
            each = names.split("|")
            by_name.update(dict.fromkeys(each, (kind, each[0])))
    return by_name


HONORIFICS = frozenset(listed("honorifics"))
_KEEP_S = frozenset(listed("no plurals"))
# A country is no plural: Laos is not several Lao. By the word and not by its capital letter, since
# answers and references are often written small.
_COUNTRIES = {
    name for name, (kind, _) in read_names("known_names.txt").items() if kind == "country"
}
_ENDINGS = frozenset(["", *listed("endings")])

_SALTS = frozenset(["ate", "ite", "ide", "ine", "ane", "ene", "yne"])
_OPPOSITES = [
    pair.split() for pair in ("hyper hypo", "inter intra", "macro micro", "endo exo", "ante anti")
]


@lru_cache(maxsize=100_000)
def singular(word: str) -> str:
    """Return a word without its plural ending, in a way that is the same for both sides."""
    if len(word) < 4 or not word.endswith("s") or word in _KEEP_S or word in _COUNTRIES:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    if word.endswith(("ss", "us", "is")) or word[-2].isdigit():
        return word
    return word[:-1]


def within_edits(a: str, b: str, limit: int) -> bool:
    """Return whether at most `limit` letters must be changed, added or dropped."""
    if abs(len(a) - len(b)) > limit:
        return False
    start = shared_start(a, b)
    a, b = a[start:], b[start:]
    if not a or not b or not limit:
        return len(a or b) <= limit
    return any(within_edits(x, y, limit - 1) for x, y in ((a[1:], b[1:]), (a[1:], b), (a, b[1:])))


def near_word(word: str, others: list[str]) -> bool:
    """Return whether one of `others` (same first letter) is a spelling or inflection of `word`.

    An inflection shares six letters or more and differs only in known endings.
    """
    length = len(word)
    if length < 5 or word[0].isdigit():
        return False
    limit = 1 if length < 10 else 2
    for peer in others:
        if len(peer) < 5 or abs(len(peer) - length) > 4:
            continue
        shared = shared_start(word, peer)
        inflected = shared >= 6 and word[shared:] in _ENDINGS and peer[shared:] in _ENDINGS
        if (inflected or within_edits(word, peer, limit)) and not opposed(word, peer):
            return True
    return False


def opposed(a: str, b: str) -> bool:
    """Return whether the few letters that differ are the very point."""
    if len(a) == len(b) and a[:-3] == b[:-3] and a[-3:] in _SALTS and b[-3:] in _SALTS:
        return True
    sides = [*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)]
    return any(a.startswith(x) and b.startswith(y) for x, y in sides)


def shared_start(a: str, b: str) -> int:
    """Return how many letters two words share from the start."""
    unlike = (place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(unlike, min(len(a), len(b)))


TITLES = HONORIFICS | frozenset(listed("titles"))
_SUFFIXES = frozenset(["jr", "junior", "sr", "senior", "ii", "iii", "iv"])
_BESIDE_NAMES = _SUFFIXES | TITLES
# The words compared here have lost their plural endings: 'james' is 'jame'.
_SHORT_FORMS = {singular(word): singular(full) for word, full in table("short forms").items()}
_VOWELS = frozenset("aeiouy")


def spelling_variant(a: str, b: str) -> bool:
    """Return whether two words of a name are likely spellings of one.

    One doubled letter more or less, or one vowel for another, in words of five letters or more:
    'Johan' and 'Johann', 'Brendan' and 'Brendon'; not 'Martin' and 'Marvin'.
    """
    if a == b:
        return True
    if min(len(a), len(b)) < 5 or a[0] != b[0]:
        return False
    if len(a) == len(b):
        wrong = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
        return len(wrong) == 1 and wrong[0][0] in _VOWELS and wrong[0][1] in _VOWELS
    short, long = (a, b) if len(a) < len(b) else (b, a)
    if len(long) - len(short) != 1:
        return False
    index = shared_start(long, short)
    if long[index + 1 :] != short[index:]:
        return False
    letter = long[index]
    neighbours = long[max(0, index - 1) : index] + long[index + 1 : index + 2]
    return letter in neighbours or letter == "h"


def same_given_name(a: str, b: str) -> bool:
    """Return whether two words are one given name: a spelling, an initial or a short form."""
    if a == b or spelling_variant(a, b):
        return True
    if len(a) == 1 or len(b) == 1:
        return a[0] == b[0]
    left, right = singular(a), singular(b)
    return _SHORT_FORMS.get(left, left) == _SHORT_FORMS.get(right, right)


def same_name(a: tuple[str, ...], b: tuple[str, ...]) -> bool | None:
    """Compare two personal names given as normalised words.

    True where every part that both give agrees, False where one part contradicts the other, None
    where the names share too little to tell.
    """
    suffix_a, suffix_b = _SUFFIXES.intersection(a), _SUFFIXES.intersection(b)
    if suffix_a and suffix_b and suffix_a != suffix_b:
        return False
    left, right = ([word for word in name if word not in _BESIDE_NAMES] for name in (a, b))
    if len(left) < 2 or len(right) < 2:
        return True if left == right and left else None
    if not spelling_variant(left[-1], right[-1]):
        return None
    if left[-1] != right[-1] and left[0] != right[0]:
        return None
    if not same_given_name(left[0], right[0]):
        # 'N. R. Narayana Murthy' and 'Narayana Murthy': the shorter is the longer's end.
        short, long = sorted((left, right), key=len)
        return len(short) < len(long) and long[-len(short) :] == short
    return all(same_given_name(x, y) for x, y in zip(left[1:-1], right[1:-1], strict=False))


_MARKS = frozenset(listed("marks"))
_SON_OF = frozenset(("bin", "ibn", "ben"))
# In longer words a wrong letter is more often a slip than another name.
_SHORT_NAME = 5
# Ordinals, small numbers, Roman numerals; not years, which come and go with a name.
_NUMBERED = re.compile(r"^(?:\d{1,3}|\d+(?:st|nd|rd|th)|[ivx]{2,5})$")
_ROMAN_LETTER = frozenset("ivx")
KINDS = frozenset(listed("kinds of place"))
GENERIC = frozenset(listed("kinds of thing"))
_WATERS = frozenset(listed("waters"))
PARTICLES = frozenset(listed("particles"))
# Words of a name that need no capital letter, and words that name nothing by themselves.
SMALL_WORDS = PARTICLES | KINDS
_NAMELESS = _MARKS | SMALL_WORDS | TITLES | _WATERS
_OFFICES = TITLES - {"saint", "st"}


def told_apart(a: Sequence[str], b: Sequence[str]) -> str | None:
    """Return why two short names mean different things, or None where the words do not tell.

    ``mark``: one name is the other with a compass point, a number, an initial or the like added.
    ``kind``: two places of one kind, and one has a word more. ``clash``: they share a word or a
    title and each has a name that the other lacks.

    Examples
    --------
    >>> told_apart(["west", "virginia"], ["virginia"])
    'mark'
    >>> told_apart(["mato", "grosso"], ["mato", "grosso", "do", "sul"])
    'mark'
    >>> told_apart(["george", "h", "w", "bush"], ["george", "w", "bush"])
    'mark'
    >>> told_apart(["gomel", "region"], ["mogilev", "region"])
    'clash'
    >>> told_apart(["prince", "andrew"], ["prince", "edward"])
    'clash'
    >>> told_apart(["santiago", "province"], ["santiago", "rodriguez", "province"])
    'kind'
    >>> told_apart(["obama"], ["barack", "obama"]) is None
    True
    """
    (a, office), (b, peer) = _without_title(a), _without_title(b)
    left, right = _unmatched(a, b)
    # 'Prince Andrew' is not 'Prince Edward'; 'Prince of Wales' names no person.
    bearers = all(_names(words) and words[0] not in PARTICLES for words in (a, b))
    disjoint = len(left) == len(a) and len(right) == len(b)
    if not office.isdisjoint(peer) and bearers and disjoint:
        return "clash"
    if len(a) == len(b) == 1:
        # In short names a letter that no spelling explains makes another name.
        short = max(len(a[0]), len(b[0])) <= _SHORT_NAME and not same_given_name(a[0], b[0])
        return "clash" if short and near_word(a[0], [b[0]]) else None
    if not left and not right:
        # 'Khalifa bin Zayed' is the son, 'Zayed bin Khalifa' the father.
        return "mark" if list(a) != list(b) and set(a) & _SON_OF else None
    if set(a) & _SON_OF and set(b) & _SON_OF and a[0] != b[0]:
        return "mark"
    if len(left) == len(a) or len(right) == len(b):
        return None
    own_left, own_right = _names(left), _names(right)
    if (own_left or _marks(left)) and (own_right or _marks(right)):
        return "clash" if own_left or own_right else "mark"
    if (own_left and set(right) & KINDS) or (own_right and set(left) & KINDS):
        return "clash"
    if all(any(map(_is_initial, words)) for words in (a, b, left + right)):
        return "mark"
    if any(word in _MARKS or _NUMBERED.match(word) for word in left + right) and (
        not (own_left or own_right) or (_marks(a) and _marks(b))
    ):
        return "mark"
    shared_kind = a[-1] == b[-1] and a[-1] in KINDS
    return "kind" if shared_kind and (own_left or own_right) else None


def another_member(a: Sequence[str], b: Sequence[str], asked: frozenset[str]) -> bool:
    """Return whether one name is the other with a word more that names something.

    Where one of many is asked for, 'Ava Guarani' is not 'Guarani'. A kind of thing, a word of the
    question or a place where it is ('Yangtze River in China') makes no other member.
    """
    a, b = (words[: words.index("in", 1)] if "in" in words[1:] else words for words in (a, b))
    missing, more = _unmatched(*sorted((a, b), key=len))
    return not missing and any(word not in asked | GENERIC for word in _names(more))


def _without_title(words: Sequence[str]) -> tuple[list[str], frozenset[str]]:
    """Return the words after an office that comes early ('US President John F. Kennedy'), and it.

    A last 'I', 'V' or 'X' is a numeral, any other is an initial.
    """
    after = max((place + 1 for place, word in enumerate(words[:3]) if word in _OFFICES), default=0)
    after = after if after < len(words) else 0
    selection = list(words[after:])
    if len(selection) > 1 and selection[-1] in _ROMAN_LETTER:
        selection[-1] = {"i": "1", "v": "5", "x": "10"}[selection[-1]]
    return selection, _OFFICES.intersection(words[:after])


def _unmatched(a: Sequence[str], b: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each side that the other lacks, spelling variants being the same."""
    left, right = Counter(a), Counter(b)
    common = left & right
    unpaired, peers = list((left - common).elements()), list((right - common).elements())
    for word in list(unpaired):
        match = next((peer for peer in peers if _alike(word, peer)), None)
        if match is not None:
            unpaired.remove(word)
            peers.remove(match)
    return unpaired, peers


def _alike(word: str, peer: str) -> bool:
    if {word, peer} & _MARKS or word[0] != peer[0]:
        return False
    if _is_initial(word) != _is_initial(peer):
        # An initial stands for the name that it begins.
        return not (_NUMBERED.match(word) or _NUMBERED.match(peer))
    return same_given_name(word, peer)


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isalpha()


def _marks(words: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in words if word in _MARKS or _NUMBERED.match(word))


def _names(words: Sequence[str]) -> list[str]:
    """Return the words that name something: neither a particle, nor a kind, nor a mark."""
    return [
        x for x in words if not _is_initial(x) and not _NUMBERED.match(x) and x not in _NAMELESS
    ]
