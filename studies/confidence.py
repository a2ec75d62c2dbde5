"""Confidence methods on recorded experiments: docs/studies/confidence.md and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from benchmarks.harness import DATA, ROOT
from sklearn.feature_extraction.text import HashingVectorizer

from calibrant.answers.confidence import METHODS, ScoredTable, compact_table, score_table
from calibrant.answers.semantics import annotate
from calibrant.core.arrays import named_stream
from calibrant.metrics import auroc
from calibrant.metrics.estimates import metric_estimates
from studies._confidence_recorded import (
    block_numbers,
    graded,
    recorded_deepseek,
    recorded_numbers,
    table,
)
from studies._confidence_tables import local_draws, read_deepseek

DOCS = ROOT / "docs" / "studies"
EMBEDDED_DRAWS = 20
MIXES = ((1,), (1, 2), (1, 2, 4), (1, 2, 4, 6))


def main() -> None:
    if not DATA.is_dir():
        print(f"   REAL DATA ABSENT: {DATA}; nothing written", flush=True)
        return
    lines = ["# Confidence methods on recorded experiments", ""]
    lines += ["Written by `python -m studies confidence`.", ""]
    lines += recorded_deepseek(read_deepseek(DATA))
    lines += recorded_numbers(DATA)
    lines += local_models(DATA)
    DOCS.mkdir(parents=True, exist_ok=True)
    page = DOCS / "confidence.md"
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"   written: {page.relative_to(ROOT)}", flush=True)


def local_models(data: Path) -> list[str]:
    """Return the sections on the three local models."""
    raw, questions = local_draws(data)
    draws, semantics = annotate(raw, questions)
    scored = score_table(draws, semantics, questions)
    lines = [
        "## Three local models: every method whose inputs are there",
        "",
        f"{questions.height:,} questions (WebQuestions, MACE language, river and award with "
        "k = 1, 2, 4, 6, small Math) x 50 draws at temperature 1 with all token log-probs. Classes "
        "and grades are rule-based. ECE: 10 equal-width bins; recalibrated: isotonic, cross-fitted "
        "over 5 folds of questions. Brackets are 95 % intervals. Rows about different answers have "
        "different grades: compare AUROC between rows with the same `about`.",
        "",
    ]
    columns = ["method", "about", "n", "mean confidence", "accuracy", "AUROC", "ECE"]
    columns.append("ECE, recalibrated")
    points = []
    for model in scored.scores["model"].unique(maintain_order=True):
        rows = []
        ours = scored.scores.filter(pl.col("model") == model)
        for name in ours["method"].unique(maintain_order=True):
            block = graded(ours.filter(pl.col("method") == name))
            cells = block_numbers(block, recalibrated=True)
            rows.append([f"`{name}`", block["about"][0], *cells])
            points.append(_point(model, name, cells[3]))
        rows.sort(key=lambda row: row[5], reverse=True)
        lines += [f"### {model}", "", *table(columns, rows)]
    _figure(points)
    lines += ["![AUROC of every method and model](confidence-auroc.svg)", ""]
    lines += _unread(scored)
    lines += aggregation(draws, semantics, questions)
    lines += embedded(draws, semantics)
    return lines


def _point(model: str, method: str, text: str) -> dict[str, Any]:
    value, low, high = (
        float(part) for part in text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    )
    return {"model": model, "method": method, "AUROC": value, "low": low, "high": high}


def _figure(points: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(points)
    order = frame.group_by("method").agg(pl.col("AUROC").mean()).sort("AUROC", descending=True)
    base = alt.Chart(frame).encode(
        y=alt.Y("method:N", sort=order["method"].to_list(), title=None),
        color=alt.Color("model:N", legend=alt.Legend(orient="top", title=None)),
        yOffset="model:N",
    )
    bars = base.mark_rule().encode(
        x=alt.X("low:Q", title="AUROC, 95 % interval", scale=alt.Scale(zero=False)), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=35).encode(x="AUROC:Q")
    chance = alt.Chart(pl.DataFrame({"x": [0.5]})).mark_rule(strokeDash=[4, 4]).encode(x="x:Q")
    DOCS.mkdir(parents=True, exist_ok=True)
    (bars + dots + chance).properties(width=460, height={"step": 9}).save(
        DOCS / "confidence-auroc.svg"
    )


def _unread(scored: ScoredTable) -> list[str]:
    rows = [
        [f"`{entry['method']}`", entry["model"], f"{entry['unread']:,}"]
        for entry in scored.failures
        if entry["unread"]
    ]
    missing: dict[str, list[str]] = {}
    for entry in scored.availability:
        if not entry["available"]:
            missing.setdefault(entry["reason"], []).append(entry["method"])
    lines = ["Texts in which no confidence could be read are counted, and not scored:", ""]
    lines += table(["method", "model", "unread texts"], rows)
    lines += ["Not available, and why:", ""]
    lines += table(
        ["methods", "reason"],
        [
            [", ".join(f"`{name}`" for name in dict.fromkeys(names)), reason]
            for reason, names in missing.items()
        ],
    )
    return lines


def aggregation(draws: pl.DataFrame, semantics: pl.DataFrame, questions: pl.DataFrame) -> list[str]:
    """Return the section on summing every draw against summing distinct texts."""
    compact = compact_table(draws, semantics, questions)
    names = ["sca", "sca_distinct", "consistency", "semantic_entropy", "snca", "sfca"]
    scores = score_table(compact, questions=questions, methods=names, about="greedy").scores
    greedy = score_table(compact, questions=questions, methods=["consistency"], variant="paper")
    scores = pl.concat([scores.filter(pl.col("method") != "consistency"), greedy.scores])
    lines = _aggregation_words(scores)
    multi = scores.filter(pl.col("source") != "webquestions")
    for model in scores["model"].unique(maintain_order=True):
        rows = []
        for method in ("sca", "sca_distinct", "consistency:paper", *names[3:]):
            ours = multi.filter((pl.col("model") == model) & (pl.col("method") == method))
            blocks = [graded(ours.filter(pl.col("k").is_in(mix))) for mix in MIXES]
            rows.append([f"`{method}`", *(_auroc(block) for block in blocks)])
        ours = multi.filter(pl.col("model") == model)
        rows.append(["`sca_distinct` minus `sca`", *(_auroc_gap(ours, mix) for mix in MIXES)])
        lines += [f"### {model}", ""]
        lines += table(["method", *(f"k in {list(mix)}" for mix in MIXES)], rows)
    lines += [
        "The last row of each table is the paired difference with a percentile bootstrap interval "
        "over questions (1,000 resamples): read a difference whose interval holds 0 as a tie.",
        "",
    ]
    return lines


def _auroc_gap(scores: pl.DataFrame, mix: tuple[int, ...]) -> str:
    """Return the AUROC of sca_distinct minus that of sca, resampling questions."""
    wide = graded(scores.filter(pl.col("k").is_in(mix))).pivot(
        "method", index=["question_id", "correct"], values="confidence"
    )
    correct = wide["correct"].to_numpy()
    both = wide.select("sca_distinct", "sca").to_numpy().T
    rng = named_stream(0, "auroc gap", *mix)
    gaps = []
    for place in range(1001):
        rows = (
            np.arange(correct.size) if place == 0 else rng.integers(0, correct.size, correct.size)
        )
        if 0 < correct[rows].sum() < correct.size:
            gaps.append(auroc(both[0, rows], correct[rows]) - auroc(both[1, rows], correct[rows]))
    low, high = np.quantile(gaps[1:], [0.025, 0.975])
    return f"{gaps[0]:+.3f} [{low:+.3f}, {high:+.3f}]"


def embedded(draws: pl.DataFrame, semantics: pl.DataFrame) -> list[str]:
    """Return the section on graph and kernel scores from embeddings."""
    few = draws.filter((pl.col("purpose") != "answer") | (pl.col("draw") < EMBEDDED_DRAWS))
    samples = few.filter(pl.col("purpose") == "answer")
    encoder = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=256, norm="l2")
    vectors = encoder.transform(samples["text"].fill_null("").to_list()).toarray()
    samples = samples.with_columns(pl.Series("embedding", vectors).arr.to_list())
    compact = compact_table(samples, semantics)
    rows = []
    graphs = ["degree_matrix", "eccentricity"]
    for similarity, names in (
        ("classes", graphs),
        ("embeddings", [*graphs, "kernel_language_entropy"]),
    ):
        scores = score_table(compact, methods=names, similarity=similarity).scores
        for name in names:
            cells = [_auroc(graded(block)) for block in _by_model(scores, name)]
            rows.append([f"`{name}`, from {similarity}", *cells])
    models = compact.model.unique(maintain_order=True).to_list()
    return [
        "## Graph and kernel scores from embeddings",
        "",
        f"The first {EMBEDDED_DRAWS} draws of each question. The embeddings here are hashed "
        "character n-grams (256 numbers): they see spelling, not meaning, and they stand for any "
        "column `embedding`. AUROC against the grade of the modal answer:",
        "",
        *table(["method", *models], rows),
    ]


def _by_model(scores: pl.DataFrame, method: str) -> list[pl.DataFrame]:
    ours = scores.filter(pl.col("method") == method)
    return ours.partition_by("model", maintain_order=True)


def _auroc(block: pl.DataFrame) -> str:
    found = metric_estimates(
        block["confidence"].to_numpy(), block["correct"].to_numpy(), names=("auroc",)
    )
    return str(found["auroc"])


def _aggregation_words(scores: pl.DataFrame) -> list[str]:
    rows = []
    for model in scores["model"].unique(maintain_order=True):
        cells = [model]
        for method in ("sca", "sca_distinct"):
            values = scores.filter((pl.col("model") == model) & (pl.col("method") == method))
            confidence = values["confidence"]
            cells += [f"{confidence.mean():.3f}", f"{100 * (confidence > 1).mean():.0f} %"]
        rows.append(cells)
    taus = f"snca and sfca with tau = {METHODS['snca'].default_tau:g}, sca with tau = 0"
    return [
        "## SCA: every draw, or every distinct text once?",
        "",
        "SCA as published sums the probability of **every draw**: it grows with their number, it "
        "exceeds 1, and it falls when the mass is split between several right answers. Summing "
        "every **distinct** text once (`sca_distinct`) estimates the mass that the draws have "
        "uncovered (`design/sca.md`).",
        "",
        *table(["model", "mean sca", "over 1", "mean sca_distinct", "over 1"], rows),
        "AUROC against the grade of the greedy answer (as in the paper), questions with a known "
        f"number k of right answers, pooled over the sources; {taus}:",
        "",
    ]
