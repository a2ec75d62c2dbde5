"""Worlds of an audit: confidences, the chance of being right at each, and what is true of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NINE = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0])
NINE_SHARES = np.array([3, 4, 6, 5, 12, 15, 20, 25, 10]) / 100
MANY = 400_000


@dataclass(frozen=True)
class Truth:
    """What endless data would show; `noise`: confidence says nothing about the answer."""

    gap: float
    error: float
    noise: bool = False


@dataclass(frozen=True)
class Confidences:
    """Draw confidences, and give the chance of being right at each."""

    draw: Callable
    chance: Callable
    truth: Truth

    def rows(self, rng, n):
        said = self.draw(rng, n)
        return said, (rng.random(n) < self.chance(said)).astype(float)


def stated(values, rights, shares=None, *, noise=False):
    """Return a world of a few stated values, each right with its own chance."""
    values, rights = np.asarray(values, float), np.asarray(rights, float)
    shares = np.full(values.size, 1 / values.size) if shares is None else np.asarray(shares)
    off = values - rights
    return Confidences(
        lambda rng, n: rng.choice(values, n, p=shares),
        lambda c: rights[np.searchsorted(values, c)],
        Truth(_tidy(shares @ off), _tidy(shares @ np.abs(off)), noise),
    )


def smooth(draw, chance, *, noise=False):
    """Return a world of continuous confidences."""
    said = draw(np.random.default_rng(0), MANY)
    off = said - np.clip(chance(said), 0, 1)
    return Confidences(
        draw,
        lambda c: np.clip(chance(c), 0, 1),
        Truth(_tidy(off.mean()), _tidy(np.abs(off).mean()), noise),
    )


def _tidy(value):
    return 0.0 if abs(value) < 5e-4 else float(value)


def uniform(low, high):
    return lambda rng, n: rng.uniform(low, high, n)


def teeth(count, size, low, high):
    def chance(c):
        return c + size * np.where(np.floor((c - low) / (high - low) * count) % 2 == 0, 1, -1)

    return smooth(uniform(low, high), chance)


def logit(c):
    c = np.clip(c, 1e-6, 1 - 1e-6)
    return np.log(c / (1 - c))


SIXTY = np.arange(40, 100) / 100
HUNDRED = np.arange(100) / 100 + 0.005
ALTERNATE = (-1.0) ** np.arange(100)
NINE_ONE_OFF = np.where(NINE == 0.95, 0.87, NINE)
NINE_ZIGZAG = [0.525, 0.575, 0.725, 0.725, 0.825, 0.825, 0.925, 0.925, 0.975]
NEAR_ONE = np.array([0.97, 0.98, 0.99, 1.0])


def half_tied(rng, n):
    return np.where(rng.random(n) < 0.5, 0.95, rng.uniform(0.3, 0.95, n))


def mostly_tied(rng, n):
    return np.where(rng.random(n) < 0.8, rng.choice([0.9, 1.0], n), rng.uniform(0.85, 1, n))


MARGIN_OR_MORE = {
    ".95/1.0 crossed by 5": stated([0.95, 1.0], [1.0, 0.95]),
    ".8/.85/.95/1 crossed by 4": stated([0.8, 0.85, 0.95, 1.0], [0.84, 0.81, 0.99, 0.96]),
    ".8/.85/.95/1 crossed by 2.5": stated([0.8, 0.85, 0.95, 1.0], [0.825, 0.825, 0.975, 0.975]),
    ".8/.85/.95/1 crossed by 2": stated([0.8, 0.85, 0.95, 1.0], [0.82, 0.83, 0.97, 0.98]),
    ".95/1.0 crossed by 2": stated([0.95, 1.0], [0.97, 0.98]),
    ".6/.9 cancelling, 3": stated([0.6, 0.9], [0.63, 0.87]),
    "nine values, zigzag 2.5": stated(NINE, NINE_ZIGZAG, NINE_SHARES),
    "nine values, .95 off by 8": stated(NINE, NINE_ONE_OFF, NINE_SHARES),
    "nine values, all over by 2": stated(NINE, NINE - 0.02, NINE_SHARES),
    "rare errors, over by 2": stated(NEAR_ONE, NEAR_ONE - 0.02),
    "one value .99, right .969": stated([0.99], [0.969], noise=True),
    "one value 1.0, right .979": stated([1.0], [0.979], noise=True),
    "60 values, zigzag 5": stated(SIXTY, SIXTY + 0.05 * ALTERNATE[:60]),
    "100 values, zigzag 3": stated(HUNDRED, np.clip(HUNDRED + 0.03 * ALTERNATE, 0, 1)),
    "continuous, 4 teeth of 3": teeth(4, 0.03, 0.4, 1),
    "continuous, 10 teeth of 3": teeth(10, 0.03, 0.4, 1),
    "continuous, 20 teeth of 5": teeth(20, 0.05, 0.4, 0.95),
    "continuous, 40 teeth of 5": teeth(40, 0.05, 0.4, 0.95),
    "continuous, 100 teeth of 5": teeth(100, 0.05, 0.4, 0.95),
    "continuous, 200 teeth of 5": teeth(200, 0.05, 0.4, 0.95),
    "continuous .9 to 1, 20 teeth of 4": teeth(20, 0.04, 0.9, 1),
    "continuous .9 to 1, 100 teeth of 4": teeth(100, 0.04, 0.9, 1),
    "continuous, kink at .9": smooth(uniform(0.4, 1), lambda c: np.where(c > 0.9, c - 0.12, c)),
    "continuous, over by 2.1": smooth(uniform(0.4, 1), lambda c: c - 0.021),
    "half ties at .95, over by 4": smooth(half_tied, lambda c: np.where(c == 0.95, 0.91, c)),
    "ties .9/1.0 crossed by 4": smooth(
        mostly_tied, lambda c: np.where(c == 0.9, 0.94, np.where(c == 1, 0.96, c))
    ),
}
NAMED_LIMIT = {"continuous, 100 teeth of 3": teeth(100, 0.03, 0.4, 0.95)}
CALIBRATED = {
    "calibrated, .95/1.0": stated([0.95, 1.0], [0.95, 1.0]),
    "calibrated, .8/.85/.95/1": stated([0.8, 0.85, 0.95, 1.0], [0.8, 0.85, 0.95, 1.0]),
    "calibrated, nine values": stated(NINE, NINE, NINE_SHARES),
    "calibrated, rare errors": stated(NEAR_ONE, NEAR_ONE),
    "calibrated, one value .9": stated([0.9], [0.9], noise=True),
    "calibrated, 60 values": stated(SIXTY, SIXTY),
    "calibrated, continuous .4 to 1": smooth(uniform(0.4, 1), lambda c: c),
    "calibrated, continuous .9 to 1": smooth(uniform(0.9, 1), lambda c: c),
    "calibrated, beta(8, 1)": smooth(lambda rng, n: rng.beta(8, 1, n), lambda c: c),
    "nine values, over by 0.5": stated(NINE, NINE - 0.005, NINE_SHARES),
}
OFF = {
    "over by 4, nine values": stated(NINE, NINE - 0.04, NINE_SHARES),
    "over by 4, continuous": smooth(uniform(0.4, 1), lambda c: c - 0.04),
    "under by 4, continuous": smooth(uniform(0.4, 0.95), lambda c: c + 0.04),
    "too extreme, logit / 1.5": smooth(
        lambda rng, n: rng.beta(5, 1.5, n), lambda c: 1 / (1 + np.exp(-logit(c) / 1.5))
    ),
    "wavy by 8": smooth(uniform(0.5, 0.9), lambda c: np.where(c < 0.7, c + 0.08, c - 0.08)),
    "rare errors, over by 2": MARGIN_OR_MORE["rare errors, over by 2"],
}


def nearly_sure(rng, n):
    return 1 - 10.0 ** -rng.uniform(0.5, 4, n)


MOSTLY = np.array([0.5, 0.6, 0.7, 0.8, 0.95])
ROUNDED = np.arange(10, 21) / 20
# Worlds that nobody had in mind who wrote the rules.
INVENTED = {
    "chances from log-probabilities, nearly sure, calibrated": smooth(nearly_sure, lambda c: c),
    # The first and the last value are said for half as wide a range, all of it on one side.
    "calibrated until rounded to 5 points": stated(
        ROUNDED, [0.5125, *ROUNDED[1:-1], 0.9875], [0.05, *[0.1] * 9, 0.05]
    ),
    "nine in ten say .95 and are calibrated, the others over by 20": stated(
        MOSTLY, [*(MOSTLY[:-1] - 0.2), 0.95], [*[0.025] * 4, 0.9]
    ),
    "five words, too low below .5 and too high above, by 3": stated(
        [0.1, 0.3, 0.5, 0.7, 0.9], [0.13, 0.33, 0.5, 0.67, 0.87]
    ),
    "guesses: says 25 to 100 %, right at least 35 %": smooth(
        uniform(0.25, 1), lambda c: np.maximum(c, 0.35)
    ),
}


NOISE = {
    "noise, 0/1 confidences": stated([0.0, 1.0], [0.5, 0.5], noise=True),
    "noise, .6/.9, right .75": stated([0.6, 0.9], [0.75, 0.75], noise=True),
    "noise, continuous": smooth(uniform(0.5, 1), lambda c: np.full(c.size, 0.75), noise=True),
    "noise, one 1 in 20": stated([0.0, 1.0], [0.05, 0.05], [0.95, 0.05], noise=True),
    "noise, over by 2, .7 to .97": smooth(
        uniform(0.7, 0.97), lambda c: np.full(c.size, 0.815), noise=True
    ),
}
