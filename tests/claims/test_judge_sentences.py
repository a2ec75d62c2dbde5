"""What `judge` says in words: units, forecasts, what one person shows, judges without use."""

import re

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import calibrant as cal
from calibrant.findings.claims.judge import joined_claims
from calibrant.findings.documents.labels import JudgeBias
from judged import pairs, ratings

PEOPLE = ["expert1", "expert2"]


def entry_of(table, **options):
    return cal.judge(table, **{"judge": ["judge"], "human": PEOPLE, **options}).results[0]


def texts(entry, name):
    found = joined_claims([entry], margin=0.02)
    return [claim.text for claim in found if claim.id == f"judge.{name}"]


def lean(**changes):
    given = {"kind": "model", "name": "m0", "value": -0.4, "low": -0.7, "high": -0.1, "p": 0.001,
             "method": "two people", "labels": 120}  # fmt: skip
    return JudgeBias(**{**given, **changes})


# -- means and scales ---------------------------------------------------------------------------


def test_a_gap_is_the_difference_of_the_numbers_beside_it():
    (text,) = texts(entry_of(ratings(items=600, rated=200)), "lenient")
    by, says, people = re.search(
        r"by ([\d.]+) \(of 1-5\)\. The judge says ([\d.]+), people would say ([\d.]+) ", text
    ).groups()
    assert float(by) == pytest.approx(float(says) - float(people))
    assert re.search(r"It saves [\d,]+ ratings by people\.", text)
    (text,) = texts(entry_of(ratings(items=200, rated=200)), "lenient")
    assert re.search(
        r"people say \S+ \(all rated\)\. On many new rows, as many of them rated, it would save",
        text,
    )


@pytest.mark.parametrize("order", [["bad", "good"], ["bad", "ok", "good"]])
def test_words_of_a_scale_are_named_and_never_called_yes(order):
    words = {1.0: order[0], 2.0: order[0], 3.0: order[-2], 4.0: order[-1], 5.0: order[-1]}
    columns = [pl.col(n).replace_strict(words, default=None) for n in ("judge", *PEOPLE)]
    table = ratings(items=600, rated=200).with_columns(columns)
    (text,) = texts(entry_of(table, order=order), "lenient")
    assert ("share of 'good'" if len(order) == 2 else "1 = bad, 3 = good") in text
    entry = entry_of(table, order=order)
    scale = replace(entry.scale, words=[], people_words=["low", "high"])
    (text,) = texts(replace(entry, scale=scale), "lenient")
    assert ("share of 'high'" if len(order) == 2 else "1 = low, 3 = high") in text


def test_the_scores_with_the_most_labels_are_told_the_best_first():
    entry = entry_of(ratings(items=600, rated=200))
    (text,) = texts(entry, "meaning")
    told = [
        (float(a), int(b)) for a, b in re.findall(r"its (\d) means .*?; (\d+) rated", text, re.I)
    ]
    most = sorted((row.labels for row in entry.map), reverse=True)[:3]
    assert sorted((labels for _, labels in told), reverse=True) == most
    assert [score for score, _ in told] == sorted((score for score, _ in told), reverse=True)


# -- agreement ----------------------------------------------------------------------------------


def test_of_a_judge_that_says_one_thing_that_is_told():
    entry = entry_of(ratings(items=600, rated=200).with_columns(judge=pl.lit(5)), scale="1-5")
    assert texts(entry, "agrees_less") == [
        "It gives 5 to every row: its agreement with people cannot be measured."
    ]


def test_a_judge_at_or_below_chance_is_told_so_first():
    turned = ratings(items=600, rated=200).with_columns(judge=6 - pl.col("judge"))
    first = joined_claims([entry_of(turned, scale="1-5", human_scale="1-5")], margin=0.02)[0]
    assert first.text.startswith("Worse than chance. The judge puts")
    assert first.text.endswith("Is the lowest number the best on one of the two scales?")
    blind = ratings(items=600, rated=200).with_columns(judge=pl.col("judge").shuffle(1))
    first = joined_claims([entry_of(blind)], margin=0.02)[0]
    assert first.text.startswith("Not shown to be better than chance. ")


def test_kappa_is_explained_once():
    table = ratings(items=600, rated=200).with_columns(other=pl.col("judge").shuffle(2))
    found = cal.judge(table, judge=["judge", "other"], human=PEOPLE)
    assert sum("1 always the same" in claim.text for claim in found.claims) == 1
    assert sum(claim.id == "judge.model_better" for claim in found.claims) == 1


@pytest.mark.parametrize(("value", "sides"), [(-0.08, "shown"), (-0.02, "equal")])
def test_what_would_decide_agreement_is_the_nearer_of_both_ends(value, sides):
    entry = entry_of(ratings(items=9_000, rated=120))
    gap = replace(entry.people.kappa_difference, value=value, low=value - 0.12, high=value + 0.12)
    people = replace(entry.people, kappa_difference=gap)
    (text,) = texts(replace(entry, people=people), "agrees_less")
    (more,) = re.findall(r"about ([\d,]+) more rows rated by two people would decide it", text)
    error, nearer = 0.12 / 1.96, max(-value, 0.1 + value)
    expected = 120 * (((1.96 + 0.84) * error / nearer) ** 2 - 1)
    assert int(more.replace(",", "")) == pytest.approx(expected, rel=0.1), sides


# -- favour -------------------------------------------------------------------------------------


def test_a_favour_is_told_in_units_of_the_judge():
    entry = replace(entry_of(ratings(items=600, rated=200)), bias=[lean()])
    (text,) = texts(entry, "favours")
    assert text == (
        "It rates m0 lower by 0.40 (of 1-5) than people's ratings explain (0.10 to 0.70)."
    )


def test_models_with_too_few_ratings_are_counted_and_the_largest_has_its_sign():
    bias = [
        lean(p=0.2, high=0.2),
        lean(name="m1", value=0.1, p=0.5),
        lean(method="too few", p=None),
    ]
    (text,) = texts(replace(entry_of(ratings(items=9_000, rated=200)), bias=bias), "favours")
    assert text.startswith("No favour is shown for 2 of 3 models; too few ratings for 1.")
    assert "Largest: m0, marked down by 0.40 (of 1-5)." in text
    assert re.search(r"About [\d,]+ more rows rated by two people would show one", text)


@pytest.mark.parametrize(("p", "told"), [(None, False), (0.02, False), (1e-4, True)])
def test_one_person_shows_a_lead_where_it_holds_for_all_groups(p, told):
    bias = [lean(method="one person", p=p), *(lean(name=f"m{k}", method="one person", p=0.9)
                                              for k in range(1, 12))]  # fmt: skip
    (text,) = texts(replace(entry_of(ratings(items=600, rated=200)), bias=bias), "favours")
    assert text.startswith("It puts m0 farther behind than people do: by 0.40") == told
    assert "Two people on about 300 rows could show whether" in text


# -- pairs --------------------------------------------------------------------------------------


def test_a_lean_to_a_place_comes_first_with_what_it_is_a_share_of():
    entry = entry_of(pairs(400), human=["person"], swapped="other_order")
    first = joined_claims([entry], margin=0.02)[0]
    assert re.match(r"[\d,]+ of 400 verdicts \(\d+ %\) flip with the order; \d+ % of", first.text)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "own picks", "value": 0.1, "judge_share": 0.6, "p": 0.001},
         "It picks the answer shown first in 60 % of pairs, both orders counted alike (120"),
        ({"method": "own picks", "value": -0.1, "judge_share": 0.4, "p": 0.001},
         "It picks the answer shown second in 60 % of pairs, both orders counted alike (120"),
        ({"method": "own picks", "value": 0.01, "judge_share": 0.51, "p": 0.7},
         "alike (120 pairs): no lean to a place is shown."),
        ({"method": "one order", "value": None, "low": None, "high": None, "p": None},
         "Show some in the other order."),
    ],
)  # fmt: skip
def test_one_order_each_shows_the_judges_own_picks_and_one_order_for_all_shows_nothing(
    changes, words
):
    bias = [lean(kind="position", name="the first", **changes)]
    (text,) = texts(replace(entry_of(pairs(400), human=["person"]), bias=bias), "position")
    assert words in text


def test_shares_of_long_answers_are_those_of_the_same_pairs():
    bias = [
        lean(kind="length", value=-0.1, judge_share=0.7, people_share=0.6, method="beside people")
    ]
    entry = replace(entry_of(pairs(400), human=["person"]), bias=bias)
    assert texts(entry, "length") == [
        "It picks the shorter answer in 50 % of pairs, people in 40 %."
    ]


# -- forecasts ----------------------------------------------------------------------------------


def test_no_forecast_asks_for_more_rows_than_there_are():
    rng = np.random.default_rng(0)
    for rated in rng.integers(20, 300, 6):
        table = ratings(items=300, rated=int(rated), seed=int(rated), models=4)
        for claim in cal.judge(table, judge=["judge"], human=PEOPLE, existing="random").claims:
            for more in re.findall(r"bout ([\d,]+) more", claim.text):
                assert int(more.replace(",", "")) <= 1.1 * (300 - rated) + 10, claim.text
