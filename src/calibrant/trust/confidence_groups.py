"""For whom is a confidence off, beyond what is wrong with it overall, and what corrects it?

Then named groups against each other, at equal confidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from calibrant.core.arrays import Estimate, Floats, Ints, Mask, named_stream
from calibrant.core.document import load_document
from calibrant.core.errors import InputError, SchemaError
from calibrant.core.hints import Call, Hint
from calibrant.data.features import as_frame, checked_pair
from calibrant.findings.documents.groups import GroupDifference
from calibrant.metrics.stats.multiplicity import holm
from calibrant.trust.group_rules import Candidates, GroupRule, candidate_rules, parse_rule
from calibrant.trust.group_search import SearchedGroup, describe, judge_groups, search_groups
from calibrant.trust.near_confidence import (
    ConfidenceBasis,
    ConfidenceCells,
    least_squares,
    project,
    projector,
)
from calibrant.trust.policy import Row, SavedPolicy


@dataclass(frozen=True, slots=True)
class GroupCorrector(SavedPolicy):
    """Recalibrate a confidence over all rows and shift it within the groups that stand out.

    Parameters
    ----------
    basis, coefficients
        The recalibration over all rows.
    rules, shifts
        Groups and what is added within each.
    made, n, fitted_on
        Date, labels and origin, for the saved file.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> topic = rng.choice(["law", "maths"], size=3000)
    >>> right = (rng.random(3000) < np.where(topic == "law", 0.5, 0.9)).astype(float)
    >>> from calibrant.trust.group_rules import Condition
    >>> law = GroupRule((Condition("topic", "=", "law"),))
    >>> corrector = fit_corrector([law], {"topic": topic}, np.full(3000, 0.7), right)
    >>> corrector.predict({"topic": ["law", "maths"]}, [0.7, 0.7]).round(1).tolist()
    [0.5, 0.9]
    >>> round(corrector.predict_one({"topic": "law"}, 0.7), 1)
    0.5
    """

    stored_as = "corrector"

    basis: ConfidenceBasis
    coefficients: Floats
    rules: tuple[GroupRule, ...]
    shifts: tuple[float, ...]
    made: str = ""
    n: int = 0
    fitted_on: Mapping[str, object] = field(default_factory=dict)

    def recalibrated(self, confidence: npt.ArrayLike) -> Floats:
        """Return the recalibrated confidence of a row that lies in none of the groups."""
        f = np.asarray(confidence, dtype=np.float64)
        return np.asarray(np.clip(self.basis.transform(f) @ self.coefficients, 0.0, 1.0))

    def predict(self, features: Any, confidence: npt.ArrayLike) -> Floats:
        """Return the corrected confidence per row."""
        f = np.asarray(confidence, dtype=np.float64)
        rates = self.basis.transform(f) @ self.coefficients
        if self.rules:
            frame = as_frame(features)
            for rule, shift in zip(self.rules, self.shifts, strict=True):
                rates = rates + shift * rule.mask(frame)
        return np.clip(rates, 0.0, 1.0)

    def predict_one(self, row: Row, confidence: float) -> float:
        """Return the corrected confidence of one answer."""
        if not 0.0 <= confidence <= 1.0:
            raise InputError(f"a confidence must be between 0 and 1, got {confidence!r}")
        rate = float(self.basis.transform(np.array([confidence]))[0] @ self.coefficients)
        for rule, shift in zip(self.rules, self.shifts, strict=True):
            rate += shift if rule.holds(row) else 0.0
        return min(max(rate, 0.0), 1.0)

    @classmethod
    def load(cls, path: str | Path) -> GroupCorrector:
        """Read what `save` wrote; nothing in the file is run."""
        data = load_document(path)
        if data.get("kind") != cls.stored_as:
            raise SchemaError("this is no corrected confidence", source=str(path))
        try:
            return cls.from_dict(data)
        except (KeyError, TypeError) as error:
            raise SchemaError(
                f"it is damaged, or of another version: {type(error).__name__} {error}",
                source=str(path),
                hint=Hint("save it again: {call}", call=Call("groups", "TABLE", save=str(path))),
            ) from None


def fit_corrector(
    rules: Sequence[GroupRule], features: Any, confidence: npt.ArrayLike, correct: npt.ArrayLike
) -> GroupCorrector:
    """Fit the recalibration and the shifts of the groups together, by least squares."""
    f = np.asarray(confidence, dtype=np.float64)
    y = np.asarray(correct, dtype=np.float64)
    frame = as_frame(features)
    basis = ConfidenceBasis().fit(f)
    columns = basis.transform(f)
    width = columns.shape[1]
    fitted = least_squares(np.column_stack([columns, *(rule.mask(frame) for rule in rules)]), y)
    shifts = tuple(fitted[width:].tolist())
    return GroupCorrector(basis, fitted[:width], tuple(rules), shifts, n=len(y))


@dataclass(kw_only=True, eq=False, repr=False)
class ConfidenceGroups:
    """Find groups that are over- or under-confident beyond the overall error.

    All values, octile cuts and pairs of the features are candidates. Each is compared with rows
    of equal confidence, so a model that is over-confident everywhere raises no flag. Intervals
    and flags hold for all candidates at once.

    Parameters
    ----------
    min_group
        Fewest rows of a group.
    alpha
        Chance that anything is flagged where no group differs.
    named
        Rules to look at in any case, such as ``"age<25 and sex=F"``; a name may stand in front,
        followed by a colon. Differences of all pairs of them are reported.
    level
        Coverage of the other intervals.
    seed
        Seed of the redrawn outcomes.

    Attributes
    ----------
    groups_ : list of Group
        Flagged groups, strongest first, then the named ones, then single values.
    rules_ : list of Rule
        Who belongs to each of them.
    differences_ : list of GroupDifference
        Named groups against each other.
    corrector_ : GroupCorrector
        The corrected confidence.
    tested_ : int
        Number of rules looked at.
    stretches_ : list of str
        Rules that would stand out but are stretches of the confidence.
    left_out_ : int
        Rows left out because their unit (question) has a row already.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> topic, size = rng.choice(["law", "art", "maths"], 4000), rng.random(4000)
    >>> said = rng.uniform(0.5, 1.0, 4000)
    >>> right = rng.random(4000) < said - 0.1 - 0.2 * (topic == "law")
    >>> found = ConfidenceGroups().fit({"topic": topic, "size": size}, said, right)
    >>> [group.rule for group in found.groups_ if group.flagged]
    ['topic = law']
    """

    min_group: int = 50
    alpha: float = 0.05
    named: Sequence[str] = ()
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.min_group < 2:
            raise InputError(f"min_group must be at least 2, got {self.min_group}")

    def fit(
        self, features: Any, confidence: ArrayLike, correct: ArrayLike, *, units: Ints | None = None
    ) -> ConfidenceGroups:
        """Search the groups; of several rows of one unit (question) one is drawn."""
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        if len(f) < 2 * self.min_group:
            raise InputError(
                f"groups need at least {2 * self.min_group} labelled rows; there are {len(f)}",
                hint="label more rows, or lower the smallest group",
            )
        frame, f, y = self._one_per_unit(frame, f, y, units)
        rules = candidate_rules(frame, self.min_group)
        columns, cells = ConfidenceBasis().fit(f).transform(f), ConfidenceCells(f)
        rng = named_stream(self.seed, "groups")
        self.search_ = search_groups(
            rules, columns, y, cells, min_group=self.min_group, rng=rng, alpha=self.alpha
        )
        self.tested_ = int(self.search_.first.usable.sum())
        self.pairs_dropped_ = rules.dropped
        names = [parse_rule(text, frame) for text in self.named]
        masks = [rule.mask(frame) for rule in names]
        selected = self.search_.selected
        verdicts = [
            *(SearchedGroup(item, "found", rules.mask(item.position), True) for item in selected),
            *self._named(names, masks, columns, y, cells),
            *self._values(rules),
        ]
        self.groups_ = [describe(item, f, y, self.level) for item in verdicts]
        self.rules_ = [item.finding.rule for item in verdicts]
        self.differences_ = differences(names, masks, f, y, self.level)
        self.stretches_ = [rules.rule(place).label for place in self.search_.stretches]
        self.corrector_ = fit_corrector([item.rule for item in selected], frame, f, y)
        return self

    def _one_per_unit(
        self, frame: pl.DataFrame, f: Floats, y: Floats, units: Ints | None
    ) -> tuple[pl.DataFrame, Floats, Floats]:
        self.left_out_ = 0
        if units is None or len(np.unique(units)) == len(units):
            return frame, f, y
        order = named_stream(self.seed, "groups", "units").permutation(len(units))
        _, first = np.unique(units[order], return_index=True)
        rows = np.sort(order[first])
        self.left_out_ = len(units) - len(rows)
        return frame[rows], f[rows], y[rows]

    def _values(self, rules: Candidates) -> Iterator[SearchedGroup]:
        """Yield single conditions that are not flagged; of two sides of a cut, the lower one."""
        selection = {finding.position for finding in self.search_.selected}
        first = self.search_.first
        # What the confidence alone decides has no gap at equal confidence.
        usable = [
            at for at in range(len(rules.conditions)) if first.usable[at] and at not in selection
        ]
        singles = [at for at in usable if rules.conditions[at].sign not in (">", ">=")]
        singles.sort(key=lambda at: -abs(float(first.statistic[at])))
        for at in singles:
            finding, mask = self.search_.redrawn.finding(rules.rule(at), at, first), rules.mask(at)
            echo = self._echo_of(rules, mask) if finding.stands_out else None
            yield SearchedGroup(finding, "value", mask, False, echo, at in self.search_.stretches)

    def _echo_of(self, rules: Candidates, mask: Mask) -> str | None:
        """Return the flagged group that overlaps most with a group that is unusual without it."""
        flagged = [(rules.mask(item.position), item.rule.label) for item in self.search_.selected]
        overlaps = [((mask & part).sum() / (mask | part).sum(), label) for part, label in flagged]
        return max(overlaps)[1] if overlaps else None

    def _named(
        self,
        rules: list[GroupRule],
        masks: list[Mask],
        columns: Floats,
        y: Floats,
        cells: ConfidenceCells,
    ) -> list[SearchedGroup]:
        """Judge groups that were named beforehand: they answer for the named ones alone."""
        for rule, mask in zip(rules, masks, strict=True):
            if not 2 <= mask.sum() <= len(mask) - 2:
                raise InputError(
                    f"the group {rule.text!r} has {int(mask.sum())} of {len(mask)} rows"
                )
        rng = named_stream(self.seed, "groups", "named")
        findings = judge_groups(rules, masks, columns, y, rng=rng, alpha=self.alpha)
        for finding in findings:
            if math.isnan(finding.gap):
                raise InputError(
                    f"the group {finding.rule.text!r} follows from the confidence alone: no "
                    "answers of equal confidence are on both sides of it",
                    hint="name groups by other columns than the confidence",
                )
        pairs = zip(findings, masks, strict=True)
        within = [cells.within(mask, y) for mask in masks]
        return [
            SearchedGroup(of, "named", mask, of.stands_out and near.shows, stretch=near.is_stretch)
            for (of, mask), near in zip(pairs, within, strict=True)
        ]


_FEWEST = 20
_EDGE = 0.005
_LEAST_FREE = 0.1
# The law of the ratio is normal only in the limit; this keeps the false rate below the level.
_WIDER = 1.06


def gap_difference(
    confidence: Floats, correct: Floats, in_a: Mask, in_b: Mask, *, level: float = 0.95
) -> tuple[Estimate, float, bool]:
    """Return the difference at equal confidence, its p value, and whether a stretch makes it.

    Rows of both groups are left out. Where the confidence tells the groups apart, nothing beyond it
    can be tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f, a = rng.random(4000), rng.random(4000) < 0.5
    >>> y = (rng.random(4000) < np.clip(f - 0.2 * a, 0, 1)).astype(float)
    >>> found, p, stretch = gap_difference(f, y, a, ~a)
    >>> 0.1 < found.low < found.value < 0.25, p < 0.001, stretch
    (True, True, False)
    """
    rows = in_a ^ in_b
    f, y, side = confidence[rows], correct[rows], in_a[rows].astype(np.float64)
    n = len(y)
    if min(side.sum(), n - side.sum()) < _FEWEST:
        return Estimate(float("nan"), float("nan"), float("nan"), n=n), float("nan"), False
    basis = projector(ConfidenceBasis().fit(f).transform(f))
    cleared = side - project(basis, side)
    weight = float((cleared**2).sum())
    shift = float(cleared @ y) / weight
    error = _error(basis, cleared, y, shift) / weight
    reach = float(ndtri(0.5 + level / 2)) * error
    within = ConfidenceCells(f).within(side, y)
    estimate = Estimate(-shift, -shift - reach, -shift + reach, n=n, level=level, interval="robust")
    p = float(2 * ndtr(-abs(shift) / error))
    return estimate, p if within.shows else max(p, within.two_sided), within.is_stretch


def _error(basis: Floats, cleared: Floats, y: Floats, shift: float) -> float:
    """Return the standard error of a group's sum: the larger of two, each weak where the other is.

    From the residuals (jackknife form): right where the two groups differ. From the rate at each
    confidence: right where errors are too rare to show their spread.
    """
    rate = project(basis, y)
    weight = float((cleared**2).sum())
    leverage = (basis**2).sum(axis=1) + cleared**2 / weight
    residual = (y - rate - shift * cleared) / np.maximum(1 - leverage, _LEAST_FREE)
    inside = np.clip(rate, _EDGE, 1 - _EDGE)
    spread = inside * (1 - inside) * len(y) / (len(y) - basis.shape[1] - 1)
    observed, expected = ((cleared * residual) ** 2).sum(), (cleared**2 * spread).sum()
    return _WIDER * float(np.sqrt(max(observed, expected)))


def differences(
    rules: Sequence[GroupRule],
    masks: Sequence[Mask],
    confidence: Floats,
    correct: Floats,
    level: float,
) -> list[GroupDifference]:
    """Return the difference of every pair of groups, p values adjusted by Holm's method."""
    gap = confidence - correct
    pairs: list[GroupDifference] = []
    for first, peer in combinations(range(len(rules)), 2):
        sides = masks[first], masks[peer]
        estimate, p, stretch = gap_difference(confidence, correct, *sides, level=level)
        if np.isfinite(p):
            raw = float(gap[sides[0]].mean() - gap[sides[1]].mean())
            a, b = rules[first].label, rules[peer].label
            pairs.append(
                GroupDifference(
                    a=a, b=b, stretch=stretch, gap=estimate, raw=raw, p_value=p, p_adjusted=p
                )
            )
    adjusted = holm([pair.p_value for pair in pairs]).tolist() if pairs else []
    return [replace(pair, p_adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)]
