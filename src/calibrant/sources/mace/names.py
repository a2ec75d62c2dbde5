"""Names of entities: one normal form to compare them, and the other ways to write them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_NOT_WORD = re.compile(r"[^\w]+", flags=re.UNICODE)
# Letters that no decomposition turns into ASCII.
_LETTERS = {
    ord(letter): plain
    for letters, plain in (
        ("øØ", "o"), ("łŁ", "l"), ("đĐðÐ", "d"), ("ß", "ss"), ("æÆ", "ae"), ("œŒ", "oe"),
        ("ı", "i"), ("þÞ", "th"), ("əƏ", "e"), ("ħĦ", "h"),
    )
    for letter in letters
}  # fmt: skip


def ascii_fold(text: str) -> str:
    """Return `text` without accents.

    Examples
    --------
    >>> ascii_fold("Bengoué"), ascii_fold("Bialałęka")
    ('Bengoue', 'Bialaleka')
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


@lru_cache(maxsize=1 << 16)
def normalised(text: str) -> str:
    """Return the form under which two spellings of a name or question are the same.

    Examples
    --------
    >>> normalised("  The Bahamas ") == normalised("Bahamas")
    True
    >>> normalised("Côte d’Ivoire")
    'cote d ivoire'
    """
    words = _NOT_WORD.sub(" ", ascii_fold(text).casefold()).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)
