"""Models side by side: columns whose names differ only in the word for their role."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from calibrant.data.reading.candidates import OutcomeCandidate, SaidCandidate
from calibrant.data.reading.columns import Column
from calibrant.data.reading.names import token_weights, tokens

SAID_ROLES, GRADE_ROLES = frozenset({"confidence", "logprob"}), frozenset({"right", "wrong"})
_LEAST = 1.5
Beside = tuple[str, SaidCandidate, OutcomeCandidate]


def model_of(name: str, roles: frozenset[str]) -> str:
    """Return a name without the words for a role; empty where nothing is left.

    Examples
    --------
    >>> model_of("GPT-4o confidence (%)", frozenset({"confidence"})), model_of("conf", SAID_ROLES)
    ('GPT-4o', '')
    """
    bare = re.sub(r"\s*[(\[{][^)\]}]*[)\]}]", "", name)
    bare = bare if _roleless(bare, roles) else re.sub(r"[(\[{)\]}]", " ", name)
    pieces = re.split(r"([\s_.:/|?!,;–-]+)", bare)
    selection = [piece for piece in pieces if not _says(piece, roles)]
    return "".join(selection).strip(" \t_-–.,:;/|?!%()[]{}") if len(selection) < len(pieces) else ""


def _says(piece: str, roles: frozenset[str]) -> bool:
    words = tokens(piece)
    return bool(words) and all(roles & {*token_weights(word)} or word == "is" for word in words)


def _roleless(name: str, roles: frozenset[str]) -> bool:
    words = tokens(name)
    return any(not roles & {*token_weights(word)} and word != "is" for word in words)


def models_beside(
    columns: Sequence[Column], said: Iterable[SaidCandidate], outcomes: Iterable[OutcomeCandidate]
) -> list[Beside]:
    """Return the confidence and outcome of each model, where at least two have both."""
    said = [c for c in said if c.score >= _LEAST]
    outcomes = [o for o in outcomes if o.score >= _LEAST and not o.pair]
    by_model: dict[str, list[SaidCandidate]] = {}
    graded: dict[str, list[OutcomeCandidate]] = {}
    for candidate in said:
        if model := model_key(candidate.column, SAID_ROLES):
            by_model.setdefault(model, []).append(candidate)
    for outcome in outcomes:
        if model := model_key(outcome.column, GRADE_ROLES):
            graded.setdefault(model, []).append(outcome)
    pair = [key for key in by_model if key in graded]
    alone = all(len(by_model[key]) == 1 == len(graded[key]) for key in pair)
    if len(pair) >= 2 and alone and not _some_are_left(said, outcomes, by_model, graded):
        place = {column.name: n for n, column in enumerate(columns)}
        matches = [
            (model_of(by_model[k][0].column, SAID_ROLES), by_model[k][0], graded[k][0])
            for k in pair
        ]
        return sorted(matches, key=lambda triple: place[triple[1].column])
    return _by_prefix(said, outcomes) or _by_place(columns, said, outcomes)


def model_key(name: str, roles: frozenset[str]) -> str:
    """Return what names of one model's columns share; empty where a name says a role alone."""
    return " ".join(tokens(model_of(name, roles)))


def _some_are_left(
    confidence: Sequence[SaidCandidate],
    outcomes: Sequence[OutcomeCandidate],
    by_model: dict[str, list[SaidCandidate]],
    graded: dict[str, list[OutcomeCandidate]],
) -> bool:
    """Return whether a strong confidence has no outcome of its model: then somebody is asked."""
    strong = {c.column for c in confidence if c.score >= 3}
    matched = {c.column for key, subset in by_model.items() if key in graded for c in subset}
    plain = [o for o in outcomes if o.score >= 2.6 and not model_of(o.column, GRADE_ROLES)]
    return bool(strong - matched) or (bool(plain) and len(plain) < len(outcomes) - len(matched))


def _by_prefix(
    confidence: Sequence[SaidCandidate], outcomes: Sequence[OutcomeCandidate]
) -> list[Beside]:
    """Return `x` beside `x_outcome`, where at least two are named so."""
    matches = []
    for candidate in confidence:
        own = [o for o in outcomes if o.column.lower().startswith(candidate.column.lower() + "_")]
        if len(own) == 1:
            name = re.sub(r"^(?:prob|p|conf)(?=[a-z])", "", candidate.column, flags=re.I)
            matches.append((name, candidate, own[0]))
    return matches if len(matches) >= 2 else []


def _by_place(
    columns: Sequence[Column],
    confidence: Iterable[SaidCandidate],
    outcomes: Iterable[OutcomeCandidate],
) -> list[Beside]:
    """Return numbers that each have the same outcome column right after them: `ok`, `ok [2]`."""
    by_said, by_outcome = {c.column: c for c in confidence}, {o.column: o for o in outcomes}
    matches = [
        (re.sub(r" \[\d+\]$", "", left.name), by_said[left.name], by_outcome[right.name])
        for left, right in pairwise(columns)
        if left.name in by_said and right.name in by_outcome and not left.roles.other
    ]
    called = {re.sub(r" \[\d+\]$", "", outcome.column) for _, _, outcome in matches}
    return matches if len(matches) >= 2 and len(called) == 1 else []
