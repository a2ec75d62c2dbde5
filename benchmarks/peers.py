"""One table: calibrant beside every peer, the same data, one run; time, ratio, memory."""

from __future__ import annotations

import ctypes
import gc
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from benchmarks.harness import DOCS, Page, interleaved_seconds, peer, seconds
from benchmarks.metrics import data, ece_peers, resampled
from calibrant import metrics

QUICK = bool(os.environ.get("CALIBRANT_QUICK"))
SMALL, LARGE, HUGE = 10_000, 1_000_000, 10_000_000
REPEATS = 5
RESAMPLES = 1_000
# Peers that take minutes on more rows are left out there, or measured on a few resamples.
SLOW_PEERS = frozenset({"uncertainty-calibration", "netcal"})
FEW = {SMALL: 20, LARGE: 2}

Work = Callable[[Any, Any], Any]


def auroc_peers() -> dict[str, Work]:
    found: dict[str, Work] = {}
    sklearn = peer("sklearn.metrics")
    if sklearn:
        found["scikit-learn"] = lambda c, y: sklearn.roc_auc_score(y, c)
    torchmetrics, torch = peer("torchmetrics.functional.classification"), peer("torch")
    if torchmetrics and torch:
        found["torchmetrics"] = lambda c, y: torchmetrics.binary_auroc(
            torch.from_numpy(c), torch.from_numpy(y.astype(int))
        )
    found["naive numpy"] = naive_auroc
    return found


def naive_auroc(confidence, correct):
    _, inverse, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    hits = correct.sum()
    return (ranks @ correct - hits * (hits + 1) / 2) / (hits * (correct.size - hits))


def smooth_peers() -> dict[str, Work]:
    relplot = peer("relplot.metrics")
    return {"relplot": relplot.smECE} if relplot else {}


def tasks() -> list[tuple[str, dict[str, Work], dict[str, Work], tuple[int, ...], bool]]:
    """Return (task, ours, theirs, sizes, whether theirs are resampled)."""
    estimate = metrics.metric_estimates
    replicates = metrics.bootstrap_distribution
    all_sizes = (SMALL, LARGE) if QUICK else (SMALL, LARGE, HUGE)
    two = (SMALL,) if QUICK else (SMALL, LARGE)
    binned, smooth, ranked = ece_peers(), smooth_peers(), auroc_peers()
    return [
        ("ECE", {"calibrant": metrics.ece}, binned, all_sizes, False),
        (
            "ECE, 95 % interval",
            {
                "calibrant": lambda c, y: estimate(c, y, names=("ece",)),
                "calibrant, bootstrap": lambda c, y: replicates("ece", c, y, resamples=RESAMPLES),
            },
            binned,
            two,
            True,
        ),
        ("smooth ECE", {"calibrant": metrics.smooth_ece}, smooth, all_sizes, False),
        (
            "smooth ECE, 95 % interval",
            {
                "calibrant": lambda c, y: estimate(c, y, names=("smooth_ece",)),
                "calibrant, bootstrap": lambda c, y: replicates(
                    "smooth_ece", c, y, resamples=RESAMPLES
                ),
            },
            smooth,
            two,
            True,
        ),
        ("AUROC", {"calibrant": metrics.auroc}, ranked, all_sizes, False),
        (
            "AUROC, 95 % interval",
            {
                "calibrant": lambda c, y: estimate(c, y, names=("auroc",)),
                "calibrant, bootstrap": lambda c, y: replicates("auroc", c, y, resamples=RESAMPLES),
            },
            ranked,
            two,
            True,
        ),
    ]


def peak_megabytes(work: Callable[[], Any]) -> float:
    """Return by how much the process's resident memory rose at most while `work` ran.

    The kernel's own high-water mark counts every library alike, whoever allocates.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work()
    return max(0.0, _status("VmHWM") - before) / 1024


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name)))


def measured(
    task: str, ours: dict[str, Work], theirs: dict[str, Work], n: int, again: bool
) -> list[dict[str, Any]]:
    """Return a row per library: time, ratio, memory."""
    c, y = data(n)
    few = FEW[n] if again else 1
    works: dict[str, Callable[[], Any]] = {}
    for name, function in ours.items():
        works[name] = lambda f=function: f(c, y)
    for name, function in theirs.items():
        if name in SLOW_PEERS and n > LARGE:
            continue
        if again:
            works[name] = lambda f=function: resampled(f, c, y, few, np.random.default_rng(0))
        else:
            works[name] = lambda f=function: f(c, y)
    times = interleaved_seconds(works, repeats=REPEATS, budget=45.0)
    rows = []
    for name, work in works.items():
        scaled = again and name in theirs
        cost = times[name] * (RESAMPLES / few if scaled else 1)
        rows.append(
            {
                "task": task,
                "rows": n,
                "what": name,
                "seconds": cost,
                "ratio": cost / times["calibrant"],
                "megabytes": peak_megabytes(work),
                "resamples": few if scaled else "",
            }
        )
    return rows


def figure(page: Page, rows: list[dict[str, Any]]) -> None:
    shown = [
        {**row, "panel": f"{row['rows']:,} rows"} for row in rows if row["what"] != "calibrant"
    ]
    tasks_in_order = list(dict.fromkeys(row["task"] for row in rows))
    chart = (
        alt.Chart()
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="cost relative to calibrant"),
            y=alt.Y("task:N", sort=tasks_in_order, title=None),
            color=alt.Color("what:N", title=None),
            shape=alt.Shape("what:N", title=None),
        )
    )
    rule = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(1))
    panels = [f"{n:,} rows" for n in (SMALL, LARGE, HUGE)]
    layered = alt.layer(chart, rule, data=alt.Data(values=shown)).properties(width=300, height=170)
    layered.facet(alt.Facet("panel:N", sort=panels, title=None), columns=1).save(
        str(DOCS / "peers-ratios.svg")
    )
    page.lines += ["![Cost of the peers relative to calibrant](peers-ratios.svg)", ""]


def main() -> None:
    warnings.simplefilter("ignore")
    torch = peer("torch")
    if torch:
        # CPU time counts a thread that waits in a loop for the other as if it worked.
        torch.set_num_threads(1)
    page = Page(
        "peers",
        "calibrant beside its peers",
        ["numpy", "scipy", "scikit-learn", "relplot", "uncertainty-calibration", "netcal",
         "torch", "torchmetrics"],
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for task, ours, theirs, sizes, again in tasks():
        for n in sizes:
            rows += measured(task, ours, theirs, n, again)
            for row in rows[-len(ours) - len(theirs) :]:
                print(row, flush=True)
    page.table(
        "Time, ratio and memory",
        ("task", "rows", "what", "CPU time", "relative to calibrant", "peak memory, MB",
         "resamples measured"),
        [
            (row["task"], f"{row['rows']:,}", row["what"], seconds(row["seconds"]), row["ratio"],
             f"{row['megabytes']:.1f}", row["resamples"])
            for row in rows
        ],
    )  # fmt: skip
    if QUICK:
        page.text("A quick run: not all sizes.")
    page.text(
        f"CPU times are medians of {REPEATS} runs taken in turns; a work that takes more than its "
        "share of 45 seconds is run fewer times. torch has one thread, since CPU time would count "
        "its waiting threads. Where a peer has no interval of its own it is bootstrapped with "
        f"{RESAMPLES:,} resamples: a few are timed, and the time is counted for all of them. "
        "calibrant's first line is the interval that it reports (test inversion, DeLong); its "
        "bootstrap draws as many resamples as the peers. Peak memory is the rise of the process "
        "above the data. Peers that are not installed where this ran are left out; "
        f"{' and '.join(sorted(SLOW_PEERS))} are not run on {HUGE:,} rows."
    )
    figure(page, rows)
    page.write()


if __name__ == "__main__":
    main()
