"""A year of labelled days through the product's watch: groups, late labels, a new mix, a drop."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.labels.watching.batch import Baseline, MixWatch, StreamBatch
from calibrant.labels.watching.channel import MEANS, Channels, terms_of
from calibrant.labels.watching.days import WaitingDays
from calibrant.labels.watching.detector import ChangeDetector
from calibrant.labels.watching.watch import CalibrationWatch

DAYS, CHANGE, BASELINE = 365, 100, 2000


@dataclass(frozen=True)
class Rows:
    """Confidence, outcome and group of some rows; groups are numbers of names."""

    p: np.ndarray
    y: np.ndarray
    code: np.ndarray
    names: np.ndarray

    @classmethod
    def named(cls, p, y, group):
        names, code = np.unique(group, return_inverse=True)
        return cls(p, y, code, names)

    @property
    def group(self):
        return self.names[self.code]

    def of(self, rows):
        return Rows(self.p[rows], self.y[rows], self.code[rows], self.names)


def delays(rng, kind, y):
    """Return the days that each label takes; wrong answers may take ten days longer."""
    if kind is None:
        return np.zeros(len(y), int)
    if kind == "late":
        return rng.integers(1, 31, len(y))
    return rng.integers(1, 21, len(y)) + np.where(y < 0.5, 10, 0)


def watched(baseline, rows, arrives):
    """Return the days of the first alarms on quality and on the mix, and labels that got lost.

    `rows` are those of all days in order, equally many each; `arrives` is the day on which each
    label is known. A watch with late labels is run once a day, as with `monitor --state`. This is
    the product step by step; `watched_together` gives the same for many years in less time.
    """
    watch = _watch(baseline)
    asked = _days(rows)
    late = bool((arrives > asked).any())
    in_order = np.lexsort((asked, arrives))
    ends = np.searchsorted(arrives[in_order], np.arange(DAYS + 1))
    known = 0
    for day in range(DAYS):
        new = in_order[ends[day] : ends[day + 1]]
        known += len(new)
        if not late:
            watch.update(_batch(rows, new, day))
        else:
            arrived = {float(day): 0}
            for own in np.split(new, np.flatnonzero(np.diff(asked[new])) + 1) if len(new) else ():
                watch.late.take(_batch(rows, own, int(asked[own[0]])))
                arrived[float(asked[own[0]])] = len(own)
            watch.settle(arrived)
        if watch.alarms:
            break
    quality = day if watch.alarms else None
    return quality, _mix_alarm(baseline, rows), known - watch.rows - watch.late.labels


def _watch(baseline):
    start = Baseline(baseline.p, baseline.y, None, None, baseline.group)
    return CalibrationWatch({"model": "m", "method": "c"}, baseline=start)


def _days(rows):
    return np.repeat(np.arange(DAYS), len(rows.p) // DAYS)


def _batch(rows, at, day):
    group = rows.names[rows.code[at]]
    return StreamBatch(str(day), float(day), rows.p[at], rows.y[at], at, group=group)


def _mix_alarm(baseline, rows):
    names = rows.names.tolist()
    before = np.bincount(baseline.code, minlength=len(names)).tolist()
    watch = MixWatch({name: n for name, n in zip(names, before, strict=True) if n})
    per_day = len(rows.p) // DAYS
    for day in range(DAYS):
        own = rows.code[day * per_day : (day + 1) * per_day]
        counts = np.bincount(own, minlength=len(names)).tolist()
        if watch.update(str(day), dict(zip(names, counts, strict=True))):
            return day
    return None


# -- many years at once ----------------------------------------------------------------------------


def watched_together(years):
    """Return what `watched` does for each year: the product's sums, all years side by side."""
    made = [_sums_of_batches(*year) for year in years]
    terms = max(start.inverse.shape[1] for start, *_ in made)
    width, most = MEANS + terms, max(len(days) for _, _, days, _ in made)
    size = len(made[0][0].share)
    stacked = np.zeros((most, len(made), size, width))
    share, baseline, inverse = [], [], []
    for number, (start, sums, _, _) in enumerate(made):
        own = min(width, MEANS + start.inverse.shape[1])
        stacked[: len(sums), number, :, :own] = sums[:, :, :own]
        share.append(start.share)
        baseline.append(_padded(start.baseline[:, :own], (size, width)))
        inverse += [_padded(part, (terms, terms)) for part in start.inverse]
    channels = Channels(np.concatenate(share), False, np.concatenate(baseline), np.stack(inverse))
    first = np.full(len(made), most)
    limit = 1 / ChangeDetector().alpha
    for number in range(most):
        found = channels.add(stacked[number].reshape(-1, width)).sum(axis=1) * channels.share / DAYS
        over = found.reshape(len(made), size).max(axis=1) >= limit
        first = np.where(over & (first == most), number, first)
        if (first < most).all():
            break
    told = []
    for at, (_, _, days, lost), (base, rows, _) in zip(first, made, years, strict=True):
        told.append((int(days[at]) if at < len(days) else None, _mix_alarm(base, rows), lost))
    return told


def _padded(values, shape):
    made = np.zeros(shape)
    made[: values.shape[0], : values.shape[1]] = values
    return made


def _sums_of_batches(baseline, rows, arrives):
    """Return where a watch starts, the sums of its batches, their days, and labels lost."""
    detector = _watch(baseline).detector
    asked = _days(rows)
    batch, day, waiting = asked, np.arange(DAYS), 0
    if (arrives > asked).any():
        batch, day, waiting = _judged(asked, arrives)
    kept = batch >= 0
    lost = int((arrives < DAYS).sum() - kept.sum() - waiting)
    place = {name: number for number, name in enumerate(detector.groups)}
    code = np.array([place.get(name, -1) for name in rows.names])[rows.code]
    kept &= code >= 0
    p, y, code, batch = rows.p[kept], rows.y[kept], code[kept], batch[kept]
    terms = terms_of(p, np.equal.outer(code, np.arange(len(detector.groups))))
    rest = y - np.clip(detector.theta[0] + terms @ detector.theta[1:], 0.0, 1.0)
    ones = np.ones(len(p))
    # Every row is a question of its own here: its square, its cross term, and one unit.
    columns = np.column_stack([ones, rest, rest**2, rest, ones, terms])
    ranges = len(detector.channels.share) - 1
    at = batch * ranges + np.searchsorted(detector.edges, p, side="left")
    parts = [np.bincount(at, column, minlength=len(day) * ranges) for column in columns.T]
    inside = np.stack(parts, axis=1).reshape(len(day), ranges, -1)
    sums = np.concatenate([inside.sum(axis=1, keepdims=True), inside], axis=1)
    return detector.channels, sums, day, lost


def _judged(asked, arrives):
    """Return the batch of each label (-1: not judged), the day of each batch, labels that wait.

    What `WaitingDays` does with labels that come late, without moving the labels.
    """
    batch, days = np.full(len(asked), -1), []
    per_day, judged = len(asked) // DAYS, -1
    late = WaitingDays(start=0.0)
    order = np.argsort(arrives, kind="stable")
    ends = np.searchsorted(arrives[order], np.arange(DAYS + 1))
    took = np.zeros(DAYS, int)
    for today in range(DAYS):
        new = order[ends[today] : ends[today + 1]]
        took += np.bincount(today - asked[new], minlength=DAYS)
        late.delays, late.newest = {int(d): int(took[d]) for d in np.flatnonzero(took)}, today
        strays = new[asked[new] <= judged]
        if len(strays):
            batch[strays] = len(days)
            days.append(today)
        if late.learns_until is not None:
            continue
        for due in range(judged + 1, today - late.age + 1):
            own = np.arange(due * per_day, (due + 1) * per_day)
            own = own[arrives[own] <= today]
            if len(own):
                batch[own] = len(days)
                days.append(today)
                judged = due
    return batch, np.array(days), int(((arrives < DAYS) & (batch < 0)).sum())


def real_year(rng, rows, *, per_day=50, drop=0.0, moved=None, delay=None, baseline=BASELINE):
    """Return baseline, rows of a year and arrivals, drawn with replacement from a model's table.

    `moved`: from day 100 on half of the groups fall to a fifth ("fifth"), or the six easiest
    are gone ("easiest").
    """
    at = rng.integers(0, len(rows.p), (DAYS, per_day))
    if moved:
        count = len(rows.names)
        right = np.bincount(rows.code, rows.y) / np.bincount(rows.code)
        gone = rng.permutation(count)[: count // 2]
        if moved == "easiest":
            gone = np.argsort(right)[-min(6, count // 2) :]
        weight = np.where(np.isin(rows.code, gone), 0.2 if moved == "fifth" else 0.0, 1.0)
        at[CHANGE:] = rng.choice(len(rows.p), (DAYS - CHANGE, per_day), p=weight / weight.sum())
    year = rows.of(at.ravel())
    day = np.repeat(np.arange(DAYS), per_day)
    if drop:
        falls = (day >= CHANGE) & (rng.random(len(day)) < drop / rows.y.mean())
        year = replace(year, y=np.where(falls, 0.0, year.y))
    before = rows.of(rng.integers(0, len(rows.p), baseline))
    return before, year, day + delays(rng, delay, year.y)


def made_rows(rng, count, *, steps=None, groups=6):
    """Return a large table of a made-up model: groups of their own levels, a curve with waves.

    `steps` rounds confidences, so that few values come.
    """
    share = rng.dirichlet(np.full(groups, 3.0))
    code = rng.choice(groups, count, p=share)
    level, centre = rng.normal(0, 0.08, groups), rng.uniform(0.6, 0.85, groups)
    p = rng.beta(8 * centre[code], 8 * (1 - centre[code]))
    if steps:
        p = np.round(p * steps) / steps
    chance = 0.1 + 0.7 * p + 0.06 * np.sin(9 * p) + level[code]
    y = (rng.random(count) < np.clip(chance, 0.02, 0.98)).astype(float)
    return Rows(p, y, code, np.array([f"g{number}" for number in range(groups)]))
