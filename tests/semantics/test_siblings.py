"""Names that look alike and mean different things stay apart, for the clusterer and the grader."""

import pytest
from studies._siblings import KNOWN, alike_pairs, chosen

from calibrant.answers.semantics import Grader, SemanticsOptions
from calibrant.answers.semantics.settle import Group, Settler
from calibrant.answers.semantics.text.words import told_apart


def joined(a, b, question, *, siblings=(), grader=None):
    """Whether clusterer or grader, in either direction, takes one name for the other."""
    grader = grader or Grader()
    group = Group([a, b], [1, 1], question, siblings=siblings)
    first, second = Settler(SemanticsOptions()).settle([group])[0].clusters.ids
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
        ("Prince Andrew", "Prince Edward"),
        ("PRINCE ANDREW", "Prince Edward"),
        ("Lord Byron", "Lord Nelson"),
        ("Queen Anne", "Queen Mary"),
        ("Pope Paul", "Pope Pius"),
    ],
)
def test_bearers_of_one_title_never_join(a, b):
    assert not joined(a, b, "Who was it?")
    assert not joined(a, b, "Name one of them.")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Prince Charles", "Charles"),
        ("Pope John Paul II", "John Paul II"),
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


@pytest.mark.parametrize(
    ("a", "b", "question"),
    [
        ("Ava Guarani", "Guarani", "Name one language."),
        ("Sava", "Sava Bohinjka", "Name one river."),
        ("Lamba", "Lambya", "Name one language."),
        ("Batman", "Batman Begins", "Name a film by Christopher Nolan."),
        ("Minsk", "Minsk Region", "Name one first-level administrative division of Belarus."),
        ("Kyiv Oblast", "Kyiv", "Name one first-level administrative division of Ukraine."),
    ],
)
def test_a_longer_name_joins_no_class_and_is_never_surely_right(a, b, question):
    settled = Settler(SemanticsOptions()).settle([Group([a, b], [1, 1], question)])[0]
    assert settled.clusters.ids == [0, 1]
    grade = Grader(judge=None).grade(a, [b], question=question)
    assert not grade.correct or grade.doubtful
    assert not joined(a, b, question, siblings=(a, b))


@pytest.mark.parametrize(
    ("answer", "reference", "question"),
    [
        ("Spanish language", "Spanish", "Name one language."),
        ("Yangtze River in China", "Yangtze", "Name one river."),
        ("Negro River", "Rio Negro", "Name one river."),
        ("Brest", "Brest Region", "Name one first-level administrative division of Belarus."),
        ("Minsk City", "Minsk", "Name one first-level administrative division of Belarus."),
        ("Buenos Aires", "Buenos Aires Province", "Name one province of Argentina."),
        ("Moscow Oblast", "Moscow", "Where was he born?"),
        ("Obama", "Barack Obama", "Name one person who has held the office."),
        ("Nigeria. Mexico.", "Mexico", "Name one country where Igbo is spoken."),
        ("Republic of Moldova", "Moldova", "Name one country in Europe."),
        ("Brazilian Portuguese", "Portuguese", "What is spoken in Brazil?"),
    ],
)
def test_what_names_no_other_member_is_accepted(answer, reference, question):
    assert Grader().grade(answer, [reference], question=question).correct


def test_siblings_and_right_answers_stay_apart_in_classes():
    question = "Name one first-level administrative division of Belarus."
    group = Group(
        ["George H. W. Bush", "George Bush"], [1, 1], "Who was it?",
        references=[["George H. W. Bush"]], siblings=["George Bush"],
    )  # fmt: skip
    assert Settler(SemanticsOptions()).settle([group])[0].clusters.ids == [0, 1]
    group = Group(
        ["Minsk", "Minsk Region"], [1, 1], question, [["Minsk Region"]], siblings=["Minsk"]
    )
    settled = Settler(SemanticsOptions()).settle([group])[0]
    assert settled.clusters.ids == [0, 1]
    assert [grade.correct for grade in settled.grades] == [False, True]


@pytest.mark.parametrize(
    ("a", "b", "question"),
    [
        ("Ava Guarani", "Guarani", "Name one language."),
        ("Sava", "Sava Bohinjka", "Name one river."),
        ("Batman", "Batman Begins", "Name a film by Christopher Nolan."),
    ],
)
def test_a_longer_name_is_another_member_where_one_of_many_is_asked_for(a, b, question):
    assert not joined(a, b, question)


def test_two_hundred_alike_names_of_one_kind(shared_data):
    pairs = chosen(alike_pairs(shared_data, least=0.7))
    assert len(pairs) == 200
    grader = Grader(judge=None)
    both_ways = [(a, b, p.question) for p in pairs for a, b in ((p.a, p.b), (p.b, p.a))]
    grades = [grader.grade(a, [b], question=question) for a, b, question in both_ways]
    # Names alone cannot tell 'Guarani' and 'Ava Guarani': such grades are doubtful.
    assert not [grade for grade in grades if grade.correct and not grade.doubtful]
    assert sum(bool(grade.correct) for grade in grades) <= 0.03 * len(grades)
    told = [
        (p.a, p.b) for p in pairs if joined(p.a, p.b, p.question, siblings=p.others, grader=grader)
    ]
    assert len(told) / len(pairs) <= 0.01, told
