"""Which confidence method is best? docs/studies/confidence_best.md and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from benchmarks.harness import DATA

from calibrant.answers.confidence import METHODS, cross_fit, score_table
from calibrant.answers.semantics import annotate
from calibrant.bench.macro import Leaf
from calibrant.bench.multi_answer import evaluate_multi_answer
from calibrant.bench.significance import compare_aurocs
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.recalibration.calibrators import cross_fitted
from calibrant.metrics.stats.multiplicity import holm
from studies._confidence_groups import (
    BLACK_BOX,
    BOTH,
    CHOICE,
    DEEPSEEK,
    GROUPS,
    LOCAL,
    ONE_CALL,
    OPEN,
    SECOND_TURN,
    STACK,
    Areas,
)
from studies._confidence_situations import (
    area_difference,
    cautions,
    mean_areas,
    short_answer,
    situations,
    write_situations,
)
from studies._confidence_tables import deepseek_tables, local_draws, read_deepseek
from studies._page import StudyPage

DRAWS = 20
BEST = pl.lit("best")
OTHER_FOLDS = range(1, 9)


def local_scores(data: Path) -> pl.DataFrame:
    """Return every method about the greedy answer of three local models, 20 draws each."""
    raw, questions = local_draws(data)
    raw = raw.filter((pl.col("purpose") != "answer") | (pl.col("draw") < DRAWS))
    draws, semantics = annotate(raw, questions)
    names = [*BLACK_BOX, *ONE_CALL, *BOTH, *SECOND_TURN]
    scores = score_table(draws, semantics, questions, methods=names, about="greedy").scores
    scores = same_rows(scores.filter(pl.col("correct").is_not_null()))
    stacked = [
        cross_fit(part, STACK).select("question_id", "model", "method", "confidence", "correct")
        for part in scores.partition_by("model", maintain_order=True)
    ]
    columns = stacked[0].columns
    return pl.concat([scores.select(columns), *stacked])


def deepseek_scores(data: Path) -> pl.DataFrame:
    """Return the black-box methods about the greedy answer of DeepSeek-V3."""
    tables = deepseek_tables(read_deepseek(data).gather_every(2))
    names = [*BLACK_BOX, "p_true_consistency", "p_true_consistency_cand", "self_ask"]
    scores = score_table(*tables, methods=names, about="greedy").scores
    return same_rows(scores.filter(pl.col("correct").is_not_null()))


def open_qa_scores(data: Path) -> pl.DataFrame:
    """Return token probabilities of six models on open questions, about their one answer."""
    table = pl.read_parquet(data / "scores" / "open_qa_6_models.parquet").with_row_index("row")
    rows = []
    for name, value in (
        ("perplexity", pl.col("repo_seq_confidence")),
        ("sequence_probability", pl.col("sequence_logprob").cast(pl.Float64).exp()),
    ):
        rows.append(
            table.filter(pl.col("n_tokens") > 0).select(
                pl.col("row").cast(pl.String).alias("question_id"),
                pl.concat_str(pl.col("dataset").cast(pl.String), "question_id").alias("unit"),
                pl.col("model").cast(pl.String),
                pl.lit(name).alias("method"),
                value.cast(pl.Float64).alias("confidence"),
                pl.col("correct").cast(pl.Float64),
            )
        )
    return same_rows(pl.concat(rows).drop_nulls())


def choice_scores(data: Path) -> pl.DataFrame:
    """Return the largest option probability of seven models on multiple choice, first prompt."""
    table = pl.read_parquet(data / "scores" / "mcq_5_benchmarks_7_models.parquet")
    return (
        table.filter((pl.col("prompt") == "first") & pl.col("correct").is_not_null())
        .select(
            pl.concat_str(pl.col("dataset").cast(pl.String), "question_id", separator="-").alias(
                "question_id"
            ),
            pl.col("model").cast(pl.String),
            pl.lit("option_softmax").alias("method"),
            pl.col("confidence").cast(pl.Float64),
            pl.col("correct").cast(pl.Float64),
        )
        .drop_nulls()
    )


def same_rows(scores: pl.DataFrame) -> pl.DataFrame:
    """Keep questions that every method of a model has scored: all meet the same outcomes."""
    many = scores.group_by("question_id", "model").agg(pl.col("method").n_unique().alias("n"))
    most = many.group_by("model").agg(pl.col("n").max().alias("most"))
    kept = many.join(most, on="model").filter(pl.col("n") == pl.col("most"))
    return scores.join(kept.select("question_id", "model"), on=["question_id", "model"])


def numbers(scores: pl.DataFrame, data: str) -> list[dict[str, Any]]:
    """Return AUROC, ECE after recalibration and the test against the best, per model."""
    found = []
    for part in scores.partition_by("model", maintain_order=True):
        by_method = {
            str(one["method"][0]): one.sort("question_id")
            for one in part.partition_by("method", maintain_order=True)
        }
        areas = {name: area(one) for name, one in by_method.items()}
        best = max((name for name in areas if name != "ensemble"), key=lambda n: areas[n][0])
        for name, one in by_method.items():
            found.append(
                {
                    "data": data,
                    "model": str(part["model"][0]),
                    "method": name,
                    "group": GROUPS[name],
                    "n": one.height,
                    "accuracy": float(one["correct"].mean()),
                    "auroc": areas[name][0],
                    "low": areas[name][1],
                    "high": areas[name][2],
                    "ece": recalibrated_ece(one),
                    "best": best,
                    "p": p_value(by_method[best], one) if name != best else 1.0,
                }
            )
    adjusted = holm([row["p"] for row in found])
    return [{**row, "p_holm": float(p)} for row, p in zip(found, adjusted, strict=True)]


def area(one: pl.DataFrame) -> tuple[float, float, float]:
    found = metric_estimates(
        one["confidence"].rank().to_numpy() / (one.height + 1),
        one["correct"].to_numpy(),
        names=("auroc",),
    )["auroc"]
    return float(found.value), float(found.low), float(found.high)


def recalibrated_ece(one: pl.DataFrame) -> float:
    ranks = one["confidence"].rank().to_numpy() / (one.height + 1)
    correct = one["correct"].to_numpy()
    fitted = cross_fitted("isotonic", ranks, correct, units=one["question_id"])
    found = metric_estimates(fitted, correct, names=("ece",), bins=10)["ece"]
    return float(found.value)


def p_value(best: pl.DataFrame, other: pl.DataFrame) -> float:
    """Return the paired test of two methods on the same outcomes."""
    outcome = best["correct"].to_numpy()
    parts = [Leaf("all", None, np.arange(best.height), 1.0)]
    pair = [(one["confidence"].to_numpy(), outcome) for one in (best, other)]
    return compare_aurocs(pair[0], pair[1], parts, draws=400, items=None).p_student


def table(page: StudyPage, rows: list[dict[str, Any]], areas: dict[str, Areas]) -> None:
    """Write one table per data set: mean over its models."""
    frame = pl.DataFrame(rows)
    for part in frame.partition_by("data", maintain_order=True):
        models = part["model"].n_unique()
        page.heading(f"{part['data'][0]} ({models} model{'s' if models > 1 else ''})")
        own = areas[str(part["data"][0])]
        means = part.group_by("method", "group").agg(
            pl.col("ece").mean(), (pl.col("p_holm") < 0.05).sum().alias("behind")
        )
        page.table(
            ["method", "what it takes", "cost", "AUROC, mean over models", "95 % interval",
             "ECE recalibrated, points", "behind the best single method in"],
            [
                [
                    f"`{row['method']}`", row["group"], cost(row["method"]), own[row["method"]][0],
                    f"{own[row['method']][1]:.3f} to {own[row['method']][2]:.3f}",
                    f"{100 * row['ece']:.1f}", f"{row['behind']} of {models}",
                ]
                for row in sorted(
                    means.iter_rows(named=True), key=lambda row: -own[row["method"]][0]
                )
            ],
        )  # fmt: skip


def cost(method: str) -> str:
    return METHODS[method].to_dict()["cost"]


def picture(page: StudyPage, rows: list[dict[str, Any]]) -> None:
    """One picture: AUROC of every method, a panel per data set."""
    frame = pl.DataFrame(rows)
    means = frame.group_by("data", "method", "group").agg(pl.col("auroc").mean())
    chart = (
        alt.Chart(means)
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("auroc:Q", title="AUROC, mean over models", scale=alt.Scale(zero=False)),
            y=alt.Y("method:N", sort="-x", title=None),
            color=alt.Color("group:N", legend=alt.Legend(orient="top", title=None, columns=2)),
        )
        .properties(width=300, height={"step": 13})
        .facet(column=alt.Column("data:N", title=None))
        .resolve_scale(y="independent")
    )
    page.figure("auroc", chart, "AUROC of every method about the same answer, per data set")


def ensemble_words(rows: list[dict[str, Any]]) -> str:
    """Say whether the ensemble beats the best single method on held-out questions."""
    parts = []
    for row in rows:
        if row["method"] != "ensemble":
            continue
        single = next(
            one for one in rows
            if one["method"] == row["best"] and one["model"] == row["model"]
            and one["data"] == row["data"]
        )  # fmt: skip
        gain = 100 * (row["auroc"] - single["auroc"])
        shown = "shown" if row["p_holm"] < 0.05 else "undecided"
        parts.append(f"{row['model']}: {gain:+.1f} points over `{row['best']}` ({shown})")
    return "Ensemble against the best single method, held-out questions: " + "; ".join(parts) + "."


def pooled_gain(scores: pl.DataFrame) -> tuple[float, ...]:
    """Points by which the ensemble is ahead of each model's best single method, mean over models.

    The models answer the same questions: the interval is over questions.
    """
    parts = []
    for part in scores.partition_by("model", maintain_order=True):
        single = part.filter(pl.col("method") != "ensemble").partition_by("method")
        best = max(single, key=lambda one: area(one)[0])
        parts += [part.filter(pl.col("method") == "ensemble"), best.with_columns(method=BEST)]
    return tuple(100 * x for x in area_difference(pl.concat(parts), "ensemble", "best"))


def pooled_words(scores: pl.DataFrame) -> str:
    """Say whether the ensemble is ahead, and how far that hangs on the folds."""
    gain, low, high = pooled_gain(scores)
    verdict = (
        "The ensemble beats the best single method"
        if low > 0
        else "The ensemble is not shown to beat the best single method"
    )
    single = scores.filter(pl.col("method") != "ensemble")
    others = []
    for seed in OTHER_FOLDS:
        fitted = [
            cross_fit(part, STACK, seed=seed).select(scores.columns)
            for part in single.partition_by("model", maintain_order=True)
        ]
        others.append(pooled_gain(pl.concat([single, *fitted])))
    gains = [found[0] for found in others]
    return (
        f"{verdict} on held-out questions: {gain:+.1f} points, mean over models "
        f"({low:.1f} to {high:.1f}, {'shown' if low > 0 else 'undecided'}). With other folds "
        f"{min(gains):+.1f} to {max(gains):+.1f}, shown in {sum(found[1] > 0 for found in others)} "
        f"of {len(others)}."
    )


def sca_words(scores: pl.DataFrame, data: Path) -> str:
    """Say whether SCA beats consistency where k varies, both judged on the greedy answer."""
    math = pl.col("source") == "math_small"
    questions = (
        pl.read_parquet(data / "local_models" / "questions.parquet")
        .filter(pl.col("source") != "webquestions")
        .select(
            "question_id",
            "k",
            pl.when(math)
            .then(pl.lit("math"))
            .otherwise(pl.col("source").str.slice(5))
            .alias("domain"),
        )
    )
    pair = scores.filter(pl.col("method").is_in(["sca", "consistency_greedy"]))
    found = evaluate_multi_answer(
        pair.join(questions, on="question_id"), ranking_methods=("sca",), mixes=[[1, 2, 4, 6]]
    )
    parts, shown = [], 0
    for entry in found["results"]:
        for test in entry["significance"]:
            decided = test["p_adjusted"] < 0.05
            shown += decided and test["difference"].value > 0
            parts.append(
                f"{entry['model']} {100 * test['difference'].value:+.1f} points "
                f"(p = {test['p']:.2f}, {'shown' if decided else 'undecided'})"
            )
    verdict = "beats" if shown == len(parts) else "does not beat"
    return (
        f"SCA {verdict} consistency on these models. AUROC on questions with 1, 2, 4 and 6 right "
        f"answers pooled, mean over domains, SCA minus consistency: {'; '.join(parts)}."
    )


def main() -> None:
    if not DATA.is_dir():
        print(f"   REAL DATA ABSENT: {DATA}; nothing written", flush=True)
        return
    page = StudyPage("confidence_best", "Which confidence method is best?")
    tables = {
        OPEN: open_qa_scores(DATA),
        CHOICE: choice_scores(DATA),
        DEEPSEEK: deepseek_scores(DATA),
        LOCAL: local_scores(DATA),
    }
    rows = [row for name, scores in tables.items() for row in numbers(scores, name)]
    areas = {name: mean_areas(scores) for name, scores in tables.items()}
    page.text(
        "Every method is judged on the same outcome: the grade of the greedy answer. AUROC is the "
        "chance that a right answer has a higher score than a wrong one. Its interval is over "
        "questions, which the models of a data set share. ECE is taken after "
        "isotonic recalibration, cross-fitted over questions. 'Behind' counts models where the "
        "best single method of that model has a higher AUROC (paired bootstrap, Holm over all "
        "comparisons of the data set, 5 %)."
    )
    pooled, sca = pooled_words(tables[LOCAL]), sca_words(tables[LOCAL], DATA)
    page.text(f"{ensemble_words(rows)} {pooled}")
    page.text(sca)
    picture(page, rows)
    table(page, rows, areas)
    page.write()
    write_situations(
        short_answer(areas, tables[LOCAL]),
        situations(rows, areas, pooled, sca),
        cautions(rows),
    )


if __name__ == "__main__":
    main()
