"""What the epistemic estimators show in worlds with a known truth; writes its page in docs."""

from __future__ import annotations

import os
import time

import numpy as np
import polars as pl
from benchmarks.harness import DATA, ROOT, machine, versions

from calibrant.core import InputError
from calibrant.epistemic import (
    BinnedGroupingLoss,
    ConfidenceGroups,
    CostMatrix,
    DecisionRisk,
    GroupingLoss,
    pointwise_risk,
)

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "200"))
SETS = int(os.environ.get("CALIBRANT_REPEATS", "500"))
GRID = np.linspace(-1, 1, 1001)
ADULT = (
    "age", "workclass", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
)  # fmt: skip


def truth(x):
    return 1 / (1 + np.exp(-(1.5 * x[:, 0] + 1.5 * np.sin(4 * x[:, 1]) * (1 + x[:, 0]))))


def calibrated_on_first(x):
    other = np.linspace(-1, 1, 401)
    seen = [truth(np.c_[np.full(401, value), other]).mean() for value in GRID]
    return np.interp(x[:, 0], GRID, seen)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, calibrated_on_first(x), (rng.random(n) < truth(x)).astype(float)


def captured(lines):
    x, f, _ = draw(400_000, 12345)
    exact = float(np.mean((truth(x) - f) ** 2))
    rows = []
    for n, runs in ((1_000, RUNS), (10_000, RUNS // 2), (100_000, max(RUNS // 20, 3))):
        shares = {"tree": [], "binned": [], "forest": [], "boosting": []}
        for seed in range(runs):
            data = draw(n, seed)
            shares["tree"].append(GroupingLoss(repeats=1, seed=seed).fit(*data).value_)
            shares["binned"].append(BinnedGroupingLoss(seed=seed).fit(*data).value_)
            if seed < max(runs // 10, 3) and n <= 10_000:
                for model in ("forest", "boosting"):
                    found = GroupingLoss(model=model, repeats=1, seed=seed).fit(*data)
                    shares[model].append(found.value_)
        rows.append((f"{n:,}", runs, *(_mean(values, exact) for values in shares.values())))
    lines += [
        "## Captured share of the true grouping loss",
        "",
        f"Two features, known truth, a confidence that is calibrated and knows one of them; the "
        f"true grouping loss is {exact:.4f}. Mean over the runs ± its standard error; the spread "
        "of a single run in brackets. Forest and boosting on a tenth of the runs.",
        "",
        *_table(["rows", "runs", "honest tree", "binned (2023)", "forest", "boosting"], rows),
    ]


def one_world(others, known, unknown=0):
    """Return a sampler: the first feature is known to the confidence, `others` act unseen.

    The confidence is the mean of the truth given the first feature, so it is calibrated;
    `unknown` features more do nothing.
    """
    unseen = np.random.default_rng(9).uniform(-1, 1, (20_000, known))
    shift = others(unseen)
    mean = [float(np.mean(1 / (1 + np.exp(-1.5 * value - shift)))) for value in GRID[::5]]

    def sample(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, (n, 1 + known + unknown))
        p = 1 / (1 + np.exp(-1.5 * x[:, 0] - others(x[:, 1 : 1 + known])))
        return x, np.interp(x[:, 0], GRID[::5], mean), p, (rng.random(n) < p).astype(float)

    return sample


def first_world(n, seed):
    x, f, y = draw(n, seed)
    return x, f, truth(x), y


WORLDS = {
    "waves in two features": first_world,
    "one step": one_world(lambda u: np.where(u[:, 0] > 0, 1.5, -1.5), 1),
    "one of ten features acts": one_world(lambda u: 1.5 * u[:, 0], 1, 9),
    "product of two features": one_world(lambda u: 4 * u[:, 0] * u[:, 1], 2, 3),
    "sum of five features": one_world(lambda u: 1.5 * u.sum(axis=1), 5),
    "nothing to find": one_world(lambda u: 0 * u[:, 0], 1, 1),
}


def coverage(lines):
    rows = []
    for world, sample in WORLDS.items():
        _, f, p, _ = sample(400_000, 12345)
        exact = float(np.mean((p - f) ** 2))
        for n in (200, 400, 700, 1_000, 4_000, 16_000):
            rows.append((world, f"{n:,}", *_covered(sample, n, exact)))
    lines += [
        "## Coverage of the 95 % interval",
        "",
        f"{SETS} data sets per row, one split each. The estimate is a lower bound, so the claim "
        "that matters is that the lower end lies below the truth. 'Plain' is the interval of the "
        "estimate; widths are relative to it. 'Raised' has its upper end raised by what the tree "
        "gained when its rows were doubled. Below 675 rows that gain cannot be told from noise, "
        "and the upper end is the Brier score that recalibration leaves; from there on the "
        "interval is the raised one. Where many features act together a tree misses most of the "
        "loss, more rows or not, and the truth lies above any such interval: `still_rising` "
        "tells of it in the share of data sets given. "
        "With few rows the recalibration (10 % of them) is off by chance, and what it is off by "
        "is caught as well.",
        "",
        *_table(
            [
                "world", "rows", "captured", "lower end below the truth", "truth inside",
                "raised", "plain", "width", "still rising",
            ],
            rows,
        ),
    ]  # fmt: skip


def _covered(sample, n, exact):
    """Return the columns of one row of the table of coverage."""
    found = []
    for seed in range(SETS):
        x, f, _, y = sample(n, seed)
        try:
            loss = GroupingLoss(repeats=1, seed=seed).fit(x, f, y)
        except InputError:
            continue
        low, high = loss.interval_
        plain = 2 * loss.value_ - low
        fit = loss.fits_[0]
        reach = 1.96 * np.sqrt(fit.grouping.variance + fit.gain_variance)
        raised = loss.value_ + max(loss.gain_, 0.0) + reach
        found.append((loss.value_, low, high, raised, plain, loss.still_rising_))
    value, low, high, raised, plain, rising = np.array(found, dtype=float).T
    below = low <= exact
    return (
        f"{value.mean() / exact:.2f}" if exact > 1e-6 else "-",
        f"{below.mean():.3f}",
        f"{(below & (exact <= high)).mean():.3f}",
        f"{(below & (exact <= raised)).mean():.3f}",
        f"{(below & (exact <= plain)).mean():.3f}",
        f"{(high - low).mean() / (plain - low).mean():.2f}",
        f"{rising.mean():.2f}",
    )


def risks(lines):
    costs = CostMatrix(c10=1, c01=3)
    rows = []
    for n in (2_000, 20_000):
        for model in ("tree", "shrunk", "boosting"):
            found = []
            for seed in range(max(RUNS // 10, 4)):
                x, f, y = draw(n, seed)
                risk = DecisionRisk(costs=costs, model=model, seed=seed).fit(x, f, y)
                found.append((risk.total_.value, risk.saved_.value))
            total, saved = np.mean(found, axis=0)
            rows.append((f"{n:,}", model, f"{total:.4f}", f"{saved:.4f}"))
    x, f, _ = draw(400_000, 12345)
    exact = float(pointwise_risk(truth(x), f, costs).mean())
    lines += [
        "## Decision risk",
        "",
        f"Costs c10 = 1, c01 = 3; the true excess risk is {exact:.4f}. The plug-in mean leans "
        "upwards with small leaves, the saved cost is measured and stays below.",
        "",
        *_table(["rows", "residual model", "plug-in risk", "saved cost"], rows),
    ]


def false_flags(lines):
    path = DATA / "tabular" / "uci_adult_with_probs.parquet"
    if not path.exists():
        print(f"   left out: {path} is absent", flush=True)
        return
    table = pl.read_parquet(path)
    features, rows = table.select(ADULT), []
    for score in ("p_lr3", "p_hgb"):
        f = table[score].to_numpy().astype(float)
        runs = {"holm": 0, "bh": 0}
        for seed in range(RUNS):
            y = np.random.default_rng(seed).random(len(f)) < f
            found = ConfidenceGroups(seed=seed).fit(features, f, y)
            runs["holm"] += any(group.flagged for group in found.groups_)
            runs["bh"] += _any_by_bh(found)
        tested = len(found.groups_)
        rows.append((score, tested, RUNS, *(f"{runs[c] / RUNS:.3f}" for c in ("holm", "bh"))))
    lines += [
        "## False flags",
        "",
        "UCI Adult with outcomes redrawn from the score itself, so every flag is false. Share of "
        "runs with any flag at the level 0.05; the standard error of 0.05 over 200 runs is 0.015.",
        "",
        *_table(["score", "groups tested", "runs", "Holm", "Benjamini-Hochberg"], rows),
    ]


def _any_by_bh(found):
    from calibrant.epistemic.groups import adjusted

    return bool((adjusted([group.p_value for group in found.groups_], "bh") <= 0.05).any())


def _mean(values, exact):
    if not values:
        return "-"
    share = np.array(values) / exact
    spread = share.std(ddof=1)
    return f"{share.mean():.3f} ± {spread / np.sqrt(len(share)):.3f} ({spread:.3f})"


def _table(columns, rows):
    return [
        "| " + " | ".join(columns) + " |",
        "|" + " --- |" * len(columns),
        *("| " + " | ".join(str(value) for value in row) + " |" for row in rows),
        "",
    ]


def main() -> None:
    lines = [
        "# Simulations: epistemic error",
        "",
        f"Written by `python -m simulations epistemic` on {machine()}; "
        f"{versions(['numpy', 'scikit-learn'])}.",
        "",
    ]
    for part in (captured, coverage, risks, false_flags):
        started = time.perf_counter()
        part(lines)
        print(f"   {part.__name__}: {time.perf_counter() - started:.0f} s", flush=True)
    folder = ROOT / "docs" / "simulations"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "epistemic.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
