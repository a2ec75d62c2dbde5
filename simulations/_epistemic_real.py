"""Real confidences as populations: fresh labels are drawn, and the whole table is the truth."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
from benchmarks.harness import DATA

from calibrant.trust.deferral.answers import Answers

PATH = DATA / "scores" / "mmlu_pro_16_models.parquet"
SAID, STATED = "logit_perplexity_confidence", "verbal_numerical_confidence"
PRICE = {
    "Meta-Llama-3.1-405B-Instruct-Turbo": 3.5,
    "Meta-Llama-3.1-70B-Instruct-Turbo": 0.88,
    "Meta-Llama-3.1-8B-Instruct-Turbo": 0.18,
    "Qwen3-0.6B": 0.03,
    "Qwen3-1.7B": 0.06,
    "Qwen3-4B": 0.1,
    "Qwen3-8B": 0.18,
    "Qwen3-14B": 0.3,
    "gpt-4o-2024-08-06": 10.0,
    "gpt-4o-mini-2024-07-18": 0.6,
}


def table():
    """Return the 15 models that answer."""
    found = pl.read_parquet(PATH)
    text = [pl.col(name).cast(pl.String) for name in ("model", "category")]
    return found.with_columns(text).filter(pl.col("model") != "phi-4")


class Pools:
    """All pools of three models, cheapest first."""

    def __init__(self):
        rows = table()
        self.said, self.tokens, self.right = {}, {}, {}
        for (name,), part in rows.group_by("model"):
            ordered = part.sort("question_id")
            said = ordered[SAID].fill_null(0.5).fill_nan(0.5).to_numpy().astype(float)
            self.said[name] = np.clip(said, 0, 1)
            self.tokens[name] = ordered["token_length"].fill_null(0).to_numpy().astype(float)
            self.right[name] = ordered["correct"].to_numpy().astype(float)
            self.category = ordered["category"]
        self.all = list(combinations(sorted(self.said), 3))

    def answers(self, names):
        """Return the aligned answers of a pool."""
        price = {m: PRICE[m.removesuffix("-think")] for m in names}
        order = sorted(names, key=lambda m: price[m] * self.tokens[m].mean())

        def stacked(of):
            return np.column_stack([of[m] for m in order])

        cost = stacked(self.tokens) * np.array([price[m] for m in order])
        extra = {m: pl.DataFrame({"tokens": self.tokens[m]}) for m in order}
        features = pl.DataFrame({"category": self.category})
        return Answers(tuple(order), features, stacked(self.said), stacked(self.right), cost, extra)
