"""Does a judge lean: to a model, a family, long answers, or the answer shown first?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace
from scipy.special import bdtr

from calibrant.core.arrays import Floats, Mask
from calibrant.core.estimate import EstimateEntry
from calibrant.data.judge_table import JudgeTable
from calibrant.findings.documents.entries import UNDEFINED
from calibrant.findings.documents.labels import JudgeBias
from calibrant.metrics.stats.judges import favour, lead_beyond_people, row_mean

_LENGTH = re.compile(r"word|length|len$|token|char", re.IGNORECASE)
# A column of more values than this is cut at its median, or counted in words where it is text.
_MOST_VALUES = 12


def biases(table: JudgeTable, score: Floats, *, same: bool) -> Iterator[JudgeBias]:
    """Yield every lean that was tested, shown or not.

    Parameters
    ----------
    table
        Scores and ratings.
    score
        The judge's scores in its own units.
    same
        Whether people rate on the judge's scale.
    """
    if table.kind == "pairs":
        yield from (*_position(table, score), *_longer(table, score))
        return
    single = np.isfinite(table.people).sum(axis=1).max() < 2
    for kind, name, choice in _parts(table):
        if lean := favour(score, table.people, choice):
            yield _lean(kind, name, "two people", lean.estimate(), lean.p_value)
        elif same and single and (lead := lead_beyond_people(score, table.people, choice)):
            yield _lean(kind, name, "one person", lead.estimate())
        else:
            yield _lean(kind, name, "too few")


def _parts(table: JudgeTable) -> Iterator[tuple[str, str, Mask]]:
    for code, name in enumerate(table.models):
        yield "model", name, table.sides[:, 0] == code
    for column in table.columns.features:
        yield from _feature_parts(column, table.frame[column])


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


def _position(table: JudgeTable, score: Floats) -> Iterator[JudgeBias]:
    if table.swapped is not None:
        first = int(((score == 1) & (table.swapped == 0)).sum())
        second = int(((score == 0) & (table.swapped == 1)).sum())
        yield _flips(first, second, score.size)
    elif table.first is not None:
        yield _beside("position", "the first", table.first == 1, score, row_mean(table.people))


def _longer(table: JudgeTable, score: Floats) -> Iterator[JudgeBias]:
    """Yield whether the longer answer is picked more often than people pick it, and than chance.

    A judge that is noisy picks less often what people prefer, whatever that is: only beyond
    one half, on the side away from people, is it a lean of its own.
    """
    if len(table.columns.features) != 2:
        return
    a, b = (_sizes(table.frame[name]) for name in table.columns.features)
    unlike = np.isfinite(a) & np.isfinite(b) & (a != b)
    people = row_mean(table.people)[unlike]
    result = _beside("length", "the longer", (a > b)[unlike], score[unlike], people)
    longer = np.where(a > b, score, 1 - score)[unlike]
    up, down = int((longer > 0.5).sum()), int((longer < 0.5).sum())
    beyond = (result.value or 0.0) * (up - down) > 0
    yield replace(result, p=max(result.p or 0.0, sign_test(up, down)) if beyond else 1.0)


def _beside(kind: str, name: str, side: Mask, score: Floats, ratings: Floats) -> JudgeBias:
    """Return how much more often the judge than people picks a side, of the same pairs."""
    judge, people = (np.where(side, part, 1 - part) for part in (score, ratings))
    finite = np.isfinite(people)
    difference = judge[finite] - people[finite]
    n = max(difference.size, 1)
    value = float(difference.sum()) / n
    reach = 1.96 * float(np.sqrt(((difference - value) ** 2).sum() + 1.0)) / n
    p = sign_test(int((difference > 0).sum()), int((difference < 0).sum()))
    ends = EstimateEntry(value=value, low=value - reach, high=value + reach, n=n)
    by_people = float(people[finite].mean()) if finite.any() else None
    return _lean(kind, name, "beside people", ends, p,
                 judge_share=float(judge.mean()), people_share=by_people)  # fmt: skip


def _flips(first: int, second: int, rows: int) -> JudgeBias:
    """Return how far the verdicts that flip with the order go to the first place."""
    n = first + second
    share = first / n if n else 0.5
    reach = 1.96 * ((share * (1 - share) * n + 1.0) / (n + 4.0) / max(n, 1)) ** 0.5
    low, high = max(share - 0.5 - reach, -0.5), min(share - 0.5 + reach, 0.5)
    ends = EstimateEntry(value=share - 0.5, low=low, high=high, n=rows)
    return _lean("position", "the first", "both orders", ends, sign_test(first, second),
                 judge_share=share, flips=n)  # fmt: skip


def sign_test(more: int, less: int) -> float:
    """Return the exact two-sided p-value of 'both as often'.

    Examples
    --------
    >>> round(sign_test(32, 13), 4)
    0.0066
    """
    return min(1.0, 2 * float(bdtr(min(more, less), more + less, 0.5)))


def _lean(
    kind: str, name: str, method: str, ends: EstimateEntry = UNDEFINED, p: float | None = None,
    **shares: Any,
) -> JudgeBias:  # fmt: skip
    parts = {"value": ends.value, "low": ends.low, "high": ends.high, "p": p}
    return JudgeBias(kind=kind, name=name, **parts, method=method, labels=int(ends.n or 0),
                     **shares)  # fmt: skip
