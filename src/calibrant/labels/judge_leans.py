"""What a judge leans to: a model, a feature, the longer answer, the place where one is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy.special import bdtr

from calibrant.core.arrays import EstimateEntry, Floats, Indices, Mask
from calibrant.data.judge_table import JudgeTable
from calibrant.findings.claims.judge import FAVOUR_LEVEL
from calibrant.findings.claims.margins import fisher_p_value
from calibrant.findings.documents.entries import UNDEFINED
from calibrant.findings.documents.labels import JudgeBias
from calibrant.labels.people_ratings import independent
from calibrant.metrics.stats import judges
from calibrant.metrics.stats.intervals import MeanError

_LENGTH = re.compile(r"word|length|len$|token|char", re.IGNORECASE)
# A column of more values than this is cut at its median, or counted in words where it is text.
_MOST_VALUES = 12
# Each order of a pair is shown in so large a share of rows, or nothing is known of places.
_BOTH_ORDERS = 0.2


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
        yield from _pair_leans(table, score)
        return
    for family in _families(table):
        yield from _leans(table, score, independent(table.people), family, same=same)


_Part = tuple[str, str, Mask]


def _families(table: JudgeTable) -> Iterator[list[_Part]]:
    """Yield all models, values of a feature, and the rows above the middle of many values."""
    codes = enumerate(table.models)
    yield [("model", name, table.sides[:, 0] == code) for code, name in codes]
    for column in table.columns.features:
        values, is_number = table.frame[column], table.frame[column].dtype.is_numeric()
        if not is_number and values.drop_nulls().n_unique() <= _MOST_VALUES:
            yield [("feature", name, rows) for name, rows in named_values(values)]
            continue
        size, length = _sizes(values), not is_number or _LENGTH.search(column)
        middle = float(np.nanmedian(size))
        yield [("length" if length else "feature", f"{column} above {middle:g}", size > middle)]


def _leans(
    table: JudgeTable, score: Floats, people: Floats, parts: list[_Part], *, same: bool
) -> Iterator[JudgeBias]:
    """Yield the lean to each part; beside one that is shown the others stand as its mirror image.

    So those are compared without it, and of two parts that are all rows the favoured one is told.
    """
    rows, single = np.ones(score.size, bool), np.isfinite(people).sum(axis=1).max() < 2
    while parts:
        leans = []
        for kind, name, chosen in parts:
            of_rows = (score[rows], people[rows], chosen[rows], table.item[rows])
            lean = judges.favour(*of_rows)
            if lean is not None:
                leans.append(_lean(kind, name, "two people", lean.estimate(), lean.p_value))
            elif same and single and (lead := judges.lead_beyond_people(*of_rows)):
                leans.append(_lean(kind, name, "one person", lead.estimate(), lead.p_value))
            else:
                leans.append(_lean(kind, name, "too few"))
        if len(parts) == 2 and (parts[0][2] | parts[1][2])[rows].all():
            leans = [max(leans, key=lambda lean: lean.value or 0.0)]
        clearest = min(range(len(leans)), key=lambda place: _p(leans[place]))
        if _p(leans[clearest]) * len(leans) > FAVOUR_LEVEL or len(leans) == 1:
            yield from leans
            return
        yield leans[clearest]
        rows &= ~parts.pop(clearest)[2]


def _p(lean: JudgeBias) -> float:
    return 1.0 if lean.p is None else lean.p


def named_values(column: pl.Series) -> Iterator[tuple[str, Mask]]:
    """Yield the values of a column by name, with the rows of each."""
    for value in column.drop_nulls().unique().sort():
        yield f"{column.name} = {value}", (column == value).fill_null(False).to_numpy()


def _sizes(values: pl.Series) -> Floats:
    """Return numbers, or the number of words of texts."""
    if not values.dtype.is_numeric():
        values = values.cast(pl.String).str.split(" ").list.len()
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _pair_leans(table: JudgeTable, score: Floats) -> Iterator[JudgeBias]:
    """Yield the lean to a place, and to the longer answer beyond people and beyond chance.

    A judge that is noisy picks less often what people prefer, whatever that is: only beyond
    one half, on the side away from people, is it a lean of its own.
    """
    if table.swapped is not None:
        change = score - table.swapped
        if table.first is not None:
            change = np.where(table.first == 0, -change, change)
        change = change[np.abs(change) == 1.0]
        n, share = change.size, float((change > 0).mean()) if change.size else 0.5
        reach = 1.96 * ((share * (1 - share) * n + 1.0) / (n + 4.0) / max(n, 1)) ** 0.5
        low, high = max(share - 0.5 - reach, -0.5), min(share - 0.5 + reach, 0.5)
        ends = EstimateEntry(value=share - 0.5, low=low, high=high, n=score.size)
        yield _lean("position", "the first", "both orders", ends, sign_test(change),
                    judge_share=share, flips=n)  # fmt: skip
    elif table.first is not None:
        yield one_order_lean(score, table.first, table.sides)
    if len(table.columns.features) == 2:
        yield _length(table, score)


def one_order_lean(score: Floats, shown: Floats, sides: Indices) -> JudgeBias:
    """Return the lean to the first place by pairs that were shown in one order each.

    A judge without it picks a side, or a model, as often where it stands first as elsewhere,
    however good it is. Where nearly all rows have one order, nothing tells place from side.
    """
    decided = np.isfinite(shown) & (score != 0.5)
    is_turned = sides[:, 0] > sides[:, 1] if sides.shape[1] == 2 else np.zeros(score.size, bool)
    picked, first = ((part[decided] == 1) != is_turned[decided] for part in (score, shown))
    parts, n = (picked[first], picked[~first]), picked.size
    few, name = min(part.size for part in parts), "the first"
    if few < _BOTH_ORDERS * n or not few:
        return _lean("position", name, "one order", EstimateEntry(n=n))
    value = float(parts[0].mean() - parts[1].mean()) / 2
    shares = [((y.sum() + 1) / (y.size + 2), y.size + 2) for y in parts]
    reach = 0.98 * float(np.sqrt(sum(share * (1 - share) / size for share, size in shares)))
    ends = EstimateEntry(value=value, low=value - reach, high=value + reach, n=n)
    p = fisher_p_value(*(count for y in parts for count in (y.sum(), (~y).sum())))
    return _lean("position", name, "own picks", ends, p, judge_share=0.5 + value)


def _length(table: JudgeTable, score: Floats) -> JudgeBias:
    """Return how much more often the judge than people picks the longer side, of the same pairs."""
    a, b = (_sizes(table.frame[name]) for name in table.columns.features)
    ratings = judges.row_mean(table.people)
    rows = np.isfinite(a) & np.isfinite(b) & (a != b) & np.isfinite(ratings)
    longer, n = (a > b)[rows], int(rows.sum())
    if not n:
        return _lean("length", "the longer", "beside people", EstimateEntry(n=0), 1.0)
    judge, people = (np.where(longer, part[rows], 1 - part[rows]) for part in (score, ratings))
    value, sides = float((judge - people).mean()), judge - 0.5
    each = judges.unit_sums(judge - people - value, table.item[rows])
    spread = float(each @ each) * each.size / max(each.size - 1, 1)
    # One pair more that they see differently: that all agree is no certainty.
    gap = MeanError(value, float(np.sqrt(spread + 1.0)) / n, judges.kurtosis_df(each), n)
    beyond = value * float(np.sign(sides).sum()) > 0
    return _lean("length", "the longer", "beside people", gap.estimate(),
                 max(gap.p_value, sign_test(sides)) if beyond else 1.0,
                 judge_share=float(judge.mean()), people_share=float(people.mean()))  # fmt: skip


def sign_test(values: Floats) -> float:
    """Return the exact two-sided p-value of 'above 0 as often as below'.

    Examples
    --------
    >>> round(sign_test(np.repeat([1.0, -1.0], [32, 13])), 4)
    0.0066
    """
    more, less = int((values > 0).sum()), int((values < 0).sum())
    return min(1.0, 2 * float(bdtr(min(more, less), more + less, 0.5)))


def _lean(
    kind: str, name: str, method: str, ends: EstimateEntry = UNDEFINED, p: float | None = None,
    **shares: Any,
) -> JudgeBias:  # fmt: skip
    return JudgeBias(kind=kind, name=name, value=ends.value, low=ends.low, high=ends.high, p=p,
                     method=method, labels=int(ends.n or 0), **shares)  # fmt: skip
