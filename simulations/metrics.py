"""Coverage of the intervals of metrics, by simulation; writes docs/simulations/metrics.md."""

from __future__ import annotations

import os
import sys
import time
import warnings

import numpy as np
from benchmarks.harness import ROOT, machine, versions
from scipy import stats

from calibrant import metrics
from calibrant.core import UndefinedMetricWarning
from calibrant.metrics.stats.bootstrap import percentile_interval

REPEATS = int(os.environ.get("CALIBRANT_REPEATS", "500"))
SIZES = (200, 1000, 10_000)
NAMES = (
    "brier", "log_loss", "accuracy", "auroc", "auprc", "aurc", "e_aurc",
    "ece", "ece_debiased", "smooth_ece", "over_confidence", "mcb", "dsc",
)  # fmt: skip
ROWS_FOR_TRUTH = 1_000_000


# Confidences as language models give them (most of them high), in five values, and of rare events.
HIGH, RARE = stats.beta(4.0, 1.2), stats.beta(1.0, 30.0)
FIVE = np.array([0.5, 0.7, 0.8, 0.9, 0.95])
UP_TO_ONE = np.array([0.5, 0.7, 0.8, 0.9, 1.0])

# How confidences follow from a uniform number, and the rate of right answers from them.
WORLDS = {
    "calibrated": (HIGH.ppf, lambda c: c),
    "slightly over-confident": (HIGH.ppf, lambda c: np.clip(c - 0.03, 0, 1)),
    "over-confident": (HIGH.ppf, lambda c: c**1.5),
    "too extreme": (HIGH.ppf, lambda c: 0.5 + 0.6 * (c - 0.5)),
    "wrong above 0.8 only": (HIGH.ppf, lambda c: np.where(c > 0.8, c - 0.15, c)),
    "one step": (HIGH.ppf, lambda c: np.where(c < 0.75, 0.3, 0.9)),
    "five values": (lambda u: FIVE[(u * 5).astype(int)], lambda c: c - 0.1),
    "rare": (RARE.ppf, lambda c: c),
    "certain rows": (
        lambda u: UP_TO_ONE[(u * 5).astype(int)],
        lambda c: np.where(c == 1, 1.0, c - 0.2),
    ),
}


def truth(world):
    """Return the values that infinitely many rows would show.

    The confidences are evenly spaced quantiles and the outcomes enter through their
    probabilities, so that there is no noise: as grades where the metric is linear in them, else
    as weighted right and wrong copies.
    """
    confidence_of, rate_of = WORLDS[world]
    c = confidence_of((np.arange(ROWS_FOR_TRUTH) + 0.5) / ROWS_FOR_TRUTH)
    rate = rate_of(c)
    linear = [name for name in NAMES if name not in ("auroc", "auprc", "brier", "e_aurc")]
    out = {name: getattr(metrics, name)(c, rate) for name in linear}
    both, copies = np.concatenate([c, c]), np.repeat([1, 0], c.size)
    weights = np.concatenate([rate, 1 - rate])
    for name in ("auroc", "auprc", "brier"):
        out[name] = getattr(metrics, name)(both, copies, weights=weights)
    error = 1 - rate.mean()
    out["e_aurc"] = out["aurc"] - (error + (1 - error) * np.log(1 - error))
    if rate is c:
        out |= dict.fromkeys(("ece", "ece_debiased", "smooth_ece", "over_confidence", "mcb"), 0.0)
    return out


def one_world(world, n, target, seed):
    """Return per metric: coverage, mean width, bias, root mean squared error, the truth."""
    rng = np.random.default_rng(seed)
    confidence_of, rate_of = WORLDS[world]
    rows = {name: [] for name in (*NAMES, "ece percentile", "ece basic")}
    for repeat in range(REPEATS):
        c = confidence_of(rng.random(n))
        y = rng.random(n) < rate_of(c)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            found = metrics.metric_estimates(c, y, names=NAMES, resamples=500, rng=repeat)
        for name, estimate in found.items():
            rows[name].append((estimate.low, estimate.high, estimate.value))
        draws = metrics.bootstrap_distribution("ece", c, y, resamples=500, rng=repeat)
        value = found["ece"].value
        low, high = percentile_interval(draws, 0.95)
        rows["ece percentile"].append((low, high, value))
        # Mirrored at the value, which turns the bias of the draws around.
        rows["ece basic"].append((2 * value - high, 2 * value - low, value))
    out = {}
    for name, ends in rows.items():
        low, high, value = np.array(ends).T
        true = target[name.split()[0]]
        # The true value of a calibrated world is 0 exactly, where the interval may begin.
        missed_low, missed_high = (true < low - 1e-12).mean(), (true > high + 1e-12).mean()
        out[name] = (1 - missed_low - missed_high, (high - low).mean(), value.mean() - true,
                     np.sqrt(((value - true) ** 2).mean()), true)  # fmt: skip
    return out


def clustered(n_units, rows_per_unit, seed):
    """Return coverage when every question was asked several times, with and without units."""
    rng = np.random.default_rng(seed)
    confidence_of, rate_of = WORLDS["over-confident"]
    target = truth("over-confident")
    names = ("brier", "auroc", "e_aurc", "ece", "smooth_ece", "dsc", "accuracy")
    hits = {("units", name): 0 for name in names} | {("rows", name): 0 for name in names}
    units = np.repeat(np.arange(n_units), rows_per_unit)
    for repeat in range(REPEATS):
        c = confidence_of(rng.random(n_units))
        y = rng.random(n_units) < rate_of(c)
        c, y = np.repeat(c, rows_per_unit), np.repeat(y, rows_per_unit)
        for label, given in (("units", units), ("rows", None)):
            found = metrics.metric_estimates(
                c, y, names=names, units=given, resamples=500, rng=repeat
            )
            for name in names:
                hits[label, name] += found[name].low <= target[name] <= found[name].high
    return {key: count / REPEATS for key, count in hits.items()}


def _reading():
    return [
        "Intervals of `ece`, `mcb` and `over_confidence` come from inverting a test at the least"
        " favourable way to spread the error, so they hold the truth more often than asked. That"
        " of `dsc` is as wide as its own value near 0, hence the high coverage where outcomes are"
        " rare and few.",
    ]


def main() -> None:
    started = time.perf_counter()
    lines = [
        "# Coverage of intervals",
        "",
        "Written by `python -m simulations metrics` on"
        f" {machine()}; {versions(['numpy', 'scipy'])}."
        f" Nominal level 95 %, {REPEATS} data sets per cell (a coverage of 95 % is then known to"
        f" -+{196 * np.sqrt(0.95 * 0.05 / REPEATS):.1f} points). Confidences follow Beta(4, 1.2),"
        " but for `five values` (0.5, 0.7, 0.8, 0.9, 0.95, alike often), `rare` (Beta(1, 30),"
        " calibrated) and `certain rows` (0.5, 0.7, 0.8, 0.9, all 0.2 too high, and 1, which is"
        " always right); the truth is what a million evenly spaced rows without outcome noise"
        " show.",
        "",
    ]
    results = {}
    for number, world in enumerate(WORLDS):
        target = truth(world)
        for n in SIZES:
            results[world, n] = one_world(world, n, target, seed=[number, n])
            print(f"   {world}, n = {n}: {time.perf_counter() - started:.0f} s", flush=True)
    names = list(next(iter(results.values())))
    lines += ["## Coverage in percent", ""]
    lines += ["| world | n | " + " | ".join(names) + " |", "|" + " --- |" * (len(names) + 2)]
    for (world, n), found in results.items():
        cells = [f"{100 * found[name][0]:.1f}" for name in names]
        lines.append(f"| {world} | {n:,} | " + " | ".join(cells) + " |")
    lines += ["", *_reading()]
    lines += ["", "## Bias and root mean squared error of the estimators of calibration error", ""]
    shown = ("ece", "ece_debiased", "smooth_ece")
    lines += ["| world | n | " + " | ".join(f"{s}: truth, bias, rmse" for s in shown) + " |"]
    lines += ["|" + " --- |" * (2 + len(shown))]
    for (world, n), found in results.items():
        cells = [f"{found[s][4]:.4f}, {found[s][2]:+.4f}, {found[s][3]:.4f}" for s in shown]
        lines.append(f"| {world} | {n:,} | " + " | ".join(cells) + " |")
    lines += ["", "## Mean width of the interval", ""]
    shown = ("ece", "ece percentile", "smooth_ece", "brier", "log_loss", "auroc", "auprc",
             "e_aurc", "dsc")  # fmt: skip
    lines += ["| world | n | " + " | ".join(shown) + " |", "|" + " --- |" * (2 + len(shown))]
    for (world, n), found in results.items():
        cells = [f"{found[s][1]:.4f}" for s in shown]
        lines.append(f"| {world} | {n:,} | " + " | ".join(cells) + " |")
    lines += ["", "## Questions asked five times", ""]
    lines += ["300 questions, each five times with the same answer: coverage in percent.", ""]
    found = clustered(300, 5, seed=1)
    lines += ["| metric | question as unit | row as unit (wrong) |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {100 * found['units', name]:.1f} | {100 * found['rows', name]:.1f} |"
        for (label, name) in found
        if label == "units"
    ]
    folder = ROOT / "docs" / "simulations"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    sys.stdout.flush()
