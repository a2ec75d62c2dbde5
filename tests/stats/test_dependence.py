"""Rows that are right and wrong together are found whatever their column is called; others are not.

Confidences are calibrated on average: what is found is that rows of a group lean together.
"""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from calibrant.data.groupings import row_groupings, search_dependence
from calibrant.metrics.stats.clusters import CellResiduals, group_test
from calibrant.metrics.stats.dependence import LEVEL, Grouping, search_groups
from calibrant.metrics.stats.perfect_law import pearson_tail
from calibrant.metrics.stats.repeats import near_equal_texts


def answers(rng, codes, sd):
    """Return confidences and outcomes; a group is right more or less often by `sd`."""
    confidence = rng.uniform(0.5, 0.92, codes.size).round(3)
    chance = confidence + rng.normal(0, sd, int(codes.max()) + 1)[codes]
    return confidence, (rng.random(codes.size) < np.clip(chance, 0, 1)).astype(float)


def prompts(rng, questions, each):
    """Return question, confidence and outcome of several prompts of each question."""
    question = np.repeat(np.arange(questions), each)
    base = rng.uniform(0.5, 0.92, questions)
    chance = rng.beta(1.5 * base, 1.5 * (1 - base))[question]
    confidence = np.clip(base[question] + rng.normal(0, 0.01, question.size), 0, 1)
    return question, confidence, (rng.random(question.size) < chance).astype(float)


def words_of(frame, confidence, outcome, **options):
    search = search_dependence(pl.DataFrame(frame), confidence, outcome, **options)
    return [each.grouping.words for each in search.groups]


@pytest.mark.parametrize("name", ["topic", "customer", "x17", "zählung"])
def test_a_column_is_found_whatever_it_is_called(name):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 30, 2_000)
    confidence, outcome = answers(rng, codes, 0.1)
    assert words_of({name: [f"g{code}" for code in codes]}, confidence, outcome) == [name]
    assert words_of({name: codes}, confidence, outcome) == [name]


def test_independent_rows_fire_as_rarely_as_the_level_says():
    """Idle columns of few and many values, one value with most rows, ids and an order."""
    fires, runs, n = 0, 300, 300
    for seed in range(runs):
        rng = np.random.default_rng([seed, 2])
        skewed = 1 / np.arange(1, 41)
        frame = {
            "few": rng.integers(0, 3, n),
            "many": [f"u{code}" for code in rng.integers(0, n // 3, n)],
            "skewed": rng.choice(40, n, p=skewed / skewed.sum()),
            "id": [f"{code}-{k}" for k, code in enumerate(rng.integers(0, n // 2, n))],
        }
        # Nearly always right: outcomes are as skewed as they get.
        confidence = rng.uniform(0.9, 1.0, n)
        outcome = (rng.random(n) < confidence).astype(float)
        fires += bool(words_of(frame, confidence, outcome))
    # 3 % of 300 are 9; 17 or more come by chance in 1 of 100.
    assert LEVEL == 0.03
    assert fires <= 17


def test_a_column_that_follows_a_bent_curve_is_no_group():
    """Confidence minus outcome leans in every band of it; what the confidence leaves over not."""
    for seed in range(10):
        rng = np.random.default_rng([seed, 3])
        confidence = rng.uniform(0.5, 1.0, 2_000)
        outcome = (rng.random(2_000) < 0.3 + 0.6 * (confidence - 0.5)).astype(float)
        bands = (confidence * 10).astype(int)
        assert words_of({"band": bands}, confidence, outcome) == [], seed


def test_outcomes_of_others_are_no_groups():
    rng = np.random.default_rng(4)
    confidence = rng.uniform(0.5, 1.0, 600)
    outcome = (rng.random(600) < confidence).astype(float)
    verdict = np.where(outcome > 0, "good", "bad")
    frame = {"verdict_of_the_judge": verdict, "answer": verdict, "reference": verdict}
    assert words_of(frame, confidence, outcome) == []


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("each", [2, 10])
@pytest.mark.parametrize("rows", [3_000, 30_000])
def test_prompts_of_a_question_are_found_by_ids_and_texts(rows, each, shuffled):
    """In a sorted table, too: of many rows a part is looked at first, and not every tenth one."""
    rng = np.random.default_rng([rows, each])
    question, confidence, outcome = prompts(rng, rows // each, each)
    order = rng.permutation(rows) if shuffled else np.arange(rows)
    vocabulary = rng.integers(0, 9_000, (rows // each, 9))
    texts = [" ".join(f"w{k}" for k in vocabulary[code]) for code in question[order]]
    ids = [f"q{code}-v{k % each}" for k, code in zip(order, question[order], strict=True)]
    for frame, words in (
        ({"id": ids}, {"id without its end"}),
        ({"source": question[order]}, {"source"}),
        ({"text": [f"{text} please {k}" for k, text in enumerate(texts)]}, {"first words of text"}),
    ):
        found = words_of(frame, confidence[order], outcome[order])
        assert words & set(found), (frame.keys(), found)


def test_nearly_equal_texts_are_one_group_each():
    """One word of each text is another: neither the first five nor the last five are the same."""
    rng = np.random.default_rng(6)
    question, confidence, outcome = prompts(rng, 150, 8)
    words = rng.integers(0, 3_000, (150, 12))[question]
    words[np.arange(question.size), rng.integers(3, 9, question.size)] = 3_000 + question
    words[:, 2], words[:, 9] = rng.integers(0, 3_000, (2, question.size))
    texts = [" ".join(f"w{k}" for k in row) for row in words]
    order = rng.permutation(question.size)
    frame = {"text": [texts[k] for k in order]}
    (found,) = search_dependence(pl.DataFrame(frame), confidence[order], outcome[order]).groups
    assert found.grouping.words == "nearly equal text"
    pairs = set(zip(found.grouping.codes.tolist(), question[order].tolist(), strict=True))
    assert len(pairs) <= 1.2 * 150


def test_texts_that_share_common_words_are_not_joined():
    """Chains of pairs would join most of them."""
    rng = np.random.default_rng(7)
    common = 1 / np.arange(1, 2_001)
    words = rng.choice(2_000, (1_500, 12), p=common / common.sum())
    codes = near_equal_texts(words.ravel(), np.arange(1_500) * 12)
    assert np.bincount(codes).max() <= 30


def test_drift_along_the_rows_and_along_another_time_is_found():
    rng = np.random.default_rng(8)
    n = 1_500
    confidence = rng.uniform(0.5, 0.92, n)
    outcome = (rng.random(n) < confidence + 0.15 * np.sin(np.arange(n) / 150)).astype(float)
    assert words_of({"x": rng.integers(0, 9, n)}, confidence, outcome) == ["order"]
    order = rng.permutation(n)
    times = [dt.datetime(2026, 1, 1) + dt.timedelta(minutes=10 * int(k)) for k in order]
    (found,) = search_dependence(
        pl.DataFrame({"asked_when": times}), confidence[order], outcome[order]
    ).groups
    assert found.grouping.column == "asked_when"


def test_days_are_groups():
    rng = np.random.default_rng(9)
    day = np.sort(rng.integers(0, 25, 2_000))
    confidence, outcome = answers(rng, day, 0.12)
    order = rng.permutation(2_000)
    dates = pl.Series([dt.date(2026, 1, 1) + dt.timedelta(days=int(k)) for k in day[order]])
    for column in (dates, dates.cast(pl.String)):
        frame = pl.DataFrame({"on": column})
        (found, *_) = search_dependence(frame, confidence[order], outcome[order]).groups
        assert found.grouping.words in ("day of on", "order of on")


def test_two_ways_are_both_found_and_no_third():
    rng = np.random.default_rng(10)
    topic, grader = rng.integers(0, 15, (2, 3_000))
    confidence = rng.uniform(0.5, 0.92, 3_000)
    chance = confidence + rng.normal(0, 0.09, 15)[topic] + rng.normal(0, 0.09, 15)[grader]
    outcome = (rng.random(3_000) < chance).astype(float)
    frame = {"topic": topic, "graded_in": grader, "copy": topic * 2, "idle": topic[::-1].copy()}
    found = words_of(frame, confidence, outcome)
    assert len(found) == 2
    assert "graded_in" in found
    assert {"topic", "copy"} & set(found)


def test_few_groups_and_one_with_nearly_half_the_rows_are_few():
    rng = np.random.default_rng(11)
    codes = {
        "four": rng.integers(0, 4, 3_000),
        "half": np.where(rng.random(3_000) < 0.5, 0, 1 + rng.integers(0, 60, 3_000)),
        "thirty": rng.integers(0, 30, 3_000),
    }
    few = {}
    for name, column in codes.items():
        confidence, outcome = answers(rng, column, 0.12)
        search = search_dependence(pl.DataFrame({name: column}), confidence, outcome)
        assert search.groups, name
        few[name] = search.few
    assert few == {"four": True, "half": True, "thirty": False}


def test_inflation_is_that_of_the_spread_of_the_mean():
    """The standard error grows as 1 + (m - 1) times the correlation says, by its square root."""
    rng = np.random.default_rng(12)
    codes = np.arange(20_000) // 50
    confidence, outcome = answers(rng, codes, 0.1)
    found = group_test(CellResiduals.of_rows(confidence, outcome), codes)
    variance = np.mean(confidence * (1 - confidence))
    assert found.inflation == pytest.approx(np.sqrt(1 + 49 * 0.01 / variance), rel=0.12)


def test_what_is_known_is_taken_off():
    """A column that a verb is asked about tells nothing of rows beyond it."""
    rng = np.random.default_rng(13)
    plan, idle = rng.integers(0, 12, (2, 2_000))
    confidence, outcome = answers(rng, plan, 0.15)
    frame = {"plan": plan, "idle": idle}
    assert words_of(frame, confidence, outcome) == ["plan"]
    assert words_of(frame, confidence, outcome, skip=["plan"]) == []


def test_idle_groupings_that_a_part_ruled_out_count_as_tested():
    rng = np.random.default_rng(17)
    codes = rng.integers(0, 12, 500)
    confidence, outcome = answers(rng, codes, 0.1)
    groupings = [Grouping("column", "topic", "topic", codes)]
    rows = CellResiduals.of_rows(confidence, outcome)
    p_value = group_test(rows, codes).p_value
    most = int(LEVEL * 2 / 3 / p_value)
    assert 2 < most < 10_000
    assert search_groups(confidence, outcome, groupings, idle=["column"] * (most - 1)).groups
    beyond = search_groups(confidence, outcome, groupings, idle=["column"] * most)
    assert not beyond.groups
    assert len(beyond.tested) == most + 1


def test_rows_without_a_value_are_each_on_their_own():
    column = pl.Series("customer", ["a", None, "b", None, "a", "b", "a", None, *"aabbaabb"])
    first, _ = row_groupings(pl.DataFrame({"customer": column}))
    missing = first.codes[column.is_null().to_numpy()]
    assert np.unique(missing).size == 3
    assert np.unique(first.codes).size == 5
    assert np.unique(first.codes[(column == "a").fill_null(False).to_numpy()]).size == 1


def test_the_tail_is_that_of_a_gamma_law():
    rng = np.random.default_rng(15)
    draws = rng.gamma(4.0, 1.0, 200_000) - 4.0
    for at in (2.0, 4.0, 6.0):
        exact = float((draws > at).mean())
        assert pearson_tail(at, 4.0, 8.0) == pytest.approx(exact, rel=0.08)


@pytest.mark.parametrize("kind", ["numbers with gaps", "ids without separators", "seconds"])
def test_ids_and_times_as_other_programs_write_them(kind):
    """A missing number makes floats of a column; `q17v3` has no separator; logs count seconds."""
    rng = np.random.default_rng(16)
    n = 3_000
    codes = np.sort(rng.integers(0, 40, n)) if kind == "seconds" else rng.integers(0, 300, n)
    confidence, outcome = answers(rng, codes, 0.15)
    order = rng.permutation(n)
    column = {
        "numbers with gaps": np.where(rng.random(n) < 0.02, np.nan, codes[order] + 1_000.0),
        "ids without separators": [f"q{code}v{k}" for k, code in enumerate(codes[order])],
        "seconds": 1_700_000_000 + 86_400 * codes[order] + rng.integers(0, 80_000, n),
    }[kind]
    words = {
        "numbers with gaps": {"x"},
        "ids without separators": {"x without its last number"},
        "seconds": {"day of x", "order of x"},
    }[kind]
    assert words & set(words_of({"x": column}, confidence[order], outcome[order]))


def test_scores_are_no_numbers_of_customers():
    """Whole floats of a scale, and shares, tell how good an answer is, not whose it is."""
    rng = np.random.default_rng(17)
    stars = rng.integers(1, 6, 300).astype(float)
    stars[::9] = np.nan
    frame = pl.DataFrame({"stars": stars, "share": rng.random(300), "full": np.arange(300.0)})
    assert [each.kind for each in row_groupings(frame)] == ["order"]
