"""Outcomes that a table has not: an answer beside the right one, class probabilities and label."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError, UnavailableError, require_known
from calibrant.core.hints import Hint
from calibrant.data.reading import FRACTION
from calibrant.data.reading.candidates import OutcomeCandidate, SaidCandidate
from calibrant.data.reading.cells import MISSING_TEXT, NO, RIGHT, WRONG, YES, Column, parse_numbers
from calibrant.data.reading.names import columns_called, share_a_stem, token_weights, tokens

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


def _compared(answer: pl.Series, gold: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return answers and right ones as they are compared."""
    truth = _only_truth(answer) and _only_truth(gold)
    return plain_answers(answer, truth=truth), plain_answers(gold, truth=truth)


def _equal(values: pl.Series, right: pl.Series) -> Floats:
    """Return 1 where an answer is the right one, 0 where it is not, NaN where either is missing."""
    lacking = (values.is_null() | right.is_null() | (right == "")).to_numpy()
    return np.where(lacking, np.nan, (values == right).fill_null(False).to_numpy())


def _only_truth(cells: pl.Series) -> bool:
    text = cells.cast(pl.String).str.strip_chars().str.to_lowercase().unique()
    few = text.len() <= len(_TRUTH) + len(MISSING_TEXT)
    return few and {*text.drop_nulls()} <= {*_TRUTH, *MISSING_TEXT}


def _is_closed(values: pl.Series, right: pl.Series) -> bool:
    """Return whether answers are of a known kind, which needs no meaning to be graded.

    That is so where wrong answers, too, are right ones of other rows, or where there are few.

    Examples
    --------
    >>> _is_closed(pl.Series(["a", "b", "b"]), pl.Series(["a", "b", "a"]))
    True
    >>> _is_closed(pl.Series(["paris", "in rome"]), pl.Series(["paris", "rome"]))
    False
    """
    kinds = right.drop_nulls().unique()
    wrong = values.filter((values != right).fill_null(False)).is_in(kinds.implode())
    known = values.drop_nulls().is_in(kinds.implode())
    others = wrong if wrong.len() >= _LEAST_ROWS else known
    few = kinds.len() <= _FEW_CLASSES
    return _share(known) >= _KNOWN and (few or _share(others) >= _KNOWN)


def _share(flags: pl.Series) -> float:
    """Return the share of true ones; 1 of none."""
    return float(flags.to_numpy().mean()) if flags.len() else 1.0


def pair_candidates(columns: Sequence[Column]) -> list[OutcomeCandidate]:
    """Return pairs of columns whose equality is the outcome, the likeliest first."""
    usable = [
        column
        for column in columns
        if column.distinct >= 2
        and column.series.null_count() < 0.7 * column.height
        and column.roles.confidence < 2.5
        and not column.series.dtype.is_temporal()
        and not column.text.drop_nulls().head(_LOOKED_AT).str.contains(_DATE).all()
    ]
    golds = [column for column in usable if column.roles.gold >= 1]
    matches = [
        _pair(answer, gold)
        for answer, gold in product(usable, golds)
        if answer is not gold and _may_answer(answer, gold, golds)
    ]
    return sorted(filter(None, matches), key=lambda pair: -pair.score)


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
    values, right = _compared(answer.series, gold.series)
    correct = _equal(values, right)
    overlap = pl.Series(np.isfinite(correct))
    if int(overlap.sum()) < _LEAST_ROWS:
        return None
    both, share, names = values.filter(overlap), float(np.nanmean(correct)), gold.roles.gold
    a, g = {*both.unique()}, {*right.filter(overlap).unique()}
    shared = len(a & g) / max(1, min(len(a), len(g)))
    always = share > 0.9995 and not (len(g) >= 2 and names >= 1.7)
    if shared < 0.34 or share < 0.02 or always:
        return None
    if a | g <= YES | NO | RIGHT | WRONG and not (answer.roles.answer and names > 1):
        return None
    is_same = bool(answer.words) and {*answer.words} <= {*gold.words}
    score = 0.6 + 0.5 * answer.roles.answer + 0.6 * names + 0.5 * (shared > 0.6)
    score += 0.3 * (len(g) <= _FEW_CLASSES) + 1.2 * (is_same and names >= 1.7)
    score += 1.2 * share_a_stem(_rest(answer), _rest(gold))
    closed = _is_closed(both, right.filter(overlap))
    notes = [f"An answer is right where {answer.name} equals {gold.name}."]
    if blank := _share(values.fill_null("").eq("")):
        notes.append(f"{blank:.1%} of the rows have no {answer.name}: these are not attempted.")
    if not closed:
        notes.append(
            f"{_share(~both.is_in([*g])):.0%} of the answers are none of the right ones of any "
            "row: if they are free text, they are graded by meaning."
        )
    name, doubt = f"{answer.name} = {gold.name}", "" if closed else "text"
    pair = OutcomeCandidate(name, score, correct, doubt=doubt, notes=tuple(notes), closed=closed)
    pair.answer, pair.gold = answer.name, gold.name
    return pair


def _rest(column: Column) -> list[str]:
    """Return the words of a name that say no role: what an answer and its gold share."""
    words = tokens(column.name.split(".")[-1])
    remainder = [word for word in words if not {"answer", "gold"} & {*token_weights(word)}]
    return remainder or [column.name.split(".")[-1].lower()]


def class_candidates(
    columns: Sequence[Column],
) -> tuple[list[tuple[SaidCandidate, OutcomeCandidate]], set[str]]:
    """Return readings of class probabilities with the label, and all columns that hold such."""
    shares = [
        c for c in columns if c.numeric and -1e-9 <= c.numbers.min() <= c.numbers.max() <= 1 + 1e-6
    ]
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
    notes = (f"An answer is right where the likeliest class is {label.name}.",)
    outcome = OutcomeCandidate(f"top class = {label.name}", 5.0, right, notes=notes)
    outcome.answer, outcome.gold = prefix, label.name
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


# -- columns that are made ---------------------------------------------------------------------

Grader: TypeAlias = Callable[[list[Any], list[Any], list[Any]], Sequence[bool | None]]
"""Grades answers by meaning: answers, right answers and questions, one of each per row."""
_GRADERS: list[Grader] = []
NEITHER = "not attempted"


def set_grader(grader: Grader) -> None:
    """Let answers be graded by meaning: what grades lives above what reads."""
    _GRADERS[:] = [grader]


class Derived(Struct, frozen=True):
    """How the outcome is made, and the confidence where it is made too (`said`).

    `options` ask for it, `notes` are said about it.
    """

    outcome: str
    options: dict[str, str]
    notes: tuple[str, ...]
    gold: str
    answer: str = ""
    probs: str = ""
    said: str = ""

    def applied(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Return the table with the columns that are made."""
        schema = lazy.collect_schema()
        names, made = schema.names(), dict[str, Any]({**schema, self.outcome: pl.String()})
        if self.probs:
            own = class_columns(names, self.probs, self.gold)
            made[self.said] = pl.Float64()
            make = partial(self._classes, own=own)
        else:
            question = next(iter(columns_called("question_text", names)), "")
            make = partial(self._graded, question=question)
        require_known([*filter(None, (self.answer, self.gold))], names, "there is no column {}")
        # All rows at once: whether answers are of a known kind is told by all of them.
        pushed = [f"{what}_pushdown" for what in ("predicate", "projection", "slice")]
        return lazy.map_batches(make, schema=pl.Schema(made), **dict.fromkeys(pushed, False))

    def _classes(self, frame: pl.DataFrame, own: Mapping[str, str]) -> pl.DataFrame:
        values = np.stack([parse_numbers(frame[name]).values for name in own])
        statement, right = top_class(values, [*own.values()], frame[self.gold])
        return frame.with_columns(
            _words(self.outcome, right), pl.Series(self.said, statement).fill_nan(None)
        )

    def _graded(self, frame: pl.DataFrame, question: str) -> pl.DataFrame:
        answer, gold = frame[self.answer], frame[self.gold]
        right = None
        if not gold.dtype.is_nested():
            values, known = _compared(answer, gold)
            right = _equal(values, known) if _is_closed(values, known) else None
        if right is None:
            if not _GRADERS:
                rule = f"{self.answer} holds free text, which nothing here grades by meaning"
                raise UnavailableError(rule, hint="grade the answers first")
            columns = [_listed(frame, name) for name in (self.answer, self.gold, question)]
            grades = _GRADERS[0](*columns)
            right = np.array([np.nan if grade is None else float(grade) for grade in grades])
        column = _words(self.outcome, right)
        lacking = answer.cast(pl.String).str.strip_chars().fill_null("").eq("")
        return frame.with_columns(
            pl.when(lacking).then(pl.lit(NEITHER)).otherwise(column).alias(self.outcome)
        )


def _words(name: str, right: Floats) -> pl.Series:
    finite = np.isfinite(right)
    words = np.where(right > 0.5, "right", "wrong")
    return pl.Series(name, [str(w) if k else None for w, k in zip(words, finite, strict=True)])


def _listed(frame: pl.DataFrame, name: str) -> list[Any]:
    """Return cells as they are graded: texts, or lists of texts that are all right."""
    cells = frame[name] if name else pl.repeat("", frame.height, eager=True)
    if cells.dtype.is_nested():
        return ["" if value is None else value for value in cells.to_list()]
    return cells.cast(pl.String).fill_null("").to_list()


def class_columns(names: Iterable[str], probs: str, label: str) -> dict[str, str]:
    """Return the columns of class probabilities beside a label, each with its class.

    `probs` is what they share, or lists them; at least two are asked for.

    Examples
    --------
    >>> class_columns(["id", "p_spam", "p_ham", "y"], "p_", "y")
    {'p_spam': 'spam', 'p_ham': 'ham'}
    >>> class_columns(["A", "B", "y"], "A,B", "y"), class_columns(["a_p", "b_p"], "*_p", "y")
    ({'A': 'a', 'B': 'b'}, {'a_p': 'a', 'b_p': 'b'})
    """
    listed = probs.split(",") if "," in probs else []
    start, end = ("", probs[1:]) if probs.startswith("*") else (probs.removesuffix("*"), "")
    matches = {
        name: name.removeprefix(start).removesuffix(end).lower()
        for name in names
        if name not in (label, start, end)
        and (name in listed if listed else name.startswith(start) and name.endswith(end))
    }
    if len(matches) < 2:
        hint = Hint("name what they share: {probs} for p_a, p_b ..", probs="p_")
        rule = Hint("{probs} takes at least two columns, and {0} fits", len(matches))
        raise InputError(rule, hint=hint)
    return matches


def derived_of(asked: Mapping[str, str | None], names: Sequence[str]) -> Derived:
    """Return how the outcome is made by the options that ask for it."""
    probs, gold = asked.get("probs"), asked.get("gold")
    if probs:
        label = asked.get("correct") or gold
        if not label:
            rule = Hint("{probs} needs the column of the true class")
            raise InputError(rule, hint=Hint("name it: {correct}", correct="label"))
        options = {"probs": probs, "correct": label}
        note = f"The confidence is the highest of the class probabilities {probs}, and an answer "
        note += f"is right where that class is {label}."
        name, said = f"top class = {label}", f"highest {probs}"
        return Derived(name, options, (note,), label, probs=probs, said=said)
    answer = asked.get("answer")
    if answer is None and names:
        called = columns_called("answer", names)
        answer = called[0] if len(called) == 1 else None
    if not answer or not gold:
        rule = Hint("{gold} needs the column of the answers")
        raise InputError(rule, hint=Hint("name it: {answer}", answer="answer"))
    note = f"An answer is right where {answer} is the same as {gold}; free text is graded by rules "
    note += "for its meaning."
    return Derived(f"{answer} = {gold}", {"answer": answer, "gold": gold}, (note,), gold, answer)
