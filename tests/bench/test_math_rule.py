"""Math questions: exactly k, by rule, from a seed."""

import re

import pytest

from calibrant.bench.questions.math_rule import NUMBER_NAMES, math_questions, members
from calibrant.bench.questions.question import question_rows
from calibrant.core.errors import InputError

KIND_OF = {name: kind for kind, name in NUMBER_NAMES.items()}


def derived(question):
    name, lower, upper = re.fullmatch(
        r"Name one (.+) from (\d+) to (\d+), both included\.", question.text
    ).groups()
    return [str(number) for number in members(KIND_OF[name], int(lower), int(upper))]


@pytest.mark.parametrize("limit", [1_000, 10**6, 10**12])
@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_every_question_has_exactly_k_answers_within_the_limit(k, limit):
    questions = math_questions(k, 60, limit=limit, seed=3)
    assert len({question.text for question in questions}) == 60
    for question in questions:
        answers = [names[0] for names in question.references]
        assert answers == derived(question)
        assert len(answers) == question.k == k
        assert question.meta["upper"] <= limit


def test_the_kinds_share_the_questions_evenly():
    questions = math_questions(2, 500)
    counts = [sum(q.subtype == kind for q in questions) for kind in NUMBER_NAMES]
    assert counts == [100] * 5


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_questions():
    first, again, other = (math_questions(2, 500, seed=seed) for seed in (1, 1, 2))
    assert question_rows(first) == question_rows(again)
    seen = {question.text for question in first}
    shared = [question for question in other if question.text in seen]
    # Below 100 there are so few intervals, mostly of Fibonacci numbers, that some coincide.
    assert len(shared) <= 15
    assert all(question.meta["upper"] < 100 for question in shared)


def test_answer_sets_repeat_only_when_there_are_too_few():
    squares = math_questions(4, 400, kinds=["square"], limit=10**6)
    assert len({question.answers for question in squares}) == 400
    fibonacci = math_questions(1, 100, kinds=["fibonacci"], limit=10**6)
    # 5, 8, .., 832040: each used before any is used again; bounds around 1, 2, 3 name an answer.
    assert len({question.answers for question in fibonacci}) == 26


def test_a_kind_that_has_no_more_questions_says_so_by_giving_fewer():
    assert math_questions(3, 10, kinds=["cube"], limit=10) == []
    few = math_questions(1, 1_000, kinds=["square"], limit=30)
    assert 0 < len(few) < 1_000


@pytest.mark.parametrize("options", [{"k": 0}, {"count": -1}, {"limit": 1}, {"limit": 10**25}])
def test_impossible_options_are_refused(options):
    arguments = {"k": 1, "count": 1} | options
    with pytest.raises(InputError, match="got"):
        math_questions(arguments.pop("k"), arguments.pop("count"), **arguments)
