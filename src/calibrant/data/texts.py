"""Which texts are alike: rows that share words, and tokens that spell an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Indices, Mask
from calibrant.metrics.stats.repeats import Keys, key_codes, near_equal_texts

MISSPELT = "the tokens do not spell the text: the log-probs belong to another answer"
# Parts of a character, as servers write them: one token alone is no text there.
_UNDECODED = re.compile(r"�|<0x[0-9A-Fa-f]{2}>|\\x[0-9A-Fa-f]{2}")
# What tokenizers write for blanks and line ends, and the names of tokens that end a text.
_MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})
_NAME = r"(?:<\|[^|<>\s]{1,40}\|>|</s>|<eos>|<end_of_turn>|<｜[^｜<>\s]{1,40}｜>)"
_ENDS = re.compile(rf"{_NAME}{{1,8}}$")


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
    plain, target = _ENDS.sub("", _squeezed(display)), _squeezed(text)
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


_EDGE, _MULTIPLIER = range(5), np.uint64(0x9E3779B97F4A7C15)
# Texts whose bytes are looked at together. Words are read in pieces of eight bytes, up to 64.
_TEXTS, _PIECE, _LONGEST = 10_000, 8, 64
_PIECES = np.array([(1 << 8 * size) - 1 for size in range(_PIECE + 1)], np.uint64)
# Which bytes are in words: those of letters beyond ASCII are, other signs there become spaces.
_IN_WORDS = bytes(byte >= 128 or chr(byte).isalnum() or byte == ord("_") for byte in range(256))


class TextWords:
    """The words of texts as numbers, and which texts share some."""

    def __init__(self, column: pl.Series) -> None:
        self._column = column

    @cached_property
    def _words(self) -> tuple[Keys, Indices, Indices]:
        """Return a number for each word, where each text starts, and where it ends."""
        parts = [
            _word_keys(self._column[first : first + _TEXTS])
            for first in range(0, self._column.len(), _TEXTS)
        ]
        lengths = np.concatenate([counts for _, counts in parts])
        end = np.cumsum(lengths)
        return np.concatenate([keys for keys, _ in parts]), end - lengths, end

    def first_words(self) -> Indices:
        """Return the group of each text by how it begins."""
        keys, start, end = self._words
        return _edge_words(keys, [(start + step, start + step < end) for step in _EDGE])

    def last_words(self) -> Indices:
        """Return the group of each text by how it ends."""
        keys, start, end = self._words
        return _edge_words(keys, [(end - 1 - step, end - 1 - step >= start) for step in _EDGE])

    def nearly_equal(self) -> Indices:
        """Return the group of each text by most of its rare words."""
        keys, start, _ = self._words
        return near_equal_texts(keys, start)


def _word_keys(texts: pl.Series) -> tuple[Keys, Indices]:
    """Return a number for each word, whatever its case, and how many words each text has.

    Bytes are read in place: a string for each word takes three times as long.
    """
    texts = texts.fill_null("")
    content = texts.str.join("\n").item()
    if not content.isascii():
        texts = texts.str.to_lowercase().str.replace_all(r"[^\w\x00-\x7f]", " ")
        content = texts.str.join("\n").item()
    raw = b"\n" + content.encode().lower() + bytes(_LONGEST)
    inside = np.frombuffer(raw.translate(_IN_WORDS), np.bool_)
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    start, length = edges[::2], edges[1::2] - edges[::2]
    pieces = np.ndarray((len(raw) - _PIECE + 1,), "<u8", raw, strides=(1,))
    keys = length.astype(np.uint64)
    rows: Any = slice(None)
    for done in range(0, _LONGEST, _PIECE):
        piece = pieces[start[rows] + done] & _PIECES[np.minimum(length[rows] - done, _PIECE)]
        product = (keys[rows] ^ piece) * _MULTIPLIER
        keys[rows] = product ^ (product >> np.uint64(32))
        rows = np.flatnonzero(length > done + _PIECE)
    ends = np.searchsorted(start, np.cumsum(texts.str.len_bytes().to_numpy().astype(np.intp) + 1))
    counts = np.diff(ends, prepend=0)
    # A text without words is one empty word.
    return np.insert(keys, ends[counts == 0], 0), np.maximum(counts, 1)


def _edge_words(keys: Keys, places: Iterable[tuple[Indices, Mask]]) -> Indices:
    """Return codes of texts by their words at some places, as far as these are inside."""
    texts: Keys = np.zeros(1, np.uint64)
    for place, inside in places:
        texts = texts * _MULTIPLIER + np.where(inside, keys[np.where(inside, place, 0)], 1)
    return key_codes(texts)


def value_codes(column: pl.Series) -> Indices:
    """Return values as numbers from 0 on; rows without a value are each on their own."""
    texts = column.dtype == pl.String
    # Looked at only where it matters: each step through a column of a small table takes longer
    # than its rows.
    missing = column.is_null().to_numpy() if column.null_count() else None
    if texts:
        codes = key_codes(column.hash().to_numpy())
    else:
        codes = _number_codes((column if missing is None else column.fill_null(0)).to_numpy())
    if missing is not None:
        codes[missing] = int(codes.max()) + 1 + np.arange(int(missing.sum()))
    # How texts are hashed may change; the order of the rows does not.
    return _by_appearance(codes) if texts or missing is not None else codes


def _number_codes(values: Indices) -> Indices:
    values = values.astype(np.int64)
    least, most = int(values.min()), int(values.max())
    if most - least > 4 * values.size:
        return np.unique(values, return_inverse=True)[1].astype(np.intp)
    # A table of all values is quicker than sorting them.
    present = np.zeros(most - least + 1, np.intp)
    present[values - least] = 1
    return np.asarray((np.cumsum(present) - 1)[values - least], np.intp)


def _by_appearance(codes: Indices) -> Indices:
    """Return the same groups, numbered as they first appear."""
    first = np.zeros(int(codes.max()) + 1, np.intp)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    starts = np.zeros(codes.size, np.intp)
    starts[first] = 1
    numbers = np.cumsum(starts) - 1
    return numbers[first[codes]]
