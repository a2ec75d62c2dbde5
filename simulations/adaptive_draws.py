"""Stopping a question's draws when its mode is settled: false modes, calls saved, Sem-ECE error.

Worlds: the pools of recorded draws, each pool's shares taken for the truth and drawn from anew.
Settling the mode saves draws; it does not save draws for Sem-ECE of a given error, since a question
that stops when all draws agree has its confidence read too high.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from benchmarks.harness import DATA
from scipy.optimize import isotonic_regression

from calibrant.collect.rounds import StopRule, mode_settled
from calibrant.core.rng import named_stream

Floats: TypeAlias = npt.NDArray[np.float64]
Pools: TypeAlias = list[tuple[Floats, npt.NDArray[np.bool_]]]
BINS = 10


def false_modes(*, runs: int = 1000, most: int = 100, chance: float = 0.05) -> list[list[Any]]:
    """Share of runs in which a look after every draw ever settles on a wrong mode."""
    worlds = {
        "two classes, 0.5 and 0.5": [0.5, 0.5],
        "0.51 and 0.49": [0.51, 0.49],
        "0.4, 0.38, 22 x 0.01": [0.4, 0.38, *[0.01] * 22],
        "30 equal classes, one 5 % larger": list(np.r_[1.05, np.ones(29)] / 30.05),
    }
    rows = []
    for name, shares in worlds.items():
        wrong = 0
        for number in range(runs):
            rng = named_stream(number, "false modes", name)
            p = np.asarray(shares) / np.sum(shares)
            # Classes come in any order of appearance; the mode is class 0 (class 1 where equal).
            draws = rng.choice(len(p), most, p=p)
            truth = 1 if p[0] == p[1] else 0
            wrong += _first_name(draws, chance) not in (None, truth)
        rows.append([name, runs, wrong / runs])
    return rows


def _first_name(draws: npt.NDArray[np.int64], chance: float) -> int | None:
    seen = draws.tolist()
    for n in range(1, len(seen) + 1):
        if mode_settled(seen[:n], chance=chance):
            return int(np.bincount(draws[:n]).argmax())
    return None


def sem_ece(confidence: Floats, right: Floats) -> float:
    """Binned error with ten bins of equal width."""
    cells = np.minimum((confidence * BINS).astype(int), BINS - 1)
    sums = np.bincount(cells, weights=right - confidence, minlength=BINS)
    return float(np.abs(sums).sum() / len(confidence))


def one_question(
    draws: npt.NDArray[np.int64], right: npt.NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return c1, its label, c2 and its label, ties averaged, Sem2 over ten half-splits."""
    counts = np.bincount(draws, minlength=len(right))
    top = counts == counts.max()
    c1, a1 = counts.max() / len(draws), float(right[top].mean())
    half = len(draws) // 2
    c2 = a2 = 0.0
    for _ in range(10):
        block = np.bincount(rng.permutation(draws)[:half], minlength=len(right))
        tied = block == block.max()
        c2 += float(((counts - block)[tied] / (len(draws) - half)).mean()) / 10
        a2 += float(right[tied].mean()) / 10
    return c1, a1, c2, a2


def replicate(
    pools: Pools, size: Callable[[list[int]], int], rng: np.random.Generator, most: int
) -> tuple[float, float, float]:
    """Return Sem1-ECE, Sem2-ECE and the mean number of draws of one study."""
    rows, used = [], 0
    for shares, right in pools:
        draws = rng.choice(len(shares), most, p=shares)
        n = size(draws.tolist())
        used += n
        rows.append(one_question(draws[:n], right, rng))
    c1, a1, c2, a2 = np.array(rows).T
    return sem_ece(c1, a1), sem_ece(c2, a2), used / len(pools)


def adaptive_size(rule: StopRule) -> Callable[[list[int]], int]:
    def size(draws: list[int]) -> int:
        n = 0
        while (wanted := rule.next_size(draws[:n])) > n:
            n = wanted
        return n

    return size


def compare(pools: Pools, *, most: int, runs: int, name: str) -> list[list[Any]]:
    """Error against the pool's own truth, at fixed sizes and adaptively."""
    top = [(shares.max(), float(right[shares == shares.max()].mean())) for shares, right in pools]
    truth = sem_ece(*np.array(top).T)
    designs: dict[str, Callable[[list[int]], int]] = {
        f"fixed {n}": (lambda _d, n=n: n) for n in (6, 8, 10, 12, 14, 16, 18, 20) if n <= most
    }
    for chance in (0.1, 0.05, 0.02):
        designs[f"adaptive {chance}"] = adaptive_size(StopRule(most, 4, 2, chance))
    rows = []
    for label, size in designs.items():
        found = np.array(
            [
                replicate(pools, size, named_stream(run, "adaptive", name, label), most)
                for run in range(runs)
            ]
        )
        errors = np.sqrt(((found[:, :2] - truth) ** 2).mean(axis=0))
        bias = found[:, :2].mean(axis=0) - truth
        rows.append([name, label, float(found[:, 2].mean()), *errors, *bias])
    return rows


def recorded_pools(which: str, *, limit: int = 400) -> Pools:
    """Shares and grades of the recorded pools of one model."""
    from calibrant.semantics import Options
    from calibrant.semantics.settle import Group, Settler

    if which == "deepseek_v3":
        table = pl.read_parquet(DATA / "mace" / "deepseek_v3.parquet")
        rows = table.sample(limit, seed=0).select("question", "references", "samples").rows()
    else:
        asked = pl.read_parquet(DATA / "local_models" / "questions.parquet")
        drawn = pl.read_parquet(DATA / "local_models" / "draws.parquet")
        drawn = drawn.filter(pl.col("model") == which).group_by("question_id").agg("text")
        table = asked.join(drawn, on="question_id").rename({"text_right": "samples"})
        rows = table.sample(limit, seed=0).select("text", "references", "samples").rows()
    settler = Settler(Options())
    pools: Pools = []
    for question, references, samples in rows:
        texts = [text.strip() or "-" for text in samples]
        group = Group(texts, [1] * len(texts), question, references)
        found = settler.settle([group])[0]
        ids = np.array(found.clusters.ids)
        counts = np.bincount(ids)
        right = np.zeros(len(counts), dtype=bool)
        for class_id, grade in zip(ids, found.grades, strict=True):
            right[class_id] |= bool(grade.correct)
        pools.append((counts / counts.sum(), right))
    return pools


def saved(rows: list[list[Any]]) -> list[list[Any]]:
    """For each adaptive design: the fixed draws with the same error, and what is saved.

    Errors at fixed sizes are smoothed to fall with the size, and read off between sizes.
    """
    fixed = [row for row in rows if row[1].startswith("fixed")]
    found = []
    for row in rows:
        if row[1].startswith("fixed"):
            continue
        for place, metric in ((3, "Sem1"), (4, "Sem2")):
            sizes = np.array([f[2] for f in fixed])
            smooth = isotonic_regression([f[place] for f in fixed], increasing=False).x
            equal = float(np.interp(-row[place], -smooth, sizes))
            found.append([row[0], row[1], metric, row[2], row[place], equal, 1 - row[2] / equal])
    return found


def main() -> None:
    print("false modes: world, runs, share (chance 0.05, a look after every draw)")
    for row in false_modes():
        print("  ", *row)
    for which in ("deepseek_v3", "qwen2.5-coder-1.5b"):
        rows = compare(recorded_pools(which, limit=200), most=20, runs=40, name=which)
        print("draws: pools, design, mean draws, error of Sem1, of Sem2, bias of Sem1, of Sem2")
        for row in rows:
            print("  ", *row[:2], *(f"{value:.4f}" for value in row[2:]))
        print("saved: pools, design, metric, draws, error, fixed draws with that error, saved")
        for row in saved(rows):
            print("  ", *row[:3], *(f"{value:.4f}" for value in row[3:]))


if __name__ == "__main__":
    main()
