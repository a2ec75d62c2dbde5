"""Models that compare two sentences: one adapter for embedders, entailment and ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core import InputError

if TYPE_CHECKING:
    # Rules need nothing that talks to models.
    from calibrant.models.endpoints.embeddings import Embedder

Pair: TypeAlias = tuple[str, str, str]
"""A question and two answers to it."""
Entails: TypeAlias = Callable[[list[str], list[str]], npt.ArrayLike]


class PairModel(Protocol):
    """Something that says how alike two answers are: one number per pair, near 1 for the same."""

    @property
    def name(self) -> str:
        """Name and version, recorded beside what was decided with it."""

    def scores(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        """Return one score per pair, in the order given."""


@dataclass(frozen=True)
class CosinePairs:
    """The cosine between sentence embeddings; each text is embedded once."""

    embedder: Embedder

    @property
    def name(self) -> str:
        """Name of the embedder."""
        return str(getattr(self.embedder, "name", "given"))

    def scores(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        """Return the cosines."""
        texts = sorted({text for _, a, b in pairs for text in (a, b)})
        if not texts:
            return np.zeros(0)
        vectors = np.asarray(self.embedder.embed(texts), dtype=np.float64)
        row = {text: place for place, text in enumerate(texts)}
        left = vectors[[row[a] for _, a, _ in pairs]]
        right = vectors[[row[b] for _, _, b in pairs]]
        return np.asarray(np.einsum("ij,ij->i", left, right))


@dataclass(frozen=True)
class EntailmentPairs:
    """An entailment model (NLI), asked in both directions: the same where each entails the other.

    Parameters
    ----------
    entails
        Takes premises and hypotheses, two lists of equal length, and returns for each pair the
        probability that the first entails the second. Any framework will do: a few lines around
        ``onnxruntime.InferenceSession.run`` or a ``transformers`` pipeline.
    name
        Recorded beside what was decided with it.
    form
        How an answer is shown; an answer alone is no sentence, with its question it is one.

    References
    ----------
    Kuhn, Gal and Farquhar, Semantic uncertainty (2023).

    Examples
    --------
    >>> def entails(premises, hypotheses):
    ...     return [float(p.split()[-1] == h.split()[-1]) for p, h in zip(premises, hypotheses)]
    >>> model = EntailmentPairs(entails, "last word")
    >>> model.scores([("Capital?", "Paris", "It is Paris"), ("Capital?", "Paris", "Rome")])
    array([1., 0.])
    """

    entails: Entails
    name: str = "entailment"
    form: str = "{question} {answer}"

    def scores(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        """Return the smaller of the two probabilities of each pair."""
        left = [self.form.format(question=question, answer=a).strip() for question, a, _ in pairs]
        right = [self.form.format(question=question, answer=b).strip() for question, _, b in pairs]
        if not pairs:
            return np.zeros(0)
        chances = np.asarray(self.entails(left + right, right + left), dtype=np.float64)
        if chances.shape != (2 * len(pairs),) or not ((chances >= 0) & (chances <= 1)).all():
            raise InputError(
                f"{self.name}: one probability from 0 to 1 per pair is needed, got an array of "
                f"shape {chances.shape}"
            )
        return np.minimum(chances[: len(pairs)], chances[len(pairs) :])
