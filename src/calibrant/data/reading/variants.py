"""The other answers to a question about a reading: the other direction, the other scale."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import structs

from calibrant.data.reading.candidates import ReadingChoice, SaidCandidate
from calibrant.data.reading.cells import to_scale
from calibrant.data.reading.columns import Column
from calibrant.data.reading.outcomes import turned
from calibrant.data.reading.record import FRACTION, PERCENT
from calibrant.data.reading.scales import LEVELS, MIXED

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
