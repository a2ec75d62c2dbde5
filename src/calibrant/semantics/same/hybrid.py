"""Clustering with a judge: rules first, embeddings for the clear cases, the judge for the rest."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from calibrant.core import InputError
from calibrant.semantics.judge import Docket, GroupQuery, Query, Reply, SameQuery, WhichQuery
from calibrant.semantics.same import cluster
from calibrant.semantics.same.forms import Form, FormReader, read_cues
from calibrant.semantics.same.pairs import PairModel
from calibrant.semantics.same.rules import relate
from calibrant.semantics.typed import Relation

MODES = ("confirmed", "which", "pairwise", "group")
_MOST_CANDIDATES = 20
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


_Search = Generator[Query, Reply, tuple[_Group | None, int]]


def hybrid_steps(
    answers: Sequence[str],
    *,
    question: str | None = None,
    reader: FormReader | None = None,
    similarity: Similarity | None = None,
    mode: str = "confirmed",
    ask: bool = True,
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
    rules
        Whether rules may join forms before the judge is asked.
    counts
        How often each answer was given, where `answers` are distinct already.
    math, siblings
        See `cluster_rules`.
    """
    if mode not in MODES:
        raise InputError(f"mode is one of {', '.join(MODES)}, got {mode!r}")
    read = reader or FormReader()
    forms, weights, which = cluster.distinct_forms(answers, read, counts)
    if rules:
        partition, decided = cluster.cluster_forms(
            forms,
            read_cues(question),
            tolerance=tolerance,
            math=math,
            siblings={read(name).key for name in siblings},
        )
    else:
        partition, decided = cluster.Partition(len(forms)), {}
    calls = 0
    if len(set(partition.ids())) > 1 and (ask or similarity is not None):
        worker = _Joiner(question or "", forms, weights, partition, decided, similarity)
        worker.by_similarity()
        if ask:
            calls = yield from worker.by_judge(mode)
    ids = partition.ids()
    return cluster.Clusters(
        cluster.first_appearance([ids[place] for place in which]),
        decided,
        [(forms[a].raw, forms[b].raw) for a, b in partition.conflicts],
        calls,
    )


@dataclass
class _Joiner:
    """Joins what rules left apart, in one question."""

    question: str
    forms: list[Form]
    counts: list[int]
    partition: cluster.Partition
    decided: dict[str, int]
    similarity: Similarity | None
    cosines: npt.NDArray[np.float64] | None = field(default=None)

    def by_similarity(self) -> None:
        """Join phrases that are clearly alike, and keep apart those that are clearly not."""
        if self.similarity is None:
            return
        self.cosines = self.similarity.table(self.forms, self.question)
        places = [i for i, form in enumerate(self.forms) if is_phrase(form)]
        pairs = [(float(self.cosines[a, b]), a, b) for a in places for b in places if a < b]
        for cosine, a, b in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
            if self.partition.find(a) == self.partition.find(b):
                continue
            if relate(self.forms[a], self.forms[b])[0] is Relation.DIFFERENT:
                continue
            if cosine >= self.similarity.same and not self.partition.apart(a, b):
                self.partition.join(a, b)
                self._count("embedding")
            elif cosine <= self.similarity.different:
                self.partition.forbid(a, b)

    def by_judge(self, mode: str) -> Generator[Query, Reply, int]:
        """Ask about every class that rules left open, the heaviest first."""
        if mode == "group":
            reply = yield GroupQuery(self.question, tuple(self._text_of(g) for g in self._groups()))
            if self._apply_groups(reply):
                return 1
            return 1 + (yield from self._one_by_one("confirmed"))
        return (yield from self._one_by_one(mode))

    def _one_by_one(self, mode: str) -> Generator[Query, Reply, int]:
        calls = 0
        settled: list[_Group] = []
        ways = {"which": self._which, "confirmed": self._confirmed, "pairwise": self._pairwise}
        for group in self._groups():
            candidates = self._candidates(group, settled)
            found: _Group | None = None
            if candidates:
                found, used = yield from ways[mode](group, candidates)
                calls += used
            if found is not None and self.partition.join(
                group.representative, found.representative
            ):
                self._count("judge")
                found.weight += group.weight
            else:
                settled.append(group)
        return calls

    def _which(self, group: _Group, candidates: list[_Group]) -> _Search:
        """One call: which of these, or none?"""
        reply = yield self._which_query(group, candidates)
        if isinstance(reply, int) and 0 <= reply < len(candidates):
            return candidates[reply], 1
        if reply == -1:
            self._keep_apart(group, candidates)
        return None, 1

    def _confirmed(self, group: _Group, candidates: list[_Group]) -> _Search:
        """Two calls that agree, or a third that decides."""
        reply = yield self._which_query(group, candidates)
        if not isinstance(reply, int) or reply >= len(candidates):
            return None, 1
        if reply >= 0:
            chosen = candidates[reply]
            same = yield self._same_query(group, chosen)
            if same is not False:
                return chosen, 2
            second = yield from self._look_again(group, candidates)
            return (chosen if second is chosen else None), 3
        second = yield from self._look_again(group, candidates)
        if second is None:
            self._keep_apart(group, candidates)
            return None, 2
        same = yield self._same_query(group, second)
        return (second if same is True else None), 3

    def _look_again(
        self, group: _Group, candidates: list[_Group]
    ) -> Generator[Query, Reply, _Group | None]:
        """Ask with the classes in the other order: a preference for a place shows."""
        turned = candidates[::-1]
        if len(turned) == 1:
            reply = yield self._same_query(group, turned[0])
            return turned[0] if reply is True else None
        reply = yield self._which_query(group, turned)
        found = isinstance(reply, int) and 0 <= reply < len(turned)
        return turned[int(reply)] if found and isinstance(reply, int) else None

    def _pairwise(self, group: _Group, candidates: list[_Group]) -> _Search:
        """One call per class, until one fits."""
        for number, other in enumerate(candidates, start=1):
            reply = yield self._same_query(group, other)
            if reply is True:
                return other, number
            if reply is False:
                self._keep_apart(group, [other])
        return None, len(candidates)

    def _which_query(self, group: _Group, candidates: Sequence[_Group]) -> Query:
        return WhichQuery(
            self.question, self._text_of(group), tuple(map(self._text_of, candidates))
        )

    def _same_query(self, group: _Group, other: _Group) -> Query:
        return SameQuery(self.question, self._text_of(group), self._text_of(other))

    def _apply_groups(self, reply: Reply) -> bool:
        groups = self._groups()
        if not isinstance(reply, tuple) or len(reply) != len(groups):
            return False
        first: dict[int, _Group] = {}
        for number, group in zip(reply, groups, strict=True):
            other = first.setdefault(number, group)
            if other is not group and self.partition.join(
                other.representative, group.representative
            ):
                self._count("judge")
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
            and relate(self.forms[mine], self.forms[other.representative])[0]
            is not Relation.DIFFERENT
        ]
        ranked = sorted(
            open_ones,
            # Small differences of likeness are noise: then the heavier class is the better bet.
            key=lambda other: (-round(self._alike(mine, other.representative), 1), -other.weight),
        )
        return ranked[:_MOST_CANDIDATES]

    def _alike(self, a: int, b: int) -> float:
        if self.cosines is not None:
            return float(self.cosines[a, b])
        left, right = _trigrams(self.forms[a].key), _trigrams(self.forms[b].key)
        return len(left & right) / max(1, len(left | right))

    def _keep_apart(self, group: _Group, others: Sequence[_Group]) -> None:
        for other in others:
            if not self.partition.apart(group.representative, other.representative):
                self.partition.forbid(group.representative, other.representative)

    def _text_of(self, group: _Group) -> str:
        return self.forms[group.representative].raw

    def _count(self, who: str) -> None:
        self.decided[who] = self.decided.get(who, 0) + 1


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
    >>> from calibrant.semantics.judge import SimulatedJudge
    >>> docket = Docket(SimulatedJudge({"UK": 0, "Great Britain": 0, "France": 1}))
    >>> run_steps([hybrid_steps(["UK", "Great Britain", "France"])], docket)[0].ids
    [0, 0, 1]
    """
    results: list[cluster.Clusters | None] = [None] * len(tasks)
    waiting: dict[int, Query] = {}
    for place, task in enumerate(tasks):
        _advance(place, task, None, waiting, results)
    while waiting:
        places = list(waiting)
        queries = [waiting[place] for place in places]
        replies = docket.ask_all(queries) if docket is not None else [None] * len(queries)
        waiting = {}
        for place, reply in zip(places, replies, strict=True):
            _advance(place, tasks[place], reply, waiting, results)
    return [result for result in results if result is not None]


def _advance(
    place: int,
    task: Steps,
    reply: Reply,
    waiting: dict[int, Query],
    results: list[cluster.Clusters | None],
) -> None:
    try:
        waiting[place] = task.send(reply)
    except StopIteration as stop:
        results[place] = stop.value
