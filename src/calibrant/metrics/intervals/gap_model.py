"""Mean residuals per bin, of one model or several stacked: how they vary, their debiased sum."""

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.special import erf

from calibrant.core.arrays import Floats, MaybeArray
from calibrant.core.estimate import Estimate
from calibrant.metrics.binned import BinStats, bin_statistics, bins_of, shrunk_variance
from calibrant.metrics.inputs import Checked, check, check_choice
from calibrant.metrics.stats import intervals
from calibrant.metrics.stats.inversion import Search, rooting, side_by_side
from calibrant.metrics.stats.units import MOST_SHARE, UnitInfluence, Units, freedom

# Level at which the reach of Student's law stands for that of the normal one, and shares that are
# equal but for rounding.
LEVEL = 0.95


ROUNDING = 1e-9


_STATS = BinStats.__struct_fields__


class GapModel(Struct, frozen=True):
    """Mean residuals per bin and how they vary if the true gaps were others.

    `inflation` is the variance of the data's own units over that of single independent rows;
    `root` mixes independent noise into the correlation of bins that share units. Several models
    with equally many bins are one with another axis in front, see `stacked`; their `rows` and
    `inflation` are columns. Of unequal units the inflation is larger by `caution`: few of them
    make up the variance, which is then not well known.
    """

    stats: BinStats
    rows: Any
    inflation: Any
    root: Floats | None
    caution: float = 1.0

    # What is one number per model.
    columns: ClassVar[tuple[str, ...]] = ("rows", "inflation")

    @property
    def likely_inflation(self) -> Any:
        """The inflation as it is estimated, without caution."""
        return self.inflation / self.caution

    @property
    def residual(self) -> Floats:
        """Share of the bin times its gap; their absolute sum is the ECE."""
        return self.stats.mass * self.stats.gap

    def error(self) -> Floats:
        """Return standard errors of the residuals, the largest on the way from 0 to the gaps."""
        none, half, whole = (shrunk_variance(self.stats, part) for part in (0.0, 0.5, 1.0))
        variance = np.maximum(np.maximum(none, half), whole)
        return np.asarray(np.sqrt(self.stats.mass * variance * self.inflation / self.rows))

    @property
    def between(self) -> float:
        """How unequal the gaps are, as a variance; what noise alone would show is taken off."""
        mass, gap = self.stats.mass, self.stats.gap
        noise = shrunk_variance(self.stats, 1.0) * self.inflation / self.rows
        return max(float(mass @ gap**2 - noise.sum() - np.abs(mass * gap).sum() ** 2), 0.0)

    @property
    def shares_variance(self) -> float:
        """Variance that the sum of |residual| has because the shares of the bins are random."""
        return float(self.between * self.inflation / self.rows)

    def noise(self, residual: Floats, draws: Floats) -> Floats:
        """Return how far residuals would be observed from the true ones, were those `residual`.

        `draws` are standard normal numbers, one row per bin and one column per draw.
        """
        mass, spread, centre = self.stats.mass, self.stats.spread, self.stats.confidence
        gap = residual / mass
        variance = np.maximum(spread + gap * (2 * centre - 1) - gap**2, 0.0)
        second = mass * (variance + gap**2)
        scale = np.sqrt(self.inflation / self.rows)
        if self.root is not None:
            sd = scale * np.sqrt(np.maximum(second - residual**2, 0.0))
            return np.asarray(sd[..., None] * draws)
        # Covariance diag(second) - residual residual': a rank-one change of independent noise.
        sd = np.sqrt(second)
        tilt = np.divide(residual, sd, out=np.zeros_like(sd), where=sd > 0)
        size = np.vecdot(tilt, tilt)[..., None]
        pull = (1 - np.sqrt(np.maximum(1 - size, 0.0))) / np.where(size > 0, size, 1.0)
        out = (scale * sd)[..., None] * draws
        out -= (scale * sd * pull * tilt)[..., None] * (tilt[..., None, :] @ draws)
        return np.asarray(out)


def stacked(models: Sequence[GapModel]) -> GapModel:
    """Return models of one kind with equally many bins as one, with an axis in front."""
    stats = (np.stack([getattr(one.stats, name) for one in models]) for name in _STATS)
    columns = (np.array([[getattr(one, name)] for one in models]) for name in models[0].columns)
    return _with_columns(models[0], stats, columns)


def some_of(model: GapModel, numbers: list[int]) -> GapModel:
    """Return some models of a stack."""
    if numbers == list(range(model.stats.mass.shape[0])):
        return model
    stats = (getattr(model.stats, name)[numbers] for name in _STATS)
    return _with_columns(model, stats, (getattr(model, name)[numbers] for name in model.columns))


def _with_columns(model: GapModel, stats: Iterable[Any], columns: Iterable[Any]) -> GapModel:
    changed = dict(zip(model.columns, columns, strict=True))
    return replace(model, stats=BinStats(*stats), **changed)


def gap_model(data: Checked, units: Units, *, bins: int) -> GapModel:
    """Return the bin sums of the data and the variance that its units and weights bring."""
    stats = bin_statistics(data, bins=bins, strategy="width")
    if data.weights is None and units.codes is None:
        return GapModel(stats, data.rows, 1.0, None)
    heavy = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    shares = units.sums(heavy) / heavy.sum()
    covariance = _covariance(data, units, heavy, shares, bins)
    residual = stats.mass * stats.gap
    single = (stats.mass * (shrunk_variance(stats, 1.0) + stats.gap**2) - residual**2) / data.rows
    total, alone = float(np.trace(covariance)), float(single.sum())
    # Where outcomes never vary there is nothing to compare but rounding; units count, not rows.
    varied = min(total, alone) * data.rows > 1e-14
    inflation = total / alone if varied else data.rows / units.count
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(sd > 0, sd, 1.0)
    correlation = covariance / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    caution = _caution(shares, inflation / data.rows)
    return GapModel(stats, data.rows, inflation * caution, root, caution=caution)


def _caution(shares: Floats, relative: float) -> float:
    """Return by what a variance between units is multiplied where they are unequal.

    Student's reach instead of the normal one, as for means: `freedom` says how many units make up
    the variance. Units whose rows are all alike have the largest variance that there can be.

    Parameters
    ----------
    shares
        Share of each unit in the whole.
    relative
        The variance over that of a single row.

    Examples
    --------
    >>> _caution(np.full(10, 0.1), 0.1)
    1.0
    >>> round(_caution(np.array([100, 100] + [1] * 50) / 250, 0.1), 2)
    3.21
    """
    if shares.size < 2 or np.ptp(shares) <= ROUNDING * shares.max():
        return 1.0
    reach = intervals.student_quantile(LEVEL, freedom(shares) + 1)
    wider = reach / intervals.normal_quantile(LEVEL)
    most = float(shares @ shares)
    return max(min(wider**2, most / relative), 1.0)


def _covariance(data: Checked, units: Units, heavy: Floats, shares: Floats, bins: int) -> Floats:
    """Return the covariance of the bin residuals when units are the independent draws.

    A heavy unit draws the mean to itself and hides its own distance from it. Each square is put
    right by the unit's share (HC2, unbiased where units are alike), a heavy one at most tenfold.
    """
    # Loaded here: rows that are units of their own never come this way.
    from scipy import sparse

    bin_of = bins_of(data, bins)
    codes = np.arange(data.rows) if units.codes is None else units.codes
    filled = np.bincount(bin_of, heavy, bins) > 0
    values = heavy * np.subtract(data.confidence, data.correct, dtype=np.float64)
    shape = (units.count, int(filled.sum()))
    # Bins that hold rows are columns, numbered as they come.
    column = np.maximum(np.cumsum(filled) - 1, 0)[bin_of]
    sums = sparse.csr_array((values, (codes, column)), shape=shape)
    total = float(heavy.sum())
    mean = np.asarray(sums.sum(axis=0)).ravel() / total
    scaled = sums.multiply(np.sqrt(1 / (1 - np.minimum(shares, MOST_SHARE)))[:, None]).tocsr()
    put_right = shares * total / (1 - np.minimum(shares, MOST_SHARE))
    cross = np.outer(sums.T @ put_right, mean)
    square_weight = float(put_right @ shares) * total
    spread = (scaled.T @ scaled).toarray() - cross - cross.T + square_weight * np.outer(mean, mean)
    return np.asarray(spread) / total**2


def gap_of_means(
    confidence: tuple[float, UnitInfluence], accuracy: tuple[float, UnitInfluence], level: float
) -> Estimate:
    """Return mean confidence minus accuracy from both means and how far each unit pulls them.

    Student's interval of the difference held the truth in 30 to 80 % of data sets with 10 to 50
    rows of which nearly all are right, or nearly all wrong; this one in 93 to 97 %.
    """
    (said, pulls), (right, turns) = confidence, accuracy
    value, n = said - right, pulls.count
    if n < 2:
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    reach = intervals.wald_interval(said, pulls.error, level, units=pulls.worth)[1] - said
    # As many independent outcomes as would have this error; units where none vary.
    worth = right * (1 - right) / turns.error**2 if turns.error > 0 else turns.worth
    if turns.effective is not None and turns.effective < n:
        worth *= intervals.student_share(level, turns.worth)
    lowest, highest = intervals.wilson_ends(right, max(worth, 1.0), level)
    common = pulls.correlation(turns)
    low = value - intervals.joined_reach(highest - right, reach, common)
    high = value + intervals.joined_reach(right - lowest, reach, common)
    # No two shares differ by more than 1; of two or three rows the sum of the reaches may.
    return Estimate(value, max(low, -1.0), min(high, 1.0), n, level, interval="newcombe")


def ece_debiased(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    estimator: str = "matched",
    weights: MaybeArray = None,
) -> float:
    r"""Return a binned calibration error with its upward bias taken off, in [0, 1]; 0 is best.

    Parameters
    ----------
    confidence, correct, bins, strategy, weights
        As for `ece`.
    norm
        ``l1`` or ``l2``.
    estimator
        For ``l1`` only. ``matched`` (the one that audits report): the observed gaps are shrunk
        by a common factor until the ECE that one would expect to observe,
        :math:`\sum_b p_b E|N(t g_b, s_b^2)|`, equals the ECE observed; the value is
        :math:`t \sum_b p_b |g_b|`, and 0 where even perfect calibration would be expected to
        show more. ``normal``: the observed ECE minus the bias that resampling normal bin means
        would show, :math:`2 \mathrm{ECE} - \sum_b p_b E|N(g_b, s_b^2)|` (in closed form; may
        fall slightly below 0), which removes only part of the bias near perfect calibration.
        For ``l2`` there is one form: each squared gap loses its sampling variance
        :math:`r_b(1-r_b)/(n_b-1)`; bins with one row are left out, a negative sum gives 0.

    References
    ----------
    Kumar, Liang, Ma (2019), 'Verified uncertainty calibration' (``l2`` and ``normal``);
    Broecker (2012), 'Estimating reliability and resolution of probability forecasts'.

    Examples
    --------
    >>> round(ece_debiased([0.9] * 10, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0], bins=10), 3)
    0.052
    """
    check_choice("norm", norm, ("l1", "l2"))
    check_choice("estimator", estimator, ("matched", "normal"))
    stats = bin_statistics(check(confidence, correct, weights), bins=bins, strategy=strategy)
    if norm == "l2":
        many = stats.effective > 1
        variance = stats.rate * (1 - stats.rate) / np.where(many, stats.effective - 1, 1)
        square = float(stats.mass @ np.where(many, stats.gap**2 - variance, 0.0))
        return math.sqrt(max(square, 0.0))
    if estimator == "matched":
        return matched_errors([stats], [1.0])[0]
    error = np.sqrt(stats.rate * (1 - stats.rate) / stats.effective)
    gap = np.abs(stats.gap)
    return float(stats.mass @ (2 * gap - folded_mean(gap, error)))


def matched_errors(stats: Sequence[BinStats], inflations: Sequence[float]) -> list[float]:
    """Return the ``matched`` debiased ECE of the bin sums of models, worked on together.

    `inflations` are the variances of the data's own units over those of independent rows.
    """
    starts = np.cumsum([0, *(one.mass.size for one in stats)])
    mass, mean, rate, spread, effective = (
        np.concatenate([getattr(one, name) for one in stats])
        for name in ("mass", "confidence", "rate", "spread", "effective")
    )
    inflation = np.repeat(inflations, np.diff(starts))
    signed = mean - rate
    gap = np.abs(signed)
    pieces = [slice(*ends) for ends in pairwise(starts.tolist())]

    def excess(numbers: list[int], shrinks: list[float]) -> list[float]:
        some = np.concatenate([np.arange(pieces[k].start, pieces[k].stop) for k in numbers])
        sizes = [pieces[k].stop - pieces[k].start for k in numbers]
        shrink = np.repeat(shrinks, sizes)
        moved = shrink * signed[some]
        variance = spread[some] + moved * (2 * mean[some] - 1) - moved**2
        error = np.sqrt(np.maximum(variance, 0.0) * inflation[some] / effective[some])
        folded = folded_mean(shrink * gap[some], error)
        ends = pairwise([0, *accumulate(sizes)])
        return [
            float(mass[pieces[k]] @ folded[first:last]) - observed[k]
            for k, (first, last) in zip(numbers, ends, strict=True)
        ]

    observed = [float(mass[piece] @ gap[piece]) for piece in pieces]
    return side_by_side([_matching(one) for one in observed], excess)


def _matching(observed: float) -> Search:
    """Look for the share of the gaps that would show the observed error."""
    none = yield 0.0
    all_of_it = yield 1.0
    if none >= 0:
        return 0.0
    if all_of_it <= 0:
        return observed
    shrink = yield from rooting((0.0, none), (1.0, all_of_it))
    return shrink * observed


def folded_mean(centre: Floats, error: Floats) -> Floats:
    """Return E|X| for normal X with the given mean and standard deviation (0 allowed)."""
    scale = np.where(error > 0, error, 1.0)
    ratio = centre / scale
    moved = centre * erf(ratio / math.sqrt(2))
    mean = scale * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + moved
    return np.where(error > 0, mean, np.abs(centre))
