"""What else a table may say: rivals of the best reading, its direction, its scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import structs

from calibrant.data.reading import FRACTION, PERCENT
from calibrant.data.reading.candidates import (
    LEVELS,
    MIXED,
    OutcomeCandidate,
    ReadingChoice,
    SaidCandidate,
    say_the_same,
)
from calibrant.data.reading.cells import Column, to_scale
from calibrant.data.reading.likely_columns import turned
from calibrant.data.reading.names import name_roles
from calibrant.data.reading.relations import are_linked

# A reading is taken only from these scores on, and where no other is within the margin.
SAID_LEAST, OUTCOME_LEAST = 3.0, 2.6
MARGIN, ROLE_MARGIN = 1.5, 1.2
_CORE, _SURELY = 2.9, 5
_PLAIN = frozenset(["correct", "pass", "passed", "👍", "right", "✓", "thumbs_up"])


def rivals(best: ReadingChoice, choices: Sequence[ReadingChoice]) -> list[ReadingChoice]:
    """Return the readings that the best one is not clear of."""
    mine, near = {confidence.column for confidence in best.said}, []
    for rival in choices[1:]:
        confidence, outcome = rival.said[0], rival.outcome
        if rival.models or (outcome is best.outcome and confidence.column in mine):
            continue
        if confidence.score < 2 or outcome.score < 1.9:
            continue
        if _beats(best, rival, mine):
            continue
        near.append(rival)
    return near


def _beats(best: ReadingChoice, rival: ReadingChoice, mine: set[str]) -> bool:
    """Return whether the best reading is clear of another."""
    confidence, outcome, first = rival.said[0], rival.outcome, best.said[0]
    owner = "whose" in best.doubts and outcome is best.outcome and "whose" not in rival.doubts
    explicit = not outcome.pair and outcome.score >= 2 and not outcome.graded
    outranked = best.outcome.pair and explicit and confidence.column in mine
    outranked = outranked or ("which" in best.doubts and explicit and outcome.score >= 2.9)
    if best.score - rival.score >= MARGIN and not owner and not outranked:
        return True
    peer = outcome is not best.outcome
    distance = best.outcome.score - outcome.score >= ROLE_MARGIN
    if peer and confidence.column in mine and distance and not outranked:
        return True
    if peer and say_the_same(best.outcome, outcome):
        return True
    return not peer and first.score - confidence.score >= ROLE_MARGIN and not owner


def is_weak(
    best: ReadingChoice, near: Sequence[ReadingChoice], is_alone: Callable[[OutcomeCandidate], bool]
) -> bool:
    """Return whether names and content together do not carry the reading."""
    confidence, outcome, result = best.said[0], best.outcome, best.match
    weak = confidence.score < SAID_LEAST or outcome.score < OUTCOME_LEAST
    if confidence.probs or result is None:
        return weak
    agrees = result.auroc > 0.55 and result.z > 3
    if outcome.pair:
        return weak or (confidence.named < 2 and not agrees)
    roles = name_roles(outcome.column)
    is_known = outcome.score >= 3.2 and bool({*outcome.right} & _PLAIN)
    core = roles.graded >= 2.9 or outcome.verified or is_known
    linked = are_linked(confidence, outcome)
    surely = linked and agrees and result.z > 4
    if surely and confidence.score >= 2.5 and outcome.score >= 1.9 and not outcome.doubt:
        weak = False
    if surely and outcome.doubt == "unsure" and not outcome.notes:
        best.doubts = tuple(doubt for doubt in best.doubts if doubt != "unsure")
    # A similarity to the right answer goes with the outcome, and is no confidence.
    measurements = name_roles(confidence.column).measure and not linked
    if confidence.named < 2 and (measurements or not (agrees and (core or linked))):
        weak = True
    if not core and not linked and not agrees:
        weak = True
    if agrees and confidence.named >= 2.5 and not near and is_alone(outcome):
        return False
    strong = confidence.named >= 2.5 and not outcome.doubt and outcome.score >= 2 and not near
    if weak and strong and roles.right >= 1 > roles.gold and result.auroc > 0.6 and result.z > 4:
        best.notes += (f"{outcome.column} goes with the confidence: it is the outcome.",)
        return False
    return weak


def is_turned(choice: ReadingChoice) -> bool:
    """Return whether confidence is higher where a column with a neutral name says wrong."""
    result, outcome = choice.match, choice.outcome
    is_known = outcome.pair or outcome.verified or name_roles(outcome.column).graded >= _CORE
    return result is not None and result.z < -_SURELY and not is_known


def by_evidence(choices: Sequence[ReadingChoice]) -> list[ReadingChoice]:
    """Return readings in the order of what speaks for them, beside names how well they go together.

    Whose confidence it is, and what was done with an answer, is asked about last.
    """

    def weight(choice: ReadingChoice) -> float:
        result = choice.matches[0]
        neutral = not (choice.outcome.pair or name_roles(choice.outcome.column).graded >= _CORE)
        joint = 1.5 * ((result.z > _SURELY) - (result.z < -_SURELY)) if neutral else 0.0
        strange = 1.5 * bool({"whose", "decision"} & {choice.said[0].doubt, choice.outcome.doubt})
        return choice.score + joint - strange

    return sorted(choices, key=weight, reverse=True)


def graded_first(choices: Sequence[ReadingChoice]) -> tuple[ReadingChoice, ...]:
    """Return readings with a column of grades before the one that compares two columns."""
    first = choices[0]
    if not first.outcome.pair:
        return tuple(choices)
    graded = [
        choice
        for choice in choices
        if not (choice.outcome.pair or choice.doubts or choice.outcome.doubt)
        and choice.said[0].column == first.said[0].column
        and choice.outcome.score >= OUTCOME_LEAST
    ]
    return (*graded, *(choice for choice in choices if choice not in graded))


_OF_OUTCOME = frozenset({"direction", "error", "word", "letters", "decision", "unsure"})


def variants(
    best: ReadingChoice, doubts: Sequence[str], columns: Mapping[str, Column]
) -> list[ReadingChoice]:
    """Return the readings that differ from the best one in what is doubtful."""
    request = {*doubts}
    matches = []
    if request & _OF_OUTCOME and not best.outcome.pair:
        matches += _turned(best, request, columns)
    confidence = best.said[0]
    column = columns.get(confidence.column)
    if column is None or best.models:
        return matches
    if LEVELS in request:
        low, _, high = confidence.scale.partition("-")
        peer = "0" if low == "1" else "1"
        lowest = np.min(column.numbers[column.numbers >= 0], initial=float(high))
        if float(peer) <= lowest:
            matches = [_on_scale(best, column, f"{peer}-{high}"), *matches]
        if high == "10":
            matches.append(_on_scale(best, column, PERCENT))
    if MIXED in request:
        matches = [_on_scale(best, column, PERCENT), *matches]
    if "uncertainty" in request:
        note = f"{confidence.column} says how sure the model was."
        matches = [_on_scale(best, column, FRACTION, note), *matches]
    return matches


def _on_scale(best: ReadingChoice, column: Column, scale: str, note: str = "") -> ReadingChoice:
    confidence = best.said[0]
    values = to_scale(column.cells.values, column.cells.marked, scale)
    notes = (note or f"{column.name} is written as {scale}.",)
    peer = structs.replace(confidence, scale=scale, values=values, doubt="", notes=notes)
    return structs.replace(best, said=(peer,), notes=(*notes, *best.outcome.notes), doubts=())


def _turned(
    best: ReadingChoice, request: set[str], columns: Mapping[str, Column]
) -> list[ReadingChoice]:
    """Return the reading with right and wrong, or sure and unsure, exchanged."""
    confidence, outcome = best.said[0], best.outcome
    flipped = turned(outcome)
    weak = confidence.named < 2 and confidence.scale in (FRACTION, PERCENT)
    roles = columns[outcome.column].roles
    if "direction" in request and weak and (outcome.verified or roles.graded >= 2):
        return [_unsure(best)]
    reverse = structs.replace(best, outcome=flipped, notes=(*confidence.notes, *flipped.notes))
    unsure_outcome = roles.graded < 2.9 and not outcome.verified
    if not (weak and unsure_outcome):
        return [reverse]
    if best.match is not None and best.match.auroc >= 0.5:
        pair = _unsure(reverse)
        return [pair, reverse]
    return [reverse, _unsure(best)]


def _unsure(choice: ReadingChoice) -> ReadingChoice:
    confidence: SaidCandidate = choice.said[0]
    note = (
        f"{confidence.column} says how unsure the model was: confidence is 1 - {confidence.column}."
    )
    peer = structs.replace(
        confidence, scale="uncertainty", values=1 - confidence.values, doubt="", notes=(note,)
    )
    return structs.replace(choice, said=(peer,), notes=(note, *choice.outcome.notes), doubts=())
