"""Every defect of a scores table has a rule: an error that names file, row and rule, or a count."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from calibrant.core.errors import InputError, QuestionError
from calibrant.data import load_scores
from calibrant.data.rules import MISSING, RULES

GOOD = {"question_id": ["a", "b", "c"], "confidence": [0.2, 0.5, 1.0], "correct": [0, 1, 1]}


def table(**changes):
    return pl.DataFrame({**GOOD, **changes}, strict=False)


DEFECTS = {
    "row_empty": table(confidence=[0.2, None, 1.0], correct=[0, None, 1]),
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
    "correct_neither": table(correct=["0", "not attempted", "1"]),
    "correct_missing": table(correct=[0, None, 1]),
    "correct_not_binary": table(correct=[0, 0.5, 1]),
    "answer_missing": table(answer=["x", None, "y"]),
    "weights_not_number": table(weights=["1", "heavy", "1"]),
    "weights_invalid": table(weights=[1.0, -1.0, 1.0]),
    "duplicate_row": table(question_id=["a", "a", "c"]),
}


def test_every_rule_has_a_case():
    assert set(DEFECTS) == set(RULES) - {"repeated_row"}


@pytest.mark.parametrize("rule", DEFECTS)
def test_defect_is_an_error_that_names_file_row_and_rule(rule, tmp_path):
    path = tmp_path / "scores.parquet"
    DEFECTS[rule].write_parquet(path)
    with pytest.raises(InputError) as caught:
        load_scores(path, on_invalid="error")
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


@pytest.mark.parametrize("rule", sorted(MISSING))
def test_a_row_that_says_nothing_is_left_out_unasked_and_counted(rule):
    scores = load_scores(DEFECTS[rule])
    assert scores.dropped == {rule: 1}
    graded = rule.startswith("confidence_")
    assert scores.graded["question_id"].to_list() == (["a", "c", "b"] if graded else ["a", "c"])
    assert np.isnan(scores.unscored["confidence"].to_numpy()).all()
    (block,) = scores.blocks()
    assert block.graded.correct.tolist() == [0, 1, *[1] * graded]


@pytest.mark.parametrize("rule", sorted(set(DEFECTS) - MISSING))
def test_a_row_that_says_something_wrong_stops_the_reading(rule):
    with pytest.raises(InputError):
        load_scores(DEFECTS[rule])


def test_few_rows_without_an_outcome_are_left_out_and_many_are_a_question():
    many = pl.DataFrame({"confidence": [0.5] * 100, "correct": [1, 0] * 50})
    few = many.with_columns(correct=pl.when(pl.int_range(pl.len()) >= 5).then("correct"))
    assert load_scores(few).dropped == {"correct_missing": 5}
    more = many.with_columns(correct=pl.when(pl.int_range(pl.len()) >= 6).then("correct"))
    with pytest.raises(InputError, match="the outcome is missing"):
        load_scores(more)


def test_every_rule_that_a_row_breaks_is_counted():
    worst = table(confidence=[0.2, 1.7, 1.0], correct=[0, 0.5, 1], model=["a", None, "a"])
    assert load_scores(worst, on_invalid="drop").dropped == {
        "model_missing": 1,
        "confidence_above_1": 1,
        "correct_not_binary": 1,
    }


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


PERCENT = {
    "numbers": [20, 50, 100, 95],
    "with signs": ["20 %", "50%", "100\u202f%", "95%"],
    "with commas": ["20,0", "50,0", "100", "95,0"],
    "fractions with commas": ["0,2", "0,5", "1", "0,95"],
}


@pytest.mark.parametrize("kind", PERCENT)
def test_percentages_and_commas_are_read_as_they_are_meant(kind):
    found = load_scores({"confidence": PERCENT[kind], "correct": [0, 1, 1, 1]})
    assert found.frame["confidence"].to_list() == [0.2, 0.5, 1.0, 0.95]
    assert (found.reading.scale == "percent") == ("fractions" not in kind)
    assert ("scale" in found.reading.guessed) == ("fractions" not in kind)


@pytest.mark.parametrize(
    ("values", "ways"),
    [
        ([1, 3, 5, 5] * 10, ('scale="1-5"', 'scale="percent"')),
        ([0, 3, 9, 10] * 10, ('scale="0-10"', 'scale="percent"')),
        ([0.4, 60.0, 80.0, 90.0] * 10, ('scale="percent"', 'on_invalid="drop"')),
    ],
)
def test_two_scales_that_may_be_meant_are_a_question(values, ways):
    table = {"confidence": values, "correct": [0, 1] * 20}
    with pytest.raises(InputError) as caught:
        load_scores(table)
    assert all(way in str(caught.value) for way in ways)
    levels = load_scores({**table, "confidence": [1, 3, 5, 5] * 10}, scale="1-5")
    assert levels.frame["confidence"].head(4).to_list() == [0.0, 0.5, 1.0, 1.0]


def test_one_model_in_fractions_beside_another_in_percent_is_a_question():
    table = {"confidence": [0.9] * 30 + [90.0] * 900, "correct": [0, 1] * 465}
    with pytest.raises(InputError, match="those of a all are"):
        load_scores({**table, "model": ["a"] * 30 + ["b"] * 900})


def test_words_for_a_confidence_get_their_numbers_from_whoever_knows():
    table = {"confidence": ["low", "High", "low"], "correct": [0, 1, 1]}
    with pytest.raises(InputError, match="scale="):
        load_scores(table)
    found = load_scores(table, scale="low=0.3,high=0.9")
    assert found.frame["confidence"].to_list() == [0.3, 0.9, 0.3]


@pytest.mark.parametrize("words", ["yes/no", "C/I", "WAHR/FALSCH", "pass/fail", "✓/✗", "vrai/faux"])
def test_words_for_right_and_wrong(words):
    right, wrong = words.split("/")
    found = load_scores({"confidence": [0.5, 0.6, 0.7], "correct": [right, wrong, right]})
    assert found.frame["correct"].to_list() == [1, 0, 1]
    assert found.reading.words == words.lower()


def test_words_that_nobody_knows_are_asked_about():
    table = {"confidence": [0.5, 0.6, 0.7], "correct": ["good", "bad", "fine"]}
    with pytest.raises(InputError, match="right="):
        load_scores(table)
    assert load_scores(table, right="good,fine").frame["correct"].to_list() == [1, 0, 1]


MODELS = {"confidence": [0.5, 0.6, 0.7, 0.8], "correct": [0, 1, 1, 0]}


def test_models_are_never_pooled():
    names = {"model_id": ["m1", "m2", "m1", "m2"], "model_name": ["A", "B", "A", "B"]}
    alike = load_scores({**MODELS, **names})
    assert alike.frame["model"].to_list() == names["model_name"]
    assert "model_id names the same" in alike.reading.sentence
    finer = {"model": ["A"] * 4, "deployment": ["x", "y", "x", "y"]}
    assert load_scores({**MODELS, **finer}).frame["model"].unique().sort().to_list() == ["x", "y"]
    crossed = {"model": ["A", "A", "B", "B"], "deployment": ["x", "y", "x", "y"]}
    with pytest.raises(InputError, match='model="model", model="deployment"'):
        load_scores({**MODELS, **crossed})


def test_a_name_that_may_be_two_roles_is_told_by_its_values():
    said = [0.5, 0.8, 0.7, 0.9] * 10
    scored = {"certainty": said, "score": [0, 1, 0, 1] * 9 + [1, 0] * 2}
    assert load_scores(scored).reading.columns["correct"] == "score"
    graded = {"score": said, "passed": ["fail", "pass", "fail", "pass"] * 9 + ["pass", "fail"] * 2}
    assert load_scores(graded).reading.columns["confidence"] == "score"
    # Three rows do not say which of the two values is right.
    with pytest.raises(QuestionError, match="certainty, score = 1 means right"):
        load_scores({"certainty": [0.5, 0.6, 0.7], "score": [1, 0, 1]})
    letters = {"confidence": [0.5, 0.6], "label": ["A", "C"], "ok": [1, 0]}
    assert load_scores(letters).reading.columns["correct"] == "ok"


def test_a_refusal_says_which_of_the_two_is_missing():
    # No column is proposed whose name says nothing: it would be audited as if it were meant.
    with pytest.raises(InputError, match=r"there are grades \(ok\).*\n.*confidence \(there are"):
        load_scores({"sim": [0.5, 0.6], "ok": [1, 0]})
    with pytest.raises(InputError, match=r"there is a confidence \(p\).*\n.*correct \(there are"):
        load_scores({"p": [0.5, 0.6], "fine": [1, 0]})
    with pytest.raises(InputError, match="neither a confidence nor an outcome"):
        load_scores({"text": ["a", "b"]})


def test_rows_of_a_cluster_are_kept_together():
    table = {**MODELS, "topic": ["law", "law", None, "art"]}
    scores = load_scores(table, cluster="topic")
    (block,) = scores.blocks()
    assert block.cluster.tolist() == [2, 2, 0, 1]
    assert block.units.tolist() == block.cluster.tolist()
    assert scores.frame["topic"].to_list() == table["topic"]


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
        load_scores(path, confidence="verbal_numerical_confidence", on_invalid="error")
    # One slip among 192,512 rows stops nobody.
    scores = load_scores(path, confidence="verbal_numerical_confidence")
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
    table = {"verbal_confidence": [0.5, 0.6], "logit_confidence": [0.4, 0.7], "correct": [1, 0]}
    found = load_scores(table)
    assert found.frame["method"].to_list() == [
        *["verbal_confidence"] * 2,
        *["logit_confidence"] * 2,
    ]
    alone = {"verbal_confidence_x": [0.5, 0.7], "correct": [1, 0]}
    assert load_scores(alone).reading.columns["confidence"] == "verbal_confidence_x"


def test_rows_that_stand_there_three_times_count_once():
    rng = np.random.default_rng(0)
    said = rng.uniform(0.4, 1.0, 200)
    once = pl.DataFrame({"confidence": said, "correct": rng.random(200) < said})
    thrice = load_scores(pl.concat([once] * 3))
    assert thrice.frame.height == 200
    assert thrice.dropped == {"repeated_row": 400}
    assert thrice.dropped_rows["repeated_row"][0] == 201
    assert "600 rows are 200 different ones" in thrice.reading.repeats
    assert load_scores(once).reading.repeats is None
    named = pl.concat([once] * 3).with_columns(question_id=pl.int_range(600))
    assert load_scores(named).frame.height == 600


def test_rows_of_one_text_are_one_question():
    rng = np.random.default_rng(1)
    rows = {"prompt": [f"What is {k // 4}?" for k in range(200)]}
    rows |= {"confidence": rng.uniform(size=200), "correct": rng.integers(0, 2, 200)}
    scores = load_scores(rows)
    (block,) = scores.blocks()
    assert np.unique(block.units).size == 50
    assert "same prompt" in scores.reading.repeats
    # One prompt for all rows is no question.
    (block,) = load_scores({**rows, "prompt": ["Is this spam?"] * 200}).blocks()
    assert block.units is None
