"""Numbers of draws, ends of texts, token alternatives, similarities: what used to go wrong."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.answers.confidence import (
    METHODS,
    Greedy,
    Options,
    Question,
    availability,
    score,
    score_table,
    table_of,
)
from calibrant.core.errors import InputError


def values(name, questions, **options):
    return METHODS[name].scored(table_of(questions), Options(**options)).value


def test_sca_does_not_grow_with_the_number_of_draws() -> None:
    few = Question(classes=[0, 1], token_logprobs=[[math.log(0.5)], [math.log(0.1)]])
    many = Question(classes=[0, 1] * 5, token_logprobs=[[math.log(0.5)], [math.log(0.1)]] * 5)
    scaled = values("sca", [few, many, many])
    np.testing.assert_allclose(scaled, [3.0, 3.0, 3.0])
    np.testing.assert_allclose(values("sca", [few, many, many], variant="paper"), [0.6, 3.0, 3.0])


def test_sca_is_the_sum_where_questions_have_equally_many_draws() -> None:
    one = Question(classes=[0, 0], token_logprobs=[[math.log(0.7)], [math.log(0.7)]])
    two = Question(classes=[0, 1], token_logprobs=[[math.log(0.2)], [math.log(0.1)]])
    np.testing.assert_allclose(values("sca", [one, two]), [1.4, 0.3])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["x", "y", "xy", "xx", "yx", "xyx"]), min_size=1, max_size=12),
    st.floats(0.05, 0.95),
)
def test_sca_distinct_never_exceeds_one(texts: list[str], share: float) -> None:
    """Letters are tokens of an endless text: P(prefix) is the product, its end is not known."""
    logs = [[math.log(share if letter == "x" else 1 - share) for letter in text] for text in texts]
    question = Question(classes=texts, answers=texts, token_logprobs=logs)
    assert score("sca_distinct", question) <= 1.0 + 1e-12


def test_with_known_ends_every_distinct_text_counts() -> None:
    question = Question(
        classes=["a", "a"],
        answers=["Lima", "Lima, Peru"],
        token_logprobs=[[math.log(0.8)], [math.log(0.8), math.log(0.5)]],
        end_logprobs=[math.log(0.5), math.log(0.9)],
    )
    assert score("sca_distinct", question) == pytest.approx(0.8 * 0.5 + 0.4 * 0.9)
    assert score("sca", question) == pytest.approx(0.8 * 0.5 + 0.4 * 0.9)


def test_entropies_of_the_authors_code() -> None:
    """exp(sum p log p) over the draws, as in the published code, under variant = paper."""
    question = Question(
        classes=[0, 1],
        token_logprobs=[[math.log(0.5), math.log(0.5)], [math.log(0.1)]],
    )
    expected = math.exp(0.25 * math.log(0.25) + 0.1 * math.log(0.1))
    assert score("prob_entropy", question, variant="paper") == pytest.approx(expected)
    normed = math.exp(0.5 * math.log(0.5) + 0.1 * math.log(0.1))
    assert score("norm_prob_entropy", question, variant="paper") == pytest.approx(normed)


def test_an_asymmetric_similarity_is_made_symmetric_and_a_wrong_one_refused() -> None:
    skew = Question(classes=[0, 1], similarity=[[1.0, 0.8], [0.2, 1.0]])
    even = Question(classes=[0, 1], similarity=[[1.0, 0.5], [0.5, 1.0]])
    for name in ("eigv", "eccentricity", "degree_matrix"):
        assert score(name, skew, similarity="matrix") == pytest.approx(
            score(name, even, similarity="matrix")
        )
    with pytest.raises(InputError, match=r"similarities lie in \[0, 1\]"):
        score("eigv", Question(classes=[0, 1], similarity=[[1.0, 2.0], [2.0, 1.0]]),
              similarity="matrix")  # fmt: skip


def test_eigv_of_two_answers_by_hand() -> None:
    """W = [[1, s], [s, 1]] has Laplacian eigenvalues 0 and 2s / (1 + s)."""
    question = Question(classes=[0, 1], similarity=[[1.0, 0.25], [0.25, 1.0]])
    assert score("eigv", question, similarity="matrix") == pytest.approx(-(1 + 1 - 0.5 / 1.25))


def test_verified_mass_tells_several_answers_from_several_guesses() -> None:
    classes = ["a"] * 5 + ["b"] * 5
    knows = Question(classes=classes, correct=[True] * 10, verified={"a": 0.9, "b": 0.9})
    guesses = Question(classes=classes, correct=[False] * 10, verified={"a": 0.2, "b": 0.2})
    assert score("consistency", knows) == score("consistency", guesses)
    assert score("verified_mass", knows) == pytest.approx(0.9)
    assert score("verified_mass", guesses) == pytest.approx(0.2)


def test_a_claim_is_conditioned_on_what_the_alternatives_say() -> None:
    greedy = Greedy(
        answer="born in 1867",
        label="x",
        token_logprobs=[math.log(0.4), math.log(0.9), math.log(0.6)],
        token_texts=["born", " in", " 1867"],
        token_alternatives=[
            {"born": math.log(0.4), " The": math.log(0.4), "Born": math.log(0.2)},
            {" in": math.log(0.9), " on": math.log(0.1)},
            {" 1867": math.log(0.6), " 1868": math.log(0.2)},
        ],
    )
    # born / Born say the same, The says nothing; ' in' ties words; 1868 is another claim.
    got = score("claim_conditioned_probability", Question(greedy=greedy))
    assert got == pytest.approx(1.0 * 1.0 * 0.6 / 0.8)


def test_every_method_says_why_it_is_not_available() -> None:
    entries = availability(table_of([Question(classes=[0], question_id="q", model="m")]))
    assert all(entry["available"] or entry["reason"] for entry in entries)
    scores = score_table(table_of([Question(classes=[0], question_id="q", model="m")])).scores
    assert "consistency" in scores["method"]


def test_a_ranking_score_stays_one_as_published():
    """Masses above 1 are ranked, not dropped as impossible probabilities."""
    table = pl.DataFrame(
        {
            "question_id": [f"q{k}" for k in range(40)],
            "method": "sca:paper",
            "confidence": [0.05 * k for k in range(40)],
            "correct": [k % 3 != 0 for k in range(40)],
        }
    )
    entry = cal.audit(table, resamples=20)["results"][0]
    assert (entry["n"], entry["probability"]) == (40, False)
    assert "ece" not in {name for name, found in entry["metrics"].items() if found}
