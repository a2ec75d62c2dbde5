"""The rows behind a number: question, answer, reference, confidences and grade, page by page."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.errors import InputError, require_known
from calibrant.data.sources.page_rows import StoredRows, by_meaning, page_question

OWN = frozenset({"question_id", "model", "method", "confidence", "correct", "weights"})
ROW = "row_in_file"
"""Column that numbers the rows as the file has them."""
LEFT_OUT = "left_out"
"""Column that says which rule a row breaks, of those that no number counts."""
UNNAMED = "not named"
"""What stands in place of a name that is missing."""
_HALF = 0.5
_MEANING = {"question_id", "model", "class_id", "answer", "correct"}
SORTS = ("worst", "confidence", "-confidence", "row")
# Rows that are searched before the clock is looked at again, and walked before they are counted.
_STRETCH = 100_000
Places = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True)
class RowQuery:
    """Which rows are wanted, and in which order.

    `low` and `high` are the ends of a range of confidence, as the cells of an audit have them:
    `low` belongs to it, `high` only where it is 1 or the same; values of `without` do not.
    `grade`: right, wrong, open (not graded) or silent (no confidence). `split`: models disagree on
    the question.
    """

    models: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    low: float | None = None
    high: float | None = None
    without: tuple[float, ...] = ()
    grade: str = ""
    split: bool = False
    words: str = ""
    sort: str = "worst"
    start: int = 0
    size: int = 50


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows, how many fit the query, and how many of those are graded wrong.

    `searched`: the share of the rows whose texts were searched in the time given.
    """

    rows: list[dict[str, Any]]
    total: int
    wrong: int
    graded: int
    searched: float = 1.0


@dataclass(slots=True)
class _Search:
    """Which places hold some words, as far as they were searched."""

    found: list[Places] = field(default_factory=list)
    done: int = 0


@dataclass
class Rows:
    """All rows of a table, a study or a log: numbers in memory, texts where they are.

    Parameters
    ----------
    index
        Numbers of every row, the most confidently wrong first; `place` is where its texts stand,
        `question` counts the questions.
    stored
        All columns, by place.
    texts
        Columns that hold question, answer and reference, by role.
    facets
        Columns of a few values each, to choose rows by.
    draws
        Answers that were drawn, with their meanings, where there are some.
    sentence
        How the table was read, where something was guessed.

    Examples
    --------
    >>> table = {"confidence": [0.9, 0.8, 0.4], "correct": [1, 0, 0], "answer": ["a", "b", "c"]}
    >>> from calibrant.verbs.opening.open_rows import open_rows
    >>> page = open_rows(table).page(RowQuery(grade="wrong"))
    >>> page.total, [row["answer"] for row in page.rows]
    (2, ['b', 'c'])
    """

    index: pl.DataFrame
    stored: StoredRows
    texts: Mapping[str, str]
    facets: Sequence[str]
    draws: pl.DataFrame | None = None
    sentence: str = ""

    _gaps: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)
    _values: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    _orders: dict[str, Places] = field(default_factory=dict, repr=False)
    _searches: dict[str, _Search] = field(default_factory=dict, repr=False)
    _masks: dict[RowQuery, pl.Series] = field(default_factory=dict, repr=False)
    _turn: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @cached_property
    def models(self) -> list[str]:
        """The models, in the order of the table."""
        return self._in_order("model")

    @cached_property
    def methods(self) -> list[str]:
        """The methods, in the order of the table."""
        return self._in_order("method")

    def gaps(self, method: str) -> dict[str, float]:
        """Return what each model says more than it is right, on average, with this method."""
        if method not in self._gaps:
            overlap = pl.col("confidence").is_not_null() & pl.col("correct").is_not_null()
            names = (pl.col("method") == method) & (pl.col("model") != UNNAMED)
            by_model = self.index.lazy().filter(overlap, names).group_by("model")
            gaps = by_model.agg((pl.col("confidence") - pl.col("correct")).mean()).collect()
            self._gaps[method] = {str(name): gap for name, gap in gaps.iter_rows()}
        return self._gaps[method]

    def values(self, facet: str) -> dict[str, int]:
        """Return the values of a facet with their numbers of rows."""
        if facet not in self._values:
            counts = self.index[facet].value_counts(sort=True)
            self._values[facet] = {str(n): count for n, count in counts.iter_rows() if n}
        return self._values[facet]

    def page(self, query: RowQuery, *, patience: float | None = None) -> RowPage:
        """Return one page of the rows that fit.

        `patience`: seconds after which a search of texts stops; asked again, it goes on.
        """
        unknown = (name for name, _ in query.groups if name not in self.index.columns)
        require_known(unknown, self.facets, "there is no column of groups {}")
        mask, searched = self._mask(replace(query, start=0, size=0, sort="", words="")), 1.0
        if query.words:
            hits, searched = self._holding(query.words, patience)
            mask = mask & hits
        total = int(mask.sum())
        rows = self._told(self.index[self._some(mask, query, total)])
        wrong, graded = (int((mask & mark).sum()) for mark in (self._wrong, self._graded))
        return RowPage(rows, total, wrong, graded, searched)

    def add_column(self, name: str, made: Callable[[], pl.Series]) -> None:
        """Add names of groups, by place, that no column of the file holds."""
        with self._turn:
            if name not in self.index.columns:
                names = made().cast(pl.Categorical).gather(self.index["place"])
                self.index = self.index.with_columns(names.alias(name))

    def everything(self) -> RowQuery:
        """Return the query of all rows."""
        return RowQuery(size=self.height)

    def question(self, place: int) -> dict[str, Any]:
        """Return one row with everything that is known about its question.

        All columns of the row, the confidences and answers of all models, and the draws.
        """
        row = self.index.filter(pl.col("place") == place)
        if not row.height:
            raise InputError(f"there is no row {place}")
        entry = self._told(row)[0]
        alike = self.index.filter(pl.col("question") == row["question"][0]).head(400)
        whole = self.stored.at([place]).row(0, named=True)
        display = {*OWN, ROW, LEFT_OUT}
        columns = {n: v for n, v in whole.items() if n not in display and v is not None}
        return {
            **entry,
            "columns": columns,
            LEFT_OUT: whole.get(LEFT_OUT),
            "all": self._told(alike),
            "draws": self._meanings([entry["question_id"]]).get(entry["question_id"], []),
        }

    def questions(self, most: int = 2_000) -> tuple[list[dict[str, Any]], str]:
        """Return questions with all their answers for a page, the most confidently wrong first.

        Pages must stay small: at most six answers or meanings per model, 16 confidences, and
        texts cut at 300 letters; the sentence that comes with them says so.
        """
        every = self.index["question"].n_unique()
        order = self.index["question"].head(60 * most).unique(maintain_order=True).head(most)
        codes = order.implode()
        rows = self._told(self.index.filter(pl.col("question").is_in(codes)).head(12 * most))
        draws: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            draws.setdefault(row["question_id"], []).append(row)
        meanings = self._meanings(list(draws))
        page = [page_question(name, answers, meanings.get(name)) for name, answers in draws.items()]
        note = f"All {every:,} questions."
        if len(page) < every:
            note = f"{len(page):,} of {every:,} questions, most confidently wrong."
        return page, note

    def _meanings(self, ids: list[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the drawn answers to questions by model and meaning, the most frequent first."""
        if self.draws is None or not set(self.draws.columns) >= _MEANING:
            return {}
        meanings: dict[str, list[dict[str, Any]]] = {}
        names = pl.col("question_id").cast(pl.String)
        for row in by_meaning(self.draws.filter(names.is_in(ids))).iter_rows(named=True):
            meanings.setdefault(str(row["question_id"]), []).append(row)
        return meanings

    def _mask(self, query: RowQuery) -> pl.Series:
        """Return which rows fit; the last few are kept, since the next page asks the same."""
        if query not in self._masks:
            if len(self._masks) > 4:
                self._masks.pop(next(iter(self._masks)))
            fits = pl.all_horizontal(*_conditions(query), pl.repeat(True, self.height))
            mask = self.index.select(fits.fill_null(False)).to_series()
            if query.split:
                mask &= self._disagreed
            self._masks[query] = mask
        return self._masks[query]

    def _in_order(self, column: str) -> list[str]:
        first = self.index.group_by(column).agg(pl.col("place").min()).sort("place")
        return [str(name) for name in first[column]]

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.index.height

    @cached_property
    def _graded(self) -> pl.Series:
        return self.index["correct"].is_not_null()

    @cached_property
    def _wrong(self) -> pl.Series:
        return (self.index["correct"] < _HALF).fill_null(False)

    @cached_property
    def _disagreed(self) -> pl.Series:
        """The rows of questions that some models answer right and others wrong."""
        codes, grades = self.index["question"].to_numpy(), self.index["correct"].to_numpy()
        right, wrong = np.zeros((2, int(codes.max(initial=0)) + 1), dtype=bool)
        right[codes[grades >= _HALF]] = True
        wrong[codes[grades < _HALF]] = True
        return pl.Series((right & wrong)[codes])

    def prepare(self) -> None:
        """Make orders and disagreements ahead of the click that asks for them."""
        for sort in ("row", "-confidence"):
            self._order(sort)
        self.page(RowQuery(split=True, size=0))

    def _some(self, mask: pl.Series, query: RowQuery, total: int) -> Places:
        """Return the rows of one page: a list is walked only as far as the page goes."""
        order = None if query.sort not in SORTS[1:] else self._order(query.sort)
        fits, end = mask.to_numpy(), query.start + query.size
        parts, before = [np.empty(0, np.uint32)], 0
        for place in range(0, self.height if query.size else 0, _STRETCH):
            if order is None:
                places = (np.flatnonzero(fits[place : place + _STRETCH]) + place).astype(np.uint32)
            else:
                places = order[place : place + _STRETCH]
                places = places[fits[places]]
            parts.append(places[max(query.start - before, 0) : max(end - before, 0)])
            before += places.size
            if before >= min(end, total):
                break
        return np.concatenate(parts)

    def _order(self, sort: str) -> Places:
        """Return all rows in an order: it is made once, since every page needs it."""
        confidence = self.index["confidence"]
        with self._turn:
            if sort == "confidence":
                order, count = self._order("-confidence"), self.height - confidence.null_count()
                return np.concatenate([order[:count][::-1], order[count:]])
            if sort not in self._orders and sort == "row":
                order = np.empty(self.height, np.uint32)
                order[self.index["place"].to_numpy()] = np.arange(self.height, dtype=np.uint32)
                self._orders[sort] = order
            elif sort not in self._orders:
                # Two sorted stretches, the wrong ones and the others: a stable sort joins them.
                order = np.argsort(-confidence.to_numpy(), kind="stable").astype(np.uint32)
                self._orders[sort] = order
        return self._orders[sort]

    def _holding(self, words: str, patience: float | None) -> tuple[pl.Series, float]:
        """Return the rows whose texts hold some words, in any case, and the share searched."""
        if words not in self._searches:
            if len(self._searches) > 4:
                self._searches.pop(next(iter(self._searches)))
            self._searches[words] = _Search()
        search, began = self._searches[words], time.monotonic()
        # Something is shown at once: the first look is short, the next ones search for longer.
        patience = patience if patience is None or search.done else patience / 4
        names = [*dict.fromkeys([*self.texts.values(), "question_id"])]
        pattern = f"(?i){pl.escape_regex(words)}"
        texts = pl.col(names).cast(pl.String).fill_null("")
        holds = pl.any_horizontal(texts.str.contains(pattern))
        while search.done < self.height:
            subset = self.stored.stretch(search.done, _STRETCH).select(holds).collect().to_series()
            search.found.append((subset.arg_true().to_numpy() + search.done).astype(np.uint32))
            search.done += subset.len()
            if patience is not None and time.monotonic() - began > patience:
                break
        fits = np.zeros(self.height, dtype=bool)
        fits[self._order("row")[np.concatenate([np.empty(0, np.uint32), *search.found])]] = True
        return pl.Series(fits), search.done / max(self.height, 1)

    def _told(self, subset: pl.DataFrame) -> list[dict[str, Any]]:
        if not subset.height:
            return []
        texts = self.stored.at(subset["place"].to_list())
        return [
            {
                "place": row["place"],
                "row": texts[ROW][number],
                "question_id": texts["question_id"][number],
                **{role: _text(texts[name][number]) for role, name in self.texts.items()},
                "model": str(row["model"]),
                "method": str(row["method"]),
                "confidence": row["confidence"],
                "correct": row["correct"],
                "group": {n: str(row[n]) for n in self.facets if row[n] is not None},
            }
            for number, row in enumerate(subset.iter_rows(named=True))
        ]


def _conditions(query: RowQuery) -> Iterator[pl.Expr]:
    confidence, grade = pl.col("confidence"), pl.col("correct")
    for name, target_names in (("model", query.models), ("method", query.methods)):
        if target_names:
            # One by one: names are compared as codes so, not as texts.
            yield pl.any_horizontal(pl.col(name) == item for item in target_names)
    for name, value in query.groups:
        yield pl.col(name) == value
    if query.low is not None:
        yield confidence >= query.low
    if query.high is not None:
        closed = query.high >= 1 or query.high == query.low
        yield confidence <= query.high if closed else confidence < query.high
    for stated_confidence in query.without:
        yield confidence != stated_confidence
    if query.grade:
        yield {
            "wrong": grade < _HALF,
            "right": grade >= _HALF,
            "open": grade.is_null(),
            "silent": confidence.is_null(),
        }[query.grade]


def _text(value: Any) -> str | None:
    if isinstance(value, pl.Series):
        value = value.to_list()
    if isinstance(value, list | tuple):
        return " | ".join(filter(None, map(_text, value)))
    return None if value is None else str(value)
