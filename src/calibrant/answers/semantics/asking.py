"""Who is asked: a client or a dispatcher with a ledger, and models that compare two answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
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
from calibrant.core.errors import BudgetError, ClientError
from calibrant.models.asks import Ask
from calibrant.models.dispatch.dispatcher import Dispatcher
from calibrant.models.protocol import Client, Request

if TYPE_CHECKING:
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


class Asker(Protocol):
    """Gets texts for requests; None where there is no reply."""

    @property
    def client(self) -> Client:
        """Who is asked: what it takes and gives, and where it is."""

    async def texts(self, requests: Sequence[Request]) -> list[str | None]:
        """Return one text per request, in order."""


@dataclass
class ClientAsker:
    """Ask a client directly; nothing is remembered between runs."""

    client: Client
    concurrency: int = 8

    async def texts(self, requests: Sequence[Request]) -> list[str | None]:
        """Return one text per request, in order."""
        gate = asyncio.Semaphore(self.concurrency)

        async def one(request: Request) -> str | None:
            async with gate:
                try:
                    return (await self.client.ask(request))[0].text
                except ClientError:
                    return None

        return list(await asyncio.gather(*map(one, requests)))


@dataclass
class DispatcherAsker:
    """Ask through a dispatcher, so that every verdict is kept in the ledger and paid once.

    A cap that is reached ends the asking, not the work: `stopped` says which, replies that are
    there are used, and the rest stays without a reply.
    """

    dispatcher: Dispatcher
    stopped: str | None = None

    @property
    def client(self) -> Client:
        """Who is asked."""
        return self.dispatcher.client

    async def texts(self, requests: Sequence[Request]) -> list[str | None]:
        """Return one text per request, in order."""
        asks = [Ask(request, "judge", tag=place) for place, request in enumerate(requests)]
        texts: dict[Hashable, str] = {}
        try:
            if self.stopped is None:
                await self._gather(asks, texts)
        except BudgetError as error:
            self.stopped = str(error)
        if self.stopped is not None:
            # Everything paid for is used: what the ledger holds needs no budget.
            await self._gather(self._paid_for([ask for ask in asks if ask.tag not in texts]), texts)
        return [texts.get(place) for place in range(len(requests))]

    async def _gather(self, asks: Sequence[Ask], texts: dict[Hashable, str]) -> None:
        async for outcome in self.dispatcher.ask_all(asks):
            if outcome.draws:
                texts[outcome.ask.tag] = outcome.draws[0].completion.text

    def _paid_for(self, asks: Sequence[Ask]) -> list[Ask]:
        digests = [self.dispatcher.prepare(ask)[1].digest for ask in asks]
        paid = self.dispatcher.ledger.complete(digests, 1)
        return [ask for ask, digest in zip(asks, digests, strict=True) if digest in paid]
