"""How columns and readings relate: verified outcomes, thresholds, rivals, variants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from msgspec import structs

from calibrant.data.reading import FRACTION, PERCENT
from calibrant.data.reading.candidates import (
    Match,
    OutcomeCandidate,
    ReadingChoice,
    SaidCandidate,
    agreement,
    match,
    say_the_same,
)
from calibrant.data.reading.cells import Column
from calibrant.data.reading.likely_columns import turned, unsure_note
from calibrant.data.reading.names import name_roles, share_a_stem, tokens
from calibrant.data.reading.scales import LEVELS, MIXED, to_scale

_LEAST_ROWS, _LEAST_THRESHOLD = 20, 15
_SAME, _OPPOSITE, _OTHER = 0.97, 0.03, 0.85
_SETTLED = frozenset({"error", "word", "letters", "leftover", "decision"})


def verify(outcomes: Sequence[OutcomeCandidate], pairs: Sequence[OutcomeCandidate]) -> None:
    """Hold outcomes against pairs: a flag that says where two columns are equal is no guess."""
    for outcome in outcomes:
        if outcome.graded or outcome.happened:
            continue
        for pair in pairs[:8]:
            own = outcome.column in (pair.answer, pair.gold) or pair.score < 2.4
            if not own and name_roles(pair.answer).answer >= 1.4 and _settled_by(outcome, pair):
                break


def _settled_by(outcome: OutcomeCandidate, pair: OutcomeCandidate) -> bool:
    count, equal = agreement(outcome, pair)
    finite = pair.values[np.isfinite(pair.values) & np.isfinite(outcome.values)]
    if count < _LEAST_ROWS or not 0 < finite.mean() < 1:
        return False
    strong, name = pair.closed and pair.score >= 3 and outcome.score >= 2, outcome.column
    if equal > _SAME:
        outcome.score, outcome.verified, pair.same = outcome.score + 2, True, name
        outcome.doubt = "" if outcome.doubt in _SETTLED else outcome.doubt
        outcome.notes += (f"{name} agrees with {pair.column} in {equal:.0%} of the rows.",)
    elif strong and equal < _OPPOSITE:
        outcome.doubt = outcome.doubt or "direction"
        outcome.notes += (f"{name} is the opposite of {pair.column}.",)
    elif strong and equal < _OTHER:
        outcome.conflict = pair
    else:
        return False
    return True


def lift_by_association(
    scores: Sequence[SaidCandidate], outcomes: Sequence[OutcomeCandidate]
) -> None:
    """Lift nameless columns that go together to where somebody is asked, never to be taken."""
    for candidate, outcome in _apart(scores, outcomes):
        hit = match(candidate, outcome)
        if abs(hit.z) <= 5 or not 0.001 < hit.auroc < 0.999:
            continue
        weak = 0.5 < outcome.score < 2 and not name_roles(outcome.column).names_answer
        if candidate.score >= 2 and candidate.named >= 1 and weak:
            outcome.score, outcome.doubt = 2.0, outcome.doubt or "unsure"
        nameless = candidate.named < 1 and candidate.score < 2.2
        if outcome.score >= 2.05 and nameless and name_roles(candidate.column).other < 2:
            candidate.score, candidate.doubt = 2.2, candidate.doubt or "unsure"


def lift_neutral(scores: Sequence[SaidCandidate], outcomes: Sequence[OutcomeCandidate]) -> None:
    """Lift a share and a yes or no that go together where no name says anything: it is asked."""
    if any(c.score >= 2 for c in scores) or any(o.score >= 1.9 for o in outcomes):
        return
    for candidate, outcome in _apart(scores, outcomes):
        roles, own = name_roles(outcome.column), name_roles(candidate.column)
        peer = max(roles.other, roles.text, roles.names_answer, own.other)
        if peer or candidate.scale not in (FRACTION, PERCENT) or candidate.doubt or outcome.graded:
            continue
        hit = match(candidate, outcome)
        if abs(hit.z) > 5 and not is_threshold(candidate, outcome, hit):
            candidate.score, candidate.doubt = max(candidate.score, 2.2), "unsure"
            outcome.score, outcome.doubt = max(outcome.score, 2.0), "unsure"


def _apart(
    scores: Sequence[SaidCandidate], outcomes: Sequence[OutcomeCandidate]
) -> Iterable[tuple[SaidCandidate, OutcomeCandidate]]:
    pairs = product(scores[:12], outcomes[:12])
    return (pair for pair in pairs if pair[0].column != pair[1].column)


def are_linked(confidence: SaidCandidate, outcome: OutcomeCandidate) -> bool:
    """Return whether the names of the two belong together: `x` and `x_outcome`, a shared stem."""
    left, right = (re.sub(r"\W|_", "", c.column.lower()) for c in (confidence, outcome))
    names = [tokens(outcome.column), *([outcome.right] if outcome.happened else [])]
    words = tokens(confidence.column)
    return right.startswith(left) or any(share_a_stem(words, name) for name in names)


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
    two = answer is not None and len(answer.words) == 2 and answer.height >= _LEAST_THRESHOLD
    if answer is None or not two or confidence.probs or confidence.scale != "fraction":
        return False
    one = (answer.text == next(iter(answer.words))).fill_null(False).to_numpy().astype(float)
    area = match(confidence, OutcomeCandidate(answer.name, 0.0, one)).auroc
    return not 0.002 < area < 0.998


# -- what else a table may say -----------------------------------------------------------------

# A reading is taken only from these scores on, and where no other is within the margin.
SAID_LEAST, OUTCOME_LEAST = 3.0, 2.6
MARGIN, ROLE_MARGIN = 1.5, 1.2
_CORE, _SURELY = 2.9, 5
_PLAIN = frozenset(["correct", "pass", "passed", "👍", "right", "✓", "thumbs_up"])


def rivals(best: ReadingChoice, choices: Sequence[ReadingChoice]) -> list[ReadingChoice]:
    """Return the readings that the best one is not clear of."""
    mine = {confidence.column for confidence in best.said}
    return [
        rival
        for rival in choices[1:]
        if not (rival.models or (rival.outcome is best.outcome and rival.said[0].column in mine))
        and rival.said[0].score >= 2
        and rival.outcome.score >= 1.9
        and not _beats(best, rival, mine)
    ]


def _beats(best: ReadingChoice, rival: ReadingChoice, mine: set[str]) -> bool:
    """Return whether the best reading is clear of another."""
    confidence, outcome, first = rival.said[0], rival.outcome, best.said[0]
    peer, own = outcome is not best.outcome, confidence.column in mine
    owner = "whose" in best.doubts and not peer and "whose" not in rival.doubts
    explicit = not outcome.pair and outcome.score >= 2 and not outcome.graded
    outranked = best.outcome.pair and explicit and own
    outranked = outranked or ("which" in best.doubts and explicit and outcome.score >= 2.9)
    if best.score - rival.score >= MARGIN and not owner and not outranked:
        return True
    if not peer:
        return first.score - confidence.score >= ROLE_MARGIN and not owner
    distance = best.outcome.score - outcome.score >= ROLE_MARGIN
    return (own and distance and not outranked) or say_the_same(best.outcome, outcome)


def is_weak(best: ReadingChoice, near: Sequence[ReadingChoice], alone: bool) -> bool:
    """Return whether names and content together do not carry the reading.

    `alone` says that no other column may be the outcome.
    """
    confidence, outcome, result = best.said[0], best.outcome, best.match
    weak = confidence.score < SAID_LEAST or outcome.score < OUTCOME_LEAST
    if confidence.probs or result is None:
        return weak
    agrees = result.auroc > 0.55 and result.z > 3
    if outcome.pair:
        return weak or (confidence.named < 2 and not agrees)
    roles, linked = name_roles(outcome.column), are_linked(confidence, outcome)
    is_known = outcome.score >= 3.2 and bool({*outcome.right} & _PLAIN)
    core = roles.graded >= _CORE or outcome.verified or is_known
    # A similarity to the right answer goes with the outcome, and is no confidence.
    measurements = name_roles(confidence.column).measure and not linked
    if confidence.named < 2 and (measurements or not (agrees and (core or linked))):
        weak = True
    weak = weak or not (core or linked or agrees)
    clear = confidence.named >= 2.5 and not near
    if agrees and clear and alone:
        return False
    strong = clear and not outcome.doubt and outcome.score >= 2
    if weak and strong and roles.right >= 1 > roles.gold and result.auroc > 0.6 and result.z > 4:
        best.notes += (f"{outcome.column} goes with the confidence: it is the outcome.",)
        return False
    return weak


def is_turned(choice: ReadingChoice) -> bool:
    """Return whether confidence is higher where a column with a neutral name says wrong."""
    result, outcome = choice.match, choice.outcome
    is_known = outcome.pair or outcome.verified or name_roles(outcome.column).graded >= _CORE
    return result is not None and result.z < -_SURELY and not is_known


def in_order(choices: Sequence[ReadingChoice]) -> tuple[ReadingChoice, ...]:
    """Return readings in the order of what speaks for them, beside names how well they go together.

    Whose confidence it is, and what was done with an answer, is asked about last; a column of
    grades goes before the comparison of two columns.
    """

    def weight(choice: ReadingChoice) -> float:
        result = choice.matches[0]
        neutral = not (choice.outcome.pair or name_roles(choice.outcome.column).graded >= _CORE)
        joint = 1.5 * ((result.z > _SURELY) - (result.z < -_SURELY)) if neutral else 0.0
        strange = 1.5 * bool({"whose", "decision"} & {choice.said[0].doubt, choice.outcome.doubt})
        return choice.score + joint - strange

    ordered = sorted(choices, key=weight, reverse=True)
    first = ordered[0]
    graded = [
        choice
        for choice in ordered
        if first.outcome.pair
        and not (choice.outcome.pair or choice.doubts or choice.outcome.doubt)
        and choice.said[0].column == first.said[0].column
        and choice.outcome.score >= OUTCOME_LEAST
    ]
    return (*graded, *(choice for choice in ordered if choice not in graded))


_OF_OUTCOME = frozenset({"direction", "error", "word", "letters", "decision", "unsure"})


def variants(
    best: ReadingChoice, doubts: Sequence[str], columns: Mapping[str, Column]
) -> list[ReadingChoice]:
    """Return the readings that differ from the best one in what is doubtful."""
    request, confidence = {*doubts}, best.said[0]
    column, matches = columns.get(confidence.column), []
    if request & _OF_OUTCOME and not best.outcome.pair:
        matches += _turned(best, request, column)
    if column is None or best.models:
        return matches
    if LEVELS in request:
        low, _, high = confidence.scale.partition("-")
        peer = "0" if low == "1" else "1"
        lowest = np.min(column.numbers[column.numbers >= 0], initial=float(high))
        if float(peer) <= lowest:
            matches = [_rescaled(best, column, f"{peer}-{high}"), *matches]
        if high == "10":
            matches.append(_rescaled(best, column, PERCENT))
    if MIXED in request:
        matches = [_rescaled(best, column, PERCENT), *matches]
    if "uncertainty" in request:
        note = f"{confidence.column} says how sure the model was."
        matches = [_rescaled(best, column, FRACTION, note), *matches]
    return matches


def _rescaled(choice: ReadingChoice, column: Column, scale: str, note: str = "") -> ReadingChoice:
    values = to_scale(column.cells.values, column.cells.marked, scale)
    note = note or f"{column.name} is written as {scale}."
    peer = structs.replace(choice.said[0], scale=scale, values=values, doubt="", notes=(note,))
    return structs.replace(choice, said=(peer,), notes=(note, *choice.outcome.notes), doubts=())


def _turned(best: ReadingChoice, request: set[str], column: Column | None) -> list[ReadingChoice]:
    """Return the reading with right and wrong, or sure and unsure, exchanged."""
    confidence, outcome = best.said[0], best.outcome
    flipped, roles = turned(outcome), name_roles(outcome.column)
    reverse = structs.replace(best, outcome=flipped, notes=(*confidence.notes, *flipped.notes))
    if column is None or confidence.named >= 2 or confidence.scale not in (FRACTION, PERCENT):
        return [reverse]
    unsure = _rescaled(best, column, "uncertainty", unsure_note(column.name))
    if "direction" in request and (outcome.verified or roles.graded >= 2):
        return [unsure]
    if roles.graded >= _CORE or outcome.verified:
        return [reverse]
    if best.match is not None and best.match.auroc >= 0.5:
        return [_rescaled(reverse, column, "uncertainty", unsure_note(column.name)), reverse]
    return [reverse, unsure]
