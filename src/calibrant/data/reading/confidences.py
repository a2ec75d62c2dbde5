"""Which columns may be the confidence, told by name and content."""

import re
from collections.abc import Collection, Iterable

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.data.reading.candidates import (
    LEVELS,
    MIXED,
    RANK,
    RANK_DOWN,
    SaidCandidate,
    levels_of,
    scale_of,
)
from calibrant.data.reading.cells import REFUSALS, Column, to_scale, word_scale, word_values
from calibrant.data.reading.record import FRACTION, PERCENT

_NAMELESS = 1.8
"""What a column whose name says nothing scores at most."""
_ID_ROWS = 20
_SCORES = frozenset({"reward", "margin", "logit"})
_TRUE, _FALSE = frozenset({"correct", "right", "true"}), frozenset({"incorrect", "wrong", "false"})


def said_candidates(columns: Iterable[Column]) -> list[SaidCandidate]:
    """Return the columns that may be the confidence, the likeliest first."""
    columns = [*columns]
    two_answers = _of_given_answers(columns)
    matches = (said_candidate(column) for column in columns if column.name not in two_answers)
    return sorted((c for c in matches if c is not None), key=lambda c: -c.score)


def _of_given_answers(columns: Iterable[Column]) -> set[str]:
    """Return the scores of a true and of a false answer that were given to a model in each row.

    `correct_confidence` beside `incorrect_confidence` say nothing of an answer of its own, unless
    they are shares of one whole.
    """
    scored = [c for c in columns if c.numeric and {"confidence", "conf"} & {*c.tokens}]
    true = {tuple(t for t in c.tokens if t not in _TRUE): c for c in scored if _TRUE & {*c.tokens}}
    false = {
        tuple(t for t in c.tokens if t not in _FALSE): c for c in scored if _FALSE & {*c.tokens}
    }
    pairs = [(true[stem], false[stem]) for stem in true if stem in false]
    gaps = [
        (a, b) for a, b in pairs if np.nanmean(np.abs(a.cells.values + b.cells.values - 1)) > 0.03
    ]
    return {column.name for pair in gaps for column in pair}


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
    if column.cells.text.sum() > 0.5 * column.height:
        result.score -= 1
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


def _by_scale(column: Column, x: Floats, marked: np.ndarray) -> SaidCandidate:
    roles, name = column.roles, column.roles.confidence - column.roles.other
    plain = x[~marked]
    top = float(plain.max()) if plain.size else 1.0
    low = float(plain.min()) if plain.size else 0.0
    whole = bool(plain.size and (plain == np.round(plain)).all())
    idlike = 3.0 * bool(whole and x.size > _ID_ROWS and np.unique(x).size == x.size)
    inside = float(((x >= 0) & (x <= 1)).mean())
    if roles.logprob - 0.7 * roles.other >= 1 and low < 0 and top <= 1e-6:
        return _logprob(column, roles.logprob - 0.7 * roles.other)
    if roles.uncertainty - roles.other >= 1:
        return _uncertainty(column, roles.uncertainty - roles.other, inside)
    if inside >= 0.97 or (marked.mean() > 0.5 and inside > 0.95):
        return _shares(column, name - idlike, marked, top, inside)
    numbers = {*np.unique(plain[plain < 0])}
    bounded = (low >= 0 or numbers == {-1.0}) and 1 < top <= 100.0001
    if bounded and not _SCORES & {*column.tokens}:
        return _levels_or_percent(column, name - idlike, plain)
    score = (name + 1 if name >= 0.9 else name - 1) - idlike
    return _candidate(column, score, name, RANK, doubt=RANK)


def _candidate(
    column: Column, score: float, names: float, scale: str, *, doubt: str = "", note: str = ""
) -> SaidCandidate:
    values = to_scale(column.cells.values, column.cells.marked, scale)
    return SaidCandidate(column.name, score, names, scale, values, doubt, (note,) if note else ())


def _logprob(column: Column, names: float) -> SaidCandidate:
    low = float(column.numbers.min())
    note = f"{column.name} is read as a log-probability: exp({low:.2g}) = {np.exp(low):.2g}."
    mean = re.search("avg|mean|norm|logprob$|logp$", column.name, re.I)
    return _candidate(
        column, names + 2, names, "logprob", doubt="" if mean else "logprob", note=note
    )


def _uncertainty(column: Column, names: float, inside: float) -> SaidCandidate:
    if inside >= 0.995 and "entropy" not in column.tokens:
        note = f"{column.name} says how unsure the model was: confidence is 1 - {column.name}."
        return _candidate(column, names + 1, names, "uncertainty", doubt="uncertainty", note=note)
    result = _candidate(column, names - 0.5, names, RANK_DOWN, doubt=RANK)
    result.notes = (f"A low {column.name} means sure; it has no scale.",)
    return result


def _shares(
    column: Column,
    score: float,
    marked: np.ndarray,
    top: float,
    inside: float,
) -> SaidCandidate:
    name = column.roles.confidence - column.roles.other
    pair = marked.any() and (~marked).sum() > 0.01 * marked.size and top <= 1
    note = ""
    if inside < 1:
        out = round((1 - inside) * column.numbers.size)
        note = f"{out} of the values of {column.name} lie outside 0 to 1."
    if pair:
        share = (~marked).mean()
        note = f"{share:.0%} of the cells of {column.name} have no percent sign."
    scale = PERCENT if marked.mean() > 0.5 and not pair else FRACTION
    return _candidate(column, score + 2, name, scale, note=note)


def _levels_or_percent(column: Column, score: float, plain: Floats) -> SaidCandidate:
    name = column.roles.confidence - column.roles.other
    codes = plain[plain >= 0]
    result = scale_of(codes, column.name)
    top = float(codes.max())
    if result.doubt == MIXED:
        return _candidate(column, score + 2, name, MIXED, doubt=MIXED)
    if top <= 10:
        whole = bool((codes == np.round(codes)).all())
        scale = levels_of(codes, column.name)
        doubt = LEVELS if result.doubt == LEVELS or not whole or codes.size < 10 else result.doubt
        return _candidate(
            column, score + (1 if whole else -0.5), name, scale, doubt=doubt or LEVELS
        )
    five = float((np.abs(codes - 5 * np.round(codes / 5)) < 1e-9).mean())
    score += 1 + 0.7 * (five > 0.6) + 0.3 * (top >= 90)
    return _candidate(column, score, name, PERCENT)


def _cell_notes(column: Column) -> list[str]:
    """Say what cells hold that are no plain numbers."""
    notes, cells, name = [], column.cells, column.name
    if cells.decorated.any():
        example = column.series.filter(cells.decorated).head(1).to_list()[0]
        count = int(cells.decorated.sum())
        notes.append(f"{count:,} cells of {name} such as {example!r} are read as numbers.")
    if cells.text.any():
        words = column.text.filter(cells.text).unique().sort()
        refused = [word for word in words if word in REFUSALS]
        count = int(cells.text.sum())
        what = "state no confidence" if len(refused) == len(words) else "hold words"
        notes.append(f"{count:,} cells of {name} {what} ({', '.join(words[:3])}).")
    return notes


def vocabulary_probabilities(names: Collection[str], columns: Iterable[Column]) -> set[str]:
    """Return the columns that hold the probability of one class, not of the answer given."""
    # p_spam beside p_ham: which of them is about the answer is told by the answer.
    words = {
        word
        for column in columns
        if column.words and not column.numeric and max(column.roles.answer, column.roles.gold) >= 1
        for word in column.words
    } - {"correct", "score", "right"}
    about = [column for column in columns if words & {*column.tokens}]
    chances = {"p", "prob", "logprob", "probability"}
    return {c.name for c in about if chances & {*c.tokens}} if len(about) > 1 and names else set()
