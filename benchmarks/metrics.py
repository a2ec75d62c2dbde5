"""Metrics beside their peers: calibrant's cost, theirs, and the ratio, in one run."""

from __future__ import annotations

import os
import warnings

import numpy as np
from scipy import stats

from benchmarks.harness import Page, interleaved_seconds, median_seconds, peak_bytes, peer, seconds
from calibrant import metrics

QUICK = bool(os.environ.get("CALIBRANT_QUICK"))
SIZES = (10_000, 1_000_000) if QUICK else (10_000, 1_000_000, 10_000_000)
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


def compare(page, heading, ours, theirs, sizes, *, note="", resamples=0, **made):
    """Add a table: one row per size and peer, with the ratio peer / calibrant.

    With `resamples`, a peer is run on a few resamples and its time counted for all of them.
    """
    rows = []
    for n in sizes:
        c, y = data(n, **made)
        few = PEER_RESAMPLES if n > 20_000 else 10 * PEER_RESAMPLES
        rng = np.random.default_rng(0)
        works = {"calibrant": lambda c=c, y=y: ours(c, y)}
        for name, function in theirs.items():
            if name in ("uncertainty-calibration", "netcal") and n > 1_000_000:
                continue
            if resamples:
                works[name] = lambda f=function, c=c, y=y, k=few, r=rng: resampled(f, c, y, k, r)
            else:
                works[name] = lambda f=function, c=c, y=y: f(c, y)
        times = interleaved_seconds(works, budget=30.0 if n <= 1_000_000 else 60.0)
        mine = times.pop("calibrant")
        rows.append((f"{n:,}", "calibrant", seconds(mine), 1.0))
        for name, cost in times.items():
            cost *= resamples / few if resamples else 1
            rows.append((f"{n:,}", name, seconds(cost), cost / mine))
    page.table(heading, ("rows", "what", "CPU time", "cost relative to calibrant"), rows)
    if note:
        page.text(note)


def bench_ece(page):
    peers = ece_peers()
    compare(page, "ECE, 15 equal-width bins", metrics.ece, peers, SIZES,
            note="calibrant also checks every value (finite, in range) and places edges exactly;"
            " the peers do neither.")  # fmt: skip
    compare(
        page,
        "ECE with a 95 % interval (1,000 resamples)",
        lambda c, y: metrics.metric_estimates(c, y, names=("ece",)),
        peers,
        (10_000, 1_000_000),
        resamples=RESAMPLES,
        note="A peer's time is that of a few resamples times their number. calibrant's interval"
        " is the recommended one (test inversion).",
    )
    compare(
        page,
        "1,000 bootstrap replicates of ECE",
        lambda c, y: metrics.bootstrap_distribution("ece", c, y, resamples=RESAMPLES),
        {"naive numpy": naive_ece},
        (10_000, 100_000, 1_000_000),
        resamples=RESAMPLES,
    )


def bench_smooth(page):
    relplot = peer("relplot.metrics")
    if not relplot:
        return
    for label, power in (("miscalibrated", 1.3), ("almost calibrated", 1.0)):
        compare(page, f"Smooth ECE, {label}", metrics.smooth_ece, {"relplot": relplot.smECE},
                (10_000, 1_000_000), power=power)  # fmt: skip
    worst = 0.0
    for seed, power in enumerate((1.0, 1.02, 1.3, 3.0)):
        c, y = data(100_000, power=power, seed=seed)
        worst = max(worst, abs(metrics.smooth_ece(c, y) - relplot.smECE(c, y)))
    page.text(f"Largest difference of values over four data sets of 100,000 rows: {worst:.1e}.")
    compare(
        page,
        "Smooth ECE, 1,000 bootstrap replicates with their own bandwidths",
        lambda c, y: metrics.bootstrap_distribution("smooth_ece", c, y, resamples=RESAMPLES),
        {"relplot": relplot.smECE},
        (10_000, 1_000_000),
        resamples=RESAMPLES,
    )
    compare(
        page,
        "Smooth ECE with a 95 % interval (test inversion)",
        lambda c, y: metrics.metric_estimates(c, y, names=("smooth_ece",)),
        {"relplot, 1,000 resamples": relplot.smECE},
        (10_000, 1_000_000),
        resamples=RESAMPLES,
    )


def bench_auroc(page):
    from sklearn.metrics import roc_auc_score

    theirs = {"scikit-learn": lambda c, y: roc_auc_score(y, c)}
    compare(page, "AUROC", metrics.auroc, theirs, SIZES)
    compare(
        page,
        "AUROC, exact bootstrap (1,000 resamples)",
        lambda c, y: metrics.bootstrap_distribution("auroc", c, y, resamples=RESAMPLES),
        theirs,
        (10_000, 100_000) if QUICK else (10_000, 100_000, 1_000_000),
        resamples=RESAMPLES,
    )
    compare(
        page,
        "AUROC with a 95 % interval (DeLong, the default)",
        lambda c, y: metrics.metric_estimates(c, y, names=("auroc",)),
        {"scikit-learn, 1,000 resamples": theirs["scikit-learn"]},
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
        "Metrics: cost beside peers",
        ["numpy", "scipy", "scikit-learn", "relplot", "uncertainty-calibration", "netcal",
         "torchmetrics"],
    )  # fmt: skip
    bench_ece(page)
    bench_smooth(page)
    bench_auroc(page)
    bench_block(page)
    bench_memory(page)
    bench_distribution(page)
    page.write()
