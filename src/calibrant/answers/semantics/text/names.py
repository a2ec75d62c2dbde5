"""Names: honorifics, initials, short forms, and words that tell one thing from its namesake."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from calibrant.answers.semantics.text.words import (
    CITY_AND_REGION,
    listed,
    near_word,
    shared_start,
    singular,
    table,
)

HONORIFICS = frozenset(listed("honorifics"))
TITLES = HONORIFICS | frozenset(listed("titles"))
_SUFFIXES = frozenset(["jr", "junior", "sr", "senior", "ii", "iii", "iv"])
_BESIDE_NAMES = _SUFFIXES | TITLES
# The words compared here have lost their plural endings: 'james' is 'jame'.
_SHORT_FORMS = {singular(word): singular(full) for word, full in table("short forms").items()}
_FRONT_TITLE = re.compile(
    r"(?:(?:" + "|".join(sorted(HONORIFICS, key=len, reverse=True)) + r")\b\.?\s+)+(?=\w{3})",
    re.IGNORECASE,
)
# Only from the first initial of a run, so that a long run is read once and not from each letter.
_INITIAL_RUN = re.compile(r"(?<![A-Z]\.)(?<![A-Z]\. )\b((?:[A-Z]\.[ ]?){2,})(?=[A-Z][a-z])")
_TWO_INITIALS = re.compile(r"[A-Z]\. ?[A-Z]\.").search
_VOWELS = frozenset("aeiouy")


def drop_honorifics(text: str) -> str:
    """Return the text without honorifics in front.

    Examples
    --------
    >>> drop_honorifics("Dr. Jane Goodall"), drop_honorifics("Dr. No")
    ('Jane Goodall', 'Dr. No')
    """
    title = _FRONT_TITLE.match(text)
    return text[title.end() :] if title else text


def merge_initials(text: str) -> str:
    """Return the text with initials spaced alike: ``J.R.R. Tolkien`` as ``J. R. R. Tolkien``.

    Examples
    --------
    >>> merge_initials("J.R.R. Tolkien")
    'J. R. R. Tolkien'
    """
    if not _TWO_INITIALS(text):
        return text
    return _INITIAL_RUN.sub(
        lambda match: " ".join(part + "." for part in re.findall(r"[A-Z]", match[1])) + " ", text
    )


def spelling_variant(a: str, b: str) -> bool:
    """Return whether two words of a name are likely spellings of one.

    One doubled letter more or less, or one vowel for another, in words of five letters or more:
    'Johan' and 'Johann', 'Brendan' and 'Brendon'; not 'Martin' and 'Marvin'.

    Examples
    --------
    >>> spelling_variant("johan", "johann"), spelling_variant("brendan", "brendon")
    (True, True)
    >>> spelling_variant("martin", "marvin"), spelling_variant("austria", "australia")
    (False, False)
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
    """Return whether two words are one given name: a spelling, an initial or a short form.

    Examples
    --------
    >>> same_given_name("bob", "robert"), same_given_name("r", "robert")
    (True, True)
    """
    if a == b or spelling_variant(a, b):
        return True
    if len(a) == 1 or len(b) == 1:
        return a[0] == b[0]
    left, right = singular(a), singular(b)
    return _SHORT_FORMS.get(left, left) == _SHORT_FORMS.get(right, right)


def same_name(a: tuple[str, ...], b: tuple[str, ...]) -> bool | None:
    """Compare two personal names given as normalised words.

    Returns
    -------
    same
        True where every part that both give agrees, False where one part contradicts the
        other, None where the names share too little to tell.

    Examples
    --------
    >>> same_name(("robert", "c", "gallo"), ("robert", "gallo"))
    True
    >>> same_name(("john", "h", "adams"), ("john", "q", "adams"))
    False
    >>> same_name(("fran", "allen"), ("frances", "e", "allen"))
    True
    >>> same_name(("gary", "ablett", "jr"), ("gary", "ablett", "sr"))
    False
    >>> same_name(("einstein",), ("albert", "einstein")) is None
    True
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
_SHORT_MEMBER = 7
# Ordinals, small numbers, Roman numerals; not years, which come and go with a name.
_NUMBERED = re.compile(r"^(?:\d{1,3}|\d+(?:st|nd|rd|th)|[ivx]{2,5})$")
_ROMAN_LETTER = frozenset("ivx")
KINDS = frozenset(listed("kinds of place"))
_AROUND = frozenset(listed("around a city"))
GENERIC = frozenset(listed("kinds of thing"))
_WATERS = frozenset(listed("waters"))
_WHERE = frozenset(listed("before a place"))
PARTICLES = frozenset(listed("particles"))
# Words of a name that need no capital letter, and words that name nothing by themselves.
SMALL_WORDS = PARTICLES | KINDS
_NAMELESS = _MARKS | SMALL_WORDS | TITLES | _WATERS
_OFFICES = TITLES - {"saint", "st"}


def told_apart(a: Sequence[str], b: Sequence[str]) -> str | None:
    """Return why two short names mean different things, or None where the words do not tell.

    Parameters
    ----------
    a, b
        Normalised words of the two names, in order.

    Returns
    -------
    rule
        ``mark`` (one name is the other with a compass point, a number, an initial or the like
        added), ``kind`` (two places of one kind, and one has a word more), ``clash`` (they share
        a word or a title and each has a name that the other lacks), or None.

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
    if not office.isdisjoint(peer) and _two_bearers(a, b):
        return "clash"
    if len(a) == len(b) == 1:
        return "clash" if _one_letter_apart(a[0], b[0]) else None
    left, right = _unmatched(a, b)
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

    Where a question asks for one of many ('Name one language.'), the longer name is another
    member: 'Ava Guarani' is not 'Guarani', 'Batman Begins' is not 'Batman'. A kind of thing, a
    word of the question or a place where it is makes no other member; but 'Minsk Region' lies
    around 'Minsk', and a question that does not ask for regions means either.

    Examples
    --------
    >>> asked = frozenset({"name", "one", "language"})
    >>> another_member(["ava", "guarani"], ["guarani"], asked)
    True
    >>> another_member(["spanish", "language"], ["spanish"], asked)
    False
    >>> another_member(["yangtze", "river", "in", "china"], ["yangtze"], asked)
    False
    >>> another_member(["minsk", "region"], ["minsk"], frozenset({"name", "one", "division"}))
    True
    """
    short, long = sorted((_which(a), _which(b)), key=len)
    if len(short) == len(long) == 1:
        return _one_letter_apart(short[0], long[0], longest=_SHORT_MEMBER)
    missing, more = _unmatched(short, long)
    if missing or not short or not _names(short):
        return False
    if more and _AROUND.issuperset(more) and " ".join(short) in CITY_AND_REGION:
        return not asked.intersection(more)
    return any(word not in asked and word not in GENERIC for word in _names(more))


def _which(words: Sequence[str]) -> list[str]:
    """Return the words before those that say where the thing is."""
    end = next((place for place, word in enumerate(words) if place and word in _WHERE), None)
    return list(words[:end])


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


def _two_bearers(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether names that follow one title share no word: 'Prince Andrew', 'Prince Edward'.

    'Prince of Wales' and 'Prince Charles' may be one: the first names no person.
    """
    left, right = _unmatched(a, b)
    names = all(_names(words) and words[0] not in PARTICLES for words in (a, b))
    return names and len(left) == len(a) and len(right) == len(b)


def _unmatched(a: Sequence[str], b: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each side that the other lacks, spelling variants being the same."""
    left, right = Counter(a), Counter(b)
    common = left & right
    rest_left, rest_right = list((left - common).elements()), list((right - common).elements())
    for word in list(rest_left):
        match = next((peer for peer in rest_right if _alike(word, peer)), None)
        if match is not None:
            rest_left.remove(word)
            rest_right.remove(match)
    return rest_left, rest_right


def _alike(word: str, peer: str) -> bool:
    if {word, peer} & _MARKS or word[0] != peer[0]:
        return False
    if _is_initial(word) != _is_initial(peer):
        # An initial stands for the name that it begins.
        return not (_NUMBERED.match(word) or _NUMBERED.match(peer))
    return same_given_name(word, peer)


def _one_letter_apart(a: str, b: str, longest: int = _SHORT_NAME) -> bool:
    """Return whether two short names differ in a letter that no spelling explains."""
    if max(len(a), len(b)) > longest or same_given_name(a, b):
        return False
    return near_word(a, [b])


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isalpha()


def _marks(words: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in words if word in _MARKS or _NUMBERED.match(word))


def _names(words: Sequence[str]) -> list[str]:
    """Return the words that name something: neither a particle, nor a kind, nor a mark."""
    return [
        word
        for word in words
        if not _is_initial(word) and not _NUMBERED.match(word) and word not in _NAMELESS
    ]
