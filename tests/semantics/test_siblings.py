"""Names that look alike and mean different things stay apart, for the clusterer and the grader."""

import pytest
from studies._siblings import KNOWN, alike_pairs, chosen

from calibrant.semantics import Grader, Options
from calibrant.semantics.same.marks import told_apart
from calibrant.semantics.settle import Group, Settler


def joined(a, b, question, *, siblings=(), grader=None):
    """Whether clusterer or grader, in either direction, takes one name for the other."""
    grader = grader or Grader()
    group = Group([a, b], [1, 1], question, siblings=siblings)
    first, second = Settler(Options()).settle([group])[0].clusters.ids
    return first == second or any(
        grader.grade(x, [y], question=question, siblings=[s for s in siblings if s != y]).correct
        for x, y in ((a, b), (b, a))
    )


@pytest.mark.parametrize("pair", KNOWN)
@pytest.mark.parametrize("question", ["", "Name one of them.", "Who or what is it?"])
def test_known_siblings_never_join(pair, question):
    assert not joined(*pair, question)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Barack Obama", "Obama"),
        ("Robert C. Gallo", "Robert Gallo"),
        ("John F. Kennedy", "U.S. President John F. Kennedy"),
        ("J. K. Rowling", "Joanne K. Rowling"),
        ("River Colne", "Colne"),
        ("French Revolution", "French Revolution of 1789"),
        ("the Great Gatsby", "Great Gatsby"),
    ],
)
def test_names_of_one_thing_are_still_accepted(a, b):
    assert Grader().grade(a, [b]).correct
    assert told_apart(tuple(a.lower().split()), tuple(a.lower().split())) is None


@pytest.mark.slow
@pytest.mark.data
def test_two_hundred_alike_names_of_one_kind(shared_data):
    pairs = chosen(alike_pairs(shared_data, least=0.7))
    assert len(pairs) == 200
    grader = Grader()
    wrong = [(p.a, p.b) for p in pairs if joined(p.a, p.b, p.question, grader=grader)]
    assert len(wrong) / len(pairs) <= 0.08, wrong  # names alone: 'Bikol' and 'Libon Bikol'
    told = [
        (p.a, p.b) for p in pairs if joined(p.a, p.b, p.question, siblings=p.others, grader=grader)
    ]
    assert len(told) / len(pairs) <= 0.01, told
