"""Every defect of a scores table has a rule: an error that names file, row and rule, or a count."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant
from calibrant.core.errors import InputError
from calibrant.records import load_scores
from calibrant.records.rules import RULES

GOOD = {"question_id": ["a", "b", "c"], "confidence": [0.2, 0.5, 1.0], "correct": [0, 1, 1]}


def table(**changes):
    return pl.DataFrame({**GOOD, **changes}, strict=False)


DEFECTS = {
    "model_missing": table(model=["small", None, "small"]),
    "method_missing": table(method=["verb", None, "verb"]),
    "question_missing": table(question_id=["a", None, "c"]),
    "confidence_not_number": table(confidence=["0.2", "high", "1.0"]),
    "confidence_missing": table(confidence=[0.2, None, 1.0]),
    "confidence_nan": table(confidence=[0.2, float("nan"), 1.0]),
    "confidence_infinite": table(confidence=[0.2, float("inf"), 1.0]),
    "confidence_minus_one": table(confidence=[0.2, -1.0, 1.0]),
    "confidence_below_0": table(confidence=[0.2, -0.1, 1.0]),
    "confidence_above_1": table(confidence=[0.2, 50.0, 1.0]),
    "correct_not_number": table(correct=["0", "maybe", "1"]),
    "correct_missing": table(correct=[0, None, 1]),
    "correct_not_binary": table(correct=[0, 0.5, 1]),
    "answer_missing": table(answer=["x", None, "y"]),
    "weights_not_number": table(weights=["1", "heavy", "1"]),
    "weights_invalid": table(weights=[1.0, -1.0, 1.0]),
    "duplicate_row": table(question_id=["a", "a", "c"]),
}


def test_every_rule_has_a_case():
    assert set(DEFECTS) == set(RULES)


@pytest.mark.parametrize("rule", DEFECTS)
def test_defect_is_an_error_that_names_file_row_and_rule(rule, tmp_path):
    path = tmp_path / "scores.parquet"
    DEFECTS[rule].write_parquet(path)
    with pytest.raises(InputError) as caught:
        load_scores(path)
    text = str(caught.value)
    assert str(path) in text
    assert caught.value.row == 2
    assert RULES[rule].sentence in text
    assert RULES[rule].hint in text


@pytest.mark.parametrize("rule", [name for name in DEFECTS if name != "duplicate_row"])
def test_drop_counts_and_names_the_rows(rule):
    scores = load_scores(DEFECTS[rule], on_invalid="drop")
    assert scores.dropped == {rule: 1}
    assert scores.dropped_rows == {rule: [2]}
    assert scores.frame["question_id"].to_list() == ["a", "c"]
    assert scores.rejected["row"].to_list() == [2]
    assert scores.rejected["rule"].to_list() == [rule]


@pytest.mark.parametrize("column", ["model", "method", "question_id"])
def test_an_empty_name_is_as_good_as_none(column, tmp_path):
    path = tmp_path / "scores.parquet"
    names = {"question_id": ["a", "", "c"], "model": ["x", "", "x"], "method": ["v", "", "v"]}
    table(**{column: names[column]}).write_parquet(path)
    with pytest.raises(InputError, match=r"scores\.parquet, row 2: .* = ''\)"):
        load_scores(path)
    rule = column.removesuffix("_id") + "_missing"
    assert load_scores(path, on_invalid="drop").dropped == {rule: 1}


def test_text_that_is_no_number_is_shown():
    with pytest.raises(InputError, match=r"must be a number \(confidence = 'high'\)"):
        load_scores(DEFECTS["confidence_not_number"])
    with pytest.raises(InputError, match=r"\(correct = 'maybe'\)"):
        load_scores(DEFECTS["correct_not_number"])


def test_duplicates_are_never_dropped_silently():
    with pytest.raises(InputError, match="more than once"):
        load_scores(DEFECTS["duplicate_row"], on_invalid="drop")
    kept = load_scores(DEFECTS["duplicate_row"], repeats=True)
    (block,) = kept.blocks()
    np.testing.assert_array_equal(block.units, [0, 0, 1])


def test_an_invalid_row_may_share_the_id_of_a_valid_one():
    twice = pl.DataFrame(
        {"question_id": ["a", "a"], "confidence": [None, 0.5], "correct": [1, 1]}, strict=False
    )
    assert load_scores(twice, on_invalid="drop").frame.height == 1


def test_percent_is_converted_only_when_asked():
    percent = table(confidence=[20, 50, 100])
    with pytest.raises(InputError, match='use scale="percent"'):
        load_scores(percent)
    assert load_scores(percent, scale="percent").frame["confidence"].to_list() == [0.2, 0.5, 1.0]


def test_graded_outcomes_are_allowed_only_when_asked():
    graded = load_scores(DEFECTS["correct_not_binary"], graded=True)
    assert graded.frame["correct"].to_list() == [0, 0.5, 1]
    with pytest.raises(InputError, match="0 or 1"):
        load_scores(table(correct=[0, 1.5, 1]), graded=True)


def test_scores_that_are_no_probability_keep_their_range():
    frame = table(confidence=[-3.0, 0.5, 7.0]).with_columns(method=pl.lit("sca"))
    assert load_scores(frame, non_probability={"sca"}).frame.height == 3
    with pytest.raises(InputError):
        load_scores(frame)


def test_words_for_outcomes():
    scores = load_scores(table(correct=["true", "False", " 1 "]))
    assert scores.frame["correct"].to_list() == [1, 0, 1]


def test_missing_labels_are_kept_for_labelling_only():
    scores = load_scores(table(correct=[0, None, 1]), labels="optional")
    assert scores.frame["correct"].null_count() == 1


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "jsonl.gz", "json", "parquet"])
def test_files_are_recognised_by_content(kind, tmp_path):
    path = tmp_path / "no_ending"
    frame = table()
    if kind == "parquet":
        frame.write_parquet(path)
    else:
        form = kind.split(".")[0]
        writer = {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "json": frame.write_json}
        writer[form](path)
    if kind.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert load_scores(path).frame["confidence"].to_list() == GOOD["confidence"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_any_dataframe_is_accepted(make):
    assert load_scores(make(GOOD)).frame.height == 3


def test_several_confidence_columns_become_methods():
    frame = table(other=[0.1, 0.2, 0.3])
    scores = load_scores(frame, confidence="confidence,other")
    assert [block.keys["method"] for block in scores.blocks()] == ["confidence", "other"]


def test_question_id_of_several_columns():
    frame = pl.DataFrame(
        {"q": [1, 1], "prompt": ["x", "y"], "confidence": [0.5, 0.6], "correct": [1, 0]}
    )
    scores = load_scores(frame, question="q,prompt")
    assert scores.frame["question_id"].to_list() == ["1|x", "1|y"]
    assert len(list(scores.blocks(by=["prompt"]))) == 3


def test_missing_column_says_did_you_mean():
    with pytest.raises(InputError, match="did you mean 'confidence'"):
        load_scores(table(), confidence="confidenc")
    with pytest.raises(InputError, match="no column 'correct'"):
        load_scores(table().drop("correct"))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"confidence,correct\n"])
def test_empty_files_are_said_to_be_empty(content, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"empty|no rows"):
        load_scores(path)


@pytest.mark.parametrize(
    "content",
    [b"PAR1 and nothing else", b"\x1f\x8bbroken", b'{"confidence": 0.5', b"a,b\n1,2,3\n4,5,6,7\n"],
)
def test_broken_files_never_give_a_traceback(content, tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load_scores(path)


def test_single_precision_is_kept_for_binning():
    frame = table().with_columns(pl.col("confidence").cast(pl.Float32))
    (block,) = load_scores(frame).blocks()
    assert block.confidence.dtype == np.float32


def test_mmlu_pro_counts_what_it_drops(shared_data):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    raw = pl.read_parquet(path)
    verbal = pl.col("verbal_numerical_confidence")
    expected = {
        "confidence_missing": raw.filter(verbal.is_null()).height,
        "confidence_above_1": raw.filter(verbal > 1).height,
    }
    with pytest.raises(InputError):
        load_scores(path, confidence="verbal_numerical_confidence")
    scores = load_scores(path, confidence="verbal_numerical_confidence", on_invalid="drop")
    assert scores.dropped == expected
    assert scores.frame.height == raw.height - sum(expected.values())


def test_mmlu_pro_unanswered_questions_are_not_wrong_answers(shared_data):
    path = shared_data / "scores" / "mmlu_pro_16_models.parquet"
    scores = load_scores(
        path,
        confidence="logit_perplexity_confidence",
        answer="extracted_answer",
        on_invalid="drop",
    )
    assert "phi-4" not in scores.frame["model"].unique().to_list()
    assert (
        scores.dropped["answer_missing"] == pl.read_parquet(path)["extracted_answer"].null_count()
    )


def test_several_files_are_one_table_and_name_their_models(tmp_path):
    for name in ("small", "large"):
        table().write_csv(tmp_path / f"{name}.csv")
    scores = load_scores([tmp_path / "small.csv", tmp_path / "large.csv"])
    assert [block.keys["model"] for block in scores.blocks()] == ["small", "large"]
    again = table().with_columns(question_id=pl.int_range(pl.len()), model=pl.lit("m"))
    for name in ("small", "large"):
        again.write_csv(tmp_path / f"{name}.csv")
    with pytest.raises(InputError, match="two tables hold the same question"):
        load_scores([tmp_path / "small.csv", tmp_path / "large.csv"])


def test_columns_that_contain_the_word_are_named_where_none_is_called_so():
    table = {"verbal_confidence": [0.5], "logit_confidence": [0.4], "correct": [1]}
    with pytest.raises(InputError, match="or all of them: verbal_confidence,logit_confidence"):
        calibrant.audit(table)
    with pytest.raises(InputError, match="name it with confidence: verbal_confidence_x"):
        calibrant.audit({"verbal_confidence_x": [0.5], "correct": [1]})
