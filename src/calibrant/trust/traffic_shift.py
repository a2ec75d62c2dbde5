"""Is the traffic still what a promise was made for? Unlabelled rows against those of the fit.

Groups, confidences, lengths and other numbers are counted in cells and held against the counts of
the fit. Numbers are compared inside each group, so that a new mix of groups is not mistaken for a
new kind of question. Looked at once a week, a year has a false alarm with probability 5 %.

References
----------
Landis, Heyman, Koch 1978 (average partial association: Mantel and Haenszel's test for many cells).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct
from scipy.special import chdtrc

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.document import Stored
from calibrant.core.hints import Call
from calibrant.findings.claims import Claim
from calibrant.findings.claims.labels import traffic_claim

ANSWER, ANSWER_LENGTH = "answer", "answer length"
CALLER = "caller."
"""Stands before the name of what a caller says of a question, in the rows of what was served."""
_CELLS = 10
_LEAST_EXPECTED = 3.0
_LEVEL, _LOOKS = 0.05, 52
# Rows that a look needs: fewer show nothing but noise.
LEAST_ROWS = 50

GuardOutcome: TypeAlias = Literal["as certified", "new groups", "mix changed", "expired"]


@dataclass(frozen=True, slots=True)
class Change(Stored):
    """A column whose rows are no longer spread as in the fit.

    `p` is the chance of so large a difference had nothing changed, corrected for the number of
    columns and a year of weeks. For groups, `name` is the one that moved most.
    """

    column: str
    p: float
    name: str | None
    before: float
    now: float


class GuardCheck(Struct, frozen=True, dict=True):
    """What a look at the traffic found.

    Parameters
    ----------
    outcome
        ``expired`` (confidence, length or another number changed), ``mix changed`` (groups),
        ``new groups``, or ``as certified``.
    rows
        Rows looked at.
    new_groups
        Share of the rows in groups without labels, by name; the policy asks them.
    changes
        Columns that changed.
    unchecked
        Columns of the fit that the rows lack.
    promise
        What was promised, as plain data.
    """

    outcome: GuardOutcome
    rows: int
    new_groups: Mapping[str, float]
    changes: Sequence[Change]
    unchecked: Sequence[str]
    promise: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """Whether nothing shows that the promise is no longer about this traffic."""
        return self.outcome in ("as certified", "new groups")

    @cached_property
    def claim(self) -> Claim:
        """The finding as a claim."""
        return traffic_claim(self.to_dict())

    @property
    def text(self) -> str:
        """The finding and what to do, in sentences."""
        return self.claim.text

    @property
    def call(self) -> Call | None:
        """The next command, where there is one."""
        return self.step("TABLE", "TRAFFIC")

    def step(self, labelled: str, traffic: str) -> Call | None:
        """Return the next command on these files: the labels of the fit, and the traffic."""
        if self.outcome == "mix changed":
            group, limit = self.promise.get("group"), self.promise.get("max_error")
            return Call("decide", labelled, max_error=limit, traffic=traffic, group=group)
        return Call("label serve", traffic) if self.outcome == "expired" else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "outcome": self.outcome,
            "rows": self.rows,
            "new_groups": dict(self.new_groups),
            "changes": [change.to_dict() for change in self.changes],
            "unchecked": list(self.unchecked),
            "next": None if self.call is None else self.call.shell(),
        }


@dataclass(frozen=True, slots=True)
class Profile(Stored):
    """What a promise was made on: rows per group, and per cell of every number.

    Parameters
    ----------
    group
        Column of the groups, or None.
    names
        The groups; one without a name where there are none.
    ends
        By column of numbers: the ends between its cells.
    counts
        By column: rows per group and cell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def week(power): return pl.DataFrame({"confidence": rng.random(700) ** power})
    >>> profile = Profile.of(week(1.0))
    >>> profile.check(week(1.0)).outcome, profile.check(week(2.0)).outcome
    ('as certified', 'expired')
    """

    group: str | None
    names: tuple[str, ...]
    ends: Mapping[str, Floats]
    counts: Mapping[str, Floats]

    @classmethod
    def of(cls, frame: pl.DataFrame, group: str | None = None) -> Profile:
        """Describe the rows of a fit: their groups, every number, the length of their answers."""
        rows = with_length(frame)
        names = ("",) if group is None else tuple(level_texts(rows[group]).unique().sort())
        ends = {}
        for column in rows.get_columns():
            if column.name != group and column.dtype.is_numeric() and not column.null_count():
                cuts = np.quantile(column.to_numpy(), np.arange(1, _CELLS) / _CELLS)
                ends[column.name] = np.unique(cuts.astype(np.float64))
        bare = cls(group, names, ends, {})
        place = bare._places(rows)
        return cls(group, names, ends, {name: bare._count(rows, place, name) for name in ends})

    def _places(self, rows: pl.DataFrame) -> Indices:
        """Return the position of each row's group, -1 for one that is not known."""
        if self.group is None or self.group not in rows.columns:
            return np.zeros(rows.height, dtype=np.intp)
        places = {name: place for place, name in enumerate(self.names)}
        return np.array([places.get(name, -1) for name in level_texts(rows[self.group])], np.intp)

    def _count(self, rows: pl.DataFrame, place: Indices, column: str) -> Floats:
        """Return rows per group and cell, an atom being a cell of its own."""
        values = rows[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
        used = (place >= 0) & np.isfinite(values)
        width = len(self.ends[column]) + 1
        cell = np.searchsorted(self.ends[column], values[used], side="left")
        flat = np.bincount(place[used] * width + cell, minlength=len(self.names) * width)
        return flat.reshape(len(self.names), width).astype(np.float64)

    def check(
        self, frame: pl.DataFrame, *, asked: Sequence[str] = (), promise: Any = None
    ) -> GuardCheck:
        """Hold unlabelled rows against the fit.

        Parameters
        ----------
        frame
            The rows; columns that they lack are named in the result.
        asked
            Groups that the policy never answers: they do not touch the promise.
        promise
            What was promised, for the sentence and the next command.
        """
        rows = with_length(with_callers_words(frame, [self.group]))
        new: dict[str, float] = {}
        grouped = self.group is not None and self.group in rows.columns
        place = self._places(rows)
        if grouped:
            level = level_texts(rows[str(self.group)])
            unseen = level.filter(pl.Series(place < 0)).value_counts(sort=True)
            new = {name: count / rows.height for name, count in unseen.iter_rows()}
        selection = np.array([name not in asked for name in self.names])
        here = [name for name in self.ends if name in rows.columns]
        tests = len(here) + grouped
        enough = int(np.isin(place, np.flatnonzero(selection)).sum()) >= LEAST_ROWS
        changes = []
        if grouped and enough and selection.sum() > 1:
            counts = np.bincount(place[place >= 0], minlength=len(self.names)).astype(np.float64)
            changes += self._group_change(counts, selection, tests)
        for name in here if enough else ():
            # Groups told apart at the time of the fit are put together where the rows have none.
            before, now = self.counts[name], self._count(rows, place, name)
            before = before[selection] if grouped else before.sum(axis=0, keepdims=True)
            now = now[selection] if grouped else now.sum(axis=0, keepdims=True)
            p = _corrected(same_spread(before, now), tests)
            changes += [Change(name, p, None, 0.0, 0.0)] if p <= _LEVEL else []
        outcome: GuardOutcome = "new groups" if new else "as certified"
        if changes:
            mix = all(change.column == self.group for change in changes)
            outcome = "mix changed" if mix else "expired"
        missing = [] if grouped or self.group is None else [self.group]
        missing += [name for name in self.ends if name not in here]
        return GuardCheck(outcome, frame.height, new, changes, missing, promise or {})

    def _group_change(self, counts: Floats, selection: Mask, tests: int) -> list[Change]:
        before = next(iter(self.counts.values())).sum(axis=1)[selection]
        now = counts[selection]
        p = _corrected(same_spread(before[None], now[None]), tests)
        shares = before / before.sum(), now / max(now.sum(), 1.0)
        most = int(np.argmax(np.abs(shares[1] - shares[0])))
        name = np.array(self.names)[selection][most]
        change = Change(
            str(self.group), p, str(name), float(shares[0][most]), float(shares[1][most])
        )
        return [change] if p <= _LEVEL else []


def same_spread(before: Floats, now: Floats) -> float:
    """Return the p value of 'inside every group the cells are filled alike before and now'.

    Parameters
    ----------
    before, now
        Rows per group and cell. Cells with fewer than 3 rows expected on either side are joined.

    Examples
    --------
    >>> same_spread(np.array([[50.0, 50.0]]), np.array([[20.0, 80.0]])) < 1e-4
    True
    """
    pair = before + now
    total = pair.sum(axis=1, keepdims=True)
    rows = before.sum(axis=1, keepdims=True), now.sum(axis=1, keepdims=True)
    expected = [pair * part / np.maximum(total, 1.0) for part in rows]
    sparse = np.minimum(*(part.sum(axis=0) for part in expected)) < _LEAST_EXPECTED
    if sparse.any():
        pair, now, expected[1] = (
            np.column_stack([part[:, ~sparse], part[:, sparse].sum(axis=1)])
            for part in (pair, now, expected[1])
        )
    deviation = (now - expected[1]).sum(axis=0)
    scale = (rows[0] * rows[1] / np.maximum(total**2 * (total - 1), 1.0))[:, 0]
    spread = np.diag((scale * total[:, 0]) @ pair) - (pair * scale[:, None]).T @ pair
    values, vectors = np.linalg.eigh(spread)
    used = values > 1e-9 * max(float(values.max()), 1e-300)
    size = float(((vectors[:, used].T @ deviation) ** 2 / values[used]).sum())
    return float(chdtrc(int(used.sum()), size)) if used.any() else 1.0


def _corrected(p: float, tests: int) -> float:
    return min(1.0, p * _LOOKS * tests)


def level_texts(values: pl.Series) -> pl.Series:
    """Return the names of groups as text; a flag is written true or false."""
    return values.cast(pl.String).fill_null("")


def with_callers_words(frame: pl.DataFrame, names: Sequence[str | None]) -> pl.DataFrame:
    """Return the rows with these columns from what callers said, where there are none but those.

    Examples
    --------
    >>> served = pl.DataFrame({"caller.topic": ["law"], "caller.kind": ["open"]})
    >>> with_callers_words(served, ["topic", None]).columns
    ['topic', 'caller.kind']
    """
    lacking = [name for name in names if name is not None and name not in frame.columns]
    said = {f"{CALLER}{name}": name for name in lacking if f"{CALLER}{name}" in frame.columns}
    return frame.rename(said)


def with_length(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with the length of their answers in place of the answers."""
    if ANSWER not in frame.columns or frame.schema[ANSWER] != pl.String:
        return frame
    length = pl.col(ANSWER).str.len_chars().alias(ANSWER_LENGTH)
    return frame.with_columns(length).drop(ANSWER)
