"""Does tuning lower the grouping loss? Base models against tuned ones, and one shared outcome."""

from __future__ import annotations

import polars as pl

from calibrant.verbs.groups import groups
from studies._page import DATA, StudyPage

SIZES = {"Qwen3-0.6B": 0.6, "Qwen3-1.7B": 1.7, "Qwen3-4B": 4, "Qwen3-8B": 8, "Qwen3-14B": 14}
SAID = "logit_perplexity_confidence"
ADULT = ("age", "education_num", "hours_per_week", "capital_gain", "marital_status", "occupation")


def main() -> None:
    page = StudyPage("tuned_models", "Does tuning lower the grouping loss?")
    base_and_tuned(page)
    one_outcome(page)
    page.write()


def base_and_tuned(page: StudyPage) -> None:
    """Write what `groups --tuned --sizes` says of models with a public base model."""
    page.heading("Base models against tuned ones, MMLU-Pro")
    columns = ["question_id", "category", "model", "correct", SAID, "token_length"]
    files = ("mmlu_pro_16_models", "mmlu_pro_base_models")
    tables = [
        pl.read_parquet(DATA / "scores" / f"{file}.parquet", columns=columns).with_columns(
            pl.col("model", "category").cast(pl.String)
        )
        for file in files
    ]
    names = [name for size in SIZES for name in (size, f"{size}-Base")]
    table = pl.concat(tables, how="vertical_relaxed").filter(pl.col("model").is_in(names))
    table = table.with_columns(item=pl.col("question_id"))
    page.text(
        "`calibrant groups TABLE --tuned Qwen3-4B-Base=Qwen3-4B,.. --sizes Qwen3-4B=4,..`, with "
        "the category as the only column. The two base models without a tuned one at hand "
        "(Qwen3-30B-A3B, Mistral-Small-3.1) are left out."
    )
    rows = []
    for estimator in ("boosting", "tree"):
        result = groups(
            table,
            confidence=SAID,
            on_invalid="drop",
            features=["category"],
            tuned=[f"{name}-Base={name}" for name in SIZES],
            sizes=SIZES,
            estimator=estimator,
            cluster="item",
        )
        trend = result["trend"]
        loss = "beyond a spline" if estimator == "boosting" else "as published (tree)"
        pairs = trend["tuned"]["pairs"]
        rows += [[loss, f"{p['base']} -> {p['tuned']}", _pair(p)] for p in pairs]
        rows.append([loss, "mean of the pairs", _four(trend["tuned"]["mean"])])
        rows.append([loss, "size doubled, tuned models", _four(trend["size"]["per_doubling"])])
    page.table(["grouping loss", "change", "by"], rows)


def one_outcome(page: StudyPage) -> None:
    """Write the exact difference of two scores of one outcome beside that of the tree."""
    page.heading("One outcome, two scores: UCI Adult")
    table = pl.read_parquet(DATA / "tabular" / "uci_adult_with_probs.parquet")
    table = table.with_row_index("question_id").filter(pl.col("split") == "test")
    table = table.with_columns(person=pl.col("question_id"))
    models = [table.with_columns(model=pl.lit(m), confidence=pl.col(m)) for m in ("p_lr3", "p_hgb")]
    result = groups(
        pl.concat(models), correct="y", features=list(ADULT), tuned=["p_lr3=p_hgb"],
        estimator="tree", cluster="person",
    )  # fmt: skip
    (pair,) = result["trend"]["tuned"]["pairs"]
    exact = pair["exact"]
    width = (exact["high"] - exact["low"]) / 2
    page.text(
        f"{table.height:,} people. The Brier score less the calibration loss differs between two "
        "models of one outcome exactly by their grouping losses over all that there is to know. "
        f"That difference is {_four(exact)}, known to +- {width:.4f}; the tree's, over "
        f"{len(ADULT)} columns, is {pair['difference']:+.4f} +- {pair['reach']:.4f}: the interval "
        f"of the tree is {pair['reach'] / width:.1f} times as wide, and it is about these columns "
        "alone."
    )


def _pair(pair: dict) -> str:
    reach = "" if pair["reach"] is None else f" +- {pair['reach']:.4f}"
    return f"{pair['difference']:+.4f}{reach}"


def _four(found: dict) -> str:
    return f"{found['value']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]"
