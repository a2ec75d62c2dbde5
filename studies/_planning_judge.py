"""A grader without a language model as the cheap judge, a few people as gold: EVOUNA-NQ."""

import re

import numpy as np
import polars as pl
from tests.support import shared_data_folder

from calibrant.answers.semantics import grade_answers
from calibrant.core.arrays import named_stream
from calibrant.labels import judged_estimates

GOLD = (50, 100, 200, 400)


def human_table(limit: int | None = None) -> pl.DataFrame:
    """Answers judged by people, with the judge's verdict and a confidence from agreement."""
    frame = pl.read_parquet(shared_data_folder() / "labels" / "evouna_nq_human.parquet")
    frame = frame.filter(
        pl.col("human_correct").is_not_null(),
        ~pl.col("improper"),
        pl.col("answer").is_not_null(),
        pl.col("golden_answer").is_not_null(),
    ).with_columns(pl.col("model").cast(pl.String))
    if limit is not None:
        keep = frame["question_id"].unique(maintain_order=True)[:limit]
        frame = frame.filter(pl.col("question_id").is_in(keep.implode()))
    verdicts = grade_answers(
        frame["answer"].to_list(),
        [[text.split("/")] for text in frame["golden_answer"]],
        questions=frame["question"].to_list(),
    )
    # The judge may abstain; half a point says so without taking a side.
    judge = [0.5 if verdict is None else float(verdict) for verdict in verdicts]
    return frame.with_columns(
        judge=pl.Series(judge, dtype=pl.Float64),
        confidence=pl.Series(_agreement(frame), dtype=pl.Float64),
    )


def _agreement(frame: pl.DataFrame) -> list[float]:
    """Share of the other systems whose answer says the same, smoothed by one system each way.

    The data has no confidences; this one needs no label and no model.
    """
    words = [set(re.findall(r"\w+", text.lower())) for text in frame["answer"]]
    rows: dict[int, list[int]] = {}
    for row, question in enumerate(frame["question_id"]):
        rows.setdefault(question, []).append(row)
    share = [0.5] * frame.height
    for members in rows.values():
        for row in members:
            others = [words[k] for k in members if k != row]
            agree = sum(_same(words[row], other) for other in others)
            share[row] = (agree + 1) / (len(others) + 2)
    return share


def _same(a: set[str], b: set[str]) -> bool:
    small, large = sorted((a, b), key=len)
    return bool(small) and len(small & large) >= 0.75 * len(small)


def judge_table(frame: pl.DataFrame, repetitions: int, *, seed: int = 0) -> pl.DataFrame:
    """Draw gold labels again and again: coverage, width against gold alone, gold saved."""
    rows = []
    for (system,), part in frame.group_by("model", maintain_order=True):
        p, human, judge = (part[c].to_numpy() for c in ("confidence", "human_correct", "judge"))
        truth = {
            "accuracy": human.mean(),
            "gap": (human - p).mean(),
            "brier": ((p - human) ** 2).mean(),
        }
        for gold in GOLD:
            rng = named_stream(seed, "judge", system, gold)
            hits = dict.fromkeys(truth, 0)
            ratio: dict[str, list[float]] = {name: [] for name in truth}
            saved: dict[str, list[float]] = {name: [] for name in truth}
            for _ in range(repetitions):
                known = np.full(human.size, np.nan)
                chosen = rng.choice(human.size, gold, replace=False)
                known[chosen] = human[chosen]
                found = judged_estimates(p, known, judge)
                for name, value in truth.items():
                    part_ = found[name]
                    hits[name] += part_["combined"].low <= value <= part_["combined"].high
                    ratio[name].append(part_["width_ratio"])
                    saved[name].append(part_["gold_saved"])
            for name, value in truth.items():
                rows.append(
                    {
                        "system": system,
                        "answers": human.size,
                        "quantity": name,
                        "human": float(value),
                        "judge": float(
                            {"accuracy": judge, "gap": judge - p, "brier": (p - judge) ** 2}[
                                name
                            ].mean()
                        ),
                        "gold": gold,
                        "covers": hits[name] / repetitions,
                        "width_ratio": float(np.mean(ratio[name])),
                        "gold_saved": float(np.mean(saved[name])),
                    }
                )
    return pl.DataFrame(rows)
