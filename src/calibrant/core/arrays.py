"""Types of arrays, and the seeded generators that fill them: the same seed gives the same bytes."""

import hashlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[np.object_]
MaybeArray: TypeAlias = ArrayLike | None


Stream: TypeAlias = np.random.Generator
RngLike: TypeAlias = Stream | int | None


def as_generator(rng: RngLike) -> np.random.Generator:
    """Return a generator: itself, one seeded with the number, or a fresh one for ``None``."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)


def named_stream(seed: int, *names: object) -> np.random.Generator:
    """Return the generator that belongs to `names` under `seed`.

    Blocks that own a named stream give the same numbers whether they run alone, in another
    order or in another process.

    Examples
    --------
    >>> a = named_stream(0, "model", "verb").random()
    >>> b = named_stream(0, "model", "verb").random()
    >>> a == b
    True
    """
    digest = hashlib.blake2b(repr(tuple(map(str, names))).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype=np.uint32)
    return np.random.default_rng([int(seed), *(int(word) for word in words)])
