"""Facts: subject, object, the value that bounds are about, and other things of the kind."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from calibrant.bench.questions.question import BenchQuestion, normalised
from calibrant.bench.questions.wording import WORDINGS, Bounds, Wording
from calibrant.core.errors import InputError


class Fact(Struct, frozen=True):
    """One triple: `subject` has `obj`, where known with a value.

    A value known only within bounds (an area rounded to a class, a name with several
    spellings) has `low` < `high`; a question then never cuts through it.
    """

    subject: str
    obj: str
    low: float | None = None
    high: float | None = None
    aliases: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The object's name in the form that decides identity."""
        return normalised(self.obj)

    @property
    def span(self) -> Bounds:
        """The ends of the value."""
        if self.low is None or self.high is None:
            raise AssertionError(f"a window needs facts with values, got {self}")
        return self.low, self.high


class FactSet(Struct, frozen=True):
    """All facts of one relation, with what reading and filtering them dropped.

    Parameters
    ----------
    domain, relation
        For example ``language`` and ``official_in``; the relation decides the wording.
    source
        Where the facts come from, in words.
    facts
        Facts of every subject.
    dropped
        Stage, then reason, then number of subjects dropped.
    stages
        Stage, then number of subjects left after it.
    date
        When the facts were written down.
    complete, completeness
        Whether every right answer of every subject is listed, and why that is so. Only complete
        relations are asked for 'exactly k'.
    own_wording
        The frame of the questions; None: the one registered for the relation.
    symmetric
        Whether A has B exactly where B has A, as for borders.
    second, second_source
        What another source says: the objects of every subject, all in their normal form.
    """

    domain: str
    relation: str
    source: str
    facts: Mapping[str, tuple[Fact, ...]]
    dropped: Mapping[str, Mapping[str, int]] = {}
    stages: Mapping[str, int] = {}
    date: str = ""
    complete: bool = True
    completeness: str = "complete as given: whoever gives the facts vouches for them"
    own_wording: Wording | None = None
    symmetric: bool = False
    second: Mapping[str, frozenset[str]] = {}
    second_source: str = ""

    @property
    def wording(self) -> Wording:
        """The frame of the questions."""
        return self.own_wording or WORDINGS[self.relation]

    def require_complete(self) -> None:
        """Refuse a relation whose lists of answers may have gaps: 'exactly k' would be false."""
        if not self.complete:
            raise InputError(
                f"the relation {self.relation!r} is declared incomplete ({self.completeness}), "
                "so 'exactly k right answers' would be false",
                source=self.source,
                hint="set complete = true once every right answer of every subject is listed",
            )

    def answers(self, subject: str) -> dict[str, tuple[str, ...]]:
        """Return the subject's objects by key, each with all its names."""
        return _names(self.facts[subject])

    def inside(self, subject: str, bounds: Bounds) -> set[str] | None:
        """Return the keys of the subject's objects within bounds; None where one is partly inside.

        An uncertain value that shares an end with the window counts as partly inside. For areas,
        which are rounded, sharing an end is no overlap.

        Examples
        --------
        >>> areas = (Fact("X", "A", 10.0, 20.0), Fact("X", "B", 20.0, 30.0))
        >>> regions = FactSet("region", "division_of", "a list", {"X": areas})
        >>> regions.inside("X", (10.0, 20.0))
        {'a'}
        >>> regions.inside("X", (10.0, 25.0)) is None
        True
        """
        (lower, upper), touching = bounds, self.wording.unit != "area"
        keys = set()
        for fact in self.facts[subject]:
            low, high = fact.span
            if lower <= low and high <= upper:
                keys.add(fact.key)
            elif low == high or touching:
                if low <= upper and high >= lower:
                    return None
            elif low < upper and high > lower:
                return None
        return keys

    def question(
        self, text: str, references: Iterable[tuple[str, ...]], meta: Mapping[str, Any]
    ) -> BenchQuestion:
        """Return a question about these facts."""
        return BenchQuestion(
            text=text,
            references=tuple(sorted(references)),
            domain=self.domain,
            subtype=self.relation,
            source=self.source,
            date=self.date,
            meta=meta,
        )

    def entities(self) -> Counter[str]:
        """Return how many subjects have each object."""
        return Counter(
            key for subject in self.facts for key in {fact.key for fact in self.facts[subject]}
        )


def by_subject(facts: Iterable[Fact]) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every subject, in the order of their names."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[fact.subject].append(fact)
    return {subject: tuple(groups[subject]) for subject in sorted(groups)}


def _names(facts: Iterable[Fact]) -> dict[str, tuple[str, ...]]:
    """Return all names of every object by its key."""
    names: dict[str, tuple[str, ...]] = {}
    for fact in facts:
        earlier = names.get(fact.key, ())
        names[fact.key] = tuple(dict.fromkeys((*earlier, fact.obj, *fact.aliases)))
    return names


def foreign_entities(sets: Mapping[str, Sequence[FactSet]]) -> dict[str, frozenset[str]]:
    """Return for every domain the entities that belong to another one.

    An entity that is an answer in several domains goes to the one that would lose the largest
    share of its subjects without it; subjects with this answer alone weigh most, because only
    they make questions with one right answer.
    """
    weights = {domain: _weights(parts) for domain, parts in sets.items()}
    foreign: dict[str, set[str]] = {domain: set() for domain in sets}
    for entity in sorted(set().union(*weights.values())):
        holders = [domain for domain in sets if entity in weights[domain]]
        owner = max(holders, key=lambda domain: (weights[domain][entity], domain))
        for domain in holders:
            if domain != owner:
                foreign[domain].add(entity)
    return {domain: frozenset(entities) for domain, entities in foreign.items()}


def _weights(parts: Sequence[FactSet]) -> dict[str, float]:
    """Return the share of a domain's subjects that stands or falls with each entity."""
    alone: Counter[str] = Counter()
    among: Counter[str] = Counter()
    for facts in parts:
        for subject in facts.facts:
            keys = {fact.key for fact in facts.facts[subject]}
            (alone if len(keys) == 1 else among).update(keys)
    return {
        entity: (alone[entity] + 0.1 * among[entity]) / max(1, alone.total() + 0.1 * among.total())
        for entity in alone | among
    }


MOST_SIBLINGS = 24
# Half of the list at most is for names alike, so that the usual wrong answers stay in it.
_MOST_ALIKE = 12
_LEAST_ALIKE = 0.3


class SiblingNames:
    """The objects of a relation, ready to be told apart from the right answers of a question.

    Names alike come first, because only these can be taken for a right answer; then the other
    objects of the question's own subject; then those with the most subjects, which a model
    names most often.

    Parameters
    ----------
    facts
        Facts of one relation.

    Examples
    --------
    >>> from calibrant.bench.questions.facts import Fact
    >>> rows = {"Inn": ["Austria"], "Congo": ["Republic of the Congo"],
    ...         "Ubangi": ["Democratic Republic of the Congo", "Austria"]}
    >>> facts = {name: tuple(Fact(name, obj) for obj in found) for name, found in rows.items()}
    >>> names = SiblingNames(FactSet("river", "flows_through", "a list", facts))
    >>> names.of([facts["Congo"][0].key])
    ('Democratic Republic of the Congo', 'Austria')
    """

    def __init__(self, facts: FactSet) -> None:
        self._facts = facts
        self._names = _names(chain.from_iterable(facts.facts.values()))
        subjects = facts.entities()
        self._ranked = sorted(self._names, key=lambda key: (-subjects[key], key))
        self._forms = {k: {normalised(n) for n in names} for k, names in self._names.items()}
        self._pieces = {key: _pieces(names[0]) for key, names in self._names.items()}
        self._with_piece: dict[str, list[str]] = defaultdict(list)
        for key in self._ranked:
            for piece in self._pieces[key]:
                self._with_piece[piece].append(key)
        # Questions share their answers: what is alike is looked for once for each.
        self._alike_to: dict[str, dict[str, float]] = {}

    @property
    def known(self) -> Collection[str]:
        """Keys of all objects."""
        return self._names.keys()

    def with_siblings(self, question: BenchQuestion) -> BenchQuestion:
        """Return a question of these facts with the names of its wrong answers.

        The other objects of its subjects come early only where it has bounds: a question about
        several subjects asks for all that they have.
        """
        near = question.meta["subjects"] if self._facts.wording.bounded else ()
        right = [normalised(names[0]) for names in question.references]
        return replace(question, siblings=self.of(right, near))

    def of(self, right: Collection[str], near: Collection[str] = ()) -> tuple[str, ...]:
        """Return the names of up to 24 other objects, known not to be among the `right` keys.

        Parameters
        ----------
        right
            Keys of the right answers. An object that shares a name with one of them is left out.
        near
            Subjects of the question.
        """
        selection = set().union(*(self._forms[key] for key in right))
        close = (fact.key for subject in near for fact in self._facts.facts[subject])
        every = chain(islice(self._alike(right, selection), _MOST_ALIKE), close, self._ranked)
        free = (key for key in dict.fromkeys(every) if not self._forms[key] & selection)
        return tuple(self._names[key][0] for key in islice(free, MOST_SIBLINGS))

    def _alike(self, right: Iterable[str], selection: set[str]) -> Iterator[str]:
        """Yield objects whose names share many pieces with a right answer's, the most first."""
        likeness: dict[str, float] = {}
        for answer in right:
            if answer not in self._alike_to:
                self._alike_to[answer] = self._likeness(answer)
            for key, share in self._alike_to[answer].items():
                likeness[key] = max(likeness.get(key, 0.0), share)
        alike = [key for key in likeness if not self._forms[key] & selection]
        yield from sorted(alike, key=lambda key: (-likeness[key], key))

    def _likeness(self, answer: str) -> dict[str, float]:
        """Return the objects that are alike to an answer: the share of pieces they have in common.

        Of the shorter name: 'Virginia' is wholly inside 'West Virginia'.
        """
        pieces = self._pieces[answer]
        shared: Counter[str] = Counter()
        for piece in pieces:
            shared.update(self._with_piece[piece])
        shares = {k: n / min(len(pieces), len(self._pieces[k])) for k, n in shared.items()}
        return {key: share for key, share in shares.items() if share >= _LEAST_ALIKE}


def _pieces(name: str) -> frozenset[str]:
    """Return the letters of a name in overlapping threes, and its words."""
    words = name.lower().split()
    text = f" {' '.join(words)} "
    return frozenset(text[i : i + 3] for i in range(len(text) - 2)) | frozenset(words)
