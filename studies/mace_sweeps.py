"""Single-answer questions, and how draws and votes change AUROC: docs/studies/mace_sweeps.md.

The paper's Table 11 (500 Natural Questions) and its sweeps, as far as recorded data goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import annotate
from calibrant.bench.macro import leaves, macro_auroc
from studies._confidence_situations import area_difference
from studies._confidence_tables import deepseek_tables, local_draws, read_deepseek
from studies._page import DATA, StudyPage, estimate

QUESTIONS = 500
# AUROC of Llama-3.1-70B-Instruct on 500 NQ questions, Table 11 of Wang et al.
TABLE_11 = {"perplexity": 75.7, "verb": 64.0, "prob_entropy": 75.9, "norm_prob_entropy": 76.2,
            "semantic_entropy": 76.0, "consistency": 78.0, "p_true_prob": 70.1,
            "sca": 75.6}  # fmt: skip
SWEPT = ("consistency_greedy", "semantic_entropy", "norm_prob_entropy", "lexical_similarity_greedy",
         "sca", "sca_distinct")  # fmt: skip
DRAWS = (2, 5, 10, 20, 50)
VOTES = (1, 2, 5, 10, 20)


def main() -> None:
    if not DATA.is_dir():
        print(f"   REAL DATA ABSENT: {DATA}; nothing written", flush=True)
        return
    page = StudyPage("mace_sweeps", "Single-answer questions, and how many draws it takes")
    answers = [*natural_questions(page), *web_questions(page), *draws(page), *votes(page)]
    page.text(
        "Temperature is not swept: all recorded draws were made at temperature 1, and text drawn "
        "at one temperature cannot stand for another."
    )
    page.lines[4:4] = ["## What this says", "", *(f"- {text}" for text in answers), ""]
    page.write()


def natural_questions(page: StudyPage) -> list[str]:
    """AUROC of what one call gives, six models on 500 sampled Natural Questions."""
    table = pl.read_parquet(DATA / "scores" / "open_qa_6_models.parquet").filter(
        (pl.col("dataset") == "nq") & (pl.col("n_tokens") > 0)
    )
    ids = np.sort(table["question_id"].unique().to_numpy())
    kept = np.random.default_rng(0).choice(ids, QUESTIONS, replace=False)
    table = table.filter(pl.col("question_id").is_in(kept.tolist()))
    plain = table.filter(pl.col("prompt") == "0_shot")
    stated = table.filter((pl.col("prompt") == "verb") & (pl.col("verbalized") >= 0))
    least = pl.col("token_probs").list.min()
    views: dict[str, tuple[pl.DataFrame, pl.Expr]] = {
        "perplexity": (plain, pl.col("repo_seq_confidence")),
        "sequence_probability": (plain, pl.col("sequence_logprob").exp()),
        "min_token_probability": (plain, least),
        "verb": (stated, pl.col("verbalized")),
    }
    rows, first = [], {}
    for model in plain["model"].cast(pl.String).unique(maintain_order=True):
        cells = []
        for name, (frame, value) in views.items():
            own = frame.filter(pl.col("model") == model).drop_nulls("correct")
            area = auroc_of(own.select(value.cast(pl.Float64)).to_series(), own["correct"])
            cells.append(estimate(area))
            first.setdefault(name, []).append(area["value"])
        rows.append((model, plain.filter(pl.col("model") == model)["correct"].mean(), *cells))
    page.heading("500 Natural Questions")
    page.text(
        f"{QUESTIONS} questions sampled (seed 0) from the recorded NQ answers of six models. One "
        "call gives token probabilities; the stated confidence is from another prompt, with its "
        "own answer and grade. No draws were recorded, so methods that sample are shown on web "
        "questions below. The paper has one model "
        f"(Llama-3.1-70B): perplexity {TABLE_11['perplexity']}, verb {TABLE_11['verb']}."
    )
    page.table(["model", "accuracy", *views], rows)
    means = {name: 100 * float(np.mean(values)) for name, values in first.items()}
    ahead = int(np.sum(np.array(first["verb"]) > np.array(first["perplexity"])))
    return [
        f"On 500 Natural Questions perplexity has an AUROC of {means['perplexity']:.0f} % and a "
        f"stated confidence of {means['verb']:.0f} %, mean over six models; the stated one is "
        f"higher for {ahead} of 6. The paper's one model has 76 % and 64 %."
    ]


def auroc_of(confidence: pl.Series, correct: pl.Series) -> dict[str, Any]:
    values = confidence.to_numpy().astype(float)
    grades = (correct.cast(pl.Float64).to_numpy() > 0.5).astype(float)
    found = macro_auroc(values, grades, leaves(["all"] * grades.size)).estimate
    return {"value": found.value, "low": found.low, "high": found.high}


def graded_local(*, web: bool) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    raw, questions = local_draws(DATA)
    questions = questions.filter((pl.col("source") == "webquestions") == web)
    found = raw.join(questions.select("question_id"), on="question_id")
    return (*annotate(found, questions), questions)


def web_questions(page: StudyPage) -> list[str]:
    """AUROC of sampling methods on single-answer web questions, three local models."""
    tables = graded_local(web=True)
    names = list(TABLE_11)
    scores = score_table(*tables, methods=names, about="greedy", variant="default").scores
    greedy = score_table(*tables, methods=["consistency_greedy"]).scores
    scores = pl.concat([scores.filter(pl.col("method") != "consistency"), greedy])
    scores = scores.drop_nulls(["confidence", "correct"])
    rows, means = [], {}
    models = scores["model"].unique(maintain_order=True).to_list()
    for name in scores["method"].unique(maintain_order=True):
        areas = []
        for model in models:
            own = scores.filter((pl.col("method") == name) & (pl.col("model") == model))
            areas.append(auroc_of(own["confidence"], own["correct"]))
        means[name] = float(np.mean([area["value"] for area in areas]))
        published = TABLE_11.get(name.removesuffix("_greedy"), "")
        rows.append((name, *map(estimate, areas), f"{100 * means[name]:.1f}", str(published)))
    page.heading("Single-answer web questions")
    page.text(
        f"{tables[2].height} WebQuestions, three local models, 50 draws, every score about the "
        "greedy answer. Beside it Table 11 of the paper (another model, Natural Questions)."
    )
    page.table(["method", *models, "mean", "paper, NQ"], rows)
    pair = scores.with_columns(pl.col("correct").cast(pl.Float64))
    gap, low, high = (100 * x for x in area_difference(pair, "sca", "consistency_greedy"))
    decided = (
        "SCA is better there" if low > 0 else "SCA is worse there" if high < 0 else "undecided"
    )
    return [
        f"On single-answer questions of three small models SCA has an AUROC of "
        f"{100 * means['sca']:.0f} %, agreement with the greedy answer "
        f"{100 * means['consistency_greedy']:.0f} %, means over models ({gap:+.1f} points, 95 % "
        f"interval {low:+.1f} to {high:+.1f}: {decided})."
    ]


def draws(page: StudyPage) -> list[str]:
    """AUROC by number of draws, all k pooled, mean over domains."""
    found, semantics, questions = graded_local(web=False)
    math = pl.col("source") == "math_small"
    domain = pl.when(math).then(pl.lit("math")).otherwise(pl.col("source").str.slice(5))
    where = questions.select("question_id", domain.alias("domain"))
    rows: list[dict[str, Any]] = []
    for number in DRAWS:
        kept = (pl.col("purpose") != "answer") | (pl.col("draw") < number)
        tables = found.filter(kept), semantics.filter(kept), questions
        scores = score_table(*tables, methods=list(SWEPT), about="greedy").scores
        joined = scores.drop_nulls(["confidence", "correct"]).join(where, on="question_id")
        for part in joined.partition_by("model", "method", maintain_order=True):
            area = macro_auroc(
                part["confidence"].to_numpy(),
                part["correct"].cast(pl.Float64).to_numpy(),
                leaves(part["domain"].to_numpy()),
            ).estimate
            rows.append({"draws": number, "model": part["model"][0], "method": part["method"][0],
                         "value": area.value, "low": area.low, "high": area.high})  # fmt: skip
    page.heading("Number of draws")
    page.text(
        "The first 2, 5, .. of 50 draws of three local models on MACE and small Math questions, "
        "every score about the greedy answer, AUROC with all k pooled, mean over domains."
    )
    table_by(page, rows, "draws", DRAWS)
    picture(page, "draws", rows, "draws", "draws per question")
    return [gain_words(rows)]


def gain_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say what draws beyond ten bring."""
    gains = {}
    for name in SWEPT:
        means = {
            number: np.mean(
                [r["value"] for r in rows if r["method"] == name and r["draws"] == number]
            )
            for number in (10, 50)
        }
        gains[name] = 100 * float(means[50] - means[10])
    most = max(gains, key=lambda name: abs(gains[name]))
    apart = sum(
        a["low"] > b["high"] or b["low"] > a["high"]
        for a in rows
        for b in rows
        if (a["draws"], b["draws"]) == (10, 50)
        and (a["model"], a["method"]) == (b["model"], b["method"])
    )
    return (
        f"50 draws instead of 10 change AUROC by {min(gains.values()):+.1f} to "
        f"{max(gains.values()):+.1f} points, mean over three small models (most: {most}). The "
        f"intervals at 10 and at 50 draws lie apart in {apart} of {3 * len(SWEPT)} cases."
    )


def votes(page: StudyPage) -> list[str]:
    """AUROC of P(True) of DeepSeek-V3 by number of votes, with and without candidates."""
    recorded = read_deepseek(DATA)
    table, semantics = deepseek_tables(recorded)
    where = recorded.select(pl.col("id").alias("question_id"), "domain")
    rows: list[dict[str, Any]] = []
    names = ["p_true_consistency", "p_true_consistency_cand"]
    probes = ["p_true", "p_true_cand"]
    for number in VOTES:
        kept = ~pl.col("purpose").is_in(probes) | (pl.col("draw") < number)
        tables = table.filter(kept), semantics.filter(kept)
        scores = score_table(*tables, methods=names).scores
        joined = scores.drop_nulls(["confidence", "correct"]).join(where, on="question_id")
        for part in joined.partition_by("method", maintain_order=True):
            area = macro_auroc(
                part["confidence"].to_numpy(),
                part["correct"].cast(pl.Float64).to_numpy(),
                leaves(part["domain"].to_numpy()),
            ).estimate
            rows.append({"votes": number, "model": "deepseek-v3", "method": part["method"][0],
                         "value": area.value, "low": area.low, "high": area.high})  # fmt: skip
    page.heading("Votes and candidates")
    page.text(
        "DeepSeek-V3 on 6,000 recorded questions: the first 1, 2, .. of 20 verdicts on the greedy "
        "answer, without and with the other sampled answers as candidates in the prompt."
    )
    table_by(page, rows, "votes", VOTES)
    last = {row["method"]: row for row in rows if row["votes"] == VOTES[-1]}
    first = {row["method"]: row for row in rows if row["votes"] == VOTES[0]}
    plain, given = names
    gap = 100 * (last[given]["value"] - last[plain]["value"])
    more = 100 * (last[plain]["value"] - first[plain]["value"])
    return [
        f"20 verdicts of DeepSeek-V3 instead of one bring {more:+.1f} points of AUROC. Showing it "
        f"candidates changes it by {gap:+.1f} points "
        f"({100 * last[plain]['value']:.0f} % without, {100 * last[given]['value']:.0f} % with)."
    ]


def table_by(
    page: StudyPage, rows: Sequence[Mapping[str, Any]], name: str, numbers: Sequence[int]
) -> None:
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        cells.setdefault((row["model"], row["method"]), {})[row[name]] = estimate(dict(row))
    page.table(
        ["model", "method", *(f"{number} {name}" for number in numbers)],
        [(*key, *(found.get(number, "") for number in numbers)) for key, found in cells.items()],
    )


def picture(
    page: StudyPage, name: str, rows: Sequence[dict[str, Any]], field: str, title: str
) -> None:
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X(f"{field}:Q", title=title, scale=alt.Scale(type="log")),
        color=alt.Color("method:N", title=None),
    )
    line = base.mark_line(point=True).encode(
        y=alt.Y("value:Q", title="AUROC", scale=alt.Scale(zero=False))
    )
    page.figure(
        name,
        line.properties(width=220, height=180).facet("model:N", columns=3),
        f"AUROC by {title}",
    )


if __name__ == "__main__":
    main()
