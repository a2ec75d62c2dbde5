"""Facts: subject, object and the value that a question's bounds are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from calibrant.bench.questions.question import normalised
from calibrant.bench.questions.wording import WORDINGS, Wording
from calibrant.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Fact:
    """One triple: `subject` has `obj`, where known with a value.

    A value known only within bounds (an area rounded to a class, a name with several
    spellings) has `low` < `high`; a question then never cuts through it.
    """

    subject: str
    obj: str
    low: float | None = None
    high: float | None = None
    aliases: tuple[str, ...] = ()
    subject_id: str | None = None

    @property
    def key(self) -> str:
        """The object's name in the form that decides identity."""
        return normalised(self.obj)


@dataclass(frozen=True, slots=True)
class FactSet:
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
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stages: Mapping[str, int] = field(default_factory=dict)
    date: str = ""
    complete: bool = True
    completeness: str = "complete as given: whoever gives the facts vouches for them"
    own_wording: Wording | None = None
    symmetric: bool = False
    second: Mapping[str, frozenset[str]] = field(default_factory=dict)
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
        names: dict[str, tuple[str, ...]] = {}
        for fact in self.facts[subject]:
            known = names.get(fact.key, (fact.obj,))
            names[fact.key] = tuple(dict.fromkeys((*known, fact.obj, *fact.aliases)))
        return names

    def entities(self) -> Counter[str]:
        """Return how many subjects have each object."""
        return Counter(
            key for subject in self.facts for key in {fact.key for fact in self.facts[subject]}
        )


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
