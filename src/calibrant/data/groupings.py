"""Which rows of a table may hang together: its columns, parts of ids and texts, days, orders."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.data.label_schema import SPREAD
from calibrant.data.reading import Reading
from calibrant.data.reading.names import WORDS, bare
from calibrant.data.score_table import ScoreBlock, Scores
from calibrant.data.texts import TextWords, value_codes
from calibrant.metrics.stats.clusters import CellResiduals
from calibrant.metrics.stats.dependence import (
    Dependence,
    Grouping,
    GroupingKind,
    screen_groupings,
    search_groups,
)

# Fewer rows show no dependence; with more, near-equal texts are not searched.
LEAST_ROWS, MOST_TEXTS = 100, 200_000
# More values than this per row name rows; a column that names hardly any row holds ids or texts.
_MOST_VALUES, _IDS_SHARE, _LEAST_IDS = 0.6, 0.3, 20
SAMPLE, _MOSTLY = 200, 0.8
# Bins in which a numeric column that a verb is asked about is taken off.
_KNOWN_BINS = 10
# Of many rows so many tell which groupings are worth a look at all of them. They are drawn at
# random: every tenth row of a sorted table may be one of each group.
_PART, _MANY, _SEED = 10_000, 20_000, 59
_SEPARATOR = r"[-_/#:|.@\s]+"
# The end of an id with what comes before it, and its first part.
_END, _FIRST = rf"{_SEPARATOR}[^-_/#:|.@\s]*$", r"^([^-_/#:|.@\s]+)"
_DATE = r"^\d{4}-\d\d-\d\d"
# Seconds since 1970 of the years 2001 to 2038.
_SECONDS = 10**9, 2**31 - 1
_OWN = frozenset(("model", "method", "answer", "weights", "correct", "confidence", "cluster_id"))
_PLACE = "_place"
# Units by content: so many with several rows, of so many on average, alike by chance in one table
# of a million.
_LEAST_UNITS, _MOST_STEPS, _BY_CHANCE = 20, 50, np.log(1e-6)
# A kind of grouping, its words, and what gives its codes.
_Way: TypeAlias = tuple[GroupingKind, str, Callable[[], Indices]]


# What was said, or how it was judged, puts rows together by their outcome. Whole names only: those
# of `graded_by` and `label_batch` hold who judged, and when.
_JUDGED = frozenset(
    word
    for words in (
        *(WORDS["roles"][role].values() for role in ("confidence", "right", "wrong")),
        (WORDS["called"]["answer"], WORDS["called"]["reference"]),
    )
    for part in words
    for word in part.split()
)


def block_dependence(
    scores: Scores, block: ScoreBlock, skip: Collection[str] = ()
) -> Dependence | None:
    """Search a block of a table for rows that are right and wrong together.

    Parameters
    ----------
    scores
        The table.
    block
        Some of its rows.
    skip
        Columns that a verb is asked about: not looked at, and what they say is taken off.

    Returns
    -------
    Dependence or None
        None where nothing is to be searched: a cluster was named, rows were drawn at random from
        a pool (they are independent for that pool), or they are few.
    """
    frame = block.frame
    draws = scores.drawn_from is not None or SPREAD in frame.columns
    if block.cluster is not None or draws or frame.height < LEAST_ROWS:
        return None
    frame = under_own_names(frame, scores.reading, scores.assumed)
    rows = frame, block.confidence, block.correct
    return search_dependence(*rows, skip=skip, units=block.units)


def _known_groups(frame: pl.DataFrame, names: Collection[str]) -> list[Indices]:
    """Return the groups of rows in columns whose part in the outcomes is known."""
    fixed = []
    for name in names:
        column = frame[name] if name in frame.columns else pl.Series(name, [])
        if column.len() and column.dtype.is_float():
            ranks = column.rank("dense", descending=False).fill_null(0).to_numpy()
            fixed.append((ranks * _KNOWN_BINS / (ranks.max() + 1)).astype(np.intp))
        elif column.len() and not column.dtype.is_nested():
            column_groups = _values(name, value_codes(column.cast(pl.String)))
            fixed += [codes() for _, _, codes in column_groups]
    return fixed


def under_own_names(
    frame: pl.DataFrame, reading: Reading, assumed: Collection[str]
) -> pl.DataFrame:
    """Return rows whose ids have the name of their column; numbers of rows are no ids."""
    frame = frame.drop(_PLACE, strict=False)
    question = reading.columns.get("question_id", "question_id")
    if "question_id" in assumed:
        return frame.drop("question_id")
    return frame if question in frame.columns else frame.rename({"question_id": question})


def search_dependence(
    frame: pl.DataFrame,
    confidence: Array,
    correct: Array,
    *,
    skip: Collection[str] = (),
    units: Indices | None = None,
) -> Dependence:
    """Search the rows of one model and method for such as are right and wrong together.

    Parameters
    ----------
    frame
        A row per answer, in the order in which they stand in the table; columns that play a role
        have its name, as in `ScoreBlock.frame`.
    confidence, correct
        Of each row.
    skip
        Columns that are not looked at, and whose part in the outcomes is taken off.
    units
        Question of each row where questions repeat: the search is then among questions.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> frame = pl.DataFrame({"id": [f"q{k // 10}-{k % 10}" for k in range(1_000)]})
    >>> said = rng.uniform(0.5, 0.9, 1_000)
    >>> right = rng.random(1_000) < said + np.repeat(rng.normal(0, 0.2, 100), 10)
    >>> search_dependence(frame, said, right).groups[0].grouping.words
    'id without its end'
    """
    confidences, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if units is not None:
        return _among_units(frame, confidences, right, units, skip)
    if frame.height < LEAST_ROWS:
        return Dependence()
    if (unit := _outcome_units(frame, right, skip)) is not None:
        whole = search_groups(confidences, right, [unit])
        remainder = _among_units(frame, confidences, right, unit.codes, {*skip, unit.words})
        return replace(
            remainder,
            groups=(*whole.groups, *remainder.groups)[:2],
            tested=("unit", *remainder.tested),
        )
    return _search(frame, confidences, right, skip, _known_groups(frame, skip))


def _outcome_units(frame: pl.DataFrame, outcome: Floats, skip: Collection[str]) -> Grouping | None:
    """Return the column whose values have one outcome each: a run's on every step of it."""
    share = outcome.mean()
    part = None if frame.height <= _MANY else _part_of(frame)
    for name in frame.columns:
        if name in skip or name in _OWN or bare(name) in _JUDGED:
            continue
        kind = frame.schema[name]
        if not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum)):
            continue
        column = _as_strings(frame[name])
        first = zip(column.head(SAMPLE), outcome[:SAMPLE], strict=True)
        known = {pair for pair in first if pair[0] is not None}
        if len(known) > len({value for value, _ in known}):
            continue
        if part is not None:
            # Of many rows a part holds rows of one unit, if there are units.
            some = column[part]
            if some.n_unique() == part.size or not _one_outcome(value_codes(some), outcome[part]):
                continue
        codes = value_codes(column)
        size = np.bincount(codes)
        several = size[size > 1]
        # Large groups of one outcome tell it in other words; small ones are alike by chance.
        chance = np.log(share**several + (1 - share) ** several).sum()
        idle = several.size < _LEAST_UNITS or several.mean() > _MOST_STEPS or chance > _BY_CHANCE
        if not idle and _one_outcome(codes, outcome):
            return Grouping("unit", name, name, codes)
    return None


def _one_outcome(codes: Indices, outcome: Floats) -> bool:
    first = np.zeros(_distinct(codes))
    first[codes[::-1]] = outcome[::-1]
    return bool((first[codes] == outcome).all())


def _part_of(frame: pl.DataFrame) -> Indices:
    """Return some of many rows, drawn at random."""
    return np.sort(np.random.default_rng(_SEED).choice(frame.height, _PART, replace=False))


def _search(
    frame: pl.DataFrame,
    confidence: Floats,
    outcome: Floats,
    skip: Collection[str],
    fixed: Sequence[Indices] = (),
) -> Dependence:
    """Search all groupings, or of many rows those at which a part of the rows hints."""
    if frame.height <= _MANY:
        return search_groups(confidence, outcome, row_groupings(frame, skip), fixed=fixed)
    part = _part_of(frame)
    step = frame.height / _PART
    hints, idle = screen_groupings(
        CellResiduals.of_rows(confidence[part], outcome[part], [codes[part] for codes in fixed]),
        row_groupings(frame[part], skip, step=step),
        step,
    )
    groupings = row_groupings(frame, skip, only=hints)
    return search_groups(confidence, outcome, groupings, fixed=fixed, idle=idle)


def _among_units(
    frame: pl.DataFrame,
    confidence: Floats,
    right: Floats,
    units: Indices,
    skip: Collection[str],
) -> Dependence:
    """Search units by the mean residual of their rows, in columns with one value for each."""
    first, unit = np.unique(units, return_index=True, return_inverse=True)[1:]
    if first.size < LEAST_ROWS:
        return Dependence()
    rows = np.bincount(unit)
    mean = np.bincount(unit, CellResiduals.of_rows(confidence, right).residual) / rows
    of_units = frame[first]
    varying = [
        name
        for name in frame.columns
        if not frame[name].equals(of_units[name].gather(unit), check_names=False)
    ]
    return _search(of_units, np.zeros(first.size), mean, {*skip, *varying}).of_rows(unit)


def row_groupings(
    frame: pl.DataFrame,
    skip: Collection[str] = (),
    *,
    only: Collection[str] | None = None,
    step: float = 1.0,
) -> Iterator[Grouping]:
    """Yield the ways in which rows of a table may belong together; the order of rows comes last.

    Parameters
    ----------
    frame
        The rows.
    skip
        Columns that are not looked at.
    only
        Groupings that are looked at, by their words; None for all. The order of rows always is.
    step
        Of so many rows each is one: values repeat more often in all of them.
    """
    for name in frame.columns:
        if name in skip or name in _OWN or bare(name) in _JUDGED:
            continue
        if only is not None and not any(name in words for words in only):
            continue
        for kind, words, codes in _ways(name, frame[name], step):
            if only is None or words in only:
                yield Grouping(kind, name, words, codes())
    yield Grouping("order", None, "order", np.arange(frame.height))


def _ways(name: str, column: pl.Series, step: float) -> Iterator[_Way]:
    """Yield the groupings of a column: its values, its times, or parts of its ids and texts."""
    kind = column.dtype
    if kind.is_float():
        column = _whole_numbers(column)
    if kind.is_temporal() and kind not in (pl.Duration, pl.Time):
        yield from _times(name, column, lambda: column.dt.date().to_physical())
    elif column.dtype.is_integer() and 0 < column.count() == column.is_between(*_SECONDS).sum():
        yield from _times(name, column, lambda: column // 86_400)
    elif column.dtype.is_integer() or kind == pl.Boolean:
        yield from _values(name, value_codes(column), step)
    elif kind in (pl.String, pl.Categorical, pl.Enum):
        yield from _strings(name, _as_strings(column), step)


def _as_strings(column: pl.Series) -> pl.Series:
    """Return categories as strings; strings, and numbers, as they are."""
    return column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column


def _whole_numbers(column: pl.Series) -> pl.Series:
    """Return numbers of customers, which a missing one made floats, as integers."""
    column = column.fill_nan(None)
    values = column.drop_nulls()
    if (
        not column.null_count()
        or values.n_unique() < _LEAST_IDS
        or (values != values.round()).any()
    ):
        return column
    return column.cast(pl.Int64, strict=False)


def _values(name: str, codes: Indices, step: float = 1.0) -> Iterator[_Way]:
    most = codes.size - 1 if step > 1 else _MOST_VALUES * codes.size
    if 2 <= _distinct(codes) <= most:
        yield "column", name, lambda: codes


def _times(name: str, times: pl.Series, days: Callable[[], pl.Series]) -> Iterator[_Way]:
    """Yield the days of a column of times, and its order where rows stand in another one."""
    yield "day", f"day of {name}", lambda: value_codes(days())
    # Rows without a time come with the first ones.
    times = times.fill_null(strategy="min")
    if not times.is_sorted():
        yield (
            "order",
            f"order of {name}",
            lambda: times.rank("ordinal").to_numpy().astype(np.intp) - 1,
        )


def _strings(name: str, column: pl.Series, step: float) -> Iterator[_Way]:
    """Yield the groupings of a column of strings: categories, times, ids or texts."""
    # A step through polars takes longer than these few rows.
    first = [text for text in column.head(SAMPLE) if text is not None]
    if first and all(re.match(_DATE, text) for text in first):
        yield from _times(name, column, lambda: column.str.head(10))
        return
    codes = value_codes(column)
    yield from _values(name, codes, step)
    if _distinct(codes) <= max(_IDS_SHARE * codes.size, _LEAST_IDS) or not first:
        return
    if 2 * sum(" " in text for text in first) > len(first):
        texts = TextWords(column)
        yield "text", f"first words of {name}", texts.first_words
        yield "text", f"last words of {name}", texts.last_words
        if column.len() <= MOST_TEXTS:
            yield "text", f"nearly equal {name}", texts.nearly_equal
        return
    parts = np.array([len(re.findall(_SEPARATOR, text)) for text in first])
    ids = (
        (parts == 0, "{} without its last number", lambda: column.str.replace(r"\d+$", "")),
        (parts > 0, "{} without its end", lambda: column.str.replace(_END, "")),
        (parts > 1, "first part of {}", lambda: column.str.extract(_FIRST)),
    )
    for alike, words, part in ids:
        if alike.mean() > _MOSTLY:
            yield "part", words.replace("{}", name, 1), partial(_codes_of, part)


def _codes_of(part: Callable[[], pl.Series]) -> Indices:
    return value_codes(part())


def _distinct(codes: Indices) -> int:
    return int(codes.max()) + 1
