"""The calibration error with unlimited draws: a model-based estimate, with its refusals.

Sem1 and Sem2 measure the number of draws at hand. This looks through the draws: a mixture over
how much mass the right class has and how the rest is split says where the leading answer of each
question would settle. It is a model: it can miss where correctness depends sharply on which
answer leads.
"""

from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from scipy.special import gammaln

from calibrant.core.arrays import Estimate, Floats, Ints, RngLike, as_generator
from calibrant.metrics.semantic.pool import DrawPool
from calibrant.metrics.semantic.theory import regimes
from calibrant.metrics.stats.binning import width_edges
from calibrant.metrics.stats.splits import sample_splits

_FINITE = (
    (1, 1.0), (2, 1.0), (2, 5.0), (4, 0.4), (4, 3.0),
    (10, 0.3), (10, 2.0), (20, 1.0), (20, 5.0),
)  # fmt: skip


SPLITTERS: Floats = np.array(
    [(0.2, 0.0), (1.0, 0.0), (4.0, 0.0), (15.0, 0.0), (0.5, 0.5), (4.0, 0.5)]
    + [(classes * alpha, -alpha) for classes, alpha in _FINITE]
)


# Largest classes that are drawn one by one, and pieces that the unseen mass is broken into.
_HEAD, _STICKS = 8, 10


_ZERO, _TINY = 1e-9, 1e-12


def log_partition(counts: Ints) -> Floats:
    """Return the log chance of each row's partition under each splitter, (rows, splitters).

    Examples
    --------
    One class for all the mass makes two classes impossible:

    >>> bool(log_partition(np.array([[2, 1]]))[0, 6] < -1e5)
    True
    """
    size, classes = counts.sum(axis=1), (counts > 0).sum(axis=1)
    table = np.empty((len(counts), len(SPLITTERS)))
    for column, (theta, discount) in enumerate(SPLITTERS):
        growth = theta + np.arange(1, max(int(classes.max(initial=0)), 1)) * discount
        logs = np.where(growth > _ZERO, np.log(np.maximum(growth, 1e-300)), -1e6)
        source = np.concatenate([[0.0, 0.0], np.cumsum(logs)])[classes]
        inside = gammaln(np.maximum(counts - discount, _ZERO)) - gammaln(1 - discount)
        rising = gammaln(theta + np.maximum(size, 1)) - gammaln(theta + 1)
        chance = source - rising + np.where(counts > 0, inside, 0.0).sum(axis=1)
        table[:, column] = np.where(size > 0, chance, 0.0)
    return table


def largest_share(counts: Ints, splitter: Ints, rng: np.random.Generator) -> Floats:
    """Draw the share of the largest class given the counts, (rows, draws).

    Parameters
    ----------
    counts
        (rows, classes) draws per class.
    splitter
        (rows, draws) place of the splitter in `SPLITTERS`.
    rng
        Generator.
    """
    ranking = -np.sort(-counts, axis=1)
    head, remainder = ranking[:, :_HEAD], ranking[:, _HEAD:]
    classes = (counts > 0).sum(axis=1)[:, None]
    theta, discount = SPLITTERS[splitter, 0], SPLITTERS[splitter, 1]
    observed = _gamma(np.where(head[:, None] > 0, head[:, None] - discount[..., None], 0.0), rng)
    small = remainder.sum(axis=1)[:, None] - (remainder > 0).sum(axis=1)[:, None] * discount
    small = _gamma(np.where(remainder.sum(axis=1)[:, None] > 0, np.maximum(small, _TINY), 0.0), rng)
    room = np.maximum(theta + discount * classes, 0.0)
    unseen = np.where(classes == 0, 1.0, _gamma(np.where(room > _ZERO, room, 0.0), rng))
    total = observed.sum(axis=2) + small + unseen
    largest: Floats = observed.max(axis=2) / total
    # A class that no draw has seen can lead only where the unseen mass exceeds the largest.
    remaining = unseen / total
    open_cells = np.nonzero(remaining > largest)
    broken = _largest_stick(remaining[open_cells], room[open_cells], discount[open_cells], rng)
    largest[open_cells] = np.maximum(largest[open_cells], broken)
    return largest


def _gamma(shape: Any, rng: np.random.Generator) -> Floats:
    draws = rng.standard_gamma(np.maximum(shape, _TINY))
    return np.where(shape > 0, draws, 0.0)


def _largest_stick(
    left: Floats, room: Floats, discount: Floats, rng: np.random.Generator
) -> Floats:
    """Break the unseen mass into pieces and return the largest."""
    largest = np.zeros(left.size)
    for number in range(1, _STICKS + 1):
        remaining = np.maximum(room + number * discount, 0.0)
        broken = rng.beta(np.maximum(1 - discount, _ZERO), np.maximum(remaining, _ZERO))
        piece = np.where(remaining > _ZERO, broken, 1.0)
        largest = np.maximum(largest, left * piece)
        left = left * (1 - piece)
    return largest


CAUTION = "model-based; can miss where correctness depends sharply on which answer leads"


LEAST_DRAWS, LEAST_QUESTIONS, MOST_TIED = 20, 200, 0.5


# Mass of the right class: none, all, and twenty values between.
_RIGHT = np.concatenate([[0.0], (np.arange(20) + 0.5) / 20, [1.0]])


# Stopping the mixture's fit here is what keeps it smooth; more steps fit noise.
# With several right answers the estimate misses where races are close (simulated worlds of 2, 3).
MOST_SEVERAL, MOST_CLOSE = 0.05, 0.5


# Where they are not close the model still leaves out more: which of the right answers leads.
# It then errs upwards more often than downwards.
_LOWER_SEVERAL, _UPPER_SEVERAL = 2.5, 2.0


_STEPS = 20


_STEPS_SEVERAL = 200


_ROWS = 400


class UnlimitedDraws(Struct, frozen=True):
    """The estimate, or why there is none.

    Parameters
    ----------
    ece
        Calibration error of the answer that leads with unlimited draws; None where refused.
    over_confidence
        Its mean confidence minus accuracy, the same.
    refused
        Why there is no estimate.
    caution
        What it can miss.
    """

    ece: Estimate | None
    over_confidence: Estimate | None
    refused: str | None
    caution: str = CAUTION


class _Kinds(NamedTuple):
    """Distinct questions: right and wrong counts, share of draws that hold an answer."""

    right: Ints
    wrong: Ints
    answered: Floats
    times: Floats


def unlimited_draws_ece(
    pool: DrawPool, *, bins: int = 10, level: float = 0.95, resamples: int = 100, rng: RngLike = 0
) -> UnlimitedDraws:
    """Return the calibration error that unlimited draws would show, with its interval.

    Parameters
    ----------
    pool
        The draws: at least 20 per question and 200 questions, with tied leaders in at most half
        of the half-splits; few close races where several answers are right. Otherwise the result
        says why it is refused.
    bins
        Equal-width bins.
    level
        Nominal coverage; the interval is widened by 0.03 sqrt(20 / n) for what the model leaves
        out; where several answers are right in more than 5 % of the questions, by 2.5 times that
        below and twice that above.
    resamples
        Bootstrap resamples over questions, the mixture fitted anew in each.
    rng
        Seed or generator.

    Examples
    --------
    >>> from calibrant.metrics.semantic import pool_draws
    >>> few = pool_draws(["a"] * 4, [0, 0, 1, 1], [1, 1, 0, 0])
    >>> unlimited_draws_ece(few).refused
    'it needs at least 20 draws per question; there are 4'
    """
    generator = as_generator(rng)
    reason = _refusal(pool, generator)
    if reason is not None:
        return UnlimitedDraws(None, None, reason)
    kinds = _kinds(pool)
    questions = pool.ids.size
    weights = np.vstack(
        [kinds.times, generator.multinomial(questions, kinds.times / questions, size=resamples)]
    )
    sums = _bin_sums(kinds, weights, bins, generator)
    under = over = 0.03 * float(np.sqrt(20 / np.median(pool.size)))
    if _several_right(pool) > MOST_SEVERAL:
        under, over = under * _LOWER_SEVERAL, over * _UPPER_SEVERAL
    value, low, high = _inverted(sums[0], sums[1:], level)
    shift = -sums.sum(axis=1)
    below, above = np.quantile(shift[1:], [(1 - level) / 2, (1 + level) / 2])
    ece = _estimate(value, max(low - under, 0.0), high + over, questions, level)
    gap = _estimate(shift[0], below - under, above + under, questions, level)
    return UnlimitedDraws(ece, gap, None)


def _estimate(value: float, low: float, high: float, n: int, level: float) -> Estimate:
    ends = float(low), float(min(high, 1.0))
    return Estimate(float(value), *ends, int(n), level, interval="model-based")


def _refusal(pool: DrawPool, rng: np.random.Generator) -> str | None:
    draws, questions = int(np.median(pool.size)), pool.ids.size
    if draws < LEAST_DRAWS:
        return f"it needs at least {LEAST_DRAWS} draws per question; there are {draws}"
    if questions < LEAST_QUESTIONS:
        return f"it needs at least {LEAST_QUESTIONS} questions; there are {questions}"
    if ((pool.answers > 0) & (pool.labels > 0) & (pool.labels < 1)).any():
        return "it needs grades of 0 or 1; some classes have a grade between"
    half = np.maximum(pool.size // 2, 1)
    law = sample_splits(pool.counts, half, splits=20, rng=rng, selectable=pool.attempted)
    tied = float(law.tied.mean())
    if tied > MOST_TIED:
        return f"several answers lead together in {tied:.0%} of half-splits, more than half"
    several = _several_right(pool)
    first, second = pool.top_two()
    regime = regimes(first - second, first + second, pool.classes, pool.size)
    close = float((regime == "jensen").mean())
    if several > MOST_SEVERAL and close > MOST_CLOSE:
        return (
            f"several meanings are right in {several:.0%} of the questions, and in "
            f"{close:.0%} the two leading ones are too close to tell which leads"
        )
    return None


def _several_right(pool: DrawPool) -> float:
    """Return the share of questions with more than one right answer among the draws."""
    return float((((pool.answers > 0) & (pool.labels == 1)).sum(axis=1) > 1).mean())


def _kinds(pool: DrawPool) -> _Kinds:
    answers = pool.answers
    right = np.where(np.nan_to_num(pool.labels) == 1, answers, 0)
    silent = pool.size - answers.sum(axis=1)
    key = np.column_stack([silent, -np.sort(-right, axis=1), -np.sort(right - answers, axis=1)])
    _, first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)
    times = np.bincount(inverse.reshape(-1)).astype(np.float64)
    share = answers.sum(axis=1) / pool.size
    return _Kinds(right[first], (answers - right)[first], share[first], times)


def _bin_sums(kinds: _Kinds, weights: Floats, bins: int, rng: np.random.Generator) -> Floats:
    """Return sums of E[(a* - c*) 1{c* in bin}] per question, (1 + resamples, bins)."""
    likelihood = _likelihood(kinds)
    share = weights / weights.sum(axis=1, keepdims=True)
    mixture = _fitted(likelihood, share, _STEPS)
    lean = share / (mixture @ likelihood.T)
    lead = _right_leaders(kinds, rng)
    sums = np.zeros((len(weights), bins))
    for start in range(0, len(likelihood), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(likelihood)))
        residual = _residuals(kinds, rows, lead[rows], bins, rng)
        for place in range(bins):
            weighted = likelihood[rows] * residual[:, :, place]
            sums[:, place] += ((lean[:, rows] @ weighted) * mixture).sum(axis=1)
    return sums


def _likelihood(kinds: _Kinds) -> Floats:
    """Return the likelihood of each kind under each atom (mass of the right class, splitter)."""
    right, wrong = kinds.right.sum(axis=1)[:, None], kinds.wrong.sum(axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        mass = np.where(right > 0, right * np.log(_RIGHT), 0.0)
        mass = mass + np.where(wrong > 0, wrong * np.log1p(-_RIGHT), 0.0)
    split = log_partition(kinds.wrong)
    first, second = (np.exp(part - part.max(axis=1, keepdims=True)) for part in (mass, split))
    table: Floats = first[:, :, None] * second[:, None, :]
    return table.reshape(len(first), -1)


def _fitted(likelihood: Floats, share: Floats, steps: int) -> Floats:
    """Return EM weights of the atoms for each row of shares, from equal weights."""
    table = likelihood.astype(np.float32)
    target = share.astype(np.float32)
    mixture = np.full((len(share), table.shape[1]), 1 / table.shape[1], dtype=np.float32)
    for _ in range(steps):
        fit = np.maximum(mixture @ table.T, 1e-30)
        mixture = mixture * ((target / fit) @ table)
    return np.asarray(mixture.astype(np.float64))


_DRAWN = 10


def _right_leaders(kinds: _Kinds, rng: np.random.Generator) -> Floats:
    """Return draws of the leading right class's share of the right mass, (kinds, drawn).

    It is 1 where no question has several right classes; otherwise a second mixture splits the
    right mass.
    """
    several = (kinds.right > 0).sum(axis=1) > 1
    if not several.any():
        return np.ones((len(kinds.times), _DRAWN))
    logs = log_partition(kinds.right)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    subset = kinds.right.sum(axis=1) > 0
    share = kinds.times[subset][None, :] / kinds.times[subset].sum()
    mixture = _fitted(likelihood[subset], share, _STEPS_SEVERAL)[0]
    posterior = likelihood * mixture
    upper = np.cumsum(posterior / posterior.sum(axis=1, keepdims=True), axis=1)
    draws = rng.random((len(upper), _DRAWN, 1))
    splitter = (draws > upper[:, None, :]).sum(axis=2).clip(max=len(SPLITTERS) - 1)
    return largest_share(kinds.right, splitter, rng)


def _residuals(
    kinds: _Kinds, rows: Ints, lead: Floats, bins: int, rng: np.random.Generator
) -> Floats:
    """Return E[(a* - c*) 1{c* in bin}] for each kind and atom, (kinds, atoms, bins)."""
    number = len(SPLITTERS)
    splitter = np.tile(np.arange(number).repeat(_DRAWN), (rows.size, 1))
    share = largest_share(kinds.wrong[rows], splitter, rng).reshape(-1, 1, number, _DRAWN)
    mass = _RIGHT[None, :, None, None]
    wrong, right = (1 - mass) * share, mass * lead[:, None, None, :]
    leads = right >= wrong
    confidence = kinds.answered[rows, None, None, None] * np.maximum(right, wrong)
    place = np.searchsorted(width_edges(bins)[1:-1], confidence + 1e-9, side="right")
    atoms = rows.size * _RIGHT.size * number
    cell = np.arange(atoms).repeat(_DRAWN) * bins + place.ravel()
    weight = ((leads - confidence) / _DRAWN).ravel()
    sums = np.bincount(cell, weights=weight, minlength=atoms * bins).astype(np.float64)
    return sums.reshape(rows.size, -1, bins)


def _inverted(sums: Floats, resampled: Floats, level: float) -> tuple[float, float, float]:
    """Return median-unbiased estimate and interval of sum |m| from inverting a test along m."""
    observed = float(np.abs(sums).sum())
    noise = resampled - resampled.mean(axis=0)
    scale = np.linspace(0, 2, 81)
    draws = np.abs(scale[:, None, None] * sums + noise).sum(axis=2)
    low, middle, high = np.quantile(draws, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=1)
    inside = np.flatnonzero(low <= observed)
    upper = max(float(scale[inside[-1]]) if inside.size else 0.0, float(scale[1]))
    lower = float(scale[np.argmax(high >= observed)])
    value = float(scale[np.argmax(middle >= observed)])
    return value * observed, lower * observed, upper * observed
