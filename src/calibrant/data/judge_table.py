"""A table of a judge's scores and people's: ratings, yes/no, words in an order, or pairs.

Empty cells of people are items that nobody rated. Which column is meant is named by the reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import TABLE, Call, Hint
from calibrant.data.logs.json_text import KINDS, ReadOptions
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.data.reading.names import WORDS, bare
from calibrant.data.tables import read_table, source_name

Kind = Literal["ratings", "yes/no", "pairs"]
# Column of a batch that says which row of the table is meant.
ROW, _PLACE = "row", "_row of the table"
_JUDGE = re.compile(r"judge|grader|rubric|model_graded|llm|gpt|claude|gemini|llama", re.I)
_HUMAN = re.compile(r"human|people|expert|annot|rater|crowd|person", re.I)
_NUMBER = r"^(?:[^\d:]*:\s*)?\[*\s*(-?\d+(?:[.,]\d+)?)\s*\]*\s*(?:%|(?:/|out of|of)\s*\d+)?$"
_SIDE = (
    r"^\W*(?:(?:model|assistant|response|answer|output|option|system|side)[\s_-]*)?"
    r"(a|b|1|2|left|right|first|second)\W*$"
)
_FIRST_SIDE = ["a", "1", "left", "first"]
_TIES = ["tie", "0", "c", "both", "equal", "draw", "neither", "same", "none", "tie (bothbad)"]
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
        return (self.low, self.high) == (other.low, other.high) and len(words) < 2

    @property
    def span(self) -> float:
        """Distance of the ends."""
        return self.high - self.low


YES_NO = RatingScale(words=("no", "yes"))


def read_judge_table(data: Any, columns: JudgeColumns, rated: Sequence[Any] = ()) -> JudgeTable:
    """Return the judge table that `data` holds, or say what is unclear and what to type.

    Batches that people `rated` fill the cells of the rows that they name.
    """
    frame = open_judged(data)
    single = [columns.first, columns.swapped, columns.model, columns.question, columns.answer]
    several = [*columns.judge, *columns.human, *columns.pairs, *columns.features]
    require_known([*several, *filter(None, single)], frame.columns, "there is no column {}")
    for batch in rated:
        frame = _with_batch(frame, batch, list(columns.human))
    place = data if isinstance(data, str) else TABLE
    return JudgeTable(frame, _with_guesses(columns, frame), place)


def open_judged(data: Any) -> pl.DataFrame:
    """Return a table as it is; of another tool's log a column for all that anybody said."""
    if not isinstance(data, str | Path) or (kind := recognise(data)) is None:
        return read_table(data)
    log = read_log(data, kind=kind, options=ReadOptions(opinions=True))
    if not log.opinions:
        raise InputError(f"nobody scored an answer in this log ({KINDS[kind]['what']})")
    return pl.DataFrame(log.opinions, infer_schema_length=None)


def _with_batch(frame: pl.DataFrame, batch: Any, people: list[str]) -> pl.DataFrame:
    """Return the rows with the ratings of a batch, whose column `row` says where each belongs."""
    filled, source = read_table(batch), source_name(batch)
    require_known([ROW, *people], filled.columns, "there is no column {}", source=source)
    cells = pl.col(people).cast(pl.String).replace("", None)
    filled = filled.select(pl.col(ROW).cast(pl.UInt32, strict=False).alias(_PLACE), cells)
    strange = ~filled[_PLACE].is_between(1, frame.height).fill_null(False)
    if strange.any():
        rule = f"the table has rows 1 to {frame.height:,}, and this is none of them"
        raise InputError(rule, source=source, row=int(strange.arg_max() or 0) + 1)
    numbered = frame.with_columns(pl.col(people).cast(pl.String)).with_row_index(_PLACE, 1)
    return numbered.update(filled, on=_PLACE).drop(_PLACE)


def likely_columns(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that are called like a judge's, and like people's.

    Examples
    --------
    >>> likely_columns(["item", "gpt4", "expert1", "expert2"])
    {'judge': ['gpt4'], 'human': ['expert1', 'expert2']}
    """
    human = [name for name in names if _HUMAN.search(name)]
    judge = [name for name in names if _JUDGE.search(name) and name not in human]
    return {"judge": judge, "human": human}


def _with_guesses(columns: JudgeColumns, frame: pl.DataFrame) -> JudgeColumns:
    rest = [n for n in frame.columns if n not in (*columns.judge, *columns.human, *columns.pairs)]
    matches: dict[str, Any] = {
        role: next((name for word in words.split() for name in rest if bare(name) == word), None)
        for role, words in WORDS["judged"].items()
    }
    if columns.pairs:
        matches["model"] = None
    for name in [] if columns.model or columns.pairs else rest:
        # Two columns of names that differ by `a` and `b` and hold the same few names.
        peer = re.sub(r"([_\s-])a$", r"\1b", name)
        if peer != name and peer in rest and "pairs" not in matches:
            a, b = (set(cell_texts(frame[part]).drop_nulls()) for part in (name, peer))
            if a & b and len(a | b) <= max(2, frame.height // 4):
                matches["pairs"] = (name, peer)
    return replace(columns, **{k: v for k, v in matches.items() if v and not getattr(columns, k)})


def _codes(frame: pl.DataFrame, columns: Sequence[str | None]) -> tuple[tuple[str, ...], Indices]:
    """Return the names in these columns, and which stands where."""
    texts = pl.col([name for name in columns if name]).cast(pl.String).fill_null("")
    cells: Array = frame.select(texts).to_numpy().astype(str)
    names, codes = np.unique(cells, return_inverse=True)
    return tuple(names.tolist()), codes.reshape(frame.height, -1)


def cell_texts(column: pl.Series) -> pl.Series:
    """Return cells as lower-case text; empty ones are null."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    text = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    return text.str.replace(r"^(-?\d+)\.0+$", "$1").replace("", None)


class JudgeTable:
    """Scores and ratings of the same items, as numbers; `frame` has the rows they come from.

    `rows` are their numbers in the table that was read, from 1; `scores` and `people`, NaN where
    there is none, have a row per item, `item` is a code of what it is about. `sides` holds codes of
    `models`: one column for ratings, two for pairs, or none. Of pairs `first` is 1 where the first
    side was shown first, and `swapped` the verdict in the other order. `left_out` counts rows
    without a score, and `notes` say what is to be known of the reading: cells that could not be
    read are counted, and a doubt ends in one command, about the data at `place`.
    """

    def __init__(self, frame: pl.DataFrame, columns: JudgeColumns, place: str = TABLE) -> None:
        self.frame, self.columns, self.place = frame, columns, place
        self.ties = [*_TIES, (columns.tie or "tie").lower()]
        self.notes: list[str] = []
        self.scales: dict[str, RatingScale] = {}
        self.kind, values = self._verdicts()
        scored = np.all([np.isfinite(values[name]) for name in columns.judge], axis=0)
        self.people = np.column_stack([values[name][scored] for name in columns.human])
        self._require_both()
        self.scores = {name: values[name][scored] for name in columns.judge}
        self.human_scale = self.scales[columns.human[0]]
        self.rows = np.flatnonzero(scored) + 1
        missing = frame.height - self.rows.size
        self.left_out = {"no score of the judge": missing} if missing else {}
        self.first, self.swapped = (
            self._sides(name)[scored] if name else None for name in (columns.first, columns.swapped)
        )
        self.frame = frame.filter(pl.Series(scored))
        pairs = columns.pairs if self.kind == "pairs" else [columns.model]
        self.models, self.sides = _codes(self.frame, pairs)
        if len(self.models) < 2:
            self.models, self.sides = (), self.sides[:, :0]
        item = _codes(self.frame, [columns.question])[1]
        self.item = item[:, 0] if columns.question else np.arange(self.rows.size)

    def _require_both(self) -> None:
        """Refuse a table without scores or ratings, and the other order of one judge of several."""
        if not len(self.people):
            raise InputError("no row has a score of the judge")
        if not np.isfinite(self.people).any():
            rule = f"no row has a rating by people (column {', '.join(self.columns.human)})"
            hint = "let people rate about 100 rows, chosen at random, and leave the others empty"
            raise InputError(rule, hint=hint)
        if self.columns.swapped and len(self.columns.judge) > 1:
            rule = "the other order is that of one judge, and several are named"
            raise InputError(f"{rule} (beside {self.columns.judge[0]})")

    def _verdicts(self) -> tuple[Kind, dict[str, Floats]]:
        """Return what kind they are, and the numbers of each column, whose scale is kept."""
        columns = self.columns
        cells = {name: cell_texts(self.frame[name]) for name in (*columns.judge, *columns.human)}
        words = {word for column in cells.values() for word in column.drop_nulls().unique()}
        # Verdicts name a side with a letter: bare 1 and 2 may be ratings.
        sides = {word for word in words if (match := re.match(_SIDE, word)) and match[1] in "ab"}
        are_sides = len(sides) > 1 and words <= {*sides, *self.ties} and not columns.order
        if columns.pairs or columns.first or columns.swapped or are_sides:
            self.scales = dict.fromkeys(cells, RatingScale())
            return "pairs", {name: self._sides(name) for name in cells}
        if columns.tie:
            rule = f"a tie ({columns.tie!r}) is a verdict on a pair, and these are ratings"
            raise InputError(rule, hint=Hint("name both sides with {pairs}", pairs="a,b"))
        values = self._ratings(cells, words)
        yes_no = self.scales[columns.human[0]].words == YES_NO.words
        return "yes/no" if yes_no else "ratings", values

    def _sides(self, name: str) -> Floats:
        """Return 1 where the first side is named, 0 for the second and 0.5 for a tie."""
        cells = cell_texts(self.frame[name])
        side, bare = cells.str.extract(_SIDE), cells.str.replace_all(r"^\W+|\W+$", "")
        a, b = ((cells == cell_texts(self.frame[peer])).fill_null(False)
                for peer in self.columns.pairs or (name, name))  # fmt: skip
        read = pl.select(
            pl.when(a ^ b).then(a.cast(pl.Float64))
            .when(cells.is_in(self.ties) | bare.is_in(self.ties)).then(0.5)
            .otherwise(side.is_in(_FIRST_SIDE).cast(pl.Float64))
        )  # fmt: skip
        return self._count_unread(name, cells, read.to_series(), "name a side (A, B) or a tie")

    def _ratings(self, cells: Mapping[str, pl.Series], words: set[str]) -> dict[str, Floats]:
        """Return the numbers of each column, whose scale is kept; people share one."""
        order = tuple(word.strip().lower() for word in self.columns.order)
        if order and not words & set(order):
            rule = f"none of {', '.join(order)} is a word of the scores or ratings"
            hint = f"they hold {', '.join(sorted(words)[:_MOST_WORDS])}"
            raise InputError(rule, hint=hint)
        answers = dict.fromkeys(_NO, 0.0) | dict.fromkeys(_YES, 1.0)
        values: dict[str, Floats] = {}
        for name, column in cells.items():
            distinct, counts = column.drop_nulls().value_counts().get_columns()
            usual = set(distinct.filter(counts >= _USUAL * float(counts.sum())))
            # One word for yes and one for no: `ok` is no `good`.
            few = max(len(usual & {*_YES}), len(usual & {*_NO})) == 1
            matches = ((word, re.match(_NUMBER, word)) for word in distinct)
            levels = {word: float(match[1].replace(",", ".")) for word, match in matches if match}
            scale = None
            if column.is_in(order).any():
                scale = RatingScale(1.0, float(len(order)), order)
                levels = {word: float(place) for place, word in enumerate(order, 1)}
            elif few and usual <= answers.keys() and usual != {"-1"}:
                scale, levels = YES_NO, answers
            elif not levels and 1 < distinct.len() <= _MOST_WORDS:
                self._ask(f"the words of {name} have no order yet", order=sorted(distinct))
            rule = f"be among {', '.join(levels)}" if scale else "be numbers"
            read = column.replace_strict(levels, default=None, return_dtype=pl.Float64)
            values[name] = self._count_unread(name, column, read, rule)
            self.scales[name] = scale or self._scale(name, values[name])
        shared = [self.scales[name] for name in self.columns.human]
        if len(set(shared)) > 1:
            low, high = min(part.low for part in shared), max(part.high for part in shared)
            self.scales |= dict.fromkeys(self.columns.human, RatingScale(low, high))
        self._ask_same(values)
        return values

    def _scale(self, name: str, values: Floats) -> RatingScale:
        text = self.columns.scale
        if name not in self.columns.judge:
            text = self.columns.human_scale or text
        finite = values[np.isfinite(values)]
        if text is None:
            usual = [e for e in _ENDS if np.all((e[0] <= finite) & (finite <= e[1]))]
            low, high = usual[0] if usual else (finite.min(), max(finite.max(), finite.min() + 1))
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
            raise InputError(rule, row=row + 1)
        return scale

    def _ask_same(self, values: Mapping[str, Floats]) -> None:
        """Ask for the ends where judge and people seem to share a scale, and one never uses it."""
        columns, people = self.columns, self.scales[self.columns.human[0]]
        ratings = np.concatenate([values[name] for name in columns.human])
        few = np.isfinite(ratings).sum() < _ENOUGH
        if (columns.scale and columns.human_scale) or few or not 1 < people.span <= 10:
            return
        low, best = f"{people.low:g}", float(np.nanmax(ratings))
        for judge in columns.judge:
            top = float(np.nanmax(values[judge])) if np.isfinite(values[judge]).any() else best
            if self.scales[judge].is_like(people) and abs(top - best) > 1:
                rule = f"{judge} goes up to {top:g} and people up to {best:g}: is it one scale?"
                self._ask(rule, scale=f"{low}-{top:g}", human_scale=f"{low}-{best:g}")

    def _count_unread(self, name: str, cells: pl.Series, read: pl.Series, rule: str) -> Floats:
        """Return numbers, NaN where there is none; cells that could not be read are counted."""
        bad, values = cells.is_not_null() & read.is_null(), len(cells) - cells.null_count()
        if count := int(bad.sum()):
            row = int(bad.arg_max() or 0) + 1
            notes = f"{cells[row - 1]!r} in column {name}"
            if count * 2 > values:
                raise InputError(f"cells should {rule}, got {notes}", row=row)
            self.notes.append(
                f"{count:,} of {values:,} cells of {name} could not be read (row {row}: {notes}); "
                "they count as empty"
            )
        return read.to_numpy().astype(float)

    def _ask(self, rule: str, **settings: Any) -> None:
        columns = self.columns
        call = Call("judge", self.place, judge=columns.judge, human=columns.human, **settings)
        why = "worst first" if "order" in settings else "or the ends that it has"
        raise InputError(rule, hint=Hint("say so, {0}:\n{call}", why, call=call))
