"""Lexical and numeric rules: the same, different, or not for rules to decide; classes by them."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from calibrant.answers.semantics.extract import not_attempted
from calibrant.answers.semantics.forms import PLACE_FRONT, Cues, Form, FormReader, read_cues
from calibrant.answers.semantics.mathematics import same_formula
from calibrant.answers.semantics.text.words import (
    KINDS,
    another_member,
    opposed,
    read_names,
    same_name,
    told_apart,
)
from calibrant.answers.semantics.typed import compare_types, compare_words
from calibrant.answers.semantics.typed.quantities import Relation, Verdict, decided

_NAME_WORDS = 9
_SENTENCE = re.compile(r"\w{3}[.!?:;]\s+\w")


def relate(
    a: Form, b: Form, cues: Cues | None = None, *, tolerance: float = 1e-9, math: bool = False
) -> Verdict:
    """Compare two answers to one question: the verdict, the same both ways, and its rule.

    Examples
    --------
    >>> from calibrant.answers.semantics.forms import FormReader
    >>> read = FormReader()
    >>> relate(read("1,000"), read("one thousand"))[0].value
    'same'
    >>> relate(read("13"), read("17"))[0].value
    'different'
    >>> relate(read("Shakespeare"), read("Marlowe"))[0].value
    'unsure'
    """
    cues = cues or Cues()
    if a.yes is not None and b.yes is not None:
        return decided(a.yes == b.yes, "yes or no")
    verdict = (
        (_by_algebra(a, b) if math else None)
        or _by_type(a, b, cues, tolerance)
        or ((Relation.SAME, "exact") if a.key == b.key else None)
        or _by_date(a, b, cues)
        or _by_figures(a, b)
    )
    if verdict is not None:
        return verdict
    why = _tell_apart(a, b, cues)
    verdict = _by_words(a, b, cues, why)
    if verdict is not None:
        return verdict
    if why == "clash":
        return Relation.UNSURE, "clash"
    return Relation.UNSURE, "unrelated" if set(a.content).isdisjoint(b.content) else "overlap"


def why_same(a: str, b: str, question: str | None = None) -> dict[str, str | None]:
    """Say whether two answers mean the same, by which rule, and which table of names knows them.

    Examples
    --------
    >>> why_same("Burma", "Myanmar")
    {'relation': 'same', 'rule': 'exact', 'known_as': 'country: myanmar (known_names.txt)'}
    >>> why_same("13", "17")
    {'relation': 'different', 'rule': 'number', 'known_as': None}
    """
    read = FormReader()
    first, second = read(a), read(b)
    relation, rule = relate(first, second, read_cues(question))
    known_as = None
    for table in ("known_names.txt", "cldr_names.txt"):
        names = read_names(table)
        # The tables hold names as every step but the look-up itself writes them.
        plain = read.normaliser.without("places", "plurals")
        entries = [names.get(" ".join(plain(text).split())) for text in (a, b)]
        if entries[0] is not None and entries[0] == entries[1]:
            known_as = f"{': '.join(entries[0])} ({table})"
    return {"relation": relation.value, "rule": rule, "known_as": known_as}


def _tell_apart(a: Form, b: Form, cues: Cues) -> str | None:
    """Return why two short names cannot mean the same, see `told_apart`."""
    # 'Trinidad and Tobago Region' is one place, no list.
    one_kind = a.words[-1:] == b.words[-1:] and not KINDS.isdisjoint(a.words[-1:])
    lists = (a.listing or b.listing) and not one_kind
    if not (a.named or b.named) or lists or a.date or b.date:
        return None
    # A name may come without any capital letter.
    names = all(form.named or form.raw.islower() for form in (a, b))
    if max(len(a.words), len(b.words)) > _NAME_WORDS or not names:
        return None
    why = told_apart(a.words, b.words)
    # 'Nigeria. Mexico.' are two names; 'St. Lucia' is one.
    single = a.named and b.named and not any(_SENTENCE.search(form.raw) for form in (a, b))
    if cues.asked and not cues.person and single and another_member(a.words, b.words, cues.asked):
        return "kind"
    # Without capital letters it may be a description ('a high school'), which denies nothing.
    return why if why != "clash" or (a.named and b.named) else None


def _by_algebra(a: Form, b: Form) -> Verdict | None:
    if not (a.formula or a.quantity) or not (b.formula or b.quantity):
        return None
    equal = same_formula(a.raw, b.raw)
    return None if equal is None else decided(equal, "mathematics")


def _by_type(a: Form, b: Form, cues: Cues, tolerance: float) -> Verdict | None:
    if a.raw == b.raw:
        return Relation.SAME, "exact"
    if a.variable and b.variable and a.variable != b.variable:
        return Relation.DIFFERENT, "number"
    # 'in 1969' and '20 July 1969' are compared as dates; '1969' and '1970' are numbers.
    if a.date and b.date and not (a.quantity and b.quantity) and "era" not in a.types:
        return None
    return compare_types(a.types, b.types, cues.question, tolerance=tolerance)


def _by_date(a: Form, b: Form, cues: Cues) -> Verdict | None:
    if a.date is None or b.date is None:
        return None
    if a.date == b.date:
        return Relation.SAME, "date"
    if cues.year and a.date.year is not None and b.date.year is not None:
        return decided(a.date.year == b.date.year, "year")
    return (Relation.UNSURE if a.date.agrees(b.date) else Relation.DIFFERENT), "date"


def _by_figures(a: Form, b: Form) -> Verdict | None:
    """Two texts without a common figure, where figures matter, mean different things."""
    bare = (a.quantity and not b.numbers) or (b.quantity and not a.numbers)
    apart = a.numbers and b.numbers and not a.numbers & b.numbers
    return (Relation.DIFFERENT, "figures") if bare or apart else None


def _by_words(a: Form, b: Form, cues: Cues, why: str | None) -> Verdict | None:
    if a.bare == b.bare or a.bare == b.key or a.key == b.bare:
        return Relation.SAME, "brackets"
    if a.acronym or b.acronym:
        short, long = (a, b) if a.acronym else (b, a)
        readable = not long.acronym and min(len(short.acronym), len(long.content)) > 1
        letters = ("".join(word[0] for word in words) for words in (long.content, long.words))
        return (Relation.SAME, "acronym") if readable and short.acronym in letters else None
    if len(a.words) == len(b.words):
        wrong = [(x, y) for x, y in zip(a.words, b.words, strict=True) if x != y]
        if len(wrong) == 1 and opposed(*wrong[0]):
            return Relation.DIFFERENT, "opposed"
    listing = a.listing or b.listing
    verdict = None if listing else compare_words(a.words, b.words, named=a.named and b.named)
    if verdict is not None:
        return verdict
    if why in ("mark", "kind"):
        return Relation.DIFFERENT, "mark"
    if not (a.proper and b.proper):
        return None
    if a.numbers != b.numbers:
        return Relation.UNSURE, why or "figures"
    if len(a.content) == len(b.content) <= 4 and sorted(a.content) == sorted(b.content):
        return Relation.SAME, "order"
    return None if listing or not (cues.person or not cues.known) else _by_name(a, b, cues)


def _by_name(a: Form, b: Form, cues: Cues) -> Verdict | None:
    if PLACE_FRONT & {*a.words[:1], *b.words[:1]} or max(len(a.words), len(b.words)) > 6:
        return None
    equal = same_name(a.words, b.words)
    if equal is not None:
        return decided(equal, "name")
    short, long = sorted((a, b), key=lambda form: len(form.words))
    surname = cues.person and short.words and long.words[-len(short.words) :] == short.words
    return (Relation.LIKELY, "surname") if surname else None


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
    """Return the labels as numbers, in the order in which they are first seen."""
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
    labellings = (zip(found, truth, strict=True), found, truth)
    joint, mine, theirs = (
        sum(count * (count - 1) // 2 for count in Counter(labels).values()) for labels in labellings
    )
    return 1.0 if mine + theirs == 0 else 2.0 * joint / (mine + theirs)


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
    """Join answers that are the same string after normalisation."""
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
    by_block: dict[str, list[int]] = {}
    for place, form in enumerate(forms):
        for block in form.blocks:
            by_block.setdefault(block, []).append(place)
    return sorted({pair for places in by_block.values() for pair in combinations(places, 2)})
