"""The claims about graded answers that have no confidence, in worlds whose truth is known.

The true share is drawn anew in every run: Wilson's interval errs in a saw of the share, and one
share alone would show a tooth of it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from scipy.stats import norm

from calibrant.data import load_scores
from calibrant.findings.claims.audit import accuracy_claims
from calibrant.verbs.accuracy import _entry, _pairs
from simulations.claims.harness import Said, World

LEVEL = 0.95
BETTER, REPEATS, SHARE = (f"accuracy.{name}" for name in ("better", "repeats", "share"))


def claims_of(table):
    """Return what is said of grades, as `audit` says it; no grouping of the rows is searched."""
    rows = table.with_columns(confidence=0.5)
    blocks = list(load_scores(rows, repeats=True).blocks())
    entries = [_entry(block, "question_id", LEVEL) for block in blocks]
    pairs = _pairs(blocks, LEVEL) if len(blocks) > 1 else []
    return list(accuracy_claims(entries, pairs, LEVEL))


def outside(claim, truth):
    """Return a claim about a share, false where the interval misses the true one."""
    return Said(claim.id, True, not claim.low <= truth <= claim.high)


def single(rng, *, n, shares):
    """One answer to each question."""
    share = rng.uniform(*shares)
    right = (rng.random(n) < share).astype(int)
    for claim in claims_of(pl.DataFrame({"question_id": np.arange(n), "correct": right})):
        yield outside(claim, share)


def asked_again(rng, *, questions, times, spread):
    """Several answers to each question; `spread` is how alike those of one question are."""
    share = rng.uniform(0.4, 0.9)
    chance = rng.beta(share * spread, (1 - share) * spread, questions)
    right = rng.random((questions, times)) < chance[:, None]
    ids = np.repeat(np.arange(questions), times)
    # Moments of the law of chances: all answers of a question right, and all of them wrong.
    steps = np.arange(times)
    whole = np.prod((share * spread + steps) / (spread + steps))
    none = np.prod(((1 - share) * spread + steps) / (spread + steps))
    truth = {SHARE: share, REPEATS: 1 - whole - none}
    rows = pl.DataFrame({"question_id": ids, "correct": right.ravel().astype(int)})
    for claim in claims_of(rows):
        yield outside(claim, truth[claim.id])


def several(rng, *, n, shares, spread=2.0, times=1):
    """Models on the same questions; `shares` are how often each is right, alike or not."""
    luck = rng.normal(0, 1, n)
    parts = []
    for number, share in enumerate(shares):
        # All find the same questions hard.
        chance = _chance(share, spread, luck)
        right = rng.random((n, times)) < chance[:, None]
        ids = np.repeat(np.arange(n), times)
        part = pl.DataFrame({"question_id": ids, "correct": right.ravel().astype(int)})
        parts.append(part.with_columns(model=pl.lit(f"m{number}")))
    for claim in claims_of(pl.concat(parts)):
        if claim.id == BETTER:
            a, b = (shares[int(claim.subject[side][1:])] for side in ("a", "b"))
            yield Said(BETTER, claim.outcome == "shown", a <= b)


def _chance(share, spread, luck):
    """Return chances of being right whose mean over questions is exactly the share."""
    return norm.cdf(norm.ppf(share) * np.sqrt(1 + spread**2) + spread * luck)


def worlds():
    for n in (30, 100, 400, 2_000):
        yield World(f"one answer each, n = {n:,}", partial(single, n=n, shares=(0.3, 0.95)))
    run = partial(single, n=200, shares=(0.9, 0.99))
    yield World("one answer each, hardly ever wrong, n = 200", run)
    for questions, times, spread in ((40, 4, 2.0), (200, 4, 2.0), (200, 2, 1e6), (200, 10, 0.5)):
        kind = "independent" if spread > 100 else "alike"
        run = partial(asked_again, questions=questions, times=times, spread=spread)
        yield World(f"{times} answers each, {kind}, {questions} questions", run)
    for name, n, shares, times in (
        ("two models right equally often", 30, (0.7, 0.7), 1),
        ("two models right equally often", 300, (0.7, 0.7), 1),
        ("two models right equally often", 2_000, (0.9, 0.9), 1),
        ("two models right equally often, 4 answers each", 100, (0.7, 0.7), 4),
        ("six models right equally often", 300, (0.6,) * 6, 1),
    ):
        yield World(f"{name}, {n:,} questions", partial(several, n=n, shares=shares, times=times))
    for n in (100, 400):
        run = partial(several, n=n, shares=(0.75, 0.68))
        yield World(f"one of two more often, by 7 points, {n} questions", run, (BETTER,))
