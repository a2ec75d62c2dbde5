"""The claims of `mend` in worlds whose truth is known, smooth and rough."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from msgspec import convert
from scipy import special

from calibrant.data.mend import Mend, fit_columns
from calibrant.findings.claims.decide import COLUMNS, GAIN, mend_claims
from calibrant.findings.documents.decisions import MendEntry
from calibrant.metrics.recalibration.mend_fit import Labels
from simulations.claims.harness import Said, World

VALUES = np.array([0.7, 0.8, 0.9, 0.95, 1.0])
SHARES = np.array([0.1, 0.15, 0.35, 0.25, 0.15])
# How confidences are stated, and the chance of a right answer given the confidence.
TRUTHS = {
    "five values, over by 30 points": ("few", lambda c: c - 0.3),
    "five values, zigzag": ("few", lambda c: np.interp(c, VALUES, [0.6, 0.4, 0.75, 0.5, 0.8])),
    "one value, 95 % said and 60 % right": ("one", lambda c: np.full(len(c), 0.6)),
    "calibrated": ("beta", lambda c: c),
    "too extreme": ("beta", lambda c: special.expit(-1 + 0.5 * special.logit(c))),
    "one step": ("beta", lambda c: np.where(c < 0.8, 0.3, 0.75)),
    "a dip at the top": ("beta", lambda c: np.where(c < 0.93, 0.3 + 0.5 * c, 0.5)),
    "a wave": ("beta", lambda c: 0.6 + 0.2 * np.sin(25 * c)),
    "falling": ("beta", lambda c: 0.9 - 0.5 * c),
    "rare errors": ("beta", lambda c: np.where(c < 0.7, 0.85, 0.98)),
}
RUNS = 1000


def _entry(fitted, columns=None):
    """Return the entry of a document, without its table."""
    entry = {**fitted.to_dict(), "columns": columns, "table": [], "path": None}
    return convert(entry, MendEntry)


def _stated(kind, rng, n):
    if kind == "few":
        return rng.choice(VALUES, n, p=SHARES)
    return np.full(n, 0.95) if kind == "one" else np.clip(rng.beta(8, 2, n), 1e-6, 1 - 1e-6)


def _run(rng, *, kind, truth, n, rows):
    """Yield the claims of one fit; `rows` of a question are right and wrong together."""
    c = _stated(kind, rng, n)
    unit = np.arange(n) // rows
    shared = 0.0 if rows == 1 else 0.7
    hidden = shared * rng.standard_normal(n)[unit] + np.sqrt(1 - shared**2) * rng.standard_normal(n)
    y = special.ndtr(hidden) < truth(c)
    seed = int(rng.integers(2**31))
    fitted = Mend(seed=seed).fit(c, y, groups=unit).map_
    new = _stated(kind, rng, 4000)
    mended = fitted.probabilities(new)
    off = np.abs(mended - truth(new)).mean()
    gained = ((new - truth(new)) ** 2 - (mended - truth(new)) ** 2).mean()
    for claim in mend_claims(_entry(fitted), named=False):
        if claim.id == GAIN.id:
            shown = claim.outcome == "shown"
            yield Said(claim.id, claim.outcome != "undecided", shown and gained <= 0)
        else:
            yield Said(claim.id, True, off > fitted.promise["off_by"])


# How the chance of a right answer moves with a topic (eight) and a length, in log odds.
COLUMN_EFFECTS = {
    "topics and length tell more": lambda topic, long: (
        0.35 * (topic - 3.5) - 0.5 * (long > 1) * long
    ),
    "topics turn what length tells": lambda topic, long: np.where(topic < 4, 0.6, -0.6) * long,
    "columns are noise": lambda topic, long: 0.0 * topic * long,
}


def _rows(rng, n, effect):
    c, topic, long = _stated("few", rng, n), rng.integers(0, 8, n), rng.standard_normal(n)
    truth = special.expit(special.logit(c * 0.8) + effect(topic, long))
    columns = {"topic": [f"t{t}" for t in topic], "long": long}
    return c, truth, pl.DataFrame(columns)


def _columns_run(rng, *, effect, n, rows):
    """Yield the claim on columns: what is gained, and how far off over 20 slices of the score."""
    c, truth, columns = _rows(rng, n, effect)
    unit, shared = np.arange(n) // rows, 0.0 if rows == 1 else 0.7
    hidden = shared * rng.standard_normal(n)[unit] + np.sqrt(1 - shared**2) * rng.standard_normal(n)
    y = (special.ndtr(hidden) < truth).astype(float)
    seed = int(rng.integers(2**31))
    alone = Mend(seed=seed).fit(c, y, groups=unit).map_
    read = fit_columns(Labels.of(c, y, units=unit), columns, alone, seed=seed)
    used = read.map.verdict == "mended"
    new, target, beside = _rows(rng, 8000, effect)
    plain = alone.probabilities(new)
    score = read.scores(plain, beside)
    value = read.map.probabilities(score)
    slices = np.array_split(np.argsort(score, kind="stable"), 20)
    off = np.mean([abs(value[part].mean() - target[part].mean()) for part in slices])
    gained = ((plain - target) ** 2 - (value - target) ** 2).mean()
    told = {**read.to_dict(), "promise": dict(read.map.promise)}
    for claim in mend_claims(_entry(alone, told), named=False):
        if claim.id == COLUMNS.id:
            wrong = used and (gained <= 0 or off > read.map.promise["off_by"])
            yield Said(claim.id, claim.outcome != "undecided", wrong)


def worlds():
    """Yield all worlds."""
    for name, effect in COLUMN_EFFECTS.items():
        for n, rows in ((500, 1), (2000, 1), (2000, 4)):
            told = f"{name}, {n:,} labels" + (", four of each question" if rows > 1 else "")
            power = (COLUMNS.id,) if "tell more" in name else ()
            yield World(told, partial(_columns_run, effect=effect, n=n, rows=rows), power, RUNS)
    for name, (kind, truth) in TRUTHS.items():
        for n, rows in ((100, 1), (300, 1), (2000, 1), (1000, 4)):
            told = f"{name}, {n:,} labels" + (", four of each question" if rows > 1 else "")
            power = (GAIN.id,) if "over by" in name else ()
            run = partial(_run, kind=kind, truth=truth, n=n, rows=rows)
            yield World(told, run, power, RUNS)
