"""What mending gains on real models, and whether its promise holds where the truth is known."""

from __future__ import annotations

import os
import warnings

import numpy as np
import polars as pl
from benchmarks.harness import DATA, ROOT, machine, versions
from scipy import special
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calibrant.mending import Mend
from calibrant.mending.fit import Labels, crossfitted, fit_curve, gain
from calibrant.metrics.calibrators import (
    BetaCalibrator,
    HistogramCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "50"))
SPLITS = int(os.environ.get("CALIBRANT_SPLITS", "2"))
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
TESTED = 2_000
CLIP = 0.002


def columns():
    """Yield (data set, name, confidences, outcomes) of real models, rows without one left out."""
    frame = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet")
    for said in ("verbal_numerical_confidence", "logit_perplexity_confidence"):
        for (model,), rows in frame.group_by("model", maintain_order=True):
            yield from one_column("mmlu_pro", f"{model} {said[:6]}", rows, said, "correct")
    frame = pl.read_parquet(DATA / "scores" / "mcq_5_benchmarks_7_models.parquet")
    for (model,), rows in frame.filter(prompt="first").group_by("model", maintain_order=True):
        yield from one_column("mcq", model, rows, "confidence", "correct")
    frame = pl.read_parquet(DATA / "scores" / "open_qa_6_models.parquet").with_columns(
        likelihood=pl.col("sequence_logprob").exp()
    )
    for (model, prompt), rows in frame.group_by("model", "prompt", maintain_order=True):
        for said in ("verbalized", "likelihood"):
            yield from one_column("open_qa", f"{model} {prompt} {said}", rows, said, "correct")


def one_column(data, name, rows, said, right):
    c = rows[said].cast(pl.Float64).to_numpy()
    y = rows[right].cast(pl.Float64).to_numpy()
    known = (c >= 0) & (c <= 1) & np.isfinite(y)
    c, y = c[known], y[known]
    if len(c) >= 1500 and 0.1 < y.mean() < 0.95 and c.std() > 0.01:
        yield data, name, c, y


def as_given(*labels):
    del labels
    return lambda v: v


def mended(c, y):
    fitted = Mend().fit(c, y).map_
    odds = np.array(fitted.log_odds)
    return lambda v: special.expit(np.interp(v, fitted.knots, odds))


def ours(kind, **settings):
    def fit(c, y):
        return kind(**settings).fit(c, y).predict

    return fit


def sigmoid(c, y):
    """Fit as CalibratedClassifierCV(method='sigmoid') does: logistic in the score."""
    fitted = LogisticRegression(C=1e6).fit(c[:, None], y)
    return lambda v: fitted.predict_proba(v[:, None])[:, 1]


def isotonic(c, y):
    return IsotonicRegression(out_of_bounds="clip").fit(c, y).predict


def venn_abers(c, y, points=60):
    values, place, count = np.unique(c, return_inverse=True, return_counts=True)
    right = np.bincount(place, y)
    wanted = np.linspace(0, 1, points)
    at = values if len(values) <= points else np.unique(np.quantile(c, wanted, method="nearest"))
    ends = np.empty((2, len(at)))
    for number, value in enumerate(at):
        k = np.searchsorted(values, value)
        n = count + (np.arange(len(values)) == k)
        for label in (0, 1):
            hits = right + label * (np.arange(len(values)) == k)
            ends[label, number] = isotonic_regression(hits / n, weights=n).x[k]
    rate = ends[1] / (1 - ends[0] + ends[1])
    return lambda v: np.interp(v, at, rate)


MAPS = {
    "mend": mended,
    "Venn-Abers": venn_abers,
    "Platt, edge .02": ours(PlattCalibrator),
    "beta": ours(BetaCalibrator),
    "scikit-learn sigmoid": sigmoid,
    "scikit-learn isotonic": isotonic,
    "histogram": ours(HistogramCalibrator),
    "temperature": ours(TemperatureCalibrator),
    "as it is": as_given,
}


def log_loss(p, y):
    q = np.clip(p, CLIP, 1 - CLIP)
    return float(-(y * np.log(q) + (1 - y) * np.log(1 - q)).mean())


def excess_of_maps():
    """Return {(data, n): {map: [excess over the best map, per column and split]}}."""
    found = {}
    for number, (data, name, c, y) in enumerate(columns()):
        for split in range(SPLITS):
            order = np.random.default_rng([number, split]).permutation(len(y))
            test = order[min(5000, len(y) // 2) :]
            for n in SIZES:
                if n > len(y) - len(test):
                    continue
                rows = order[:n]
                if not 0 < y[rows].sum() < n:
                    continue
                losses = {
                    k: log_loss(f(c[rows], y[rows])(c[test]), y[test]) for k, f in MAPS.items()
                }
                best = min(losses.values())
                cell = found.setdefault((data, n), {k: [] for k in MAPS})
                for key, loss in losses.items():
                    cell[key].append(100 * (loss / best - 1))
        print(f"   {data} {name}", flush=True)
    return found


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


def labels_of(c, truth, n, rng, cluster):
    """Draw labels: alone, or in clusters whose members are right and wrong together."""
    x = rng.choice(c, n)
    rate = truth(x)
    if cluster == 1:
        return Labels.of(x, (rng.random(n) < rate).astype(float))
    unit = np.arange(n) // cluster
    shared = rng.standard_normal(unit[-1] + 1)[unit] * 0.7 + rng.standard_normal(n) * np.sqrt(0.51)
    return Labels.of(x, (special.ndtr(shared) < rate).astype(float), None, unit)


def promises(sizes, cluster=1):
    """Return {(world, n): rows of (held, covered, off_by, verdict, true gain)}."""
    found = {}
    for number, (name, c, truth) in enumerate(worlds()):
        at = np.quantile(c, np.linspace(0.0025, 0.9975, 200), method="nearest")
        target = truth(at)
        for n in sizes:
            rows = []
            for run in range(RUNS):
                rng = np.random.default_rng([number, n, run, cluster])
                labels = labels_of(c, truth, n, rng, cluster)
                curve = fit_curve(labels, rng)
                verdict = gain(labels, crossfitted(labels, rng)).verdict(n)
                value, low, high = (
                    special.expit(np.interp(at, curve.grid.knots, part))
                    for part in (curve.log_odds, curve.low, curve.high)
                )
                inside = ((target >= low - 1e-9) & (target <= high + 1e-9)).mean()
                gained = ((at - target) ** 2 - (value - target) ** 2).mean()
                held = np.abs(value - target).mean() <= curve.off_by
                rows.append((held, inside, curve.off_by, verdict, gained))
            found[name, n] = rows
        print(f"   {name}", flush=True)
    return found


def maps_table(found):
    lines = []
    for data in sorted({key[0] for key in found}):
        sizes = [n for n in SIZES if (data, n) in found]
        lines += [
            f"### {data}",
            "",
            "| map | " + " | ".join(f"{n:,}" for n in sizes) + " | worst from 200 on |",
            "|" + " --- |" * (len(sizes) + 2),
        ]
        for key in MAPS:
            cells = [f"{np.mean(found[data, n][key]):.2f}" for n in sizes]
            later = [max(found[data, n][key]) for n in sizes if n >= 200]
            lines.append(f"| {key} | " + " | ".join(cells) + f" | {max(later, default=0):.1f} |")
        lines.append("")
    return lines


def promise_table(found):
    sizes = sorted({n for _, n in found})
    lines = ["| | " + " | ".join(f"{n:,}" for n in sizes) + " |", "|" + " --- |" * (len(sizes) + 1)]
    every = {n: [row for (_, m), rows in found.items() if m == n for row in rows] for n in sizes}
    least = {
        n: min(np.mean([r[0] for r in rows]) for (_, m), rows in found.items() if m == n)
        for n in sizes
    }
    for title, cell in (
        ("promise held", lambda n: f"{100 * np.mean([r[0] for r in every[n]]):.1f}"),
        ("in the worst world", lambda n: f"{100 * least[n]:.0f}"),
        ("interval covers", lambda n: f"{100 * np.mean([r[1] for r in every[n]]):.1f}"),
        (
            "off by at most, median points",
            lambda n: f"{100 * np.median([r[2] for r in every[n]]):.1f}",
        ),
        ("'mended'", lambda n: f"{100 * np.mean([r[3] == 'mended' for r in every[n]]):.0f}"),
        (
            "'mended' with a true loss over .01",
            lambda n: f"{100 * np.mean([r[3] == 'mended' and r[4] < -0.01 for r in every[n]]):.1f}",
        ),
    ):
        lines.append(f"| {title} | " + " | ".join(cell(n) for n in sizes) + " |")
    calibrated = [
        r[3] == "mended" for (w, _), rows in found.items() if w == "calibrated" for r in rows
    ]
    lines += [
        "",
        f"The calibrated world was 'mended' in {100 * np.mean(calibrated):.1f} % of runs.",
    ]
    return lines


def main() -> None:
    warnings.filterwarnings("ignore")
    alone, together = promises(SIZES), promises((200, 1000, 5000), cluster=4)
    lines = [
        "# Mending: what it gains, and whether its promise holds",
        "",
        f"Written by `python -m simulations mend` on {machine()}; "
        f"{versions(['numpy', 'scipy', 'scikit-learn'])}.",
        "",
        "## Log loss above the best map, in per cent",
        "",
        "Each map is fitted on n labels of a real model and judged on its other rows; the best map "
        f"of that column and n is picked afterwards. Means over columns and {SPLITS} splits.",
        "",
        *maps_table(excess_of_maps()),
        "## Promises, per cent of runs",
        "",
        f"Confidences of real models and made ones; the truth is known; {RUNS} runs a cell.",
        "",
        *promise_table(alone),
        "",
        "## Four rows per question",
        "",
        "Rows of a question are right and wrong together (correlation .49 of the hidden scores).",
        "",
        *promise_table(together),
    ]
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "simulations" / "mend.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


if __name__ == "__main__":
    main()
