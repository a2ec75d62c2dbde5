"""An answer beside what would have been right, and class probabilities beside a label."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.data.reading import FRACTION
from calibrant.data.reading.candidates import OutcomeCandidate, SaidCandidate
from calibrant.data.reading.cells import MISSING_TEXT, NO, RIGHT, WRONG, YES, Column
from calibrant.data.reading.names import share_a_stem, token_weights, tokens

_TRUTH = {**dict.fromkeys(YES, "true"), **dict.fromkeys(NO, "false")}
_FEW_CLASSES, _LEAST_ROWS, _KNOWN = 30, 5, 0.9
_SYSTEMS = frozenset({"model", "llm", "engine", "router", "system"})
_DATE, _LOOKED_AT = r"^\d{4}-\d\d-\d\d", 200


def plain_answers(cells: pl.Series, *, truth: bool = False) -> pl.Series:
    """Return answers as they are compared: without case, signs around them, `answer:` and `B)`.

    Examples
    --------
    >>> plain_answers(pl.Series(["Answer: B", "b) the second", "1,000.0"])).to_list()
    ['b', 'b', '1000']
    """
    text = cells.cast(pl.String).str.to_lowercase().str.strip_chars(" \t\n.,;:!'\"()[]*")
    text = text.str.replace(r"^(answer|option)\s*:?\s*", "").str.replace(r"\.0+$", "")
    text = text.str.replace(r"^([a-j])[).:].*$", "$1").str.replace_all(r"(\d),(\d{3})\b", "$1$2")
    return text.replace(_TRUTH) if truth else text


def equal_answers(answer: pl.Series, gold: pl.Series) -> Floats:
    """Return 1 where an answer is the right one, 0 where it is not, NaN where either is missing."""
    truth = _only_truth(answer) and _only_truth(gold)
    values, right = (plain_answers(cells, truth=truth) for cells in (answer, gold))
    lacking = (values.is_null() | right.is_null() | (right == "")).to_numpy()
    equal = (values == right).fill_null(False).to_numpy()
    return np.where(lacking, np.nan, equal)


def _only_truth(cells: pl.Series) -> bool:
    text = cells.cast(pl.String).str.strip_chars().str.to_lowercase().unique()
    if text.len() > len(_TRUTH) + len(MISSING_TEXT):
        return False
    return {*text.drop_nulls()} <= {*_TRUTH, *MISSING_TEXT}


def is_closed(answer: pl.Series, gold: pl.Series) -> bool:
    """Return whether answers are of a known kind, which needs no meaning to be graded.

    That is so where wrong answers, too, are right ones of other rows, or where there are few.

    Examples
    --------
    >>> is_closed(pl.Series(["a", "B", "b"]), pl.Series(["a", "b", "a"]))
    True
    >>> is_closed(pl.Series(["Paris", "in Rome", "oslo"]), pl.Series(["Paris", "Rome", "Oslo"]))
    False
    """
    truth = _only_truth(answer) and _only_truth(gold)
    values, right = (plain_answers(cells, truth=truth) for cells in (answer, gold))
    return _is_closed(values, right)


def _is_closed(values: pl.Series, right: pl.Series) -> bool:
    kinds = right.drop_nulls().unique()
    wrong = values.filter((values != right).fill_null(False)).is_in(kinds.implode())
    known_values = values.drop_nulls().is_in(kinds.implode()).mean()
    others = wrong.mean() if wrong.len() >= _LEAST_ROWS else known_values
    enough = float(str(known_values if known_values is not None else 1)) >= _KNOWN
    return enough and (kinds.len() <= _FEW_CLASSES or float(str(others)) >= _KNOWN)


def pair_candidates(columns: Sequence[Column]) -> list[OutcomeCandidate]:
    """Return pairs of columns whose equality is the outcome, the likeliest first."""
    usable = [
        column
        for column in columns
        if column.distinct >= 2
        and column.series.null_count() < 0.7 * column.height
        and not _are_times(column)
        and column.roles.confidence < 2.5
    ]
    golds = [column for column in usable if column.roles.gold >= 1]
    matches = []
    for answer in usable:
        for gold in golds:
            if answer is not gold and _may_answer(answer, gold, golds):
                matches.append(_pair(answer, gold))
    return sorted((pair for pair in matches if pair is not None), key=lambda pair: -pair.score)


def _are_times(column: Column) -> bool:
    texts = column.text.drop_nulls().head(_LOOKED_AT)
    return column.series.dtype.is_temporal() or bool(texts.str.contains(_DATE).all())


def _may_answer(answer: Column, gold: Column, golds: Sequence[Column]) -> bool:
    """Return whether a column may hold answers, by its name or the words it shares."""
    roles = answer.roles
    # What is called like a right answer is one, unless another is called so more.
    if roles.gold > roles.answer and roles.gold >= gold.roles.gold:
        return False
    answers = roles.answer >= 1.4 or bool(_SYSTEMS & {*answer.tokens})
    if answers and roles.gold < 2.5 and roles.right < 2.9:
        return True
    known_values = YES | NO | RIGHT | WRONG
    if not answer.words or {*answer.words} <= known_values:
        return False
    if 1 <= roles.right < 2.9 or not roles.gold:
        return True
    return roles.gold <= 1 and any(
        peer is not answer and peer.roles.gold >= 1.7 and {*answer.words} <= {*peer.words}
        for peer in golds
    )


def _pair(answer: Column, gold: Column) -> OutcomeCandidate | None:
    truth = bool(answer.words) and {*answer.words, *gold.words} <= {*_TRUTH}
    values, right = (plain_answers(column.series, truth=truth) for column in (answer, gold))
    overlap = values.is_not_null() & right.is_not_null() & (right != "")
    if int(overlap.sum()) < _LEAST_ROWS:
        return None
    equal = (values == right).filter(overlap).mean()
    a, g = {*values.filter(overlap).unique()}, {*right.filter(overlap).unique()}
    shared, share = len(a & g) / max(1, min(len(a), len(g))), float(str(equal))
    names = gold.roles.gold
    always = share > 0.9995 and not (len(g) >= 2 and names >= 1.7)
    if shared < 0.34 or share < 0.02 or always:
        return None
    if a | g <= YES | NO | RIGHT | WRONG and not (answer.roles.answer and names > 1):
        return None
    closed, is_same = (
        len(g) <= _FEW_CLASSES,
        bool(answer.words) and {*answer.words} <= {*gold.words},
    )
    score = 0.6 + 0.5 * answer.roles.answer + 0.6 * names + 0.5 * (shared > 0.6) + 0.3 * closed
    score += 1.2 * (is_same and names >= 1.7) + 1.2 * share_a_stem(_rest(answer), _rest(gold))
    known_names = float(str(values.filter(overlap).is_in([*g]).mean()))
    fine = _is_closed(values.filter(overlap), right.filter(overlap))
    notes = [f"An answer is right where {answer.name} equals {gold.name}."]
    blank = float(str(values.fill_null("").eq("").mean()))
    if blank:
        notes.append(f"{blank:.1%} of the rows have no {answer.name}: these are not attempted.")
    if not fine:
        notes.append(
            f"{1 - known_names:.0%} of the answers are none of the right ones of any row: "
            "if they are "
            "free text, they are graded by meaning."
        )
    return OutcomeCandidate(
        f"{answer.name} = {gold.name}",
        score,
        equal_answers(answer.series, gold.series),
        doubt="" if fine else "text",
        notes=tuple(notes),
        answer=answer.name,
        gold=gold.name,
        closed=fine,
    )


def _rest(column: Column) -> list[str]:
    """Return the words of a name that say no role: what an answer and its gold share."""
    words = tokens(column.name.split(".")[-1])
    remainder = [word for word in words if not {"answer", "gold"} & {*token_weights(word)}]
    return remainder or [column.name.split(".")[-1].lower()]


def class_candidates(
    columns: Sequence[Column],
) -> tuple[list[tuple[SaidCandidate, OutcomeCandidate]], set[str]]:
    """Return readings of class probabilities with the label, and all columns that hold such."""
    shares = [c for c in columns if c.numeric and _are_shares(c.numbers)]
    matches, used = [], set[str]()
    families = _families(shares)
    for label in columns:
        # Columns that are called like the classes themselves: A, B, C beside the right letter.
        alone = {c.name.lower(): c for c in shares if c.name.lower() in label.words}
        families |= {",".join(c.name for c in alone.values()): alone} if len(alone) > 1 else {}
    for prefix, members in families.items():
        total = np.nansum([column.cells.values for column in members.values()], axis=0)
        # The chance of being correct is a confidence, and no class beside others.
        if len(members) < 2 or "correct" in members or (np.abs(total - 1) < 0.03).mean() < 0.9:
            continue
        used |= {column.name for column in members.values()}
        for label in columns:
            classes = {*label.words}
            holding = classes & {*members} and classes <= {*members}
            if holding and not label.numeric and label.roles.gold >= max(1, label.roles.answer):
                matches.append(_top_class(prefix, members, label))
    return matches, used


def _are_shares(x: Floats) -> bool:
    return bool(x.size and x.min() >= -1e-9 and x.max() <= 1 + 1e-6)


def _families(columns: Iterable[Column]) -> dict[str, dict[str, Column]]:
    """Return columns by what their names share, each by the class that it names."""
    families: dict[str, dict[str, Column]] = {}
    for column in columns:
        if match := re.fullmatch(r"(.*[_. \-])([^_. \-]+)", column.name):
            families.setdefault(match[1], {})[match[2].lower()] = column
        if match := re.fullmatch(r"([^_. \-]+)([_. \-].*)", column.name):
            families.setdefault(f"*{match[2]}", {})[match[1].lower()] = column
    return families


def _top_class(
    prefix: str, members: Mapping[str, Column], label: Column
) -> tuple[SaidCandidate, OutcomeCandidate]:
    values = np.stack([column.cells.values for column in members.values()])
    statement, right = top_class(values, [*members], label.series)
    names = ",".join(column.name for column in members.values())
    note = f"The confidence is the highest of {len(members)} class probabilities."
    outcome = OutcomeCandidate(
        f"top class = {label.name}",
        5.0,
        right,
        notes=(f"An answer is right where the likeliest class is {label.name}.",),
        answer=prefix,
        gold=label.name,
    )
    return SaidCandidate(names, 5.0, 5.0, FRACTION, statement, "", (note,), probs=prefix), outcome


def top_class(values: Floats, classes: Sequence[str], label: pl.Series) -> tuple[Floats, Floats]:
    """Return the highest class probability, and whether that class is the label.

    Parameters
    ----------
    values
        A row per class, a column per answer.
    classes
        Names of the classes, in small letters.
    label
        What each was.
    """
    finite = np.isfinite(values).any(axis=0)
    filled = np.where(np.isfinite(values), values, -np.inf)
    best = np.array([*classes])[filled.argmax(axis=0)]
    text = label.cast(pl.String).str.strip_chars().str.to_lowercase()
    lacking = (text.is_null() | (text == "")).to_numpy() | ~finite
    right = best == text.fill_null("").to_numpy()
    return np.where(finite, filled.max(axis=0), np.nan), np.where(lacking, np.nan, right)
