"""`calibrant judge`: how tables are read, what is said of a judge, maps and batches."""

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.findings.claims.next_step import next_step
from calibrant.metrics.stats.judges import right_order
from calibrant.report.answers import badge_of
from calibrant.verbs.label import label_next
from judged import evouna, llmbar, nq301, pairs, panda, ratings, summeval
from support import ROOT, schema_errors

PEOPLE = ["expert1", "expert2"]
LEVELS = ["awful", "bad", "fair", "good", "great"]


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
    assert "Two people on about 100 rows could show" in claim.text


def test_the_better_model_by_people_is_named():
    found = judged(ratings(items=800, rated=400, gap=1.0, seed=5))
    (claim,) = claims(found, "model_better")
    assert (claim.outcome, claim.subject["a"], claim.subject["b"]) == ("shown", "m0", ["m1"])
    (claim,) = claims(judged(ratings(items=600, rated=200)), "model_better")
    assert (claim.outcome, claim.value > 0) == ("undecided", True)


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
    of_one_model = pairs(60).drop("model_b").rename({"model_a": "model"})
    assert not judged(of_one_model, human=["person"]).results[0].models


def test_several_judges_are_set_beside_their_panel_with_what_a_dollar_buys():
    table = ratings(items=600, rated=200)
    noise = np.random.default_rng(9).integers(-2, 3, 600)
    table = table.with_columns(cheap=(pl.col("judge") + pl.Series(noise)).clip(1, 5))
    found = judged(table, judge=["judge", "cheap"], cost={"judge": 0.02, "cheap": 0.001})
    saved = {entry.judge: entry.people_mean.labels_saved for entry in found.results}
    assert list(saved) == ["judge", "cheap", "panel (mean)"]
    assert saved["judge"] > saved["cheap"]
    assert found.results[-1].cost == pytest.approx(0.021)
    assert "ratings per dollar" in str(found)
    assert claims(found, "lenient")[0].text.startswith("judge: ")


def test_a_majority_of_ratings_beside_yes_and_no_stays_on_the_scale_of_the_judges():
    table = ratings(items=600, rated=200).with_columns(
        (pl.col(name) > 3).replace_strict({True: "yes", False: "no"}) for name in PEOPLE
    )
    found = judged(table.with_columns(other="judge"), judge=["judge", "other"])
    panel = found.results[-1]
    assert (panel.judge, panel.scale.judge) == ("panel (majority)", [1, 5])
    assert {row.score for row in panel.map} == {1.0, 3.0, 5.0}
    assert panel.order.value > 0.7


def test_the_badge_is_that_of_the_first_sentence():
    turned = ratings(items=600, rated=200)
    turned = turned.with_columns(harsh=(pl.col("judge") - 2).clip(1, 5))
    ends = {"scale": "1-5", "human_scale": "1-5"}
    several = judged(turned, judge=["judge", "harsh"], **ends)
    assert claims(several, "harsh")[0].outcome == "shown"
    options = {"human": ["person", "other"], "swapped": "other_order"}
    people = pairs(rows=400).with_columns(other="person")
    for found, words in ((several, "lenient"), (judged(people, **options), "follows the order")):
        assert badge_of(found.to_dict(), found.claims).words == words


def test_a_judge_is_worth_the_labels_that_give_people_alone_the_same_interval():
    table = ratings(items=600, rated=200)
    entry = judged(table).results[0]
    both, alone = (
        getattr(entry.people_mean, name).high - getattr(entry.people_mean, name).low
        for name in ("combined", "people_only")
    )
    n, rows = 200 + entry.people_mean.labels_saved, 600
    fewer = np.sqrt((1 / n - 1 / rows) / (1 / 200 - 1 / rows))
    assert alone * fewer == pytest.approx(both, rel=0.02)
    rated = judged(ratings(items=200, rated=200))
    assert (
        "On many new rows, as many of them rated, it would save" in claims(rated, "lenient")[0].text
    )


def test_a_favour_that_no_number_of_labels_would_show_is_told_by_what_would_be_seen():
    (claim,) = claims(judged(ratings(items=300, rated=300)), "favours")
    (least,) = re.findall(r"show one of ([\d.]+) \(of 1-5\) in four of five", claim.text)
    assert abs(claim.value) < 0.01
    assert 1.2 < float(least) / (claim.high - claim.value) < 1.8


@pytest.mark.parametrize("levels", [2, 5, 100_000])
def test_the_order_is_that_of_all_pairs_that_people_rate_differently(levels):
    rng = np.random.default_rng(levels)
    judge, people = rng.integers(0, 7, 90) * 1.0, rng.integers(0, levels, 90) * 1.0
    people[::9] = np.nan
    better = people[:, None] > people
    first = (judge[:, None] > judge) + 0.5 * (judge[:, None] == judge)
    found = right_order(judge, people)
    assert found[0] == pytest.approx(first[better].mean())
    apart = better & (np.arange(90) != 4)[:, None] & (np.arange(90) != 4)
    assert found[1 + 4] == pytest.approx(first[apart].mean())


# -- how tables are read ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (lambda value: f"{value:g}", {}),
        (lambda value: f"Rating: [[{value:g}]]", {}),
        (lambda value: f"{value:g} / 5", {}),
        (lambda value: LEVELS[int(value) - 1], {"order": LEVELS}),
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
    # Nothing tells the order: a guess would be followed.
    assert "--order WORST,..,BEST; they are: bad, good, ok" in str(refused.value)


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
        ({}, {"scale": "5-5"}, "a scale is two ends"),
        ({}, {"scale": "1.2.3-5"}, "a scale is two ends"),
        ({}, {"human": ["judge"]}, "named in two roles"),
        ({}, {"judge": ["expert1"], "human": ["judge"]}, "judge has a value in every row"),
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
    found = judged(top, existing="random")
    assert "taken as random" in found["data"]["warnings"][0]["text"]
    # The command that comes next would be refused without it.
    assert 'existing="random"' in found["next"]["command"]


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
    found, fitted = judged(table, save=place), cal.load_mend(place)
    for row in found.results[0].map:
        assert fitted.probability(row.score) == pytest.approx(row.value)
        assert fitted.interval(row.score) == pytest.approx((row.low, row.high))
    assert cal.load_mend(place, model="any model", method="judge") == fitted
    assert fitted.fitted_on["labels_by"] == "people"
    days = table.with_columns(correct="expert1").drop_nulls("correct")
    watched = cal.monitor(days, confidence="judge", correct="correct", mend=place, every=100)
    assert {entry.alarm for entry in watched.results} == {None}
    pool = tmp_path / "pool.csv"
    table.select("item", "model", "judge").write_csv(pool)
    batch = label_next(str(pool), str(tmp_path / "b.csv"), judge="judge", mend=str(place), size=20)
    assert batch["batch"]["items"] == 20
    assert batch["results"][0]["mean_confidence"] != pytest.approx(table["judge"].mean())


def test_a_map_of_ratings_brings_its_scale_to_every_verb(tmp_path):
    table = ratings(items=600, rated=300)
    place, path = tmp_path / "map.json", tmp_path / "ratings.csv"
    found = judged(table, save=place)
    table.write_csv(path)
    batch = label_next(str(path), str(tmp_path / "b.csv"), judge="judge", mend=str(place), size=20)
    mean = found.results[0].people_mean.combined.value
    assert batch["results"][0]["mean_confidence"] == pytest.approx((mean - 1) / 4, abs=0.02)
    assert f"--mend {place}" in next_step(batch.to_dict()).command
    plain = CliRunner().invoke(app, ["label", "next", str(path), "--judge", "judge",
                                     "--out", str(tmp_path / "c.csv")])  # fmt: skip
    assert "which means certain" in str(plain.exception)
    days = table.with_columns(good=pl.col("expert1") > 3).drop_nulls("good")
    asked = {"confidence": "judge", "correct": "good", "mend": place, "every": 100}
    assert cal.monitor(days, **asked).results


def test_what_comes_next_fits_what_is_rated(tmp_path):
    path = tmp_path / "ratings.csv"
    ratings(items=200, rated=200).write_csv(path)
    found = cal.judge(str(path), judge=["judge"], human=PEOPLE)
    assert found["next"]["command"].endswith("--save map.json")
    again = cal.judge(str(path), judge=["judge"], human=PEOPLE, save=tmp_path / "map.json")
    assert again["next"]["command"].endswith("--html judge.html")


def test_a_batch_holds_lists_as_text_and_nothing_that_a_spreadsheet_runs(tmp_path):
    table = ratings(items=200, rated=60).with_columns(
        answer=pl.lit("=1+1"), right=pl.Series([["a", "b"]] * 200)
    )
    for name in ("batch.csv", "batch.xlsx", "batch.jsonl"):
        judged(table, batch=tmp_path / name)
        batch = cal.data.read_table(tmp_path / name)
        assert set(batch["right"]) == {"a | b"}
        assert set(batch["answer"]) == {"'=1+1" if name == "batch.csv" else "=1+1"}
        rated = batch.with_columns(pl.lit(4).alias(person) for person in PEOPLE)
        assert judged(table, rated=[rated]).results[0].labels == 60 + batch.height


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
    batch.with_columns(expert1=pl.lit(4), row=pl.lit(7000)).write_csv(place)
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
