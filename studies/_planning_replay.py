"""Replay of real labels: pools whose labels are hidden and bought back under each design."""

from collections.abc import Callable

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from tests.support import shared_data_folder

from calibrant.core.arrays import named_stream
from calibrant.labels import LabelDraws, LabelPool, draw_wave, pool_estimate

BUDGETS = (50, 100, 200, 500, 1000, 2000)
BINS = 15
PRO_MODELS = (
    "Meta-Llama-3.1-405B-Instruct-Turbo",
    "Meta-Llama-3.1-8B-Instruct-Turbo",
    "Qwen3-8B",
    "Qwen3-14B-think",
    "gpt-4o-2024-08-06",
)
# Designs that learn from labels buy them in batches; the others need one.
BATCHES = {"random": 1, "stratified": 1, "pps": 2}


def mmlu_pools() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    path = shared_data_folder() / "scores" / "mcq_5_benchmarks_7_models.parquet"
    frame = pl.read_parquet(path).filter(
        (pl.col("dataset") == "mmlu") & (pl.col("prompt") == "first"),
        pl.col("correct").is_not_null(),
    )
    pools = {}
    for (model,), part in frame.group_by("model", maintain_order=True):
        pools[f"MMLU {model}"] = (*_arrays(part, "confidence"), None)
    return pools


def mmlu_pro_pools() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    path = shared_data_folder() / "scores" / "mmlu_pro_16_models.parquet"
    frame = pl.read_parquet(path).with_columns(
        pl.col("model").cast(pl.String), answer=pl.col("extracted_answer").cast(pl.String)
    )
    frame = frame.filter(pl.col("model") != "phi-4")  # it gave no answers at all
    votes = frame.filter(pl.col("answer").is_not_null()).group_by("question_id", "answer").len()
    frame = frame.join(votes, on=["question_id", "answer"], how="left").with_columns(
        peers=(pl.col("len").fill_null(1) - 1) / (frame["model"].n_unique() - 1)
    )
    column = pl.col("verbal_numerical_confidence")
    frame = frame.filter(column.is_not_null() & column.is_not_nan() & column.is_between(0, 1))
    pools = {}
    for (model,), part in frame.group_by("model", maintain_order=True):
        arrays = _arrays(part, "verbal_numerical_confidence")
        pools[f"MMLU-Pro {model}"] = (*arrays, part["peers"].to_numpy()[:, None])
    return pools


def _arrays(part: pl.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    return part[column].cast(pl.Float64).to_numpy(), part["correct"].cast(pl.Float64).to_numpy()


def recalibrated(confidence: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Platt scaling on the pool itself: a model that has just been recalibrated."""
    inside = np.clip(confidence, 1e-6, 1 - 1e-6)
    feature = np.log(inside / (1 - inside))[:, None]
    return LogisticRegression(C=1e6).fit(feature, correct).predict_proba(feature)[:, 1]


def bought(pool: LabelPool, truth: np.ndarray, budget: int, design: str, rng) -> LabelPool:
    """Buy `budget` labels in waves, and keep the chance of every item."""
    known = pool.correct.copy()
    wave, pi = np.zeros(known.size, dtype=np.intp), np.zeros(known.size)
    waves: list = []
    now = pool
    for batch in range(BATCHES[design]):
        size = budget * (batch + 1) // BATCHES[design] - budget * batch // BATCHES[design]
        drawn = draw_wave(now, size, design=design, rng=rng)
        known[drawn.index] = truth[drawn.index]
        wave[drawn.index], pi[drawn.index] = batch + 1, drawn.pi
        waves.append(drawn.wave)
        draws = LabelDraws(wave, pi, tuple(waves), tuple(entry.size for entry in waves))
        now = LabelPool(pool.confidence, known, pool.side, pool.bins, draws)
    return now


def plug_in(pool: LabelPool) -> float:
    """Return the error over the cells of the pool, from the labels alone."""
    lab = pool.labelled
    gaps = np.bincount(pool.cell[lab], (pool.correct - pool.confidence)[lab], pool.cells)
    return float(np.abs(gaps).sum() / lab.sum())


def corrected(pool: LabelPool) -> float:
    return pool_estimate(pool).ece.value


def two_phase_grid(pool: LabelPool, truth: np.ndarray, budget: int, rng) -> float:
    """The published strategy: N = L sqrt(m / eps) levels, resolve signs, exploit the resolved.

    L = 1, and the error rate is given to it (an oracle), as its schedule needs it.
    """
    p = pool.confidence
    eps = max(1 - truth.mean(), 0.01)
    levels = int(np.clip(np.sqrt(budget / eps), 2, budget // 4))
    cell = np.minimum((p * levels).astype(int), levels - 1)
    items = np.bincount(cell, minlength=levels)
    quota = max(1, budget // (2 * np.count_nonzero(items)))
    order = rng.permutation(p.size)
    order = order[np.argsort(cell[order].astype(np.int16), kind="stable")]
    rank = np.arange(p.size) - (np.cumsum(items) - items)[cell[order]]
    first = order[rank < quota]
    seen = np.bincount(cell[first], minlength=levels)
    residual = truth - p
    gap = np.bincount(cell[first], weights=residual[first], minlength=levels) / np.maximum(seen, 1)
    resolved = (seen > 0) & (np.abs(gap) > 2 * np.sqrt(eps / np.maximum(seen, 1)))
    rest = order[(rank >= quota) & resolved[cell[order]]]
    spend = min(max(budget - first.size, 0), rest.size)
    share = items / p.size
    if not spend:
        return float((share * np.abs(gap))[resolved].sum())
    second = rng.choice(rest, spend, replace=False)
    return float(share[resolved].sum() * (np.sign(gap[cell[second]]) * residual[second]).mean())


STRATEGIES: dict[str, tuple[str, Callable[[LabelPool], float], bool]] = {
    "random, plug-in": ("random", plug_in, False),
    "random, corrected": ("random", corrected, False),
    "stratified, plug-in": ("stratified", plug_in, False),
    "stratified, corrected": ("stratified", corrected, False),
    "pps, corrected": ("pps", corrected, False),
    "stratified, corrected, with peers": ("stratified", corrected, True),
    "pps, corrected, with peers": ("pps", corrected, True),
}
GRID = "two-phase grid of the paper"


def replay(pools: dict, repetitions: int, *, recalibrate: bool, seed: int = 0) -> pl.DataFrame:
    """Return the errors of every strategy: one row per pool, budget, strategy."""
    rows = []
    for name, (confidence, truth, peers) in pools.items():
        p = recalibrated(confidence, truth) if recalibrate else confidence
        target = plug_in(LabelPool(p, truth, None, BINS))
        rng = named_stream(seed, "replay", name, recalibrate)
        hidden = np.full(p.size, np.nan)
        for budget in BUDGETS:
            errors: dict[str, list[float]] = {}
            for _ in range(repetitions):
                drawn: dict[tuple[str, bool], LabelPool] = {}
                for label, (design, estimate, side) in STRATEGIES.items():
                    if side and peers is None:
                        continue
                    if (design, side) not in drawn:
                        pool = LabelPool(p, hidden, peers if side else None, BINS)
                        drawn[design, side] = bought(pool, truth, budget, design, rng)
                    errors.setdefault(label, []).append(estimate(drawn[design, side]) - target)
                grid = two_phase_grid(LabelPool(p, hidden, None, BINS), truth, budget, rng)
                errors.setdefault(GRID, []).append(grid - target)
            for label, values in errors.items():
                rows.append(
                    {
                        "pool": name,
                        "recalibrated": recalibrate,
                        "ece": target,
                        "labels": budget,
                        "strategy": label,
                        "error": float(np.mean(np.abs(values))),
                        "bias": float(np.mean(values)),
                    }
                )
    return pl.DataFrame(rows)


def ratios(errors: pl.DataFrame) -> pl.DataFrame:
    """Return the geometric mean over pools of each strategy's error over random labelling's."""
    keys = ["pool", "recalibrated", "labels"]
    base = errors.filter(pl.col("strategy") == "random, plug-in").select(*keys, base="error")
    joined = errors.join(base, on=keys).with_columns(ratio=pl.col("error") / pl.col("base"))
    return joined.group_by("recalibrated", "set", "strategy", "labels").agg(
        mean=pl.col("ratio").log().mean().exp(),
        best=pl.col("ratio").min(),
        worst=pl.col("ratio").max(),
        error=pl.col("error").mean(),
        pools=pl.len(),
    )


def all_errors(repetitions: int) -> pl.DataFrame:
    pools = mmlu_pools()
    pro = mmlu_pro_pools()
    pools |= {name: pro[name] for name in pro if name.removeprefix("MMLU-Pro ") in PRO_MODELS}
    parts = [replay(pools, repetitions, recalibrate=flag) for flag in (False, True)]
    return pl.concat(parts).with_columns(set=pl.col("pool").str.split(" ").list.first())
