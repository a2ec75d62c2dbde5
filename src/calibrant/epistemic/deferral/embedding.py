"""The text of a question as the numbers that a policy was fitted on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.core.errors import InputError

# Where a question carries its whole embedding.
VECTOR = "embedding"


class QuestionEmbedding:
    """Add an embedding to a question, as it was done to those that a policy was fitted on.

    Parameters
    ----------
    about
        What a saved policy holds: ``column`` of the text, name of the ``embedder``, ``centre``
        and ``axes`` of its components.
    embedder
        What embeds: it has a ``name`` and ``embed(texts)``. Another one than the policy was
        fitted with is refused.

    Examples
    --------
    >>> class Letters:
    ...     name = "letters"
    ...     def embed(self, texts):
    ...         return [[text.count("a"), text.count("b")] for text in texts]
    >>> about = {"column": "q", "embedder": "letters", "centre": [0, 0], "axes": [[1, 0]]}
    >>> QuestionEmbedding(about, Letters()).described({"q": "abba"})["q_1"]
    2.0
    """

    def __init__(self, about: Mapping[str, Any], embedder: Any) -> None:
        if embedder.name != about["embedder"]:
            raise InputError(
                f"the policy was fitted with {about['embedder']}, here is {embedder.name}",
                hint="install that version, or fit the policy again",
            )
        self.embedder = embedder
        self.column = str(about["column"])
        self.centre = np.asarray(about["centre"], dtype=np.float64)
        self.axes = np.asarray(about["axes"], dtype=np.float64)

    def described(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the question with its components and its whole embedding."""
        text = question.get(self.column) or question.get("text")
        if text is None:
            raise InputError(f"the question has no {self.column!r} to be embedded")
        vector = np.asarray(self.embedder.embed([str(text)]), dtype=np.float64)[0]
        points = (vector - self.centre) @ self.axes.T
        names = (f"{self.column}_{number + 1}" for number in range(len(points)))
        return {**question, VECTOR: vector, **dict(zip(names, points.tolist(), strict=True))}
