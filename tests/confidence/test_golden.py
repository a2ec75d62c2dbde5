"""Every method on cases worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.confidence.cases import full_question, headache

from calibrant.answers.confidence import (
    METHODS,
    Draws,
    Greedy,
    Options,
    Probes,
    Question,
    score,
    table_of,
)
from calibrant.core.errors import InputError, UnavailableError

# Of the full question: classes lima 3 (0.5, 0.5, 0.3), quito 1 (0.2), bogota 1 (0.1).
_ENTROPY = -(0.6 * math.log(0.6) + 2 * 0.2 * math.log(0.2))
_MASS = np.array([1.3, 0.2, 0.1]) / 1.6
_MEAN_LOG = (2 * math.log(0.5) + math.log(0.2) + math.log(0.3) + math.log(0.1)) / 5
_H1 = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
_H2 = 1.75 * math.log(2)
_B1 = math.sqrt(0.8 / 2) + math.sqrt(0.2 / 2)
_B2 = math.sqrt(0.5 / 4) + math.sqrt(0.25 / 4) + 2 * math.sqrt(0.125 / 4)
_SENT_SAR = (
    2 * math.log(0.5 + 0.8 / 0.001) + math.log(0.3 + 1.0 / 0.001) + math.log(0.2) + math.log(0.1)
) / 5
EXPECTED = {
    "consistency": (0.6, "Lima", True),
    "sem1": (0.6, "Lima", True),
    # Blocks of 2 of 5: worked out in test_sem2_by_enumeration.
    "sem2": (0.3, "Lima", 0.6),
    "first_run_consistency": (0.6, "Lima", True),
    "sfca": (1.0, "Lima", True),
    "discrete_semantic_entropy": (math.exp(-_ENTROPY), "Lima", True),
    "number_of_classes": (-3.0, "Lima", True),
    "degree_matrix": (0.36 + 0.04 + 0.04, "Lima", True),
    "eccentricity": (-math.sqrt(2), "Lima", True),
    "kernel_language_entropy": (math.exp(-_ENTROPY), "Lima", True),
    "prob_entropy": (math.exp(_MEAN_LOG), "Lima", True),
    "norm_prob_entropy": (math.exp(_MEAN_LOG), "Lima", True),
    "semantic_entropy": (math.exp(float(np.sum(_MASS * np.log(_MASS)))), "Lima", True),
    "sca": (1.6, "Lima", True),
    # The end of a text is not known, so that 'Lima' (0.5) holds 'Lima, Peru' (0.3).
    "sca_distinct": (0.8, "Lima", True),
    # 0.1 / 1.6 is below the default threshold 0.1.
    "snca": (1.5 / 1.6, "Lima", True),
    "perplexity": (math.sqrt(0.4), "Lima", True),
    "sequence_probability": (0.4, "Lima", True),
    "min_token_probability": (0.5, "Lima", True),
    # Two tokens; the question makes the text four times as likely.
    "pmi": (math.log(4) / 2, "Lima", True),
    "p_true_consistency": (2 / 3, "Lima", True),
    "p_true_consistency_cand": (0.5, "Lima", True),
    "p_true_prob": (0.6, "Lima", True),
    "p_true_prob_cand": (0.5, "Lima", True),
    "p_true_ratio": (0.75, "Lima", True),
    "verb": (0.7, "Quito", False),
    "verb_topk": (0.7, "Quito", False),
    "verb_mean": (0.7, "Lima", True),
    "consistency_verb": (0.7, "Lima", True),
    "consistency_verb_topk": (0.7, "Lima", True),
    "self_ask": (0.8, "Lima", True),
    "self_ask_cand": (0.4, "Lima", True),
    "first_token_entropy": (math.exp(-1.5 * math.log(2)), "Lima", True),
    "first_token_probability": (0.5, "Lima", True),
    "first_token_margin": (0.25, "Lima", True),
    "self_certainty": (-(math.log(1.5) + 2 * math.log(0.75)) / 3, "Lima", True),
    "option_softmax": (0.75, "A", True),
    "yes_no_ratio": (0.75, "yes", None),
    # Two of five draws have a meaning that was drawn once.
    "good_turing": (0.6, "Lima", True),
    "effective_answers": (-math.exp(_ENTROPY), "Lima", True),
    "eigv": (-3.0, "Lima", True),
    # Of ten pairs: Lima-Lima 1, twice Lima-'Lima, Peru' 2/3.
    "lexical_similarity": (7 / 30, "Lima", True),
    "lexical_similarity_greedy": (8 / 15, "Lima", True),
    "exact_match_greedy": (0.4, "Lima", True),
    "consistency_greedy": (0.6, "Lima", True),
    "mean_token_entropy": (math.exp(-(_H1 + _H2) / 2), "Lima", True),
    "max_token_entropy": (math.exp(-_H2), "Lima", True),
    "probability_margin": ((0.6 + 0.25) / 2, "Lima", True),
    # Bhattacharyya's coefficients with equal shares of two and of four tokens.
    "renyi_divergence": (-math.log(_B1) - math.log(_B2), "Lima", True),
    "fisher_rao": ((math.acos(_B1) + math.acos(_B2)) / math.pi, "Lima", True),
    # The largest drop comes after the chosen token: nothing is as good.
    "boosted_probability": (math.sqrt(0.8 * 0.5), "Lima", True),
    "linguistic_confidence": (None, "Lima", True),
    # 'Qui' makes another claim; 'MA' says the same as 'ma', 'the' and 'on' say nothing.
    "claim_conditioned_probability": (0.8, "Lima", True),
    "cocoa_msp": (0.4 * math.log(0.4), "Lima", True),
    "cocoa_ppl": (0.4 * math.log(0.4) / 2, "Lima", True),
    "cocoa_mte": (-0.4 * (_H1 + _H2) / 2, "Lima", True),
    # Distinct texts 0.5, 0.3 near and 0.2, 0.1 far.
    "semantic_density": (0.8 / 1.1, "Lima", True),
    "token_sar": (_MEAN_LOG, "Lima", True),
    "sent_sar": (_SENT_SAR, "Lima", True),
    "sar": (_SENT_SAR, "Lima", True),
    "verified_mass": ((3 * 0.9 + 0.2) / 4, "Lima", True),
    "panel_mean": (0.65, "Lima", True),
    "panel_vote": (0.5, "Lima", True),
    "selfcheck_judge": (2 / 3, "Lima", True),
    # Lima and Lima: supported by the other and by 'Lima, Peru'; 'Lima, Peru' half by each Lima.
    "luq": ((0.5 + 0.5 + 0.25) / 5, "Lima", True),
}
# These need a long answer or a file: test_longform and test_ensemble have their values.
ELSEWHERE = {"claim_support", "claim_support_min", "ensemble"}


def test_every_method_has_a_golden_value() -> None:
    assert set(EXPECTED) | ELSEWHERE == set(METHODS)
    assert len(METHODS) >= 50


@pytest.mark.parametrize("method", list(EXPECTED))
def test_by_hand(method: str) -> None:
    value, answer, correct = EXPECTED[method]
    got = score(method, full_question())
    if value is not None:
        assert got == pytest.approx(value, abs=1e-12)
    assert (got.answer, got.correct) == (answer, pytest.approx(correct))


def test_headache_one_remedy() -> None:
    assert score("consistency", headache(18, 0, 2)) == pytest.approx(0.9)
    assert score("sfca", headache(18, 0, 2), tau=0.2) == pytest.approx(0.9)


def test_headache_two_remedies() -> None:
    split = headache(12, 6, 2)
    assert score("consistency", split) == pytest.approx(0.6)
    assert score("discrete_semantic_entropy", split) < 0.5
    assert score("sfca", split, tau=0.2) == pytest.approx(0.9)


def test_two_equal_classes_have_entropy_ln_2() -> None:
    question = Question(
        classes=[0, 1], correct=[True, False], token_logprobs=[[math.log(0.3)], [math.log(0.3)]]
    )
    for method in ("semantic_entropy", "discrete_semantic_entropy"):
        assert -math.log(score(method, question)) == pytest.approx(math.log(2), abs=1e-15)


def test_no_entropy_is_full_confidence() -> None:
    question = Question(classes=[0, 0, 0], correct=[True] * 3, token_logprobs=[[0.0]] * 3)
    for method in ("prob_entropy", "norm_prob_entropy", "semantic_entropy"):
        assert score(method, question) == 1.0


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=8), min_size=2, max_size=10),
)
def test_snca_and_sfca_without_threshold_cannot_rank(draws: list[list[int]]) -> None:
    """A constant score has AUROC 0.5 whatever the grades."""
    table = table_of(
        Question(
            classes=classes,
            correct=[label % 2 == 0 for label in classes],
            token_logprobs=[[-float(label + 1)] for label in classes],
        )
        for classes in draws
    )
    for name in ("snca", "sfca"):
        values = METHODS[name].scored(table, Options(tau=0.0)).value
        np.testing.assert_allclose(values, 1.0, atol=1e-12)


def test_snca_and_sfca_without_threshold_have_auroc_one_half() -> None:
    from calibrant import metrics

    questions = [headache(12, 6, 2), headache(2, 3, 15), headache(20, 0, 0), headache(1, 1, 18)]
    scores = [score("sfca", question, tau=0.0) for question in questions]
    auroc = metrics.auroc(np.round(scores, 12), np.array([float(s.correct) for s in scores]))
    assert float(auroc) == 0.5


def test_sca_exceeds_one_and_says_so() -> None:
    question = Question(
        classes=["a"] * 3,
        correct=[True] * 3,
        answers=["x"] * 3,
        token_logprobs=[[math.log(0.9)]] * 3,
    )
    got = score("sca", question)
    assert got == pytest.approx(2.7)
    assert not got.probability
    assert score("sca_distinct", question) == pytest.approx(0.9)


def test_sca_threshold_is_on_class_mass() -> None:
    question = full_question()
    assert score("sca", question, tau=0.15) == pytest.approx(1.5)
    assert score("sca", question, tau=1.0) == pytest.approx(1.3)
    assert score("sca", question, tau=2.0) == 0.0


def test_sem2_by_enumeration() -> None:
    """Blocks of 2 of 5 draws; tied classes count for equal shares."""
    from itertools import combinations

    draws = ["lima", "lima", "quito", "lima", "bogota"]
    values = []
    for block in combinations(range(5), 2):
        chosen = [draws[i] for i in block]
        lead = max(map(chosen.count, chosen))
        tied = {name for name in chosen if chosen.count(name) == lead}
        rest = [draws[i] for i in range(5) if i not in block]
        values.append(np.mean([rest.count(name) / 3 for name in tied]))
    assert score("sem2", full_question()) == pytest.approx(np.mean(values), abs=1e-14)


def test_sem1_has_the_mean_grade_of_tied_classes() -> None:
    tied = Question(classes=["a", "b", "a", "b", "c"], correct=[True, False, True, False, True])
    assert score("sem1", tied) == pytest.approx(0.4)
    assert score("sem1", tied).correct == pytest.approx(0.5)


def test_sem2_has_the_grade_of_the_class_that_each_split_selects() -> None:
    """Two of three draws agree: a block of one chooses the right pair in two of three splits."""
    question = Question(classes=["a", "b", "a"], correct=[True, False, True], answers=list("aba"))
    found = score("sem2", question, block=1)
    assert found == pytest.approx((2 / 3) * 0.5)
    assert (found.answer, found.about) == ("a", "selected")
    assert found.correct == pytest.approx(2 / 3)
    assert score("sem2", question, block=1, splits=20_000).correct == pytest.approx(2 / 3, abs=0.01)


def test_sem2_pairs_as_the_sem_ece_estimator_does() -> None:
    from calibrant.metrics import sem_ece

    rng = np.random.default_rng(4)
    names = rng.integers(0, 4, (30, 10))
    grades = rng.random((30, 4)) < 0.5
    frame = {
        "question_id": np.repeat(np.arange(30), 10).astype(str),
        "class_id": names.ravel(),
        "correct": np.take_along_axis(grades, names, axis=1).ravel(),
    }
    known = sem_ece(
        frame["question_id"], frame["class_id"], frame["correct"], splits="exact"
    ).questions
    for row in range(30):
        question = Question(
            classes=list(map(str, names[row])), correct=grades[row, names[row]].tolist()
        )
        found = score("sem2", question)
        assert float(found) == pytest.approx(known.sem2[row], abs=1e-12)
        assert float(found.correct) == pytest.approx(known.label2[row], abs=1e-12)


def test_sem2_has_no_grade_where_a_class_that_may_be_selected_has_none() -> None:
    question = Question(classes=["a", "b", "a"], correct=[True, None, True])
    assert score("sem2", question, block=1).correct is None


def test_sem2_sampled_splits_agree_with_the_law() -> None:
    question = headache(8, 7, 5)
    exact = score("sem2", question)
    assert score("sem2", question, splits=20_000) == pytest.approx(exact, abs=0.005)
    assert score("sem2", question, splits=50, seed=3) == score("sem2", question, splits=50, seed=3)


def test_paper_variants_use_the_greedy_answer() -> None:
    question = full_question()
    assert score("consistency", question, variant="paper") == pytest.approx(0.6)
    mismatched = score("verb", question, variant="paper")
    assert mismatched == pytest.approx(0.7)
    assert (mismatched.answer, mismatched.correct) == ("Lima", True)
    weighted = score("consistency_verb", question, variant="paper")
    assert weighted == pytest.approx(1.4 / 2.0)
    pooled = score("verb_mean", question, variant="paper")
    assert pooled == pytest.approx(2.0 / 3.0)


def test_greedy_pairing_of_question_level_scores() -> None:
    question = Question(
        classes=["a", "a", "b"],
        correct=[True, True, False],
        greedy=Greedy(answer="B", label="b", correct=False),
    )
    assert score("discrete_semantic_entropy", question).correct is True
    assert score("discrete_semantic_entropy", question, about="greedy").correct is False


def test_refusals_count_against_every_share() -> None:
    question = Question(classes=["a"] * 5 + [None] * 15, correct=[True] * 5 + [None] * 15)
    assert score("consistency", question) == pytest.approx(0.25)
    assert score("consistency", question).answer == "a"
    assert score("number_of_classes", question) == -2
    assert score("sem2", question) < 0.3
    first = Question(classes=[None, "a", "a"], correct=[None, True, True])
    assert math.isnan(score("first_run_consistency", first))


def test_missing_runs_stay_in_the_denominator() -> None:
    question = Question(classes=["a", "a", None, "b"], correct=[True, True, None, False])
    assert score("first_run_consistency", question) == pytest.approx(0.5)


def test_imputation_is_explicit() -> None:
    unread = Draws(classes=["a", "a"], correct=[True, True], stated=[0.4, None])
    question = Question(verb=Draws(["a"], [True], ["A"], stated=[None]), verb_samples=unread)
    assert math.isnan(score("verb", question))
    assert score("verb", question, impute=1.0) == 1.0
    assert score("verb_mean", question) == pytest.approx(0.4)
    assert score("verb_mean", question, impute=1.0) == pytest.approx(0.7)


def test_class_grade_is_the_majority_and_names_a_draw_with_it() -> None:
    question = Question(
        classes=["a"] * 3, correct=[False, True, True], answers=["Texas", "Paris", "Paris"]
    )
    got = score("consistency", question)
    assert (got.answer, got.correct) == ("Paris", True)


def test_ties_go_to_the_class_seen_first() -> None:
    question = Question(classes=["b", "a", "a", "b"], correct=[False, True, True, False])
    assert score("consistency", question).answer == "b"


def test_graph_scores_agree_between_classes_matrix_and_embeddings() -> None:
    question = full_question()
    for method in ("degree_matrix", "eccentricity"):
        by_class = score(method, question)
        assert score(method, question, similarity="matrix") == pytest.approx(by_class, abs=1e-9)
        assert score(method, question, similarity="embeddings") == pytest.approx(by_class, abs=1e-9)


def test_missing_inputs_make_a_method_unavailable() -> None:
    with pytest.raises(UnavailableError, match="token log-probs"):
        score("sca", headache(12, 6, 2))
    with pytest.raises(UnavailableError, match="purpose 'p_true'"):
        score(
            "p_true_prob",
            Question(greedy=Greedy(answer="x", correct=True), p_true=Probes([True])),
        )


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'consistency'"):
        score("consistancy", headache(1, 1, 1))
    with pytest.raises(InputError, match="variant must be one of"):
        score("consistency", headache(1, 1, 1), variant="other")
    with pytest.raises(InputError, match="tau must not be negative"):
        score("sfca", headache(1, 1, 1), tau=-1.0)


def test_yes_no_ratio_grades_yes_by_a_graded_no() -> None:
    question = Question(
        greedy=Greedy(answer="No.", correct=True, yes_probability=0.2, no_probability=0.6)
    )
    got = score("yes_no_ratio", question)
    assert got == pytest.approx(0.25)
    assert (got.answer, got.correct) == ("yes", False)


def test_the_threshold_itself_is_kept() -> None:
    question = Question(
        classes=["a", "b"], correct=[True, False], token_logprobs=[[math.log(0.5)], [-3.0]]
    )
    assert score("sca", question, tau=0.5) == 0.5
    assert score("sfca", question, tau=0.5) == 1.0


def test_ungraded_classes_have_no_grade_and_ties_take_the_first() -> None:
    assert score("consistency", Question(classes=["a", "a"])).correct is None
    tied = Question(classes=["a", "a"], correct=[False, True], answers=["x", "y"])
    assert (score("consistency", tied).correct, score("consistency", tied).answer) == (False, "x")


def test_tokens_as_good_as_the_chosen_one_are_counted_with_it() -> None:
    alternatives = {"Li": math.log(0.4), "LI": math.log(0.35), "Qui": math.log(0.05)}
    for token, boosted in (("Li", 0.75), ("Qui", 0.05)):
        greedy = Greedy(
            answer="Lima",
            token_logprobs=[alternatives[token]],
            token_texts=[token],
            token_alternatives=[alternatives],
        )
        assert score("boosted_probability", Question(greedy=greedy)) == pytest.approx(boosted)


def test_words_for_doubt_count_where_answers_hedge() -> None:
    texts = ["Lima, definitely.", "Probably Lima.", "I'm not sure, probably Lima.", "Lima."]
    told = table_of([Question(greedy=Greedy(answer=text)) for text in texts])
    values = METHODS["linguistic_confidence"].scored(told, Options()).value
    assert values.tolist() == [0.95, 0.7, 0.3, 0.9]
    plain = table_of([Question(greedy=Greedy(answer="Lima."))] * 30)
    assert np.isnan(METHODS["linguistic_confidence"].scored(plain, Options()).value).all()
