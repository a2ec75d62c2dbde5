"""Known-wrong names of a question: those alike are in the list, and the grader is not misled."""

from studies._siblings import alike_pairs, chosen

from calibrant.answers.semantics.grade import Grader
from calibrant.bench.questions.candidates import MOST_SIBLINGS, SiblingNames
from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.filters import fact_sets
from calibrant.bench.questions.question import normalised
from calibrant.bench.questions.triples import read_triples

FILES = {"region": "country", "office": "office", "award": "award"}


def made(rows):
    facts = {name: tuple(Fact(name, obj) for obj in found) for name, found in rows.items()}
    return SiblingNames(FactSet("river", "flows_through", "a list", facts))


def test_names_alike_come_before_popular_ones_and_right_answers_never():
    popular = {f"river {i}": [f"Popular {j}" for j in range(40)] for i in range(5)}
    names = made({**popular, "Po": ["West Virginia"], "Inn": ["Virginia"]})
    found = names.of([normalised("West Virginia")])
    assert found[0] == "Virginia"
    assert len(found) == MOST_SIBLINGS
    assert "West Virginia" not in found


def test_an_object_that_shares_a_name_with_a_right_answer_is_no_sibling():
    facts = {
        "a": (Fact("a", "Czechia", aliases=("Czech Republic",)),),
        "b": (Fact("b", "Czech Republic"), Fact("b", "Poland")),
    }
    names = SiblingNames(FactSet("river", "flows_through", "a list", facts))
    assert names.of([normalised("Czechia")]) == ("Poland",)


def test_no_name_alike_is_taken_for_a_right_answer_of_mace(shared_data):
    """200 pairs of the most alike names: names alone join some, the benchmark's lists none."""
    pairs = [pair for pair in chosen(alike_pairs(shared_data)) if pair.kind in FILES]
    assert len(pairs) == 120
    folder = shared_data / "mace" / "triples"
    names = {}
    for kind, file in FILES.items():
        triples = read_triples(folder / f"{file}_structured_facts.json")
        names[kind] = SiblingNames(fact_sets(triples, source="rows", rules=False)[kind][0])
    grader, joined, listed = Grader(), 0, 0
    for pair in pairs:
        if normalised(pair.a) not in names[pair.kind].known:
            continue
        siblings = names[pair.kind].of([normalised(pair.a)])
        listed += 1
        question = pair.question
        joined += bool(grader.grade(pair.b, [pair.a], question=question, siblings=siblings).correct)
    assert listed > 100
    assert joined <= 0.01 * listed
