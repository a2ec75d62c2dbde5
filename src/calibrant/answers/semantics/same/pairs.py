"""Models that compare two sentences: one adapter for embedders, entailment and ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.answers.semantics.judge import (
    Query,
    Reply,
    SameQuery,
    WhichQuery,
    mask_instructions,
)
from calibrant.core import InputError

if TYPE_CHECKING:
    # Rules need nothing that talks to models.
    from calibrant.models.endpoints.embedded import Embedder
    from calibrant.models.inference.judge import EmbeddedJudge

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


class PairReader:
    """The embedded judge as one that is asked which answers mean the same.

    Sameness has no order: each pair is read both ways, and the mean of both log-odds decides.
    """

    def __init__(self, judge: EmbeddedJudge) -> None:
        self.judge = judge

    @property
    def name(self) -> str:
        """Model and adapter."""
        return self.judge.name

    def answer_all(self, queries: Sequence[Query]) -> list[Reply]:
        """Return one reply per query: the answer that is most surely the same, if any is."""
        compared = [_pairs(query) for query in queries]
        pairs = list(dict.fromkeys(pair for each in compared for pair in each))
        both_ways = [(q, (x,), y) for q, a, b in pairs for x, y in ((a, b), (b, a))]
        scores = self.judge.scores(both_ways).reshape(-1, 2).mean(axis=1)
        score_of = dict(zip(pairs, map(float, scores), strict=True))
        return [
            _choice(query, [score_of[pair] for pair in each])
            for query, each in zip(queries, compared, strict=True)
        ]


# Log-odds from which two answers are one.
_SAME_SCORE = 0.0


def _pairs(query: Query) -> list[Pair]:
    """Return the pairs that a query is about, without what speaks to a judge."""
    candidates: tuple[str, ...]
    if isinstance(query, SameQuery):
        answer, candidates = query.a, (query.b,)
    else:
        assert isinstance(query, WhichQuery)
        answer, candidates = query.answer, query.candidates
    text = mask_instructions(answer).text
    return [(query.question, text, mask_instructions(each).text) for each in candidates]


def _choice(query: Query, scores: Sequence[float]) -> bool | int:
    best = max(range(len(scores)), key=scores.__getitem__)
    if isinstance(query, SameQuery):
        return scores[best] >= _SAME_SCORE
    return best if scores[best] >= _SAME_SCORE else -1
