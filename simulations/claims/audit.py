"""The claims of an audit in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.claims.audit import audit_claims
from calibrant.claims.margins import ERROR_MARGIN
from calibrant.claims.significance import adjust_p_values, block_tests
from calibrant.core.document import plain
from calibrant.metrics.row_block import RowBlock
from simulations.claims.harness import Said, World

NEEDED = ("ece", "auroc", "accuracy", "mean_confidence", "confidence_gap")
MANY = 2_000_000
BINS = 15


def spread(rng, n):
    return rng.beta(4, 2, n)


def ties(rng, n):
    return rng.choice([0.6, 0.8, 0.95], n, p=[0.2, 0.3, 0.5])


def sure(rng, n):
    return rng.choice([0.95, 0.98, 0.99, 1.0], n, p=[0.3, 0.3, 0.2, 0.2])


def constant(_, n):
    return np.full(n, 0.8)


# Confidence, and the chance of being right given it.
TRUTHS = {
    "calibrated": (spread, lambda c, _: c),
    "calibrated, heavy ties": (ties, lambda c, _: c),
    "calibrated, rare errors": (sure, lambda c, _: np.minimum(c, 0.995)),
    "over by 2 points (the margin)": (spread, lambda c, _: c - 0.02 * c * (1 - c) / 0.1905),
    "over by 4 points": (spread, lambda c, _: c - 0.04 * c * (1 - c) / 0.1905),
    "over by 10 points": (spread, lambda c, _: c - 0.10 * c * (1 - c) / 0.1905),
    "under by 4 points": (spread, lambda c, _: c + 0.04 * c * (1 - c) / 0.1905),
    "under by 10 points": (spread, lambda c, _: np.minimum(c + 0.1 * c * (1 - c) / 0.1905, 1)),
    "mixed by group, calibrated at each confidence": (
        spread,
        lambda c, rng: np.clip(c + np.where(rng.random(c.size) < 0.5, 0.1, -0.1), 0, 1),
    ),
    "wavy: right on average, wrong along the scale": (
        spread,
        lambda c, _: np.clip(c + 0.08 * np.sin(4 * np.pi * c), 0, 1),
    ),
    "confidence is noise": (spread, lambda c, _: np.full(c.size, 0.667)),
    "constant confidence, right": (constant, lambda c, _: c),
}
SIZES = (30, 200, 2_000)
# With weights that have nothing to do with the answers, the truth is the same.
WEIGHED = (
    "calibrated",
    "calibrated, heavy ties",
    "calibrated, rare errors",
    "over by 2 points (the margin)",
    "wavy: right on average, wrong along the scale",
    "confidence is noise",
)


def cells(c):
    return np.minimum((c * BINS).astype(int), BINS - 1)


def truth_of(name):
    """Return the mean gap, the binned error and the AUROC that endless data would show."""
    rng = np.random.default_rng(7)
    said, chance = TRUTHS[name]
    c = said(rng, MANY)
    q = np.clip(chance(c, rng), 0, 1)
    error = np.abs(np.bincount(cells(c), c - q, BINS)).sum() / MANY
    gap = float((c - q).mean())
    if abs(gap) < 5e-4:
        gap = 0.0
    if error < 2e-3:
        error = 0.0
    return gap, error, name in ("confidence is noise", "constant confidence, right")


def said_of(parts, seed_rng, margin=ERROR_MARGIN):
    """Return the claims of an audit of these models, without what no claim rests on."""
    blocks = (
        RowBlock(
            c,
            y,
            weights[0] if weights else None,
            units,
            probability=True,
            bins=BINS,
            level=0.95,
            resamples=200,
            rng=seed_rng,
        )
        for c, y, units, *weights in parts
    )
    return claims_of_blocks(blocks, seed_rng, margin)


def claims_of_blocks(blocks, seed_rng, margin=ERROR_MARGIN):
    """Return the claims of an audit whose rows are in blocks already."""
    entries = []
    for number, block in enumerate(blocks):
        metrics = block.estimates(NEEDED)
        entries.append(
            {
                "model": f"m{number}",
                "method": "confidence",
                "group": None,
                "n": block.n,
                "questions": block.questions,
                "probability": True,
                "metrics": metrics,
                **block_tests(block, metrics, seed_rng, margin),
            }
        )
    adjust_p_values(entries)
    return audit_claims(plain(entries), margin)


def judged(claims, truths, margin=ERROR_MARGIN):
    for claim in claims:
        if claim.id == "audit.all_over_confident":
            false = any(gap <= 0 for gap, _, _ in truths)
            yield Said(claim.id, True, false)
            continue
        gap, error, random = truths[int(claim.subject["model"][1:])]
        false = {
            ("audit.over_confident", "shown"): gap <= 0,
            ("audit.over_confident", "equivalent"): abs(gap) > margin * 1.001,
            ("audit.under_confident", "shown"): gap >= 0,
            ("audit.under_confident", "equivalent"): abs(gap) > margin * 1.001,
            ("audit.miscalibrated", "shown"): error == 0,
            ("audit.miscalibrated", "equivalent"): error > margin * 1.001,
            ("audit.separates", "shown"): random,
            ("audit.separates", "equivalent"): not random,
        }.get((claim.id, claim.outcome), False)
        yield Said(claim.id, claim.outcome != "undecided", false)


def one_to_five(rng, n):
    return rng.integers(1, 6, n).astype(float)


def lognormal(rng, n):
    return rng.lognormal(0, 1, n)


def one_model(rng, *, name, n, truth, weighed=None):
    said, chance = TRUTHS[name]
    c = said(rng, n)
    y = (rng.random(n) < chance(c, rng)).astype(float)
    weights = () if weighed is None else (weighed(rng, n),)
    return judged(said_of([(c, y, None, *weights)], rng), [truth])


def repeated(rng, *, sizes, truth):
    """Several rows per question, with a question's own difficulty; calibrated on average."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    base = spread(rng, len(sizes))
    c = base[codes]
    own = rng.beta(base * 2, (1 - base) * 2)
    y = (rng.random(codes.size) < own[codes]).astype(float)
    return judged(said_of([(c, y, codes)], rng), [truth])


def many_models(rng, *, shifts, n, truths):
    parts = []
    for a, b in shifts:
        c = rng.beta(a, b, n)
        parts.append((c, (rng.random(n) < c).astype(float), None))
    return judged(said_of(parts, rng), truths)


def over_and_right(rng, *, n, truths, said=None, rows=1, halves=0.0):
    """Models that are over by a fixed gap, or right; `rows` per question, `halves` by group."""
    parts = []
    for gap, _, _ in truths:
        c = rng.uniform(0.4, 0.95, n) if said is None else said(rng, n)
        chance = np.clip(c - gap + halves * rng.choice([-1, 1], n), 0.01, 0.99)
        codes = np.repeat(np.arange(n), rows) if rows > 1 else None
        if codes is not None:
            chance = rng.beta(2 * chance, 2 * (1 - chance))[codes]
            c = c[codes]
        parts.append((c, (rng.random(c.size) < chance).astype(float), codes))
    return judged(said_of(parts, rng), truths)


def few_values(rng, n):
    return rng.choice([0.4, 0.6, 0.85], n)


def nearly_sure(rng, n):
    return rng.choice([0.95, 0.97, 0.98], n)


def worlds():
    for name in TRUTHS:
        truth = truth_of(name)
        power = {
            "over by 4 points": ("audit.over_confident",),
            "under by 4 points": ("audit.under_confident",),
            "wavy: right on average, wrong along the scale": ("audit.miscalibrated",),
            "calibrated": ("audit.separates",),
        }.get(name, ())
        for n in SIZES:
            yield World(
                f"{name}, n = {n:,}", partial(one_model, name=name, n=n, truth=truth), power
            )
    for name in WEIGHED:
        truth = truth_of(name)
        for label, weighed in (("1 to 5", one_to_five), ("lognormal", lognormal)):
            for n in (200, 2_000):
                yield World(
                    f"{name}, weights {label}, n = {n:,}",
                    partial(one_model, name=name, n=n, truth=truth, weighed=weighed),
                )
    zero = (0.0, 0.0, False)
    for label, sizes in (
        ("5 rows for each of 200 questions", [5] * 200),
        ("200 rows for each of 5 questions, 1 for 300", [200] * 5 + [1] * 300),
    ):
        yield World(label, partial(repeated, sizes=sizes, truth=zero))
    far = (0.15, 0.15, False)
    for n in (30, 200, 2_000):
        yield World(
            f"one model over by 15 points, one calibrated, n = {n:,}",
            partial(over_and_right, n=n, truths=[far, zero]),
        )
    for name, options in (
        ("heavy ties", {"said": few_values}),
        ("rare errors", {"said": nearly_sure}),
        ("5 rows per question", {"rows": 5}),
        ("mixed by group", {"halves": 0.05}),
    ):
        yield World(
            f"one model over by 15 points, one calibrated, {name}, n = 500",
            partial(over_and_right, n=500, truths=[far, zero], **options),
        )
    yield World(
        "one model over by 15 points, one under by 3, n = 500",
        partial(over_and_right, n=500, truths=[far, (-0.03, 0.03, False)]),
    )
    yield World(
        "four models over by 15 points, one calibrated, n = 500",
        partial(over_and_right, n=500, truths=[*[far] * 4, zero]),
    )
    yield World(
        "two models over by 15 points, n = 500",
        partial(over_and_right, n=500, truths=[far] * 2),
        ("audit.all_over_confident",),
    )
    beta_of = [(2, 2), (3, 1), (1, 3), (6, 2)]
    yield World(
        "four calibrated models of unequal accuracy, n = 500",
        partial(many_models, shifts=beta_of, n=500, truths=[zero] * 4),
    )
