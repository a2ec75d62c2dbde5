"""A LLaMA model in numpy: text into tokens, and the forward pass for many texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from calibrant.models.inference.weights import Array, Gguf

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


_MAPS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer, columns first, with maps of the same input side by side."""

    attend: Array
    attention: Array
    attended: Array
    feed: Array
    gate_and_up: Array
    down: Array


@dataclass(frozen=True, slots=True)
class _Runs:
    """Where the tokens of a batch are, and what each of them may look at.

    `queries` and `keys` hold token places per text, padded; `hidden` is what no query may see.
    """

    queries: Places
    keys: Places
    hidden: npt.NDArray[np.bool_]
    real: npt.NDArray[np.bool_]


class Llama:
    """A model of the LLaMA family that tells the last hidden state of texts.

    Parameters
    ----------
    file
        The weights.
    changes
        Added to maps by name, each as two thin matrices: what training changed.
    depth
        How many layers are used, from the first; all by default.
    """

    def __init__(
        self,
        file: Gguf,
        changes: Mapping[str, tuple[Array, Array]] | None = None,
        *,
        depth: int | None = None,
    ) -> None:
        get = file.settings
        self._file = file
        self.heads = int(get["llama.attention.head_count"])
        self.shared = int(get["llama.attention.head_count_kv"])
        self.width = int(get["llama.embedding_length"])
        self._size = self.width // self.heads
        self._least = np.float32(get["llama.attention.layer_norm_rms_epsilon"])
        turns = float(get["llama.rope.freq_base"]) ** (-np.arange(0, self._size, 2) / self._size)
        self._turns = turns.astype(np.float32)
        self._changes = dict(changes or {})
        layers = int(get["llama.block_count"]) if depth is None else depth
        self._layers = [self._layer(n) for n in range(layers)]
        self._end = file.tensor("output_norm.weight")
        self._changes.clear()

    def _layer(self, number: int) -> _Layer:
        def weight(name: str) -> Array:
            full = f"blk.{number}.{name}.weight"
            tensor = self._file.tensor(full)
            if full in self._changes:
                outer, inner = self._changes[full]
                tensor = tensor + outer @ inner
            return tensor

        q, k, v, out, gate, up, down = (weight(name) for name in _MAPS)
        norms = (self._file.tensor(f"blk.{number}.{name}_norm.weight") for name in ("attn", "ffn"))
        attend, feed = norms
        return _Layer(
            attend, _columns(q, k, v), _columns(out), feed, _columns(gate, up), _columns(down)
        )

    def last_states(self, groups: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]) -> Array:
        """Return the state after each text: per group a common beginning and its endings.

        The beginning is computed once. Endings are not empty; texts do not see each other.
        """
        tokens, positions, runs, last = _arranged(groups)
        distinct, inverse = np.unique(tokens, return_inverse=True)
        x = self._file.rows("token_embd.weight", distinct)[inverse]
        angles = np.outer(positions, self._turns).astype(np.float32)[:, None, :]
        turn = np.cos(angles), np.sin(angles)
        for layer in self._layers:
            x += self._attention(layer, x, turn, runs)
            hidden = self._normed(x, layer.feed) @ layer.gate_and_up
            gate, up = np.split(hidden, 2, axis=1)
            x += (gate / (1.0 + np.exp(-gate)) * up) @ layer.down
        return self._normed(x[last], self._end)

    def _attention(
        self, layer: _Layer, x: Array, turn: tuple[Array, Array], runs: Sequence[_Runs]
    ) -> Array:
        mixed = self._normed(x, layer.attend) @ layer.attention
        mixed = mixed.reshape(len(x), self.heads + 2 * self.shared, self._size)
        q = _turned(mixed[:, : self.heads], turn)
        k = _turned(mixed[:, self.heads : self.heads + self.shared], turn)
        v = mixed[:, self.heads + self.shared :]
        out = np.empty((len(x), self.heads, self._size), np.float32)
        for run in runs:
            result = self._look(q[run.queries], k[run.keys], v[run.keys], run.hidden)
            out[run.queries[run.real]] = result[run.real]
        return np.asarray(out.reshape(len(x), -1) @ layer.attended, np.float32)

    def _look(self, q: Array, k: Array, v: Array, hidden: npt.NDArray[np.bool_]) -> Array:
        """Return what the queries of padded texts see: text, token, head, number."""
        texts, length = q.shape[:2]
        each = self.heads // self.shared
        q = q.reshape(texts, length, self.shared, each, self._size).transpose(0, 2, 3, 1, 4)
        q = q.reshape(texts, self.shared, each * length, self._size)
        steep = np.float32(np.sqrt(self._size))
        scores = np.asarray(q @ k.transpose(0, 2, 3, 1) / steep, np.float32)
        scores = scores.reshape(texts, self.shared, each, length, -1)
        np.putmask(scores, np.broadcast_to(hidden[:, None, None], scores.shape), -1e9)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        observed = scores.reshape(texts, self.shared, each * length, -1) @ v.transpose(0, 2, 1, 3)
        observed = observed.reshape(texts, self.shared, each, length, self._size).transpose(
            0, 3, 1, 2, 4
        )
        return np.asarray(observed.reshape(texts, length, self.heads, self._size), np.float32)

    def _normed(self, x: Array, weight: Array) -> Array:
        length = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self._least)
        return np.asarray(x * (weight / length), np.float32)


def _columns(*parts: Array) -> Array:
    return np.ascontiguousarray(np.concatenate(parts).T)


def _turned(x: Array, turn: tuple[Array, Array]) -> Array:
    """Return vectors turned by their position, pairs of neighbours together."""
    cosine, sine = turn
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty(x.shape, np.float32)
    out[..., 0::2] = even * cosine - odd * sine
    out[..., 1::2] = odd * cosine + even * sine
    return out


def _arranged(
    groups: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]],
) -> tuple[Places, Places, list[_Runs], Places]:
    """Lay all tokens out in one row; return them, their positions, the runs and the last places."""
    tokens: list[int] = []
    positions: list[int] = []
    beginnings: list[tuple[range, range]] = []
    endings: list[tuple[range, range]] = []
    for beginning, texts in groups:
        head = range(len(tokens), len(tokens) + len(beginning))
        tokens += beginning
        positions += range(len(beginning))
        if head:
            beginnings.append((range(0), head))
        for text in texts:
            place = range(len(tokens), len(tokens) + len(text))
            tokens += text
            positions += range(len(beginning), len(beginning) + len(text))
            endings.append((head, place))
    runs = [_padded(part) for part in (beginnings, endings) if part]
    last = [place[-1] for _, place in endings]
    return np.array(tokens), np.array(positions), runs, np.array(last)


def _padded(texts: Sequence[tuple[range, range]]) -> _Runs:
    """Return the padded run of texts, each with what came before it."""
    most = max(len(place) for _, place in texts)
    longest = max(len(head) + len(place) for head, place in texts)
    queries = np.zeros((len(texts), most), np.intp)
    keys = np.zeros((len(texts), longest), np.intp)
    hidden = np.ones((len(texts), most, longest), np.bool_)
    real = np.zeros((len(texts), most), np.bool_)
    for n, (head, place) in enumerate(texts):
        own, before = len(place), len(head)
        queries[n, :own], real[n, :own] = place, True
        keys[n, : before + own] = (*head, *place)
        hidden[n, :own, :before] = False
        hidden[n, :own, before : before + own] = np.triu(np.ones((own, own), np.bool_), 1)
        hidden[n, own:, 0] = False  # a padded query looks at something, and is thrown away
    return _Runs(queries, keys, hidden, real)
