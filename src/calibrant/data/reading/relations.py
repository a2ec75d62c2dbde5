"""How columns relate: verified outcomes, thresholds, models side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from calibrant.data.reading.candidates import (
    Match,
    OutcomeCandidate,
    SaidCandidate,
    agreement,
    match,
)
from calibrant.data.reading.cells import Column
from calibrant.data.reading.names import share_a_stem, token_weights, tokens

_LEAST_ROWS, _LEAST_THRESHOLD = 20, 15
_SAME, _OPPOSITE, _OTHER = 0.97, 0.03, 0.85
_SETTLED = frozenset({"error", "word", "letters", "leftover", "decision"})


def verify(
    outcomes: Sequence[OutcomeCandidate],
    pairs: Sequence[OutcomeCandidate],
    columns: Mapping[str, Column],
) -> None:
    """Hold outcomes against pairs: a flag that says where two columns are equal is no guess."""
    for outcome in outcomes:
        if outcome.graded or outcome.happened:
            continue
        for pair in pairs[:8]:
            answers = columns[pair.answer].roles.answer
            if outcome.column in (pair.answer, pair.gold) or pair.score < 2.4 or answers < 1.4:
                continue
            if _settled_by(outcome, pair):
                break


def _settled_by(outcome: OutcomeCandidate, pair: OutcomeCandidate) -> bool:
    count, equal = agreement(outcome, pair)
    finite = pair.values[np.isfinite(pair.values) & np.isfinite(outcome.values)]
    if count < _LEAST_ROWS or not 0 < finite.mean() < 1:
        return False
    if equal > _SAME:
        outcome.score += 2
        outcome.verified = True
        outcome.doubt = "" if outcome.doubt in _SETTLED else outcome.doubt
        outcome.notes += (
            f"{outcome.column} agrees with {pair.column} in {equal:.0%} of the rows.",
        )
        pair.same = outcome.column
        return True
    if pair.closed and pair.score >= 3 and outcome.score >= 2:
        if equal < _OPPOSITE:
            outcome.doubt = outcome.doubt or "direction"
            outcome.notes += (f"{outcome.column} is the opposite of {pair.column}.",)
            return True
        if equal < _OTHER:
            outcome.conflict = pair
            return True
    return False


def lift_by_association(
    scores: Sequence[SaidCandidate],
    outcomes: Sequence[OutcomeCandidate],
    columns: Mapping[str, Column],
) -> None:
    """Lift nameless columns that go together to where somebody is asked, never to be taken."""
    for candidate in scores[:12]:
        for outcome in outcomes[:12]:
            if outcome.column == candidate.column:
                continue
            hit = match(candidate, outcome)
            if abs(hit.z) <= 5 or not 0.001 < hit.auroc < 0.999:
                continue
            column = columns[outcome.column]
            weak = 0.5 < outcome.score < 2 and not column.roles.names_answer
            if candidate.score >= 2 and candidate.named >= 1 and weak:
                outcome.score, outcome.doubt = 2.0, outcome.doubt or "unsure"
            peer = columns[candidate.column].roles.other if candidate.column in columns else 0
            nameless = candidate.named < 1 and candidate.score < 2.2 and peer < 2
            if outcome.score >= 2.05 and nameless:
                candidate.score, candidate.doubt = 2.2, candidate.doubt or "unsure"


def lift_neutral(
    scores: Sequence[SaidCandidate],
    outcomes: Sequence[OutcomeCandidate],
    columns: Mapping[str, Column],
) -> None:
    """Lift a share and a yes or no that go together where no name says anything: it is asked."""
    if any(c.score >= 2 for c in scores) or any(o.score >= 1.9 for o in outcomes):
        return
    for candidate in scores[:12]:
        for outcome in outcomes[:12]:
            roles = columns[outcome.column].roles
            own = columns[candidate.column].roles
            peer = max(roles.other, roles.text, roles.names_answer, own.other)
            shares = candidate.scale in ("fraction", "percent") and not candidate.doubt
            if peer or not shares or outcome.column == candidate.column or outcome.graded:
                continue
            hit = match(candidate, outcome)
            if abs(hit.z) > 5 and not is_threshold(candidate, outcome, hit):
                candidate.score, candidate.doubt = max(candidate.score, 2.2), "unsure"
                outcome.score, outcome.doubt = max(outcome.score, 2.0), "unsure"


def are_linked(confidence: SaidCandidate, outcome: OutcomeCandidate) -> bool:
    """Return whether the names of the two belong together: `x` and `x_outcome`, a shared stem."""
    left, right = (
        re.sub(r"\W|_", "", name.lower()) for name in (confidence.column, outcome.column)
    )
    words = tokens(confidence.column)
    if right.startswith(left) or share_a_stem(words, tokens(outcome.column)):
        return True
    return outcome.happened and share_a_stem(words, outcome.right)


def is_threshold(confidence: SaidCandidate, outcome: OutcomeCandidate, found: Match) -> bool:
    """Return whether an outcome is made of the confidence itself."""
    if outcome.pair or outcome.graded or found.n < _LEAST_THRESHOLD or not 0 < found.right < 1:
        return False
    several = np.unique(confidence.values[np.isfinite(confidence.values)]).size > 4
    return several and not 0.001 < found.auroc < 0.999


def is_verdict(confidence: SaidCandidate, outcome: OutcomeCandidate) -> bool:
    """Return whether an outcome is what a probability says when it is rounded."""
    both = np.isfinite(confidence.values) & np.isfinite(outcome.values)
    equal = (confidence.values[both] > 0.5) == (outcome.values[both] > 0.5)
    return bool(both.any() and equal.mean() > 0.99)


def is_of_one_class(
    confidence: SaidCandidate, outcome: OutcomeCandidate, columns: Mapping[str, Column]
) -> bool:
    """Return whether a score is that of one class, not of the answer that was given."""
    answer = columns.get(outcome.answer)
    if (
        answer is None
        or confidence.probs
        or confidence.scale != "fraction"
        or len(answer.words) != 2
    ):
        return False
    one = (answer.text == next(iter(answer.words))).fill_null(False).to_numpy().astype(float)
    area = match(confidence, OutcomeCandidate(answer.name, 0.0, one)).auroc
    return not 0.002 < area < 0.998 and answer.height >= _LEAST_THRESHOLD


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
    return _by_place(columns, said, outcomes)


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
