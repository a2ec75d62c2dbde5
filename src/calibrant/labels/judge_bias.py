"""Does a judge lean: to a model, a family, long answers, or the answer shown first?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy.special import bdtr

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError
from calibrant.data.judge_table import JudgeTable
from calibrant.findings.documents.labels import JudgeBias
from calibrant.metrics.stats.judges import favour, lead_beyond_people, row_mean

_LENGTH = re.compile(r"word|length|len$|token|char", re.IGNORECASE)
# A column of more values than this is cut at its median, or counted in words where it is text.
_MOST_VALUES = 12


def biases(table: JudgeTable, judge: str, score: Floats, *, same: bool) -> Iterator[JudgeBias]:
    """Yield every lean that was tested, shown or not.

    Parameters
    ----------
    table
        Scores and ratings.
    judge, score
        The judge, and its scores in its own units.
    same
        Whether people rate on the judge's scale.
    """
    if table.kind == "pairs":
        yield from _position(table, judge, score)
        yield from _longer(table, score)
        return
    for kind, name, choice in _parts(table):
        result = favour(score, table.people, choice)
        method = "two people"
        if result is None and same and np.isfinite(table.people).sum(axis=1).max() < 2:
            result, method = lead_beyond_people(score, table.people, choice), "one person"
        if result is None:
            yield _entry(kind, name, None, None, None, None, "too few", 0)
            continue
        p = None if np.isnan(result.p_value) else result.p_value
        ends = result.value, result.low, result.high
        yield _entry(kind, name, *ends, p, method, result.labels)


def _parts(table: JudgeTable) -> Iterator[tuple[str, str, Mask]]:
    if table.sides is not None:
        for code, name in enumerate(table.models):
            yield "model", name, table.sides[:, 0] == code
    for column in table.columns.features:
        yield from _feature_parts(column, table.feature(column))


def _feature_parts(column: str, values: pl.Series) -> Iterator[tuple[str, str, Mask]]:
    distinct = values.drop_nulls().unique()
    if not values.dtype.is_numeric() and len(distinct) <= _MOST_VALUES:
        for value in distinct.sort().to_list():
            yield "feature", f"{column} = {value}", (values == value).fill_null(False).to_numpy()
        return
    size, length = _sizes(values), not values.dtype.is_numeric() or _LENGTH.search(column)
    middle = float(np.nanmedian(size))
    yield "length" if length else "feature", f"{column} above {middle:g}", size > middle


def _sizes(values: pl.Series) -> Floats:
    """Return numbers, or the number of words of texts."""
    if not values.dtype.is_numeric():
        values = values.cast(pl.String).str.split(" ").list.len()
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _position(table: JudgeTable, judge: str, score: Floats) -> Iterator[JudgeBias]:
    if table.swapped is not None:
        if len(table.columns.judge) > 1:
            rule = f"the other order is that of one judge, and several are named (beside {judge})"
            raise InputError(rule, source=table.source)
        first = int(((score == 1) & (table.swapped == 0)).sum())
        second = int(((score == 0) & (table.swapped == 1)).sum())
        yield _signs("position", "the first", first, second, "both orders", score.size)
    elif table.first is not None:
        shown_first = np.where(table.first == 1, score, 1 - score)
        people = row_mean(table.people)
        by_people = np.where(table.first == 1, people, 1 - people)
        yield _beside("position", "the first", shown_first, by_people)


def _longer(table: JudgeTable, score: Floats) -> Iterator[JudgeBias]:
    """Yield whether the longer answer is picked more often than people pick it, and than chance.

    A judge that is noisy picks less often what people prefer, whatever that is: only beyond
    one half, on the side away from people, is it a lean of its own.
    """
    if len(table.columns.features) != 2:
        return
    a, b = (_sizes(table.feature(name)) for name in table.columns.features)
    unlike = np.isfinite(a) & np.isfinite(b) & (a != b)
    longer = np.where(a > b, score, 1 - score)[unlike]
    people = np.where(a > b, row_mean(table.people), 1 - row_mean(table.people))
    result = _beside("length", "the longer", longer, people[unlike])
    up, down = int((longer > 0.5).sum()), int((longer < 0.5).sum())
    beyond = (result.value or 0.0) * (up - down) > 0
    p = max(result.p or 1.0, sign_test(up, down)) if beyond and result.p is not None else 1.0
    yield _entry(result.kind, result.name, result.value, result.low, result.high, p, result.method,
                 result.labels, result.judge_share, result.people_share)  # fmt: skip


def _beside(kind: str, name: str, judge: Floats, people: Floats) -> JudgeBias:
    """Return how much more often the judge than people picks a side, of the same pairs."""
    finite = np.isfinite(people)
    difference = judge[finite] - people[finite]
    more, less = int((difference > 0).sum()), int((difference < 0).sum())
    n = max(difference.size, 1)
    value = float(difference.mean()) if difference.size else 0.0
    reach = 1.96 * float(np.sqrt(((difference - value) ** 2).sum() + 1.0)) / n
    shares = float(judge.mean()), float(people[finite].mean()) if finite.any() else None
    ends = value, value - reach, value + reach
    return _entry(kind, name, *ends, sign_test(more, less), "beside people", n, *shares)


def _signs(kind: str, name: str, more: int, less: int, method: str, rows: int) -> JudgeBias:
    n = more + less
    share = more / n if n else 0.5
    reach = 1.96 * ((share * (1 - share) * n + 1.0) / (n + 4.0) / max(n, 1)) ** 0.5
    ends = share - 0.5, max(share - 0.5 - reach, -0.5), min(share - 0.5 + reach, 0.5)
    return _entry(kind, name, *ends, sign_test(more, less), method, rows, share, None, n)


def sign_test(more: int, less: int) -> float:
    """Return the exact two-sided p-value of 'both as often'.

    Examples
    --------
    >>> round(sign_test(32, 13), 4)
    0.0066
    """
    return min(1.0, 2 * float(bdtr(min(more, less), more + less, 0.5)))


def _entry(
    kind: str,
    name: str | None,
    value: float | None,
    low: float | None,
    high: float | None,
    p: float | None,
    method: str,
    labels: int,
    *shares: Any,
) -> JudgeBias:
    judge, people, flips = (*shares, None, None, None)[:3]
    return JudgeBias(
        kind=kind, name=name, value=value, low=low, high=high, p=p, method=method, labels=labels,
        judge_share=judge, people_share=people, flips=flips,
    )  # fmt: skip
