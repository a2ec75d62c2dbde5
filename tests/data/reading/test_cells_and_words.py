"""Cells as people write them, scales, and what somebody says means right."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError, QuestionError
from calibrant.data import load_scores
from calibrant.data.reading.assignment import decide
from calibrant.data.reading.question import options_of

SAID = [0.55, 0.6, 0.7, 0.8, 0.9, 0.95] * 10
RIGHT = [k % 4 != 0 for k in range(60)]
FORMS = {
    "about": "~{:.0f}%",
    "more than": ">{:.0f}%",
    "a label": "Confidence: {:.0f}%",
    "of a hundred": "{:.0f}/100",
    "out of": "{:.0f} out of 100",
    "a word beside it": "High ({:.0f}%)",
    "a percent sign": "{:.0f} %",
    "in words": "approx. {:.0f} percent",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_number_is_read_however_it_is_written(form):
    cells = [form.format(100 * c) for c in SAID]
    scores = load_scores({"confidence": cells, "correct": RIGHT})
    np.testing.assert_allclose(scores.frame["confidence"].to_numpy(), SAID)
    assert not scores.dropped
    half = [cell if k % 2 else str(c) for k, (cell, c) in enumerate(zip(cells, SAID, strict=True))]
    scores = load_scores({"confidence": half, "correct": RIGHT})
    np.testing.assert_allclose(scores.frame["confidence"].to_numpy(), SAID)


OUTCOMES = {
    "numbers": ([int(not y) for y in RIGHT], "0"),
    "booleans": ([not y for y in RIGHT], "false"),
    "booleans by 0": ([not y for y in RIGHT], "0"),
    "decimals": ([float(not y) for y in RIGHT], "0"),
    "grades": ([4 if y else 1 for y in RIGHT], "4"),
    "words": (["no" if y else "yes" for y in RIGHT], "no"),
    "strings of numbers": ([str(int(not y)) for y in RIGHT], "0"),
}


@pytest.mark.parametrize(("cells", "right"), OUTCOMES.values(), ids=OUTCOMES)
def test_what_means_right_is_heeded_for_every_kind_of_cell(cells, right, tmp_path):
    table = {"confidence": SAID, "error": cells}
    found = load_scores(table, confidence="confidence", correct="error", right=right)
    assert found.frame["correct"].to_list() == [float(y) for y in RIGHT]
    path = tmp_path / "table.csv"
    pl.DataFrame(table).write_csv(path)
    asked = {"correct": "error", "right": right}
    share = np.mean(RIGHT)
    audit = cal.audit(path, resamples=20, **asked)
    assert audit["results"][0]["metrics"]["accuracy"]["value"] == pytest.approx(share)
    mended = cal.mend(path, **asked).to_dict()
    assert mended["reading"]["columns"]["correct"] == "error"


@pytest.mark.parametrize("cells", [[0, 1] * 30, [True, False] * 30, ["yes", "no"] * 30])
def test_a_word_that_does_not_occur_is_refused_with_those_that_do(cells):
    with pytest.raises(InputError, match="does not occur") as caught:
        load_scores({"confidence": SAID, "correct": cells}, right="agreed")
    assert str(cells[0]).lower() in str(caught.value)


def test_not_attempted_is_neither_right_nor_wrong_whether_right_is_named_or_not():
    words = ["CORRECT", "INCORRECT", "NOT_ATTEMPTED"] * 20
    for right in (None, "correct"):
        scores = load_scores({"confidence": SAID, "correct": words}, right=right)
        assert scores.dropped == {"correct_neither": 20}
        assert scores.frame["correct"].mean() == 0.5


@pytest.mark.parametrize("how", [None, "drop"])
@pytest.mark.parametrize("cells", [[1, 1, 1, 2, 5] * 12, [0, 0, 1, 3, 4] * 12])
def test_levels_are_never_dropped_row_by_row(cells, how):
    with pytest.raises(InputError, match="look like ratings"):
        load_scores({"confidence": cells, "correct": RIGHT}, on_invalid=how)


@pytest.mark.parametrize("every", [2, 4, 10])
@pytest.mark.parametrize("how", [None, "drop"])
def test_shares_among_percentages_are_a_question_and_never_read_as_percent(every, how):
    cells = [100 * c if k % every else c for k, c in enumerate(SAID)]
    with pytest.raises(InputError, match='scale="mixed"'):
        load_scores({"confidence": cells, "correct": RIGHT}, on_invalid=how)
    found = load_scores({"confidence": cells, "correct": RIGHT}, scale="mixed")
    np.testing.assert_allclose(found.frame["confidence"].to_numpy(), SAID)


SCALES = {
    "logprob": np.log(SAID),
    "uncertainty": 1 - np.array(SAID),
    "words": ["low" if c < 0.7 else "high" for c in SAID],
    "low=0.2,high=0.9": ["low" if c < 0.7 else "high" for c in SAID],
}


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_that_has_a_name_is_read(scale):
    found = load_scores({"confidence": SCALES[scale], "correct": RIGHT}, scale=scale)
    wanted = [0.2 if c < 0.7 else 0.9 for c in SAID] if "w" in scale else SAID
    np.testing.assert_allclose(found.frame["confidence"].to_numpy(), wanted)


FRESH = {
    "classes called like their columns": (
        {"A": [0.7, 0.1, 0.2, 0.5], "B": [0.2, 0.8, 0.2, 0.3], "C": [0.1, 0.1, 0.6, 0.2]},
        {"answer": list("ABCA"), "correct_answer": list("ABBC")},
        {"probs": "A,B,C", "correct": "correct_answer"},
    ),
    "a parsed confidence": (
        {"parsed_confidence": [95, 90, 40, 85], "first_token_entropy": [0.1, 2.1, 0.3, 0.7]},
        {"correct": [True, True, False, True], "correct_format": [True, True, True, False]},
        {"confidence": "parsed_confidence", "correct": "correct", "scale": "percent"},
    ),
    "kinds of wrong, and a verdict that is a probability rounded": (
        {"p_correct": [0.9, 0.2, 0.7, 0.1, 0.8, 0.3], "p_wrong": [0.1, 0.8, 0.3, 0.9, 0.2, 0.7]},
        {"kind": ["correct", "obvious_wrong", "confusing_wrong", "correct", "correct", "wrong"],
         "majority_verdict": ["CORRECT", "INCORRECT"] * 3},
        {"confidence": "p_correct", "correct": "kind", "right": "correct"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FRESH)
def test_what_fresh_tables_taught_is_read_or_asked_about_first(case):
    said, graded, wanted = FRESH[case]
    table = pl.DataFrame({**said, **graded})
    decision = decide(pl.concat([table] * 20))
    assert decision.kind != "refuse"
    assert options_of(decision.choices[0], {}) == wanted


def test_scores_of_a_true_and_of_a_false_answer_are_no_confidence():
    table = {"correct_confidence": [0.9, 0.8, 0.7], "incorrect_confidence": [0.8, 0.8, 0.9]}
    outcome = {"hallucination_detected": [True, False, False], "correct_detected": [True] * 3}
    assert decide(pl.DataFrame({**table, **outcome})).kind == "refuse"


def test_ids_that_return_are_said_in_the_command():
    table = {
        "question_id": [1, 1, 2, 2] * 20,
        "p": [0.9, 0.8, 0.7, 0.2] * 20,
        "correct": [1, 1, 0, 0] * 20,
    }
    with pytest.raises(QuestionError) as question:
        load_scores(table)
    options = dict(question.value.readings[0].options)
    assert options["repeats"] is True
    assert load_scores(table, **options).frame.height == 80
