"""Do the tokens of an answer spell its text? If not, their log-probs belong to something else."""

import re
from collections.abc import Sequence
from functools import cache

MISSPELT = "the tokens do not spell the text: the log-probs belong to another answer"
# Parts of a character, as servers write them: one token alone is no text there.
_UNDECODED = re.compile(r"�|<0x[0-9A-Fa-f]{2}>|\\x[0-9A-Fa-f]{2}")
# What tokenizers write for blanks and line ends, and the names of tokens that end a text.
_MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})
_END = re.compile(r"(?:<\|[^|<>\s]{1,40}\|>|</s>|<eos>|<end_of_turn>|<｜[^｜<>\s]{1,40}｜>)$")
_MOST_ENDS = 8


def spells(tokens: Sequence[str], text: str, *, stop: Sequence[str] = ()) -> bool:
    """Return whether the tokens, put together, are the text.

    Blanks do not count, because servers trim texts. An end token or a stop text may follow.
    Where tokens are parts of a character, only the plain letters and signs are compared.

    Examples
    --------
    >>> spells(["Par", "is", "<|im_end|>"], " Paris")
    True
    >>> spells(["Lon", "don"], "Paris")
    False
    """
    joined = "".join(tokens)
    if joined == text:
        return True
    # OpenAI writes a part of a character as `bytes:\\xe2\\x80`.
    joined = joined.replace("bytes:\\x", "\\x")
    # Tokens can be meant as they are, with marks, or as bytes.
    readings = (joined, joined.translate(_MARKS), _as_bytes(joined))
    return any(label is not None and _same(label, text, tokens, stop) for label in readings)


def _same(display: str, text: str, tokens: Sequence[str], stop: Sequence[str]) -> bool:
    plain, target = _squeezed(_without_ends(display)), _squeezed(text)
    if _UNDECODED.search(display):
        plain, target = _ascii(_UNDECODED.sub("", plain)), _ascii(target)
    if plain == target or _squeezed(display) == target:
        return True
    remainder = plain.removeprefix(target) if plain.startswith(target) else ""
    # A text is cut at its stop text, which may lie inside the last token.
    return bool(remainder) and any(
        remainder.startswith(end) if end else len(remainder) <= len(tokens[-1])
        for end in map(_squeezed, stop)
    )


def _without_ends(display: str) -> str:
    for _ in range(_MOST_ENDS):
        shorter = _END.sub("", display.rstrip())
        if shorter == display:
            break
        display = shorter
    return display


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _ascii(text: str) -> str:
    return "".join(letter for letter in text if letter.isascii())


def _as_bytes(joined: str) -> str | None:
    """Return the text behind tokens written in the byte alphabet of GPT-2; None if they are not."""
    alphabet = _byte_alphabet()
    try:
        return bytes(alphabet[letter] for letter in joined).decode("utf-8", "replace")
    except KeyError:
        return None


@cache
def _byte_alphabet() -> dict[str, int]:
    """Return the byte of every letter: printable ones stand for themselves, others follow 256."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    peers = [byte for byte in range(256) if byte not in plain]
    display = {chr(byte): byte for byte in plain}
    return display | {chr(256 + place): byte for place, byte in enumerate(peers)}
