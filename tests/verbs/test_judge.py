"""`calibrant judge`: how tables are read, what is said of a judge, maps and batches."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.verbs.label import label_next
from judged import evouna, llmbar, nq301, pairs, panda, ratings, summeval
from support import ROOT, schema_errors

PEOPLE = ["expert1", "expert2"]


def claims(found, name):
    return [claim for claim in found.claims if claim.id == f"judge.{name}"]


def judged(table, **options):
    return cal.judge(table, **{"judge": ["judge"], "human": PEOPLE, **options})


# -- what is said -----------------------------------------------------------------------------


def test_a_document_keeps_its_schema():
    for table, options in (
        (ratings(models=3), {"by": ["model"]}),
        (pairs(), {"human": ["person"], "swapped": "other_order"}),
    ):
        document = judged(table, **options).to_dict()
        assert not schema_errors(document)


def test_a_lenient_judge_is_called_lenient_in_the_units_of_people():
    found = judged(ratings(items=600, rated=200))
    (claim,) = claims(found, "lenient")
    mean = found.results[0].people_mean
    assert claim.outcome == "shown"
    assert mean.judge_only - mean.combined.value == pytest.approx(claim.value)
    assert mean.combined.low < mean.people_only.value < mean.combined.high
    assert mean.labels_saved > 0


def test_scores_turned_around_are_called_harsh():
    table = ratings(items=600, rated=200).with_columns(judge=6 - pl.col("judge"))
    found = judged(table, scale="1-5", human_scale="1-5")
    assert [claim.outcome for claim in claims(found, "harsh")] == ["shown"]
    assert found.results[0].order.value < 0.4


@pytest.mark.parametrize("favour", [0.0, 1.0])
def test_favour_is_told_where_two_people_show_it_and_not_where_a_model_is_better(favour):
    table = ratings(items=800, rated=400, favour=favour, gap=1.0, seed=3)
    shown = [claim for claim in claims(judged(table), "favours") if claim.outcome == "shown"]
    assert bool(shown) == bool(favour)
    if favour:
        value = {claim.subject["model"]: claim.value for claim in shown}["m0"]
        assert 0.5 < value < 1.5


def test_one_person_shows_a_lead_and_never_a_favour():
    found = judged(ratings(items=800, rated=400, favour=1.0, people=1), human=["expert1"])
    (claim,) = claims(found, "favours")
    assert claim.outcome == "undecided"
    assert {lean.method for lean in found.results[0].bias} == {"one person"}
    assert "second person" in claim.text


def test_the_better_model_by_people_is_named():
    found = judged(ratings(items=800, rated=400, gap=1.0, seed=5))
    (claim,) = claims(found, "model_better")
    assert (claim.outcome, claim.subject["a"], claim.subject["b"]) == ("shown", "m0", ["m1"])


def test_verdicts_that_flip_with_the_order_show_a_lean_to_a_place():
    found = judged(pairs(400), human=["person"], swapped="other_order")
    (claim,) = claims(found, "position")
    lean = next(lean for lean in found.results[0].bias if lean.kind == "position")
    assert claim.outcome == "shown"
    assert lean.judge_share > 0.5
    both = pairs(400)
    flips = ((both["judge"] == "A") & (both["other_order"] == "B")).sum()
    assert round(lean.judge_share * lean.flips) == flips


def test_pairs_put_models_in_the_order_of_people():
    found = judged(pairs(600), human=["person"]).results[0]
    by_strength = sorted(found.models, key=lambda model: -model.strength.value)
    assert [model.name for model in by_strength] == ["large", "middle", "small"]
    assert all(pair.win_rate is not None for pair in found.pairs)


def test_several_judges_are_set_beside_their_panel_with_what_a_dollar_buys():
    table = ratings(items=600, rated=200)
    noise = np.random.default_rng(9).integers(-2, 3, 600)
    table = table.with_columns(cheap=(pl.col("judge") + pl.Series(noise)).clip(1, 5))
    found = judged(table, judge=["judge", "cheap"], cost={"judge": 0.02, "cheap": 0.001})
    names = [entry.judge for entry in found.results]
    saved = {entry.judge: entry.people_mean.labels_saved for entry in found.results}
    costs = {entry.judge: entry.cost for entry in found.results}
    assert names == ["judge", "cheap", "panel (mean)"]
    assert saved["judge"] > saved["cheap"]
    assert costs["panel (mean)"] == pytest.approx(0.021)
    assert "labels per dollar" in str(found)
    assert claims(found, "lenient")[0].text.startswith("judge: ")


# -- how tables are read ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (lambda value: f"{value:g}", {}),
        (lambda value: f"Rating: [[{value:g}]]", {}),
        (lambda value: f"{value:g} / 5", {}),
        (
            lambda value: ["awful", "bad", "fair", "good", "great"][int(value) - 1],
            {"order": ["awful", "bad", "fair", "good", "great"]},
        ),
    ],
)
def test_however_ratings_are_written_they_are_the_same(write, options):
    table = ratings()
    columns = [pl.col(n).map_elements(write, return_dtype=pl.String) for n in ("judge", *PEOPLE)]
    found, plain = judged(table.with_columns(columns), **options), judged(table)
    assert found.results[0].people_mean == plain.results[0].people_mean
    assert found.results[0].kappa == plain.results[0].kappa


def test_words_without_an_order_are_asked_for_in_one_command(tmp_path):
    words = {1.0: "bad", 2.0: "bad", 3.0: "ok", 4.0: "good", 5.0: "good"}
    columns = [pl.col(n).replace_strict(words, default=None) for n in ("judge", *PEOPLE)]
    path = tmp_path / "words.csv"
    ratings().with_columns(columns).write_csv(path)
    with pytest.raises(InputError, match="have no order yet") as refused:
        judged(str(path))
    refused.value.for_shell()
    assert "--order bad,good,ok" in str(refused.value)


@pytest.mark.parametrize(
    ("sides", "options"),
    [
        ({"A": "A", "B": "B", "tie": "tie"}, {}),
        ({"A": "[[A]]", "B": "[[B]]", "tie": "[[C]]"}, {}),
        ({"A": "model_a", "B": "model_b", "tie": "tie (bothbad)"}, {}),
        ({"A": "1", "B": "2", "tie": "0"}, {"pairs": ["model_a", "model_b"]}),
        ({"A": "left", "B": "right", "tie": "same"}, {"pairs": ["model_a", "model_b"]}),
    ],
)
def test_however_verdicts_on_pairs_are_written_they_are_the_same(sides, options):
    table = pairs()
    columns = [pl.col(n).replace_strict(sides) for n in ("judge", "person")]
    found = judged(table.with_columns(columns), human=["person"], **options)
    plain = judged(table, human=["person"])
    assert found.results[0].scale.kind == "pairs"
    assert found.results[0].order == plain.results[0].order
    assert found.results[0].models == plain.results[0].models


def test_yes_and_no_are_no_scale_and_unread_cells_are_counted():
    table = ratings().with_columns(
        judge=pl.when(pl.col("judge") > 3).then(pl.lit("Pass")).otherwise(pl.lit("Fail")),
        expert1=pl.when(pl.col("expert1") > 3).then(pl.lit("yes")).when(
            pl.col("expert1") <= 3).then(pl.lit("no")),
    )  # fmt: skip
    odd = table.with_columns(
        judge=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("error")).otherwise("judge")
    )
    found = judged(odd, human=["expert1"])
    assert found.results[0].scale.kind == "yes/no"
    assert found.results[0].n == 299
    assert found["dropped"] == {"no score of the judge": 1}
    assert [row.score for row in found.results[0].map] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"judge": ["nobody"]}, "there is no column 'nobody'"),
        ({}, {"scale": "5-1"}, "a scale is two ends"),
        ({}, {"scale": "1-4"}, "outside its scale 1-4"),
        ({}, {"tie": "draw"}, "a tie .* is a verdict on a pair"),
        ({}, {"pairs": ["model"]}, "a pair has two sides"),
        ({}, {"cost": {"other": 1.0}}, "there is none called 'other'"),
        ({"expert1": None, "expert2": None}, {}, "no row has a rating by people"),
        ({"judge": None}, {}, "no row has a score of the judge"),
        ({"judge": pl.col("judge").clip(1, 3)}, {}, "is it one scale"),
    ],
)
def test_what_is_wrong_is_said(change, options, words):
    columns = {name: pl.lit(value) if value is None else value for name, value in change.items()}
    with pytest.raises(InputError, match=words):
        judged(ratings().with_columns(**columns), **options)


def test_a_choice_of_rows_that_is_seen_not_to_be_random_is_refused():
    table = ratings(items=600, rated=600)
    top = table.with_columns(
        pl.when(pl.col("judge") >= 4).then(pl.col(name)).alias(name) for name in PEOPLE
    )
    with pytest.raises(InputError, match="no random choice") as refused:
        judged(top)
    assert 'existing="random"' in str(refused.value)
    assert "taken as random" in judged(top, existing="random")["data"]["warnings"][0]["text"]


def test_columns_that_are_not_named_are_proposed(tmp_path):
    path = tmp_path / "ratings.csv"
    ratings().write_csv(path)
    refused = CliRunner().invoke(app, ["judge", str(path)])
    refused.exception.for_shell()
    command = f"calibrant judge {path} --judge judge --human expert1,expert2"
    assert command in str(refused.exception)


# -- maps and batches -------------------------------------------------------------------------


def test_a_map_says_what_people_would_and_every_verb_takes_it(tmp_path):
    table = ratings(items=600, rated=300).with_columns(
        (pl.col(name) > 3).cast(pl.Float64) for name in PEOPLE
    )
    table = table.with_columns(judge=(pl.col("judge") - 1) / 4)
    place = tmp_path / "map.json"
    found = judged(table, save=place)
    fitted = cal.load_mend(place)
    for row in found.results[0].map:
        assert fitted.probability(row.score) == pytest.approx(row.value)
        assert fitted.interval(row.score) == pytest.approx((row.low, row.high))
    assert cal.load_mend(place, model="any model", method="judge") == fitted
    days = table.with_columns(correct="expert1").drop_nulls("correct")
    watched = cal.monitor(days, confidence="judge", correct="correct", mend=place, every=100)
    assert {entry.alarm for entry in watched.results} == {None}
    pool = tmp_path / "pool.csv"
    table.select("item", "model", "judge").write_csv(pool)
    batch = label_next(str(pool), str(tmp_path / "b.csv"), judge="judge", mend=str(place), size=20)
    assert batch["batch"]["items"] == 20
    assert batch["results"][0]["mean_confidence"] != pytest.approx(table["judge"].mean())


def test_a_batch_is_written_blind_and_its_ratings_are_read_back(tmp_path):
    whole = ratings(items=600, rated=600)
    hidden = whole.with_columns(
        pl.when(pl.int_range(pl.len()) % 6 == 0).then(pl.col(name)).alias(name) for name in PEOPLE
    )
    path, place = tmp_path / "batch.csv", tmp_path / "rated.csv"
    before = judged(hidden, batch=path)
    batch = pl.read_csv(path)
    needed = before.results[0].labels_needed.labels - before.results[0].labels
    assert batch.height == needed
    assert "judge" not in batch.columns
    assert hidden["expert1"][(batch["row"] - 1).to_list()].is_null().all()
    truth = whole.with_row_index("row", 1).select(pl.col("row").cast(pl.Int64), *PEOPLE)
    batch.drop(PEOPLE).join(truth, on="row", how="left").write_csv(place)
    after = judged(hidden, rated=[str(place)])
    assert after.results[0].labels == before.results[0].labels + needed
    wanted = before.results[0].labels_needed.precision
    mean = after.results[0].people_mean.combined
    assert (mean.high - mean.low) / 2 < 1.25 * wanted
    batch.with_columns(row=pl.lit(7000)).write_csv(place)
    with pytest.raises(InputError, match="rows 1 to 600"):
        judged(hidden, rated=[str(place)])


# -- real sets --------------------------------------------------------------------------------


@pytest.mark.parametrize("real", [summeval, panda, llmbar, nq301, evouna])
def test_real_sets_are_read_and_the_mean_holds(real, shared_data):
    table, options, truth = real(shared_data)
    entry = cal.judge(table, **options).results[0]
    combined = entry.people_mean.combined
    assert combined.low <= truth <= combined.high
    assert entry.disagreements


def test_published_leans_of_real_judges_are_found(shared_data):
    table, options, _ = llmbar(shared_data)
    lean = cal.judge(table, **options).results[0].bias[0]
    assert (lean.kind, round(lean.flips * lean.judge_share), lean.flips) == ("position", 160, 177)
    table, options, _ = summeval(shared_data)
    shown = [c for c in claims(cal.judge(table, **options), "favours") if c.outcome == "shown"]
    assert shown[0].subject["model"] == "M20"
    assert shown[0].value < -0.7


def test_the_page_of_documents_names_the_verb():
    assert "calibrant judge" in (ROOT / "docs" / "judge.md").read_text()
