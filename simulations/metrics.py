"""Coverage of the intervals of metrics, by simulation; writes docs/simulations/metrics.md."""

from __future__ import annotations

import os
import sys
import time
import warnings

import numpy as np
from benchmarks.harness import ROOT, machine, versions

from calibrant import metrics
from calibrant.core import UndefinedMetricWarning
from calibrant.stats.bootstrap import basic_interval, percentile_interval

REPEATS = int(os.environ.get("CALIBRANT_REPEATS", "500"))
SIZES = (200, 1000, 5000)
NAMES = (
    "brier", "log_loss", "accuracy", "auroc", "auprc", "aurc", "e_aurc",
    "ece", "ece_debiased", "smooth_ece", "over_confidence", "mcb", "dsc",
)  # fmt: skip
ROWS_FOR_TRUTH = 1_000_000


def confidences(rng, n):
    """Confidences as language models give them: most of them high."""
    return rng.beta(4.0, 1.2, n)


WORLDS = {
    "calibrated": lambda c: c,
    "slightly over-confident": lambda c: np.clip(c - 0.03, 0, 1),
    "over-confident": lambda c: c**1.5,
    "too extreme": lambda c: 0.5 + 0.6 * (c - 0.5),
    "wrong above 0.8 only": lambda c: np.where(c > 0.8, c - 0.15, c),
}


def truth(rate_of):
    """Return the values that infinitely many rows would show.

    Outcomes enter through their probabilities, so that a large sample has no outcome noise:
    as grades where the metric is linear in them, else as weighted right and wrong copies.
    """
    c = confidences(np.random.default_rng(12345), ROWS_FOR_TRUTH)
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


def one_world(rate_of, n, seed):
    """Return per metric: coverage, share of truths below and above, mean width, mean value."""
    rng = np.random.default_rng(seed)
    target = truth(rate_of)
    rows = {name: [] for name in (*NAMES, "ece percentile", "ece basic")}
    for repeat in range(REPEATS):
        c = confidences(rng, n)
        y = rng.random(n) < rate_of(c)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            found = metrics.metric_estimates(c, y, names=NAMES, resamples=500, rng=repeat)
        for name, estimate in found.items():
            rows[name].append((estimate.low, estimate.high, estimate.value))
        draws = metrics.bootstrap_distribution("ece", c, y, resamples=500, rng=repeat)
        value = found["ece"].value
        rows["ece percentile"].append((*percentile_interval(draws, 0.95), value))
        rows["ece basic"].append((*basic_interval(value, draws, 0.95), value))
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
    rate_of = WORLDS["over-confident"]
    target = truth(rate_of)
    names = ("brier", "auroc", "ece", "smooth_ece", "accuracy")
    hits = {("units", name): 0 for name in names} | {("rows", name): 0 for name in names}
    units = np.repeat(np.arange(n_units), rows_per_unit)
    for repeat in range(REPEATS):
        c = confidences(rng, n_units)
        y = rng.random(n_units) < rate_of(c)
        c, y = np.repeat(c, rows_per_unit), np.repeat(y, rows_per_unit)
        for label, given in (("units", units), ("rows", None)):
            found = metrics.metric_estimates(
                c, y, names=names, units=given, resamples=500, rng=repeat
            )
            for name in names:
                hits[label, name] += found[name].low <= target[name] <= found[name].high
    return {key: count / REPEATS for key, count in hits.items()}


def main() -> None:
    started = time.perf_counter()
    lines = [
        "# Coverage of intervals",
        "",
        "Written by `python -m simulations metrics` on"
        f" {machine()}; {versions(['numpy', 'scipy'])}."
        f" Nominal level 95 %, {REPEATS} data sets per cell (a coverage of 95 % is then known to"
        f" -+{196 * np.sqrt(0.95 * 0.05 / REPEATS):.1f} points). Confidences follow Beta(4, 1.2);"
        " the truth is what a million rows without outcome noise show.",
        "",
    ]
    results = {}
    for number, (world, rate_of) in enumerate(WORLDS.items()):
        for n in SIZES:
            results[world, n] = one_world(rate_of, n, seed=[number, n])
            print(f"   {world}, n = {n}: {time.perf_counter() - started:.0f} s", flush=True)
    names = list(next(iter(results.values())))
    lines += ["## Coverage in percent", ""]
    header = [f"{world}, n = {n:,}" for world, n in results]
    lines += ["| metric | " + " | ".join(header) + " |", "|" + " --- |" * (len(header) + 1)]
    for name in names:
        cells = [f"{100 * results[key][name][0]:.1f}" for key in results]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "## Bias and root mean squared error of the estimators of calibration error", ""]
    shown = ("ece", "ece_debiased", "smooth_ece")
    lines += ["| world | n | " + " | ".join(f"{s}: truth, bias, rmse" for s in shown) + " |"]
    lines += ["|" + " --- |" * (2 + len(shown))]
    for (world, n), found in results.items():
        cells = [f"{found[s][4]:.4f}, {found[s][2]:+.4f}, {found[s][3]:.4f}" for s in shown]
        lines.append(f"| {world} | {n:,} | " + " | ".join(cells) + " |")
    lines += ["", "## Mean width of the interval", ""]
    shown = ("ece", "ece percentile", "smooth_ece", "brier", "auroc")
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
