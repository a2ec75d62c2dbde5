"""How much the draws have not seen, and how many answers the model seems to have."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.frequency import class_entropy
from calibrant.confidence.method import Options, Scored, about_question, register
from calibrant.confidence.segments import sum_by
from calibrant.core.arrays import Floats, Ints


def unseen_mass(block: DrawBlock) -> Floats:
    """Return Good and Turing's estimate of the probability of meanings not drawn yet.

    It is the share of draws whose meaning was drawn exactly once. The class of draws without an
    answer is a meaning like others.
    """
    classes = block.classes
    once = sum_by(classes.unit, classes.count == 1, block.n_units)
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = once / classes.total
    return share


@register(
    "1 - Good and Turing's probability that the next draw has a meaning not seen yet",
    needs=("samples", "clusters"),
    about="modal",
    question_level=True,
    probability=False,
    reference="Good 1953; MACE and SCA (how much of the model's knowledge was drawn)",
)
def good_turing(table: DrawTable, options: Options) -> Scored:
    """Estimated coverage of the drawn meanings."""
    return about_question(1.0 - unseen_mass(table.samples), table, options)


@register(
    "minus the effective number of meanings, exp of their entropy",
    needs=("samples", "clusters"),
    about="modal",
    question_level=True,
    frequency=True,
    probability=False,
    low=-np.inf,
    high=-1.0,
    reference="Hill 1973 (diversity of order 1), on meanings",
)
def effective_answers(table: DrawTable, options: Options) -> Scored:
    """Minus exp(H): two equal meanings count as 2, a dominant one and a rare one as little more."""
    value = -np.exp(class_entropy(table.samples))
    return about_question(np.minimum(value, -1.0), table, options)


def predicted_k(block: DrawBlock, *, share: float = 0.1) -> Ints:
    """Return how many answers the model seems to have: meanings with at least this share.

    Examples
    --------
    >>> from calibrant.confidence import Question, table_of
    >>> draws = ["rest"] * 12 + ["aspirin"] * 6 + ["tea", "vinegar"]
    >>> predicted_k(table_of([Question(classes=draws)]).samples).tolist()
    [2]
    """
    classes = block.classes
    large = (classes.count >= share * classes.total[classes.unit]) & classes.answered
    number = np.bincount(classes.unit[large], minlength=block.n_units)
    return np.maximum(number, 1).astype(np.int64)
