"""Which answers are one: rules first, then a judge or a model of pairs for what they leave open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.answers.semantics import cluster
from calibrant.answers.semantics.forms import Form, FormReader, read_cues
from calibrant.answers.semantics.judge import (
    Docket,
    GroupQuery,
    Query,
    Reply,
    SameQuery,
    WhichQuery,
    mask_instructions,
)
from calibrant.answers.semantics.typed.quantities import Relation
from calibrant.core import InputError

if TYPE_CHECKING:
    from calibrant.answers.semantics.settle import Group, SemanticsOptions
    from calibrant.models.endpoints.embedded import Embedder
    from calibrant.models.inference.judge import EmbeddedJudge

_MOST_CANDIDATES, _FEW_CANDIDATES = 20, 3
Steps = Generator[Query, Reply, cluster.Clusters]
_Asking = Generator[Query, Reply, Reply]
Pair: TypeAlias = tuple[str, str, str]
"""A question and two answers to it."""
# Calibrated on phrases with human labels (docs/studies/semantics.md): from here upwards every
# answer was accepted.
SAME_COSINE = 0.8


def hybrid_steps(
    group: Group,
    options: SemanticsOptions,
    *,
    reader: FormReader | None = None,
    scope: str | None = "all",
) -> Steps:
    """Yield the queries that clustering needs; return the clusters.

    The generator does no input or output: `run_steps` drives many of them side by side.

    `scope` is what is asked about: ``all`` that rules leave open; ``near``: a few classes each, and
    no names without a common word, for a judge that reads each pair for itself and would read for
    hours where 50 draws all differ; ``phrases`` alone, where for numbers and names a score says
    which topic, not which thing ('13' and '17', Shakespeare and Marlowe). None: nobody is asked,
    and what is doubtful stays apart.
    """
    read = reader or FormReader()
    forms, weights, inverse = cluster.distinct_forms(group.answers, read, group.counts)
    partition, decided = cluster.Partition(len(forms)), Counter[str]()
    if options.clustering != "judge":
        partition, decided = cluster.cluster_forms(
            forms,
            read_cues(group.question),
            {read(name).key for name in group.apart},
            tolerance=options.tolerance,
            math=options.math,
        )
    joiner = _Joiner(group.question, forms, weights, partition, scope)
    if scope is not None and len(set(partition.ids())) > 1:
        yield from joiner.join_all(options.judge_mode if scope == "all" else "which")
        decided += Counter({"embedding" if scope == "phrases" else "judge": joiner.joins})
    ids = partition.ids()
    return cluster.Clusters(
        cluster.first_appearance([ids[place] for place in inverse]),
        decided,
        [(forms[a].raw, forms[b].raw) for a, b in partition.conflicts],
        joiner.calls,
    )


@dataclass
class _Class:
    """Forms that are one so far, by the first and by the most frequent of them."""

    first: int
    representative: int
    weight: int = 0


_Search = Generator[Query, Reply, _Class | None]


@dataclass
class _Joiner:
    """Joins what rules left apart, in one question; `calls` counts what is asked."""

    question: str
    forms: list[Form]
    counts: list[int]
    partition: cluster.Partition
    scope: str | None
    calls: int = 0
    joins: int = 0

    def join_all(self, mode: str) -> Generator[Query, Reply, None]:
        """Ask about every class that rules left open, the heaviest first."""
        if mode == "group":
            classes = self._classes()
            texts = tuple(map(self._text_of, classes))
            reply = yield from self._ask(GroupQuery(self.question, texts))
            if isinstance(reply, tuple) and len(reply) == len(classes):
                first: dict[int, _Class] = {}
                for number, item in zip(reply, classes, strict=True):
                    if (head := first.setdefault(number, item)) is not item:
                        self._join(head, item)
                return
        settled: list[_Class] = []
        for item in self._classes():
            candidates = self._candidates(item, settled)
            peer = (yield from self._peer(item, candidates, mode)) if candidates else None
            if peer and self._join(item, peer):
                peer.weight += item.weight
            else:
                settled.append(item)

    def _join(self, item: _Class, peer: _Class) -> bool:
        joined = self.partition.join(item.representative, peer.representative)
        self.joins += joined
        return joined

    def _peer(self, item: _Class, candidates: list[_Class], mode: str) -> _Search:
        """Return the class that means the same, asked about one by one or about all at once."""
        if mode == "pairwise":
            for peer in candidates:
                reply = yield from self._ask_same(item, peer)
                if reply is True:
                    return peer
                if reply is False:
                    self._keep_apart(item, [peer])
            return None
        reply = yield from self._ask_which(item, candidates)
        if not isinstance(reply, int) or reply >= len(candidates):
            return None
        choice = candidates[reply] if reply >= 0 else None
        if mode == "which":
            if choice is None:
                self._keep_apart(item, candidates)
            return choice
        return (yield from self._confirmed(item, choice, candidates))

    def _confirmed(self, item: _Class, choice: _Class | None, candidates: list[_Class]) -> _Search:
        """Ask for a second opinion; where the two differ, a third decides."""
        if choice is not None and (yield from self._ask_same(item, choice)) is not False:
            return choice
        second = yield from self._look_again(item, candidates)
        if choice is not None:
            return choice if second is choice else None
        if second is None:
            self._keep_apart(item, candidates)
            return None
        return second if (yield from self._ask_same(item, second)) is True else None

    def _look_again(self, item: _Class, candidates: list[_Class]) -> _Search:
        """Ask with the classes in the other order: a preference for a place shows."""
        flipped = candidates[::-1]
        if len(flipped) == 1:
            return flipped[0] if (yield from self._ask_same(item, flipped[0])) is True else None
        reply = yield from self._ask_which(item, flipped)
        return flipped[reply] if isinstance(reply, int) and 0 <= reply < len(flipped) else None

    def _ask_which(self, item: _Class, candidates: Sequence[_Class]) -> _Asking:
        texts = tuple(map(self._text_of, candidates))
        return self._ask(WhichQuery(self.question, self._text_of(item), texts))

    def _ask_same(self, item: _Class, peer: _Class) -> _Asking:
        return self._ask(SameQuery(self.question, self._text_of(item), self._text_of(peer)))

    def _ask(self, query: Query) -> _Asking:
        self.calls += 1
        return (yield query)

    def _classes(self) -> list[_Class]:
        by_root: dict[int, _Class] = {}
        for place, count in enumerate(self.counts):
            item = by_root.setdefault(self.partition.find(place), _Class(place, place))
            item.weight += count
            if count > self.counts[item.representative]:
                item.representative = place
        return sorted(by_root.values(), key=lambda item: (-item.weight, item.first))

    def _candidates(self, item: _Class, settled: list[_Class]) -> list[_Class]:
        """Return the classes that could be meant, most alike first."""
        mine, form = item.representative, self.forms[item.representative]
        open_ones = [
            peer
            for peer in settled
            if not self.partition.apart(mine, peer.representative)
            and self._may_be_one(form, self.forms[peer.representative])
        ]
        trigrams = _trigrams(form)

        def rank(peer: _Class) -> tuple[float, int]:
            peers = _trigrams(self.forms[peer.representative])
            alike = len(trigrams & peers) / max(1, len(trigrams | peers))
            # Small differences of likeness are noise: then the heavier class is the better bet.
            return -round(alike, 1), -peer.weight

        most = _FEW_CANDIDATES if self.scope == "near" else _MOST_CANDIDATES
        return sorted(open_ones, key=rank)[:most]

    def _may_be_one(self, a: Form, b: Form) -> bool:
        """Return whether it is worth asking: not where rules say no, or outside of the scope."""
        phrases = self.scope != "all" and is_phrase(a) and is_phrase(b)
        if self.scope == "phrases" and not phrases:
            return False
        relation, rule = cluster.relate(a, b)
        within = self.scope == "all" or phrases or rule != "unrelated"
        return within and relation is not Relation.DIFFERENT

    def _keep_apart(self, item: _Class, peers: Sequence[_Class]) -> None:
        for peer in peers:
            self.partition.forbid(item.representative, peer.representative)

    def _text_of(self, item: _Class) -> str:
        return self.forms[item.representative].raw


def is_phrase(form: Form) -> bool:
    """Phrases of two words or more that are neither names nor figures."""
    return not form.proper and not form.numbers and len(form.content) >= 2


def _trigrams(form: Form) -> set[str]:
    padded = f" {form.key} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def run_steps(tasks: Sequence[Steps], docket: Docket | None) -> list[cluster.Clusters]:
    """Drive many clusterings side by side: one batch of queries per round.

    Examples
    --------
    >>> from calibrant.answers.semantics import Group, SemanticsOptions, SimulatedJudge
    >>> docket = Docket(SimulatedJudge({"UK": 0, "Great Britain": 0, "France": 1}))
    >>> group = Group(["UK", "Great Britain", "France"], [1, 1, 1])
    >>> run_steps([hybrid_steps(group, SemanticsOptions())], docket)[0].ids
    [0, 0, 1]
    """
    results: dict[int, cluster.Clusters] = {}
    replies: dict[int, Reply] = dict.fromkeys(range(len(tasks)))
    while replies:
        waiting: dict[int, Query] = {}
        for place, reply in replies.items():
            try:
                waiting[place] = tasks[place].send(reply)
            except StopIteration as stop:
                results[place] = stop.value
        request = list(waiting.values())
        answers = docket.ask_all(request) if docket is not None else [None] * len(request)
        replies = dict(zip(waiting, answers, strict=True))
    return [results[place] for place in range(len(tasks))]


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

    entails: Callable[[list[str], list[str]], npt.ArrayLike]
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


@dataclass(frozen=True)
class ReadPairs:
    """Log-odds that two answers are one, by the embedded judge.

    Sameness has no order: each pair is read both ways, and the mean counts.
    """

    judge: EmbeddedJudge

    @property
    def name(self) -> str:
        """Model and adapter."""
        return self.judge.name

    def scores(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        """Return the log-odds."""
        both_ways = [(q, (x,), y) for q, a, b in pairs for x, y in ((a, b), (b, a))]
        return np.asarray(self.judge.scores(both_ways).reshape(-1, 2).mean(axis=1))


@dataclass(frozen=True)
class PairJudge:
    """A model of pairs, asked as a judge is: two answers are one from `same` upwards."""

    model: PairModel
    same: float

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    def answer_all(self, queries: Sequence[Query]) -> list[Reply]:
        """Return one reply per query: the answer that is most surely the same, if any is."""
        compared: list[list[Pair]] = []
        for query in queries:
            assert isinstance(query, SameQuery | WhichQuery)
            texts_shown = (
                (query.a, query.b)
                if isinstance(query, SameQuery)
                else (query.answer, *query.candidates)
            )
            answer, *texts = (mask_instructions(text).text for text in texts_shown)
            compared.append([(query.question, answer, text) for text in texts])
        # An answer that only speaks to a judge is the same as no other.
        pairs = list(dict.fromkeys(pair for each in compared for pair in each if all(pair[1:])))
        scores = dict(zip(pairs, map(float, self.model.scores(pairs)), strict=True))
        replies: list[Reply] = []
        for query, each in zip(queries, compared, strict=True):
            ranking = [scores.get(pair, -np.inf) for pair in each]
            best = max(ranking)
            choice = ranking.index(best) if best >= self.same else -1
            replies.append(choice == 0 if isinstance(query, SameQuery) else choice)
        return replies
