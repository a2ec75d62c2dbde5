"""Clustering: rules, conflicts, embeddings and the judge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulations.semantics import greedy_pairwise, one_question, steps_of

from calibrant.answers.semantics import (
    Docket,
    EntailmentPairs,
    Grader,
    Group,
    SameQuery,
    SemanticsOptions,
    Settler,
    SimulatedJudge,
    cluster_answers,
    grade_answers,
    pairwise_f1,
    same_partition,
)
from calibrant.answers.semantics.cluster import (
    Partition,
    candidate_pairs,
    cluster_exact,
    first_appearance,
    relate,
)
from calibrant.answers.semantics.forms import FormReader, read_cues
from calibrant.answers.semantics.hybrid import CosinePairs, run_steps
from calibrant.answers.semantics.typed.quantities import Relation
from calibrant.core import InputError
from calibrant.core.errors import MissingDependencyError
from calibrant.models.endpoints.embedded import open_embedder

READ = FormReader()
WHO = "Who won it?"
SAME = [
    ("1,000", "one thousand", None),
    ("1 km", "1000 m", None),
    ("42.0", "42", None),
    ("July 20, 1969", "1969-07-20", None),
    ("July 20, 1969", "1969", "In what year did it happen?"),
    ("Robert C. Gallo", "Robert Gallo", WHO),
    ("Fran Allen", "Frances E. Allen", WHO),
    ("Johan Cruyff", "Johann Cruyff", WHO),
    ("Abraham Lincoln", "Lincoln, Abraham", WHO),
    ("WHO", "World Health Organization", None),
    ("Italy (Sardinia)", "Italy", None),
]
DIFFERENT = [
    ("13", "17", None),
    ("5 km", "5 miles", None),
    ("John H. Adams", "John Q. Adams", WHO),
    ("Gary Ablett Jr.", "Gary Ablett Sr.", WHO),
    ("World War 1", "World War 2", None),
    ("Henry VII", "Henry VIII", WHO),
    ("1969", "1970", None),
    ("Vitamin C", "Vitamin D", None),
]
NOT_SAME = [
    ("Shakespeare", "Marlowe", WHO),
    ("Iran", "Iraq", None),
    ("Austria", "Australia", None),
    ("Niger", "Nigeria", None),
    ("South Sudan", "Sudan", None),
    ("New York", "York", None),
    ("Martin Freeman", "Marvin Freeman", WHO),
    ("sodium nitrate", "sodium nitrite", None),
    ("Nigeria. Mexico.", "Nigeria", None),
    ("hyperthyroidism", "hypothyroidism", None),
]


@pytest.mark.parametrize(("a", "b", "question"), SAME)
def test_rules_join(a, b, question):
    assert cluster_answers([a, b], question=question) == [0, 0]


@pytest.mark.parametrize(("a", "b", "question"), DIFFERENT)
def test_rules_keep_apart(a, b, question):
    assert relate(READ(a), READ(b), read_cues(question))[0] is Relation.DIFFERENT
    assert cluster_answers([a, b], question=question) == [0, 1]


@pytest.mark.parametrize(("a", "b", "question"), NOT_SAME)
def test_rules_do_not_join_what_only_looks_alike(a, b, question):
    assert cluster_answers([a, b], question=question) == [0, 1]


@given(st.text(max_size=25), st.text(max_size=25))
def test_relations_are_symmetric(a, b):
    assert relate(READ(a), READ(b)) == relate(READ(b), READ(a))


@given(
    st.lists(st.sampled_from([pair[i] for pair in SAME + DIFFERENT for i in (0, 1)]), max_size=12)
)
def test_blocks_miss_no_pair_that_rules_would_join(answers):
    forms = list({READ(text).key: READ(text) for text in answers}.values())
    near = set(candidate_pairs(forms))
    for a in range(len(forms)):
        for b in range(a + 1, len(forms)):
            if relate(forms[a], forms[b])[0] in (Relation.SAME, Relation.LIKELY):
                assert (a, b) in near


@given(st.lists(st.sampled_from(["Paris", "paris.", "Rome", "1,000", "1000", "", "I don't know"])))
def test_ids_count_from_zero_in_order_of_first_appearance(answers):
    ids = cluster_answers(answers)
    assert ids == first_appearance(ids)
    assert cluster_answers(answers) == ids


def test_a_surname_joins_the_one_full_name_only():
    assert cluster_answers(["Einstein", "Albert Einstein"], question=WHO) == [0, 0]
    both = cluster_answers(["Einstein", "Albert Einstein", "Alfred Einstein"], question=WHO)
    assert both == [0, 1, 2]


def test_transitive_conflicts_are_reported():
    answers = ["Gary Ablett Jr.", "Gary Ablett", "Gary Ablett Sr."]
    found = run_steps([steps_of(answers, question=WHO, scope=None)], None)[0]
    assert found.ids == [0, 0, 1]
    assert found.conflicts == [("Gary Ablett", "Gary Ablett Sr.")]


def test_refusals_share_a_class_of_their_own():
    assert cluster_answers(["Paris", "I don't know", "", "N/A"]) == [0, 1, 1, 1]


def test_exact_is_weaker_than_rules():
    answers = ["Robert C. Gallo", "Robert Gallo"]
    assert cluster_exact(answers).ids == [0, 1]
    options = SemanticsOptions(clustering="exact")
    assert cluster_answers(answers, question=WHO, options=options) == [0, 1]


def test_partition_refuses_forbidden_joins_through_other_members():
    classes = Partition(4)
    classes.forbid(0, 3)
    assert classes.join(0, 1)
    assert classes.join(2, 3)
    assert not classes.join(1, 2)
    assert classes.conflicts == [(1, 2)]


def test_pairwise_f1_golden():
    # 2 pairs found, 3 true ones, 1 in common: F1 = 2 * 1 / (2 + 3).
    assert pairwise_f1([0, 0, 1, 1], [0, 0, 0, 1]) == pytest.approx(0.4)
    assert same_partition(["a", "b", "a"], [7, 3, 7])


class Vectors:
    """An embedder with fixed vectors."""

    name = "fixed"

    def __init__(self, vectors):
        self.vectors = vectors

    def embed(self, texts):
        rows = np.array([self.vectors.get(text, [0.0, 0.0, 1.0]) for text in texts], dtype=float)
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_embeddings_join_phrases_but_never_numbers_or_names():
    near = Vectors({})  # everything is alike
    options = SemanticsOptions(clustering="embeddings", embedder=near)
    answers = ["a drop in the price", "prices went down", "13", "17", "Shakespeare", "Marlowe"]
    assert cluster_answers(answers, options=options) == [0, 0, 1, 2, 3, 4]
    clusters = Settler(options).settle([Group(answers, [1] * 6)])[0].clusters
    assert clusters.decided_by["embedding"] == 1


def test_answers_that_rules_have_joined_never_reach_a_judge():
    judge = SimulatedJudge({"lower taxes on firms": 0, "war in the north": 1, "1,000": 2})
    options = SemanticsOptions(judge=judge)
    answers = ["lower taxes on firms", "1,000", "1000", "war in the north"]
    assert cluster_answers(answers, options=options) == [0, 1, 1, 2]


@pytest.mark.parametrize("who", ["judge", "embedded"])
def test_where_a_judge_is_there_the_embedder_joins_nothing(who):
    class Apart:
        name = "apart"

        def scores(self, asked):
            return np.full(len(asked), -3.0)

    answers = ["a drop in the price", "prices went down"]
    near = Vectors({})  # everything is alike
    judges = {"judge": SimulatedJudge({answers[0]: 0, answers[1]: 1}), "embedded": Apart()}
    assert cluster_answers(answers, options=SemanticsOptions(embedder=near)) == [0, 0]
    options = SemanticsOptions(embedder=near, **{who: judges[who]})
    assert cluster_answers(answers, options=options) == [0, 1]


MEANINGS = {"UK": 0, "Great Britain": 0, "Britain": 0, "France": 1}


@pytest.mark.parametrize("mode", ["confirmed", "which", "pairwise", "group"])
def test_judge_modes_agree_without_errors(mode):
    options = SemanticsOptions(judge=SimulatedJudge(MEANINGS), judge_mode=mode)
    answers = ["UK", "France", "Britain", "Great Britain", "UK"]
    assert cluster_answers(answers, question="Where?", options=options) == [0, 1, 0, 0, 0]


def test_calls_are_bounded_and_what_is_refused_stays_apart():
    docket = Docket(SimulatedJudge(MEANINGS), max_calls=1)
    steps = steps_of(["UK", "Britain", "France"], judge_mode="which")
    found = run_steps([steps], docket)[0]
    assert docket.calls == 1
    assert docket.refused == 1
    assert found.ids == [0, 0, 1]


def test_no_query_is_paid_twice_and_sameness_is_symmetric():
    judge = SimulatedJudge(MEANINGS)
    docket = Docket(judge)
    assert docket.ask_all([SameQuery("q", "UK", "Britain"), SameQuery("q", "Britain", "UK")]) == [
        True,
        True,
    ]
    assert judge.calls == 1


class Moody:
    """Says 'same' only when asked in one order."""

    name = "moody"

    def answer_all(self, queries):
        return [query.a < query.b for query in queries]


def test_asymmetric_replies_are_found_and_count_as_different():
    docket = Docket(Moody(), check_symmetry=True)
    assert docket.ask_all([SameQuery("q", "UK", "Britain")]) == [False]
    assert docket.asymmetric == [("Britain", "UK")]


def test_unreadable_replies_join_nothing():
    class Mute:
        name = "mute"

        def answer_all(self, queries):
            return [None] * len(queries)

    docket = Docket(Mute())
    assert run_steps([steps_of(["UK", "Britain"])], docket)[0].ids == [0, 1]
    assert docket.unreadable == 1


@pytest.mark.parametrize(
    ("error", "compound"), [(0.0, True), (0.02, True), (0.1, True), (0.2, False)]
)
def test_hybrid_needs_a_third_of_the_greedy_calls_at_no_worse_f1(error, compound):
    calls, scores = {"greedy": 0, "hybrid": 0}, {"greedy": [], "hybrid": []}
    for number in range(60):
        answers, meaning, truth = one_question(np.random.default_rng(number))
        for name, steps in (
            ("greedy", greedy_pairwise(answers)),
            ("hybrid", steps_of(answers)),
        ):
            judge = SimulatedJudge(truth, error_rate=error, compound=compound, seed=number)
            found = run_steps([steps], Docket(judge))[0]
            calls[name] += found.judge_calls
            scores[name].append(pairwise_f1(found.ids, meaning))
    assert calls["hybrid"] <= calls["greedy"] / 3
    assert np.mean(scores["hybrid"]) >= np.mean(scores["greedy"])


def test_simulated_judge_errs_at_its_rate():
    truth = {f"t{i}": i % 2 for i in range(60)}
    judge = SimulatedJudge(truth, error_rate=0.1)
    pairs = [SameQuery("q", a, b) for a in truth for b in truth if a < b]
    wrong = [
        reply != (truth[q.a] == truth[q.b])
        for q, reply in zip(pairs, judge.answer_all(pairs), strict=True)
    ]
    assert np.mean(wrong) == pytest.approx(0.1, abs=3 * np.sqrt(0.09 / len(pairs)))


def test_options_are_checked():
    with pytest.raises(InputError, match="no clustering 'rule'"):
        SemanticsOptions(clustering="rule")
    with pytest.raises(InputError, match="needs a judge"):
        SemanticsOptions(grading="judge")
    with pytest.raises(InputError, match="calibrant\\[local\\]"):
        SemanticsOptions(clustering="embeddings")
    with pytest.raises(InputError, match="max_calls"):
        Docket(SimulatedJudge({}), max_calls=-1)


class Scripted:
    """Gives its replies in order."""

    name = "scripted"

    def __init__(self, replies):
        self.replies = iter(replies)

    def answer_all(self, queries):
        return [next(self.replies) for _ in queries]


@pytest.mark.parametrize(
    ("replies", "ids"),
    [
        ([-1, False, 0, True], [0, 1, 0]),  # both opinions agree
        ([-1, False, 0, False, 1], [0, 1, 0]),  # the third decides for the first
        ([-1, False, 0, False, -1], [0, 1, 2]),  # the third decides against it
        ([-1, False, -1, -1], [0, 1, 2]),
        ([-1, False, -1, 1, True], [0, 1, 0]),
        ([-1, False, -1, 1, False], [0, 1, 2]),
        ([None, None], [0, 1, 2]),
    ],
)
def test_a_second_opinion_and_a_third_that_decides(replies, ids):
    docket = Docket(Scripted(replies))
    assert run_steps([steps_of(["aaa", "bbb", "ccc"])], docket)[0].ids == ids
    assert docket.calls == len(replies)


@pytest.mark.parametrize(
    ("answers", "classes"),
    [
        (["yes", "Yes, it does", "No", "no, it is not"], [0, 0, 1, 1]),
        (["x=2", "x = 2.0", "y = 2", "x=3"], [0, 0, 1, 2]),
        (["50%", "0.5", "5%"], [0, 0, 1]),
        (["Germany", "Deutschland", "Allemagne", "Österreich", "Austria"], [0, 0, 0, 1, 1]),
        (["German", "Deutsch", "allemand"], [0, 0, 0]),
        (["日本", "Japan", "Япония"], [0, 0, 0]),
    ],
)
def test_one_meaning_in_several_writings(answers, classes):
    assert cluster_answers(answers) == classes
    for answer, class_id in zip(answers, classes, strict=True):
        assert grade_answers([answer], [[answers[0]]]) == [class_id == 0]


@pytest.mark.parametrize(
    ("answers", "classes"),
    [
        ([r"\frac{1}{2}", "0.5", "1/2", "2"], [0, 0, 0, 1]),
        (["(x+1)^2", "x^2+2x+1", "x^2+1"], [0, 0, 1]),
        ([r"2\sqrt{2}", r"\sqrt{8}"], [0, 0]),
        (["9^{9^{9}}", "1"], [0, 1]),
    ],
)
def test_formulas_by_computer_algebra(answers, classes):
    pytest.importorskip("math_verify")
    assert cluster_answers(answers, options=SemanticsOptions(math=True)) == classes


def test_siblings_of_a_benchmark_are_wrong_and_apart():
    names = ("Bikol", "Libon Bikol", "Central Bikol")
    group = Group(["Bikol", "bikol", "Libon Bikol"], [1, 1, 1], siblings=names)
    assert Settler(SemanticsOptions()).settle([group])[0].clusters.ids == [0, 0, 1]
    grader = Grader()
    assert grader.grade("Bikol", ["Libon Bikol"]).correct
    found = grader.grade("Bikol", ["Libon Bikol"], siblings=["Bikol", "Central Bikol"])
    assert (found.correct, found.grader) == (False, "sibling")


def test_any_model_that_compares_pairs_takes_the_place_of_the_embedder():
    asked = []

    def entails(premises, hypotheses):
        asked.extend(zip(premises, hypotheses, strict=True))
        return [
            float(p.endswith("rain") == h.endswith("rain"))
            for p, h in zip(premises, hypotheses, strict=True)
        ]

    options = SemanticsOptions(pair_model=EntailmentPairs(entails, "toy"), clustering="embeddings")
    answers = ["because of heavy rain", "caused by the rain", "a broken pump"]
    assert cluster_answers(answers, question="Why?", options=options) == [0, 0, 1]
    assert ("Why? because of heavy rain", "Why? caused by the rain") in asked
    assert ("Why? caused by the rain", "Why? because of heavy rain") in asked


def test_a_pair_model_must_give_one_probability_per_pair():
    with pytest.raises(InputError, match="one probability"):
        EntailmentPairs(lambda _a, _b: [2.0, 2.0], "odd").scores([("q", "a", "b")])


@pytest.mark.local
def test_the_embedder_that_ships_fits_the_adapter():
    try:
        embedder = open_embedder()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    model = CosinePairs(embedder)
    near, far = model.scores(
        [
            ("", "a heavy snowfall blocked the road", "the road was blocked by heavy snow"),
            ("", "a heavy snowfall blocked the road", "the minister resigned"),
        ]
    )
    assert near > 0.7 > 0.3 > far
    vectors = embedder.embed(["a heavy snowfall blocked the road", "the minister resigned"])
    assert far == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)


def test_formulas_of_other_operators_or_brackets_are_other_answers():
    answers = [
        "(10 - 4) * (6 - 5)",
        "(10 - 6) * (4 + 5)",
        "(10 - 4) * (6 + 5)",
        "(10-4)*(6-5)",
        "10 - 4 * 6 - 5",
        "(7 - 1) * 4 - 2",
        "(7 - 1) * 4 / 2",
    ]
    assert cluster_answers(answers) == [0, 1, 2, 0, 3, 4, 5]
