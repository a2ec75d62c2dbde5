"""Clustering with a judge: rules first, embeddings for the clear cases, the judge for the rest."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.answers.semantics import cluster
from calibrant.answers.semantics.asking import PairModel
from calibrant.answers.semantics.cluster import relate
from calibrant.answers.semantics.forms import Form, FormReader, read_cues
from calibrant.answers.semantics.judge import (
    Docket,
    GroupQuery,
    Query,
    Reply,
    SameQuery,
    WhichQuery,
)
from calibrant.answers.semantics.typed import Relation

MODES = ("confirmed", "which", "pairwise", "group")
_MOST_CANDIDATES, _FEW_CANDIDATES = 20, 3
# Calibrated on phrases with human labels (docs/studies/semantics.md): from the first value
# upwards every answer was accepted, up to the second no more than without any common word.
SAME_COSINE, DIFFERENT_COSINE = 0.8, 0.2

Steps = Generator[Query, Reply, cluster.Clusters]


@dataclass(frozen=True, slots=True)
class Similarity:
    """A sentence-pair model with two calibrated thresholds.

    From `same` upwards two phrases count as one, up to `different` as two, between them the
    judge is asked. Only phrases are compared: for numbers, dates and proper names a cosine
    says which topic, not which thing ('13' and '17', Shakespeare and Marlowe).
    """

    model: PairModel
    same: float = SAME_COSINE
    different: float = DIFFERENT_COSINE

    def table(self, forms: Sequence[Form], question: str = "") -> npt.NDArray[np.float64]:
        """Return the scores between all forms."""
        left, right = np.triu_indices(len(forms), k=1)
        texts = [form.raw for form in forms]
        pairs = [(question, texts[int(a)], texts[int(b)]) for a, b in zip(left, right, strict=True)]
        table = np.eye(len(forms))
        table[left, right] = table[right, left] = self.model.scores(pairs)
        return table


@dataclass
class _Group:
    forms: list[int]
    weight: int
    representative: int


_Asking = Generator[Query, Reply, Reply]
_Search = Generator[Query, Reply, _Group | None]


def hybrid_steps(
    answers: Sequence[str],
    *,
    question: str | None = None,
    reader: FormReader | None = None,
    similarity: Similarity | None = None,
    mode: str = "confirmed",
    ask: bool = True,
    ask_all: bool = True,
    rules: bool = True,
    tolerance: float = 1e-9,
    counts: Sequence[int] | None = None,
    math: bool = False,
    siblings: Sequence[str] = (),
) -> Steps:
    """Yield the queries that clustering needs; return the clusters.

    The generator does no input or output: `run_steps` drives many of them side by side.

    Parameters
    ----------
    mode
        ``which``: one call per doubtful form, shown all classes; ``confirmed``: the same with
        a second opinion; ``pairwise``: one call per pair of form and class, most similar
        first; ``group``: one call for all forms, checked for completeness, with ``confirmed``
        as the way out.
    ask
        Whether there is a judge; without one, what is doubtful stays apart.
    ask_all
        Whether it is also asked about names without a common word and about distant classes: a
        judge that reads each pair for itself would read for hours where 50 draws all differ.
    rules
        Whether rules may join forms before the judge is asked.
    counts
        How often each answer was given, where `answers` are distinct already.
    math
        Whether formulas are compared by computer algebra (extra ``math``).
    siblings
        Names known to mean different things: two of them never join.
    """
    read = reader or FormReader()
    forms, weights, inverse = cluster.distinct_forms(answers, read, counts)
    if rules:
        names = {read(name).key for name in siblings}
        cues = read_cues(question)
        partition, decided = cluster.cluster_forms(
            forms, cues, names, tolerance=tolerance, math=math
        )
    else:
        partition, decided = cluster.Partition(len(forms)), Counter()
    worker = _Joiner(question or "", forms, weights, partition, decided, similarity, ask_all)
    if len(set(partition.ids())) > 1:
        worker.by_similarity()
        if ask:
            yield from worker.by_judge(mode)
    ids = partition.ids()
    return cluster.Clusters(
        cluster.first_appearance([ids[place] for place in inverse]),
        decided,
        [(forms[a].raw, forms[b].raw) for a, b in partition.conflicts],
        worker.calls,
    )


@dataclass
class _Joiner:
    """Joins what rules left apart, in one question; `calls` counts what the judge is asked."""

    question: str
    forms: list[Form]
    counts: list[int]
    partition: cluster.Partition
    decided: Counter[str]
    similarity: Similarity | None
    ask_all: bool = True
    cosines: npt.NDArray[np.float64] | None = None
    calls: int = 0

    def by_similarity(self) -> None:
        """Join phrases that are clearly alike, and keep apart those that are clearly not."""
        if self.similarity is None:
            return
        self.cosines = self.similarity.table(self.forms, self.question)
        places = [i for i, form in enumerate(self.forms) if is_phrase(form)]
        pairs = [(float(self.cosines[a, b]), a, b) for a in places for b in places if a < b]
        for cosine, a, b in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
            joined = self.partition.find(a) == self.partition.find(b)
            if joined or relate(self.forms[a], self.forms[b])[0] is Relation.DIFFERENT:
                continue
            if cosine >= self.similarity.same and not self.partition.apart(a, b):
                self.partition.join(a, b)
                self.decided["embedding"] += 1
            elif cosine <= self.similarity.different:
                self.partition.forbid(a, b)

    def by_judge(self, mode: str) -> Generator[Query, Reply, None]:
        """Ask about every class that rules left open, the heaviest first."""
        if mode == "group":
            texts = tuple(map(self._text_of, self._groups()))
            if self._apply_groups((yield from self._ask(GroupQuery(self.question, texts)))):
                return
            mode = "confirmed"
        modes = {"which": self._which, "confirmed": self._confirmed, "pairwise": self._pairwise}
        settled: list[_Group] = []
        for group in self._groups():
            candidates = self._candidates(group, settled)
            peer = (yield from modes[mode](group, candidates)) if candidates else None
            if peer and self.partition.join(group.representative, peer.representative):
                self.decided["judge"] += 1
                peer.weight += group.weight
            else:
                settled.append(group)

    def _which(self, group: _Group, candidates: list[_Group]) -> _Search:
        """One call: which of these, or none?"""
        reply = yield from self._ask_which(group, candidates)
        if isinstance(reply, int) and 0 <= reply < len(candidates):
            return candidates[reply]
        if reply == -1:
            self._keep_apart(group, candidates)
        return None

    def _confirmed(self, group: _Group, candidates: list[_Group]) -> _Search:
        """Two calls that agree, or a third that decides."""
        reply = yield from self._ask_which(group, candidates)
        if not isinstance(reply, int) or reply >= len(candidates):
            return None
        if reply >= 0:
            choice = candidates[reply]
            if (yield from self._ask_same(group, choice)) is not False:
                return choice
            second = yield from self._look_again(group, candidates)
            return choice if second is choice else None
        second = yield from self._look_again(group, candidates)
        if second is None:
            self._keep_apart(group, candidates)
            return None
        return second if (yield from self._ask_same(group, second)) is True else None

    def _look_again(self, group: _Group, candidates: list[_Group]) -> _Search:
        """Ask with the classes in the other order: a preference for a place shows."""
        flipped = candidates[::-1]
        if len(flipped) == 1:
            return flipped[0] if (yield from self._ask_same(group, flipped[0])) is True else None
        reply = yield from self._ask_which(group, flipped)
        return flipped[reply] if isinstance(reply, int) and 0 <= reply < len(flipped) else None

    def _pairwise(self, group: _Group, candidates: list[_Group]) -> _Search:
        """One call per class, until one fits."""
        for peer in candidates:
            reply = yield from self._ask_same(group, peer)
            if reply is True:
                return peer
            if reply is False:
                self._keep_apart(group, [peer])
        return None

    def _ask_which(self, group: _Group, candidates: Sequence[_Group]) -> _Asking:
        texts = tuple(map(self._text_of, candidates))
        return self._ask(WhichQuery(self.question, self._text_of(group), texts))

    def _ask_same(self, group: _Group, peer: _Group) -> _Asking:
        return self._ask(SameQuery(self.question, self._text_of(group), self._text_of(peer)))

    def _ask(self, query: Query) -> _Asking:
        self.calls += 1
        return (yield query)

    def _apply_groups(self, reply: Reply) -> bool:
        groups = self._groups()
        if not isinstance(reply, tuple) or len(reply) != len(groups):
            return False
        first: dict[int, _Group] = {}
        for number, group in zip(reply, groups, strict=True):
            peer = first.setdefault(number, group)
            if peer is not group and self.partition.join(peer.representative, group.representative):
                self.decided["judge"] += 1
        return True

    def _groups(self) -> list[_Group]:
        by_root: dict[int, _Group] = {}
        for place, count in enumerate(self.counts):
            root = self.partition.find(place)
            group = by_root.setdefault(root, _Group([], 0, place))
            group.forms.append(place)
            group.weight += count
            if count > self.counts[group.representative]:
                group.representative = place
        return sorted(by_root.values(), key=lambda group: (-group.weight, group.forms[0]))

    def _candidates(self, group: _Group, settled: list[_Group]) -> list[_Group]:
        """Return the classes that could be meant, most alike first."""
        mine = group.representative
        open_ones = [
            other
            for other in settled
            if not self.partition.apart(mine, other.representative)
            and self._may_be_one(self.forms[mine], self.forms[other.representative])
        ]
        ranking = sorted(
            open_ones,
            # Small differences of likeness are noise: then the heavier class is the better bet.
            key=lambda other: (-round(self._alike(mine, other.representative), 1), -other.weight),
        )
        return ranking[: _MOST_CANDIDATES if self.ask_all else _FEW_CANDIDATES]

    def _may_be_one(self, a: Form, b: Form) -> bool:
        """Return whether it is worth asking: rules say no, or names share no word, is not."""
        relation, rule = relate(a, b)
        phrases = is_phrase(a) and is_phrase(b)
        return relation is not Relation.DIFFERENT and (
            self.ask_all or phrases or rule != "unrelated"
        )

    def _alike(self, a: int, b: int) -> float:
        if self.cosines is not None:
            return float(self.cosines[a, b])
        left, right = _trigrams(self.forms[a].key), _trigrams(self.forms[b].key)
        return len(left & right) / max(1, len(left | right))

    def _keep_apart(self, group: _Group, peers: Sequence[_Group]) -> None:
        for peer in peers:
            self.partition.forbid(group.representative, peer.representative)

    def _text_of(self, group: _Group) -> str:
        return self.forms[group.representative].raw


def is_phrase(form: Form) -> bool:
    """Phrases of two words or more that are neither names nor figures."""
    return not form.proper and not form.numbers and len(form.content) >= 2


def _trigrams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def run_steps(tasks: Sequence[Steps], docket: Docket | None) -> list[cluster.Clusters]:
    """Drive many clusterings side by side: one batch of queries per round.

    Examples
    --------
    >>> from calibrant.answers.semantics.judge import SimulatedJudge
    >>> docket = Docket(SimulatedJudge({"UK": 0, "Great Britain": 0, "France": 1}))
    >>> run_steps([hybrid_steps(["UK", "Great Britain", "France"])], docket)[0].ids
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
