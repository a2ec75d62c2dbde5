"""Mean residuals per bin: how they vary, their debiased sum."""

import math

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core.arrays import Estimate, Floats, MaybeArray
from calibrant.metrics.binned import BinStats, bin_statistics, bins_of, shrunk_variance
from calibrant.metrics.inputs import Checked, check, check_choice
from calibrant.metrics.stats import intervals
from calibrant.metrics.stats.bootstrap import root_between
from calibrant.metrics.stats.error_bounds import mean_size
from calibrant.metrics.stats.units import MOST_SHARE, UnitInfluence, Units, freedom

# Level at which the reach of Student's law stands for that of the normal one, and shares that are
# equal but for rounding.
LEVEL = 0.95


ROUNDING = 1e-9


class GapModel(Struct, frozen=True):
    """Mean residuals per bin and how they vary if the true gaps were others.

    `inflation` is the variance of the data's own units over that of single independent rows;
    `root` mixes independent noise into the correlation of bins that share units. Of unequal units
    the inflation is larger by `caution`: few of them make up the variance, which is then not well
    known.
    """

    stats: BinStats
    rows: int
    inflation: float
    root: Floats | None
    caution: float = 1.0

    @property
    def likely_inflation(self) -> float:
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
    (confidences, pulls), (right, turns) = confidence, accuracy
    value, n = confidences - right, pulls.count
    if n < 2:
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    reach = (
        intervals.wald_interval(confidences, pulls.error, level, units=pulls.worth)[1] - confidences
    )
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
        several = stats.effective > 1
        variance = stats.rate * (1 - stats.rate) / np.where(several, stats.effective - 1, 1)
        square = float(stats.mass @ np.where(several, stats.gap**2 - variance, 0.0))
        return math.sqrt(max(square, 0.0))
    if estimator == "matched":
        return matched_error(stats, 1.0)
    error = np.sqrt(stats.rate * (1 - stats.rate) / stats.effective)
    gap = np.abs(stats.gap)
    return float(stats.mass @ (2 * gap - folded_mean(gap, error)))


def matched_error(stats: BinStats, inflation: float) -> float:
    """Return the ``matched`` debiased ECE of bin sums.

    `inflation` is the variance of the data's own units over that of independent rows.
    """
    gap = np.abs(stats.gap)
    observed = float(stats.mass @ gap)

    def excess(shrink: float) -> float:
        error = np.sqrt(shrunk_variance(stats, shrink) * inflation / stats.effective)
        return float(stats.mass @ folded_mean(shrink * gap, error)) - observed

    none, whole = excess(0.0), excess(1.0)
    if none >= 0:
        return 0.0
    if whole <= 0:
        return observed
    return root_between(excess, (0.0, none), (1.0, whole)) * observed


def folded_mean(centre: Floats, error: Floats) -> Floats:
    """Return E|X| for normal X with the given mean and standard deviation (0 allowed)."""
    scale = np.where(error > 0, error, 1.0)
    return np.where(error > 0, scale * mean_size(centre / scale), np.abs(centre))
