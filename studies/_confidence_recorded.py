"""Recorded confidences, entropies and token probabilities against recomputed ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.confidence import ScoredTable, class_entropy, compact_table, score_table
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.recalibration.calibrators import cross_fitted
from studies._confidence_tables import deepseek_tables

RECORDED = {
    "consistency": "consistency_conf",
    "verb": "verb_conf",
    "verb_topk": "topk_conf",
    "consistency_verb": "consistency_verb_conf",
    "consistency_verb_topk": "consistency_topk_conf",
    "p_true_consistency": "p_true_conf",
    "p_true_consistency_cand": "p_true_cand_conf",
    "self_ask": "self_ask_conf",
}


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns), *body, ""]


def recorded_deepseek(recorded: pl.DataFrame) -> list[str]:
    """Return the section that compares recomputed with recorded confidences."""
    authors = score_table(
        *deepseek_tables(recorded, authors_rule=True), methods=list(RECORDED), variant="paper"
    )
    ours = score_table(*deepseek_tables(recorded))
    lines = [
        "## DeepSeek-V3 on MACE: recomputed from raw texts and votes",
        "",
        f"{recorded.height:,} questions (award, language, math; 1, 2, 4 or 6 right answers), with "
        "the confidences that the authors recorded. The `paper` variants are computed from the raw "
        "texts and votes and compared row by row (equal: within 1e-9).",
        "",
    ]
    rows = []
    for name, column in RECORDED.items():
        found = _matched(authors.scores, f"{name}:paper", recorded, column)
        rows.append([f"`{name}`", *_agreement(found, column)])
    entropy = _matched(ours.scores, "discrete_semantic_entropy", recorded, "semantic_entropy_conf")
    rows.append(["`discrete_semantic_entropy`", *_agreement(entropy, "semantic_entropy_conf")])
    lines += table(
        ["method (`paper` variant)", "equal", "different", "no score here", "mean difference"], rows
    )
    lines += _why_different()
    lines += _pairing(authors, ours)
    return lines


def _matched(
    scores: pl.DataFrame, method: str, recorded: pl.DataFrame, column: str
) -> pl.DataFrame:
    return recorded.select(pl.col("id").alias("question_id"), column).join(
        scores.filter(pl.col("method") == method), on="question_id", how="left"
    )


def _agreement(found: pl.DataFrame, column: str) -> list[str]:
    gap = (found["confidence"] - found[column]).abs()
    neither = found.filter(pl.col("confidence").is_null() & pl.col(column).is_null()).height
    equal = int((gap < 1e-9).sum()) + neither
    only = found.filter(pl.col("confidence").is_null() & pl.col(column).is_not_null()).height
    different = int((gap >= 1e-9).sum())
    return [f"{equal:,}", f"{different:,}", f"{only:,}", f"{gap.mean():.4f}"]


def _why_different() -> list[str]:
    return [
        "What the authors' numbers do, found by comparing row by row:",
        "",
        "- Consistency is the share of draws that agree with the **greedy** answer, not the "
        "share of the most frequent one. A language model decided whether two answers agree, "
        "and its verdicts are not recorded. The rule used here says yes where a part of the "
        "draw equals a comma-separated part or an entry of the greedy answer, or is a name in "
        "it without some of its words. No rule predicts the remaining rows: 20 times 'France' "
        "is recorded as 0.90, and 20 times 'Nepal' as 0.95.",
        "- Verb and top-k confidences are about their own answers, but they carry the grade of the "
        "greedy answer. The top-k confidence is the largest one of the list, not the first.",
        "- The weighted consistencies compare the stated answers with the greedy answer of another "
        "prompt. Texts without any readable confidence are recorded as 0; here there is no score.",
        "- Semantic entropy is the frequency form, with 1e-12 added inside the logarithm: recorded "
        "confidences exceed 1 by 1e-12, the only difference.",
        "- The raw texts of `self_ask_cand` are not in the data. A sample of 395 of them from the "
        "authors' published files gives the recorded numbers exactly (a test).",
        "",
    ]


def _pairing(authors: ScoredTable, ours: ScoredTable) -> list[str]:
    lines = [
        "The default pairs every confidence with the grade of its own answer. What that changes:",
        "",
    ]
    rows = []
    for name in ("consistency", "verb", "verb_topk", "consistency_verb", "consistency_verb_topk"):
        for scores, label in ((authors.scores, f"{name}:paper"), (ours.scores, name)):
            block = graded(scores.filter(pl.col("method") == label))
            rows.append(
                [f"`{label}`", block["about"][0], *block_numbers(block, recalibrated=False)]
            )
    columns = ["method", "about", "n", "mean confidence", "accuracy", "AUROC", "ECE"]
    lines += table(columns, rows)
    lines += [
        "Grades: the recorded grade for the greedy answer and equal texts, rule-based grading of "
        "the other answers.",
        "",
    ]
    return lines


def graded(scores: pl.DataFrame) -> pl.DataFrame:
    return scores.filter(pl.col("correct").is_not_null())


def block_numbers(block: pl.DataFrame, *, recalibrated: bool) -> list[str]:
    confidence, correct = block["confidence"].to_numpy(), block["correct"].to_numpy()
    probability = bool(block["probability"][0])
    auroc = metric_estimates(confidence, correct, names=("auroc",))["auroc"]
    ece = (
        str(metric_estimates(confidence, correct, names=("ece",), bins=10)["ece"])
        if probability
        else "not a probability"
    )
    cells = [
        f"{block.height:,}",
        f"{confidence.mean():.3f}",
        f"{correct.mean():.3f}",
        str(auroc),
        ece,
    ]
    if recalibrated:
        mapped = cross_fitted("isotonic", confidence, correct, units=block["question_id"])
        cells.append(str(metric_estimates(mapped, correct, names=("ece",), bins=10)["ece"]))
    return cells


def recorded_numbers(data: Path) -> list[str]:
    """Return the section on recorded entropies and token probabilities."""
    rows = [
        ["entropy of 10 NLI cluster ids, 1,095 questions", f"{_entropy_gap(data):.1e}"],
        *([name, f"{gap:.1e}"] for name, gap in _token_gaps(data).items()),
    ]
    return [
        "## Recorded entropies and token probabilities",
        "",
        *table(["recomputed", "largest difference from the recorded value"], rows),
        "The recorded token probabilities are single precision; an answer without tokens has no "
        "score.",
        "",
    ]


def _entropy_gap(data: Path) -> float:
    recorded = pl.read_parquet(
        data / "draws" / "szhou_triviaqa_semantic_ids_1095q_10samples.parquet"
    )
    gaps = []
    for ids, column in (
        ("semantic_ids", "original_cluster_assignment_entropy"),
        ("semantic_ids_with_paraphrases", "all_cluster_assignment_entropy"),
    ):
        entropy = cluster_entropies(recorded, ids)
        gaps.append(np.abs(entropy - recorded[column].to_numpy()).max())
    return float(max(gaps))


def cluster_entropies(recorded: pl.DataFrame, ids: str) -> np.ndarray:
    """Return the entropy of each question's recorded cluster ids."""
    flat = (
        recorded.select(pl.col("example_id").alias("question_id"), pl.col(ids).alias("class_id"))
        .with_columns(pl.int_ranges(0, pl.col("class_id").list.len()).alias("draw"))
        .explode("class_id", "draw")
        .with_columns(pl.lit("m").alias("model"), pl.lit("answer").alias("purpose"))
        .with_columns(pl.lit("").alias("text"), pl.lit(None, dtype=pl.Boolean).alias("correct"))
    )
    return class_entropy(compact_table(flat).samples)


def _token_gaps(data: Path) -> dict[str, float]:
    recorded, scores = token_scores(data)
    gaps = {}
    for name, column in (
        ("perplexity", pl.col("repo_seq_confidence")),
        ("sequence_probability", pl.col("sequence_logprob").cast(pl.Float64).exp()),
    ):
        found = _by_row(scores, name).join(
            recorded.select("row", column.alias("expected")), on="row", how="inner"
        )
        gap = (found["confidence"] - found["expected"]).abs().max()
        gaps[f"`{name}`, {found.height:,} answers"] = float(gap)
    return gaps


def _by_row(scores: pl.DataFrame, method: str) -> pl.DataFrame:
    return scores.filter(pl.col("method") == method).select(
        pl.col("question_id").cast(pl.Int64).alias("row"), "confidence"
    )


def token_scores(data: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the recorded answers with token probabilities, and our scores of them."""
    recorded = pl.read_parquet(data / "scores" / "open_qa_6_models.parquet").with_row_index("row")
    recorded = recorded.with_columns(pl.col("row").cast(pl.Int64))
    draws = recorded.select(
        pl.col("row").cast(pl.String).alias("question_id"),
        pl.col("model").cast(pl.String),
        pl.lit("greedy").alias("purpose"),
        pl.lit(0, dtype=pl.Int64).alias("draw"),
        pl.col("response").fill_null("").alias("text"),
        pl.col("token_probs")
        .cast(pl.List(pl.Float64))
        .list.eval(pl.element().log())
        .alias("token_logprobs"),
        pl.lit(None, dtype=pl.Int64).alias("class_id"),
        (pl.col("correct") > 0.5).alias("correct"),
    )
    scored = score_table(draws, methods=["perplexity", "sequence_probability"])
    return recorded, scored.scores
