"""Texts as they really come: wrongly encoded bytes, lone surrogates, mojibake, controls."""

import re
import unicodedata

# A UTF-8 text read as Windows-1252 shows these pairs; plain text almost never does.
_MOJIBAKE = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0178\u0192\u02c6-\u02dc\u2013-\u2122]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2060\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Two blanks and no counted run: a pattern that begins with one kind of letter is searched faster.
_BLANKS = re.compile(r"\s\s+")
_LOOKALIKES = str.maketrans(
    "\u2018\u2019\u02bc\u00b4`\u201c\u201d\u00ab\u00bb\u2010\u2011\u2012\u2013\u2014\u2212",
    "'" * 5 + '"' * 4 + "-" * 6,
)
# Letters that Unicode does not decompose; each is written so in plain Latin spelling.
_PLAIN_LETTERS = str.maketrans("øØłŁđĐðÐıəƏħĦ", "oOlLdDdDieEhH") | str.maketrans(
    {"þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ß": "ss"}
)


def clean_text(value: str | bytes | None) -> tuple[str, tuple[str, ...]]:
    r"""Return readable text and what had to be mended to get it.

    Parameters
    ----------
    value
        A text, raw bytes (read as UTF-8) or nothing.

    Returns
    -------
    text, notes
        Bytes that are not UTF-8 and lone surrogates become U+FFFD. The notes say what was
        found; an empty tuple means that the text is unchanged.

    Examples
    --------
    >>> clean_text(b"caf\xe9")
    ('caf\ufffd', ('byte 0xe9 at position 3 is not UTF-8',))
    >>> clean_text("plain")
    ('plain', ())
    """
    if value is None:
        return "", ()
    notes: list[str] = []
    if isinstance(value, bytes | bytearray):
        try:
            text = bytes(value).decode("utf-8")
        except UnicodeDecodeError as error:
            notes.append(f"byte 0x{value[error.start]:02x} at position {error.start} is not UTF-8")
            text = bytes(value).decode("utf-8", errors="replace")
    else:
        text = value
    if not text.isascii() and _SURROGATE.search(text):
        notes.append("a lone surrogate is not a character")
        text = _SURROGATE.sub("\ufffd", text)
    if _CONTROL.search(text):
        notes.append("control characters removed")
        text = _CONTROL.sub("", text)
    return text, tuple(notes)


def squeeze(text: str) -> str:
    r"""Return the text with every run of blanks as one: a line break where the run holds one.

    Patterns that allow blanks in several places take time that grows with the square of a run's
    length; after this no run is longer than one.

    Examples
    --------
    >>> squeeze("a \t b  \r\n\n c")
    'a b\nc'
    """
    return _BLANKS.sub(_one_blank, text)


def _one_blank(run: re.Match[str]) -> str:
    return "\n" if "\n" in run[0] or "\r" in run[0] else run[0][0]


def repair_mojibake(text: str) -> str:
    r"""Undo UTF-8 that was read as Windows-1252, where the whole text allows it.

    Examples
    --------
    >>> repair_mojibake("10\u00e2\u20ac\u201c12 years") == "10\u201312 years"
    True
    """
    if text.isascii() or not _MOJIBAKE.search(text):
        return text
    raw = bytearray()
    for character in text:
        try:
            raw += character.encode("cp1252")
        except UnicodeEncodeError:
            if ord(character) > 0xFF:
                return text
            raw.append(ord(character))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return text


def unify_unicode(text: str) -> str:
    """Return the compatibility form (NFKC) with plain quotes, dashes and spaces."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_LOOKALIKES))


def strip_accents(text: str) -> str:
    """Return the text without accents.

    Examples
    --------
    >>> strip_accents("Guðni Jóhannesson, São Tomé")
    'Gudni Johannesson, Sao Tome'
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.translate(_PLAIN_LETTERS))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
