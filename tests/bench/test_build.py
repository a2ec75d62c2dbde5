"""Benchmarks: exact k, disjoint unions, whole values, one domain per entity."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.candidates import (
    choose,
    union_candidates,
    window_candidates,
    without_duplicates,
)
from calibrant.bench.questions.check import check_questions
from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.filters import fact_sets, raw_facts
from calibrant.bench.questions.question import BenchQuestion, question_rows
from calibrant.bench.questions.triples import read_triples
from calibrant.core.errors import InputError


def fact_set(domain, relation, facts):
    return FactSet(domain, relation, "test", {s: tuple(found) for s, found in facts.items()})


@st.composite
def rivers(draw):
    countries = [f"C{index}" for index in range(12)]
    facts = {}
    for index in range(draw(st.integers(3, 15))):
        chosen = draw(st.sets(st.sampled_from(countries), min_size=1, max_size=6))
        facts[f"River {index}"] = [Fact(f"River {index}", name) for name in sorted(chosen)]
    return fact_set("river", "flows_through", facts)


@settings(max_examples=40, deadline=None)
@given(facts=rivers(), k=st.integers(1, 6), seed=st.integers(0, 99))
def test_unions_have_exactly_k_answers_from_disjoint_subjects(facts, k, seed):
    found = union_candidates(facts, k, 50, foreign={"c0"}, rng=np.random.default_rng(seed))
    assert len({question.text for question in found}) == len(found)
    for question in found:
        sets = [set(facts.answers(subject)) for subject in question.meta["subjects"]]
        assert 1 <= len(sets) <= 3
        assert all(not a & b for a, b in combinations(sets, 2))
        assert question.answers == set().union(*sets)
        assert question.k == k
        assert "c0" not in question.answers
    assert check_questions(found, {"river": [facts]})["findings"]["number"] == 0


def test_rivers_that_share_a_country_are_never_united():
    rivers = {"A": ["X", "Y"], "B": ["Y", "Z"], "C": ["V", "W"]}
    facts = fact_set(
        "river", "flows_through", {s: [Fact(s, name) for name in o] for s, o in rivers.items()}
    )
    found = union_candidates(facts, 4, 50, rng=np.random.default_rng(0))
    assert {tuple(q.meta["subjects"]) for q in found} == {("A", "C"), ("B", "C")}


@settings(max_examples=40, deadline=None)
@given(
    bins=st.lists(
        st.tuples(st.integers(1, 40), st.integers(1, 10)), min_size=2, max_size=12, unique=True
    ),
    k=st.integers(1, 5),
)
def test_no_window_cuts_through_a_rounded_area(bins, k):
    members = [
        Fact("Utopia", f"D{index}", float(low), float(low + width))
        for index, (low, width) in enumerate(bins)
    ]
    facts = fact_set("region", "division_of", {"Utopia": members})
    for question in window_candidates(facts, k, 500, rng=np.random.default_rng(0)):
        lower, upper = question.meta["lower"], question.meta["upper"]
        certain = {f.obj for f in members if lower <= f.low and f.high <= upper}
        possible = {f.obj for f in members if f.low < upper and f.high > lower}
        assert certain == possible == {names[0] for names in question.references}
        assert question.k == k


def test_the_winner_of_two_years_counts_once():
    people = ["A", "B", "A", "C"]
    members = [Fact("Prize", name, 2000.0 + i, 2000.0 + i) for i, name in enumerate(people)]
    facts = fact_set("award", "awarded_to", {"Prize": members})
    texts = {
        question.text: question.answers
        for question in window_candidates(facts, 2, 500, rng=np.random.default_rng(0))
    }
    assert texts == {
        f"Name one person who was given the award Prize from {low} to {high}, "
        "both years included.": answers
        for low, high, answers in [
            (2000, 2001, {"a", "b"}), (2000, 2002, {"a", "b"}), (2001, 2002, {"a", "b"}),
            (2002, 2003, {"a", "c"}),
        ]
    }  # fmt: skip


def test_an_award_window_never_spans_a_year_without_a_record():
    members = [Fact("Prize", name, year, year) for name, year in (("A", 2000.0), ("B", 2002.0))]
    facts = fact_set("award", "awarded_to", {"Prize": members})
    assert window_candidates(facts, 2, 500, rng=np.random.default_rng(0)) == []


def small_world():
    """Two domains that share the country X, which River needs more."""
    rivers = {f"R{i}": [Fact(f"R{i}", "X" if i < 4 else f"Y{i}")] for i in range(8)}
    languages = {f"L{i}": [Fact(f"L{i}", "X" if i < 1 else f"Z{i}")] for i in range(8)}
    return {
        "river": [fact_set("river", "flows_through", rivers)],
        "language": [fact_set("language", "spoken_in", languages)],
    }


def test_an_entity_belongs_to_the_domain_that_needs_it_more():
    facts = small_world()
    split = build_benchmark(["river", "language"], [1], 10, facts=facts)
    answers = {q.domain: set() for q in split.questions}
    for question in split.questions:
        answers[question.domain] |= question.answers
    assert "x" in answers["river"]
    assert "x" not in answers["language"]
    assert check_questions(split.questions, facts)["ok"]
    shared = build_benchmark(["river", "language"], [1], 10, facts=facts, split_entities=False)
    assert check_questions(shared.questions, facts)["shared_entities"][0]["entities"] == ["X"]


def test_a_shortfall_is_counted_not_filled():
    [row] = build_benchmark(["river"], [1, 2], 20, facts=small_world()).statistics
    assert [part["short_by"] for part in row["by_k"]] == [12, 0]


@pytest.mark.parametrize("strata", ["ngrams", "random", "sentence"])
def test_the_choice_has_the_size_asked_for_and_follows_the_seed(strata):
    candidates = [
        BenchQuestion(f"Name one thing number {i} of {i % 7}.", ((str(i),),), "award", "", "test")
        for i in range(90)
    ]

    def embed(texts):
        return np.random.default_rng(0).normal(size=(len(texts), 8))

    chosen = [
        choose(candidates, 25, strata=strata, embed=embed, rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    ]
    assert len({question.text for question in chosen[0]}) == 25
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


def test_k_means_takes_one_candidate_from_each_far_cluster():
    centres = np.repeat(np.eye(5) * 100, 20, axis=0)
    noise = np.random.default_rng(0).normal(size=centres.shape)
    candidates = [BenchQuestion(f"q{i}", (("a",),), "award", "", "test") for i in range(100)]
    found = choose(
        candidates, 5, strata="sentence", embed=lambda _: centres + noise,
        rng=np.random.default_rng(3),
    )  # fmt: skip
    assert len({int(question.text[1:]) // 20 for question in found}) >= 4


def test_duplicates_are_found_word_for_word_and_nearly():
    texts = ["Name one Río.", "Name one Río.", "name one rio!", "Name one lake."]
    questions = [BenchQuestion(text, (("a",),), "river", "", "test") for text in texts]
    kept, dropped = without_duplicates(questions)
    assert [question.text for question in kept] == ["Name one Río.", "Name one lake."]
    assert dropped == {"exact duplicate": 1, "near duplicate": 1}


@pytest.mark.parametrize(
    ("domains", "ks", "per_k", "rule"),
    [
        (["rivr"], [1], 5, "did you mean 'river'"),
        ([], [1], 5, "name every domain once"),
        (["math", "math"], [1], 5, "name every domain once"),
        (["math"], [0], 5, "from 1 on"),
        (["math"], [1], 0, "at least 1"),
        (["office"], [1], 5, "with triples"),
    ],
)
def test_impossible_benchmarks_are_refused(domains, ks, per_k, rule):
    with pytest.raises(InputError, match=rule):
        build_benchmark(domains, ks, per_k)


def test_out_of_the_box_math_language_and_region_hold_the_check():
    domains = ["math", "language", "region"]
    built = build_benchmark(domains, per_k=40)
    again = build_benchmark(domains, per_k=40)
    assert question_rows(built.questions) == question_rows(again.questions)
    found = check_questions(built.questions)
    assert found["ok"], found["findings"]
    assert {(row["domain"], row["questions"]) for row in found["results"]} == {
        ("math", 160), ("language", 160), ("region", 160)
    }  # fmt: skip
    sources = {question.domain: question.source for question in built.questions}
    assert "CLDR" in sources["language"]
    assert "ISO 3166-2" in sources["region"]


def test_the_published_triples_give_500_for_every_k_where_the_facts_allow(shared_data):
    triples = read_triples(shared_data / "mace" / "triples")
    facts = fact_sets(triples, source="published")
    built = build_benchmark(list(facts), facts=facts, strata="random")
    sizes = {row["domain"]: [part["questions"] for part in row["by_k"]] for row in built.statistics}
    full = [500] * 4
    # River and Language both answer with countries; with one domain per country, the facts do
    # not give both of them 500 questions with one answer.
    assert sizes == {
        "award": full, "office": full, "region": full,
        "river": [476, *full[1:]], "language": [449, *full[1:]],
    }  # fmt: skip
    assert check_questions(built.questions, raw_facts(triples, source="published"))["ok"]
