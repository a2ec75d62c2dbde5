"""How many labels do a design and side information save? Labels hidden and bought back."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
from simulations._planning_labels import Loop

from calibrant.core.arrays import named_stream
from calibrant.labels import pool_estimate
from studies._page import DATA, StudyPage

LABELS = 200
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "100"))
POOLS = (
    ("Meta-Llama-3.1-405B-Instruct-Turbo", "verbal_numerical_confidence"),
    ("gpt-4o-mini-2024-07-18", "verbal_numerical_confidence"),
    ("Qwen3-14B-think", "verbal_numerical_confidence"),
    ("gpt-4o-2024-08-06", "logit_perplexity_confidence"),
    ("Meta-Llama-3.1-8B-Instruct-Turbo", "verbal_numerical_confidence"),
    ("Qwen3-8B", "logit_perplexity_confidence"),
)
# Name, design, and which side information it uses.
WAYS = (
    ("random", "random", ()),
    ("stratified, confidence alone", "stratified", ()),
    ("stratified + agreement of answers", "stratified", ("agree",)),
    ("pps + agreement of answers", "pps", ("agree",)),
    ("stratified + judge right in 80 %", "stratified", ("judge80",)),
    ("stratified + judge right in 90 %", "stratified", ("judge90",)),
    ("pps + judge right in 90 %", "pps", ("judge90",)),
    ("pps + agreement and judge 90 %", "pps", ("judge90", "agree")),
)


def pools() -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]]:
    """Return confidences, outcomes and side information of every pool."""
    frame = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet").with_columns(
        pl.col("model").cast(pl.String), answer=pl.col("extracted_answer").cast(pl.String)
    )
    frame = frame.filter(pl.col("model") != "phi-4")
    votes = frame.filter(pl.col("answer").is_not_null()).group_by("question_id", "answer").len()
    frame = frame.join(votes, on=["question_id", "answer"], how="left").with_columns(
        agree=(pl.col("len").fill_null(1) - 1) / (frame["model"].n_unique() - 1)
    )
    found = {}
    for model, column in POOLS:
        rows = frame.filter((pl.col("model") == model) & pl.col(column).is_between(0, 1))
        p = rows[column].cast(pl.Float64).to_numpy()
        y = rows["correct"].cast(pl.Float64).to_numpy()
        rng = named_stream(0, "judge", model, column)
        side = {"agree": rows["agree"].to_numpy()}
        for name, right in (("judge80", 0.8), ("judge90", 0.9)):
            side[name] = np.where(rng.random(y.size) < right, y, 1 - y)
        found[f"{model}, {column.split('_')[0]}"] = (p, y, side)
    return found


def errors_of(name: str, runs: int = RUNS) -> list[dict]:
    """Return the squared errors and the coverage of every way on one pool."""
    p, y, sides = pools()[name]
    rows = []
    for label, design, wanted in WAYS:
        side = np.column_stack([sides[key] for key in wanted]) if wanted else None
        rng = named_stream(0, "ratio", name, label)
        found = []
        for _ in range(runs):
            loop = Loop(p, y, side, design, rng)
            for size in (80, 120) if design == "pps" else (LABELS,):
                loop.draw(size)
                loop.label(size)
            estimate = pool_estimate(loop.pool())
            gap, _, _, ece = loop.truth()
            found.append(
                (
                    (estimate.mean_gap.value - gap) ** 2,
                    (estimate.ece.value - ece) ** 2,
                    estimate.mean_gap.low <= gap <= estimate.mean_gap.high,
                    estimate.ece.low <= ece <= estimate.ece.high,
                    (estimate.mean_gap.high - estimate.mean_gap.low) ** 2,
                )
            )
        mean = np.mean(np.array(found, dtype=float), axis=0)
        rows.append({"pool": name, "way": label, **dict(zip("gecvw", mean.tolist(), strict=True))})
    return rows


def write(rows: list[dict]) -> None:
    """Write the page from the rows of all pools."""
    page = StudyPage("planning_ratio", "Labels that a design and side information save")
    frame = pl.DataFrame(rows)
    base = frame.filter(pl.col("way") == "random").select("pool", "g", "e", "w")
    joined = frame.join(base, on="pool", suffix="_random").with_columns(
        gap=pl.col("g") / pl.col("g_random"),
        ece=pl.col("e") / pl.col("e_random"),
        width=pl.col("w") / pl.col("w_random"),
    )
    page.text(
        f"{len(POOLS)} pools of MMLU-Pro answers, {LABELS} labels, {RUNS} repetitions each. The "
        "label ratio is the squared width of the interval of the gap against random labels: 0.5 "
        "means that half the labels are enough. Confidence alone saves next to nothing; what "
        "other models answered, or a judge, saves a third to two thirds."
    )
    table = []
    for label, _, _ in WAYS:
        part = joined.filter(pl.col("way") == label)
        table.append(
            (
                label,
                float(part["width"].mean()),
                float(part["width"].max()),
                float(np.exp(part["gap"].log().mean())),
                float(np.exp(part["ece"].log().mean())),
                f"{float(part['c'].mean()):.1%}",
                f"{float(part['v'].mean()):.1%}",
            )
        )
    page.table(
        ("way", "label ratio", "worst pool", "squared error, gap", "squared error, ECE",
         "gap covered", "ECE covered"),
        table,
    )  # fmt: skip
    data = joined.select("pool", "way", "width").to_dicts()
    chart = (
        alt.Chart(alt.Data(values=data))
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X(
                "width:Q", title="label ratio against random labels", scale={"domain": [0, 1.2]}
            ),
            y=alt.Y("way:N", sort=[way[0] for way in WAYS], title=None, axis={"labelLimit": 260}),
            color=alt.Color("pool:N", title=None, legend={"orient": "bottom", "columns": 2}),
        )
        .properties(width=420, height=240)
    )
    page.figure("ratio", chart, "Labels needed, as a share of random labels, pool by pool")
    page.write()


def main() -> None:
    write([row for name in pools() for row in errors_of(name)])


if __name__ == "__main__":
    # One pool at a time, for machines that others use as well.
    Path(sys.argv[2]).write_text(json.dumps(errors_of(list(pools())[int(sys.argv[1])])))
