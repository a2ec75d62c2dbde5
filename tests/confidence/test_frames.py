"""From study tables to scores: joins, roles of draws, availability, failures."""

import math

import numpy as np
import polars as pl
import pytest
from tests.confidence.cases import full_question

from calibrant.answers.confidence import METHODS, compact_table, score, score_table, table_of
from calibrant.core.errors import InputError, SchemaError

TOP = pl.List(pl.Struct({"token": pl.String, "logprob": pl.Float64}))


def _row(purpose: str, draw: int, text: str, **more) -> dict:
    base = {
        "question_id": "q",
        "model": "m",
        "purpose": purpose,
        "draw": draw,
        "text": text,
        "answer": text,
        "temperature": 1.0,
        "token_logprobs": None,
        "first_token_top_logprobs": None,
        "stated_confidence": None,
        "stated_answers": None,
        "stated_confidences": None,
        "class_id": None,
        "correct": None,
        "stated_classes": None,
        "stated_correct": None,
        "embedding": None,
        "token_texts": None,
        "token_alternatives": None,
        "about": None,
    }
    return {**base, **more}


def _top(**words: float) -> list[dict]:
    return [{"token": f" {word}", "logprob": math.log(p)} for word, p in words.items()]


def _verdict(belief: float) -> list[dict]:
    words = _top(True_=belief, False_=1.0 - belief)
    return [{**entry, "token": entry["token"].strip("_")} for entry in words]


def study_rows() -> list[dict]:
    """The full question of the golden tests, as a study would record it."""
    ids = {"lima": 0, "quito": 1, "bogota": 2}
    axis = np.eye(3)
    texts = ["Lima", "Lima", "Quito", "Lima, Peru", "Bogota"]
    names = ["lima", "lima", "quito", "lima", "bogota"]
    masses = [0.5, 0.5, 0.2, 0.3, 0.1]
    rows = [
        _row(
            "answer",
            draw,
            text,
            class_id=ids[name],
            correct=name == "lima",
            token_logprobs=[math.log(p)],
            embedding=axis[ids[name]].tolist(),
            token_texts=[text.split()[-1]],
        )
        for draw, (text, name, p) in enumerate(zip(texts, names, masses, strict=True))
    ]
    rows.append(
        _row(
            "greedy",
            0,
            "Lima",
            temperature=0.0,
            class_id=0,
            correct=True,
            token_logprobs=[math.log(0.8), math.log(0.5)],
            first_token_top_logprobs=_top(Li=0.5, Qui=0.25, Bo=0.25),
            token_texts=["Li", "ma"],
            token_alternatives=[_top(Li=0.8, Qui=0.2), _top(ma=0.5, MA=0.25, the=0.125, on=0.125)],
        )
    )
    rows.append(
        _row("verb", 0, "Quito | 0.7", answer="Quito", temperature=0.0, class_id=1,
             correct=False, stated_confidence=0.7)
    )  # fmt: skip
    said = [("Lima", 0, 0.9), ("Quito", 1, 0.6), ("Lima!", 0, 0.5)]
    rows += [
        _row("verb", 1 + draw, name, class_id=label, correct=label == 0, stated_confidence=p)
        for draw, (name, label, p) in enumerate(said)
    ]
    lists = [(["Lima", "Quito"], [0, 1], [0.2, 0.7])] + [
        ([name, "Oslo"], [label, 9], [p, 0.1]) for name, label, p in said
    ]
    rows += [
        _row(
            "verb_topk",
            draw,
            "...",
            answer=names[0],
            temperature=float(draw > 0),
            stated_answers=names,
            stated_classes=labels,
            stated_confidences=stated,
            stated_correct=[label == 0 for label in labels],
        )
        for draw, (names, labels, stated) in enumerate(lists)
    ]
    votes = ["True", "True", "False", None]
    words = _top(True_=0.6, no=0.05, False_=0.2)
    words = [{**entry, "token": entry["token"].strip("_")} for entry in words]
    rows += [
        _row("p_true", draw, "?", answer=vote, first_token_top_logprobs=words)
        for draw, vote in enumerate(votes)
    ]
    rows += [
        _row("p_true_cand", draw, "?", answer=vote, first_token_top_logprobs=_top(A=0.5, B=0.5))
        for draw, vote in enumerate(["True", "False"])
    ]
    rows += [
        _row("selfcheck", draw, "?", answer=vote)
        for draw, vote in enumerate(["True", "True", "False", None])
    ]
    rows += [
        _row("p_true_pool", draw, "?", answer=None, about=about,
             first_token_top_logprobs=_verdict(belief))
        for draw, (about, belief) in enumerate([("Lima", 0.9), (" quito", 0.2)])
    ]  # fmt: skip
    rows += [
        _row("p_true_pool", 0, "?", answer=None, about="lima", model=judge,
             first_token_top_logprobs=_verdict(belief))
        for judge, belief in (("other", 0.9), ("third", 0.4))
    ]  # fmt: skip
    rows.append(_row("self_ask", 0, "0.8", answer=None, stated_confidence=0.8))
    rows.append(_row("self_ask_cand", 0, "0.4", answer=None, stated_confidence=0.4))
    return rows


def tables(rows: list[dict]) -> tuple[pl.DataFrame, pl.DataFrame]:
    schema = {
        "token_logprobs": pl.List(pl.Float64),
        "first_token_top_logprobs": TOP,
        "class_id": pl.Int64,
        "correct": pl.Boolean,
        "stated_confidence": pl.Float64,
        "stated_answers": pl.List(pl.String),
        "stated_confidences": pl.List(pl.Float64),
        "stated_classes": pl.List(pl.Int64),
        "stated_correct": pl.List(pl.Boolean),
        "embedding": pl.List(pl.Float64),
        "answer": pl.String,
        "token_texts": pl.List(pl.String),
        "token_alternatives": pl.List(TOP),
        "about": pl.String,
    }
    frame = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    graded = ["class_id", "correct", "stated_classes", "stated_correct"]
    key = ["question_id", "model", "purpose", "draw"]
    return frame.drop(graded), frame.select(*key, *graded)


def test_tables_score_like_the_question_built_by_hand() -> None:
    draws, semantics = tables(study_rows())
    scores, available, _ = score_table(draws.sample(fraction=1.0, shuffle=True, seed=3), semantics)
    left_out = {"option_softmax", "yes_no_ratio", "ensemble", "pmi"}
    available = [entry for entry in available if entry["model"] == "m"]
    assert set(scores["model"]) == {"m"}
    # The answer is one word, and nobody hedges.
    undefined = {"claim_support", "claim_support_min", "linguistic_confidence"}
    assert set(scores["method"]) == set(METHODS) - left_out - undefined
    for row in scores.iter_rows(named=True):
        expected = score(row["method"], full_question())
        assert row["confidence"] == pytest.approx(expected, abs=1e-12), row["method"]
        assert row["correct"] == float(expected.correct), row["method"]
        assert row["answer"] == expected.answer, row["method"]
    reasons = {entry["method"]: entry["reason"] for entry in available if entry["reason"]}
    assert set(reasons) == left_out


def test_a_greedy_answer_may_be_an_answer_at_temperature_zero() -> None:
    rows = [
        _row("answer", 0, "Lima", class_id=0, correct=True),
        _row("answer", 1, "Rome", temperature=0.0, class_id=1, correct=False),
    ]
    table = compact_table(*tables(rows))
    assert table.samples.answer.to_list() == ["Lima"]
    assert table.greedy.answer.to_list() == ["Rome"]


@pytest.mark.parametrize("gap", [None, [-0.1, None]])
def test_a_draw_without_log_probs_keeps_its_question(gap: list | None) -> None:
    """The other four draws speak for it: their mass 1.4 is scaled from four draws to five."""
    rows = study_rows()
    rows[2]["token_logprobs"] = gap  # Quito, 0.2
    rows[2]["token_texts"] = None
    full = [{**row, "question_id": "r"} for row in study_rows()[:6]]
    fuller = [{**row, "question_id": "s"} for row in study_rows()[:6]]
    scores, available, _ = score_table(*tables(rows + full + fuller), methods=["sca", "snca"])
    found = {(r["question_id"], r["method"]): r["confidence"] for r in scores.to_dicts()}
    assert found["q", "sca"] == pytest.approx(1.4 * 5 / 4)
    assert found["r", "sca"] == pytest.approx(1.6)
    assert found["q", "snca"] == pytest.approx(1.0 - 0.1 / 1.4)
    assert "4 to 5" in next(e["note"] for e in available if e["method"] == "sca")


def test_without_log_probs_of_half_the_draws_the_question_is_left_out() -> None:
    rows = study_rows()
    for row in rows[:3]:
        row["token_logprobs"] = None
        row["token_texts"] = None
    scores, available, _ = score_table(*tables(rows), methods=["sca", "consistency"])
    assert scores["method"].to_list() == ["consistency"]
    assert available[0]["missing"] == 1


def test_failures_are_counted_and_imputed_only_on_request() -> None:
    rows = study_rows()
    for row in rows:
        if row["purpose"] == "verb":
            row["stated_confidence"] = None
    tabled = tables(rows)
    scores, _, failures = score_table(*tabled, methods=["verb", "consistency_verb"])
    assert scores.is_empty()
    assert [entry["unread"] for entry in failures if entry["model"] == "m"] == [1, 3]
    scores, _, failures = score_table(*tabled, methods=["verb"], impute=1.0)
    assert scores["confidence"].to_list() == [1.0]
    assert failures[0]["imputed"] == 1.0


def test_variant_is_part_of_the_method_name() -> None:
    scores, _, _ = score_table(*tables(study_rows()), methods=["verb"], variant="paper")
    assert scores.select("method", "answer", "about", "correct").row(0) == (
        "verb:paper",
        "Lima",
        "greedy",
        1.0,
    )


def test_question_columns_are_carried_along() -> None:
    questions = pl.DataFrame(
        {"question_id": ["q"], "text": ["?"], "domain": ["capitals"], "k": [2]}
    )
    scores, _, _ = score_table(*tables(study_rows()), questions, methods=["consistency"])
    assert scores.select("domain", "k").row(0) == ("capitals", 2)


def test_choice_questions_read_all_options() -> None:
    questions = pl.DataFrame(
        {"question_id": ["q", "r"], "text": ["?", "?"], "choices": [["Lima", "Quito"]] * 2}
    )
    listed = _top(B=0.5, b=0.1, A=0.2)
    rows = [
        _row("greedy", 0, "B", class_id=1, correct=False, first_token_top_logprobs=listed),
        _row("answer", 0, "A", class_id=0, correct=True),
        _row("greedy", 0, "B", question_id="r", class_id=1, correct=False,
             first_token_top_logprobs=_top(B=0.9)),
    ]  # fmt: skip
    scores, available, _ = score_table(*tables(rows), questions, methods=["option_softmax"])
    assert scores.select("question_id", "answer", "correct").rows() == [("q", "Quito", 0.0)]
    assert scores["confidence"][0] == pytest.approx(0.6 / 0.8)
    assert available[0]["missing"] == 1


def test_yes_no_questions() -> None:
    questions = pl.DataFrame({"question_id": ["q"], "text": ["?"], "kind": ["binary"]})
    listed = _top(yes=0.3, Yes=0.1, No=0.4)
    rows = [_row("greedy", 0, "No", correct=True, first_token_top_logprobs=listed)]
    scores, _, _ = score_table(*tables(rows), questions, methods=["yes_no_ratio"])
    assert scores.select("answer", "correct").row(0) == ("yes", 0.0)
    assert scores["confidence"][0] == pytest.approx(0.5)


def test_similarity_matrices_are_joined() -> None:
    draws, semantics = tables(study_rows())
    given = pl.DataFrame({"question_id": ["q"], "model": ["m"], "similarity": [[1.0] * 25]})
    scores, _, _ = score_table(
        compact_table(draws, semantics, similarities=given),
        methods=["degree_matrix", "eccentricity"],
        similarity="matrix",
    )
    np.testing.assert_allclose(scores["confidence"].to_numpy(), [1.0, 0.0], atol=1e-9)


def test_rules_name_table_row_and_value() -> None:
    draws, semantics = tables(study_rows())
    with pytest.raises(InputError, match="listed once"):
        compact_table(pl.concat([draws, draws.head(1)]), semantics)
    with pytest.raises(SchemaError, match="needs a column 'purpose'"):
        compact_table(draws.drop("purpose"), semantics)
    positive = study_rows()
    positive[0]["token_logprobs"] = [0.5]
    with pytest.raises(InputError, match=r"must not be positive, got 0\.5"):
        compact_table(*tables(positive))
    percent = study_rows()
    percent[6]["stated_confidence"] = 70.0
    with pytest.raises(InputError, match=r"lies in \[0, 1\], got 70"):
        compact_table(*tables(percent))


def test_models_are_apart() -> None:
    rows = study_rows() + [
        {**row, "model": "n"} for row in study_rows() if row["purpose"] == "answer"
    ]
    scores, available, _ = score_table(*tables(rows), methods=["consistency", "verb"])
    assert scores.filter(pl.col("method") == "consistency")["model"].to_list() == ["m", "n"]
    ready = {(entry["model"], entry["method"]): entry["available"] for entry in available}
    assert ready[("m", "verb")]
    assert not ready[("n", "verb")]


def test_empty_tables_give_empty_scores() -> None:
    draws, semantics = tables(study_rows())
    scores, available, failures = score_table(draws.head(0), semantics.head(0))
    assert scores.is_empty()
    assert available == []
    assert failures == []
    assert len(table_of([])) == 0


def test_the_log_prob_of_an_answer_alone_is_a_column_of_draws() -> None:
    draws, semantics = tables(study_rows())
    alone = pl.when(pl.col("purpose") == "greedy").then(pl.lit(-2.302585092994046))
    scores = score_table(draws.with_columns(alone_logprob=alone), semantics, methods=["pmi"]).scores
    expected = score("pmi", full_question())
    assert scores["confidence"].to_list() == pytest.approx([expected], abs=1e-12)
