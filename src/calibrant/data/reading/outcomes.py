"""Which columns may be the outcome: words for right and wrong, grades, words nobody knows."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from msgspec import structs

from calibrant.core.arrays import Floats
from calibrant.data.reading.candidates import OutcomeCandidate, SaidCandidate
from calibrant.data.reading.cells import NEITHER, NO, RIGHT, SURE, WRONG, YES, Column
from calibrant.data.reading.names import share_a_stem, tokens

_CODES = {"c", "i", "x", "up", "down"}
_PARTLY = {"partially", "partly", "almost", "mostly", "half", "not", "non"}
_MOST_WORDS = 40


def outcome_candidates(
    columns: Iterable[Column], said: Sequence[SaidCandidate]
) -> list[OutcomeCandidate]:
    """Return the columns that may be the outcome, the likeliest first."""
    matches = [candidate for column in columns for candidate in _candidates(column, said)]
    return sorted(matches, key=lambda candidate: -candidate.score)


def _candidates(column: Column, confidence: Sequence[SaidCandidate]) -> list[OutcomeCandidate]:
    words = column.words
    if not words or column.distinct > _MOST_WORDS:
        return _graded(column) if column.numeric else []
    roles = column.roles
    if roles.confidence >= 2.9 and column.numeric and column.distinct > 2:
        return []
    good, bad = {*words} & RIGHT, {*words} & WRONG | {*words} & {"x"}
    yes, no, remainder = {*words} & YES, {*words} & NO, {*words} & NEITHER
    kinds = {word: _kind_of(word) for word in {*words} - good - bad - yes - no - remainder}
    if all(kinds.values()):
        # Kinds of right and of wrong: obviously wrong, correct at once.
        good |= {word for word, kind in kinds.items() if kind == "right"}
        bad |= {word for word, kind in kinds.items() if kind == "wrong"}
    unknown = {*words} - good - bad - yes - no - remainder
    share = 1 - sum(words[word] for word in unknown) / max(sum(words.values()), 1)
    doubt = "decision" if roles.decision and roles.right < 2.9 else ""
    is_known = bool((good and bad) or (yes and no))
    if unknown and share >= 0.75 and len(unknown) <= 3 and roles.graded >= 2 and is_known:
        doubt, remainder, share = "leftover", remainder | unknown, 1.0
    codes = bool(good | bad) and good | bad <= _CODES
    if share >= 0.97 and (yes | no or (good | bad and not codes)):
        known = (set(), set()) if codes else (good, bad)
        return [_by_words(column, (*known, yes, no), remainder, doubt)]
    if {"c", "i"} <= {*words} <= {"c", "i", "n", "p"}:
        wrong = {"i"} | ({"p"} & {*words})
        note = f"C, I and N of {column.name} are read as right, wrong and not attempted."
        return [_candidate(column, 2 + 0.6 * roles.right, {"c"}, wrong, notes=(note,))]
    if {"a", "b"} <= {*words} <= {"a", "b", "c"} and roles.right >= 2 > roles.gold:
        note = f"A and B of {column.name} are read as right and wrong, C as not attempted."
        return [_candidate(column, 3.0, {"a"}, {"b"}, doubt="letters", notes=(note,))]
    if column.numeric:
        return _graded(column)
    if 2 <= len(words) <= 6 and (roles.right >= 1 or roles.gold >= 1):
        return _by_any_word(column, confidence)
    return []


def _kind_of(word: str) -> str:
    """Return whether a word names a kind of right or of wrong; empty where it says neither."""
    parts = {*tokens(word)}
    if len(parts) > 3 or parts & _PARTLY:
        return ""
    return "wrong" if parts & {"incorrect", "wrong"} else "right" * bool(parts & {"correct"})


def _against(column: Column) -> float:
    """Return what speaks against a column as an outcome by its name."""
    roles = column.roles
    peer = 0.0 if "accuracy" in column.tokens else 0.5 * roles.other
    return peer + 0.7 * roles.text * (roles.right < 2)


def _left_out(column: Column, remainder: set[str]) -> tuple[str, ...]:
    if not remainder:
        return ()
    count, text = sum(column.words[word] for word in remainder), ", ".join(sorted(remainder))
    return (f"{count:,} rows whose {column.name} is {text} are neither right nor wrong.",)


def _by_words(
    column: Column, words: Sequence[set[str]], remainder: set[str], doubt: str
) -> OutcomeCandidate:
    """Return the reading of words for right and wrong, and of yes and no."""
    roles, (good, bad, yes, no) = column.roles, words
    reverse, notes = roles.wrong >= 2, _left_out(column, remainder)
    right, wrong = good | (no if reverse else yes), bad | (yes if reverse else no)
    score = -_against(column) - 2.0 * (len({*column.words} - remainder) < 2)
    if good | bad:
        score += 2 + 1.2 * bool((good | bad) & SURE) + min(1, 0.4 * roles.graded)
        return _candidate(column, score, right, wrong, doubt=doubt, notes=notes)
    if reverse:
        shown = [", ".join(sorted(part)) or word for part, word in ((yes, "yes"), (no, "no"))]
        note = "{} says what went wrong: {} is read as wrong, {} as right."
        score += 1.5 + 0.7 * roles.wrong
        doubt = doubt or ("error" if roles.wrong < 2.9 else "")
        notes = (note.format(column.name, *shown), *notes)
        return _candidate(column, score, no, yes, doubt=doubt, notes=notes, inverted=True)
    score += 1.2 + 0.9 * roles.right + (0.6 * roles.gold if roles.right < 1 else 0)
    score -= 2.0 * (roles.names_answer and roles.right < 2)
    return _candidate(column, score, yes, no, doubt=doubt, notes=notes)


def _by_any_word(column: Column, confidence: Sequence[SaidCandidate]) -> list[OutcomeCandidate]:
    """Return a reading for each word that may mean right, where no word is known."""
    roles, words = column.roles, [*column.words]
    linked = [
        word
        for candidate in confidence
        if candidate.score > 1
        for word in words
        if share_a_stem([word], tokens(candidate.column))
    ]
    score = (2.6 if linked else 1.4) + 0.4 * max(roles.right, roles.gold) - _against(column)
    score -= 2.5 * roles.names_answer + 1.0 * (len(words) > 2)
    doubt = "" if linked and len(words) == 2 else "word"
    return [
        _candidate(
            column,
            score,
            {word},
            {*words} - {word},
            doubt=doubt,
            notes=(f"'{word}' in {column.name} is read as right, or as what was predicted.",),
            happened=True,
        )
        for word in (linked[:1] or words[:3])
    ]


def _graded(column: Column) -> list[OutcomeCandidate]:
    """Return readings of a column of grades: as they are, or right from a threshold on."""
    roles, x = column.roles, column.numbers
    if roles.graded < 2 or roles.confidence >= 2.5 or roles.other >= 2 or x.size < 2:
        return []
    levels = np.unique(x)
    if levels.size < 2 or column.cells.text.mean() > 0.2 or x.min() < 0:
        return []
    name, values = column.name, column.cells.values
    if roles.wrong > max(roles.right, 2.5):
        right = _where(values, values == 0)
        note = f"{name} is a rate of errors: 0 is read as right, all else as wrong."
        score = 1 + 0.7 * roles.wrong
        return [_grade(column, score, right, "<=0", note, inverted=True)]
    if x.max() <= 1:
        note = f"{name} holds grades between 0 and 1; 0.5 or more is read as right."
        half = _where(values, values >= 0.5)
        return [_grade(column, 0.9 + 0.7 * roles.right, half, ">=0.5", note)]
    if levels.size <= 10 and (levels == np.round(levels)).all() and x.max() <= 10:
        ends = levels[::-1][:2] if levels.size < 4 else levels[-2:]
        return [
            _grade(
                column,
                0.9 + 0.7 * roles.right,
                _where(values, values >= least),
                f">={least:g}",
                f"{name} of at least {least:g} is read as right.",
            )
            for least in ends
        ]
    return []


def _where(values: Floats, right: np.ndarray) -> Floats:
    return np.where(np.isnan(values), np.nan, right)


def _grade(
    column: Column,
    score: float,
    values: Floats,
    right: str,
    note: str,
    *,
    inverted: bool = False,
) -> OutcomeCandidate:
    return OutcomeCandidate(
        column.name,
        score,
        values,
        (right,),
        (right.replace(">=", "<") if ">=" in right else right.replace("<=", ">"),),
        doubt="graded",
        notes=(note,),
        graded=True,
        inverted=inverted,
    )


def _candidate(
    column: Column,
    score: float,
    right: set[str],
    wrong: set[str],
    *,
    doubt: str = "",
    notes: tuple[str, ...] = (),
    inverted: bool = False,
    happened: bool = False,
) -> OutcomeCandidate:
    meaning = {**dict.fromkeys(right, 1.0), **dict.fromkeys(wrong, 0.0)}
    values = column.text.replace_strict(meaning, default=None, return_dtype=pl.Float64)
    return OutcomeCandidate(
        column.name,
        score,
        values.to_numpy().astype(float),
        tuple(sorted(right)),
        tuple(sorted(wrong)),
        doubt,
        notes,
        inverted=inverted,
        happened=happened,
        leftover=doubt == "leftover",
    )


def turned(outcome: OutcomeCandidate) -> OutcomeCandidate:
    """Return the outcome with right and wrong exchanged."""
    return structs.replace(
        outcome,
        values=1 - outcome.values,
        right=outcome.wrong,
        wrong=outcome.right,
        doubt="",
        notes=(f"{', '.join(outcome.wrong)} in {outcome.column} is read as right.",),
        inverted=False,
    )
