"""Do the rates, sequences, alarms and intervals of planning hold? Seeded, with known truth."""

import json
import os
from pathlib import Path

import numpy as np
from scipy.stats import binom

from calibrant.core.arrays import named_stream
from calibrant.labels import judged_mean
from calibrant.metrics.stats.multiplicity import CalibrationSequence
from simulations import _planning_labels as labels
from simulations._planning_audit import QUANTITIES as AUDITED
from simulations._planning_audit import audit_coverage
from simulations._planning_plans import agreement
from simulations._planning_rates import active_error, passive_error, slope

RESULTS = Path(__file__).resolve().parent / "planning_results"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "simulations" / "planning.md"
RUNS = {
    "passive": 200,
    "active": 1000,
    "sequence": 1000,
    "judge": 5000,
    "coverage": 1000,
    "audit": 1000,
    "stop": 300,
    "ever": 600,
    "plan": 400,
}
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZES = np.array([2000, 4000, 8000, 16_000, 32_000, 64_000])


def passive_slopes(repetitions, *, waves=(1, 4, 16, 64, 256), sizes=SIZES, seed=0):
    """Slope of the passive error for L = 1 and more and more zero crossings."""
    found = {}
    for k in waves:
        rng = named_stream(seed, "passive", k)
        errors = [passive_error(m, 0.1, 1 / (2 * np.pi * k), k, repetitions, rng) for m in sizes]
        found[k] = slope(sizes, errors)
    return found


def active_slopes(repetitions, *, waves=(1, 2, 3, 4), sizes=SIZES, seed=0):
    """Slope of the active error, and its spread over L at each size, for amplitude 0.1."""
    errors = {}
    for k in waves:
        rng = named_stream(seed, "active", k)
        errors[k] = [active_error(m, 0.1, 0.1, k, repetitions, rng) for m in sizes]
    table = np.array(list(errors.values()))
    spread = table.std(axis=0) / table.mean(axis=0)
    return {k: slope(sizes, row) for k, row in errors.items()}, spread


def detection_power(products=(0.1, 0.3, 1.0, 3.0, 10.0), rates=(0.01, 0.02, 0.05, 0.1)):
    """Exact power of the best 5 % test of error rate eps against 2 eps, by m eps."""
    table = {}
    for eps in rates:
        row = []
        for product in products:
            m = max(1, round(product / eps))
            count = np.arange(m + 1)
            null, other = binom.pmf(count, m, eps), binom.pmf(count, m, 2 * eps)
            tail = np.cumsum(null[::-1])[::-1]
            cut = int(np.argmax(tail <= 0.05)) if (tail <= 0.05).any() else m + 1
            power = other[cut:].sum()
            if cut > 0:  # randomise at the boundary, so that steps of the lattice do not show
                above = tail[cut] if cut <= m else 0.0
                power += (0.05 - above) / null[cut - 1] * other[cut - 1]
            row.append(float(power))
        table[eps] = row
    return table


def _world(kind):
    def rate(p):
        if kind == "calibrated":
            return p
        if kind == "over-confident":
            return np.clip(p - 0.1, 0, 1)
        return np.clip(p + 0.1 * np.sin(8 * p), 0, 1)

    return rate


def sequence_coverage(repetitions, *, labels=10_000, bins=15, seed=0):
    """Share of runs in which the ECE, and every gap, stay inside at each of `labels` peeks."""
    found = {}
    for kind in ("calibrated", "over-confident", "wavy"):
        rate = _world(kind)
        p = named_stream(seed, "truth", kind).beta(6, 1, 1_000_000)
        cell = np.minimum((p * bins).astype(int), bins - 1)
        mass = np.bincount(cell, minlength=bins)
        gap = np.bincount(cell, weights=p - rate(p), minlength=bins)
        target = np.abs(gap).sum() / p.size
        gap = gap / np.maximum(mass, 1)
        rng = named_stream(seed, "sequence", kind)
        good = gaps = 0
        for _ in range(repetitions):
            p = rng.beta(6, 1, labels)
            sequence = CalibrationSequence(bins=bins)
            path = sequence.update(p, rng.random(labels) < rate(p))
            good += bool((path.low <= target).all() and (path.high >= target).all())
            low, high = sequence.gaps()
            gaps += bool(((low <= gap) & (gap <= high))[mass > 1000].all())
        found[kind] = (good / repetitions, gaps / repetitions, sequence.ece, float(target))
    return found


def judge_coverage(repetitions, *, gold=100, total=2000, seed=0):
    """Coverage and width of gold-only and combined intervals, for judges of several qualities."""
    found = {}
    for quality in (0.5, 0.8, 0.9, 0.97):
        rng = named_stream(seed, "judge", quality)
        combined = alone = 0
        ratio = []
        for _ in range(repetitions):
            truth = rng.random(total) < 0.75
            judge = np.where(rng.random(total) < quality, truth, ~truth)
            estimate = judged_mean(truth[:gold], judge[:gold], judge[gold:])
            combined += estimate.combined.low <= 0.75 <= estimate.combined.high
            alone += estimate.gold_only.low <= 0.75 <= estimate.gold_only.high
            ratio.append(
                (estimate.combined.high - estimate.combined.low)
                / (estimate.gold_only.high - estimate.gold_only.low)
            )
        found[quality] = (combined / repetitions, alone / repetitions, float(np.mean(ratio)))
    return found


def real_pools():
    """Pools with real confidences and outcomes, and calibrated ones of the same confidences."""
    import polars as pl

    path = SHARED / "scores" / "mmlu_pro_16_models.parquet"
    if not path.exists():
        return {}
    table = pl.read_parquet(path)
    found = {}
    for model, column in (
        ("gpt-4o-2024-08-06", "verbal_numerical_confidence"),
        ("Qwen3-14B-think", "logit_perplexity_confidence"),
    ):
        rows = table.filter(
            (pl.col("model") == model)
            & pl.col(column).is_between(0, 1)
            & pl.col("correct").is_not_null()
        ).head(2500)
        p, y = rows[column].to_numpy(), rows["correct"].cast(pl.Float64).to_numpy()
        short = f"{model.split('-20')[0]}, {column.split('_')[0]}"
        found[short] = (p, y)
        rng = named_stream(0, "outcomes", short)
        found[f"{short}, calibrated"] = (p, (rng.random(p.size) < p).astype(float))
    return found


def loop_pools():
    """Every real pool labelled by confidence alone, and with a judge that is right in 85 %."""
    table = {}
    for name, (p, y) in real_pools().items():
        rng = named_stream(0, "judge", name)
        side = np.where(rng.random(y.size) < 0.85, y, 1 - y)[:, None]
        table[f"{name} | stratified"] = (p, y, None, "stratified")
        table[f"{name} | pps, judge"] = (p, y, side, "pps")
    return table


def _table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join(["---"] * len(columns)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def _page(parts):
    text = ["# Simulations behind planning", ""]
    text += ["Written by `python -m simulations planning`; the truth is known here.", ""]
    for title, comment, table in parts:
        text += [f"## {title}", "", comment, "", table, ""]
    return "\n".join(text)


def _share(value):
    return f"{value:.1%}"


def coverage_part():
    """Coverage of every quantity per design and judge."""
    found = labels.design_coverage(RUNS["coverage"])
    return (
        "Coverage by design and judge",
        f"2,000 answers, 200 labels, {RUNS['coverage']:,} runs; nominal 95 %. Three waves come "
        "back to 70 %. A biased judge passes a third of the wrong answers. Bounds of the ECE hold "
        "for any pattern of gaps, so with most patterns, and where the interval starts at 0, they "
        "cover more often than they say.",
        _table(
            ("world", "design", "waves", "judge", *labels.QUANTITIES, "width of the gap"),
            [
                (*key, *(_share(v) for v in row[:-1]), f"{row[-1]:.3f}")
                for key, row in found.items()
            ],
        ),
    )


def audit_part():
    """Coverage of an audit that reads the labels of a store."""
    found = audit_coverage(RUNS["audit"])
    return (
        "Coverage of an audit of stored labels",
        f"As before, {RUNS['audit']:,} runs, but the labels are audited as a table, each with the "
        "weight of its draw; the truth is that of answers without end. An audit reads from the "
        "store how evenly a draw was spread, and takes the noise from neighbours on that line. It "
        "makes no regression on the judge: `label status --judge` has narrower intervals.",
        _table(
            ("world", "design", "waves", "judge", *AUDITED, "width of the gap"),
            [
                (*key, *(_share(v) for v in row[:-1]), f"{row[-1]:.3f}")
                for key, row in found.items()
            ],
        ),
    )


def stopping_part():
    """Precision goals on real confidences."""
    stops = labels.precision_stop(loop_pools(), RUNS["stop"], step=10)
    return (
        "Stopping at a precision of 5 points",
        f"A look after every 10 labels, {RUNS['stop']:,} runs on real confidences; nominal 95 %.",
        _table(
            ("pool", "design", "labels, mean", "gap covered", "ECE covered"),
            [(*k.split(" | "), f"{n:.0f}", _share(a), _share(b)) for k, (n, a, b) in stops.items()],
        ),
    )


def _ever(budget):
    """How often bounds that hold at all times ever fail, on every real pool."""
    found = labels.ever_missed(loop_pools(), RUNS["ever"], budget=budget)
    return _table(
        ("pool", "design", "upper", "lower"),
        [(*name.split(" | "), *map(_share, missed)) for name, missed in found.items()],
    )


def looks_part():
    """Bounds that hold for ever, with waves that come back in parts."""
    return (
        "Bounds that hold at all times",
        f"Waves of 50 come back in parts of 10, a look after each part up to 600 labels, "
        f"{RUNS['ever']:,} runs: how often a bound ever fails; nominal 5 % each.",
        _ever(None),
    )


def budget_part():
    """Bounds that hold up to a budget."""
    return (
        "Bounds that hold up to a budget",
        f"The same with a budget of 600 labels that was fixed beforehand, {RUNS['ever']:,} runs.",
        _ever(600),
    )


def plan_part():
    """Planned labels against those at which label and audit make the claim."""
    pools = {k: p for k, (p, _) in real_pools().items() if "calibrated" not in k}
    found = agreement(pools, RUNS["plan"])
    return (
        "Plans against the labels that are needed",
        f"The claim 'ECE below 5 points' on calibrated answers with these confidences, 2,500 of "
        f"them: labels planned for a power of 80 %, and labels at which `label` and `audit` show "
        f"it in 80 % of {RUNS['plan']:,} runs. `label` speaks of the pool, `audit` of answers to "
        "come, and a plan can be asked for either (`--target`).",
        _table(
            ("confidences of", "planned, pool", "label", "planned, population", "audit"),
            [
                (k, pool, f"{label:.0f} ({label / pool - 1:+.0%})",
                 people, f"{audit:.0f} ({audit / people - 1:+.0%})")
                for k, (pool, people, label, audit) in found.items()
            ],
        ),
    )  # fmt: skip


def rate_parts():
    """Rates, phase transition, sequences, judges."""
    passive = passive_slopes(RUNS["passive"])
    active, spread = active_slopes(RUNS["active"])
    ratio = np.mean(list(active.values())) / passive[max(passive)]
    power = detection_power()
    cover = sequence_coverage(RUNS["sequence"])
    judge = judge_coverage(RUNS["judge"])
    slopes = [(f"passive, {k} waves, L = 1", f"{v:.3f}") for k, v in passive.items()]
    slopes += [
        (f"active, {k} waves, L = {0.2 * np.pi * k:.2f}", f"{v:.3f}") for k, v in active.items()
    ]
    slopes += [("mean active slope over last passive slope", f"{ratio:.2f}")]
    slopes += [("largest spread (CV) of the active error over L", f"{spread.max():.0%}")]
    return [
        (
            "Rates",
            f"Slope of log error against log labels, 2,000 to 64,000 labels, eps = 0.1, "
            f"{RUNS['passive']:,} passive and {RUNS['active']:,} active runs per size. With the "
            "steepness held fixed and ever more zero crossings, the passive slope goes to -1/3; "
            "for one smooth gap it is near -1/2, better than the worst case. The active slope is "
            "near -1/2 and its error does not depend on L, as long as signs can be resolved.",
            _table(("audit", "slope"), slopes),
        ),
        (
            "Phase transition",
            "Exact power of the best 5 % test that the error rate is 2 eps, not eps.",
            _table(
                ("eps", *(f"m eps = {x}" for x in (0.1, 0.3, 1, 3, 10))),
                [(eps, *(f"{x:.2f}" for x in row)) for eps, row in power.items()],
            ),
        ),
        (
            "Confidence sequences",
            f"{RUNS['sequence']:,} runs of 10,000 labels, a peek after every label; nominal 95 %.",
            _table(
                ("world", "ECE always inside", "all gaps always inside", "last interval", "ECE"),
                [
                    (k, f"{a:.1%}", f"{b:.1%}", f"[{e[0]:.3f}, {e[1]:.3f}]", f"{t:.3f}")
                    for k, (a, b, e, t) in cover.items()
                ],
            ),
        ),
        (
            "Judge and gold",
            f"100 gold labels, 1,900 more by a judge, {RUNS['judge']:,} runs; nominal 95 %.",
            _table(
                ("judge is right", "combined covers", "gold alone covers", "width ratio"),
                [(k, f"{a:.1%}", f"{b:.1%}", f"{r:.2f}") for k, (a, b, r) in judge.items()],
            ),
        ),
    ]


PARTS = {
    "rates": rate_parts,
    "coverage": coverage_part,
    "audit": audit_part,
    "stopping": stopping_part,
    "looks": looks_part,
    "budget": budget_part,
    "plan": plan_part,
}


def main() -> None:
    """Run every part, or those named by CALIBRANT_PLANNING; write the page from all results."""
    for name in os.environ.get("CALIBRANT_PLANNING", ",".join(PARTS)).split(","):
        found = PARTS[name]()
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(found if isinstance(found, list) else [found], indent=1)
        (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    stored = [RESULTS / f"{name}.json" for name in PARTS]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    page = _page(
        [part for path in stored if path.exists() for part in json.loads(path.read_text())]
    )
    PAGE.write_text(page, encoding="utf-8")
