"""The other answers to a question about a reading: the other direction, the other scale."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from calibrant.data.reading.candidates import Choice, SaidCandidate
from calibrant.data.reading.cells import to_scale
from calibrant.data.reading.columns import Column
from calibrant.data.reading.outcomes import turned
from calibrant.data.reading.record import FRACTION, PERCENT
from calibrant.data.reading.scales import LEVELS, MIXED

_OF_OUTCOME = frozenset({"direction", "error", "word", "letters", "decision", "unsure"})


def variants(best: Choice, doubts: Sequence[str], columns: Mapping[str, Column]) -> list[Choice]:
    """Return the readings that differ from the best one in what is doubtful."""
    asked = {*doubts}
    found = []
    if asked & _OF_OUTCOME and not best.outcome.pair:
        found += _turned(best, asked, columns)
    said = best.said[0]
    column = columns.get(said.column)
    if column is None or best.models:
        return found
    if LEVELS in asked:
        low, _, high = said.scale.partition("-")
        other = "0" if low == "1" else "1"
        found = [_on_scale(best, column, f"{other}-{high}"), *found]
        if high == "10":
            found.append(_on_scale(best, column, PERCENT))
    if MIXED in asked:
        found = [_on_scale(best, column, PERCENT), *found]
    if "uncertainty" in asked:
        note = f"{said.column} says how sure the model was."
        found = [_on_scale(best, column, FRACTION, note), *found]
    return found


def _on_scale(best: Choice, column: Column, scale: str, note: str = "") -> Choice:
    said = best.said[0]
    values = to_scale(column.cells.values, column.cells.marked, scale)
    notes = (note or f"{column.name} is written as {scale}.",)
    other = structs.replace(said, scale=scale, values=values, doubt="", notes=notes)
    return structs.replace(best, said=(other,), notes=(*notes, *best.outcome.notes), doubts=())


def _turned(best: Choice, asked: set[str], columns: Mapping[str, Column]) -> list[Choice]:
    """Return the reading with right and wrong, or sure and unsure, exchanged."""
    said, outcome = best.said[0], best.outcome
    flipped = turned(outcome)
    weak = said.named < 2 and said.scale in (FRACTION, PERCENT)
    roles = columns[outcome.column].roles
    if "direction" in asked and weak and (outcome.verified or roles.graded >= 2):
        return [_unsure(best)]
    reverse = structs.replace(best, outcome=flipped, notes=(*said.notes, *flipped.notes))
    unsure_outcome = roles.graded < 2.9 and not outcome.verified
    if not (weak and unsure_outcome):
        return [reverse]
    if best.match is not None and best.match.auroc >= 0.5:
        both = _unsure(reverse)
        return [both, reverse]
    return [reverse, _unsure(best)]


def _unsure(choice: Choice) -> Choice:
    said: SaidCandidate = choice.said[0]
    note = f"{said.column} says how unsure the model was: confidence is 1 - {said.column}."
    other = structs.replace(
        said, scale="uncertainty", values=1 - said.values, doubt="", notes=(note,)
    )
    return structs.replace(choice, said=(other,), notes=(note, *choice.outcome.notes), doubts=())
