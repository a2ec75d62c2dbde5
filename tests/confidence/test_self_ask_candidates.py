"""Recorded confidences of the second turn with candidates, recomputed from the raw texts."""

from pathlib import Path

import polars as pl
import pytest
from studies._confidence_tables import MODEL, read_deepseek
from tests.confidence.self_ask_candidates import RAW_TEXTS

from calibrant.answers.confidence import score_table
from calibrant.answers.semantics.annotate import annotate


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> pl.DataFrame:
    texts = pl.DataFrame({"id": list(RAW_TEXTS), "raw": list(RAW_TEXTS.values())})
    return texts.join(read_deepseek(shared_data), on="id", how="inner", maintain_order="left")


def _draws(recorded: pl.DataFrame) -> pl.DataFrame:
    """Return the greedy answer and the second turn of each question."""
    return pl.concat(
        recorded.select(
            pl.col("id").alias("question_id"),
            pl.lit(MODEL).alias("model"),
            pl.lit(purpose).alias("purpose"),
            pl.lit(0, dtype=pl.Int64).alias("draw"),
            pl.lit(0.0).alias("temperature"),
            pl.col(column).alias("text"),
        )
        for purpose, column in (("greedy", "greedy_answer"), ("self_ask_cand", "raw"))
    )


def test_the_sample_is_of_every_file_and_of_every_recorded_number(
    shared_data: Path, recorded: pl.DataFrame
) -> None:
    everything = read_deepseek(shared_data)
    assert recorded.height == len(RAW_TEXTS) == 395
    for column in ("file", "self_ask_cand_conf"):
        assert set(recorded[column]) == set(everything[column])
    assert recorded["file"].value_counts()["count"].min() >= 23


def test_every_raw_text_gives_the_recorded_confidence(recorded: pl.DataFrame) -> None:
    tables = annotate(_draws(recorded))
    scored = score_table(*tables, methods=["self_ask_cand"], variant="paper")
    assert [entry["unread"] for entry in scored.failures] == [0]
    found = recorded.select(pl.col("id").alias("question_id"), "raw", "self_ask_cand_conf").join(
        scored.scores.filter(pl.col("method") == "self_ask_cand:paper"), on="question_id"
    )
    assert found.height == 395
    gap = (pl.col("confidence") - pl.col("self_ask_cand_conf")).abs()
    different = found.filter(gap.fill_null(1.0) >= 1e-12)
    assert different.select("question_id", "raw", "self_ask_cand_conf", "confidence").rows() == []
