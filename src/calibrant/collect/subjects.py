"""What second turns ask about: the greedy answer, the candidates, the pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from calibrant.collect.plan import Subject
from calibrant.collect.questions import Question

Extract = Callable[[Question, str], str | None]
"""Finds the final answer in a response; None where there is none."""


def find_subject(
    question: Question,
    response: str | None,
    samples: Sequence[str],
    *,
    extract: Extract,
    candidates: int,
) -> Subject | None:
    """Return what second turns ask about; without an answer there is nothing to ask.

    Parameters
    ----------
    question
        The question.
    response
        The greedy response, None where there is none.
    samples
        Sampled responses, from which the candidates come.
    extract
        Finds the answer in a response.
    candidates
        Most candidates that are shown.
    """
    answer = None if response is None else extract(question, response)
    if response is None or answer is None:
        return None
    found = (extract(question, text) for text in samples)
    shown = most_frequent([item for item in found if item], candidates)
    return Subject(answer, response, tuple(shown), tuple(samples))


def distinct(answers: Iterable[str]) -> list[str]:
    """Return the answers that differ in more than case and spaces, in order.

    The rule is kept this simple on purpose: prompts are built from it, and a cleverer one would
    change prompts, and so buy draws again, whenever it became cleverer still.

    Examples
    --------
    >>> distinct(["Paris", "paris ", "Lyon"])
    ['Paris', 'Lyon']
    """
    found: dict[str, str] = {}
    for answer in answers:
        found.setdefault(plain_answer(answer), answer)
    return list(found.values())


def most_frequent(answers: Sequence[str], count: int) -> list[str]:
    """Return the `count` most frequent distinct answers, the first seen among equals.

    Examples
    --------
    >>> most_frequent(["Lyon", "Paris", "paris"], 2)
    ['Paris', 'Lyon']
    """
    times = Counter(plain_answer(answer) for answer in answers)
    ranked = sorted(distinct(answers), key=lambda answer: -times[plain_answer(answer)])
    return ranked[:count]


def plain_answer(answer: str) -> str:
    """Return the answer without differences of case and spaces.

    Examples
    --------
    >>> plain_answer(" New  York")
    'new york'
    """
    return " ".join(answer.casefold().split())
