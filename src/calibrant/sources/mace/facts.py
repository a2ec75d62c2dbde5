"""Facts: subject, object and the value that a question's bounds are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrant.sources.mace.names import normalised

__all__ = ["Fact", "FactSet"]


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
    """

    domain: str
    relation: str
    source: str
    facts: Mapping[str, tuple[Fact, ...]]
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stages: Mapping[str, int] = field(default_factory=dict)

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
