"""Leans of a judge, people's mean of few or whole items, and which ratings surprise."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.stats import fisher_exact

import calibrant as cal
from calibrant.labels.judge_leans import biases, one_order_lean, sign_test
from calibrant.labels.people_ratings import PeoplePool, contrast, lenience, part_mean, people_mean
from judged import ratings

WORDS = np.array(["B", "A"])
NO_MODELS = np.zeros((400, 0), dtype=np.intp)


def pairs_table(people, **parts):
    """A table of pairs as `biases` reads it."""
    rows = len(people)
    columns = SimpleNamespace(features=list(parts.pop("features", ())))
    given = {"kind": "pairs", "people": people[:, None], "item": np.arange(rows)}
    given |= {"sides": np.zeros((rows, 0), dtype=np.intp), "first": None, "swapped": None}
    given |= {"columns": columns}
    return SimpleNamespace(**{**given, **parts})


def judged(table, **options):
    named = {"judge": ["judge"], "human": ["expert1", "expert2"]}
    return cal.judge(table, **{**named, **options}).results[0]


# -- places and lengths -------------------------------------------------------------------------


def test_where_all_pairs_have_one_order_nothing_is_said_of_places():
    rng = np.random.default_rng(0)
    picks = (rng.random(400) < 0.8) * 1.0
    for share in (1.0, 0.9, 0.0):
        lean = one_order_lean(picks, (np.arange(400) < 400 * share) * 1.0, NO_MODELS)
        assert (lean.method, lean.p, lean.value) == ("one order", None, None)


def test_a_side_that_is_better_and_mostly_first_is_no_lean_to_a_place():
    picks = np.repeat([1.0, 0.0, 1.0, 0.0], [224, 96, 56, 24])
    first = np.repeat([1.0, 0.0], [320, 80])
    assert sign_test(np.where(first == 1, picks, 1 - picks) - 0.5) < 1e-4
    lean = one_order_lean(picks, first, NO_MODELS)
    assert (lean.method, lean.judge_share) == ("own picks", 0.5)
    assert lean.p > 0.9
    picks = np.repeat([1.0, 0.0, 1.0, 0.0], [120, 80, 80, 120])
    lean = one_order_lean(picks, np.repeat([1.0, 0.0], 200), NO_MODELS)
    assert lean.value == pytest.approx(0.1)
    assert lean.p == pytest.approx(fisher_exact([[120, 80], [80, 120]]).pvalue)
    assert lean.low < lean.value < lean.high


def test_a_model_that_is_better_and_mostly_first_is_no_lean_to_a_place():
    sides = np.tile([[0, 1], [1, 0]], (200, 1))
    better_first = np.arange(400) % 10 < 7
    first = (better_first == (sides[:, 0] == 0)) * 1.0
    picks = (sides[:, 0] == 0) * 1.0
    assert one_order_lean(picks, first, sides).p == 1.0
    assert one_order_lean(picks, first, NO_MODELS).p < 1e-4


def test_a_verdict_in_the_other_order_is_read_by_what_was_first():
    picks, first = np.tile([1.0, 0.0], 20), np.tile([1.0, 0.0], 20)
    (lean,) = biases(pairs_table(picks, swapped=1 - picks, first=first), picks, same=True)
    assert (lean.method, lean.judge_share, lean.flips) == ("both orders", 1.0, 40)
    assert lean.p < 1e-9


def test_lengths_are_compared_on_rows_that_people_rated_and_by_means():
    longer = np.arange(60) < 40
    judge = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    people = np.where(np.arange(60) < 30, 2 / 3, np.nan)
    frame = pl.DataFrame({"a": np.where(longer, 20, 10), "b": np.where(longer, 10, 20)})
    (lean,) = biases(pairs_table(people, frame=frame, features=["a", "b"]), judge, same=True)
    share = judge[:30].mean()
    assert (lean.labels, lean.judge_share) == (30, pytest.approx(share))
    assert lean.people_share == pytest.approx(2 / 3)
    assert lean.value == pytest.approx(share - 2 / 3)
    # All signs but eight are above 0, the mean is not: a sign test would have shown a lean.
    assert sign_test(judge[:30] - 2 / 3) < 0.05 < lean.p


# -- favour and its mirror image ----------------------------------------------------------------


def test_of_two_models_one_favour_is_told_and_of_three_none_stands_as_its_mirror_image():
    found = judged(ratings(items=800, rated=400, favour=1.0, seed=3))
    (lean,) = found.bias
    assert (lean.name, lean.value > 0.5) == ("m0", True)
    found = judged(ratings(items=900, rated=600, models=3, favour=1.0, seed=3))
    p = {lean.name: lean.p for lean in found.bias}
    assert p["m0"] < 1e-4
    assert {name: value for name, value in p.items() if value < 0.02} == {"m0": p["m0"]}


# -- people's mean ------------------------------------------------------------------------------


def clustered(items=60, rows=5, seed=0):
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(items), rows)
    return item, np.clip(0.5 + 0.2 * rng.standard_normal(items)[item], 0, 1)


def test_items_that_were_rated_as_a_whole_count_once():
    item, people = clustered()
    known = np.where(item < 20, people, np.nan)
    mean = people_mean(PeoplePool(None, known, item=item))
    once = people_mean(PeoplePool(None, known[::5]))
    assert mean.error == pytest.approx(once.error, rel=0.15)
    assert people_mean(PeoplePool(None, known)).error < 0.6 * once.error
    rng = np.random.default_rng(1)
    scattered = np.where(rng.random(300) < 1 / 3, people, np.nan)
    pool = PeoplePool(None, scattered, item=item)
    assert people_mean(pool) == people_mean(PeoplePool(None, scattered))


def test_lenience_is_that_of_items_where_these_hang_together():
    item, people = clustered()
    judge = np.clip(people + 0.15 * np.random.default_rng(2).standard_normal(60)[item], 0, 1)
    known = np.where(np.arange(300) % 5 < 3, people, np.nan)
    of_items, of_rows = (
        (found.high - found.low) / 2
        for found in (lenience(PeoplePool(judge, known, None, unit)) for unit in (item, None))
    )
    gap = (judge - people)[::5]
    assert of_items == pytest.approx(2.0 * gap.std(ddof=1) / 60**0.5, rel=0.2)
    assert of_items > 1.5 * of_rows


def test_a_mean_of_ratings_that_are_all_alike_is_known_as_little_as_their_number_says():
    rows, judge = np.arange(400), np.random.default_rng(0).random(400)
    model = (rows % 4 == 0) * 1
    people = np.where(rows % 10 < 1, 1.0, np.nan)
    people[[2, 30]] = 0.25, 0.75
    pool = PeoplePool(judge, people, model)
    few, narrow = part_mean(pool, model == 1), contrast(pool, [model == 1]).estimate()
    assert few.low < 0.92
    assert narrow.low > 0.96
    table = ratings(items=300, rated=60).with_columns(
        pl.when(pl.col(name).is_not_null()).then(5.0).alias(name) for name in ("expert1", "expert2")
    )
    mean = judged(table, scale="1-5", human_scale="1-5").people_mean.combined
    assert (mean.value, mean.high) == (5.0, 5.0)
    assert mean.low < 4.95


def test_a_mean_stays_on_its_scale():
    # The best model is predicted beyond the top.
    table = ratings(items=300, rated=60, gap=4.0, seed=1)
    found = judged(table, scale="1-5", human_scale="1-5")
    for part in (found.people_mean.combined, *(model.combined for model in found.models)):
        assert 1 <= part.low <= part.value <= part.high <= 5


# -- what surprises -----------------------------------------------------------------------------


def test_a_disagreement_differs_from_the_score_and_from_what_the_map_says_of_it():
    found = judged(ratings(items=400, rated=200))
    meaning = {row.score: row.value for row in found.map}
    assert found.disagreements
    for row in found.disagreements:
        assert row.judge != row.people
        assert row.expected == pytest.approx(meaning[row.judge])
    same = ratings(items=200, rated=200).with_columns(judge="expert1", expert2="expert1")
    assert not judged(same).disagreements


def test_a_person_who_was_called_in_has_no_part_in_agreement():
    table = ratings(items=400, rated=400, people=3)
    third = pl.when(pl.col("expert1") != pl.col("expert2")).then("expert3").alias("expert3")
    people = ["expert1", "expert2", "expert3"]
    two, three = (judged(table.with_columns(third), human=part) for part in (people[:2], people))
    assert three.people == two.people
    assert three.order == two.order


def test_a_majority_of_the_others_has_no_part_in_agreement_and_a_third_person_has():
    table = ratings(items=400, rated=400, people=3)
    people = ["expert1", "expert2", "expert3"]
    middle = pl.concat_list(people).list.median().alias("majority")
    alone = judged(table, human=people)
    joined = judged(table.with_columns(middle), human=[*people, "majority"])
    assert joined.people == alone.people
    assert alone.people.count == 3
