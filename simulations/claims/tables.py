"""Missing, repeated and clustered rows as tables, through the whole product: what is said of them.

All worlds are calibrated over all answers, and models that are compared are alike. Read as if every
row were a draw of its own, or as if rows without a confidence had never been asked, most of them
are called miscalibrated far too often.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

import calibrant as cal
from simulations.claims.audit import MISSING
from simulations.claims.audit_worlds import NINE, NINE_SHARES
from simulations.claims.harness import Said, World

LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.85])
DIRECTIONS = ("audit.over_confident", "audit.under_confident")
ACCURATE = "compare.more_accurate"


def answers(rng, n, *, values=None):
    """Return calibrated answers: confidences with all their digits, or a few stated values."""
    c = rng.uniform(0.5, 1, n) if values is None else rng.choice(NINE, n, p=NINE_SHARES)
    return pl.DataFrame({"confidence": c, "correct": rng.random(n) < c})


def repeated(rng, *, n, times, values=None, shuffled=False):
    """Every row several times, without an id."""
    table = pl.concat([answers(rng, n, values=values)] * times)
    order = rng.permutation(table.height) if shuffled else np.arange(table.height)
    return table[order], {}


def some_repeated(rng, *, n, share):
    """A share of the rows twice, all of them round values."""
    once = answers(rng, n, values=NINE)
    return pl.concat([once, once.head(int(share * n))]), {}


def answers_per_question(rng, *, questions, each):
    """Several answers to each question, named by its text; a question is hard for all of them."""
    base = rng.beta(4, 2, questions)
    own = np.repeat(rng.beta(2 * base, 2 * (1 - base)), each)
    texts = np.repeat([f"What is {number}?" for number in range(questions)], each)
    right = rng.random(own.size) < own
    table = {"prompt": texts, "confidence": np.repeat(base, each), "correct": right}
    return pl.DataFrame(table), {}


def topics(rng, *, n, count, effect):
    """Topics that are right more or less often than stated."""
    own = effect * rng.choice([-1.0, 1.0], count)
    topic, c = rng.integers(0, count, n), rng.choice(LEVELS, n)
    right = rng.random(n) < c + own[topic]
    return pl.DataFrame({"confidence": c, "correct": right, "topic": topic}), {"cluster": "topic"}


def missing(rng, *, n, lost):
    """Answers without a confidence."""
    whole = answers(rng, n)
    c, y = whole["confidence"].to_numpy(), whole["correct"].to_numpy().astype(float)
    gone = pl.Series(rng.random(n) < lost(c, y))
    return whole.with_columns(confidence=pl.when(~gone).then("confidence")), {}


def audited(rng, *, world, about=None):
    """Audit a table; `about` names the claims that are about all answers, not about its rows."""
    table, options = world(rng)
    for claim in cal.audit(table, resamples=20, **options)["claims"]:
        made = claim["outcome"] in ("shown", "equivalent")
        if about is None or claim["id"] in about:
            # That a confidence separates is true, and so is that it is calibrated.
            wrong = "equivalent" if claim["id"] == "audit.separates" else "shown"
            yield Said(claim["id"], made, claim["outcome"] == wrong)


def compared(rng, *, n, lost):
    """Two models that are right equally often; one of them lacks confidences."""
    parts = []
    for name in ("a", "b"):
        whole = answers(rng, n).with_columns(model=pl.lit(name), question_id=pl.int_range(n))
        if name == "a":
            c, y = whole["confidence"].to_numpy(), whole["correct"].to_numpy().astype(float)
            gone = pl.Series(rng.random(n) < lost(c, y))
            whole = whole.with_columns(confidence=pl.when(~gone).then("confidence"))
        parts.append(whole)
    for claim in cal.compare(pl.concat(parts), resamples=20)["claims"]:
        if claim["id"] == ACCURATE:
            yield Said(ACCURATE, claim["outcome"] == "shown", True)


def worlds():
    for name, world in {
        "every row three times, n = 100": partial(repeated, n=100, times=3),
        "every row twice, shuffled, n = 150": partial(repeated, n=150, times=2, shuffled=True),
        "every row three times, nine values, n = 300": partial(
            repeated, n=300, times=3, values=NINE
        ),
        "a fifth of the rows twice, nine values (named limit), n = 500": partial(
            some_repeated, n=500, share=0.2
        ),
        "four answers per question, named by its text, n = 320": partial(
            answers_per_question, questions=80, each=4
        ),
        "ten answers per question, named by its text, n = 500": partial(
            answers_per_question, questions=50, each=10
        ),
        "12 topics, effects of 10 points, n = 500": partial(topics, n=500, count=12, effect=0.1),
        "6 topics, effects of 10 points, n = 500": partial(topics, n=500, count=6, effect=0.1),
        "50 topics, effects of 5 points, n = 2,000": partial(
            topics, n=2_000, count=50, effect=0.05
        ),
    }.items():
        runs = 400 if "(named limit)" in name else None
        yield World(f"table: {name}", partial(audited, world=world), runs=runs)
    for name, lost in MISSING.items():
        run = partial(audited, world=partial(missing, n=500, lost=lost), about=DIRECTIONS)
        yield World(f"table: no confidence in {name}, n = 500", run)
    run = partial(compared, n=300, lost=MISSING["60 % of the wrong"])
    yield World("table: two models alike, one without 60 % of the wrong, n = 300", run)
