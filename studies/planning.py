"""Planning on real labels: which design is better, what a judge saves, who leads."""

from pathlib import Path

import altair as alt
import polars as pl
from tests.support import shared_data_folder

from calibrant.labels import leaderboard
from studies._planning_judge import human_table, judge_table
from studies._planning_replay import GRID, all_errors, ratios

DOCS = Path(__file__).resolve().parent.parent / "docs" / "studies"
REPETITIONS = 200


def markdown(columns: tuple[str, ...], rows: list[tuple]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join(["---"] * len(columns)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def write_replay(errors: pl.DataFrame) -> None:
    table = ratios(errors)
    order = [
        "random, plug-in",
        "random, corrected",
        "stratified, plug-in",
        "stratified, corrected",
        "stratified, corrected, with peers",
        "pps, corrected",
        "pps, corrected, with peers",
        GRID,
    ]
    parts = [
        "# Which labels to buy? A replay of real labels",
        "",
        "Written by `python -m studies planning`. Labels of real pools are hidden and bought back "
        f"under each design, {REPETITIONS} times; the error is the mean absolute difference from "
        "the ECE (15 bins) of the fully labelled pool. Numbers are the error divided by that of "
        "random labels with the plain plug-in ECE (geometric mean over pools; below 1 is better).",
        "",
    ]
    parts += [*_reading(table), "", "![Error against labels](planning-replay.svg)", ""]
    budgets = sorted(errors["labels"].unique())
    names = {"MMLU": "max softmax", "MMLU-Pro": "verbalised"}
    for recalibrated in (False, True):
        for group, title in names.items():
            part = table.filter((pl.col("recalibrated") == recalibrated) & (pl.col("set") == group))
            if part.is_empty():
                continue
            state = "after Platt scaling" if recalibrated else "as they are"
            parts += [f"## {group}, {part['pools'].max()} models, {title}: {state}", ""]
            rows = []
            base = part.filter(pl.col("strategy") == "random, plug-in")
            # What is recommended comes first, what all are divided by last.
            for strategy in sorted(order, key=_place):
                cells = part.filter(pl.col("strategy") == strategy)
                if cells.is_empty():
                    continue
                found = dict(zip(cells["labels"], cells["mean"], strict=True))
                worst = cells["worst"].max()
                rows.append((strategy, *(f"{found[m]:.2f}" for m in budgets), f"{worst:.2f}"))
            error = dict(zip(base["labels"], base["error"], strict=True))
            rows.append(
                ("mean error of random, plug-in", *(f"{error[m]:.4f}" for m in budgets), "")
            )
            head = ("design and estimator", *(f"{m:,} labels" for m in budgets), "worst pool")
            parts += [markdown(head, rows), ""]
    (DOCS / "planning-replay.md").write_text("\n".join(parts), encoding="utf-8")
    _figure(errors, order)


def _place(strategy: str) -> int:
    """Return where the row of a strategy stands: what is recommended first, the base last."""
    return -strategy.startswith("stratified, corrected") + strategy.startswith("random, plug-in")


def _range(table: pl.DataFrame, strategy: str, **where) -> str:
    part = table.filter(pl.col("strategy") == strategy)
    for name, value in where.items():
        part = part.filter(pl.col(name) == value)
    return f"{part['mean'].min():.2f} to {part['mean'].max():.2f}"


def _reading(table: pl.DataFrame) -> list[str]:
    best = "stratified, corrected"
    return [
        "## What it says",
        "",
        f"- Confidences as they are: almost every bin is over-confident, so the ECE is close to "
        f"mean confidence minus accuracy. Stratified labels with the corrected estimator reach "
        f"{_range(table, best, recalibrated=False)} of the error of random labels. No design that "
        "chooses by confidence alone does clearly better: outcomes vary almost equally everywhere.",
        f"- The published two-phase grid is worse on such confidences "
        f"({_range(table, GRID, recalibrated=False)}): every level gets the same few labels, "
        "whether it holds most of the pool or almost nothing.",
        f"- Recalibrated models: the plug-in ECE is mostly noise; taking its expected excess off "
        f"helps under every design (stratified: {_range(table, best, recalibrated=True)}).",
        f"- What really helps is side information. Whether other models give the same answer "
        f"brings the error to {_range(table, best + ', with peers', recalibrated=False)} of "
        f"random labels on MMLU-Pro as it is "
        f"({_range(table, best + ', with peers', recalibrated=True)} recalibrated); 0.75 "
        "times the error saves 44 % of the labels.",
        "- So the default of `calibrant label` is the stratified design with the corrected "
        "estimator, and `--peers` or `--judge` where the table has them.",
    ]


def _figure(errors: pl.DataFrame, order: list[str]) -> None:
    shown = (
        errors.filter(pl.col("strategy").is_in(order))
        .group_by("set", "recalibrated", "strategy", "labels")
        .agg(pl.col("error").mean())
    )
    shown = shown.with_columns(
        panel=pl.col("set")
        + pl.when(pl.col("recalibrated")).then(pl.lit(", recalibrated")).otherwise(pl.lit(""))
    ).sort("panel", "strategy", "labels")
    line = (
        alt.Chart(alt.Data(values=shown.to_dicts()))
        .mark_line(point=True)
        .encode(
            x=alt.X("labels:Q", scale=alt.Scale(type="log"), title="labels"),
            y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="mean error of the ECE"),
            color=alt.Color("strategy:N", sort=order, title=None),
        )
        .properties(width=260, height=220)
        .facet(alt.Facet("panel:N", title=None), columns=2)
    )
    line.save(str(DOCS / "planning-replay.svg"))


def write_judge(table: pl.DataFrame, frame: pl.DataFrame) -> None:
    agree = frame.select(((pl.col("judge") - pl.col("human_correct")).abs() < 0.25).mean()).item()
    rows = [
        (
            r["system"],
            f"{r['answers']:,}",
            r["quantity"],
            r["gold"],
            f"{r['human']:.3f}",
            f"{r['judge']:.3f}",
            f"{r['covers']:.1%}",
            f"{r['width_ratio']:.2f}",
            f"{r['gold_saved']:.0f}",
        )
        for r in table.iter_rows(named=True)
    ]
    mean = (
        table.group_by("quantity", "gold")
        .agg(pl.col("covers").mean(), pl.col("width_ratio").mean(), pl.col("gold_saved").mean())
        .sort("quantity", "gold")
    )
    summary = [
        (
            r["quantity"],
            r["gold"],
            f"{r['covers']:.1%}",
            f"{r['width_ratio']:.2f}",
            f"{r['gold_saved']:.0f}",
        )
        for r in mean.iter_rows(named=True)
    ]
    text = [
        "# What a cheap judge saves",
        "",
        "Written by `python -m studies planning`. Answers of five systems to Natural Questions, "
        "judged by people (EVOUNA). The judge is calibrant's own grader, without any language "
        f"model; it agrees with people on {agree:.1%} of {frame.height:,} answers. Gold labels are "
        f"drawn at random {REPETITIONS} times. The data has no confidences; here it is the share "
        "of the other systems that say the same. Nominal coverage 95 %.",
        "",
        markdown(
            ("quantity", "gold labels", "covers", "width / gold alone", "gold saved"), summary
        ),
        "",
        "## System by system",
        "",
        markdown(
            (
                "system",
                "answers",
                "quantity",
                "gold",
                "people say",
                "judge says",
                "covers",
                "width / gold alone",
                "gold saved",
            ),
            rows,
        ),
        "",
    ]
    (DOCS / "planning-judge.md").write_text("\n".join(text), encoding="utf-8")


def write_leaderboard() -> None:
    path = shared_data_folder() / "scores" / "mmlu_pro_16_models.parquet"
    frame = pl.read_parquet(path).sort("question_id")
    scores = {
        str(name): (part["logit_perplexity_confidence"].to_numpy(), part["correct"].to_numpy())
        for (name,), part in frame.group_by("model", maintain_order=True)
    }
    text = [
        "# The leaderboard of MMLU-Pro, with its ties",
        "",
        "Written by `python -m studies planning`. Sixteen models, 12,032 questions, logit "
        "confidence. `phi-4` gave no answer at all in this data: it is shown as it is.",
        "",
    ]
    for metric in ("accuracy", "brier", "ece"):
        found = leaderboard(scores, metric=metric, resamples=500)
        unstable = found["instability"]
        ties = sum(pair["tie"] for pair in found["pairs"])
        rows = [
            (
                entry["model"],
                entry["rank"],
                f"{entry['rank_low']} to {entry['rank_high']}",
                entry["group"],
                f"{entry[metric].value:.4f} [{entry[metric].low:.4f}, {entry[metric].high:.4f}]",
                f"{unstable['models'][entry['model']]:.0%}",
            )
            for entry in found["results"]
        ]
        text += [
            f"## By {metric}",
            "",
            f"{len(found['groups'])} groups; {ties} of {len(found['pairs'])} pairs are ties. In "
            f"resamples of 80 % of the questions the order of all changes in "
            f"{unstable['any_change']:.0%}, the best model in {unstable['best_changes']:.0%}; "
            f"{unstable['pairs_flipped']:.2%} of pairs flip.",
            "",
            markdown(("model", "rank", "rank interval", "group", metric, "rank moves"), rows),
            "",
        ]
    (DOCS / "planning-leaderboard.md").write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    write_leaderboard()
    frame = human_table()
    write_judge(judge_table(frame, REPETITIONS), frame)
    write_replay(all_errors(REPETITIONS))
