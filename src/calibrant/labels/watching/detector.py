"""Has calibration changed? A detector whose false alarms over a horizon are bounded.

For every earlier batch it asks how much better 'the gap moved then' explains the labels since
than 'nothing moved'. The ratios of all starts are added up (Shiryaev and Roberts); their sum
passes ``horizon / alpha`` within the horizon with probability alpha at most. Residuals are taken
about the baseline's own calibration curve, a level per group included, so that a new mix of
questions is no alarm.

References
----------
Pollak (1987), Average run lengths of an optimal method of detecting a change in distribution.
Shin, Ramdas, Rinaldo (2024), E-detectors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.document import Stored
from calibrant.core.errors import InputError
from calibrant.labels.watching import channel
from calibrant.labels.watching.days import OrdinaryDays

_BINS = 4
# Share of alpha for all confidences together; the ranges have the rest. A change that shows in all
# of them is the usual one, and 0.7 finds it sooner than 0.5 at no loss for one that cancels.
_OVERALL = 0.7
# Rows a baseline needs before anything is compared with it.
_LEAST_BASELINE = 100
# After an alarm the new baseline is collected up to this many rows before the watch goes on.
_NEW_BASELINE = 500
# Labels of the baseline that a group needs for a level of its own; rows of others are left out.
LEAST_GROUP = 15
STATE_VERSION = 4


@dataclass(frozen=True, slots=True)
class Finding(Stored):
    """A change that set off the alarm.

    Parameters
    ----------
    batch, since
        The batch of the alarm and the batch at which the change most likely began, from 0.
    range
        Confidences at which it shows, or None for all of them.
    shift
        Change of accuracy at the same confidence since then.
    evidence
        Evidence against 'nothing changed'; the alarm goes off at ``1 / alpha``.
    group
        The group that moved apart from all others, with its own shift, or None.
    """

    batch: int
    since: int
    range: tuple[float, float] | None
    shift: float
    evidence: float
    group: tuple[str, float] | None = None


@dataclass(slots=True)
class ChangeDetector(Stored):
    """Watch accuracy at a given confidence, batch by batch.

    Parameters
    ----------
    horizon
        Batches over which the false-alarm probability holds.
    alpha
        Probability of any false alarm within the horizon.
    reset
        Whether the watch goes on after an alarm, with the labels since the change as the new
        baseline.
    tolerance
        Change of accuracy at a given confidence that does not matter; 0 finds changes soonest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = ChangeDetector(horizon=365)
    >>> p = rng.uniform(0.5, 1.0, 500)
    >>> detector.set_baseline(p, rng.uniform(size=500) < p)
    >>> for day in range(40):
    ...     p = rng.uniform(0.5, 1.0, 50)
    ...     found = detector.update(p, rng.uniform(size=50) < p - (0.2 if day >= 20 else 0.0))
    ...     if found:
    ...         break
    >>> 20 < found.batch < 30, found.since, round(found.shift, 1)
    (True, 20, -0.2)
    """

    horizon: int = 365
    alpha: float = 0.05
    reset: bool = True
    tolerance: float = 0.0
    batches: int = 0
    evidence: float = 0.0
    peak: float = 0.0
    edges: Floats = field(default_factory=lambda: np.zeros(0))
    theta: Floats = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    channels: channel.Channels | None = None
    findings: list[Finding] = field(default_factory=list)
    groups: tuple[str, ...] = ()
    epoch: int = 0
    waiting: channel.DaySums | None = None
    usual: OrdinaryDays = field(default_factory=OrdinaryDays)

    def __post_init__(self) -> None:
        if self.horizon < 1 or not 0.0 < self.alpha < 1.0:
            raise InputError(
                f"the horizon is at least 1 batch and alpha lies between 0 and 1, got "
                f"{self.horizon}, {self.alpha}"
            )

    @property
    def limit(self) -> float:
        """Evidence at which the alarm goes off."""
        return 1.0 / self.alpha

    @property
    def p_value(self) -> float:
        """Bound on the chance of evidence as large as the largest so far, had nothing changed."""
        return min(1.0, 1.0 / self.peak) if self.peak > 0 else 1.0

    def set_baseline(
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        question: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        group: ArrayLike | None = None,
        day: ArrayLike | None = None,
    ) -> None:
        """Take the labels of the last verification as the place from which change is measured.

        Parameters
        ----------
        confidence, correct, question
            Labelled rows and, where a question has several, their questions.
        weights
            How many rows of the pool each stands for, where they were drawn unevenly.
        group
            Name of each row's group: a change is then one at equal confidence in the same group.
            Rows of groups with under 15 labels here are left out.
        day
            Day of each row, counted from 1970, to learn how much ordinary days differ.
        """
        p, y, unit = _checked(confidence, correct, question)
        weight = _kish(weights, p.size)
        if group is not None:
            names, counts = np.unique(np.asarray(group, dtype=str), return_counts=True)
            self.groups = tuple(names[counts >= LEAST_GROUP].tolist())
        days = np.full(p.size, np.nan) if day is None else np.asarray(day, dtype=np.float64)
        p, y, unit, weight, member, days = self._of_known_groups(p, y, unit, weight, group, days)
        if p.size < _LEAST_BASELINE:
            raise InputError(
                f"a baseline has at least {_LEAST_BASELINE} labels, got {p.size}",
                hint="label more, or watch against perfect calibration without a baseline",
            )
        self.edges = np.quantile(p, np.linspace(0, 1, _BINS + 1))[1:-1]
        terms, inside = channel.terms_of(p, member), self._inside(p)
        self.theta = channel.fitted_curve(terms, y, weight)
        residual = self._residual(y, terms)
        self.usual.learn(days, residual, unit)
        residual = residual - np.array([self.usual.offset(each) for each in days.tolist()])
        self._start(
            channel.day_sums(terms, residual, unit, weight, inside, member),
            np.stack([channel.inverse_scatter(terms, weight * rows) for rows in inside]),
        )

    def set_perfect(self) -> None:
        """Watch against perfect calibration: accuracy equal to confidence, everywhere."""
        self.edges = np.array([0.5, 0.75, 0.9])
        self.theta = np.array([0.0, 1.0, 0.0])
        nothing = np.zeros((_BINS + 1, channel.MEANS + 2))
        self._start(nothing, np.zeros((_BINS + 1, 2, 2)), known=True)

    def _start(self, sums: channel.DaySums, inverse: Floats, *, known: bool = False) -> None:
        share = np.array([_OVERALL] + [(1.0 - _OVERALL) / _BINS] * _BINS)
        if not known:
            share = np.where(sums[:, channel.ROWS] >= channel.LEAST_RANGE, share, 0.0)
        self.channels = channel.Channels(share, known, sums, inverse, self.tolerance)
        self.epoch = self.batches
        self.evidence = self.peak = 0.0

    def _of_known_groups(
        self,
        p: Floats,
        y: Floats,
        unit: Indices,
        weight: Floats,
        group: ArrayLike | None,
        day: Floats,
    ) -> tuple[Floats, Floats, Indices, Floats, Mask, Floats]:
        """Return the rows of groups that the baseline knows, and which group each belongs to."""
        if not self.groups:
            return p, y, unit, weight, np.zeros((p.size, 0), dtype=bool), day
        if group is None:
            raise InputError("the baseline has groups, and these rows have none")
        place = {name: number for number, name in enumerate(self.groups)}
        code = np.array([place.get(name, -1) for name in np.asarray(group, dtype=str)], np.intp)
        finite = code >= 0
        member = np.equal.outer(code[finite], np.arange(len(self.groups)))
        return p[finite], y[finite], unit[finite], weight[finite], member, day[finite]

    def _inside(self, p: Floats) -> Floats:
        """Return which rows each channel takes: all, then those of each range of confidences."""
        cell = np.searchsorted(self.edges, p, side="left")
        return np.vstack([np.ones(p.size), cell == np.arange(_BINS)[:, None]])

    def _residual(self, y: Floats, terms: Floats) -> Floats:
        return np.asarray(y - np.clip(self.theta[0] + terms @ self.theta[1:], 0.0, 1.0))

    def update(
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        question: ArrayLike | None = None,
        group: ArrayLike | None = None,
        day: float = math.nan,
    ) -> Finding | None:
        """Take the labels of one batch; return what set off an alarm at this very batch.

        Labels of one `question` are right and wrong together; `day` is counted from 1970.
        """
        p, y, unit = _checked(confidence, correct, question)
        if self.channels is None:
            raise InputError("the detector has no reference", hint="set a baseline first")
        if self.findings and not self.reset:
            return None
        rows = self._of_known_groups(p, y, unit, np.ones(p.size), group, np.full(p.size, day))
        p, y, unit, weight, member, _ = rows
        terms = channel.terms_of(p, member)
        residual = self._residual(y, terms) - self.usual.offset(day)
        sums = channel.day_sums(terms, residual, unit, weight, self._inside(p), member)
        self.batches += 1
        self.usual.note(day, *sums[0, [channel.ROWS, channel.REST, channel.SQUARE]].tolist())
        if self.waiting is not None:
            self._collect(self.waiting + sums, self.channels)
            return None
        ratios = self.channels.add(sums, self.usual.factor)
        each = ratios.sum(axis=1) * self.channels.share / self.horizon
        self.evidence = float(each.max())
        self.peak = max(self.peak, self.evidence)
        if self.evidence < self.limit:
            return None
        self.usual.restart(day)
        return self._alarm(int(np.argmax(each)), ratios, self.channels)

    def _alarm(self, which: int, ratios: Floats, channels: channel.Channels) -> Finding:
        start = channels.likely_start(ratios[which])
        total = channels.sums_since(start)
        since = total[which]
        earlier = channels.total[which] - since
        moved = since[channel.REST] / max(since[channel.ROWS], 1.0)
        if not channels.known and earlier[channel.ROWS]:
            moved -= earlier[channel.REST] / earlier[channel.ROWS]
        noise = float(channels.spread[which] / max(channels.total[which, channel.ROWS], 1.0))
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        where = None if which == 0 else (float(ends[which - 1]), float(ends[which]))
        group = self._apart(since, earlier, noise)
        finding = Finding(
            self.batches - 1, self.epoch + start, where, float(moved), self.evidence, group
        )
        self.findings.append(finding)
        if self.reset:
            # The labels since the change become the new baseline, completed if they are few.
            self._collect(total, channels)
        return finding

    def _apart(self, since: Floats, earlier: Floats, noise: float) -> tuple[str, float] | None:
        """Return the group that moved apart from all others, where one did."""
        count = len(self.groups)
        if count < 2:
            return None
        rows, remainder = [], []
        for sums in (since, earlier):
            others = sums[channel.MEANS + 2 : channel.MEANS + 1 + count]
            rows.append(np.concatenate([[sums[channel.ROWS] - others.sum()], others]))
            remainder.append(sums[-count:])

        def move(n: Floats, s: Floats, m: Floats, u: Floats) -> tuple[Floats, Floats]:
            n, m = np.maximum(n, 1e-9), np.maximum(m, 1e-9)
            return s / n - u / m, noise * (1 / n + 1 / m)

        shift, own = move(rows[0], remainder[0], rows[1], remainder[1])
        remaining = [values.sum() - values for values in (*rows, *remainder)]
        elsewhere, peer = move(remaining[0], remaining[2], remaining[1], remaining[3])
        ratio = np.abs(shift - elsewhere) / np.sqrt(own + peer)
        # Beyond what the largest of so many ratios reaches by chance, in one of twenty cases.
        distance = (ratio >= float(ndtri(1 - 0.025 / count))) & (rows[0] >= LEAST_GROUP)
        if not distance.any():
            return None
        most = int(np.argmax(np.where(distance, np.abs(shift) / np.sqrt(own), 0.0)))
        return self.groups[most], float(shift[most])

    def _collect(self, sums: channel.DaySums, channels: channel.Channels) -> None:
        """Begin anew with these labels where they are enough, else wait for more."""
        self.waiting = sums
        if sums[0, channel.ROWS] >= _NEW_BASELINE:
            self.waiting = None
            # The old curve stays as the centre: each channel's own mean takes up what moved.
            self._start(sums, channels.inverse)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data, at most 250 small rows per channel."""
        return {"version": STATE_VERSION, **Stored.to_dict(self)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Go on from a saved state, as if the watch had never stopped."""
        if state.get("version") == 3:
            # It knew nothing of ordinary days.
            state = {**state, "version": STATE_VERSION, "usual": OrdinaryDays().to_dict()}
        if state.get("version") != STATE_VERSION:
            rule = (
                f"the state of a monitor has version {STATE_VERSION}, got {state.get('version')!r}"
            )
            raise InputError(rule, hint="start the watch anew with a baseline")
        return super(ChangeDetector, cls).from_dict(state)


def _kish(weights: ArrayLike | None, rows: int) -> Floats:
    """Return weights that add up to the number of equally weighted rows they are worth."""
    if weights is None:
        return np.ones(rows)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (rows,) or not (np.isfinite(w).all() and w.min() > 0):
        raise InputError("there is one weight above 0 for every row of the baseline")
    return np.asarray(w * w.sum() / (w @ w), dtype=np.float64)


def _checked(
    confidence: ArrayLike, correct: ArrayLike, question: ArrayLike | None
) -> tuple[Floats, Floats, Indices]:
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if p.shape != y.shape or p.ndim != 1:
        raise InputError("confidence and correct are vectors of one length")
    for name, values in (("confidence", p), ("correct", y)):
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError(f"{name} lies in [0, 1]")
    if question is None:
        return p, y, np.arange(p.size)
    unit = np.unique(np.asarray(question), return_inverse=True)[1]
    return p, y, unit.reshape(-1).astype(np.intp)
