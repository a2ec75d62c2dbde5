"""Metrics: bootstrap replicates beside peers, a whole block, memory, and whether fast is right."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import stats

from benchmarks.harness import Page, interleaved_seconds, median_seconds, peak_bytes, peer, seconds
from calibrant import metrics

RESAMPLES = 1_000
# A slow peer's bootstrap is measured on so many resamples and counted for all.
PEER_RESAMPLES = 3


def data(n, *, power=1.3, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence, (rng.random(n) < confidence**power).astype(np.float64)


def naive_ece(confidence, correct, bins=15):
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(index, minlength=bins)
    total = np.maximum(count, 1)
    gap = np.bincount(index, confidence, bins) / total - np.bincount(index, correct, bins) / total
    return np.abs(gap) @ count / confidence.size


def sklearn_ece(confidence, correct, bins=15):
    from sklearn.calibration import calibration_curve

    rate, mean = calibration_curve(correct, confidence, n_bins=bins)
    count = np.histogram(confidence, bins=bins, range=(0, 1))[0]
    return np.abs(rate - mean) @ count[count > 0] / confidence.size


def ece_peers():
    """Return the peers that are installed: name -> function of confidence and correct."""
    found = {"naive numpy": naive_ece, "scikit-learn": sklearn_ece}
    relplot = peer("relplot.metrics")
    if relplot:
        found["relplot"] = lambda c, y: relplot.binnedECE(c, y, nbins=15)
    reference = peer("calibration.utils")
    if reference:
        found["uncertainty-calibration"] = lambda c, y: reference.get_ece(
            c, y.astype(int), num_bins=15, mode="marginal"
        )
    netcal = peer("netcal.metrics")
    if netcal:
        found["netcal"] = lambda c, y: netcal.ECE(15).measure(c, y.astype(int))
    torchmetrics, torch = peer("torchmetrics.functional.classification"), peer("torch")
    if torchmetrics and torch:
        found["torchmetrics"] = lambda c, y: torchmetrics.binary_calibration_error(
            torch.from_numpy(c), torch.from_numpy(y.astype(int)), n_bins=15
        )
    return found


def resampled(function, confidence, correct, resamples, rng):
    n = confidence.size
    return np.array(
        [
            function(confidence[rows], correct[rows])
            for rows in (rng.integers(0, n, n) for _ in range(resamples))
        ]
    )


def compare(page, heading, ours, theirs, sizes, *, resamples):
    """Add a table: one row per size and peer, with the ratio peer / calibrant.

    A peer is run on a few resamples and its time counted for all of them.
    """
    rows = []
    for n in sizes:
        c, y = data(n)
        few = PEER_RESAMPLES if n > 20_000 else 10 * PEER_RESAMPLES
        rng = np.random.default_rng(0)
        works = {"calibrant": lambda c=c, y=y: ours(c, y)}
        for name, function in theirs.items():
            works[name] = lambda f=function, c=c, y=y, k=few, r=rng: resampled(f, c, y, k, r)
        times = interleaved_seconds(works, budget=30.0)
        mine = times.pop("calibrant")
        rows.append((f"{n:,}", "calibrant", seconds(mine), 1.0))
        for name, cost in times.items():
            cost *= resamples / few
            rows.append((f"{n:,}", name, seconds(cost), cost / mine))
    page.table(heading, ("rows", "what", "CPU time", "cost relative to calibrant"), rows)


def bench_bootstrap(page):
    """Bootstrap replicates; what peers take for values and intervals is on the page of peers."""
    from sklearn.metrics import roc_auc_score

    peers = {"ece": ("naive numpy", naive_ece)}
    peers["auroc"] = ("scikit-learn", lambda c, y: roc_auc_score(y, c))
    relplot = peer("relplot.metrics")
    if relplot:
        peers["smooth_ece"] = ("relplot", relplot.smECE)
    for name, (told, theirs) in peers.items():
        compare(
            page,
            f"1,000 bootstrap replicates of {name}",
            lambda c, y, n=name: metrics.bootstrap_distribution(n, c, y, resamples=RESAMPLES),
            {told: theirs},
            (10_000, 1_000_000),
            resamples=RESAMPLES,
        )


def bench_block(page):
    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        c, y = data(n)
        cost = median_seconds(lambda c=c, y=y: metrics.metric_estimates(c, y))
        rows.append((f"{n:,}", seconds(cost)))
    page.table("All sixteen metrics of an audit with intervals", ("rows", "time"), rows)


def bench_memory(page):
    n = 1_000_000
    c, y = data(n)
    size = c.nbytes + y.nbytes
    names = ("ece", "smooth_ece", "brier", "log_loss", "auroc", "aurc", "mcb", "spiegelhalter_z")
    rows = []
    for name in names:
        function = getattr(metrics, name)
        rows.append((name, peak_bytes(lambda f=function: f(c, y)) / size))
    for name in ("ece", "smooth_ece", "brier"):
        held = peak_bytes(lambda n=name: metrics.metric_estimates(c, y, names=(n,)))
        rows.append((f"{name} with interval", held / size))
    page.table("Peak extra memory relative to the input, 1,000,000 rows", ("metric", "ratio"), rows)


def bench_distribution(page):
    """Is the fast bootstrap distribution the naive one? Two-sample Kolmogorov-Smirnov tests."""
    rows = []
    for name, n in (("ece", 10_000), ("auroc", 10_000), ("brier", 10_000), ("smooth_ece", 2_000)):
        for power in (1.0, 1.3):
            c, y = data(n, power=power, seed=7)
            draws = 2_000 if name != "smooth_ece" else 1_000
            fast = metrics.bootstrap_distribution(name, c, y, resamples=draws, rng=1)
            slow = metrics.bootstrap_distribution(name, c, y, resamples=draws, rng=2, fast=False)
            test = stats.ks_2samp(fast, slow)
            rows.append((name, f"{n:,}", power, f"{draws:,}", test.statistic, test.pvalue))
    page.table(
        "Fast against naive bootstrap: two-sample Kolmogorov-Smirnov tests",
        ("metric", "rows", "power of the true rate", "replicates each", "distance", "p-value"),
        rows,
    )


def main() -> None:
    warnings.simplefilter("ignore")
    page = Page(
        "metrics",
        "Metrics: bootstraps, a whole block, memory",
        ["numpy", "scipy", "scikit-learn", "relplot"],
    )
    bench_bootstrap(page)
    bench_block(page)
    bench_memory(page)
    bench_distribution(page)
    page.write()
