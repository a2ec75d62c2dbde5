"""Does the better calibrated model stay the better one at equal accuracy? On real models."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from calibrant.comparison.reversal import gap_correlation, reversal_summary
from calibrant.confidence import score_table
from calibrant.semantics import annotate
from calibrant.verbs.compare import compare
from studies._confidence_tables import local_draws
from studies._page import DATA, StudyPage, estimate

QWEN_SIZES = ("0.6B", "1.7B", "4B", "8B", "14B")
LLAMA = tuple(f"Meta-Llama-3.1-{size}-Instruct-Turbo" for size in ("8B", "70B", "405B"))
GPT = ("gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18")
CONFIDENCES = ("verbal_numerical_confidence", "logit_perplexity_confidence")


def mmlu_pairs() -> list[tuple[str, str, str]]:
    thinking = [("think", f"Qwen3-{size}", f"Qwen3-{size}-think") for size in QWEN_SIZES]
    sizes = [("size", f"Qwen3-{a}", f"Qwen3-{b}") for a, b in combinations(QWEN_SIZES, 2)] + [
        ("size", a, b) for a, b in combinations(LLAMA, 2)
    ]
    return [*thinking, *sizes, ("size", *GPT)]


def compared(path: Any, pairs: list[tuple[str, str, str]], **options: Any) -> list[dict[str, Any]]:
    rows = []
    for kind, a, b in pairs:
        document = compare(path, models=[a, b], on_invalid="drop", **options).to_dict()
        rows += [{"kind": kind, **pair} for pair in document["pairs"]]
    return rows


def summary_rows(rows: list[dict[str, Any]]) -> list[list[Any]]:
    gaps = {
        view: np.array([row["gaps"][view]["ece"]["value"] for row in rows])
        for view in ("raw", "da", "ia")
    }
    found = reversal_summary(gaps)
    accuracy = np.array([row["accuracy_gap"]["value"] for row in rows])
    lines = []
    for view in ("da", "ia"):
        turned = [row for row in rows if row["reversal"][view]]
        resolved = sum(row["reversal_resolved"][view] for row in rows)
        by_interval = sum(
            row["reversal"][view] and not _holds_zero(row, "raw") and not _holds_zero(row, view)
            for row in rows
        )
        share = found["rates"][view].to_dict()
        lines.append(
            [
                f"raw winner loses under {view.upper()}",
                f"{len(turned)} of {len(rows)}",
                estimate(share),
                by_interval,
                resolved,
            ]
        )
    lines.append(["DA and IA agree", "", estimate(found["agreement"].to_dict()), "", ""])
    for view in gaps:
        value = gap_correlation(accuracy, gaps[view]).to_dict()
        lines.append(
            [f"correlation of accuracy gap and {view} ECE gap", "", estimate(value), "", ""]
        )
    return lines


def _holds_zero(row: dict[str, Any], view: str) -> bool:
    gap = row["gaps"][view]["ece"]
    return bool(gap["low"] <= 0 <= gap["high"])


def scatter(rows: list[dict[str, Any]], view: str = "da") -> alt.Chart:
    table = pl.DataFrame(
        [
            {
                "raw ECE gap": row["gaps"]["raw"]["ece"]["value"],
                "aligned ECE gap": row["gaps"][view]["ece"]["value"],
                "accuracy gap": row["accuracy_gap"]["value"],
                "kind": row["kind"],
            }
            for row in rows
        ]
    )
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]}))
    return (
        zero.mark_rule(color="#999").encode(x="zero:Q")
        + zero.mark_rule(color="#999").encode(y="zero:Q")
        + alt.Chart(table)
        .mark_point(size=60, filled=True)
        .encode(
            x="raw ECE gap:Q",
            y="aligned ECE gap:Q",
            color=alt.Color("accuracy gap:Q", scale=alt.Scale(scheme="blueorange", domainMid=0)),
            shape="kind:N",
        )
    ).properties(width=420, height=320)


def mmlu(page: StudyPage) -> None:
    page.heading("MMLU-Pro: thinking against not thinking, and sizes")
    path = DATA / "scores" / "mmlu_pro_16_models.parquet"
    for confidence in CONFIDENCES:
        rows = compared(path, mmlu_pairs(), confidence=confidence)
        page.text(f"### {confidence}")
        page.table(
            ["what", "cases", "share", "both intervals exclude 0", "and above the floor"],
            summary_rows(rows),
        )
        page.table(
            ["pair", "accuracy gap", "raw ECE gap", "DA", "IA", "turned by", "verdict"],
            [
                [
                    f"{row['a']} - {row['b']}",
                    estimate(row["accuracy_gap"]),
                    *(estimate(row["gaps"][view]["ece"]) for view in ("raw", "da", "ia")),
                    row["pattern"],
                    row["verdict"],
                ]
                for row in rows
            ],
        )
        name = confidence.split("_")[0]
        page.figure(
            f"mmlu-{name}",
            scatter(rows),
            f"Raw against distribution-aligned ECE gap, {confidence}: the upper left and lower "
            "right quadrants hold the pairs whose order turns round.",
        )


def mcq(page: StudyPage) -> None:
    page.heading("Five multiple-choice benchmarks, seven models")
    path = DATA / "scores" / "mcq_5_benchmarks_7_models.parquet"
    table = pl.read_parquet(path)
    ungraded = table["correct"].null_count()
    page.text(
        f"Answers that could not be parsed have no grade: {ungraded:,} of {table.height:,} rows "
        "are left out, and with them the question for the pair compared. Prompt 'first' only."
    )
    lines = []
    everything = []
    for (name,), part in (
        table.filter(pl.col("prompt") == "first")
        .partition_by("dataset", as_dict=True, maintain_order=True)
        .items()
    ):
        models = part["model"].unique(maintain_order=True).cast(pl.String).to_list()
        pairs = [(str(name), a, b) for a, b in combinations(models, 2)]
        rows = compared(part, pairs)
        everything += rows
        lines += [[name, *line] for line in summary_rows(rows)]
    page.table(
        ["benchmark", "what", "cases", "share", "both intervals exclude 0", "and above the floor"],
        lines,
    )
    page.figure("mcq", scatter(everything), "Raw against distribution-aligned ECE gap.")


def local_scores() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Scores of the three small models by three methods, and everyone's P(True) of every answer."""
    draws, questions = local_draws(DATA)
    filled, semantics = annotate(draws, questions)
    scored = score_table(
        filled, semantics, questions, methods=["verb", "p_true_ratio", "consistency"]
    )
    table = pl.read_parquet(DATA / "local_models" / "p_true.parquet")
    # The mass on 'True' among 'True' and 'False'; the rest of the mass says nothing.
    share = pl.col("p_true_mass") / (pl.col("p_true_mass") + pl.col("p_false_mass"))
    pool = table.with_columns(confidence=share, method=pl.lit("p_true_ratio"))
    return scored.scores, pool.select(
        "question_id", "judge", "author", "answer", "confidence", "method"
    )


def local(page: StudyPage) -> None:
    page.heading("Three small local models, all four views")
    scores, pool = local_scores()
    document = compare(scores, candidates=pool, on_invalid="drop").to_dict()
    page.text(
        "860 questions, graded by rules. CA uses the probability that every model gives to 'True' "
        "for every model's greedy answer, so it exists for P(True) alone. Rows left out: "
        + ", ".join(f"{rule} {count:,}" for rule, count in document["dropped"].items())
        + "."
    )
    views = ("raw", "da", "ia", "ca")
    page.table(
        ["method", "model", "accuracy", *(f"ECE {view}" for view in views)],
        [
            [
                entry["method"],
                entry["model"],
                estimate(entry["accuracy"]),
                *(
                    estimate(entry["views"][view]["ece"]) if view in entry["views"] else ""
                    for view in views
                ),
            ]
            for entry in document["results"]
        ],
    )
    page.table(
        ["method", "pair", "turned by", "verdict"],
        [
            [pair["method"], f"{pair['a']} - {pair['b']}", pair["pattern"], pair["verdict"]]
            for pair in document["pairs"]
        ],
    )
    page.text("Self-preference: confidence in own answers minus others', at equal grade.")
    page.table(
        ["judge", "own minus others", "on right answers", "on wrong answers"],
        [
            [row["judge"], *(estimate(row[key]) for key in ("bias", "on_right", "on_wrong"))]
            for row in document["self_preference"]
        ],
    )


def main() -> None:
    page = StudyPage("comparison", "Better calibrated, or only more accurate?")
    page.text(
        "The claim under test: a raw calibration error ranks models partly by accuracy, and the "
        "order often turns round once outcomes are matched. A turn is counted as such by sign "
        "alone (as in the paper), then only where both intervals exclude zero, then only where "
        "both gaps also exceed the verification floor of the labels at hand. "
        "Each pair is judged alone here: the number of pairs is not corrected for."
    )
    mmlu(page)
    mcq(page)
    local(page)
    page.write()
