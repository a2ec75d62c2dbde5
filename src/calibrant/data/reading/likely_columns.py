"""Which columns may be the confidence, and which the outcome, told by name and content."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs

from calibrant.core.arrays import Floats, Mask
from calibrant.data.reading import FRACTION, PERCENT
from calibrant.data.reading.candidates import OutcomeCandidate, SaidCandidate
from calibrant.data.reading.cells import NEITHER, NO, REFUSALS, RIGHT, SURE, WRONG, YES, Column
from calibrant.data.reading.names import share_a_stem, tokens
from calibrant.data.reading.scales import (
    LEVELS,
    MIXED,
    RANK,
    RANK_DOWN,
    levels_of,
    scale_of,
    to_scale,
    word_scale,
    word_values,
)

_CODES = {"c", "i", "x", "up", "down"}
_PARTLY = {"partially", "partly", "almost", "mostly", "half", "not", "non"}
_MOST_WORDS = 40
_NAMELESS = 1.8
"""What a column whose name says nothing scores at most."""
_ID_ROWS = 20
_SCORES = frozenset({"reward", "margin", "logit"})
_CHANCES = frozenset({"p", "prob", "logprob", "probability"})
_TRUE, _FALSE = frozenset({"correct", "right", "true"}), frozenset({"incorrect", "wrong", "false"})


def said_candidates(columns: Iterable[Column]) -> list[SaidCandidate]:
    """Return the columns that may be the confidence, the likeliest first."""
    columns = [*columns]
    two_answers = _of_given_answers(columns)
    matches = (said_candidate(column) for column in columns if column.name not in two_answers)
    return sorted(filter(None, matches), key=lambda c: -c.score)


def _of_given_answers(columns: Iterable[Column]) -> set[str]:
    """Return the scores of a true and of a false answer that were given to a model in each row.

    `correct_confidence` beside `incorrect_confidence` say nothing of an answer of its own, unless
    they are shares of one whole.
    """
    scored = [c for c in columns if c.numeric and {"confidence", "conf"} & {*c.tokens}]
    true, false = (
        {tuple(t for t in c.tokens if t not in words): c for c in scored if words & {*c.tokens}}
        for words in (_TRUE, _FALSE)
    )
    pairs = [(true[stem], false[stem]) for stem in true if stem in false]
    gaps = (np.abs(left.cells.values + right.cells.values - 1) for left, right in pairs)
    wide = [pair for pair, gap in zip(pairs, gaps, strict=True) if np.nanmean(gap) > 0.03]
    return {column.name for pair in wide for column in pair}


def said_candidate(column: Column) -> SaidCandidate | None:
    """Return what speaks for a column as the confidence; None where it cannot be one."""
    if (levels := _word_levels(column)) is not None:
        return levels
    x = column.numbers
    if not column.numeric:
        return None
    marked = column.cells.marked[column.known]
    # -1 is a code beside 0 and 1: not asked, or no answer.
    if not marked.any() and {*np.unique(x)} <= {-1.0, 0.0, 1.0}:
        return None
    result = _by_scale(column, x, marked)
    if max(column.roles.confidence, column.roles.logprob, column.roles.uncertainty) < 0.5:
        result.score = min(result.score, _NAMELESS)
    if column.roles.somebody and not result.ranked:
        result.doubt = result.doubt or "whose"
        result.score -= 0.8
        result.notes += (f"{column.name} may say how sure somebody else is, not the model.",)
    distinct = np.unique(x)
    if distinct.size == 1:
        result.score -= 1.5
        result.notes += (f"{column.name} is always {distinct[0]:g}.",)
    result.notes += tuple(_cell_notes(column))
    return result


def _word_levels(column: Column) -> SaidCandidate | None:
    """Return a column of words such as high and low."""
    scale = None if column.numeric else word_scale(column.words)
    if scale is None:
        return None
    numbers = column.text.replace_strict(word_values(scale), default=None, return_dtype=pl.Float64)
    name = max(column.roles.confidence, column.roles.uncertainty) - column.roles.other
    note = f"The words of {column.name} are given their usual shares: {scale}."
    values = numbers.to_numpy().astype(float)
    return SaidCandidate(column.name, name + 1.5, name, scale, values, "words", (note,))


def _by_scale(column: Column, x: Floats, marked: Mask) -> SaidCandidate:
    roles, plain = column.roles, x[~marked]
    top, low = (float(end) for end in (plain.max(), plain.min())) if plain.size else (1.0, 0.0)
    whole = bool(plain.size and (plain == np.round(plain)).all())
    inside = float(((x >= 0) & (x <= 1)).mean())
    logprob, unsure = roles.logprob - 0.7 * roles.other, roles.uncertainty - roles.other
    if logprob >= 1 and low < 0 and top <= 1e-6:
        note = f"{column.name} is read as a log-probability: exp({low:.2g}) = {np.exp(low):.2g}."
        doubt = "" if re.search("avg|mean|norm|logprob$|logp$", column.name, re.I) else "logprob"
        return _scaled(column, logprob + 2, "logprob", names=logprob, doubt=doubt, note=note)
    if unsure >= 1:
        scale, doubt, score = RANK_DOWN, RANK, unsure - 0.5
        note = f"A low {column.name} means sure; it has no scale."
        if inside >= 0.995 and "entropy" not in column.tokens:
            scale = doubt = "uncertainty"
            score, note = unsure + 1, unsure_note(column.name)
        return _scaled(column, score, scale, names=unsure, doubt=doubt, note=note)
    name = roles.confidence - roles.other
    score = name - 3.0 * (whole and x.size > _ID_ROWS and np.unique(x).size == x.size)
    if inside >= 0.97 or (marked.mean() > 0.5 and inside > 0.95):
        return _shares(column, score, marked, top, inside)
    bounded = (low >= 0 or {*np.unique(plain[plain < 0])} == {-1.0}) and 1 < top <= 100.0001
    if bounded and not _SCORES & {*column.tokens}:
        return _levels_or_percent(column, score, plain[plain >= 0])
    return _scaled(column, score + (1 if name >= 0.9 else -1), RANK, doubt=RANK)


def _scaled(
    column: Column, score: float, scale: str, *, names: float | None = None, doubt: str = "",
    note: str = "",
) -> SaidCandidate:  # fmt: skip
    values = to_scale(column.cells.values, column.cells.marked, scale)
    names = column.roles.confidence - column.roles.other if names is None else names
    return SaidCandidate(column.name, score, names, scale, values, doubt, (note,) if note else ())


def unsure_note(name: str) -> str:
    """Say that a column tells how unsure a model was."""
    return f"{name} says how unsure the model was: confidence is 1 - {name}."


def _shares(column: Column, score: float, marked: Mask, top: float, inside: float) -> SaidCandidate:
    pair = marked.any() and (~marked).sum() > 0.01 * marked.size and top <= 1
    out = round((1 - inside) * column.numbers.size)
    note = f"{out} of the values of {column.name} lie outside 0 to 1." if inside < 1 else ""
    if pair:
        note = f"{(~marked).mean():.0%} of the cells of {column.name} have no percent sign."
    scale = PERCENT if marked.mean() > 0.5 and not pair else FRACTION
    return _scaled(column, score + 2, scale, note=note)


def _levels_or_percent(column: Column, score: float, codes: Floats) -> SaidCandidate:
    doubt, top = scale_of(codes, column.name)[1], float(codes.max())
    if doubt == MIXED:
        return _scaled(column, score + 2, MIXED, doubt=MIXED)
    if top <= 10:
        whole = bool((codes == np.round(codes)).all())
        score += 1 if whole else -0.5
        return _scaled(column, score, levels_of(codes, column.name), doubt=LEVELS)
    five = float((np.abs(codes - 5 * np.round(codes / 5)) < 1e-9).mean())
    return _scaled(column, score + 1 + 0.7 * (five > 0.6) + 0.3 * (top >= 90), PERCENT)


def _cell_notes(column: Column) -> list[str]:
    """Say what cells hold that are no plain numbers."""
    notes, cells, name = [], column.cells, column.name
    if count := int(cells.decorated.sum()):
        example = column.series.filter(cells.decorated)[0]
        notes.append(f"{count:,} cells of {name} such as {example!r} are read as numbers.")
    if count := int(cells.text.sum()):
        words = column.text.filter(cells.text).unique().sort()
        what = "state no confidence" if words.is_in(REFUSALS).all() else "hold words"
        notes.append(f"{count:,} cells of {name} {what} ({', '.join(words[:3])}).")
    return notes


def vocabulary_probabilities(columns: Iterable[Column]) -> set[str]:
    """Return the columns that hold the probability of one class, not of the answer given."""
    # p_spam beside p_ham: which of them is about the answer is told by the answer.
    classes = (c for c in columns if not c.numeric and max(c.roles.answer, c.roles.gold) >= 1)
    words = {word for column in classes for word in column.words} - {"correct", "score", "right"}
    about = [column for column in columns if words & {*column.tokens}]
    return {c.name for c in about if _CHANCES & {*c.tokens}} if len(about) > 1 else set()


# -- outcomes ---------------------------------------------------------------------------------


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
        good |= {word for word in kinds if kinds[word] == "right"}
        bad |= {*kinds} - good
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
        return [_candidate(column, 2 + 0.6 * roles.right, {"c"}, wrong, "", note)]
    if {"a", "b"} <= {*words} <= {"a", "b", "c"} and roles.right >= 2 > roles.gold:
        note = f"A and B of {column.name} are read as right and wrong, C as not attempted."
        return [_candidate(column, 3.0, {"a"}, {"b"}, "letters", note)]
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
    peer = 0.5 * column.roles.other * ("accuracy" not in column.tokens)
    return peer + 0.7 * column.roles.text * (column.roles.right < 2)


def _by_words(
    column: Column, words: Sequence[set[str]], remainder: set[str], doubt: str
) -> OutcomeCandidate:
    """Return the reading of words for right and wrong, and of yes and no."""
    roles, (good, bad, yes, no) = column.roles, words
    reverse, notes = roles.wrong >= 2, list[str]()
    if remainder:
        count, text = sum(column.words[word] for word in remainder), ", ".join(sorted(remainder))
        notes = [f"{count:,} rows whose {column.name} is {text} are neither right nor wrong."]
    right, wrong = good | (no if reverse else yes), bad | (yes if reverse else no)
    score = -_against(column) - 2.0 * (len({*column.words} - remainder) < 2)
    if good | bad:
        score += 2 + 1.2 * bool((good | bad) & SURE) + min(1, 0.4 * roles.graded)
        return _candidate(column, score, right, wrong, doubt, *notes)
    if reverse:
        shown = [", ".join(sorted(part)) or word for part, word in ((yes, "yes"), (no, "no"))]
        note = "{} says what went wrong: {} is read as wrong, {} as right."
        score += 1.5 + 0.7 * roles.wrong
        doubt = doubt or ("error" if roles.wrong < 2.9 else "")
        note = note.format(column.name, *shown)
        return _candidate(column, score, no, yes, doubt, note, *notes, inverted=True)
    score += 1.2 + 0.9 * roles.right + (0.6 * roles.gold if roles.right < 1 else 0)
    score -= 2.0 * (roles.names_answer and roles.right < 2)
    return _candidate(column, score, yes, no, doubt, *notes)


def _by_any_word(column: Column, confidence: Sequence[SaidCandidate]) -> list[OutcomeCandidate]:
    """Return a reading for each word that may mean right, where no word is known."""
    roles, words = column.roles, [*column.words]
    stems = [tokens(candidate.column) for candidate in confidence if candidate.score > 1]
    linked = [word for stem in stems for word in words if share_a_stem([word], stem)]
    score = (2.6 if linked else 1.4) + 0.4 * max(roles.right, roles.gold) - _against(column)
    score -= 2.5 * roles.names_answer + 1.0 * (len(words) > 2)
    doubt = "" if linked and len(words) == 2 else "word"
    note = "'{}' in {} is read as right, or as what was predicted."
    notes = {word: note.format(word, column.name) for word in linked[:1] or words[:3]}
    return [
        _candidate(column, score, {word}, {*words} - {word}, doubt, note, happened=True)
        for word, note in notes.items()
    ]


def _graded(column: Column) -> list[OutcomeCandidate]:
    """Return readings of a column of grades: as they are, or right from a threshold on."""
    roles, x, name = column.roles, column.numbers, column.name
    if roles.graded < 2 or roles.confidence >= 2.5 or roles.other >= 2 or x.size < 2:
        return []
    levels = np.unique(x)
    if levels.size < 2 or column.cells.text.mean() > 0.2 or x.min() < 0:
        return []
    if roles.wrong > max(roles.right, 2.5):
        note = f"{name} is a rate of errors: 0 is read as right, all else as wrong."
        return [_grade(column, 1 + 0.7 * roles.wrong, "<=", 0, note)]
    score = 0.9 + 0.7 * roles.right
    if x.max() <= 1:
        note = f"{name} holds grades between 0 and 1; 0.5 or more is read as right."
        return [_grade(column, score, ">=", 0.5, note)]
    if levels.size > 10 or (levels != np.round(levels)).any() or x.max() > 10:
        return []
    ends = levels[::-1][:2] if levels.size < 4 else levels[-2:]
    note = "{} of at least {:g} is read as right."
    return [_grade(column, score, ">=", least, note.format(name, least)) for least in ends]


def _grade(column: Column, score: float, bound: str, end: float, note: str) -> OutcomeCandidate:
    values, below = column.cells.values, bound == "<="
    right = np.where(np.isnan(values), np.nan, values <= end if below else values >= end)
    words = (f"{bound}{end:g}",), (f"{'>' if below else '<'}{end:g}",)
    return OutcomeCandidate(
        column.name, score, right, *words, "graded", (note,), graded=True, inverted=below
    )


def _candidate(
    column: Column, score: float, right: set[str], wrong: set[str], doubt: str = "", *notes: str,
    **about: Any,
) -> OutcomeCandidate:  # fmt: skip
    meaning = {**dict.fromkeys(right, 1.0), **dict.fromkeys(wrong, 0.0)}
    values = column.text.replace_strict(meaning, default=None, return_dtype=pl.Float64)
    words, leftover = (tuple(sorted(right)), tuple(sorted(wrong))), doubt == "leftover"
    numbers = values.to_numpy().astype(float)
    return OutcomeCandidate(
        column.name, score, numbers, *words, doubt, notes, leftover=leftover, **about
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
