"""Give every answer entity to one domain, so that no answer is right in two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from calibrant.sources.mace.facts import FactSet


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
