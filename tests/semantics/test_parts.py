"""The rule on parts of names that the study measures: it joins what it says and nothing else."""

import pytest
from studies._contained import Joined, count_joined, with_parts
from studies.semantics import Row

from calibrant.answers.semantics.forms import FormReader


@pytest.mark.parametrize(
    ("answers", "question", "classes"),
    [
        (["Vivaldi", "Antonio Vivaldi", "Bach"], "Which composer?", 2),
        (["Suzuki", "Maruti", "Maruti Suzuki"], "Which company?", 3),
        (["Ford", "Henry Ford", "Gerald Ford"], "Which president?", 3),
        (["Guarani", "Ava Guarani"], "Name one language.", 2),
        (["Virginia", "West Virginia"], "Which state?", 2),
    ],
)
def test_a_part_joins_the_only_longer_name(answers, question, classes):
    assert len(set(with_parts(answers, question, FormReader()))) == classes


def test_pairs_are_counted_by_their_grades():
    rows = [
        Row("Which composer?", ("x",), "Vivaldi", True, "p"),
        Row("Which composer?", ("x",), "Antonio Vivaldi", False, "p"),
        Row("Which composer?", ("x",), "vivaldi", True, "p"),
    ]
    reader = FormReader()
    now = count_joined(rows, reader, parts=False)
    assert now == Joined(both_right=1)
    assert count_joined(rows, reader, parts=True).beyond(now) == Joined(differ=2)
