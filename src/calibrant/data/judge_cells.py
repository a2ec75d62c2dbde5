"""Cells of judges and people as numbers: ratings, yes/no, words in an order, sides of a pair."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint

Kind = Literal["ratings", "yes/no", "pairs"]
_NUMBER = re.compile(
    r"^\s*(?:[^\d:]*:\s*)?\[*\s*(-?\d+(?:[.,]\d+)?)\s*\]*\s*(?:%|(?:/|out of|of)\s*\d+\s*)?\s*$"
)
_SIDE = re.compile(
    r"^\W*(?:(?:model|assistant|response|answer|output|option|system|side)[\s_-]*)?"
    r"(a|b|1|2|left|right|first|second)\W*$"
)
_MARKS = re.compile(r"^\W+|\W+$")
_FIRST_SIDE = ("a", "1", "left", "first")
_TIES = {"tie", "0", "c", "both", "equal", "draw", "neither", "same", "none", "tie (bothbad)"}
_YES = ("yes", "y", "true", "pass", "passed", "correct", "right", "good", "acceptable", "1", "ok")
_NO = ("no", "n", "false", "fail", "failed", "incorrect", "wrong", "bad", "unacceptable", "0", "-1")
# Ends that scales of whole numbers have; the least that holds all values is taken.
_ENDS = ((0, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
_MOST_WORDS = 12
# With fewer ratings it may be chance that nobody used the top of the scale.
_ENOUGH = 30
# A rarer word is a slip of the judge, which is counted.
_USUAL = 0.01


class JudgeColumns(Struct, frozen=True):
    """Columns by role, and how their cells are written."""

    judge: Sequence[str]
    human: Sequence[str]
    scale: str | None = None
    human_scale: str | None = None
    order: Sequence[str] = ()
    pairs: Sequence[str] = ()
    tie: str | None = None
    first: str | None = None
    swapped: str | None = None
    model: str | None = None
    question: str | None = None
    answer: str | None = None
    features: Sequence[str] = ()


class RatingScale(Struct, frozen=True):
    """The ends of a scale, and its words from the least to the best where it has words."""

    low: float = 0.0
    high: float = 1.0
    words: tuple[str, ...] = ()

    def unit(self, values: Floats) -> Floats:
        """Return values of this scale between 0 and 1."""
        return np.asarray(np.clip((values - self.low) / self.span, 0.0, 1.0))

    def rating(self, share: float) -> float:
        """Return the value of this scale at a share of its way from the low end."""
        return self.low + self.span * share

    def is_like(self, other: RatingScale) -> bool:
        """Return whether both say the same by the same number: a share is one of yes."""
        words = {scale.words for scale in (self, other) if scale.words}
        return self.ends == other.ends and len(words) < 2

    @property
    def ends(self) -> list[float]:
        """Both ends."""
        return [self.low, self.high]

    @property
    def span(self) -> float:
        """Distance of the ends."""
        return self.high - self.low


YES_NO = RatingScale(words=("no", "yes"))


def cell_texts(column: pl.Series) -> pl.Series:
    """Return cells as lower-case text; empty ones are null."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    text = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    return text.str.replace(r"^(-?\d+)\.0+$", "$1").replace("", None)


def _is_yes_no(column: pl.Series) -> bool:
    """Return whether nearly all cells hold one word for yes, or one for no: `ok` is no `good`."""
    words, counts = column.drop_nulls().value_counts().get_columns()
    usual = set(words.filter(counts >= _USUAL * float(counts.sum())))
    few = max(len(usual & set(part)) for part in (_YES, _NO)) <= 1
    return bool(usual) and usual <= {*_YES, *_NO} and few and usual != {"-1"}


class JudgeCells:
    """Cells as numbers; what could not be read is counted, and a doubt ends in one command."""

    def __init__(self, frame: pl.DataFrame, source: str, columns: JudgeColumns, place: str) -> None:
        self.frame, self.source, self.columns, self.place = frame, source, columns, place
        self.notes: list[str] = []

    def verdicts(self) -> tuple[Kind, dict[str, Floats], dict[str, RatingScale]]:
        """Return what kind they are, the numbers of each column, and its scale."""
        columns = self.columns
        cells = {name: cell_texts(self.frame[name]) for name in (*columns.judge, *columns.human)}
        words = {word for column in cells.values() for word in column.drop_nulls().unique()}
        if columns.pairs or columns.first or columns.swapped or self._are_sides(words):
            values = {name: self.sides(name) for name in cells}
            return "pairs", values, dict.fromkeys(cells, RatingScale())
        if columns.tie:
            rule = f"a tie ({columns.tie!r}) is a verdict on a pair, and these are ratings"
            hint = Hint("name both sides with {pairs}", pairs="a,b")
            raise InputError(rule, source=self.source, hint=hint)
        values, scales = self._ratings(cells, words)
        yes_no = scales[columns.human[0]].words == YES_NO.words
        return "yes/no" if yes_no else "ratings", values, scales

    def _are_sides(self, words: set[str]) -> bool:
        """Return whether verdicts name a side with a letter: bare 1 and 2 may be ratings."""
        sides = {word for word in words if (match := _SIDE.match(word)) and match[1] in "ab"}
        ties = {*_TIES, (self.columns.tie or "tie").lower()}
        return not self.columns.order and len(sides) >= 2 and words <= sides | ties

    def sides(self, name: str) -> Floats:
        """Return 1 where the first side is named, 0 for the second and 0.5 for a tie."""
        cells = cell_texts(self.frame[name])
        names = [cell_texts(self.frame[side]).to_list() for side in self.columns.pairs]
        nobody = [None] * len(cells)
        ties = {*_TIES, (self.columns.tie or "tie").lower()}
        values = []
        for word, a, b in zip(cells.to_list(), *(names or (nobody, nobody)), strict=True):
            side = _SIDE.match(word or "")
            if word is not None and word in (a, b) and a != b:
                values.append(float(word == a))
            elif word is not None and {word, _MARKS.sub("", word)} & ties:
                values.append(0.5)
            else:
                values.append(np.nan if side is None else float(side[1] in _FIRST_SIDE))
        read = np.array(values)
        self._count_unread(name, cells, np.isfinite(read), "name a side (A, B) or a tie")
        return read

    def _ratings(
        self, cells: Mapping[str, pl.Series], words: set[str]
    ) -> tuple[dict[str, Floats], dict[str, RatingScale]]:
        """Return the numbers of each column, and its scale; people share one."""
        order = tuple(word.strip().lower() for word in self.columns.order)
        if order and not words & set(order):
            rule = f"none of {', '.join(order)} is a word of the scores or ratings"
            hint = f"they hold {', '.join(sorted(words)[:_MOST_WORDS])}"
            raise InputError(rule, source=self.source, hint=hint)
        levels = {word: float(place) for place, word in enumerate(order, 1)}
        answers = dict.fromkeys(_NO, 0.0) | dict.fromkeys(_YES, 1.0)
        values, scales = {}, {}
        for name, column in cells.items():
            if column.is_in(order).any():
                values[name] = self._mapped(name, column, levels)
                scales[name] = RatingScale(1.0, float(len(order)), order)
            elif _is_yes_no(column):
                values[name], scales[name] = self._mapped(name, column, answers), YES_NO
            else:
                values[name] = self._numbers(name, column)
                scales[name] = self._scale(name, values[name])
        shared = [scales[name] for name in self.columns.human]
        if len(set(shared)) > 1:
            low, high = min(part.low for part in shared), max(part.high for part in shared)
            scales |= dict.fromkeys(self.columns.human, RatingScale(low, high))
        self._ask_same(values, scales)
        return values, scales

    def _mapped(
        self, name: str, cells: pl.Series, numbers: Mapping[str, float], rule: str = ""
    ) -> Floats:
        mapped = cells.replace_strict(dict(numbers), default=None, return_dtype=pl.Float64)
        values = mapped.fill_null(np.nan).to_numpy()
        rule = rule or f"be among {', '.join(numbers)}"
        self._count_unread(name, cells, np.isfinite(values), rule)
        return values

    def _numbers(self, name: str, cells: pl.Series) -> Floats:
        """Return ratings, with a label, brackets, a share or a percent sign beside them."""
        distinct = cells.drop_nulls().unique().to_list()
        numbers = {word: float(match[1].replace(",", ".")) for word in distinct
                   if (match := _NUMBER.match(word))}  # fmt: skip
        if not numbers and 1 < len(distinct) <= _MOST_WORDS:
            self._ask(f"the words of {name} have no order yet", order=sorted(distinct))
        return self._mapped(name, cells, numbers, "be numbers")

    def _scale(self, name: str, values: Floats) -> RatingScale:
        text = self.columns.scale
        if name not in self.columns.judge:
            text = self.columns.human_scale or text
        finite = values[np.isfinite(values)]
        least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if text is None:
            usual = (ends for ends in _ENDS if ends[0] <= least and most <= ends[1])
            low, high = next(usual, (least, max(most, least + 1.0)))
            return RatingScale(float(low), float(high))
        ends = re.fullmatch(r"\s*(-?[\d.]+)\s*(?:-|to|\.\.)\s*(-?[\d.]+)\s*", text)
        if ends is None or float(ends[1]) >= float(ends[2]):
            hint = Hint("write it like {scale}", scale="1-5")
            raise InputError(f"a scale is two ends, got {text!r}", hint=hint)
        scale = RatingScale(float(ends[1]), float(ends[2]))
        outside = (values < scale.low) | (values > scale.high)
        if outside.any():
            row = int(outside.argmax())
            rule = f"column {name} has the value {values[row]:g}, outside its scale {text}"
            raise InputError(rule, source=self.source, row=row + 1)
        return scale

    def _ask_same(self, values: Mapping[str, Floats], scales: Mapping[str, RatingScale]) -> None:
        """Ask for the ends where judge and people seem to share a scale, and one never uses it."""
        columns, people = self.columns, scales[self.columns.human[0]]
        ratings = np.concatenate([values[name] for name in columns.human])
        few = np.isfinite(ratings).sum() < _ENOUGH
        if (columns.scale and columns.human_scale) or few or not 1 < people.span <= 10:
            return
        low, best = f"{people.low:g}", float(np.nanmax(ratings))
        for judge in columns.judge:
            top = float(np.nanmax(values[judge])) if np.isfinite(values[judge]).any() else best
            if scales[judge].is_like(people) and abs(top - best) > 1:
                rule = f"{judge} goes up to {top:g} and people up to {best:g}: is it one scale?"
                self._ask(rule, scale=f"{low}-{top:g}", human_scale=f"{low}-{best:g}")

    def _count_unread(self, name: str, cells: pl.Series, read: Any, rule: str) -> None:
        bad = cells.is_not_null().to_numpy() & ~read
        count, values = int(bad.sum()), int(cells.is_not_null().sum())
        if not count:
            return
        row = int(bad.argmax()) + 1
        notes = f"{cells[row - 1]!r} in column {name}"
        if count * 2 > values:
            raise InputError(f"cells should {rule}, got {notes}", source=self.source, row=row)
        self.notes.append(
            f"{count:,} of {values:,} cells of {name} could not be read (row {row}: {notes}); "
            "they count as empty"
        )

    def _ask(self, rule: str, **settings: Any) -> None:
        columns = self.columns
        call = Call("judge", self.place, judge=columns.judge, human=columns.human, **settings)
        why = "worst first" if "order" in settings else "or the ends that it has"
        hint = Hint("say so, {0}:\n{call}", why, call=call)
        raise InputError(rule, source=self.source, hint=hint)
