"""What rules read in a text, and what they make of two words, names or typed answers."""

import pytest

from calibrant.answers.semantics.forms import words_of
from calibrant.answers.semantics.text.normalise import (
    is_formula,
    normalise,
    squeeze,
    strip_accents,
    strip_lead_in,
)
from calibrant.answers.semantics.text.numbers import (
    digits_for_words,
    join_thousands,
    unify_dates,
    unify_years,
)
from calibrant.answers.semantics.text.words import (
    known_names,
    listed_kind,
    near_word,
    opposed,
    same_given_name,
    same_name,
    singular,
    spelling_variant,
    within_edits,
)
from calibrant.answers.semantics.typed import (
    compare_types,
    compare_words,
    read_types,
    spelling_key,
    unexplained,
)
from calibrant.answers.semantics.typed.notation import read_formula
from calibrant.answers.semantics.typed.quantities import read_era, read_numeral


@pytest.mark.parametrize(
    ("read", "text", "reading"),
    [
        (singular, "boxes", "box"),
        (singular, "glass", "glass"),
        (singular, "prophets", "prophet"),
        (singular, "laos", "laos"),
        (listed_kind, "niger", "country"),
        (listed_kind, "german", "language"),
        (listed_kind, "monet", None),
        (normalise, "Deutschland", "germany"),
        (normalise, "Samuel Clemens", "mark twain"),
        (normalise, "the road to Burma", "road to burma"),
        (strip_lead_in, "I think it's 5 miles", "5 miles"),
        (strip_accents, "Guðni Jóhannesson, São Tomé", "Gudni Johannesson, Sao Tome"),
        (squeeze, "a \t b  \r\n\n c", "a b\nc"),
        (is_formula, "(4*5)-(10-6)", True),
        (is_formula, "1914-1918", False),
        (is_formula, "Rome (Italy)", False),
        (unify_years, "the 1979-80 season", "the 1979 to 1980 season"),
        (unify_years, "1979-12", "1979-12"),
        (unify_dates, "on July 20th, 1969", "on 1969_07_20"),
        (unify_dates, "Dec. 1972", "1972_12_xx"),
        (unify_dates, "May 5", "xxxx_05_05"),
        (unify_dates, "13/12/1999 and 12/13/1999", "1999_12_13 and 1999_12_13"),
        (unify_dates, "03/04/1999", "03/04/1999"),  # March or April
        (
            join_thousands,
            "1,000 or 1 000 000 or 1.000.000, but 3,14",
            "1000 or 1000000 or 1000000, but 3,14",
        ),
        (digits_for_words, "one thousand and twenty-three men", "1023 men"),
        (digits_for_words, "the fifth, the 1.5 million", "the 5th, the 1500000"),
        (read_era, "44 BCE", ("year", -44)),
        (read_era, "AD 79", ("year", 79)),
        (read_era, "the fifth century BC", ("century", -5)),
        (read_era, "79", None),
        (read_numeral, "Louis XIV", ("louis", 14)),
        (read_numeral, "Queen Elizabeth the Second", ("elizabeth", 2)),
        (read_numeral, "WWII", ("world war", 2)),
        (words_of, "950.00 men of the 5 th legion", ["950", "men", "of", "the", "5", "legion"]),
    ],
)
def test_reading(read, text, reading):
    assert read(text) == reading


@pytest.mark.parametrize(
    ("compare", "a", "b", "same"),
    [
        (spelling_variant, "johan", "johann", True),
        (spelling_variant, "brendan", "brendon", True),
        (spelling_variant, "martin", "marvin", False),
        (spelling_variant, "austria", "australia", False),
        (same_given_name, "bob", "robert", True),
        (same_given_name, "r", "robert", True),
        (opposed, "nitrite", "nitrate", True),
        (opposed, "hypertension", "hypotension", True),
        (near_word, "america", ["american"], True),
        (near_word, "1984", ["1985"], False),
        (near_word, "nitrite", ["nitrate"], False),
        (near_word, "iran", ["iraq"], False),
        (near_word, "mauritius", ["mauritania"], False),
        (same_name, ("robert", "c", "gallo"), ("robert", "gallo"), True),
        (same_name, ("john", "h", "adams"), ("john", "q", "adams"), False),
        (same_name, ("gary", "ablett", "jr"), ("gary", "ablett", "sr"), False),
        (same_name, ("einstein",), ("albert", "einstein"), None),
        (unexplained, ("john", "adams"), ("john", "quincy", "adams"), "middle name"),
        (unexplained, ("paris",), ("paris", "saint", "germain"), "leftover word"),
        (unexplained, ("king", "charles"), ("charles",), None),
    ],
)
def test_words_and_names_of_one_thing(compare, a, b, same):
    assert compare(a, b) == same


@pytest.mark.parametrize(
    ("a", "b", "edits"),
    [
        ("kitten", "sitten", 1),
        ("kitten", "sitting", 3),
        ("abc", "bcd", 2),
        ("", "ab", 2),
        ("ab", "ba", 2),
        ("abcdef", "abXdYf", 2),
        ("banana", "bananas", 1),
    ],
)
def test_letters_that_must_change(a, b, edits):
    assert [within_edits(a, b, limit) for limit in range(4)] == [edits <= n for n in range(4)]
    assert within_edits(b, a, edits)


def test_names_of_the_tables_and_sounds():
    assert known_names()["italie"] == ("country", "italy")
    assert known_names()["paracetamol"] == ("substance", "paracetamol")
    assert spelling_key("gaddafi") == spelling_key("qaddafi")
    assert spelling_key("monet") != spelling_key("manet")
    assert compare_words(("manet",), ("monet",), named=True)[1] == "look-alike"
    assert compare_words(("austria",), ("australia",), named=True)[1] == "country"


def test_formulas_are_worth_a_number():
    assert read_formula("y = 3x + 1").value({"x": 2.0}) == 7.0
    assert read_formula(r"\frac{x}{2}").value({"x": 3.0}) == 1.5
    assert read_formula("x") is None


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("O(n log n)", "O(2n*log n)", ("same", "complexity")),
        ("O(n)", "Θ(n)", ("unsure", "complexity")),
        ("{3, 1, 2}", "{1, 2, 3}", ("same", "set")),
        ("[1,2,3]", "[3,2,1]", ("different", "sequence")),
        ("10-12", "between 10 and 12", ("same", "interval")),
        ("11", "10-12", ("unsure", "range")),
        ("14", "10-12", ("different", "range")),
        ("44 BC", "44", ("unsure", "era")),
        ("44 AD", "44", ("same", "era")),
        ("the fifth century BC", "44", ("different", "era")),
        ("100 km/h", "62 mph", ("same", "unit")),
        ("one third", "0.3", ("different", "number")),
        ("3.14", "3.14159", ("same", "number")),
        ("len(xs) > 0", "x = a[1]", ("unsure", "code")),
        ("He never married", "He married", ("different", "negation")),
        ("The bill was passed", "The bill was rejected", ("different", "negation")),
        ("gold and silver", "gold, silver and bronze", ("unsure", "part of a list")),
        ("Portland, Oregon", "Oregon, Portland", None),
    ],
)
def test_typed_answers(a, b, verdict):
    for one, other in ((a, b), (b, a)):
        found = compare_types(read_types(one), read_types(other))
        assert (found and (found[0].value, found[1])) == verdict
