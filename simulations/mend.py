"""What mending gains on real models, and whether its promise holds where the truth is known.

`CALIBRANT_PARTS=mcq,alone python -m simulations mend` runs some parts, `CALIBRANT_SIZES=50,100`
some numbers of labels; the page is written from all that were ever run.
"""

from __future__ import annotations

import json
import os
import warnings
from functools import partial

import numpy as np
from benchmarks.harness import ROOT, machine, versions
from scipy import special

from calibrant.data.mend import fit_columns, fit_map
from calibrant.metrics.recalibration.mend_fit import Labels, crossfitted, fit_curve, gain
from simulations._mend_maps import SIZES, column_worlds, columns, excess_of_maps, maps_table

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "50"))
SPLITS = int(os.environ.get("CALIBRANT_SPLITS", "6"))
ONLY = {int(n) for n in os.environ.get("CALIBRANT_SIZES", "").split(",") if n}
PIECES = ROOT / "simulations" / "mend_results"
DATA_SETS = ("mcq", "mmlu_pro", "open_qa")


def truth_of(c, y):
    """Return rates of all labels as a function: at frequent values, else in 20 slices."""
    values, place, count = np.unique(c, return_inverse=True, return_counts=True)
    if len(values) > 100:
        cuts = np.unique(np.quantile(c, np.linspace(0, 1, 21)[1:-1]))
        place = np.searchsorted(cuts, c, side="right")
        count = np.bincount(place)
        values = np.bincount(place, c) / count
        frequent = count > 0
    else:
        frequent = count >= 200
    rates = np.bincount(place, y)[frequent] / count[frequent]
    at = values[frequent]
    return lambda v: np.interp(v, at, rates)


def worlds():
    """Yield (name, confidences, truth): real confidences, then made ones."""
    for data, name, c, y in columns():
        if data == "mmlu_pro" or name.endswith("likelihood"):
            yield f"{data} {name}", c, truth_of(c, y)
    rng = np.random.default_rng(5)
    five = rng.choice([0.7, 0.8, 0.9, 0.95, 1.0], 12_000, p=[0.1, 0.15, 0.35, 0.25, 0.15])
    rates = [0.35, 0.45, 0.6, 0.7, 0.75]
    yield "five values", five, lambda v: np.interp(v, [0.7, 0.8, 0.9, 0.95, 1.0], rates)
    b = np.round(rng.beta(8, 2, 12_000), 6)
    yield "calibrated", b, lambda v: v
    yield "one value", np.full(12_000, 0.95), lambda v: np.full(len(v), 0.6)
    yield "step", b, lambda v: np.where(v < 0.8, 0.3, 0.75)
    yield "dip at the top", b, lambda v: np.where(v < 0.93, 0.3 + 0.5 * v, 0.5)
    yield "flat", b, lambda v: np.full(len(v), 0.6)
    yield "falling", b, lambda v: 0.9 - 0.5 * v
    yield "near one", b, lambda v: np.where(v < 0.7, 0.85, 0.98)


def drawn(c, truth, n, rng, kind):
    """Draw labels: alone, four of a question, of which some share a confidence, and others."""
    x = rng.choice(c, n)
    weights = units = None
    if kind in ("clusters", "draws"):
        units = np.arange(n) // 4
        if kind == "draws":
            x = rng.choice(c, units[-1] + 1)[units]
        shared = rng.standard_normal(units[-1] + 1)[units] * 0.7
        right = special.ndtr(shared + rng.standard_normal(n) * np.sqrt(0.51)) < truth(x)
    else:
        right = rng.random(n) < truth(x)
    right = right.astype(float)
    if kind == "weights":
        weights = np.exp(rng.standard_normal(n))
    elif kind == "graded":
        # Half of the answers are judged by two, who agree by chance alone.
        again = rng.random(n) < truth(x)
        right = np.where(rng.random(n) < 0.5, right, (right + again) / 2)
    return Labels.of(x, right, weights, units)


def promises(kind, sizes):
    """Return tallies by world and n: [runs, held, covered, off by, mended, lost]."""
    found = {}
    for number, (name, c, truth) in enumerate(worlds()):
        if name.startswith(DATA_SETS) and number % (2 if kind == "alone" else 3):
            continue
        at = np.quantile(c, np.linspace(0.0025, 0.9975, 200), method="nearest")
        target = truth(at)
        for n in (n for n in sizes if not ONLY or n in ONLY):
            rows = []
            for run in range(RUNS):
                rng = np.random.default_rng([number, n, run, *kind.encode()])
                labels = drawn(c, truth, n, rng, kind)
                curve = fit_curve(labels, rng)
                mended = gain(labels, crossfitted(labels, rng)).verdict(n) == "mended"
                value, low, high = (
                    special.expit(np.interp(at, curve.grid.knots, part))
                    for part in (curve.log_odds, curve.low, curve.high)
                )
                inside = ((target >= low - 1e-9) & (target <= high + 1e-9)).mean()
                gained = ((at - target) ** 2 - (value - target) ** 2).mean()
                held = np.abs(value - target).mean() <= curve.off_by
                rows.append((1, held, inside, curve.off_by, mended, mended and gained < -0.01))
            tally = np.array(rows, dtype=float)
            sums = [*tally.sum(axis=0)[:3], RUNS * np.median(tally[:, 3]), *tally[:, 4:].sum(0)]
            found[f"{name}|{n}"] = [round(float(value), 4) for value in sums]
        print(f"   {kind} {name}", flush=True)
    return found


def promises_of_columns(sizes, rows_each):
    """Return tallies as `promises` does, of maps that read columns; truth is known at each row.

    A score is held against the mean chance of the rows that share it: 20 slices of it.
    """
    found = {}
    for number, (name, frame, truth) in enumerate(column_worlds()):
        stated = frame["confidence"].to_numpy()
        for n in (n for n in sizes if not ONLY or n in ONLY):
            rows = []
            for run in range(RUNS):
                rng = np.random.default_rng([number, n, run, rows_each])
                pick, units = rng.choice(len(truth), n, replace=False), np.arange(n) // rows_each
                shared = 0.7 * rng.standard_normal(n)[units] if rows_each > 1 else 0.0
                noise = rng.standard_normal(n) * (np.sqrt(0.51) if rows_each > 1 else 1.0)
                right = (special.ndtr(shared + noise) < truth[pick]).astype(float)
                labels = Labels.of(stated[pick], right, None, units)
                alone = fit_map(labels, seed=run)
                read = fit_columns(labels, frame[pick].drop("confidence"), alone, seed=run)
                mended = alone.probabilities(stated)
                score = read.scores(mended, frame.drop("confidence"))
                value = read.map.probabilities(score)
                slices = np.array_split(np.argsort(score, kind="stable"), 20)
                target = np.array([truth[part].mean() for part in slices])
                at, low, high = (
                    np.array([values[part].mean() for part in slices])
                    for values in (
                        value,
                        special.expit(np.interp(score, read.map.knots, read.map.low)),
                        special.expit(np.interp(score, read.map.knots, read.map.high)),
                    )
                )
                used = read.map.verdict == "mended"
                gained = ((mended - truth) ** 2 - (value - truth) ** 2).mean()
                off_by = read.map.promise["off_by"] if used else np.inf
                inside = ((target >= low) & (target <= high)).mean()
                held = np.abs(at - target).mean() <= off_by
                rows.append((1, held, inside, off_by, used, used and gained < 0))
            tally = np.array(rows, dtype=float)
            off = np.median(tally[np.isfinite(tally[:, 3]), 3]) if tally[:, 4].any() else 0.0
            sums = [*tally.sum(axis=0)[:3], len(rows) * off, *tally[:, 4:].sum(axis=0)]
            found[f"{name}|{n}"] = [round(float(value), 4) for value in sums]
        print(f"   columns {name}", flush=True)
    return found


PARTS = {
    **{name: partial(excess_of_maps, name, SPLITS) for name in DATA_SETS},
    "alone": partial(promises, "alone", SIZES),
    "clusters": partial(promises, "clusters", (200, 1000, 5000)),
    "draws": partial(promises, "draws", (200, 1000, 5000)),
    "weights": partial(promises, "weights", (200, 1000)),
    "graded": partial(promises, "graded", (200, 1000)),
    "few": partial(promises, "few", (20, 30, 40)),
    "columns": partial(promises_of_columns, (500, 1000, 5000), 1),
    "columns_clusters": partial(promises_of_columns, (1000, 5000), 4),
}
WORDS = {
    "alone": "Each row is a question of its own",
    "clusters": "Four rows per question, each with its own confidence",
    "draws": "Four draws per question, all with one confidence",
    "weights": "Unequal weights (log-normal, spread 1)",
    "graded": "Graded outcomes: half of the answers judged by two",
    "columns": "With other columns (three, or noise); a loss of any size counts",
    "columns_clusters": "With other columns, four rows per question; a loss of any size counts",
    "few": "Fewer than 50 labels: nothing is mended, intervals are still given",
}


def promise_table(found):
    cells = {}
    for key, sums in found.items():
        cells.setdefault(int(key.split("|")[1]), {})[key.split("|")[0]] = np.array(sums)
    sizes = sorted(cells)
    total = {n: sum(cells[n].values()) for n in sizes}
    share = {n: 100 * total[n] / total[n][0] for n in sizes}
    worst = {n: 100 * min(w[1] / w[0] for w in cells[n].values()) for n in sizes}
    off = {n: 100 * np.median([w[3] / w[0] for w in cells[n].values()]) for n in sizes}
    rows = (
        ("promise held, %", lambda n: f"{share[n][1]:.1f}"),
        ("in the worst world, %", lambda n: f"{worst[n]:.0f}"),
        ("interval covers, %", lambda n: f"{share[n][2]:.1f}"),
        ("off by at most, median points", lambda n: f"{off[n]:.1f}"),
        ("'mended', %", lambda n: f"{share[n][4]:.0f}"),
        ("'mended' with a true loss over .01, runs", lambda n: f"{total[n][5]:.0f}"),
    )
    in_vain = [w for w in cells[sizes[0]] if w == "calibrated" or w.startswith("noise")]
    true = sum(cells[n][world] for n in sizes for world in in_vain)
    return [
        "| | " + " | ".join(f"{n:,}" for n in sizes) + " |",
        "|" + " --- |" * (len(sizes) + 1),
        *(f"| {title} | " + " | ".join(map(cell, sizes)) + " |" for title, cell in rows),
        "",
        f"{int(total[sizes[0]][0]):,} runs a column, {len(cells[sizes[0]])} worlds. 'Mended' in "
        f"vain ({', '.join(in_vain)}): {int(true[4])} of {int(true[0])} runs.",
        "",
    ]


def main() -> None:
    warnings.filterwarnings("ignore")
    wanted = os.environ.get("CALIBRANT_PARTS", ",".join(PARTS)).split(",")
    PIECES.mkdir(exist_ok=True)
    ran = {p: PIECES / f"{p}.json" for p in PARTS if (PIECES / f"{p}.json").exists()}
    found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in ran.items()}
    for name in filter(None, wanted):
        found[name] = (found.get(name, {}) if ONLY else {}) | PARTS[name]()
        (PIECES / f"{name}.json").write_text(json.dumps(found[name]) + "\n", encoding="utf-8")
    lines = [
        "# Mending: what it gains, and whether its promise holds",
        "",
        f"Written by `python -m simulations mend` on {machine()}; "
        f"{versions(['numpy', 'scipy', 'scikit-learn'])}.",
        "",
        "## Log loss above the best map, in per cent",
        "",
        "Each map is fitted on n labels of a real model and judged on its other rows; losses are "
        f"averaged over {SPLITS} splits, then the best map of that column and n is picked. Means "
        "over columns.",
        "",
    ]
    for name in DATA_SETS:
        if name in found:
            lines += [f"### {name}", "", *maps_table(found[name])]
    lines += [
        "## Promises",
        "",
        "Confidences of real models and made ones; the truth is known. An interval is meant to "
        "cover in 95 of 100 cases, a promise to hold in 95 of 100 runs.",
        "",
    ]
    for name, words in WORDS.items():
        if name in found:
            lines += [f"### {words}", "", *promise_table(found[name])]
    page = ROOT / "docs" / "simulations" / "mend.md"
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
