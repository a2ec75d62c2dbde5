"""Which rows of a table may hang together: its columns, parts of ids and texts, days, orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
import polars as pl

from calibrant.core.arrays import Array, Floats, Indices, Mask
from calibrant.data.label_schema import SPREAD
from calibrant.data.reading.names import WORDS, bare
from calibrant.data.score_table import ScoreBlock, Scores
from calibrant.metrics.stats.dependence import (
    CellResiduals,
    Dependence,
    Grouping,
    search_groups,
)
from calibrant.metrics.stats.near_texts import near_equal_texts

# Fewer rows show no dependence; with more, near-equal texts are not searched.
LEAST_ROWS, MOST_TEXTS = 100, 200_000
# More values than this per row name rows; a column that names hardly any row holds ids or texts.
_MOST_VALUES, _IDS_SHARE, _LEAST_IDS = 0.6, 0.3, 20
_SAMPLE, _MOSTLY = 200, 0.8
# So many models of a comparison are each held against the others.
_MOST_MODELS = 12
# Bins in which a numeric column that a verb is asked about is taken off.
_KNOWN_BINS = 10
# Ways in which texts share words; of more texts or ids a part says which are worth a look.
_SHARED = ("first words", "last words", "nearly equal")
_SOME_TEXTS, _LEAST_PAIRS = 5_000, 0.005
_EDGE_WORDS, _MULTIPLIER = 5, np.uint64(0x9E3779B97F4A7C15)
_SEPARATOR = r"[-_/#:|.@\s]+"
_DATE = r"^\d{4}-\d\d-\d\d"
_OWN = frozenset(("model", "method", "answer", "weights", "correct", "confidence", "cluster_id"))
_PLACE = "_place"


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
    rows = _under_own_names(scores, frame), block.confidence, block.correct
    return search_dependence(*rows, skip=skip, units=block.units)


def _known_groups(frame: pl.DataFrame, names: Collection[str]) -> list[Indices]:
    """Return the groups of rows in columns whose part in the outcomes is known."""
    known_names = []
    for name in names:
        column = frame[name] if name in frame.columns else pl.Series(name, [])
        if column.len() and column.dtype.is_float():
            ranks = column.rank("dense", descending=False).fill_null(0).to_numpy()
            known_names.append((ranks * _KNOWN_BINS / (ranks.max() + 1)).astype(np.intp))
        elif column.len() and not column.dtype.is_nested():
            known_names += [each.codes for each in _values(name, column.cast(pl.String))]
    return known_names


def _under_own_names(scores: Scores, frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows whose ids have the name of their column; numbers of rows are no ids."""
    frame = frame.drop(_PLACE, strict=False)
    request = scores.reading.columns.get("question_id", "question_id")
    if "question_id" in scores.assumed:
        return frame.drop("question_id")
    return frame if request in frame.columns else frame.rename({"question_id": request})


def question_clusters(
    scores: Scores,
    frame: pl.DataFrame,
    questions: Array,
    confidence: Floats,
    correct: Floats,
    skip: Collection[str] = (),
) -> Dependence | None:
    """Search questions on which models differ together.

    What several models get wrong together does not move their difference: each model is held
    against the mean of the others. Columns that hold several values of one question are of
    answers, and say nothing of questions.

    Parameters
    ----------
    scores
        The table.
    frame
        Rows of all models.
    questions
        The id of each question.
    confidence, correct
        Of each model and question, shape (models, questions); NaN where there is none.
    skip
        Columns that are not looked at.
    """
    if scores.drawn_from is not None or questions.size < LEAST_ROWS:
        return None
    question_rows = frame.with_columns(pl.col("question_id").cast(pl.String))
    place = pl.DataFrame({"question_id": questions.astype(str)})
    first = question_rows.unique("question_id", keep="first", maintain_order=True)
    rows = place.join(first, on="question_id", how="left", maintain_order="left")
    own = {*skip, *_of_answers(question_rows, rows)}
    groupings = [*row_groupings(_under_own_names(scores, rows), own)]
    difference = _apart(confidence, correct)
    # Of two models one difference is all there is.
    models = np.unique(np.linspace(0, len(difference) - 1, _MOST_MODELS).astype(int)).tolist()
    models = models[:1] if len(difference) == 2 else models
    matches = Dependence(tested=tuple(each.kind for each in groupings))
    for model in models:
        nothing, share = np.zeros(questions.size), 1 / len(models)
        search = search_groups(nothing, difference[model], groupings, share=share)
        if search.inflation > matches.inflation:
            matches = search
    return matches


def _of_answers(frame: pl.DataFrame, rows: pl.DataFrame) -> set[str]:
    """Return the columns with several values for one question: they are of answers."""
    subset = frame.filter(pl.col("question_id").is_in(rows["question_id"].head(_SAMPLE).implode()))
    names = [name for name, kind in subset.schema.items() if not kind.is_nested()]
    counts = subset.group_by("question_id").agg(pl.col(names).exclude("question_id").n_unique())
    return {name for name in counts.columns[1:] if int(str(counts[name].max())) > 1}


def _apart(confidence: Floats, correct: Floats) -> Floats:
    """Return how far each model is from the mean of the others, beyond what confidence says."""
    left = np.full(confidence.shape, np.nan)
    for model, (confidences, right) in enumerate(zip(confidence, correct, strict=True)):
        has = np.isfinite(confidences) & np.isfinite(right)
        if has.any():
            left[model, has] = CellResiduals.of_rows(confidences[has], right[has]).residual
    finite, notes = np.isfinite(left), np.nan_to_num(left)
    others = np.maximum(finite.sum(axis=0) - finite, 1)
    companion = (notes.sum(axis=0) - notes) / others
    return np.where(finite & (finite.sum(axis=0) > 1), notes - companion, 0.0)


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
    known_values = _known_groups(frame, skip)
    return search_groups(confidences, right, row_groupings(frame, skip), known=known_values)


def _among_units(
    frame: pl.DataFrame, said: Floats, right: Floats, units: Indices, skip: Collection[str]
) -> Dependence:
    """Search units by the mean residual of their rows, in columns with one value for each."""
    first, unit = np.unique(units, return_index=True, return_inverse=True)[1:]
    if first.size < LEAST_ROWS:
        return Dependence()
    rows = np.bincount(unit)
    mean = np.bincount(unit, CellResiduals.of_rows(said, right).residual) / rows
    of_units = frame[first]
    varying = [
        name
        for name in frame.columns
        if not frame[name].equals(of_units[name].gather(unit), check_names=False)
    ]
    groupings = row_groupings(of_units, {*skip, *varying})
    return search_groups(np.zeros(first.size), mean, groupings).of_rows(unit)


def row_groupings(frame: pl.DataFrame, skip: Collection[str] = ()) -> Iterator[Grouping]:
    """Yield the ways in which rows of a table may belong together; the order of rows comes last."""
    for name, kind in frame.schema.items():
        if name in skip or name in _OWN or bare(name) in _JUDGED:
            continue
        column = frame[name]
        if kind.is_temporal() and kind not in (pl.Duration, pl.Time):
            yield from _times(name, column.dt.to_string("iso:strict"))
        elif kind.is_integer() or kind == pl.Boolean:
            yield from _values(name, column)
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            yield from _texts(name, column.cast(pl.String))
    yield Grouping("order", None, "order", np.arange(frame.height))


def _values(name: str, column: pl.Series) -> Iterator[Grouping]:
    codes = _codes(column)
    if 2 <= _distinct(codes) <= _MOST_VALUES * codes.size:
        yield Grouping("column", name, name, codes)


def _texts(name: str, column: pl.Series) -> Iterator[Grouping]:
    """Yield the groupings of a column of strings: categories, times, ids or texts."""
    codes = _codes(column)
    distinct, rows = _distinct(codes), codes.size
    subset = column.drop_nulls().head(_SAMPLE)
    if subset.len() and subset.str.contains(_DATE).all():
        yield from _times(name, column)
        return
    if 2 <= distinct <= _MOST_VALUES * rows:
        yield Grouping("column", name, name, codes)
    if distinct <= max(_IDS_SHARE * rows, _LEAST_IDS) or not subset.len():
        return
    if 2 * int(subset.str.contains(" ", literal=True).sum()) > subset.len():
        yield from _near_texts(name, column)
        return
    parts = subset.str.count_matches(_SEPARATOR)
    if float((parts > 0).cast(pl.Float64).mean() or 0) <= _MOSTLY:  # type: ignore[arg-type]
        return
    modes = {f"{name} without its end": _without_end}
    if float((parts > 1).cast(pl.Float64).mean() or 0) > _MOSTLY:  # type: ignore[arg-type]
        modes[f"first part of {name}"] = _first_part
    for words, part_of in modes.items():
        if _repeats(part_of, column):
            yield Grouping("part", name, words, _codes(part_of(column)))


def _without_end(ids: pl.Series) -> pl.Series:
    return ids.str.replace(rf"{_SEPARATOR}[^-_/#:|.@\s]*$", "")


def _first_part(ids: pl.Series) -> pl.Series:
    return ids.str.extract(r"^([^-_/#:|.@\s]+)")


def _repeats(part_of: Callable[[pl.Series], pl.Series], ids: pl.Series) -> bool:
    """Return whether parts of ids may repeat: in every so-manieth row some do already."""
    step = _step(ids.len())
    size = np.bincount(_codes(part_of(ids.gather_every(step))))
    return step == 1 or float(size @ (size - 1.0)) / 2 * step >= _LEAST_PAIRS * ids.len() / step


def _step(rows: int) -> int:
    """Return of how many rows one is looked at first."""
    return max(rows // _SOME_TEXTS, 1)


def _times(name: str, written: pl.Series) -> Iterator[Grouping]:
    """Yield the days of a column of times, and its order where rows stand in another one."""
    yield Grouping("day", name, f"day of {name}", _codes(written.str.head(10)))
    place = written.fill_null("").rank("ordinal").to_numpy().astype(np.intp) - 1
    if (np.diff(place) != 1).any():
        yield Grouping("order", name, f"order of {name}", place)


def _near_texts(name: str, column: pl.Series) -> Iterator[Grouping]:
    """Yield what texts share: their first words, their last ones, or most of the rare ones."""
    step = _step(column.len())
    targets = list(_SHARED)
    if step > 1:
        # Texts that hardly repeat in every so-manieth row hardly repeat in all.
        subset = _TextWords(column.gather_every(step))
        targets = [
            mode for mode in targets if subset.pairs(mode) * step >= _LEAST_PAIRS * subset.rows
        ]
    if not targets:
        return
    whole = _TextWords(column)
    for mode in targets:
        if mode != "nearly equal" or column.len() <= MOST_TEXTS:
            yield Grouping("text", name, f"{mode} {'of ' * (mode != 'nearly equal')}{name}",
                           whole.codes(mode))  # fmt: skip


class _TextWords:
    """The words of texts as numbers, and which texts share some."""

    def __init__(self, column: pl.Series) -> None:
        words = column.fill_null("").str.to_lowercase().str.extract_all(r"\w+")
        lengths = np.maximum(words.list.len().to_numpy().astype(np.intp), 1)
        self.rows, self.end = column.len(), np.cumsum(lengths)
        self.start = self.end - lengths
        # A text without words is one empty word.
        self.numbers = _codes(words.explode(empty_as_null=True).fill_null(""))

    def codes(self, way: str) -> Indices:
        """Return the group of each text."""
        if way == "nearly equal":
            return near_equal_texts(self.numbers, self.start)
        return _edge_words(self.numbers, self.start, self.end, back=way == "last words")

    def pairs(self, way: str) -> float:
        """Return how many pairs of texts share a group."""
        size = np.bincount(self.codes(way))
        return float(size @ (size - 1.0)) / 2


def _edge_words(numbers: Indices, start: Indices, end: Indices, *, back: bool) -> Indices:
    """Return codes of the first words of texts, or of the last ones."""
    key = np.zeros(start.size, np.uint64)
    for step in range(_EDGE_WORDS):
        place = end - 1 - step if back else start + step
        inside = (start <= place) & (place < end)
        word = np.where(inside, numbers[np.where(inside, place, 0)] + 1, 0)
        key = key * _MULTIPLIER + word.astype(np.uint64)
    return np.unique(key, return_inverse=True)[1].astype(np.intp)


def _distinct(codes: Indices) -> int:
    return int(codes.max()) + 1


def _codes(column: pl.Series) -> Indices:
    """Return values as numbers from 0 on; rows without a value are each on their own."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical).to_physical()
    missing: Mask = column.is_null().to_numpy()
    values = column.fill_null(0).cast(pl.Int64).to_numpy()
    least, most = int(values.min()), int(values.max())
    if most - least <= 4 * values.size:
        # A table of all values is quicker than sorting them.
        present = np.zeros(most - least + 1, np.intp)
        present[values[~missing] - least] = 1
        codes = (np.cumsum(present) - 1)[values - least]
    else:
        codes = np.unique(values, return_inverse=True)[1]
    if missing.any():
        codes[missing] = int(codes.max()) + 1 + np.arange(int(missing.sum()))
    return np.asarray(codes, np.intp)
