"""The shape of a judge's table: one row per item, a column per judge and per person.

Which column is whose is told by names and by cells: lists, rows per rater, models of pairs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from calibrant.data.judge_cells import (
    TIES,
    cell_counts,
    cell_texts,
    in_order,
    read_numbers,
    read_stars,
    read_yes_no,
    side_values,
)
from calibrant.data.reading.names import WORDS, bare, token_weights, tokens

_JUDGE = re.compile(r"judge|grader|rubric|model_graded|llm|gpt|claude|gemini|llama", re.I)
_HUMAN = re.compile(r"human|people|expert|annot|rater|crowd|person|labell?er|reviewer|worker", re.I)
_WHO = re.compile(r"^(who|by|user|name|email)$|judge|grader|evaluator|user.?(id|name)", re.I)
_MOST_RATERS = 50
# Rows of ratings are more than their items: at least four for three of these; a few may stand there
# twice.
_REPEATED, _ONCE = 0.75, 0.95


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


def by_person(
    frame: pl.DataFrame, columns: JudgeColumns, notes: list[str]
) -> tuple[pl.DataFrame, JudgeColumns]:
    """Return a row per item with a column per person, however people's ratings were listed.

    They are where a cell holds a list, where a column names who rated the row, and where a judge
    or a person is no column but a name in one.
    """
    unknown = [name for name in (*columns.judge, *columns.human) if name not in frame.columns]
    human: list[str] = []
    for name in columns.human:
        parts = _listed(frame[name]) if name in frame.columns else None
        human += [name] if parts is None else parts.columns
        frame = frame if parts is None else frame.drop(name).hstack(parts)
    columns = replace(columns, human=human)
    layout = _rater_columns(frame, columns, unknown)
    if layout is None:
        return frame, columns
    keys, rater, value = layout
    rows = frame.filter(pl.col(value).is_not_null() & pl.col(rater).is_not_null())
    wide = rows.pivot(on=rater, index=keys, values=value, aggregate_function="first")
    names = [name for name in wide.columns if name not in keys]
    items = frame.unique(keys, keep="first", maintain_order=True).drop(rater, value)
    lost = frame[value].count() - sum(wide[name].count() for name in names)
    notes.append(
        f"{frame.height:,} rows of {value} are read as {items.height:,} rows, with a column for "
        f"each of {len(names)} values of {rater}"
        + f"; {lost:,} without a name, or of one who rated before, are left out"
        * bool(lost)
    )
    columns = columns if unknown else replace(columns, human=names)
    return items.join(wide, on=keys, how="left", maintain_order="left"), columns


def _listed(cells: pl.Series) -> pl.DataFrame | None:
    """Return lists as columns: by the name that stands beside each rating, else by place."""
    if not isinstance(cells.dtype, pl.List):
        return None
    rows = cells.to_frame("value").with_row_index("row").explode("value")
    rater: str | None = None
    if isinstance(cells.dtype.inner, pl.Struct):
        rows = rows.unnest("value")
        fields = [name for name in rows.columns[1:] if not rows.schema[name].is_nested()]
        value = next((name for name in fields if is_scored(rows[name])), None)
        few = (n for n in fields if n != value and rows[n].drop_nulls().n_unique() <= _MOST_RATERS)
        rater = next(few, None)
        if value is None:
            return None
        rows = rows.rename({value: "value"})
    place = pl.int_range(1, pl.len() + 1).over("row").cast(pl.String)
    rows = rows.with_columns(by=pl.lit(f"{cells.name}.") + (pl.col(rater) if rater else place))
    ratings = rows.filter(pl.col("value").is_not_null() & pl.col("by").is_not_null())
    wide = ratings.pivot(on="by", index="row", values="value", aggregate_function="first")
    items = pl.DataFrame({"row": range(cells.len())}, schema={"row": wide.schema["row"]})
    return items.join(wide, on="row", how="left", maintain_order="left").drop("row")


def _rater_columns(
    frame: pl.DataFrame, columns: JudgeColumns, unknown: Sequence[str]
) -> tuple[list[str], str, str] | None:
    """Return the columns of the item, of who rated it and of the rating, where rows are ratings.

    That is seen by a judge's score that stands once per item and ratings that differ there; or
    judges and people are no columns, but values of one.
    """
    roles = {*columns.judge, *columns.human, *columns.features, columns.first, columns.swapped}
    flat = [n for n in frame.columns if n not in roles and not frame.schema[n].is_nested()]
    distinct = {name: frame[name].n_unique() for name in flat}
    raters = [name for name in flat if distinct[name] > 1]
    if unknown:
        raters = [n for n in raters if {*unknown} <= {*frame[n].cast(pl.String, strict=False)}]
    else:
        # A language or a version repeats an item as well: who rated is told by the name alone.
        raters = [name for name in raters if _HUMAN.search(name) or _WHO.search(name)]
    if not (unknown or len(columns.human) == 1) or columns.pairs or not raters:
        return None
    models = [name for name in (columns.model or called(flat, "model"),) if name]
    models = models or [*(side_columns(frame, flat) or ())]
    rated = frame if unknown else frame.filter(pl.col(columns.human[0]).is_not_null())
    for item in sorted(flat, key=lambda name: -distinct[name]):
        keys = [item, *(name for name in models if name != item)]
        if rated.select(keys).n_unique() > _REPEATED * rated.height and not unknown:
            continue
        for rater in (name for name in raters if name not in keys):
            rows = rated.filter(pl.col(rater).is_not_null())
            if rows.select(*keys, rater).n_unique() < _ONCE * max(rated.height, 1):
                continue
            values = [n for n in flat if n not in (*keys, rater) and is_scored(frame[n])]
            if unknown and values:
                return keys, rater, values[0]
            if not unknown and _is_per_item(frame, keys, columns):
                return keys, rater, columns.human[0]
    return None


def _is_per_item(frame: pl.DataFrame, keys: Sequence[str], columns: JudgeColumns) -> bool:
    """Return whether the judge scored items, and people's ratings of an item differ."""
    groups = frame.select(keys).n_unique()
    single = frame.select(*keys, *columns.judge).n_unique() == groups
    varied = frame.select(columns.judge).n_unique() > 1
    return single and varied and frame.select(*keys, *columns.human).n_unique() > groups


def likely_columns(frame: pl.DataFrame) -> dict[str, list[str]]:
    """Return the columns of verdicts that are called like a judge's, and like people's.

    Examples
    --------
    >>> likely_columns(pl.DataFrame({"item": ["a"], "gpt4": [4], "expert": [5], "rater": ["ann"]}))
    {'judge': ['gpt4'], 'human': ['expert']}
    """
    scored = [name for name in frame.columns if is_scored(frame[name])]
    human = [name for name in scored if _HUMAN.search(name)]
    judge = [name for name in scored if _JUDGE.search(name) and name not in human]
    for name in () if judge and human else frame.columns:
        # Who judged may be a cell of each row instead.
        if (_HUMAN.search(name) or _JUDGE.search(name)) and frame.schema[name] == pl.String:
            names = frame[name].drop_nulls().unique().sort().to_list()
            models = [part for part in names if _JUDGE.search(part)]
            if 0 < len(models) < len(names) <= _MOST_RATERS:
                return {"judge": models, "human": [part for part in names if part not in models]}
    return {"judge": judge, "human": human}


def is_scored(column: pl.Series) -> bool:
    """Return whether cells are verdicts: numbers, yes or no, words of an order, or sides."""
    if column.dtype.is_nested() or column.dtype.is_temporal() or column.dtype == pl.Binary:
        parts = _listed(column)
        return parts is not None and all(is_scored(parts[name]) for name in parts.columns)
    if column.dtype.is_numeric():
        return True
    counts = cell_counts(cell_texts(column.drop_nulls().head(1_000)))
    numbers, _ = read_numbers(counts)
    if 2 * sum(counts[word] for word in numbers) > sum(counts.values()):
        return True
    sides = len(side_values([*counts], TIES)) == len(counts)
    return bool(counts) and (sides or any(
        layout for layout in (read_stars(counts), read_yes_no(counts), in_order(counts, {}))
    ))  # fmt: skip


def called(names: Sequence[str], role: str) -> str | None:
    """Return the column that is called by the first word for a role that any is called by."""
    words = WORDS["judged"][role].split()
    return next((name for word in words for name in names if bare(name) == word), None)


def side_columns(
    frame: pl.DataFrame, names: Sequence[str], *, texts: bool = False
) -> tuple[str, str] | None:
    """Return two columns that are called alike, but for `a` and `b`, or 1 and 2.

    They hold few names, the same ones in both or those of models; or `texts`, nearly all different.
    """
    few = max(2, frame.height // 4)
    for name in names:
        for end, letter in (("a", "b"), ("1", "2")):
            peer = re.sub(rf"(?<![a-z]){end}$", letter, name, flags=re.I)
            if peer == name or peer not in names or frame.schema[name] != pl.String:
                continue
            a, b = ({*cell_texts(frame[part]).drop_nulls()} for part in (name, peer))
            models = any(token_weights(word).get("model") for word in tokens(name))
            if len(a | b) > few if texts else (a & b or models) and len(a | b) <= few:
                return name, peer
    return None
