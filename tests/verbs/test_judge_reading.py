"""How a judge's table is read, however judges, people and tools write it."""

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError, QuestionError
from calibrant.data.judge_table import JudgeColumns, likely_columns, read_judge_table
from judged import pairs, ratings

EXPERTS = ["expert1", "expert2"]


def read(table, judge="judge", human=EXPERTS, **more):
    return read_judge_table(table, JudgeColumns(judge=[judge], human=list(human), **more))


def written(table, write, *columns):
    texts = {name: [None if x is None else write(x) for x in table[name]] for name in columns}
    return table.with_columns(pl.Series(name, cells) for name, cells in texts.items())


def reason(score):
    text = f"point {(score * 7) % 5:g} of 9 is missed" if score < 4 else "it is complete"
    return f"score: {score:g}\nreason: {text}"


# -- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda x: f"Relevance (1-5): {x:g}",
        lambda x: f"On a scale of 1 to 5, I rate this {x:g}.",
        lambda x: f"Score (out of 5): {x:g}",
        lambda x: f"{x:g} stars out of 5",
        lambda x: f'{{"confidence": {60 + x * 7 % 30:g}, "score": {x:g}}}',
        lambda x: f"Helpfulness: {6 - x:g}\nOverall: {x:g}",
        lambda x: f"{x:g} (confidence {90 - x:g}%)",
        lambda x: f"question 12: {x:g}",
        lambda x: f"<think>first, 3 facts</think><score>{x:g}</score>",
        lambda x: f"Score: {x:g}" if x > 2 else f"Rating: {x:g}",
        lambda x: f"I would give this a {x:g}.",
        lambda x: f"**{x:g}**",
        lambda x: f"{x:g} stars",
        lambda x: f"Rating: [[{x:g}]] (relevance)",
        lambda x: f'{{"score": {x:g}, "reason": "point {7 - x:g} of 9"}}',
        reason,
        lambda x: f"All in all it is fine. Overall: {x:g} out of 5",
        lambda x: "\u2605" * int(x) + "\u2606" * (5 - int(x)),
        lambda x: f"{x:g} - {('no', 'hardly', 'partly', 'mostly', 'yes')[int(x) - 1]}",
        lambda x: f"~{x:g}",
    ],
)
def test_numbers_inside_text_are_those_of_the_plain_table(write):
    table = ratings()
    found = read(written(table, write, "judge"))
    assert found.scores["judge"].tolist() == table["judge"].to_list()
    assert found.scales["judge"].unit(np.array([1.0, 5.0])).tolist() == [0.0, 1.0]
    assert not found.notes


def test_what_a_number_is_a_share_of_counts_where_it_differs():
    table = ratings()
    mixed = table.with_columns(
        judge=pl.when(pl.int_range(pl.len()) % 2 == 0)
        .then(pl.format("{}/5", pl.col("judge").cast(pl.Int64)))
        .otherwise(pl.format("{}/10", (2 * pl.col("judge")).cast(pl.Int64)))
    )
    assert read(mixed).scores["judge"] == pytest.approx(table["judge"].to_numpy() / 5)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: f'{{"helpfulness": {x:g}, "correctness": {6 - x:g}}}',
        lambda x: f"2024-01-0{x:g}",
    ],
)
def test_numbers_of_which_none_is_a_score_are_refused(write):
    with pytest.raises(InputError, match=r"cells should be numbers|have no order yet"):
        read(written(ratings(), write, "judge"))


def test_numbers_in_free_text_are_no_scores():
    rng = np.random.default_rng(0)
    words = ["short", "long", "clear", "vague", "dry", "warm", "odd", "plain", "neat", "dull"]
    texts = [
        f"{words[a]} and {words[b]}, it misses {c} key points"
        for a, b, c in rng.integers(0, 10, (300, 3))
    ]
    with pytest.raises(InputError, match="cells should be numbers"):
        read(ratings().with_columns(judge=pl.Series(texts)))


def test_a_number_with_another_label_is_no_score_and_is_counted():
    table = written(ratings(), lambda x: f"Score: {x:g}", "judge")
    failed = table.with_columns(
        judge=pl.when(pl.int_range(pl.len()) < 20)
        .then(pl.lit("Error code: 429"))
        .otherwise("judge")
    )
    found = read(failed)
    assert found.left_out == {"no score of the judge": 20}
    assert "20 of 300 cells of judge could not be read (row 1: 'Error code: 429'" in found.notes[0]


def test_codes_for_no_rating_count_as_empty_and_are_told():
    table = ratings()
    coded = table.with_columns(
        judge=pl.when(pl.int_range(pl.len()) < 30).then(-1.0).otherwise("judge")
    )
    for options in ({}, {"scale": "1-5"}):
        found = read(coded, **options)
        assert found.left_out == {"no score of the judge": 30}
        assert "30 cells of judge are -1" in found.notes[0]
    zeros = table.with_columns(pl.col(name).fill_null(0.0) for name in EXPERTS)
    with pytest.raises(QuestionError, match="not rated, or the lowest rating"):
        read(zeros)
    found = read(zeros, human_scale="1-5")
    assert np.isfinite(found.people).all(axis=1).sum() == 120


def test_one_value_far_off_does_not_stretch_a_scale():
    table = ratings().with_columns(
        judge=pl.when(pl.int_range(pl.len()) == 6).then(44.0).otherwise("judge")
    )
    with pytest.raises(InputError, match=r"row 7: column judge has the value 44.*lie in 1-5"):
        read(table)


def test_a_few_words_among_numbers_count_as_empty_however_many_cells_they_fill():
    table = ratings().with_columns(
        pl.col(name).cast(pl.String).fill_null("cannot tell") for name in EXPERTS
    )
    found = read(table)
    assert np.isfinite(found.people).all(axis=1).sum() == 120
    assert "180 of 300 cells of expert1 could not be read" in found.notes[0]


def test_a_scale_whose_best_is_its_least_number_is_turned():
    table = ratings()
    turned = table.with_columns((6 - pl.col(name)).alias(name) for name in EXPERTS)
    found = read(turned, scale="1-5", human_scale="5-1")
    assert found.people == pytest.approx(read(table).people, nan_ok=True)
    assert "expert1 is turned around: 1 counts as 5" in found.notes[0]


def test_a_person_with_a_few_ratings_does_not_change_the_scale_of_people():
    table = ratings().with_columns(late=pl.when(pl.int_range(pl.len()) < 3).then(1.0))
    found = read(table, human=[*EXPERTS, "late"])
    assert (found.human_scale.low, found.human_scale.high) == (1.0, 5.0)


# -- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("\U0001f44d", "\U0001f44e"),
        ("not hallucinated", "hallucinated"),
        ("faithful", "unfaithful"),
        ("Pass", "Fail"),
        ("True", "False"),
        ("1", "0"),
    ],
)
def test_two_words_are_yes_and_no_where_both_are_known_or_one_denies_the_other(good, bad):
    table = ratings()
    worded = written(table, lambda x: good if x > 3 else bad, "judge", *EXPERTS)
    found = read(worded)
    assert found.kind == "yes/no"
    assert (found.scores["judge"] == (table["judge"].to_numpy() > 3)).all()


def test_words_are_put_in_order_by_what_they_mean_or_by_what_the_judge_gives_there():
    table = ratings(items=600, rated=300)
    names = ["wrong", "partially correct", "correct"]
    graded = written(table, lambda x: names[(int(x) - 1) // 2], "judge", *EXPERTS)
    with pytest.raises(QuestionError) as asked:
        read(graded)
    assert asked.value.readings[0].options == {"order": names}
    words = dict(enumerate(("meh", "so", "fine", "super"), start=2))
    spoken = written(table, lambda x: words[max(int(x), 2)], *EXPERTS)
    with pytest.raises(QuestionError) as asked:
        read(spoken)
    assert asked.value.readings[0].options == {"order": [*words.values()]}


@pytest.mark.parametrize(("one", "other"), [("grounded", "hallucinated"), ("excellent", "good"),
                                            ("c", "a"), ("terrible", "bad")])  # fmt: skip
def test_of_two_words_one_unknown_is_asked_about(one, other):
    table = written(ratings(), lambda x: one if x > 3 else other, "judge", *EXPERTS)
    with pytest.raises(InputError, match=r"no order yet|sides of a pair"):
        read(table.drop("model"))


def test_an_order_that_leaves_out_a_word_is_refused():
    words = {1: "bad", 2: "bad", 3: "ok", 4: "good", 5: "good"}
    table = written(ratings(), lambda x: words[int(x)], "judge", *EXPERTS)
    with pytest.raises(InputError, match="'ok', which the order leaves out"):
        read(table, order=["bad", "good"])


def test_a_yes_that_is_bad_is_asked_about():
    table = written(ratings(), lambda x: "yes" if x < 3 else "no", "judge", *EXPERTS)
    table = table.rename({"judge": "judge_hallucination"})
    with pytest.raises(QuestionError, match="is 'yes' in judge_hallucination good or bad") as asked:
        read(table, judge="judge_hallucination")
    order = asked.value.readings[0].options["order"]
    assert order == ["yes", "no"]
    found = read(table, judge="judge_hallucination", order=order)
    plain = ratings()["judge"].to_numpy() >= 3
    assert found.kind == "yes/no"
    assert (found.scores["judge_hallucination"] == plain).all()


# -- pairs --------------------------------------------------------------------------------------

SIDES = {"A": 1.0, "tie": 0.5, "B": 0.0}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ({"A": "A>>B", "B": "B>A", "tie": "A=B"}, {}),
        ({"A": "[[A]]", "B": "[[B]]", "tie": "[[C]]"}, {}),
        ({"A": "1", "B": "2", "tie": "1.5"}, {}),
        ({"A": "Response 1", "B": "Response 2", "tie": "Both bad"}, {}),
        ({"A": "1", "B": "-1", "tie": "0"}, {"order": ["-1", "0", "1"]}),
        ({"A": "-1", "B": "1", "tie": "0"}, {"order": ["1", "0", "-1"]}),
        ({"A": "win", "B": "lose", "tie": "tie"}, {"order": ["lose", "tie", "win"]}),
    ],
)
def test_verdicts_name_a_side_however_they_are_written(words, options):
    table = pairs()
    found = read(
        table.with_columns(pl.col("judge", "person").replace_strict(words)),
        human=["person"],
        **options,
    )
    assert found.kind == "pairs"
    assert found.scores["judge"].tolist() == [SIDES[word] for word in table["judge"]]


@pytest.mark.parametrize("words", [("1", "-1", "0"), ("1", "0", "0"), ("3", "-2", "0")])
def test_signs_and_zeros_do_not_say_which_side_is_meant(words):
    a, b, tie = words
    table = pairs().with_columns(
        pl.col("judge", "person").replace_strict({"A": a, "B": b, "tie": tie})
    )
    with pytest.raises(QuestionError, match="which verdicts mean that model_a is better") as asked:
        read(table, human=["person"])
    ways = [way.options["order"] for way in asked.value.readings]
    assert ways[0] == ways[1][::-1]


def test_sides_that_never_change_places_are_sides_all_the_same():
    table = pairs().with_columns(model_a=pl.lit("new"), model_b=pl.lit("old"))
    found = read(table, human=["person"])
    assert found.kind == "pairs"
    assert found.models == ("new", "old")


def test_letters_and_the_numbers_1_and_2_are_asked_about_where_nothing_speaks_for_pairs():
    table = ratings().drop("model")
    letters = written(table, lambda x: "ABC"[int(x) % 3], "judge", *EXPERTS)
    with pytest.raises(QuestionError, match="with C for a tie, or grades"):
        read(letters)
    numbers = written(table, lambda x: str(1 + int(x) % 2), "judge", *EXPERTS)
    with pytest.raises(QuestionError, match="are 1 and 2 the sides of a pair, or ratings"):
        read(numbers)
    assert read(numbers, tie="tie").kind == "pairs"
    assert read(numbers, scale="1-2").kind == "ratings"


def test_a_tie_that_is_a_side_is_refused():
    with pytest.raises(InputError, match="names a side of the pair"):
        read(pairs(), human=["person"], tie="A")


# -- shapes -------------------------------------------------------------------------------------


def _long(table, judge="judge"):
    """A row per rating; items that nobody rated have one without a name."""
    keys = ["item", "model", *([judge] if judge else [])]
    rows = table.unpivot(EXPERTS, index=keys, variable_name="annotator", value_name="rating")
    rated = rows.drop_nulls("rating")
    rest = table.filter(pl.col("expert1").is_null()).select(keys)
    return pl.concat([rated, rest], how="diagonal")


def test_a_row_per_annotator_is_read_as_a_column_each():
    table, plain = ratings(), read(ratings())
    found = read(_long(table), human=["rating"])
    assert found.rows.size == 300
    assert sorted(found.columns.human) == EXPERTS
    assert np.nanmean(found.people) == pytest.approx(np.nanmean(plain.people))
    assert "column for each of 2 values of annotator" in found.notes[0]


def test_a_few_odd_rows_do_not_change_the_shape_and_are_told():
    rows = _long(ratings())
    twice = pl.concat([rows, rows.head(2).with_columns(rating=pl.lit(1.0))])
    found = read(twice, human=["rating"])
    assert found.rows.size == 300
    assert "2 without a name, or of one who rated before, are left out" in found.notes[0]


def test_a_version_of_an_item_is_nobody_who_rates_it():
    table = ratings().drop("model", "item")
    items = [f"q{place // 2}" for place in range(300)]
    versions = table.with_columns(item=pl.Series(items), lang=pl.Series(["de", "en"] * 150))
    same = versions.with_columns(judge=pl.col("judge").first().over("item"))
    assert read(same, human=["expert1"]).rows.size == 300


def test_judges_and_people_that_are_names_in_a_column_are_found_there():
    table = ratings()
    rows = table.unpivot(
        ["judge", *EXPERTS], index=["item", "model"], variable_name="rater", value_name="score"
    ).drop_nulls("score")
    named = rows.with_columns(pl.col("rater").replace({"judge": "gpt-4"}))
    assert likely_columns(named) == {"judge": ["gpt-4"], "human": EXPERTS}
    found = read(named, judge="gpt-4")
    order = {item: place for place, item in enumerate(table["item"])}
    places = [order[item] for item in found.frame["item"]]
    assert found.scores["gpt-4"].tolist() == table["judge"][places].to_list()


@pytest.mark.parametrize("named", [False, True])
def test_lists_of_ratings_in_a_cell_become_a_column_each(named):
    table = ratings()
    pair = [
        [] if a is None else
        [{"who": "ann", "rating": a}, {"who": "bob", "rating": b}] if named else [a, b]
        for a, b in table.select(EXPERTS).rows()
    ]  # fmt: skip
    listed = table.drop(EXPERTS).with_columns(ratings=pl.Series(pair))
    found = read(listed, human=["ratings"])
    assert len(found.columns.human) == 2
    assert found.people == pytest.approx(read(table).people, nan_ok=True)


def test_rows_that_stand_twice_count_once_where_others_tell_them_apart():
    table = ratings()
    found = read(pl.concat([table, table.head(50)]))
    assert found.left_out == {"the same row again": 50}
    # Equal scores of one model are no repeated row.
    assert not read(table.select("model", "judge", *EXPERTS)).left_out


def test_only_columns_of_verdicts_are_proposed():
    table = ratings().with_columns(
        judge_reason=pl.lit("it is short, and ") + pl.col("item"), annotator=pl.lit("ann")
    )
    assert likely_columns(table) == {"judge": ["judge"], "human": EXPERTS}


def test_lists_and_bytes_are_no_verdicts():
    table = ratings().with_columns(judge=pl.col("item").cast(pl.Binary))
    with pytest.raises(InputError, match="holds no verdicts but Binary"):
        read(table)


def test_grades_with_signs_are_no_sides_and_a_scale_says_that_these_are_ratings():
    grades = dict(enumerate(("B-", "B", "B+", "A-", "A"), start=1))
    table = written(ratings(), lambda x: grades[int(x)], "judge", *EXPERTS)
    with pytest.raises(InputError, match="no order yet"):
        read(table)
    numbers = pairs().with_columns(
        pl.col("judge", "person").replace_strict({"A": "2", "B": "1", "tie": "0"})
    )
    assert read(numbers, human=["person"]).kind == "pairs"
    assert read(numbers, human=["person"], scale="0-2").kind == "ratings"
