"""Typed answers: what a type decides is decided before words, for classes and grades."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.answers.semantics import Grader, cluster_answers, why_same
from calibrant.answers.semantics.typed import (
    Relation,
    compare_types,
    compare_words,
    read_quantity,
    read_types,
)

GRADER = Grader()
SAME = [
    ("1/2", "half", ""),
    ("2 hours", "120 minutes", ""),
    ("12 inches", "1 foot", ""),
    ("$1.2m", "1.2 million dollars", ""),
    ("1,500 m", "1.5 km", ""),
    ("three quarters", "75%", ""),
    ("68 °F", "20 degrees Celsius", ""),
    ("25", "25%", "What percentage is it?"),
    ("753 BC", "753 B.C.", ""),
    ("the 3rd century AD", "third century CE", ""),
    ("Henry VIII", "Henry the Eighth", ""),
    ("World War II", "the Second World War", ""),
    ("x >= 3", "x ≥ 3", ""),
    ("(a+b)^2", "a^2 + 2ab + b^2", ""),
    ("O(n²)", "O(n^2)", ""),
    ("print('a')", "print( 'a' )", ""),
    ("The claim isn't true", "The claim is false", ""),
    ("salt, pepper and sugar", "sugar, salt and pepper", "What is in it?"),
    ("Tchaikovsky", "Chaikovsky", "Who wrote it?"),
    ("adrenaline", "epinephrine", ""),
    ("George Orwell", "Eric Arthur Blair", ""),
]
DIFFERENT = [
    ("1/2", "1/3", ""),
    ("2 hours", "2 minutes", ""),
    ("20 °F", "20 °C", ""),
    ("753 BC", "753 AD", ""),
    ("Henry VIII", "Henry the Seventh", ""),
    ("[0, 1)", "[0, 1]", "Which interval?"),
    ("x > 3", "x >= 3", ""),
    ("x^2 + 1", "x^2 - 1", ""),
    ("O(n)", "O(n^2)", ""),
    ("It is legal", "It is illegal", ""),
    ("salt, pepper and sugar", "sugar, salt and pepper", "Put them in order of price."),
    ("gold, silver and bronze", "gold, silver and copper", ""),
    ("Slovakia", "Slovenia", "Which country?"),
    ("Paraguay", "Uruguay", "Which country?"),
    ("Japanese", "Javanese", "Name one language."),
    ("Mahler", "Mehler", "Who?"),
]


@pytest.mark.parametrize(("a", "b", "question"), SAME)
def test_one_type_one_meaning(a, b, question):
    assert cluster_answers([a, b], question=question) == [0, 0]
    assert GRADER.grade(a, [b], question=question).correct is True
    assert GRADER.grade(b, [a], question=question).correct is True


@pytest.mark.parametrize(("a", "b", "question"), DIFFERENT)
def test_one_type_two_meanings(a, b, question):
    assert cluster_answers([a, b], question=question) == [0, 1]
    assert GRADER.grade(a, [b], question=question).correct is False
    assert GRADER.grade(b, [a], question=question).correct is False


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("11", "10-12"),
        ("44", "44 BC"),
        ("range(1, n) == s.pop()", "range(n, 1) == s.pop()"),
        ("25", "25%"),
        ("John Adams", "John Quincy Adams"),
        ("Martin Luther", "Martin Luther King"),
        ("gold and silver", "gold, silver and bronze"),
    ],
)
def test_what_a_type_leaves_open_is_doubtful(a, b):
    assert GRADER.grade(a, [b]).doubtful
    assert GRADER.grade(b, [a]).doubtful


def test_quantities():
    assert read_quantity("about 1,228.5 km/h").unit == "km/h"
    assert read_quantity("3/4").value == 0.75
    assert read_quantity("1e400") is None
    assert read_quantity("12 monkeys").unit == "monkey"
    assert read_quantity("half an hour").value == 1800.0
    assert read_quantity("second") is None


def test_words_are_no_formula_and_a_place_is_no_era():
    assert not {"formula", "quantity"} & read_types("well-known").keys()
    assert "formula" not in read_types("Jean-Paul")
    assert "formula" not in read_types("68^2 (4624) or 69^2 (4761)")
    assert "era" not in read_types("Paris, BC")


@given(st.text(max_size=25), st.text(max_size=25))
def test_typed_verdicts_are_symmetric(a, b):
    x, y = read_types(a), read_types(b)
    assert compare_types(x, y) == compare_types(y, x)


@given(st.floats(-1e6, 1e6), st.sampled_from(["km", "miles", "%", "", "kg", "°C"]))
def test_a_quantity_is_itself(value, unit):
    text = f"{value:.3f} {unit}"
    found = compare_types(read_types(text), read_types(text.strip()))
    assert found is not None
    assert found[0] is Relation.SAME


def test_words_that_only_look_alike():
    assert compare_words(("johan",), ("johann",), named=True)[0] is Relation.SAME
    assert compare_words(("four",), ("for",), named=False) is None


def judged_pairs(path):
    """Return by pair: is it joined rightly, graded rightly, wrong without doubt?"""
    pairs = pl.read_csv(path, infer_schema=False).fill_null("")
    joined, graded, firm = [], [], []
    for row in pairs.iter_rows(named=True):
        same = row["same"] == "1"
        ids = cluster_answers([row["a"], row["b"]], question=row["question"])
        grade = GRADER.grade(row["a"], [row["b"]], question=row["question"])
        joined.append((len(set(ids)) == 1) == same)
        graded.append(bool(grade.correct) == same)
        firm.append(bool(grade.correct) != same and not grade.doubtful)
    return joined, graded, firm


@pytest.mark.data
def test_hard_pairs(shared_data):
    joined, graded, firm = judged_pairs(shared_data / "semantics" / "hard_pairs.csv")
    assert sum(joined) >= 0.9 * len(joined)
    assert sum(graded) >= 0.9 * len(graded)
    assert sum(firm) <= 2


def test_pairs_written_after_the_rules():
    # Written before any rule had seen them; the first look gave 80, 83 and 6 of 101.
    joined, graded, firm = judged_pairs(Path(__file__).with_name("fresh_pairs.csv"))
    assert len(graded) == 101
    assert sum(joined) >= 80
    assert sum(graded) >= 83
    assert sum(firm) <= 6


def test_why_two_names_are_one():
    assert why_same("Saigon", "Ho Chi Minh City")["known_as"].startswith("city: ")
    assert why_same("Paris", "Rome")["known_as"] is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("a dozen and a half", "18", True),
        ("two and a half million", "2.5 million", True),
        ("a fortnight", "14 days", True),
        ("an hour", "30 minutes", False),
        ("O(3n log n)", "O(n log n)", True),
        ("O(2^n)", "O(n)", False),
        ("2*sqrt(2)", "sqrt(8)", True),
        ("len(xs) >= 0", "len(xs) > 0", False),
        ("x = a[1]", "x = a[0]", False),
    ],
)
def test_figures_and_code_in_other_words(a, b, same):
    assert (len(set(cluster_answers([a, b]))) == 1) is same
    grade = GRADER.grade(a, [b])
    assert grade.correct is same
    # Other code may still do the same.
    assert same != grade.doubtful or a in ("an hour", "O(2^n)")
