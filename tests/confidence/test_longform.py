"""Long answers: claims, their scores, Sem-ECE over claims."""

import math

import pytest

from calibrant.answers.confidence import Greedy, Question, score
from calibrant.answers.confidence.longform import (
    claim_draws,
    score_long_answer,
    split_claims,
    split_sentences,
    support,
)
from calibrant.metrics import sem_ece

ANSWER = "Marie Curie was born in Warsaw and won two Nobel Prizes. She died in 1934."
SAMPLES = [
    "Marie Curie was born in Warsaw. She died in 1934.",
    "Marie Curie won two Nobel Prizes.",
    "Marie Curie died in 1940.",
]


def test_claims_of_a_text() -> None:
    assert split_claims(ANSWER) == [
        "Marie Curie was born in Warsaw",
        "Marie Curie won two Nobel Prizes",
        "She died in 1934",
    ]
    assert split_claims("Sure! Here are some facts:\n1. Water boils at 100 degrees.\nOk?") == [
        "Water boils at 100 degrees"
    ]
    assert split_claims("") == []


def test_sentences_end_where_they_end() -> None:
    assert split_sentences("J. S. Bach was born in 1685. He died in 1750.") == [
        "J. S. Bach was born in 1685.",
        "He died in 1750.",
    ]


def test_support_by_hand() -> None:
    # Content words: marie curie born warsaw; all four, two (marie curie), two.
    claim = "Marie Curie was born in Warsaw"
    assert [support(claim, text) for text in SAMPLES] == [1.0, 0.5, 0.5]
    # 'died' and '1934' (she is a function word): both; none of them; died of two, halved.
    assert [support("She died in 1934", text) for text in SAMPLES] == [1.0, 0.0, 0.25]


def long_question() -> Question:
    return Question(
        classes=["x"] * 3,
        answers=SAMPLES,
        greedy=Greedy(answer=ANSWER, label="x", correct=True),
    )


def test_methods_by_hand() -> None:
    # Claims: (1 + .5 + .5) / 3; marie curie won two nobel prizes: (2/6 + 1 + 2/6) / 3; 1.25 / 3.
    means = [2 / 3, (2 / 6 + 1 + 2 / 6) / 3, 1.25 / 3]
    assert score("claim_support", long_question()) == pytest.approx(sum(means) / 3)
    assert score("claim_support_min", long_question()) == pytest.approx(min(means))


def test_luq_by_hand() -> None:
    first, second, third = SAMPLES
    own = [
        [(support(s, second) + support(s, third)) / 2 for s in split_sentences(first)],
        [(support(second, first) + support(second, third)) / 2],
        [(support(third, first) + support(third, second)) / 2],
    ]
    expected = sum(sum(part) / len(part) for part in own) / 3
    assert score("luq", long_question()) == pytest.approx(expected)


def test_confidence_per_claim_and_answer() -> None:
    p_true = {"Marie Curie was born in Warsaw": 0.9}
    scored = score_long_answer(ANSWER, SAMPLES, p_true=p_true)
    assert scored.claims[0].confidence == pytest.approx((2 / 3 + 0.9) / 2)
    assert scored.claims[1].p_true is None
    assert scored.confidence == pytest.approx(sum(claim.confidence for claim in scored.claims) / 3)
    assert scored.weakest.claim == "She died in 1934"
    assert math.isnan(score_long_answer("Yes.", SAMPLES).confidence)


def test_a_judge_replaces_the_word_rule() -> None:
    scored = score_long_answer(ANSWER, SAMPLES, supports=lambda claim, text: 1.0,
                               split=lambda text: ["one claim here"])  # fmt: skip
    assert [claim.luq for claim in scored.claims] == [1.0]


def test_sem_ece_over_claims() -> None:
    scores = {f"p{i}": score_long_answer(ANSWER, SAMPLES) for i in range(4)}
    grades = {"Marie Curie was born in Warsaw": True, "She died in 1934": True}
    table = claim_draws(scores, grades)
    assert table.height == 4 * 2 * 3
    # 'born in Warsaw' has support 1, .5, .5: said by all; 'died in 1934' by the first alone.
    by_claim = table.group_by("question_id", maintain_order=True).agg("class_id", "correct")
    assert by_claim["class_id"].to_list()[:2] == [[0, 0, 0], [0, 1, 1]]
    assert by_claim["correct"].to_list()[:2] == [[True] * 3, [True, False, False]]
    result = sem_ece(table["question_id"], table["class_id"], table["correct"], splits=20)
    assert 0.0 <= result.sem1.value <= 1.0
