"""Promises for whole units: which pass alone, when a run stops, which rows are dropped."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.score_table import CLUSTER, ScoreBlock, Scores
from calibrant.findings.documents import decisions
from calibrant.metrics.stats.intervals import wilson_estimate
from calibrant.trust.policy import SelectivePolicy
from calibrant.trust.selective.certify import certify, fewest_rows, threshold_grid
from calibrant.trust.selective.fit import Selective
from calibrant.trust.selective.labels import decide_entry, labelled_policy, proportions
from calibrant.trust.units import (
    DROP,
    STOP,
    UnitScore,
    backoff_threshold,
    run_rows,
    steps_saved,
    unit_codes,
    unit_rows,
)

_FEWEST = 30
_MOST_FIELDS = 100
# In larger tables a hint is not worth the search for it.
_MOST_ROWS = 200_000


def whole_block(block: ScoreBlock, scores: Scores, column: str, how: str) -> ScoreBlock:
    """Return the rows whose units are whole: every row has a confidence and an outcome.

    A unit with a row that was left out cannot be judged, and is asked; a run stops by what is
    there.
    """
    rows = block.frame
    if (rows[CLUSTER] == "").any():
        first = rows.filter(pl.col(CLUSTER) == "")["_row"][0] if "_row" in rows.columns else None
        place = "" if first is None else f", row {first}"
        raise InputError(
            f"{int((rows[CLUSTER] == '').sum())} rows belong to no unit: {column} is empty{place}",
            hint="fill the column, or leave such rows out",
        )
    if how == STOP or CLUSTER not in scores.rejected.columns:
        return block
    mask = ~rows[CLUSTER].is_in(rejected_units(block, scores).implode())
    if not mask.any():
        raise InputError(f"no {column} has a confidence and an outcome in every row")
    if mask.all():
        return block
    frame = rows.filter(mask)
    parts = {name: getattr(block, name)[mask.to_numpy()] for name in ("confidence", "correct")}
    return ScoreBlock(block.keys, **parts, weights=None, units=None, frame=frame)


def rejected_units(block: ScoreBlock, scores: Scores) -> pl.Series:
    """Return the units of a block's model that have a row which was left out."""
    if CLUSTER not in scores.rejected.columns:
        return pl.Series(CLUSTER, [], pl.String)
    alike = [pl.col(key) == block.keys[key] for key in ("model",) if key in scores.rejected.columns]
    return scores.rejected.filter(*alike)[CLUSTER].drop_nulls().unique()


class WholeUnits:
    """Fit a promise about whole units.

    Parameters
    ----------
    rule
        The limit, or the costs.
    column
        What a row is part of.
    how
        Score of a unit, see `UnitScore`.
    """

    policy_: SelectivePolicy

    def __init__(self, rule: Selective, column: str, how: str) -> None:
        self.rule, self.column, self.how = rule, column, how
        self.delta = rule.delta
        if how == DROP and (rule.costs is not None or rule.max_error is None or rule.each):
            raise InputError(
                "rows are dropped by a limit on the error of all units",
                hint=Hint("give {max_error} alone", max_error=0.1),
            )

    def fit(
        self, block: ScoreBlock, *, left_out: int = 0, group: str | None = None, **about: Any
    ) -> WholeUnits:
        """Fit on graded rows, each of which names its unit.

        Parameters
        ----------
        block
            The rows, see `whole_block`.
        left_out
            Units that are not whole.
        group
            Column of groups: one value per unit.
        **about
            Date and origin, as for `Selective.fit`.
        """
        c, y = block.confidence.astype(np.float64), block.correct
        names = block.frame[CLUSTER].to_numpy()
        if ((y > 0) & (y < 1)).any():
            raise InputError("a unit is right or wrong: its rows need outcomes of 0 or 1")
        self._block, self._left_out = block, left_out
        if self.how == DROP:
            return self._drop(c, y, names, about)
        units = run_rows(c, y, names) if self.how == STOP else None
        units = units or unit_rows(c, y, names, score=self.how)
        self.rule.fit(
            None,
            units.score,
            1 - units.wrong,
            groups=None if group is None else _of_units(block.frame, group, self.column),
            score=UnitScore(self.how),
            **about,
        )
        self.policy_, self._wrong = self.rule.policy_, units.wrong
        place, alone, saved = self.policy_.threshold, None, None
        if self.how == STOP:
            saved = 0.0 if place is None else steps_saved(c, names, 1 - place)
        elif self.rule.max_error is not None:
            limit = self.rule.max_error
            row = certify(c, 1.0 - y, max_error=limit, delta=self.delta).threshold
            least = unit_rows(c, y, names, score="min").score
            alone = 0.0 if row is None else float((least >= row).mean())
        self.unit_ = self._described(alone, saved)
        return self

    def notes(self) -> list[str]:
        """Return what is to be known of units that say nothing here."""
        if not self._left_out:
            return []
        whole = self._block.frame[CLUSTER].n_unique()
        return [
            f"{self._left_out:,} of {self._left_out + whole:,} units ({self.column}) have a row "
            "without a confidence or an outcome: whether such a unit is right is not known, and "
            "they are left out."
        ]

    def _described(self, alone: float | None, saved: float | None) -> decisions.DecideUnit:
        return decisions.DecideUnit(
            column=self.column,
            score=self.how,
            rows=self._block.frame.height,
            left_out=self._left_out,
            fields=_fields(self._block.frame),
            rows_alone=alone,
            steps_saved=saved,
        )

    def _drop(self, c: Floats, y: Floats, names: Any, about: Mapping[str, Any]) -> WholeUnits:
        limit, (unit, code) = self.rule.max_error, unit_codes(names)
        count = len(unit)
        if count < _FEWEST:
            raise InputError(f"{count} units are too few to certify anything; {_FEWEST} is least")
        assert limit is not None
        place = backoff_threshold(c, y, names, max_error=limit, delta=self.delta)
        # Where nothing would be kept there is nothing to serve.
        place = None if place is None or not (c > place).any() else place
        requirement = np.zeros(count)
        np.maximum.at(requirement, code, np.where(y < 1, c, 0.0))
        grid = threshold_grid(c)
        mask = (c[:, None] > grid).mean(axis=0)
        errors = proportions(
            (requirement[:, None] > grid).sum(axis=0) * 1.0, np.full(len(grid), count)
        )
        self.curve = [
            decisions.ThresholdPoint(threshold=float(t), share=float(share), error=error)
            for t, share, error in zip(grid, mask, errors, strict=True)
        ]
        cut = np.inf if place is None else place
        self._wrong = (requirement > 0).astype(np.float64)
        share = wilson_estimate(float((c > cut).mean()), count)
        error = proportions(np.array([(requirement > cut).sum() * 1.0]), np.array([count]))[0]
        limits = {"max_error": limit, "delta": self.delta}
        self.policy_ = labelled_policy(UnitScore(DROP), place, limits, share, error, c, **about)
        self.unit_ = self._described(None, None)
        return self

    def entry(
        self, model: str, method: str, _correct: Floats, path: str | None = None
    ) -> decisions.DecideEntry:
        """Return the entry of a document: `n` counts units."""
        if self.how != DROP:
            return self.rule.entry(model, method, 1 - self._wrong, path, unit=self.unit_)
        count = len(self._wrong)
        few = fewest_rows(self.rule.max_error or 1.0, self.delta)
        return decide_entry(
            model,
            method,
            self.policy_,
            n=count,
            rate=1 - float(self._wrong.mean()),
            labels_needed=few if count < few else None,
            curve=self.curve,
            path=path,
            unit=self.unit_,
        )


def _fields(frame: pl.DataFrame) -> list[decisions.UnitField]:
    """Return how rows of each kind do, where a column names the kinds that most units have once."""
    column = _kinds(frame, CLUSTER)
    if column is None:
        return []
    parts = frame.partition_by(column, maintain_order=True)
    fields = [_field(str(part[column][0]), part) for part in parts]
    return sorted(fields, key=lambda field: -field.gap)


def _kinds(frame: pl.DataFrame, unit: str) -> str | None:
    """Return the column that names kinds of rows, of which most units have one each."""
    units = frame[unit].n_unique()
    for column in frame.select(pl.col(pl.String)).drop(unit, strict=False).get_columns():
        if not 2 <= column.n_unique() <= min(_MOST_FIELDS, frame.height / 2):
            continue
        counts = frame.group_by(column.name).agg(pl.len(), pl.col(unit).n_unique().alias("in"))
        if (counts["len"] == counts["in"]).all() and (counts["in"] >= units / 2).all():
            return column.name
    return None


def likely_unit(block: ScoreBlock) -> Hint | None:
    """Say that rows are parts of something, where each unit of a column has one row of each kind.

    Parameters
    ----------
    block
        Rows of which something is promised one by one.
    """
    frame = block.frame
    if block.cluster is not None or not _FEWEST <= frame.height <= _MOST_ROWS:
        return None
    for column in frame.drop("model", "method", strict=False).get_columns():
        name, kind = column.name, column.dtype
        if name.startswith("_") or not (kind.is_integer() or kind == pl.String):
            continue
        if _FEWEST <= column.n_unique() <= frame.height / 2 and (part := _kinds(frame, name)):
            return Hint(
                f"Each {name} has one row of each {part}: this promise is about single rows. "
                "{unit} makes one about the whole.",
                unit=name,
            )
    return None


def _field(name: str, part: pl.DataFrame) -> decisions.UnitField:
    confidence, right = part["confidence"].to_numpy(), part["correct"].to_numpy()
    rate = proportions(np.array([right.sum()]), np.array([float(len(right))]))[0]
    gap = float(confidence.mean() - right.mean())
    return decisions.UnitField(
        field=name, n=len(right), says=float(confidence.mean()), right=rate, gap=gap
    )


def _of_units(frame: pl.DataFrame, group: str, column: str) -> pl.Series:
    """Return the group of each unit, in order of first appearance."""
    first = frame.group_by(CLUSTER, maintain_order=True).agg(
        pl.col(group).first(), several=pl.col(group).n_unique()
    )
    if (first["several"] > 1).any():
        name = first.filter(pl.col("several") > 1)[CLUSTER][0]
        raise InputError(f"{column} {name!r} has rows in several groups of {group}")
    return first[group]


def unit_score_name(
    unit: str | None, score: str | None, stop: bool, drop: bool, others: Collection[str]
) -> str | None:
    """Return the score of a unit that was asked for, None where rows are promised."""
    request = [name for name, value in (("score", score), (STOP, stop), (DROP, drop)) if value]
    if unit is None:
        if request:
            rule = "{" + request[0] + "} is about whole units"
            raise InputError(Hint(rule), hint=Hint("name their column: {unit}", unit="COL"))
        return None
    if len(request) > 1 or others:
        pair = request[:2] if len(request) > 1 else ["unit", next(iter(others))]
        raise InputError(Hint("give one of " + " and ".join(f"{{{name}}}" for name in pair)))
    return STOP if stop else DROP if drop else score or "product"
