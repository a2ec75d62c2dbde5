"""Questions that depend on each other: repeated ones, and those of one cluster."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.decision import missing_questions
from calibrant.comparison.questions import (
    BLOCK_QUESTIONS,
    QuestionBlock,
    align_models,
    deal_blocks,
    resample_counts,
)
from calibrant.comparison.survey import survey_block

N, TIMES = 400, 4


def drawn(times: int) -> pl.DataFrame:
    """Return two models on the same questions, every row several times over."""
    rng = np.random.default_rng(3)
    chance = rng.beta(4, 2, N)
    rows = []
    for name, shift in (("weak", 0.0), ("strong", 0.08)):
        right = (rng.random(N) < np.clip(chance + shift, 0, 1)).astype(float)
        rows.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(N),
                    "model": [name] * N,
                    "confidence": np.clip(chance + 0.1, 0, 1),
                    "correct": right,
                }
            )
        )
    return pl.concat([pl.concat(rows)] * times)


def survey_of(block: QuestionBlock):
    return survey_block(block, resample_counts(block.size, 200, 1, block.cluster))


def test_copies_of_rows_are_no_further_evidence():
    once, often = (survey_of(align_models(drawn(times))) for times in (1, TIMES))
    _, lead, error = once.more_accurate(0, 1)
    n, same_lead, same_error = often.more_accurate(0, 1)
    assert (n, same_lead) == (TIMES * N, pytest.approx(lead))
    assert same_error == pytest.approx(error)
    spread, same_spread = (s.accuracy(0, 0)[1:].std() for s in (once, often))
    assert same_spread == pytest.approx(spread, rel=0.2)


def test_repeated_rows_are_all_compared_and_intervals_stay_as_long():
    once = cal.compare(drawn(1), resamples=400)
    often = cal.compare(drawn(TIMES), resamples=400, repeats=True)
    assert often["pairs"][0]["n"] == TIMES * N
    for entry, same in zip(once["results"], often["results"], strict=True):
        for name in ("accuracy", "mean_confidence"):
            width, same_width = (e[name]["high"] - e[name]["low"] for e in (entry, same))
            assert same_width == pytest.approx(width, rel=0.2)
            assert same[name]["value"] == pytest.approx(entry[name]["value"])
        area, same_area = (e["companions"]["auroc"] for e in (entry, same))
        assert same_area["high"] - same_area["low"] >= 0.9 * (area["high"] - area["low"])


def test_a_cluster_column_is_heeded():
    table = drawn(TIMES).with_columns(
        question_id=pl.int_range(pl.len()).over("model"), topic=pl.col("question_id")
    )
    calls = ((table.drop("topic"), None), (table, "topic"), (table, None))
    one, two, searched = (
        cal.compare(rows, resamples=400, cluster=name)["pairs"][0]["accuracy_gap"]
        for rows, name in calls
    )
    assert two["value"] == one["value"]
    assert two["high"] - two["low"] > 1.7 * (one["high"] - one["low"])
    # Nobody has to name it.
    assert searched["high"] - searched["low"] > 1.7 * (one["high"] - one["low"])


def test_the_second_row_of_one_model_meets_the_second_of_the_other():
    table = pl.DataFrame(
        {
            "question_id": ["q", "q", "q", "q", "q"],
            "model": ["a", "a", "b", "b", "a"],
            "confidence": [0.1, 0.2, 0.3, 0.4, 0.5],
            "correct": [0.0, 1.0, 1.0, 0.0, 1.0],
        }
    )
    block = align_models(table)
    assert np.nan_to_num(block.confidence, nan=-1).tolist() == [[0.1, 0.2, 0.5], [0.3, 0.4, -1]]
    assert block.cluster.tolist() == [0, 0, 0]


def test_blocks_never_part_a_cluster():
    size = 2 * BLOCK_QUESTIONS
    cluster = np.random.default_rng(0).integers(0, size // 3, size)
    cluster = np.unique(cluster, return_inverse=True)[1]
    values = np.full((2, size), 0.5)
    whole = QuestionBlock(("a", "b"), cluster.astype(str), values, values, cluster)
    blocks = list(deal_blocks(whole))
    met = [set(block.questions) for block in blocks]
    assert len(blocks) == 2
    assert not met[0] & met[1]
    assert sum(block.size for block in blocks) == size
    assert abs(blocks[0].size - blocks[1].size) < 0.02 * size


def test_copies_of_missing_rows_are_no_further_evidence_that_they_are_harder():
    rows = drawn(1).with_columns(
        correct=pl.when(pl.col("question_id") < 60).then(pl.col("question_id") % 3 // 2)
        .otherwise(pl.col("correct"))
    )  # fmt: skip
    lacking = rows.filter((pl.col("model") == "weak") | (pl.col("question_id") >= 40))
    mute = pl.when(pl.col("question_id") < 60).then(None).otherwise(pl.col("confidence"))
    tested, unlike = [], []
    for times in (1, TIMES):
        survey = survey_of(align_models(pl.concat([lacking] * times)))
        tested.append(missing_questions(survey, ["weak", "strong"])[1].p_adjusted)
        silent = survey_of(align_models(pl.concat([rows.with_columns(confidence=mute)] * times)))
        unlike.append(silent.unit_share * silent.graded[0, 0, 1])
    assert tested[1] == pytest.approx(tested[0], rel=0.05)
    assert unlike[1] == pytest.approx(unlike[0])
