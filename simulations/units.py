"""Promises for whole units: documents of fields, agents that stop early, claims that are dropped.

`python -m simulations units`. The truth of a threshold is taken from a large population of the same
world, with the chance of each unit instead of its outcome where the world knows it.
"""

from __future__ import annotations

import os

import numpy as np
from scipy.special import expit

from calibrant.trust.selective.certify import certify
from calibrant.trust.units import backoff_threshold, run_rows, steps_saved, unit_rows
from simulations._pieces import markdown_table, share_interval, write_page

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "400"))
TRUTH = 400_000
DELTA = 0.1
SEED = 62
FIELDS = np.array([0, 0, 0, 0, 0.5, 0.5, -1.2, -1.6])
"""Eight fields: two are harder than the model says."""


def documents(rng, count):
    """Stated confidences, outcomes, and the chance that a document has a wrong field."""
    hard = rng.normal(0, 1.2, count)[:, None]
    log_odds = 4.6 + FIELDS - hard + rng.normal(0, 0.8, (count, len(FIELDS)))
    wrong = rng.random(log_odds.shape) > expit(log_odds)
    stated = expit(0.8 * (log_odds - FIELDS) + 0.3 + rng.normal(0, 0.5, log_odds.shape))
    return np.clip(stated.round(2), 0.01, 0.99), wrong, 1 - expit(log_odds).prod(1)


def flat(stated, right):
    """A table of rows from one of documents."""
    unit = np.repeat(np.arange(len(stated)), stated.shape[1])
    return stated.ravel(), right.ravel().astype(float), unit


class TrueError:
    """The error among all units with a score of at least a threshold, and their share."""

    def __init__(self, score, chance):
        order = np.argsort(-score, kind="stable")
        self.score = -score[order]
        self.error = np.cumsum(chance[order]) / np.arange(1, len(score) + 1)

    def at(self, threshold):
        place = np.searchsorted(self.score, -threshold, side="right") - 1
        return (self.error[place], (place + 1) / len(self.score)) if place >= 0 else (0.0, 0.0)

    def best(self, limit):
        able = np.flatnonzero(self.error <= limit)
        return (able[-1] + 1) / len(self.score) if able.size else 0.0


def document_promises():
    """Product, least and mean of eight fields; the naive rules beside them."""
    rng = np.random.default_rng(SEED)
    stated, wrong, chance = documents(rng, TRUTH)
    truth, rows = {}, []
    for score in ("product", "min", "mean"):
        found = unit_rows(*flat(stated, ~wrong), score=score)
        truth[score] = TrueError(found.score, chance)
    least = TrueError(stated.min(1), chance)
    for limit in (0.1, 0.2):
        for count in (400, 1000, 3000):
            result = {}
            for _ in range(RUNS):
                c, y, unit = flat(*_right(documents(rng, count)))
                for score, world in truth.items():
                    units = unit_rows(c, y, unit, score=score)
                    at = certify(units.score, units.wrong, max_error=limit, delta=DELTA).threshold
                    error, share = world.at(at) if at is not None else (0.0, 0.0)
                    result.setdefault(score, []).append((error > limit, share))
                at = certify(c, 1 - y, max_error=limit, delta=DELTA).threshold
                error, share = least.at(at) if at is not None else (0.0, 0.0)
                result.setdefault("naive: each field", []).append((error > limit, share))
            for rule, runs in result.items():
                best = truth.get(rule, least).best(limit)
                rows.append([f"{limit:.0%}", count, rule, *_rates(runs), f"{best:.2f}"])
    return markdown_table(
        ["limit", "documents", "rule", "promise broken", "share answered", "best possible"], rows
    )


def _right(world):
    stated, wrong, _ = world
    return stated, ~wrong


def _rates(runs):
    broken, share = np.array(runs, dtype=float).T
    low, high = share_interval(int(broken.sum()), len(broken))
    return f"{100 * broken.mean():.1f} % [{100 * low:.1f}, {100 * high:.1f}]", f"{share.mean():.2f}"


def agents(rng, count):
    """Confidence per step, whether each run succeeds, and the run of each step."""
    steps, able = rng.integers(5, 21, count), rng.normal(0.6, 1.3, count)
    success = rng.random(count) < expit(able)
    fails_at = np.where(success, 99, rng.integers(0, 16, count))
    run = np.repeat(np.arange(count), steps)
    step = np.arange(len(run)) - np.repeat(np.cumsum(steps) - steps, steps)
    score = 1.2 + 0.5 * able[run] - 1.5 * (step >= fails_at[run]) + rng.normal(0, 0.8, len(run))
    return expit(score).round(2), success[run].astype(float), run


def stopping():
    """Stop at a low confidence: promise per run, and steps taken for rows beside it."""
    rng = np.random.default_rng(SEED + 1)
    c, y, run = agents(rng, TRUTH // 10)
    truth = run_rows(c, y, run)
    world, rows = TrueError(truth.score, truth.wrong), []
    limit = 0.2
    for count in (100, 300, 1000):
        result, saved = {}, []
        for _ in range(RUNS):
            c, y, run = agents(rng, count)
            units = run_rows(c, y, run)
            for rule, score, wrong in (
                ("per run", units.score, units.wrong),
                ("naive: steps as rows", 1 - c, y),
            ):
                at = certify(score, wrong, max_error=limit, delta=DELTA).threshold
                error, share = world.at(at) if at is not None else (0.0, 0.0)
                result.setdefault(rule, []).append((error > limit, share))
                if rule == "per run":
                    saved.append(0.0 if at is None else steps_saved(c, run, 1 - at))
        for rule, runs in result.items():
            words = f"{np.mean(saved):.2f}" if rule == "per run" else ""
            rows.append([count, rule, *_rates(runs), words])
    return markdown_table(["runs", "rule", "promise broken", "stopped", "steps saved"], rows)


def claims():
    """Drop claims below a confidence until few answers keep a wrong one."""
    rng = np.random.default_rng(SEED + 2)
    stated, wrong, _ = documents(rng, TRUTH)
    needed = np.sort(np.where(wrong, stated, 0.0).max(1))
    rows = []
    for limit in (0.1, 0.2):
        for count in (50, 100, 400):
            runs, conformal = [], []
            for _ in range(RUNS):
                c, y, unit = flat(*_right(documents(rng, count)))
                at = backoff_threshold(c, y, unit, max_error=limit, delta=DELTA)
                runs.append(_kept(at, needed, stated, limit))
                conformal.append(_kept(_conformal(c, y, unit, limit), needed, stated, limit))
            rows.append([f"{limit:.0%}", count, "with certainty", *_rates(runs)])
            rows.append([f"{limit:.0%}", count, "conformal, on average", *_rates(conformal)])
    return markdown_table(["limit", "answers", "rule", "promise broken", "claims kept"], rows)


def _kept(at, needed, stated, limit):
    if at is None:
        return False, 0.0
    error = 1 - np.searchsorted(needed, at, side="right") / len(needed)
    return error > limit, float((stated > at).mean())


def _conformal(c, y, unit, limit):
    """Conformal factuality: the promise holds on average over label sets, not for most of them."""
    needed = np.zeros(int(unit.max()) + 1)
    np.maximum.at(needed, unit, np.where(y < 1, c, 0.0))
    k = int(np.ceil((len(needed) + 1) * (1 - limit)))
    return float(np.sort(needed)[k - 1]) if k <= len(needed) else None


PARTS = {
    "documents": lambda: ["## Documents of eight fields", "", *document_promises()],
    "agents": lambda: ["## Agents: at most 20 % of the stopped would succeed", "", *stopping()],
    "claims": lambda: ["## Claims dropped until the answer passes", "", *claims()],
}


def main():
    write_page("units", "Promises for whole units", PARTS, ["numpy", "scipy"])


if __name__ == "__main__":
    main()
