"""Confidence methods on recorded experiments: docs/studies/confidence.md and its figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from benchmarks.harness import DATA, ROOT

from calibrant.confidence import METHODS, ScoredTable, class_entropy, compact_table, score_table
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.recalibration import cross_fitted
from calibrant.semantics import annotate
from studies._confidence_tables import deepseek_tables, local_draws, read_deepseek

DOCS = ROOT / "docs" / "studies"
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
        "- Consistency is the share of draws that agree with the **greedy** answer, not the share "
        "of the most frequent one. Whether two answers agree was decided by a language model whose "
        "verdicts are not recorded; splitting both answers at commas and asking for one equal part "
        "(accents, case and punctuation aside) comes closest. A number such as 6,859 is thereby "
        "split in two, and an answer that lists three countries agrees with each of them. The "
        "remaining rows are verdicts that no rule predicts: 20 times 'France' is recorded as 0.90.",
        "- Verb and top-k confidences are about their own answers, but they carry the grade of the "
        "greedy answer. The top-k confidence is the largest one of the list, not the first.",
        "- The weighted consistencies compare the stated answers with the greedy answer of another "
        "prompt. Texts without any readable confidence are recorded as 0; here there is no score.",
        "- Semantic entropy is the frequency form, with 1e-12 added inside the logarithm: recorded "
        "confidences exceed 1 by 1e-12, the only difference.",
        "- The raw texts of `self_ask_cand` were not recorded, so it cannot be recomputed.",
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
            block = _graded(scores.filter(pl.col("method") == label))
            rows.append([f"`{label}`", block["about"][0], *_numbers(block, recalibrated=False)])
    columns = ["method", "about", "n", "mean confidence", "accuracy", "AUROC", "ECE"]
    lines += table(columns, rows)
    lines += [
        "Grades: the recorded grade for the greedy answer and equal texts, rule-based grading of "
        "the other answers.",
        "",
    ]
    return lines


def _graded(scores: pl.DataFrame) -> pl.DataFrame:
    return scores.filter(pl.col("correct").is_not_null())


def _numbers(block: pl.DataFrame, *, recalibrated: bool) -> list[str]:
    confidence, correct = block["confidence"].to_numpy(), block["correct"].to_numpy()
    probability = bool(block["probability"][0])
    auroc = metric_estimates(confidence, correct, names=("auroc",))["auroc"]
    ece = (
        str(metric_estimates(confidence, correct, names=("ece",))["ece"])
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
        cells.append(str(metric_estimates(mapped, correct, names=("ece",))["ece"]))
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
        "and grades are rule-based. ECE: 15 equal-width bins; recalibrated: isotonic, cross-fitted "
        "over 5 folds of questions. Brackets are 95 % intervals.",
        "",
    ]
    columns = ["method", "about", "n", "mean confidence", "accuracy", "AUROC", "ECE"]
    columns.append("ECE, recalibrated")
    points = []
    for model in scored.scores["model"].unique(maintain_order=True):
        rows = []
        ours = scored.scores.filter(pl.col("model") == model)
        for name in ours["method"].unique(maintain_order=True):
            block = _graded(ours.filter(pl.col("method") == name))
            cells = _numbers(block, recalibrated=True)
            rows.append([f"`{name}`", block["about"][0], *cells])
            points.append(_point(model, name, cells[3]))
        rows.sort(key=lambda row: row[5], reverse=True)
        lines += [f"### {model}", "", *table(columns, rows)]
    _figure(points)
    lines += ["![AUROC of every method and model](confidence-auroc.svg)", ""]
    lines += _unread(scored)
    lines += aggregation(draws, semantics, questions)
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
            blocks = [_graded(ours.filter(pl.col("k").is_in(mix))) for mix in MIXES]
            rows.append([f"`{method}`", *(_auroc(block) for block in blocks)])
        lines += [f"### {model}", ""]
        lines += table(["method", *(f"k in {list(mix)}" for mix in MIXES)], rows)
    return lines


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
        "SCA as published sums the probability of **every draw**, so a text drawn r times counts r "
        "times. A text of probability p is drawn n p times on average, each time adding p. The "
        "expected sum is therefore n times the sum of p squared over all texts: n times the chance "
        "that two draws coincide. It grows with n, it exceeds 1, and it falls when the mass is "
        "split between several right answers. With 20 draws, one answer of mass 0.9 gives "
        "20 x 0.81 = 16.2, and six answers of 0.15 each give 20 x 6 x 0.0225 = 2.7.",
        "",
        "Summing every **distinct** text once (`sca_distinct`) estimates the mass that the draws "
        "have uncovered. It stays below 1, it hardly changes when more draws repeat known texts, "
        "and the split above gives 0.87 instead of 0.90.",
        "",
        *table(["model", "mean sca", "over 1", "mean sca_distinct", "over 1"], rows),
        "AUROC against the grade of the greedy answer (as in the paper), questions with a known "
        f"number k of right answers, pooled over the sources; {taus}:",
        "",
    ]
