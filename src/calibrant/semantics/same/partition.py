"""Partitions: joins, forbidden joins, conflicts, and how alike two partitions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


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
        for other in self._apart.pop(gone, set()):
            self._apart[other].discard(gone)
            self._apart[other].add(keep)
            self._apart.setdefault(keep, set()).add(other)
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
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(label, len(seen)) for label in labels]


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
    together = _pairs(Counter(zip(found, truth, strict=True)).values())
    mine, theirs = _pairs(Counter(found).values()), _pairs(Counter(truth).values())
    return 1.0 if mine + theirs == 0 else 2.0 * together / (mine + theirs)


def _pairs(counts: Iterable[int]) -> int:
    return sum(count * (count - 1) // 2 for count in counts)
