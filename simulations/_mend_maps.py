"""Maps from confidence to the chance of being right, fitted on labels of real models."""

from __future__ import annotations

import numpy as np
import polars as pl
from benchmarks.harness import DATA
from scipy.optimize import isotonic_regression
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calibrant.metrics.recalibration.calibrators import (
    BetaCalibrator,
    HistogramCalibrator,
    MendCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
CLIP = 0.002


def columns():
    """Yield (data set, name, confidences, outcomes) of real models, rows without one left out."""
    frame = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet")
    for said in ("verbal_numerical_confidence", "logit_perplexity_confidence"):
        for (model,), rows in frame.group_by("model", maintain_order=True):
            yield from _column("mmlu_pro", f"{model} {said[:6]}", rows, said)
    frame = pl.read_parquet(DATA / "scores" / "mcq_5_benchmarks_7_models.parquet")
    for (model,), rows in frame.filter(prompt="first").group_by("model", maintain_order=True):
        yield from _column("mcq", model, rows, "confidence")
    frame = pl.read_parquet(DATA / "scores" / "open_qa_6_models.parquet").with_columns(
        likelihood=pl.col("sequence_logprob").exp()
    )
    for (model, prompt), rows in frame.group_by("model", "prompt", maintain_order=True):
        for said in ("verbalized", "likelihood"):
            yield from _column("open_qa", f"{model} {prompt} {said}", rows, said)


def _column(data, name, rows, said):
    c = rows[said].cast(pl.Float64).to_numpy()
    y = rows["correct"].cast(pl.Float64).to_numpy()
    known = (c >= 0) & (c <= 1) & np.isfinite(y)
    c, y = c[known], y[known]
    if len(c) >= 1500 and 0.1 < y.mean() < 0.95 and c.std() > 0.01:
        yield data, name, c, y


def _ours(kind, **settings):
    return lambda c, y: kind(**settings).fit(c, y).predict


def _sigmoid(c, y):
    """Fit as CalibratedClassifierCV(method='sigmoid') does: logistic in the score."""
    fitted = LogisticRegression(C=1e6).fit(c[:, None], y)
    return lambda v: fitted.predict_proba(v[:, None])[:, 1]


def _isotonic(c, y):
    return IsotonicRegression(out_of_bounds="clip").fit(c, y).predict


def _venn_abers(c, y, points=60):
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
    "mend": _ours(MendCalibrator),
    "Venn-Abers": _venn_abers,
    "Platt": _ours(PlattCalibrator),
    "Platt, edge .02": _ours(PlattCalibrator, edge=0.02),
    "beta": _ours(BetaCalibrator),
    "beta, edge .02": _ours(BetaCalibrator, edge=0.02),
    "scikit-learn sigmoid": _sigmoid,
    "scikit-learn isotonic": _isotonic,
    "histogram": _ours(HistogramCalibrator),
    "temperature": _ours(TemperatureCalibrator),
    "as it is": lambda *_: lambda v: v,
}


def log_loss(p, y):
    q = np.clip(p, CLIP, 1 - CLIP)
    return float(-(y * np.log(q) + (1 - y) * np.log(1 - q)).mean())


def excess_of_maps(wanted, splits):
    """Return {n: {map: [per cent above the best map of a column, for each column]}} of a data set.

    Losses are averaged over splits first; the best map of a column and n is picked afterwards.
    """
    found = {}
    for number, (data, name, c, y) in enumerate(columns()):
        if data != wanted:
            continue
        losses = {}
        for split in range(splits):
            order = np.random.default_rng([number, split]).permutation(len(y))
            test = order[min(5000, len(y) // 2) :]
            for n in SIZES:
                rows = order[:n]
                if n <= len(y) - len(test) and 0 < y[rows].sum() < n:
                    cell = losses.setdefault(n, {key: [] for key in MAPS})
                    for key, fit in MAPS.items():
                        cell[key].append(log_loss(fit(c[rows], y[rows])(c[test]), y[test]))
        for n, cell in losses.items():
            best = min(map(np.mean, cell.values()))
            for key, each in cell.items():
                above = round(100 * (float(np.mean(each)) / best - 1), 3)
                found.setdefault(n, {}).setdefault(key, []).append(above)
        print(f"   {data} {name}", flush=True)
    return found


def maps_table(found):
    """Return lines of a table: per cent above the best map, mean over columns."""
    sizes = sorted(found, key=int)
    lines = [
        "| map | " + " | ".join(f"{int(n):,}" for n in sizes) + " | worst column from 200 on |",
        "|" + " --- |" * (len(sizes) + 2),
    ]
    for key in MAPS:
        later = max(max(found[n][key]) for n in sizes if int(n) >= 200)
        cells = [f"{np.mean(found[n][key]):.2f}" for n in sizes]
        lines.append(f"| {key} | " + " | ".join(cells) + f" | {later:.1f} |")
    return [*lines, ""]


def column_worlds():
    """Yield (name, columns, chance of being right): real rows, and a chance learned from them.

    Trees learn it from all columns, so that no line or product of the score is the truth. In the
    last two worlds the columns are noise, and the confidence is all there is.
    """
    table = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet")
    for (model,), part in table.group_by("model", maintain_order=True):
        frame = part.select(
            confidence=pl.col("verbal_numerical_confidence").cast(pl.Float64),
            perplexity=pl.col("logit_perplexity_confidence").cast(pl.Float64),
            length=pl.col("token_length").cast(pl.Float64),
            category=pl.col("category").cast(pl.String),
            right=pl.col("correct").cast(pl.Float64),
        ).drop_nulls()
        frame = frame.filter(pl.all_horizontal(pl.col("confidence", "perplexity").is_between(0, 1)))
        if frame.height < 6_000:
            continue
        codes = frame["category"].cast(pl.Categorical).to_physical().cast(pl.Float64)
        numbers = frame.select("confidence", "perplexity", "length").with_columns(codes)
        trees = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=12, categorical_features=[3], random_state=0
        )
        chance = trees.fit(numbers.to_numpy(), frame["right"].to_numpy())
        truth = chance.predict_proba(numbers.to_numpy())[:, 1]
        yield f"mmlu_pro {model}", frame.drop("right"), truth
    rng = np.random.default_rng(8)
    for name, said in (
        ("noise, five values", rng.choice([0.7, 0.8, 0.9, 0.95, 1.0], 12_000)),
        ("noise, continuous", rng.beta(8, 2, 12_000)),
    ):
        kinds = rng.choice(list("abcdefgh"), 12_000)
        frame = {"confidence": said, "length": rng.gamma(2, 100, 12_000), "category": kinds}
        yield name, pl.DataFrame(frame), 0.2 + 0.6 * said
