"""No question names its own answer, by a scan that shares no code with the generator."""

import re
import unicodedata

import pytest

from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.check import check_questions
from calibrant.bench.questions.filters import fact_sets
from calibrant.bench.questions.question import BenchQuestion
from calibrant.bench.questions.triples import read_triples


def letters(text):
    parts = unicodedata.normalize("NFKD", text)
    return "".join(mark for mark in parts if not unicodedata.combining(mark)).lower()


def leaks(question):
    text = letters(question.text)
    for name in (letters(name) for names in question.references for name in names):
        if re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text) or (
            len(name) >= 5 and not name.isdigit() and name in text
        ):
            yield name


def test_two_thousand_questions_name_no_answer():
    built = build_benchmark(["language", "region", "math"], (1, 2, 3, 4, 6), 170, seed=3)
    assert len(built.questions) >= 2_000
    assert [question.text for question in built.questions if list(leaks(question))] == []
    assert built.statistics[0]["names_its_answer"] > 0
    assert not any(re.search(r"from (\S+) to \1\b", q.text) for q in built.questions)


def test_questions_from_published_facts_name_no_answer(shared_data):
    triples = read_triples(shared_data / "mace" / "triples")
    facts = fact_sets(triples, source="published facts")
    built = build_benchmark(["award", "office", "river"], (1, 2, 4), 100, facts=facts)
    assert [question.text for question in built.questions if list(leaks(question))] == []


@pytest.mark.parametrize(
    ("text", "answer"),
    [("Name one prime number from 2 to 3, both included.", "3"),
     ("Name one spoken language that is official nationwide in Malaysia.", "Malay")],
)  # fmt: skip
def test_a_question_that_names_its_answer_fails_the_check(text, answer):
    question = BenchQuestion(text, ((answer,),), "other", "", "x")
    found = check_questions([question])["second_look"]["findings"]
    assert f"the question names its answer: {answer}" in {item["detail"] for item in found}


def test_places_have_the_article_that_a_sentence_gives_them():
    built = build_benchmark(["language", "region"], (1, 2, 4), 170, seed=0)
    texts = " ".join(question.text for question in built.questions)
    for bare in ("in Bahamas", "of Netherlands", "of United States", "Congo -", "&", "in Gambia"):
        assert bare not in texts
    assert "the Netherlands" in texts
