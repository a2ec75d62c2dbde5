"""Names of countries: several for one, and one that looks like a plural."""

import pytest

from calibrant.answers.semantics import cluster_answers, grade_answers
from calibrant.answers.semantics.text.words import read_names, singular


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("USA", "United States"),
        ("the United States.", "United States of America"),
        ("Holland", "The Netherlands"),
        ("Soviet Union", "Union of Soviet Socialist Republics"),
        ("Mexico", "United Mexican States"),
        ("Lao People's Democratic Republic", "Laos"),
        ("philippines", "Republic of the Philippines"),
        ("Côte d'Ivoire.", "Ivory Coast"),
    ],
)
def test_a_country_has_one_class_under_all_its_names(a, b):
    assert cluster_answers([a, b]) == [0, 0]
    assert grade_answers([a], [[b]]) == [True]


def test_a_country_is_no_plural_of_its_people():
    assert cluster_answers(["Laos", "Lao", "laos", "lao"]) == [0, 1, 0, 1]
    assert cluster_answers(["Wales", "Wale"]) == [0, 1]


def test_other_plurals_are_still_one_with_their_singular():
    assert cluster_answers(["photons", "photon", "Koalas", "koala"]) == [0, 0, 1, 1]


def test_a_name_is_the_same_word_alone_and_in_a_sentence():
    countries = [
        name for name, (kind, _) in read_names("known_names.txt").items() if kind == "country"
    ]
    assert len(countries) > 100
    assert all(singular(name) == name for name in countries if " " not in name)
    assert grade_answers(["It was the Netherlands that won."], [["Netherlands"]]) == [True]
    assert grade_answers(["He was born in Laos in 1950."], [["Laos"]]) == [True]
