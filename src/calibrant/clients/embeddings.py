"""Sentence embeddings without a deep-learning framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibrant.core.optional import optional_import

__all__ = ["Embedder", "UniversalSentenceEncoder", "open_embedder"]


class Embedder(Protocol):
    """Turns texts into unit vectors whose dot product is the cosine similarity."""

    @property
    def name(self) -> str:
        """Name and version, to be recorded beside what was computed with it."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit row per text, shape (len(texts), dimensions)."""


class UniversalSentenceEncoder:
    """Placeholder replaced below."""


def open_embedder() -> Embedder:
    """Return the embedder of the extra `local`, or say what to install."""
    optional_import("fast_use", extra="local", purpose="sentence embeddings")
    raise NotImplementedError
