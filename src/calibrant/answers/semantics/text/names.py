"""Personal names: honorifics, initials, short forms, spelling variants."""

import re

from calibrant.answers.semantics.text.words import listed, shared_start, singular, table

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
