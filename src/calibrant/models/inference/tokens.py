"""Turns text into the tokens of a model: byte pairs, joined by rank."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

# Every digit alone; otherwise the split of GPT-2 with Python's idea of a letter.
_DIGIT = re.compile(r"(\d)")
_PIECE = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)  # fmt: skip


@lru_cache(maxsize=1)
def _letters() -> dict[int, str]:
    """Return the printable stand-in of each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    remainder = [byte for byte in range(256) if byte not in set(printable)]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(256 + place) for place, byte in enumerate(remainder)
    }


class Tokenizer:
    """Byte-pair tokens of a vocabulary.

    Parameters
    ----------
    vocabulary
        The tokens, in the order of their numbers.
    merges
        Pairs that are joined, the most urgent first, each with a space between its halves.

    Examples
    --------
    >>> tokenizer = Tokenizer(["a", "b", "Ġ", "ab", "Ġab"], ["a b", "Ġ ab"])
    >>> tokenizer("ab aba")
    [3, 4, 0]
    """

    def __init__(self, vocabulary: Sequence[str], merges: Sequence[str]) -> None:
        self._numbers = {token: number for number, token in enumerate(vocabulary)}
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self._known = lru_cache(maxsize=100_000)(self._word)

    def __call__(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens."""
        matches: list[int] = []
        for part in _DIGIT.split(text):
            for piece in [part] if _DIGIT.fullmatch(part) else _PIECE.findall(part):
                matches.extend(self._known(piece))
        return matches

    def _word(self, word: str) -> tuple[int, ...]:
        parts = [_letters()[byte] for byte in word.encode("utf-8", "replace")]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            parts = _joined(parts, best)
        return tuple(self._numbers[part] for part in parts if part in self._numbers)


def _joined(parts: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for part in parts:
        # A part just joined is no half of the pair: the pair's halves are shorter than it.
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out
