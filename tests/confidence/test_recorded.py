"""Recorded experiments, recomputed."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from studies._confidence_recorded import RECORDED, cluster_entropies, token_scores
from studies._confidence_tables import deepseek_tables, local_draws, read_deepseek

from calibrant.answers.confidence import score_table

EXACT = ("verb", "verb_topk", "p_true_consistency", "p_true_consistency_cand", "self_ask")
# Agreement with the greedy answer was judged by a language model; its verdicts are not recorded.
JUDGED = ("consistency", "consistency_verb", "consistency_verb_topk")


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> pl.DataFrame:
    return read_deepseek(shared_data).gather_every(12)


@pytest.fixture(scope="module")
def by_authors_rule(recorded: pl.DataFrame) -> pl.DataFrame:
    tables = deepseek_tables(recorded, authors_rule=True)
    return score_table(*tables, methods=list(RECORDED), variant="paper").scores


@pytest.fixture(scope="module")
def by_default(recorded: pl.DataFrame) -> pl.DataFrame:
    return score_table(*deepseek_tables(recorded)).scores


def _pairs(scores: pl.DataFrame, method: str, recorded: pl.DataFrame, column: str) -> pl.DataFrame:
    return recorded.select(pl.col("id").alias("question_id"), column).join(
        scores.filter(pl.col("method") == method), on="question_id", how="left"
    )


@pytest.mark.parametrize("method", EXACT)
def test_deepseek_paper_variant_row_by_row(
    method: str, recorded: pl.DataFrame, by_authors_rule: pl.DataFrame
) -> None:
    found = _pairs(by_authors_rule, f"{method}:paper", recorded, RECORDED[method])
    assert found["confidence"].is_null().to_list() == found[RECORDED[method]].is_null().to_list()
    gap = (found["confidence"] - found[RECORDED[method]]).abs()
    assert gap.max() < 1e-12


@pytest.mark.parametrize("method", JUDGED)
def test_deepseek_paper_variant_but_for_the_judge(
    method: str, recorded: pl.DataFrame, by_authors_rule: pl.DataFrame
) -> None:
    found = _pairs(by_authors_rule, f"{method}:paper", recorded, RECORDED[method])
    gap = (found["confidence"] - found[RECORDED[method]]).abs()
    assert (gap < 1e-9).sum() / recorded.height > 0.98
    assert gap.mean() < 0.005


def test_deepseek_semantic_entropy_is_the_frequency_form(
    recorded: pl.DataFrame, by_default: pl.DataFrame
) -> None:
    found = _pairs(by_default, "discrete_semantic_entropy", recorded, "semantic_entropy_conf")
    # They add 1e-12 inside the logarithm, so that certainty is recorded as more than 1.
    assert (found["confidence"] - found["semantic_entropy_conf"]).abs().max() < 3e-12
    assert found["confidence"].max() == 1.0


def test_deepseek_default_grades_the_verb_answer_itself(
    recorded: pl.DataFrame, by_default: pl.DataFrame
) -> None:
    found = by_default.filter(pl.col("method") == "verb").join(
        recorded.select(pl.col("id").alias("question_id"), "verb_answer", "greedy_answer"),
        on="question_id",
    )
    assert (found["answer"] == found["verb_answer"]).all()
    assert (found["answer"] != found["greedy_answer"]).sum() > 50


@pytest.mark.parametrize(
    ("ids", "column"),
    [
        ("semantic_ids", "original_cluster_assignment_entropy"),
        ("semantic_ids_with_paraphrases", "all_cluster_assignment_entropy"),
    ],
)
def test_szhou_cluster_assignment_entropy(shared_data: Path, ids: str, column: str) -> None:
    path = shared_data / "draws" / "szhou_triviaqa_semantic_ids_1095q_10samples.parquet"
    table = pl.read_parquet(path)
    np.testing.assert_allclose(
        cluster_entropies(table, ids), table[column].to_numpy(), rtol=0, atol=1e-12
    )


def test_open_qa_token_probabilities(shared_data: Path) -> None:
    recorded, scores = token_scores(shared_data)
    for method, expected in (
        ("perplexity", pl.col("repo_seq_confidence")),
        ("sequence_probability", pl.col("sequence_logprob").cast(pl.Float64).exp()),
    ):
        ours = scores.filter(pl.col("method") == method).select(
            pl.col("question_id").cast(pl.Int64).alias("row"), "confidence"
        )
        found = recorded.select("row", "n_tokens", expected.alias("expected")).join(
            ours, on="row", how="inner"
        )
        assert found.height == recorded.filter(pl.col("n_tokens") > 0).height
        assert (found["confidence"] - found["expected"]).abs().max() < 1e-6


def test_local_models_lack_only_what_was_not_drawn(shared_data: Path) -> None:
    draws, questions = local_draws(shared_data)
    few = questions["question_id"].gather_every(40)
    _, available, _ = score_table(draws.filter(pl.col("question_id").is_in(few)), None, questions)
    ready = {entry["method"] for entry in available if entry["available"]}
    assert {"perplexity", "p_true_prob", "self_certainty"} <= ready
    assert "sca" not in ready
    assert "p_true_consistency" not in ready
