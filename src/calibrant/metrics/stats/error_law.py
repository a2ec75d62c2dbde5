"""The law of a sum of independent errors, computed instead of simulated.

How many of a bin's outcomes are right is a sum of independent yes-or-no draws; its law follows
from its characteristic function by one Fourier transform. The errors of the bins are independent,
so the law of their sum follows by another one, on a lattice whose step is far below the spread
of the sum.

Of some ten answers per model a bin holds one or two, and its error takes two or three values. All
combinations of half of the bins are then soon listed, and a sum over the other half is looked up.
A transform of thousands of points would take ten times as long.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from scipy.special import ndtri

from calibrant.core.arrays import Floats, Indices

# What is left out of a law beyond its last value; rounding in the transforms is larger.
NEGLIGIBLE = 1e-18
# Tilts tried for the bound on a sum, in units of one over its standard deviation.
TILTS = np.geomspace(0.5, 40.0, 12)
# Combinations that are listed: of the half that is summed over, and of the one looked up.
MOST_LISTED = (1_000, 15_000)
# Of so few values the one that a quantile lies at is looked up.
FEW_VALUES = 100


# Places on a lattice, which may repeat, and their probabilities.
Places: TypeAlias = tuple[Indices, Floats]


class Atoms(NamedTuple):
    """A discrete law: values of at least 0 and their probabilities."""

    value: Floats
    probability: Floats


class Lattice(NamedTuple):
    """A law on the multiples of `step`: `probability[i]` belongs to ``i * step``."""

    step: float
    probability: Floats

    def at_least(self, place: int) -> float:
        """Return the probability of `place` and everything above it."""
        return float(self.probability[max(place, 0) :].sum())


def count_law(trials: Floats, chance: Floats) -> tuple[int, Floats]:
    """Return the law of a sum of binomial counts: its first value and the probabilities.

    Values that together have a probability below 1e-18 (Bernstein's bound) are left out, so a
    million trials need some thousand numbers.

    Parameters
    ----------
    trials, chance
        Trials and chance of success of each binomial, shape (k,).

    Examples
    --------
    >>> import numpy as np
    >>> first, law = count_law(np.array([2.0, 1.0]), np.array([0.5, 0.5]))
    >>> first, law.round(3).tolist()
    (0, [0.125, 0.375, 0.375, 0.125])
    """
    mean = float(trials @ chance)
    variance = float(trials @ (chance * (1 - chance)))
    # How far the sum strays with a probability of 1e-18 (Bernstein).
    depth = math.log(2 / NEGLIGIBLE)
    reach = depth / 3 + math.sqrt(depth**2 / 9 + 2 * depth * variance)
    first = max(math.floor(mean - reach), 0)
    last = min(math.ceil(mean + reach), round(float(trials.sum())))
    size = last - first + 1
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    dip = 2 * np.sin(angle / 2) ** 2
    # The characteristic function is at most exp(-variance * dip): the rest stays 0.
    seen = int((variance * dip < -math.log(NEGLIGIBLE)).sum())
    angle, dip = angle[:seen], dip[:seen]
    # Log and angle apart, each count centred at its mean: a power would lose n times more digits.
    n, p = trials[:, None], chance[:, None]
    # A chance of 1/2 leaves nothing at half a turn.
    with np.errstate(divide="ignore"):
        size_log = (n / 2 * np.log1p(-2 * p * (1 - p) * dip)).sum(axis=0)
    turned = n * (np.arctan2(p * np.sin(angle), 1 - p * dip) - p * angle)
    phase = (mean - first) * angle + turned.sum(axis=0)
    spectrum = np.zeros(size // 2 + 1, np.complex128)
    spectrum[:seen] = np.exp(size_log - 1j * phase)
    law = np.fft.irfft(spectrum, size) if size > 1 else np.ones(1)
    return first, np.maximum(law, 0.0)


def half_normal_atoms(spread: float) -> Atoms:
    """Return the law of the absolute value of a normal error, in fine steps up to 9 spreads.

    Examples
    --------
    >>> atoms = half_normal_atoms(2.0)
    >>> round(float(atoms.value @ atoms.probability), 3)
    1.596
    """
    if spread == 0:
        return Atoms(np.zeros(1), np.ones(1))
    value = np.linspace(0.0, 9.0, 4001)
    edges = np.concatenate([[0.0], (value[1:] + value[:-1]) / 2, [np.inf]])
    # Loaded here, for few audits: scipy takes long to load.
    from scipy import special

    # From the upper tail, so that small probabilities keep their digits.
    beyond = special.erfc(edges / math.sqrt(2))
    return Atoms(value * spread, -np.diff(beyond))


def sum_law(parts: Sequence[Atoms], points: int) -> Lattice:
    """Return the law of a sum of independent parts, each rounded to the lattice.

    Parameters
    ----------
    parts
        The laws of the parts.
    points
        Lattice points, a power of two. The step is chosen so that the sum stays below the last
        point but for a probability of 1e-16 (Chernoff's bound).

    Examples
    --------
    >>> import numpy as np
    >>> coin = Atoms(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> law = sum_law([coin, coin], 1024)
    >>> round(law.at_least(round(1.9 / law.step)), 3)
    0.25
    """
    value, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    sizes = np.array([part.value.size for part in parts])
    (step,) = _steps(_Parts(value, probability, sizes, np.array([sizes.size])), points).tolist()
    product = np.ones(points // 2 + 1, np.complex128)
    for value, probability in parts:
        place = np.minimum(np.rint(value / step).astype(np.intp), points - 1)
        product *= np.fft.rfft(np.bincount(place, probability, points))
    return Lattice(step, np.maximum(np.fft.irfft(product, points), 0.0))


class _Parts(NamedTuple):
    """The laws of the parts of several sums, one after the other.

    `sizes` is how many values each part has, `counts` how many parts each sum has.
    """

    value: Floats
    probability: Floats
    sizes: Indices
    counts: Indices

    @property
    def ends(self) -> list[int]:
        """Where the values of one sum end and those of the next begin."""
        return [0, *np.add.reduceat(self.sizes, _starts(self.counts)).cumsum().tolist()]

    def products(self, values: Floats) -> list[float]:
        """Return the mean of some numbers, one for each value, by sum."""
        weight = self.probability
        return [float(values[a:b] @ weight[a:b]) for a, b in pairwise(self.ends)]


def _starts(lengths: Indices) -> Indices:
    return lengths.cumsum() - lengths


def _steps(parts: _Parts, points: int) -> Floats:
    """Return the step of a lattice of so many points that holds each sum.

    The sum stays below the last point but for a probability of 1e-16 (Chernoff's bound), and so
    does what rounding adds to it.
    """
    return np.asarray(_most(parts) / (points - 1 - parts.counts))


def _most(parts: _Parts) -> Floats:
    """Return for each sum a value that it exceeds with a probability of at most 1e-16."""
    value, probability, sizes, counts = parts
    starts = _starts(sizes)
    whole = _sums_of_runs(np.maximum.reduceat(value, starts), counts)
    squares = np.array(parts.products(value**2))
    tilts = TILTS[:, None] / np.sqrt(np.where(squares > 0, squares, 1.0))
    tilt = tilts if counts.size == 1 else np.repeat(tilts, np.diff(parts.ends), axis=1)
    # A probability of 0 has the logarithm -inf and adds nothing.
    with np.errstate(divide="ignore"):
        exponent = tilt * value + np.log(probability)
    largest = np.maximum.reduceat(exponent, starts, axis=1)
    sums = np.add.reduceat(np.exp(exponent - np.repeat(largest, sizes, axis=1)), starts, axis=1)
    logs = _sums_of_runs(largest + np.log(sums), counts)
    bound = np.minimum(whole, ((logs + math.log(1e16)) / tilts).min(axis=0))
    return np.where(squares > 0, bound, np.where(whole > 0, whole, 1.0))


def _sums_of_runs(values: Floats, lengths: Indices) -> Floats:
    """Return the sums over runs along the last axis, each as if it were summed alone."""
    if lengths.size == 1:
        return np.asarray(values.sum(axis=-1, keepdims=True))
    out, starts = np.empty((*values.shape[:-1], lengths.size)), _starts(lengths)
    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths == length)
        places = starts[alike, None] + np.arange(length)
        out[..., alike] = values.take(places, axis=-1).sum(axis=-1)
    return out


class FewLaw(Struct, frozen=True, dict=True):
    """A law on the multiples of `step`, as the sum of two independent lists of values.

    Parameters
    ----------
    step
        Step of the lattice.
    summed, listed
        Places on the lattice and their probabilities, for either half; places may repeat.
    mean
        The mean, from the values before they were rounded to the lattice.
    """

    step: float
    summed: Places
    listed: Places
    mean: float

    @cached_property
    def _beyond(self) -> Places:
        """The listed places in order, and the probability of each with all above it."""
        place, probability = self.listed
        order = place.argsort()
        beyond = np.zeros(place.size + 1)
        np.cumsum(probability[order[::-1]], out=beyond[-2::-1])
        return place[order], beyond

    def at_least(self, place: int) -> float:
        """Return the probability of `place` and everything above it."""
        at, probability = self.summed
        listed, beyond = self._beyond
        return float(probability @ beyond[listed.searchsorted(place - at)])

    def quantile(self, share: float) -> float:
        """Return where the law passes `share`, in steps, linear between lattice points."""
        low, high = -1, int(self.summed[0].max() + self.listed[0].max()) + 1
        beyond, looks = {low: 1.0, high: 0.0}, 0
        guess, slope = self._rough_quantile(share)
        while high - low > 1:
            middle, looks = min(max(int(guess), low + 1), high - 1), looks + 1
            beyond[middle] = self.at_least(middle + 1)
            low, high = (middle, high) if 1 - beyond[middle] <= share else (low, middle)
            if looks == 1:
                # Twice as far as it seems to be, so that the quantile is most likely between.
                guess = middle + 2 * (beyond[middle] - (1 - share)) / slope
            else:
                # Near the quantile the law falls about as fast as it does in the mean.
                fall = (beyond[low] - (1 - share)) / (beyond[low] - beyond[high])
                guess = low + (high - low) * (fall if looks % 2 else 0.5)
        if low < 0:
            return 0.0
        above = beyond.get(high, 0.0)
        return low + (share - (1 - beyond[low])) / (beyond[low] - above)

    def _rough_quantile(self, share: float) -> tuple[float, float]:
        """Return about where the quantile is, and the slope of the law there."""
        (at, of_summed), (listed, of_listed) = self.summed, self.listed
        if at.size * listed.size <= FEW_VALUES:
            # One value after the other: the quantile is the place before one of them.
            place = np.add.outer(at, listed).ravel()
            order = place.argsort()
            reached = np.multiply.outer(of_summed, of_listed).ravel()[order].cumsum()
            passed = min(int(reached.searchsorted(share, side="right")), place.size - 1)
            return float(place[order[passed]] - 1), math.inf
        # A law that is nearly normal, with these moments.
        mean = variance = third = 0.0
        for place, probability in (self.summed, self.listed):
            centre = float(probability @ place)
            away = place - centre
            part = probability * away * away
            mean, variance = mean + centre, variance + float(part.sum())
            third += float(part @ away)
        if variance <= 0:
            return mean, 1.0
        sd, z = math.sqrt(variance), float(ndtri(share))
        bent = z + (z * z - 1) / 6 * third / (variance * sd)
        return mean + sd * bent, math.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * sd)


def few_laws(
    home: Indices, trials: Floats, chance: Floats, bins: Indices, points: int
) -> list[FewLaw | None]:
    """Return the law of the summed errors of bins of each model; None where it has too many values.

    The error of a bin is by how much its right answers differ from what its confidences promise.

    Parameters
    ----------
    home
        Bin of each cell of equal confidences, rising from 0, and on from one model to the next.
    trials, chance
        Answers in each cell, and their chance to be right.
    bins
        How many bins each model has.
    points
        Points of the lattice that errors are rounded to.
    """
    parts = _bin_laws(home, trials, chance, bins)
    steps, ends = _steps(parts, points), parts.ends
    place = np.rint(parts.value / np.repeat(steps, np.diff(ends))).astype(np.intp)
    means, first = parts.products(parts.value), [0, *bins.cumsum().tolist()]
    sizes = parts.sizes.tolist()
    laws: list[FewLaw | None] = []
    for number, (start, stop) in enumerate(pairwise(ends)):
        piece = slice(start, stop)
        mine = sizes[first[number] : first[number + 1]]
        halves = _halves(place[piece], parts.probability[piece], mine)
        if halves is None:
            laws.append(None)
            continue
        # What the lattice leaves out has a probability of 1e-16; it is counted at its end.
        summed, listed = ((np.minimum(at, points - 1), chances) for at, chances in halves)
        laws.append(FewLaw(float(steps[number]), summed, listed, means[number]))
    return laws


def _bin_laws(home: Indices, trials: Floats, chance: Floats, bins: Indices) -> _Parts:
    """Return the law of the error of each bin: its right answers, less their mean."""
    times = np.rint(trials).astype(np.intp)
    count = np.bincount(home, times).astype(np.intp)
    most = int(count.max())
    # Bins with more answers first: one answer after the other, fewer and fewer bins have it.
    order = np.argsort(-count, kind="stable")
    right, first = np.repeat(chance, times), _starts(count)[order]
    laws = np.zeros((count.size, most + 1))
    laws[:, 0] = 1.0
    for number in range(most):
        bins_left = int(np.count_nonzero(count > number))
        one = right[first[:bins_left] + number][:, None]
        law = laws[:bins_left, : number + 2]
        # It is right, or it is not.
        hit = one * law[:, :-1]
        law *= 1.0 - one
        law[:, 1:] += hit
    by_bin = np.empty_like(laws)
    by_bin[order] = laws
    mean = np.bincount(home, trials * chance)
    value = np.abs(mean[:, None] - np.arange(most + 1))
    some = np.arange(most + 1) <= count[:, None]
    return _Parts(value[some], by_bin[some], count + 1, bins)


def _halves(place: Indices, probability: Floats, sizes: Sequence[int]) -> list[Places] | None:
    """Return all combinations of the parts in two halves, or None where there are too many."""
    counts = [1, 1]
    chosen: list[list[int]] = [[], []]
    for part in sorted(range(len(sizes)), key=lambda part: -sizes[part]):
        # The next part goes to the half with fewer combinations so far, if it has room.
        order = (0, 1) if counts[0] <= counts[1] else (1, 0)
        half = next((h for h in order if counts[h] * sizes[part] <= MOST_LISTED[h]), None)
        if half is None:
            return None
        counts[half] *= sizes[part]
        chosen[half].append(part)
    ends = [0, *accumulate(sizes)]
    out = []
    for parts in chosen:
        at, chances = np.zeros(1, np.intp), np.ones(1)
        for part in parts:
            piece = slice(ends[part], ends[part + 1])
            at = np.add.outer(at, place[piece]).ravel()
            chances = np.multiply.outer(chances, probability[piece]).ravel()
        out.append((at, chances))
    return out
