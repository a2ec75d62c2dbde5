"""Extraction: final answers, letters, votes, stated confidences, refusals."""

import polars as pl
import pytest

from calibrant.answers.semantics import (
    Stated,
    StatedValue,
    annotate,
    extract_answer,
    extract_letter,
    not_attempted,
    parse_confidence,
    parse_stated,
    parse_top_k,
    parse_vote,
    read_confidence,
)
from calibrant.core import InputError

FINAL = [
    (r"thus \boxed{42}", "42", "boxed"),
    (r"\boxed{1} no, \boxed{2}", "2", "boxed"),
    (r"\boxed{\frac{a}{b}}", r"\frac{a}{b}", "boxed"),
    (r"\boxed{\text{Paris}}", "Paris", "boxed"),
    (r"\boxed{unclosed. Answer: Paris", "Paris", "label"),
    ("<answer>Paris</answer>", "Paris", "tag"),
    ("<ANSWER> Paris", "Paris", "tag"),
    ("<think>Rome? Answer: Rome</think>Answer: Paris", "Paris", "label"),
    ("Answer: Paris", "Paris", "label"),
    ("Rome came first, Lyon later. So it is Paris.", "Paris", "conclusion"),
    ("**Answer:** Paris", "Paris", "label"),
    ("The final answer is: Paris.", "Paris", "label"),
    ("Answer: Rome. Wait.\nAnswer: Paris", "Paris", "label"),
    ('{"answer": "Paris"}', "Paris", "json"),
    ('```json\n{"final_answer": 42}\n```', "42", "json"),
    ("295^2 is too low.\n\nAnswer: 87616", "87616", "label"),
    ("Paris.", "Paris", "whole"),
    ("*Paris*", "Paris", "whole"),
]


@pytest.mark.parametrize(("text", "answer", "rule"), FINAL)
def test_final_answer(text, answer, rule):
    found = extract_answer(text)
    assert (found.answer, found.rule, found.status) == (answer, rule, "attempted")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B.", "B"),
        ("B) Paris", "B"),
        ("Option B", "B"),
        ("Paris", "B"),
        ("The answer is B because it is so", "B"),
        ("A) Paris", None),
        ("E", None),
        ("A or B", None),
        ("A good question", None),
        ("", None),
    ],
)
def test_option_letters(text, letter):
    assert extract_letter(text, ["Rome", "Paris", "Bonn"]) == letter


def test_choice_that_cannot_be_read_is_unparsed_not_wrong():
    found = extract_answer("It depends.", kind="choice", choices=["Rome", "Paris"])
    assert (found.answer, found.status) == (None, "unparsed")


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I do not know the answer.",
        "Unknown",
        "N/A",
        "I'm sorry, I can't help with that.",
        "As an AI, I cannot provide that.",
        "There is no information about this.",
        "I’m not sure.",
    ],
)
def test_refusals_are_their_own_kind(text):
    assert not_attempted(text) == "refusal"
    assert extract_answer(text).status == "refusal"


@pytest.mark.parametrize("text", ["", "  \n", "...", "**", "?", None, b""])
def test_empty_is_its_own_kind(text):
    assert extract_answer(text).status == "empty"


@pytest.mark.parametrize(
    "text",
    [
        "No",
        "None",
        "Nobody",
        "Sorry (song by Justin Bieber) is not sure, but Adele sang it",
        "As an AI I have no live data, but Jim Brown holds it.",
        "Unknown Pleasures",
        "0",
        "-",
        "I don't know why but I think Paris",
    ],
)
def test_attempts_are_not_taken_for_refusals(text):
    assert not_attempted(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.92", 0.92),
        (".5", 0.5),
        ("1", 1.0),
        ("0", 0.0),
        ("85%", 0.85),
        ("85 percent", 0.85),
        ("85", 0.85),
        ("0.5%", 0.005),
        ("8/10", 0.8),
        ("9 out of 10", 0.9),
        ("0,7", 0.7),
        ("Confidence: 85%", 0.85),
        ("**Confidence**: 0.9", 0.9),
        ("My confidence is 70%.", 0.7),
        ("Confidence (0-100): 80", 0.8),
        ("Probability: 0.95", 0.95),
        (r"Confidence: \boxed{75}", 0.75),
        ("eighty percent", 0.8),
        ("very likely", 0.9),
        ("Confidence: almost certain", 0.95),
        ("150%", None),
        ("-0.2", None),
        ("1.7e3", None),
        ("no number here", None),
        ("between 0.2 and 0.4", 0.3),
        ("80-90%", 0.85),
        ("Confidence: 80% to 90%", 0.85),
        ("Confidence: 1,238,222", None),
        ("Confidence: 1,238", None),
        ("High (90%)", 0.9),
        ("Confidence: High (90%)", 0.9),
        ("Confidence: low - 0.15", 0.15),
        ("90% (high)", 0.9),
        ("Confidence: I would say 85%.", 0.85),
        ("Confidence (1-10): 8", 0.8),
        ("Confidence (0 to 100): 8", 0.08),
        ("8 (out of 10)", 0.8),
        ("Konfidenz: 85,5 Prozent", 0.855),
        ("Confianza: 90 por ciento", 0.9),
        ("Confiance : élevée", 0.8),
        ("置信度：95%", 0.95),
        ("ninety-five per cent", 0.95),
        ("", None),
    ],
)
def test_confidence(text, value):
    assert parse_confidence(text) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Confidence: 8", "8 of 10 or 8 %"),
        ("at least 90%", "a bound, not a value"),
        ("0.2 or 0.9", "several values"),
        ("between 10% and 90%", "a wide range"),
        ("Confidence: not high", "a level that is denied"),
        ("Confidence: high or low", "several levels"),
        ("Confidence: 1,238,222", "out of range"),
        ("Paris", "absent"),
    ],
)
def test_what_is_no_single_confidence_says_why(text, reason):
    assert read_confidence(text) == StatedValue(None, reason)


def test_a_small_number_is_a_percentage_beside_larger_ones():
    draws = pl.DataFrame(
        {
            "question_id": ["q", "r"], "model": ["m", "m"], "draw": [0, 0],
            "purpose": ["verb", "verb"], "text": ["Paris | 85", "Rome | 8"],
        }
    )  # fmt: skip
    assert annotate(draws).draws["stated_confidence"].to_list() == [0.85, 0.08]
    assert annotate(draws[1:]).draws["stated_confidence"].to_list() == [None]


def test_confidence_scales_and_words_are_options():
    assert parse_confidence("1", scale="percent") == 0.01
    assert parse_confidence("85", scale="probability") is None
    assert parse_confidence("very likely", words=False) is None
    with pytest.raises(InputError, match="scale is one of"):
        parse_confidence("1", scale="tenths")


@pytest.mark.parametrize(
    ("text", "answer", "confidence"),
    [
        ("Paris | 0.92", "Paris", 0.92),
        ('"Susan Flannery | 0.85"', "Susan Flannery", 0.85),
        ("Answer: Paris | Confidence: 90%", "Answer: Paris", 0.9),
        ("Guess: Tokyo\nProbability: 0.95", "Guess: Tokyo", 0.95),
        ("Paris", "Paris", None),
        ("Paris | high", "Paris", 0.8),
    ],
)
def test_answer_with_confidence(text, answer, confidence):
    assert parse_stated(text) in (
        Stated(answer, confidence),
        Stated(answer.split(": ")[-1], confidence),
    )
    found = extract_answer(text, stated=True)
    assert found.answer == answer.split(": ")[-1]
    assert found.confidence == confidence


def test_top_k_lists():
    text = "1. Paris | 0.7\n2. Lyon | 20%\n3. Nice | ?\n\nI hope this helps."
    assert parse_top_k(text) == [Stated("Paris", 0.7), Stated("Lyon", 0.2), Stated("Nice", None)]
    assert parse_top_k("- Paris: 0.7\n- Lyon (0.2)") == [Stated("Paris", 0.7), Stated("Lyon", 0.2)]
    assert parse_top_k("nothing of the kind") == []


@pytest.mark.parametrize(
    ("text", "vote"),
    [
        ("True", True),
        ("(A)", True),
        ("A. True", True),
        ("yes", True),
        ("CORRECT", True),
        ("False", False),
        ("B", False),
        ("INCORRECT", False),
        ("No.", False),
        ("not true", False),
        ("a good answer", None),
        ("maybe", None),
        ("", None),
    ],
)
def test_votes(text, vote):
    assert parse_vote(text) is vote


@pytest.mark.parametrize(
    ("text", "answer", "confidence"),
    [
        ("Paris | 0.92", "Paris", 0.92),
        ("Answer: Paris\nConfidence: 85%", "Paris", 0.85),
        ("Paris. Confidence: 0.7", "Paris", 0.7),
        ("The probability is 0.5", "The probability is 0.5", None),
        ("a | b", "a | b", None),
        ("Confidence: 85%", "Confidence: 85%", None),
        ("He lost confidence in 1987", "He lost confidence in 1987", None),
    ],
)
def test_a_confidence_is_read_unasked_only_where_it_is_plain(text, answer, confidence):
    found = extract_answer(text)
    assert (found.answer, found.confidence) == (answer, confidence)


def test_a_confidence_with_two_points_is_no_number():
    """A storm of texts found it: the separator read as a decimal comma leaves a second point."""
    assert parse_confidence("Confidence: 1,000.1e999") is None
    assert parse_confidence("1,000.1e999") is None
