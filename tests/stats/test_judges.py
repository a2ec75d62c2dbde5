"""A judge beside people: agreement of all ratings, rows of an item, favour by a crowd."""

from itertools import permutations

import numpy as np
import pytest

from calibrant.metrics.stats.judges import (
    KAPPA,
    SHARE,
    agreement,
    agreement_estimate,
    difference_estimate,
    favour,
    jackknife_estimate,
    lead_beyond_people,
    quadratic_kappa,
    right_order,
    same_side,
)

EMPTY = np.nan


def rated(rows=120, people=2, *, seed=0, away=0.0):
    """Scores and complete ratings 1 to 5; the last person says so much more."""
    rng = np.random.default_rng(seed)
    quality = 3 + rng.standard_normal(rows)
    ratings = quality[:, None] + 0.7 * rng.standard_normal((rows, people))
    ratings[:, -1] += away
    scores = quality + rng.standard_normal(rows)
    return (np.clip(np.round(part), 1, 5) for part in (scores, ratings))


def crowded(ratings, raters, seed=0):
    """The same ratings, those of a row by raters drawn among many."""
    rng = np.random.default_rng(seed)
    found = np.full((len(ratings), raters), EMPTY)
    for row, values in enumerate(ratings):
        found[row, rng.choice(raters, values.size, replace=False)] = values
    return found


def concordance(a, b):
    return 2 * np.cov(a, b, ddof=0)[0, 1] / (a.var() + b.var() + (a.mean() - b.mean()) ** 2)


# -- agreement ----------------------------------------------------------------------------------


def test_two_people_who_rated_all_agree_as_lin_and_cohen_say():
    scores, people = rated(away=0.6)
    own, among = agreement(quadratic_kappa, scores, people)
    assert among[0] == pytest.approx(concordance(*people.T))
    assert own[0] == pytest.approx(np.mean([concordance(scores, p) for p in people.T]), abs=0.01)
    without = np.delete(people, 7, axis=0)
    assert among[1 + 7] == pytest.approx(concordance(*without.T))
    yes = (people > 3) * 1.0
    agreed, by_chance = (yes[:, 0] == yes[:, 1]).mean(), yes.mean(axis=0)
    by_chance = by_chance.prod() + (1 - by_chance).prod()
    cohen = (agreed - by_chance) / (1 - by_chance)
    assert quadratic_kappa(None, yes)[0] == pytest.approx(cohen)


@pytest.mark.parametrize("stray", [1.0, 5.0])
def test_a_stray_rating_of_a_third_person_changes_next_to_nothing(stray):
    scores, people = rated()
    third = np.full(len(people), EMPTY)
    third[int(np.flatnonzero(scores == 3)[0])] = stray
    for statistic in (quadratic_kappa, right_order):
        before, after = (
            agreement(statistic, scores, part)
            for part in (people, np.column_stack([people, third]))
        )
        for old, new in zip(before, after, strict=True):
            assert new[0] == pytest.approx(old[0], abs=0.02)


def test_a_crowd_agrees_as_far_as_two_people_do():
    scores, people = rated(rows=400)
    crowd = crowded(people, 12)
    for statistic, apart in ((quadratic_kappa, 0.02), (right_order, 0.05)):
        both = agreement(statistic, scores, people)
        for one, of_crowd in zip(both, agreement(statistic, scores, crowd), strict=True):
            assert of_crowd[0] == pytest.approx(one[0], abs=apart)


def test_the_order_counts_all_pairs_of_all_people_together():
    scores, people = rated(rows=30, people=3)
    people[20:, 2] = EMPTY

    def pairs(judge, person):
        kept = np.isfinite(judge) & np.isfinite(person)
        s, y = judge[kept], person[kept]
        better = y[:, None] > y
        return ((s[:, None] > s) + 0.5 * (s[:, None] == s))[better].sum(), better.sum()

    of_judge = np.sum([pairs(scores, person) for person in people.T], axis=0)
    assert right_order(scores, people)[0] == pytest.approx(of_judge[0] / of_judge[1])
    of_people = np.sum([pairs(a, b) for a, b in permutations(people.T, 2)], axis=0)
    assert right_order(None, people)[0] == pytest.approx(of_people[0] / of_people[1])


def test_the_difference_is_one_of_the_same_rows():
    scores, people = rated()
    people[40:, 1] = EMPTY
    scores[40:] = people[40:, 0]
    own, among = agreement(quadratic_kappa, scores, people)
    assert own.size == among.size == 41
    assert own[0] == pytest.approx(quadratic_kappa(scores[:40], people[:40])[0])
    assert quadratic_kappa(scores, people)[0] > own[0] + 0.1


def test_each_pair_of_answers_counts_once_however_many_took_a_side():
    judge, people = np.array([1.0, 0.0]), np.array([[1.0, 1.0, 1.0], [1.0, EMPTY, EMPTY]])
    assert same_side(judge, people)[0] == pytest.approx(0.5)
    assert same_side(None, np.array([[1.0, 0.0], [1.0, 1.0]]))[0] == pytest.approx(0.5)
    assert same_side(judge, np.array([[0.5, 1.0], [0.0, 0.5]]))[0] == pytest.approx(1.0)


# -- rows of an item ----------------------------------------------------------------------------


def test_rows_that_stand_five_times_show_no_more_than_once():
    scores, people = rated(rows=60)
    item = np.repeat(np.arange(60), 5)
    once = jackknife_estimate(quadratic_kappa(scores, people), 60, KAPPA)
    again = quadratic_kappa(scores[item], people[item])
    five = jackknife_estimate(again, 300, KAPPA, item)
    assert five.high - five.low == pytest.approx(once.high - once.low, rel=0.05)
    chosen = np.arange(60) % 2 == 0
    for lean in (favour, lead_beyond_people):
        single = lean(scores, people, chosen)
        several = lean(scores[item], people[item], chosen[item], item)
        assert several.value == pytest.approx(single.value, rel=0.03)
        assert several.error == pytest.approx(single.error, rel=0.05)
        assert lean(scores[item], people[item], chosen[item]).error < 0.6 * single.error


# -- few ratings beside the commonest -----------------------------------------------------------


def test_where_few_ratings_are_off_the_top_the_order_is_known_as_little_as_these_are():
    people = np.full((80, 2), 5.0)
    people[:3] = [[3, 4], [2, 2], [4, 3]]
    scores = np.where(people[:, 0] < 5, 3.0, 5.0)
    order = agreement_estimate(right_order(scores, people), people, SHARE)
    # Wilson's lower end of 1 by 3 x 1.5 rows.
    assert order.low == pytest.approx(1 / (1 + 1.96**2 / 4.5), abs=0.01)
    parts = agreement(right_order, scores, people)
    gap = difference_estimate(parts, people, SHARE)
    assert gap.low < -0.1
    assert gap.high > 0.1
    full = list(rated())
    plain = jackknife_estimate(right_order(*full), 120, SHARE)
    assert agreement_estimate(right_order(*full), full[1], SHARE) == plain


def test_a_judge_that_says_one_thing_is_a_coin():
    _, people = rated()
    scores = np.full(120, 4.0)
    order = jackknife_estimate(right_order(scores, people), 120, SHARE)
    assert (order.value, quadratic_kappa(scores, people)[0]) == (0.5, pytest.approx(0.0))
    assert order.low < 0.5 < order.high


# -- favour by a crowd --------------------------------------------------------------------------


def test_favour_leaves_out_the_rating_itself_where_it_takes_a_mean_off():
    rng = np.random.default_rng(3)
    scores, people = rated(rows=60)
    crowd, chosen = crowded(people, 9), rng.random(60) < 0.5
    score, quality = np.empty(60), np.full(crowd.shape, EMPTY)
    for row in range(60):
        side = (chosen == chosen[row]) & (np.arange(60) != row)
        score[row] = scores[row] - scores[side].mean()
        for person in np.flatnonzero(np.isfinite(crowd[row])):
            peers = crowd[side & np.isfinite(crowd[:, person]), person]
            quality[row, person] = crowd[row, person] - peers.mean() if peers.size else EMPTY
    full = np.isfinite(quality).sum(axis=1) == 2
    joint = (score * np.nanmean(quality, axis=1))[full].sum()
    slope = joint / np.nanprod(quality[full], axis=1).sum()
    mean = np.nanmean(crowd, axis=1)
    left = scores - slope * mean
    expected = left[chosen].mean() - left[~chosen].mean()
    assert favour(scores, crowd, chosen).value == pytest.approx(expected)
