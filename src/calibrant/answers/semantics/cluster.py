"""Classes of meaning by exact strings and rules: joins, forbidden joins, conflicts."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from calibrant.answers.semantics.extract import not_attempted
from calibrant.answers.semantics.forms import Cues, Form, FormReader
from calibrant.answers.semantics.rules import relate
from calibrant.answers.semantics.typed import Relation


class Partition:
    """Disjoint classes over items 0..n-1 that remember which items must stay apart.

    A join that would put two such items into one class is refused and counted in
    `conflicts`: verdicts that are not transitive show up there.

    Examples
    --------
    >>> classes = Partition(3)
    >>> classes.forbid(0, 2)
    >>> classes.join(0, 1), classes.join(1, 2)
    (True, False)
    >>> classes.ids(), classes.conflicts
    ([0, 0, 1], [(1, 2)])
    """

    def __init__(self, size: int) -> None:
        self._root = list(range(size))
        self._apart: dict[int, set[int]] = {}
        self.conflicts: list[tuple[int, int]] = []

    def find(self, item: int) -> int:
        """Return the item that stands for the class."""
        while self._root[item] != item:
            self._root[item] = self._root[self._root[item]]
            item = self._root[item]
        return item

    def forbid(self, a: int, b: int) -> None:
        """Keep the classes of two items apart from now on."""
        left, right = self.find(a), self.find(b)
        if left == right:
            self.conflicts.append((a, b))
            return
        self._apart.setdefault(left, set()).add(right)
        self._apart.setdefault(right, set()).add(left)

    def apart(self, a: int, b: int) -> bool:
        """Return whether the two items must not be joined."""
        return self.find(b) in self._apart.get(self.find(a), ())

    def join(self, a: int, b: int) -> bool:
        """Join two classes; return whether they are one afterwards."""
        left, right = self.find(a), self.find(b)
        if left == right:
            return True
        if self.apart(left, right):
            self.conflicts.append((a, b))
            return False
        keep, gone = min(left, right), max(left, right)
        self._root[gone] = keep
        for peer in self._apart.pop(gone, set()):
            self._apart[peer].discard(gone)
            self._apart[peer].add(keep)
            self._apart.setdefault(keep, set()).add(peer)
        return True

    def ids(self) -> list[int]:
        """Return class ids in order of first appearance."""
        return first_appearance([self.find(item) for item in range(len(self._root))])


def first_appearance(labels: Iterable[Hashable]) -> list[int]:
    """Return the labels as numbers, in the order in which they are first seen.

    Examples
    --------
    >>> first_appearance(["b", "a", "b"])
    [0, 1, 0]
    """
    observed: dict[Hashable, int] = {}
    return [observed.setdefault(label, len(observed)) for label in labels]


def same_partition(a: Sequence[Hashable], b: Sequence[Hashable]) -> bool:
    """Return whether two labellings divide the items alike, whatever the labels are called."""
    return first_appearance(a) == first_appearance(b)


def pairwise_f1(found: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """Return the F1 of the pairs put together, in [0, 1]; higher is better.

    1.0 where neither labelling joins anything.

    Examples
    --------
    >>> pairwise_f1([0, 0, 1], [0, 0, 1]), round(pairwise_f1([0, 0, 0], [0, 0, 1]), 3)
    (1.0, 0.5)
    """
    joint = _pairs(Counter(zip(found, truth, strict=True)).values())
    mine, theirs = _pairs(Counter(found).values()), _pairs(Counter(truth).values())
    return 1.0 if mine + theirs == 0 else 2.0 * joint / (mine + theirs)


def _pairs(counts: Iterable[int]) -> int:
    return sum(count * (count - 1) // 2 for count in counts)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Classes of the distinct answers of one question.

    `ids` has one entry per answer given, numbered by first appearance; `decided_by` says how
    often each rule, the embeddings or the judge decided; `conflicts` are pairs of texts whose
    verdicts contradict the rest; `judge_calls` is what was asked.
    """

    ids: list[int]
    decided_by: dict[str, int] = field(default_factory=dict)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    judge_calls: int = 0


def distinct_forms(
    answers: Sequence[str], reader: FormReader, weights: Sequence[int] | None = None
) -> tuple[list[Form], list[int], list[int]]:
    """Return the forms that differ after normalisation, their counts, and each answer's form."""
    read = list(map(reader, answers))
    kind = first_appearance([form.identity for form in read])
    forms: dict[int, Form] = {}
    counts: Counter[int] = Counter()
    for place, form, weight in zip(kind, read, weights or [1] * len(read), strict=True):
        forms.setdefault(place, form)
        counts[place] += weight
    return list(forms.values()), list(counts.values()), kind


def cluster_exact(answers: Sequence[str], *, reader: FormReader | None = None) -> Clusters:
    """Join answers that are the same string after normalisation.

    Examples
    --------
    >>> cluster_exact(["Paris.", "paris", "Rome"]).ids
    [0, 0, 1]
    """
    forms = map(reader or FormReader(), answers)
    keys = ["" if not_attempted(form.raw) == "empty" else "=" + form.key for form in forms]
    return Clusters(first_appearance(keys), {"exact": len(answers)})


def cluster_forms(
    forms: Sequence[Form], cues: Cues, siblings: Collection[str], *, tolerance: float, math: bool
) -> tuple[Partition, Counter[str]]:
    """Join distinct forms by rules; likely pairs only where one class alone is meant.

    `siblings` are names, normalised, known to mean different things: two of them never join.
    """
    partition = Partition(len(forms))
    decided: Counter[str] = Counter()
    likely: dict[int, set[int]] = {}
    joins: list[tuple[int, int, str]] = []
    names = [place for place, form in enumerate(forms) if form.key in siblings]
    for a, b in combinations(names, 2):
        partition.forbid(a, b)
    for a, b in candidate_pairs(forms):
        relation, rule = relate(forms[a], forms[b], cues, tolerance=tolerance, math=math)
        if relation is Relation.SAME:
            joins.append((a, b, rule))
        elif relation is Relation.DIFFERENT:
            partition.forbid(a, b)
        elif relation is Relation.LIKELY:
            short, long = (a, b) if len(forms[a].words) < len(forms[b].words) else (b, a)
            likely.setdefault(short, set()).add(long)
    for a, b, rule in joins:
        if partition.join(a, b):
            decided[rule] += 1
    for short, longs in likely.items():
        classes = {partition.find(item) for item in longs}
        if len(classes) == 1 and partition.join(short, classes.pop()):
            decided["surname"] += 1
    return partition, decided


def candidate_pairs(forms: Sequence[Form]) -> list[tuple[int, int]]:
    """Return the pairs that share a block: the only ones that a rule could join."""
    if len(forms) < 2:
        return []
    by_block: dict[str, list[int]] = {}
    for place, form in enumerate(forms):
        for block in form.blocks:
            by_block.setdefault(block, []).append(place)
    return sorted({pair for places in by_block.values() for pair in combinations(places, 2)})
