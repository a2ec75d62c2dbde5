"""What must hold for all methods: a method missing from these lists fails."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.answers.confidence import (
    METHODS,
    Draws,
    Greedy,
    Options,
    Probes,
    Question,
    table_of,
)

NAMES = list(METHODS)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    size = draw(st.integers(2, 9))
    labels = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=size, max_size=size))
    if all(label is None for label in labels):
        labels[0] = "a"
    number = st.floats(0.01, 1.0)
    law = [math.exp(draw(st.floats(-8.0, 0.0))) for _ in range(4)]
    text_log = dict(zip(["a", "b", "c", None], np.log(np.array(law) / sum(law)), strict=True))
    logs = [float(text_log[label]) for label in labels]
    stated = draw(st.lists(st.none() | number, min_size=size, max_size=size))
    votes = draw(st.lists(st.none() | st.booleans(), min_size=1, max_size=6))
    yes, no = draw(number) / 2, draw(number) / 2
    verbal = Draws(classes=labels, correct=_grades(labels), answers=_texts(labels), stated=stated)
    one = Draws(classes=["a"], correct=[True], answers=["a"], stated=[draw(number)])
    space = draw(
        st.lists(
            st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3), min_size=size, max_size=size
        )
    )
    return Question(
        classes=labels,
        correct=_grades(labels),
        answers=_texts(labels),
        token_logprobs=[[value / 2, value / 2] for value in logs],
        greedy=Greedy(
            answer="a",
            label="a",
            correct=True,
            token_logprobs=logs[:2],
            top_logprobs={str(label): float(value) for label, value in text_log.items()},
            options={"A": logs[0], "B": logs[1]},
            option_correct=False,
            yes_probability=yes,
            no_probability=no,
        ),
        verb=one,
        verb_topk=one,
        verb_samples=verbal,
        verb_topk_samples=verbal,
        p_true=Probes(votes, yes, no),
        p_true_cand=Probes(votes, yes, no),
        self_ask=draw(number),
        self_ask_cand=draw(number),
        embeddings=space,
    )


def _grades(labels: list[str | None]) -> list[bool | None]:
    return [None if label is None else label == "a" for label in labels]


def _texts(labels: list[str | None]) -> list[str]:
    return ["" if label is None else label for label in labels]


def _values(question: Question, options: Options | None = None) -> dict[str, float]:
    table = table_of([question])
    return {
        name: float(METHODS[name].scored(table, options or Options()).value[0]) for name in NAMES
    }


def _reordered(question: Question, order: list[int]) -> Question:
    def pick(values):
        return None if values is None else [values[place] for place in order]

    def drawn(draws: Draws) -> Draws:
        return Draws(*(pick(getattr(draws, name)) for name in draws.__dataclass_fields__))

    votes = question.p_true.votes
    return replace(
        question,
        classes=pick(question.classes),
        correct=pick(question.correct),
        answers=pick(question.answers),
        token_logprobs=pick(question.token_logprobs),
        embeddings=pick(question.embeddings),
        verb_samples=drawn(question.verb_samples),
        verb_topk_samples=drawn(question.verb_topk_samples),
        p_true=replace(question.p_true, votes=votes[::-1]),
        p_true_cand=replace(question.p_true_cand, votes=votes[::-1]),
    )


@settings(max_examples=30, deadline=None)
@given(questions(), st.randoms(use_true_random=False))
def test_order_of_draws_does_not_matter(question: Question, random) -> None:
    order = list(range(len(question.classes)))
    random.shuffle(order)
    before, after = _values(question), _values(_reordered(question, order))
    tied = _mode_is_tied(question)
    for name in NAMES:
        if not METHODS[name].order_free or (tied and name == "verb_mean"):
            continue
        assert after[name] == pytest.approx(before[name], abs=1e-9, nan_ok=True), name


def _mode_is_tied(question: Question) -> bool:
    """Among equally frequent answers the first one is chosen, so its own numbers change."""
    counts = [question.classes.count(label) for label in "abc"]
    return counts.count(max(counts)) > 1


@settings(max_examples=30, deadline=None)
@given(questions())
def test_a_set_of_draws_given_twice_scores_the_same(question: Question) -> None:
    twice = list(range(len(question.classes))) * 2
    doubled = _reordered(question, twice)
    doubled = replace(
        doubled,
        p_true=replace(question.p_true, votes=question.p_true.votes * 2),
        p_true_cand=replace(question.p_true_cand, votes=question.p_true_cand.votes * 2),
    )
    before, after = _values(question), _values(doubled)
    for name in NAMES:
        if METHODS[name].frequency:
            assert after[name] == pytest.approx(before[name], abs=1e-9, nan_ok=True), name


def test_sca_is_not_a_frequency_method() -> None:
    """Counting repeats is what makes it a ranking score: twice the draws, twice the value."""
    once = Question(classes=[0, 1], correct=[True, False], token_logprobs=[[-1.0], [-2.0]])
    twice = Question(
        classes=[0, 1] * 2, correct=[True, False] * 2, token_logprobs=[[-1.0], [-2.0]] * 2
    )
    assert _sca(twice) == pytest.approx(2 * _sca(once))


def _sca(question: Question) -> float:
    return float(METHODS["sca"].scored(table_of([question]), Options()).value[0])


@settings(max_examples=40, deadline=None)
@given(
    questions(),
    st.sampled_from(["default", "paper"]),
    st.sampled_from(["classes", "embeddings"]),
)
def test_range_as_declared(question: Question, variant, similarity) -> None:
    options = Options(variant=variant, similarity=similarity)
    for name, value in _values(question, options).items():
        if not math.isnan(value):
            assert METHODS[name].low - 1e-9 <= value <= METHODS[name].high + 1e-9, name


@settings(max_examples=15, deadline=None)
@given(st.lists(questions(), min_size=2, max_size=4))
def test_many_questions_at_once_score_like_each_alone(several: list[Question]) -> None:
    table = table_of(several)
    alone = [_values(question) for question in several]
    for name in NAMES:
        if name == "sca":  # scaled to the usual number of draws, see test_robust
            continue
        together = METHODS[name].scored(table, Options()).value
        each = [values[name] for values in alone]
        np.testing.assert_allclose(together, each, atol=1e-9, err_msg=name)


@settings(max_examples=30, deadline=None)
@given(questions())
def test_the_grade_is_that_of_the_named_answer(question: Question) -> None:
    """In these questions exactly the answer 'a' is right; options have their own grade.

    sem1 and sem2 mean several answers (tied ones, selected ones): test_golden works them out.
    """
    table = table_of([question])
    for name in NAMES:
        scored = METHODS[name].scored(table, Options())
        if METHODS[name].about in ("option", "selected") or name == "sem1":
            continue
        if math.isnan(scored.value[0]):
            continue
        answer = scored.block.answer[int(scored.row[0])]
        assert scored.correct[0] == float(answer == "a"), name


def test_every_method_declares_itself() -> None:
    for name in NAMES:
        entry = METHODS[name].to_dict()
        assert entry["name"] == name
        assert entry["needs"]
        assert len(entry["reference"]) > 5
        assert entry["about"] in ("modal", "selected", "greedy", "own", "first", "option")
        assert not (METHODS[name].probability and METHODS[name].high > 1.0)
