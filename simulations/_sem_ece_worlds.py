"""Worlds of sampled answers with known probabilities and known right classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.metrics.binned import ece
from calibrant.metrics.semantic import DrawPool

World = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def pick(chances, rng):
    """Draw one class of each question."""
    upper = np.cumsum(chances, axis=1)
    drawn = rng.random((len(chances), 1)) * upper[:, -1:]
    return np.minimum((drawn > upper).sum(axis=1), chances.shape[1] - 1)


def dirichlet(classes, alpha, questions, rng):
    return rng.dirichlet(np.full(classes, alpha), questions)


def one_law(classes, alpha, *, sharper=1.0, answered=1.0) -> World:
    """Truth is a draw from the model's law to a power; sometimes no class is right."""

    def world(questions, rng):
        shares = dirichlet(classes, alpha, questions, rng)
        truth = pick(shares**sharper, rng)
        return shares, np.where(rng.random(questions) < answered, truth, -1)

    return world


def two_classes(calibrated) -> World:
    def world(questions, rng):
        margin = rng.uniform(0, 0.3, questions)
        shares = np.column_stack([(1 + margin) / 2, (1 - margin) / 2])
        if calibrated:
            return shares, pick(shares, rng)
        drawn = rng.random(questions)
        return shares, np.where(drawn < 0.35, 0, np.where(drawn < 0.55, 1, -1))

    return world


def easy_and_hard(questions, rng):
    easy = rng.random(questions) < 0.6
    top = rng.beta(20, 1, questions)
    rest = (1 - top)[:, None] * dirichlet(19, 0.3, questions, rng)
    shares = np.where(
        easy[:, None], np.column_stack([top, rest]), dirichlet(20, 1.0, questions, rng)
    )
    truth = pick(shares, rng)
    return shares, np.where(~easy & (rng.random(questions) < 0.5), -1, truth)


def zipf(questions, rng):
    steep = rng.uniform(0.6, 2.5, questions)
    shares = np.arange(1, 61)[None, :] ** -steep[:, None]
    shares /= shares.sum(axis=1, keepdims=True)
    return shares, np.where(rng.random(questions) < 0.8, pick(shares, rng), -1)


def changing_sign(questions, rng):
    """Over-confident above 60 %, under-confident below."""
    shares = dirichlet(6, 0.3, questions, rng)
    top, mode = shares.max(axis=1), shares.argmax(axis=1)
    chance = np.where(top > 0.6, 0.7 * top, np.minimum(1, 1.4 * top))
    others = shares.copy()
    others[np.arange(questions), mode] = 0
    wrong = np.where(rng.random(questions) < 0.5, pick(others + 1e-12, rng), -1)
    return shares, np.where(rng.random(questions) < chance, mode, wrong)


def calibrated_mode(classes, alpha, *, runner_up=False) -> World:
    """The mode is right as often as it is drawn; otherwise nothing is, or the runner-up."""

    def world(questions, rng):
        shares = dirichlet(classes, alpha, questions, rng)
        order = np.argsort(-shares, axis=1)
        other = order[:, 1] if runner_up else -1
        return shares, np.where(rng.random(questions) < shares.max(axis=1), order[:, 0], other)

    return world


def log_normal(questions, rng):
    weights = np.exp(rng.normal(0, 2, (questions, 12)))
    shares = weights / weights.sum(axis=1, keepdims=True)
    mode = shares.argmax(axis=1)
    other = np.where(rng.random(questions) < 0.5, rng.integers(0, 12, questions), -1)
    return shares, np.where(rng.random(questions) < shares.max(axis=1) ** 1.5, mode, other)


def two_kinds(questions, rng):
    """Half of the questions have two classes, half have forty."""
    half = rng.random(questions) < 0.5
    top = rng.beta(3, 3, questions)
    few = np.zeros((questions, 40))
    few[:, 0], few[:, 1] = top, 1 - top
    shares = np.where(half[:, None], few, dirichlet(40, 0.5, questions, rng))
    return shares, np.where(rng.random(questions) < 0.75, pick(shares, rng), -1)


WORLDS: dict[str, World] = {
    "calibrated, 5 classes": one_law(5, 0.5),
    "calibrated, 20 classes": one_law(20, 1.0),
    "over-confident, 5 classes": one_law(5, 0.5, answered=0.6),
    "under-confident, 30 classes": one_law(30, 0.15, sharper=2.0),
    "two classes, close": two_classes(calibrated=False),
    "easy and hard": easy_and_hard,
    "Zipf, 60 classes": zipf,
    "changing sign": changing_sign,
    "calibrated mode, 5 classes": calibrated_mode(5, 0.5),
    "flatter truth, 8 classes": one_law(8, 0.8, sharper=0.6),
    "log-normal, 12 classes": log_normal,
    "sharper truth, 4 classes": one_law(4, 2.0, sharper=3.0),
    "two kinds of question": two_kinds,
}
FIRST_NINE = tuple(WORLDS)[:9]
NULL_WORLDS: dict[str, World] = {
    "calibrated, 5 classes": WORLDS["calibrated, 5 classes"],
    "calibrated, 20 classes": WORLDS["calibrated, 20 classes"],
    "calibrated, two close classes": two_classes(calibrated=True),
}
BEYOND_NULL: dict[str, World] = {
    "calibrated mode, else nothing": WORLDS["calibrated mode, 5 classes"],
    "calibrated mode, else runner-up": calibrated_mode(5, 0.5, runner_up=True),
}


def pool_of(shares, truth, n, rng) -> DrawPool:
    """Draw n answers per question."""
    counts = rng.multinomial(n, shares)
    labels = np.where(counts > 0, np.arange(shares.shape[1]) == truth[:, None], np.nan)
    return DrawPool(np.arange(len(counts)), counts, labels, np.ones(counts.shape, bool), {})


def limit(world: World, questions=200_000) -> float:
    """Return the calibration error with unlimited draws."""
    shares, truth = world(questions, np.random.default_rng(99))
    right = (truth == shares.argmax(axis=1)).astype(float)
    return ece(shares.max(axis=1), right, bins=10)
