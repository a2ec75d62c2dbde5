"""The claims of an audit in worlds whose truth is known, and the worlds that others would make."""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec import convert

from calibrant.core.document import plain
from calibrant.findings.claims.audit import audit_claims
from calibrant.findings.claims.margins import ERROR_MARGIN, Missing, missing_entry
from calibrant.findings.claims.significance import adjust_p_values, block_tests
from calibrant.findings.documents.audits import AuditBlock
from calibrant.metrics.blocks.row_block import RowBlock
from simulations.claims.audit_worlds import (
    CALIBRATED,
    INVENTED,
    MARGIN_OR_MORE,
    NAMED_LIMIT,
    NOISE,
    OFF,
    Truth,
)
from simulations.claims.harness import Said, World

NEEDED = ("error", "auroc", "accuracy", "mean_confidence", "confidence_gap")
BINS = 15
POWER = {
    "over by 4, nine values": ("audit.over_confident", "audit.miscalibrated"),
    "over by 4, continuous": ("audit.over_confident", "audit.miscalibrated"),
    "under by 4, continuous": ("audit.under_confident",),
    "too extreme, logit / 1.5": ("audit.over_confident", "audit.miscalibrated"),
    "wavy by 8": ("audit.miscalibrated",),
    "rare errors, over by 2": ("audit.over_confident", "audit.miscalibrated"),
    "calibrated, .95/1.0": ("audit.miscalibrated", "audit.separates"),
    "calibrated, nine values": ("audit.miscalibrated", "audit.separates"),
}


def block_of(c, y, units=None, weights=None, rng=None):
    return RowBlock(
        c,
        y,
        weights,
        units,
        probability=True,
        bins=BINS,
        level=0.95,
        resamples=20,
        rng=np.random.default_rng(0) if rng is None else rng,
    )


def claims_of_blocks(blocks, margin=ERROR_MARGIN, missing=None):
    """Return the claims of an audit of these blocks, without what no claim rests on."""
    entries = []
    for number, block in enumerate(blocks):
        metrics = block.estimates(NEEDED)
        lost = None
        if missing is not None:
            lost = missing_entry(block.cell_error.sums, metrics["confidence_gap"], missing)
        entries.append(
            {
                "model": f"m{number}",
                "method": "confidence",
                "group": None,
                "n": block.n,
                "questions": block.questions,
                "probability": True,
                "metrics": metrics,
                "significance": block_tests(block, metrics, margin, lost),
                **({} if lost is None else {"missing": lost}),
            }
        )
    adjust_p_values(entries)
    return audit_claims(convert(plain(entries), list[AuditBlock]), margin)


def judged(claims, truths, margin=ERROR_MARGIN):
    """Say which claims are false; with an error at the margin, 'within' it is false."""
    edge = margin * 0.9999
    for claim in claims:
        if claim.id == "audit.models_over_confident":
            numbers = (int(name[1:]) for name in claim.subject["models"])
            yield Said(claim.id, True, any(truths[number].gap <= 0 for number in numbers))
            continue
        truth = truths[int(claim.subject["model"][1:])]
        far = abs(truth.gap) >= edge
        false = {
            ("audit.over_confident", "shown"): truth.gap <= 0,
            ("audit.over_confident", "equivalent"): far,
            ("audit.under_confident", "shown"): truth.gap >= 0,
            ("audit.under_confident", "equivalent"): far,
            ("audit.miscalibrated", "shown"): truth.error == 0,
            ("audit.miscalibrated", "equivalent"): truth.error >= edge,
            ("audit.separates", "shown"): truth.noise,
            ("audit.separates", "equivalent"): not truth.noise,
        }.get((claim.id, claim.outcome), False)
        yield Said(claim.id, claim.outcome in ("shown", "equivalent"), false)


def one_model(rng, *, world, n, weighed=None):
    c, y = world.rows(rng, n)
    weights = None if weighed is None else weighed(rng, n)
    return judged(claims_of_blocks([block_of(c, y, weights=weights)]), [world.truth])


def one_to_five(rng, n):
    return rng.integers(1, 6, n).astype(float)


def lognormal(rng, n):
    return rng.lognormal(0, 1, n)


def repeated(rng, *, sizes):
    """Several rows per question, with a question's own difficulty; calibrated on average."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    base = rng.beta(4, 2, len(sizes))
    c = base[codes]
    own = rng.beta(base * 2, (1 - base) * 2)
    y = (rng.random(codes.size) < own[codes]).astype(float)
    return judged(claims_of_blocks([block_of(c, y, codes)]), [Truth(0.0, 0.0)])


def drifting(rng, *, n, by):
    """The first half over, the second half under by as much: calibrated over all rows."""
    c = rng.choice([0.6, 0.7, 0.8, 0.9], n)
    p = c + by * np.where(np.arange(n) < n / 2, -1, 1)
    y = (rng.random(n) < p).astype(float)
    return judged(claims_of_blocks([block_of(c, y)]), [Truth(0.0, 0.0)])


def topics(rng, *, n, count, effect, gap=0.0, uneven=False):
    """Topics that are right more or less often than stated, calibrated over all topics."""
    share = rng.dirichlet(np.full(count, 2.0)) if uneven else np.full(count, 1 / count)
    codes = np.unique(rng.choice(count, n, p=share), return_inverse=True)[1]
    own = effect * rng.choice([-1.0, 1.0], count)
    c = rng.choice([0.5, 0.6, 0.7, 0.8, 0.85], n)
    y = (rng.random(n) < np.clip(c - gap + own[codes], 0, 1)).astype(float)
    return judged(claims_of_blocks([block_of(c, y, codes)]), [Truth(gap, gap)])


def grades(rng, *, n, over, halves):
    c = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9], n)
    p = c - over
    y = rng.binomial(2, p) / 2 if halves else rng.beta(8 * p, 8 * (1 - p))
    return judged(claims_of_blocks([block_of(c, y)]), [Truth(over, over)])


MISSING = {
    "10 % at random": lambda c, _: np.full(c.size, 0.1),
    "60 % of the wrong": lambda _, y: np.where(y == 1, 0, 0.6),
    "20 % of the wrong, 5 % of the right": lambda _, y: np.where(y == 1, 0.05, 0.2),
    "40 % of those below .7": lambda c, _: np.where(c < 0.7, 0.4, 0),
    "the wrong and unsure": lambda c, y: np.where((y == 0) & (c < 0.75), 0.6, 0.02),
}


def missing(rng, *, n, lost):
    """Confidences that are missing; what is said of the direction is about all answers."""
    c = rng.uniform(0.5, 1, n)
    y = (rng.random(n) < c).astype(float)
    gone = rng.random(n) < lost(c, y)
    kept = ~gone
    counts = Missing(float(y[gone].sum()), float((1 - y[gone]).sum()))
    claims = claims_of_blocks([block_of(c[kept], y[kept])], missing=counts)
    of_all = [claim for claim in claims if claim.id.endswith("_confident")]
    return judged(of_all, [Truth(0.0, 0.0)])


def one_sided(rng, *, low, high, right, n):
    """Nearly always, or hardly ever right; `right` None: calibrated."""
    c = rng.uniform(low, high, n) if low < high else np.full(n, low)
    p = c if right is None else np.full(n, right)
    y = (rng.random(n) < p).astype(float)
    gap = 0.0 if right is None else (low + high) / 2 - right
    noise = right is not None or low == high
    truth = Truth(gap, abs(gap), noise)
    return judged(claims_of_blocks([block_of(c, y)]), [truth])


def several(rng, *, worlds, n):
    blocks = [block_of(*world.rows(rng, n)) for world in worlds]
    return judged(claims_of_blocks(blocks), [world.truth for world in worlds])


def worlds():
    yield from _single()
    yield from _dependent()
    yield from _of_others()
    yield from _many_models()
    yield from _invented()
    for name in ("calibrated, continuous .4 to 1", "calibrated, beta(8, 1)"):
        run = partial(one_model, world=CALIBRATED[name], n=10_000)
        yield World(f"{name}, n = 10,000", run, ("audit.miscalibrated",))


def _single():
    for name, world in (CALIBRATED | NOISE).items():
        for n in (100, 500, 2_000):
            run = partial(one_model, world=world, n=n)
            yield World(f"{name}, n = {n:,}", run, POWER.get(name, ()))
    for name, world in OFF.items():
        for n in (200, 500):
            run = partial(one_model, world=world, n=n)
            yield World(f"{name}, n = {n:,}", run, POWER.get(name, ()))
    for name, world in MARGIN_OR_MORE.items():
        for n in (500, 2_000, 10_000):
            run = partial(one_model, world=world, n=n)
            if n != 500 or name not in OFF:
                yield World(f"{name}, n = {n:,}", run)


def _dependent():
    weighed = ("calibrated, nine values", "calibrated, rare errors", "nine values, all over by 2")
    for name in weighed:
        world = (CALIBRATED | MARGIN_OR_MORE)[name]
        for label, weights in (("1 to 5", one_to_five), ("lognormal", lognormal)):
            run = partial(one_model, world=world, n=1_000, weighed=weights)
            yield World(f"{name}, weights {label}, n = 1,000", run)
    for label, sizes in (
        ("5 rows for each of 200 questions", [5] * 200),
        ("200 rows for each of 5 questions, 1 for 300", [200] * 5 + [1] * 300),
    ):
        yield World(label, partial(repeated, sizes=sizes))
    for halves, over in ((True, 0.0), (False, 0.0), (True, 0.02), (False, 0.02)):
        kind = "0, 1/2, 1" if halves else "between 0 and 1"
        run = partial(grades, n=1_000, over=over, halves=halves)
        yield World(f"grades {kind}, over by {100 * over:g}, n = 1,000", run)


def _of_others():
    """Worlds that others would make: topics, missing confidences, always and never right."""
    for n, count, uneven in (
        (500, 6, False),
        (500, 8, True),
        (2_000, 15, False),
        (2_000, 50, True),
    ):
        run = partial(topics, n=n, count=count, effect=0.1, uneven=uneven)
        kind = ", uneven" if uneven else ""
        yield World(f"{count} topics{kind}, effects of 10 points, n = {n:,}", run)
    yield World(
        "15 topics, effects of 10 points, over by 10, n = 2,000",
        partial(topics, n=2_000, count=15, effect=0.1, gap=0.1),
        ("audit.over_confident",),
    )
    for name, lost in MISSING.items():
        yield World(f"missing: {name}, n = 500", partial(missing, n=500, lost=lost))
    for low, high, right, n in (
        (0.98, 1.0, None, 100),
        (0.0, 0.02, None, 100),
        (0.99, 0.99, None, 400),
        (0.9, 1.0, 0.0, 30),
        (0.9, 1.0, 0.01, 100),
        (0.6, 0.9, 1.0, 30),
    ):
        said = f"{100 * low:g} %" if low == high else f"{100 * low:g} to {100 * high:g} %"
        truth = "calibrated" if right is None else f"right {100 * right:g} %"
        run = partial(one_sided, low=low, high=high, right=right, n=n)
        yield World(f"says {said}, {truth}, n = {n}", run)


def _invented():
    """Worlds that nobody had in mind who wrote the rules, and the limit that is named."""
    for name, world in INVENTED.items():
        for n in (500, 2_000, 10_000):
            yield World(f"{name}, n = {n:,}", partial(one_model, world=world, n=n))
    for n in (500, 2_000):
        yield World(f"over by 6, then under by 6, n = {n:,}", partial(drifting, n=n, by=0.06))
    for name, world in NAMED_LIMIT.items():
        run = partial(one_model, world=world, n=10_000)
        yield World(f"{name} (named limit), n = 10,000", run, runs=400)


def _many_models():
    right, crossed = CALIBRATED["calibrated, nine values"], MARGIN_OR_MORE[".6/.9 cancelling, 3"]
    noise, over = NOISE["noise, .6/.9, right .75"], OFF["over by 4, nine values"]
    for name, some in (
        ("four calibrated models", [right] * 4),
        ("calibrated, crossed, noise and over", [right, crossed, noise, over]),
        ("one over by 4, one calibrated", [over, right]),
        ("twelve calibrated models", [right] * 12),
    ):
        yield World(f"{name}, n = 500", partial(several, worlds=some, n=500))
    yield World(
        "three over by 4, one calibrated, n = 2,000",
        partial(several, worlds=[over, over, over, right], n=2_000),
        ("audit.models_over_confident",),
    )
