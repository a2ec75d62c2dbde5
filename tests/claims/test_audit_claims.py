"""What an audit says, outcome by outcome; and the sentences that used to be false."""

import re

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.findings.claims.margins import more_labels


def audited(n, shift, seed=0, **options):
    rng = np.random.default_rng(seed)
    said = rng.uniform(0.4, 0.95, n)
    right = rng.random(n) < said - shift
    return cal.audit(said, right, resamples=50, **options)


def by_id(document):
    return {claim["id"]: claim for claim in document["claims"]}


def test_shown():
    claim = by_id(audited(2_000, 0.1))["audit.over_confident"]
    assert claim["outcome"] == "shown"
    assert claim["text"].startswith("Says 6")
    assert "over-confident by" in claim["text"]
    assert by_id(audited(2_000, -0.04))["audit.under_confident"]["outcome"] == "shown"


def test_equivalent_comes_before_shown():
    """With enough labels a gap of half a point is seen, and does not matter."""
    document = audited(200_000, 0.005)
    claims = by_id(document)
    assert document["results"][0]["significance"]["gap"]["p_adjusted"] < 0.05
    assert claims["audit.over_confident"]["outcome"] == "equivalent"
    assert claims["audit.miscalibrated"]["outcome"] == "equivalent"
    assert "within 2 points" in claims["audit.miscalibrated"]["text"]
    assert document["results"][0]["verdict"]["calibration"] == "calibrated"


def test_undecided_says_what_would_decide():
    claim = by_id(audited(60, 0.02))["audit.over_confident"]
    assert claim["outcome"] == "undecided"
    assert "more labels would decide" in claim["text"]


def test_labels_that_would_decide_count_all_tests():
    """Among many models a p-value is cut off at 1; the labels must outdo all tests all the same."""
    gap = {"value": 0.03, "low": -0.01, "high": 0.07, "n": 500}
    assert more_labels(gap, 0.02, shown=0.001) > 1.5 * more_labels(gap, 0.02)
    assert more_labels(gap, 0.02, within=0.001) > more_labels(gap, 0.02)


def test_labels_decide_the_hardest_gap_that_is_still_possible():
    far = more_labels({"value": 0.08, "low": -0.01, "high": 0.17, "n": 100}, 0.02)
    near = more_labels({"value": 0.011, "low": -0.08, "high": 0.10, "n": 100}, 0.02)
    assert far < near / 10
    none = more_labels({"value": 0.0, "low": -0.01, "high": 0.01, "n": 5_000}, 0.02)
    assert none < 3 * 5_000


def test_the_margin_is_in_the_sentence():
    claims = by_id(audited(5_000, 0.0, margin=0.05))
    assert "within 5 points" in claims["audit.miscalibrated"]["text"]
    assert claims["audit.miscalibrated"]["margin"] == 0.05


def with_a_silent_model(answer):
    rng = np.random.default_rng(1)
    said = rng.uniform(0.5, 1, 200)
    return pl.DataFrame(
        {
            "question_id": np.tile(np.arange(200), 2),
            "model": ["good"] * 200 + ["silent"] * 200,
            "confidence": np.tile(said, 2),
            "correct": [*(rng.random(200) < said).astype(int), *([0] * 200)],
            "answer": ["x"] * 200 + [answer] * 200,
        }
    )


def test_a_model_that_is_never_right_comes_first():
    document = cal.audit(with_a_silent_model("y"), resamples=20)
    warning = document["data"]["warnings"][0]
    assert warning["id"] == "data.never_right"
    assert warning["text"] == "silent is never right (200 answers)."
    first = document["claims"][0]
    assert (first["id"], first["outcome"]) == ("audit.over_confident", "shown")
    assert first["text"].startswith(
        "silent says 75 %, is never right (200 answers): over-confident"
    )
    assert {claim["subject"]["model"] for claim in document["claims"]} == {"good", "silent"}


def test_nothing_is_claimed_of_a_model_whose_answers_nobody_could_read():
    document = cal.audit(with_a_silent_model(""), resamples=20)
    warning = document["data"]["warnings"][0]
    assert warning["id"] == "data.unreadable"
    assert warning["text"] == (
        "No answer could be read in 100 % of the rows of silent, all graded as wrong. Such rows "
        "are missing, not wrong: leave their grade empty."
    )
    assert {claim["subject"]["model"] for claim in document["claims"]} == {"good"}


def test_missing_rows_that_differ_are_said_first():
    rng = np.random.default_rng(2)
    said = rng.uniform(0.5, 1, 400)
    right = (rng.random(400) < said).astype(float)
    # Confidence is missing mostly where the answer is wrong.
    lost = (right == 0) & (rng.random(400) < 0.6)
    table = pl.DataFrame(
        {"question_id": np.arange(400), "confidence": said, "correct": right}
    ).with_columns(confidence=pl.when(pl.Series(~lost)).then("confidence"))
    document = cal.audit(table, on_invalid="drop", resamples=20)
    warning = next(w for w in document["data"]["warnings"] if w["id"] == "data.missing")
    assert "0 % right against" in warning["text"]


def test_few_values_are_said():
    document = cal.audit([0.9] * 100, [1, 0] * 50, resamples=20)
    assert [w["id"] for w in document["data"]["warnings"]] == ["data.few_values"]


def test_mmlu_pro_names_the_data_problems_then_the_finding(shared_data):
    document = cal.audit(
        shared_data / "scores" / "mmlu_pro_16_models.parquet",
        confidence="logit_perplexity_confidence",
        answer="extracted_answer",
        on_invalid="drop",
        resamples=20,
    )
    warnings = document["data"]["warnings"]
    assert any("phi-4" in warning["text"] for warning in warnings)
    assert {"data.missing", "data.dependent"} <= {warning["id"] for warning in warnings}
    first = document["claims"][0]
    assert (first["id"], first["outcome"]) == ("audit.over_confident", "shown")
    assert "over-confident by 15 points (95 % interval" in first["text"]
    # Rows of one category hang together: of most models it is shown of these 14 alone.
    over = [c for c in document["claims"] if c["id"] == "audit.over_confident"]
    assert len(over) == 15
    assert {c["outcome"] for c in over} == {"shown", "depends", "undecided"}
    for claim in over:
        limited = "14 values of category, mixed as here. For others like them" in claim["text"]
        assert limited == (claim["outcome"] == "depends")


def test_mmlu_pro_as_independent_rows_begins_with_all_of_its_models(shared_data):
    """Without its categories, in another order: nothing shows that its rows hang together."""
    roles = ["question_id", "model", "correct", "logit_perplexity_confidence", "extracted_answer"]
    rows = pl.read_parquet(shared_data / "scores" / "mmlu_pro_16_models.parquet", columns=roles)
    first = cal.audit(
        rows.sample(fraction=1, shuffle=True, seed=1),
        confidence="logit_perplexity_confidence",
        answer="extracted_answer",
        on_invalid="drop",
        resamples=20,
    )["claims"][0]
    assert first["id"] == "audit.models_over_confident"
    assert first["text"].startswith("All 15 models say more than they know, by 1")


def test_what_holds_by_every_confidence_is_said_once_and_first():
    rng = np.random.default_rng(0)
    frames = []
    for model in ("a", "b"):
        right = rng.random(400) < 0.5
        for method, more in (("verb", 0.2), ("perplexity", 0.3)):
            said = np.clip(0.5 + more + rng.normal(0, 0.05, 400), 0, 1)
            frames.append(
                pl.DataFrame(
                    {"model": model, "method": method, "confidence": said, "correct": right}
                ).with_columns(question_id=pl.int_range(400).cast(pl.String))
            )
    claims = cal.audit(pl.concat(frames), resamples=20)["claims"]
    summaries = [claim for claim in claims if claim["id"] == "audit.models_over_confident"]
    assert [claim["subject"]["method"] for claim in summaries] == [None, "verb", "perplexity"]
    assert summaries[0]["text"].startswith("In both confidences both models say more than they")
    # It may not be surer than the least sure of its parts.
    assert summaries[0]["p_adjusted"] == max(claim["p_adjusted"] for claim in summaries)


def test_always_and_never_right_are_claims():
    rng = np.random.default_rng(4)
    for outcome, word, claim in ((1, "always", "under"), (0, "never", "over")):
        document = cal.audit(rng.uniform(0.5, 1, 60), np.full(60, outcome), resamples=20)
        first = document["claims"][0]
        assert (first["id"], first["outcome"]) == (f"audit.{claim}_confident", "shown")
        assert f"is {word} right (60 answers): {claim}-confident by" in first["text"]
        assert document["results"][0]["verdict"]["calibration"] == f"{claim}-confident"
    # Thirty right answers at 90 % are what one model in twenty-four shows by chance.
    document = cal.audit([0.9] * 30, [1] * 30, resamples=20)
    assert {claim["outcome"] for claim in document["claims"]} == {"undecided"}


def test_a_model_is_left_out_only_where_all_of_its_confidences_are_one_sided():
    rng = np.random.default_rng(5)
    said, right = rng.uniform(0.5, 1, 80), (rng.random(80) < 0.7).astype(int)
    table = pl.DataFrame(
        {
            "question_id": np.tile(np.arange(80), 2),
            "method": ["first"] * 80 + ["second"] * 80,
            "confidence": np.tile(said, 2),
            "correct": [*right, *([0] * 80)],
        }
    )
    document = cal.audit(table, resamples=20)
    assert [w for w in document["data"]["warnings"] if "right" in w["text"]] == []


def test_a_constant_confidence_does_not_ask_for_more_labels_to_separate():
    rng = np.random.default_rng(6)
    document = cal.audit(np.full(200, 0.8), rng.random(200) < 0.7, resamples=20)
    claim = by_id(document)["audit.separates"]
    assert claim["outcome"] == "undecided"
    assert claim["text"] == (
        "Confidence is always the same: it separates no right from wrong answers until it varies."
    )


@pytest.mark.parametrize("rows", [1, 3])
def test_few_rows_are_told_in_sentences_that_hold(rows):
    document = cal.audit([0.8, 0.6, 0.9][:rows], [1, 0, 1][:rows])
    texts = " ".join(claim["text"] for claim in document["claims"])
    assert "not known points" not in texts
    assert "With this many rows, errors below" in texts
    assert f"{rows} question" + ("s" if rows > 1 else "") + "\n" in str(document)


@pytest.mark.parametrize("rows", [20, 60, 100, 300])
def test_an_error_is_never_called_smaller_than_it_looks(rows):
    """'Calibration error 11 points, at most 0 points: calibrated within 2 points.' of 20 rows."""
    rng = np.random.default_rng(11)
    number = re.compile(r"Calibration error ([\d.]+) points.*(?:at most|as large as) ([\d.]+)")
    for turn in range(60):
        said = rng.beta(8, 2, rows) if turn % 2 else rng.uniform(0.2, 1, rows)
        document = cal.audit(said, rng.random(rows) < said, resamples=20)
        claim = by_id(document)["audit.miscalibrated"]
        found = number.match(claim["text"])
        assert found is None or float(found[1]) <= float(found[2]), claim["text"]
        assert claim["outcome"] != "equivalent" or claim["value"] <= claim["margin"]
