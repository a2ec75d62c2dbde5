"""Columns that a table has not: an outcome made of answer and gold, or of class probabilities."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError, UnavailableError, require_known
from calibrant.core.hints import Hint
from calibrant.data.reading.cells import parse_numbers
from calibrant.data.reading.names import columns_called
from calibrant.data.reading.pairs import equal_answers, is_closed, top_class

Grader: TypeAlias = Callable[[list[Any], list[Any], list[Any]], Sequence[bool | None]]
"""Grades answers by meaning: answers, right answers and questions, one of each per row."""
_GRADERS: list[Grader] = []
NEITHER = "not attempted"


def set_grader(grader: Grader) -> None:
    """Let answers be graded by meaning: what grades lives above what reads."""
    _GRADERS[:] = [grader]


class Derived(Struct, frozen=True):
    """How the outcome is made, and the confidence where it is made too (`said`)."""

    outcome: str
    answer: str = ""
    gold: str = ""
    probs: str = ""
    said: str = ""

    @property
    def options(self) -> dict[str, str]:
        """The options that ask for it."""
        if self.probs:
            return {"probs": self.probs, "correct": self.gold}
        return {"answer": self.answer, "gold": self.gold}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said about it."""
        if self.probs:
            return (
                f"The confidence is the highest of the class probabilities {self.probs}, and an "
                f"answer is right where that class is {self.gold}.",
            )
        return (
            f"An answer is right where {self.answer} is the same as {self.gold}; free text is "
            "graded by rules for its meaning.",
        )

    def applied(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Return the table with the columns that are made."""
        schema = lazy.collect_schema()
        names, made = schema.names(), dict[str, Any]({**schema, self.outcome: pl.String()})
        if self.probs:
            own = [name for name in names if fits(name, self.probs) and name != self.gold]
            if len(own) < 2:
                raise InputError(
                    Hint("{probs} takes at least two columns, and {0} fits", len(own)),
                    hint=Hint("name what they share: {probs} for p_a, p_b ..", probs="p_"),
                )
            made[self.said] = pl.Float64()
            require_known([self.gold], names, "there is no column {}")
            classes = partial(self._classes, own=own)
            return _mapped(lazy, classes, made)
        require_known([self.answer, self.gold], names, "there is no column {}")
        question = next(iter(columns_called("question_text", names)), "")
        graded = partial(self._graded, question=question)
        return _mapped(lazy, graded, made)

    def _classes(self, frame: pl.DataFrame, own: Sequence[str]) -> pl.DataFrame:
        values = np.stack([parse_numbers(frame[name]).values for name in own])
        classes = [class_of(name, self.probs) for name in own]
        statement, right = top_class(values, classes, frame[self.gold])
        return frame.with_columns(
            _words(self.outcome, right), pl.Series(self.said, statement).fill_nan(None)
        )

    def _graded(self, frame: pl.DataFrame, question: str) -> pl.DataFrame:
        answer, gold = frame[self.answer], frame[self.gold]
        if not gold.dtype.is_nested() and is_closed(answer, gold):
            right = equal_answers(answer, gold)
        else:
            right = _by_meaning(frame, self.answer, self.gold, question)
        column = _words(self.outcome, right)
        lacking = answer.cast(pl.String).str.strip_chars().fill_null("").eq("")
        return frame.with_columns(
            pl.when(lacking).then(pl.lit(NEITHER)).otherwise(column).alias(self.outcome)
        )


def _mapped(
    lazy: pl.LazyFrame, make: Callable[[pl.DataFrame], pl.DataFrame], schema: Mapping[str, Any]
) -> pl.LazyFrame:
    """Return the table with columns that are made of all its rows at once."""
    return lazy.map_batches(
        make,
        schema=pl.Schema(schema),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _words(name: str, right: Floats) -> pl.Series:
    finite = np.isfinite(right)
    words = np.where(right > 0.5, "right", "wrong")
    return pl.Series(name, [str(w) if k else None for w, k in zip(words, finite, strict=True)])


def _by_meaning(frame: pl.DataFrame, answer: str, gold: str, question: str) -> Floats:
    if not _GRADERS:
        raise UnavailableError(
            f"{answer} holds free text, which nothing here grades by meaning",
            hint="grade the answers first",
        )
    columns = [_listed(frame, name) for name in (answer, gold, question)]
    grades = _GRADERS[0](*columns)
    return np.array([np.nan if grade is None else float(grade) for grade in grades])


def _listed(frame: pl.DataFrame, name: str) -> list[Any]:
    """Return cells as they are graded: texts, or lists of texts that are all right."""
    if not name:
        return [""] * frame.height
    cells = frame[name]
    if cells.dtype.is_nested():
        return [value if value is not None else "" for value in cells.to_list()]
    return cells.cast(pl.String).fill_null("").to_list()


def fits(name: str, probs: str) -> bool:
    """Return whether a column holds one of the probabilities: `p_`, `*_prob` or `A,B,C`."""
    if "," in probs:
        return name in probs.split(",")
    if probs.startswith("*"):
        return name.endswith(probs[1:]) and name != probs[1:]
    prefix = probs.removesuffix("*")
    return name.startswith(prefix) and name != prefix


def class_of(name: str, probs: str) -> str:
    """Return the class that a column is about.

    Examples
    --------
    >>> class_of("p_spam", "p_"), class_of("spam_prob", "*_prob"), class_of("B", "A,B")
    ('spam', 'spam', 'b')
    """
    if probs.startswith("*"):
        return name.removesuffix(probs[1:]).lower()
    return name.removeprefix(probs.removesuffix("*")).lower()


def derived_of(asked: Mapping[str, str | None], names: Sequence[str]) -> Derived:
    """Return how the outcome is made by the options that ask for it."""
    probs, gold = asked.get("probs"), asked.get("gold")
    if probs:
        label = asked.get("correct") or gold
        if not label:
            raise InputError(
                Hint("{probs} needs the column of the true class"),
                hint=Hint("name it: {correct}", correct="label"),
            )
        return Derived(f"top class = {label}", gold=label, probs=probs, said=f"highest {probs}")
    answer = asked.get("answer")
    if answer is None and names:
        known_values = columns_called("answer", names)
        answer = known_values[0] if len(known_values) == 1 else None
    if not answer or not gold:
        raise InputError(
            Hint("{gold} needs the column of the answers"),
            hint=Hint("name it: {answer}", answer="answer"),
        )
    return Derived(f"{answer} = {gold}", answer=answer, gold=gold)
