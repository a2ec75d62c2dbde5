"""Questions that unite up to three subjects with disjoint answers (Language, River)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations, zip_longest

import numpy as np

from calibrant.sources.mace.facts import FactSet
from calibrant.sources.mace.question import Question

_MOST_SUBJECTS = 3
# Combinations tried per candidate wanted: disjoint triples of the right size are common.
_TRIES = 40


def union_candidates(
    facts: FactSet,
    k: int,
    cap: int,
    *,
    foreign: Collection[str] = (),
    rng: np.random.Generator,
) -> list[Question]:
    """Return up to `cap` candidate questions with exactly `k` right answers.

    Parameters
    ----------
    facts
        Facts of one relation; the answers of a subject are taken as exhaustive.
    k
        Number of right answers.
    cap
        Largest number of candidates.
    foreign
        Answers that belong to another domain; a subject that has one is not asked about.
    rng
        Source of randomness.
    """
    sets = _usable(facts, k, frozenset(foreign))
    chosen: dict[tuple[str, ...], None] = {}
    for subjects in _subject_sets(sets, k, cap, rng):
        chosen.setdefault(subjects)
        if len(chosen) >= cap:
            break
    return [_question(facts, subjects) for subjects in chosen]


def _usable(facts: FactSet, k: int, foreign: frozenset[str]) -> dict[str, frozenset[str]]:
    sets = {subject: frozenset(facts.answers(subject)) for subject in facts.facts}
    return {
        subject: answers
        for subject, answers in sets.items()
        if 0 < len(answers) <= k and not answers & foreign
    }


def _subject_sets(
    sets: dict[str, frozenset[str]], k: int, cap: int, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """Yield subject sets whose united answers number k, by turns of one, two and three."""
    names = list(sets)
    if not names:
        return
    sizes = np.array([len(sets[name]) for name in names])
    singles = [(names[index],) for index in rng.permutation(np.flatnonzero(sizes == k))]
    kinds = [singles]
    for many in range(2, min(_MOST_SUBJECTS, k) + 1):
        draws = rng.integers(len(names), size=(cap * _TRIES, many))
        rows = draws[sizes[draws].sum(axis=1) == k][: 4 * cap]
        found = (tuple(sorted(names[index] for index in row)) for row in rows)
        kinds.append([subjects for subjects in found if _disjoint(sets, subjects)])
    for turn in zip_longest(*kinds):
        yield from (subjects for subjects in turn if subjects is not None)


def _disjoint(sets: dict[str, frozenset[str]], subjects: tuple[str, ...]) -> bool:
    return all(not sets[a] & sets[b] for a, b in combinations(subjects, 2))


def _question(facts: FactSet, subjects: tuple[str, ...]) -> Question:
    references = [names for subject in subjects for names in facts.answers(subject).values()]
    return Question(
        text=facts.wording.union_text(subjects),
        references=tuple(sorted(references)),
        domain=facts.domain,
        subtype=facts.relation,
        source=facts.source,
        date=facts.date,
        meta={"subjects": list(subjects)},
    )
