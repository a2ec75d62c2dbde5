"""Reads GGUF files: settings, vocabulary, and tensors as 32-bit floats."""

import math
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError

Array = npt.NDArray[np.float32]
_MAGIC = b"GGUF"
# The format's numbers for plain values, as `struct` writes them.
_PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


@dataclass(frozen=True, slots=True)
class Encoding:
    """How numbers are packed: bytes and numbers per block, and how a block is read."""

    size: int
    numbers: int
    read: Callable[[npt.NDArray[np.uint8]], Array]


def _nibbles(packed: npt.NDArray[np.uint8]) -> Array:
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _halves(block: npt.NDArray[np.uint8]) -> Array:
    return np.ascontiguousarray(block).view("<f2").astype(np.float32)


def _q4_0(blocks: npt.NDArray[np.uint8]) -> Array:
    return (_nibbles(blocks[:, 2:]) - 8.0) * _halves(blocks[:, :2])


def _q4_1(blocks: npt.NDArray[np.uint8]) -> Array:
    scale = _halves(blocks[:, :4])
    return _nibbles(blocks[:, 4:]) * scale[:, :1] + scale[:, 1:]


def _q8_0(blocks: npt.NDArray[np.uint8]) -> Array:
    whole = np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32)
    return whole * _halves(blocks[:, :2])


_ENCODINGS = {
    0: Encoding(4, 1, lambda blocks: blocks.reshape(-1).view("<f4").astype(np.float32)),
    1: Encoding(2, 1, _halves),
    2: Encoding(18, 32, _q4_0),
    3: Encoding(20, 32, _q4_1),
    8: Encoding(34, 32, _q8_0),
}


@dataclass(frozen=True, slots=True)
class _Place:
    shape: tuple[int, ...]
    encoding: int
    offset: int


class Gguf:
    """One GGUF file, mapped into memory.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._bytes[:4] != _MAGIC:
            raise InputError("this is no GGUF file", source=str(path))
        self._at = 4
        _, tensors, settings = (self._number(code) for code in "IQQ")
        self.settings: dict[str, Any] = {}
        for _ in range(settings):
            name = self._text()
            self.settings[name] = self._value(self._number("I"))
        self._places = dict(self._place() for _ in range(tensors))
        step = self.settings.get("general.alignment", 32)
        self._start = -(-self._at // step) * step

    def tensor(self, name: str) -> Array:
        """Return one tensor, rows first."""
        shape = self._known(name).shape
        return self.rows(name, np.arange(shape[0])) if len(shape) == 2 else self._read(name)

    def rows(self, name: str, which: npt.NDArray[np.intp]) -> Array:
        """Return some rows of a matrix; only these are unpacked."""
        place = self._known(name)
        code = _ENCODINGS[place.encoding]
        width = place.shape[1] // code.numbers * code.size
        raw = np.frombuffer(self._bytes, np.uint8, place.shape[0] * width, self._start_of(place))
        blocks = raw.reshape(place.shape[0], width)[which].reshape(-1, code.size)
        return code.read(blocks).reshape(len(which), place.shape[1])

    def _read(self, name: str) -> Array:
        place = self._known(name)
        code = _ENCODINGS[place.encoding]
        count = math.prod(place.shape) // code.numbers
        raw = np.frombuffer(self._bytes, np.uint8, count * code.size, self._start_of(place))
        return code.read(raw.reshape(count, code.size)).reshape(place.shape)

    def _known(self, name: str) -> _Place:
        place = self._places.get(name)
        if place is None or place.encoding not in _ENCODINGS:
            why = "is not there" if place is None else f"is packed in way {place.encoding}"
            raise InputError(
                f"the tensor {name!r} {why}: this model cannot be read here",
                source=str(self.path),
                hint="use the fetched weights (Q4_1), or a file packed as F32, F16, Q4_0 or Q8_0",
            )
        return place

    def _start_of(self, place: _Place) -> int:
        return int(self._start + place.offset)

    def _place(self) -> tuple[str, _Place]:
        name = self._text()
        shape = tuple(self._number("Q") for _ in range(self._number("I")))
        return name, _Place(shape[::-1], self._number("I"), self._number("Q"))

    def _number(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._bytes, self._at)
        self._at += struct.calcsize("<" + code)
        return value

    def _text(self) -> str:
        size = self._number("Q")
        self._at += size
        return self._bytes[self._at - size : self._at].decode("utf-8", "replace")

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind == _LIST:
            inner, size = self._number("I"), self._number("Q")
            return [self._value(inner) for _ in range(size)]
        return self._number(_PLAIN[kind])
