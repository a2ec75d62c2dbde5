"""Questions about one subject within bounds: widen the window until k answers are inside."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from calibrant.sources.mace.facts import Fact, FactSet
from calibrant.sources.mace.question import Question
from calibrant.sources.mace.wording import Bounds


def inside(facts: Collection[Fact], bounds: Bounds, *, touching: bool) -> set[str] | None:
    """Return the answers within the bounds, or None when a value is only partly inside.

    With `touching`, an uncertain value that shares an end with the window counts as partly
    inside; without it (rounded areas), sharing an end is no overlap.

    Examples
    --------
    >>> areas = [Fact("X", "A", 10.0, 20.0), Fact("X", "B", 20.0, 30.0)]
    >>> inside(areas, (10.0, 20.0), touching=False)
    {'a'}
    >>> inside(areas, (10.0, 25.0), touching=False) is None
    True
    """
    lower, upper = bounds
    found = set()
    for fact in facts:
        low, high = _span(fact)
        if lower <= low and high <= upper:
            found.add(fact.key)
        elif low == high or touching:
            if low <= upper and high >= lower:
                return None
        elif low < upper and high > lower:
            return None
    return found


def window_candidates(
    facts: FactSet,
    k: int,
    cap: int,
    *,
    foreign: Collection[str] = (),
    rng: np.random.Generator,
) -> list[Question]:
    """Return up to `cap` candidate questions with exactly `k` right answers.

    All windows between recorded values are tried; those with too many or too few answers, an
    answer of another domain, or a value that lies across an end are left out. An award's
    window is used only where every year in it is on record.
    """
    found = [
        (subject, bounds)
        for subject in facts.facts
        for bounds in _windows(facts, subject, k, frozenset(foreign))
    ]
    if len(found) > cap:
        chosen = np.sort(rng.choice(len(found), size=cap, replace=False))
        found = [found[index] for index in chosen]
    return [_question(facts, subject, bounds) for subject, bounds in found]


def _windows(facts: FactSet, subject: str, k: int, foreign: frozenset[str]) -> Iterator[Bounds]:
    members = facts.facts[subject]
    touching = facts.wording.unit != "area"
    lows = sorted({_span(fact)[0] for fact in members})
    highs = sorted({_span(fact)[1] for fact in members})
    for lower in lows:
        for upper in (high for high in highs if high >= lower):
            certain = {f.key for f in members if lower <= _span(f)[0] and _span(f)[1] <= upper}
            if len(certain) > k:
                break
            if facts.relation == "awarded_to" and not _recorded(lows, lower, upper):
                break
            if len(certain) == k and not certain & foreign:
                answers = inside(members, (lower, upper), touching=touching)
                if answers is not None:
                    yield lower, upper


def _recorded(years: list[float], lower: float, upper: float) -> bool:
    return sum(lower <= year <= upper for year in years) == upper - lower + 1


def _span(fact: Fact) -> Bounds:
    if fact.low is None or fact.high is None:
        raise AssertionError(f"a window needs facts with values, got {fact}")
    return fact.low, fact.high


def _question(facts: FactSet, subject: str, bounds: Bounds) -> Question:
    touching = facts.wording.unit != "area"
    keys = inside(facts.facts[subject], bounds, touching=touching) or set()
    names = facts.answers(subject)
    return Question(
        text=facts.wording.window_text(subject, bounds),
        references=tuple(sorted(names[key] for key in keys)),
        domain=facts.domain,
        subtype=facts.relation,
        source=facts.source,
        date=facts.date,
        meta={"subjects": [subject], "lower": bounds[0], "upper": bounds[1]},
    )
