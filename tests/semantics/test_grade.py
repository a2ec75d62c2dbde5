"""Grading: rules before words, and no wrong answer let through by a common word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.answers.semantics import Grader, SemanticsOptions, SimulatedJudge, grade_answers
from calibrant.answers.semantics.verdict import flatten_references
from calibrant.core import InputError

GRADER = Grader(judge=None)
RIGHT = [
    ("Paris", ["Paris"], None),
    ("paris.", ["Paris"], None),
    ("The capital of France is Paris, on the Seine.", ["Paris"], "Capital of France?"),
    ("USA", ["United States of America"], None),
    ("Burma", ["Myanmar"], None),
    ("one thousand", ["1,000"], None),
    ("1 km", ["1000 m"], None),
    ("42.0", ["42"], None),
    ("Einstein", ["Albert Einstein"], "Who?"),
    ("Robert C. Gallo", ["Robert Gallo"], "Who?"),
    ("1969", ["July 20, 1969"], "In what year?"),
    ("20 July 1969", ["July 20, 1969"], "When?"),
    ("I'm not sure, but I think it is Paris", ["Paris"], None),
    ("10 to 12 years", ["10â€“12 years"], None),
    ("Fructose, a natural sugar", ["Fructose, or fruit sugar", "Fructose"], None),
]
WRONG = [
    ("Rome", ["Paris"], None),
    ("17", ["13"], None),
    ("INCORRECT", ["CORRECT"], None),
    ("incorrect", ["correct"], None),
    ("unhappy", ["happy"], None),
    ("not Paris", ["Paris"], None),
    ("It is not Paris but Rome", ["Paris"], None),
    ("Vitamin D", ["Vitamin C"], None),
    ("World War I", ["World War II"], None),
    ("Henry VII", ["Henry VIII"], "Who?"),
    ("Don Waddell", ["Don Maloney"], "Who?"),
    ("Runar Berg", ["Henning Berg", "Erik Mykland"], "Who?"),
    ("K. Satchidanandan", ["K. Shivareddy"], "Who?"),
    ("Laffit Pincay Jr.", ["Angel Cordero, Jr."], "Who?"),
    ("Niger", ["Nigeria"], None),
    ("Sudan", ["South Sudan"], None),
    ("September 27, 2018", ["September 27, 2017"], "When?"),
    ("It's 5 miles", ["5 km"], None),
    ("-5", ["5"], None),
    ("C++", ["C"], None),
    ("sodium nitrite", ["sodium nitrate"], None),
    ("hyperthyroidism", ["hypothyroidism"], None),
    ("General Motors", ["Ford Motor Company"], "Who owns it?"),
    ("The University of California, where he studied", ["Princeton University"], "Where?"),
    ("Christopher Marlowe", ["William Shakespeare"], "Who?"),
]


@pytest.mark.parametrize(("answer", "references", "question"), RIGHT)
def test_right(answer, references, question):
    assert GRADER.grade(answer, references, question=question).correct is True


@pytest.mark.parametrize(("answer", "references", "question"), WRONG)
def test_wrong(answer, references, question):
    assert GRADER.grade(answer, references, question=question).correct is False


@pytest.mark.parametrize(
    ("answer", "reason"), [("", "empty"), (None, "empty"), ("I don't know", "refusal")]
)
def test_nothing_attempted_is_never_wrong(answer, reason):
    grade = GRADER.grade(answer, ["Paris"])
    assert (grade.correct, grade.reason) == (None, reason)


def test_without_a_reference_there_is_no_grade():
    for references in (None, [], [""], [[]]):
        grade = GRADER.grade("Paris", references)
        assert (grade.correct, grade.reason) == (None, "no reference")


def test_references_in_every_shape():
    assert flatten_references("a") == ["a"]
    assert flatten_references(["a", "b"]) == ["a", "b"]
    assert flatten_references([["a"], ["b", "c"]]) == ["a", "b", "c"]
    assert (
        grade_answers(["Rome"] * 3, ["Rome", ["Paris", "Rome"], [["Paris"], ["Rome"]]])
        == [True] * 3
    )


def test_choice_questions():
    choices = ["Rome", "Paris"]
    assert GRADER.grade("(B)", ["B"], choices=choices).correct is True
    assert GRADER.grade("Rome", ["Paris"], choices=choices).correct is False
    assert GRADER.grade("B", ["Paris"], choices=choices).correct is True
    unread = GRADER.grade("either", ["B"], choices=choices)
    assert (unread.correct, unread.reason) == (None, "unparsed")
    with pytest.raises(InputError, match="neither an option letter"):
        GRADER.grade("B", ["Bonn"], choices=choices)


def test_binary_questions():
    assert GRADER.grade("Yes, it is.", ["yes"], kind="binary").correct is True
    assert GRADER.grade("No", ["True"], kind="binary").correct is False


def test_tolerance_of_numbers_is_an_option():
    assert GRADER.grade("3.14159", ["3.15"]).correct is False
    assert Grader(tolerance=0.01).grade("3.14159", ["3.14"]).correct is True
    with pytest.raises(InputError, match="tolerance"):
        Grader(tolerance=-1)


@given(st.text(min_size=1, max_size=40))
def test_an_answer_equal_to_its_reference_is_right(text):
    assert GRADER.grade(text, [text]).correct in (True, None)


def test_lengths_are_checked():
    with pytest.raises(InputError, match="one entry of references per answer"):
        grade_answers(["a"], [])
    with pytest.raises(InputError, match="one question per answer"):
        grade_answers(["a"], ["a"], questions=[])


def test_judge_is_asked_only_where_words_leave_it_open():
    judge = SimulatedJudge({"The Big Apple": 0, "The Windy City": -1})
    answers = ["New York City", "The Big Apple", "The Windy City", "13"]
    references = [["New York City"], ["New York City"], ["New York City"], ["17"]]
    grades = grade_answers(answers, references, options=SemanticsOptions(judge=judge))
    assert grades == [True, True, False, False]
    assert judge.calls == 2


def test_a_bound_on_calls_leaves_the_verdict_of_the_words():
    judge = SimulatedJudge({"The Big Apple": 0})
    options = SemanticsOptions(judge=judge, max_judge_calls=0)
    assert grade_answers(["The Big Apple"], [["New York City"]], options=options) == [False]
    assert judge.calls == 0


def test_exact_grading_is_an_option():
    options = SemanticsOptions(grading="exact")
    assert grade_answers(["It was in Paris then", "paris"], [["Paris"]] * 2, options=options) == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Laos", True),
        ("It is Laos.", True),
        ("Lao", False),
        ("Lao is officially recognised as the language of the Lao people", False),
    ],
)
def test_a_word_of_the_question_is_no_answer_but_for_its_ending(answer, right):
    question = "Name one country or territory where Lao is an official language."
    assert Grader().grade(answer, ["Laos"], question=question).correct is right


def test_the_right_year_beside_another_day_is_doubtful():
    """People reject 'August 27' for 'June 11, 2004', though the year alone is listed too."""
    grader, asked = Grader(), "when did the movie napoleon dynamite come out"
    references = ["June 11, 2004", "2004"]
    other = grader.grade("The movie was released on August 27, 2004.", references, question=asked)
    year = grader.grade("The movie was released in 2004.", references, question=asked)
    assert other.doubtful
    assert other.probability < year.probability


def test_why_names_the_nearest_reference_and_what_both_have():
    why = Grader().why("Kim Basinger", ["Sean Young", "Kim Novak"], question="Who was it?")
    assert (why["correct"], why["reference"]) == (False, "Kim Novak")
    assert (why["shared"], why["missing"], why["known_as"]) == (["kim"], ["novak"], None)
    known = Grader().why("Saigon", ["Hanoi", "Ho Chi Minh City"])
    assert known["correct"]
    assert known["known_as"] == "city: ho chi minh city (known_names.txt)"
    nothing = Grader().why("I don't know", ["Paris"])
    assert (nothing["correct"], nothing["chance"], nothing["doubtful"]) == (None, None, False)


@pytest.mark.parametrize(
    ("answer", "doubtful"),
    [
        ("It was long thought to be Rembrandt, until Vermeer was shown to be behind it", True),
        ("Never Vermeer's pupil, always Vermeer", True),
        ("The Milkmaid was painted by Vermeer in his house in Delft around 1658", False),
        ("Vermeer", False),
    ],
)
def test_rules_doubt_an_answer_that_leaves_the_question_aside(answer, doubtful):
    graded = Grader(judge=None).grade(answer, ["Vermeer"], question="Who painted the Milkmaid?")
    assert (graded.correct, graded.doubtful) == (True, doubtful)
