"""`calibrant judge` and files: batches as people hand them back, maps in other verbs, outputs."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.apps.serve import open_engine
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.core.places import writing
from calibrant.data.judge_batches import number_column, with_batch
from calibrant.data.recalibration_map import load_maps
from judged import pairs, ratings
from support import call

PEOPLE = ["expert1", "expert2"]
TABLE = {"judge": ["judge"], "human": PEOPLE}


def judged(table, **options):
    return cal.judge(table, **{**TABLE, **options})


def filled(table, rows, rating=4, **more):
    """The rows of a batch, filled in."""
    number = pl.Series("row", rows)
    part = table[[row - 1 for row in rows]].drop("judge", *PEOPLE)
    return part.with_columns(number, *(pl.lit(str(rating)).alias(name) for name in PEOPLE), **more)


@pytest.fixture
def unrated():
    table = ratings(items=60, rated=20)
    rows = table.with_row_index("row", 1).filter(pl.col("expert1").is_null())["row"].to_list()
    return table, rows


# -- batches that come back -------------------------------------------------------------------


def test_a_batch_that_is_not_of_this_table_is_refused(unrated):
    table, rows = unrated
    batch = filled(table, rows[:10])
    shifted = batch.with_columns(item=pl.col("item").shift(1).fill_null("q99"))
    sorted_alone = batch.with_columns(pl.col("row").reverse())
    for wrong in (shifted, sorted_alone):
        with pytest.raises(InputError, match=r"row 1: .* of row \d+ of the table is .* here, and"):
            with_batch(table, wrong, PEOPLE)
    longer = pl.concat([table[-1:], table])
    with pytest.raises(InputError, match="is it a batch of this table"):
        with_batch(longer, batch, PEOPLE)
    assert with_batch(table, batch.reverse(), PEOPLE)["expert1"].count() == 30


@pytest.mark.parametrize("ending", ["csv", "xlsx", "jsonl", "parquet"])
def test_cells_that_a_file_writes_otherwise_are_still_the_same(tmp_path, ending):
    table = ratings(items=60, rated=20).with_columns(
        share=pl.col("words") / 7,
        day=pl.date(2026, 1, 1) + pl.duration(days=pl.col("words")),
        right=pl.Series([["a", "b"]] * 60),
        text=pl.lit('=1+1 "x", y\r\nz'),
        good=pl.col("words") > 50,
    )
    place = tmp_path / f"batch.{ending}"
    judged(table, batch=place)
    batch = cal.data.read_table(place).with_columns(pl.lit("3").alias(name) for name in PEOPLE)
    whole = with_batch(table, batch, PEOPLE)
    assert whole["expert1"].count() == 20 + batch.height


def test_a_row_that_stands_twice_merges_or_is_refused(unrated):
    table, rows = unrated
    batch = filled(table, rows[:3])
    one = batch.with_columns(expert2=pl.lit(None, pl.String))
    two = batch.with_columns(expert1=pl.lit(None, pl.String))
    assert with_batch(table, pl.concat([batch, batch, one, two]), PEOPLE)["expert2"].count() == 23
    other = pl.concat([batch, batch.with_columns(expert1=pl.lit("2"))])
    with pytest.raises(InputError, match=r"row 4: expert1 .* '2' here, and '4' in row 1 of"):
        with_batch(table, other, PEOPLE)


def test_a_rating_is_never_replaced_by_another_one(unrated):
    table, rows = unrated
    rated = [row for row in range(1, 61) if row not in rows]
    taken = with_batch(table, filled(table, rows[:5]), PEOPLE)
    for before, places in ((table, rated), (taken, rows[:5])):
        with pytest.raises(InputError, match="in the table or an earlier batch"):
            with_batch(before, filled(table, places, 9), PEOPLE)
    again = with_batch(taken, filled(table, rows[:5], "4,0"), PEOPLE)
    assert again["expert1"].count() == 25


def test_a_zero_that_says_that_nobody_rated_is_no_rating(unrated):
    table, rows = unrated
    missing = table.with_columns(pl.col(PEOPLE).fill_null(float("nan")))
    assert with_batch(missing, filled(table, rows[:5]), PEOPLE)["expert1"].is_in(["4"]).sum() == 5
    coded = table.with_columns(pl.col(PEOPLE).fill_null(0))
    batch = filled(table, rows[:5])
    for part in (batch[:3], batch[3:]):
        coded = with_batch(coded, part, PEOPLE)
    assert (coded["expert1"].cast(pl.Float64) == 4).sum() == 5 + (table["expert1"] == 4).sum()


def test_blank_lines_are_passed_over_and_a_batch_without_ratings_is_refused(unrated):
    table, rows = unrated
    batch = filled(table, rows[:3])
    blank = pl.concat([batch, batch.clear(3)])
    assert with_batch(table, blank, PEOPLE)["expert1"].count() == 23
    unfilled = batch.with_columns(pl.lit(" ").alias(name) for name in PEOPLE)
    with pytest.raises(InputError, match="no rating is filled in"):
        with_batch(table, unfilled, PEOPLE)
    for cell in ("129.5", "0", "61", "x", "inf"):
        odd = batch.with_columns(row=pl.lit(cell))
        with pytest.raises(InputError, match=r"rows 1 to 60, and '.*' is none of them"):
            with_batch(table, odd, PEOPLE)


def test_a_column_of_ones_own_called_row_is_kept(tmp_path):
    table = ratings(items=60, rated=20)
    own = table.with_columns(
        pl.col("item").alias("row"), pl.col("item").alias("_row of the table"),
        pl.lit(1).alias("row of the table"),
    )  # fmt: skip
    assert number_column(table) == "row"
    judged(own, batch=tmp_path / "batch.csv")
    batch = pl.read_csv(tmp_path / "batch.csv")
    assert batch.columns[0] == number_column(own) == "row of the table_"
    assert set(batch["row"]) < set(table["item"])
    back = with_batch(own, batch.with_columns(expert1=3, expert2=3), PEOPLE)
    assert back["_row of the table"].to_list() == table["item"].to_list()


# -- what is written --------------------------------------------------------------------------


def test_who_rates_a_batch_sees_no_verdict(tmp_path):
    table = ratings(items=200, rated=60, people=3)
    table = table.with_columns(llm_judge="judge", odd=pl.lit("x"), expert1=pl.col("expert1"))
    judged(table, batch=tmp_path / "b.csv")
    assert pl.read_csv(tmp_path / "b.csv").columns == [
        "row",
        "item",
        "model",
        "words",
        "odd",
        *PEOPLE,
    ]
    both = pairs(200).with_columns(person=pl.when(pl.int_range(pl.len()) % 3 == 0).then("person"))
    cal.judge(both, judge=["judge"], human=["person"], swapped="other_order",
              batch=tmp_path / "p.csv")  # fmt: skip
    assert pl.read_csv(tmp_path / "p.csv").columns == ["row", "model_a", "model_b", "person"]


def test_a_batch_that_somebody_filled_in_is_not_written_over(tmp_path):
    table, place = ratings(items=200, rated=60), tmp_path / "batch.csv"
    for _ in range(2):
        judged(table, batch=place)
    batch = pl.read_csv(place, infer_schema=False)
    batch.with_columns(expert1=pl.lit("4")).write_csv(place)
    with pytest.raises(InputError, match="filled in this batch, so it is not written over"):
        judged(table, batch=place)
    whole = ratings(items=200, rated=200)
    with pytest.raises(InputError, match="every row is rated already"):
        judged(whole, batch=tmp_path / "none.csv")
    assert not (tmp_path / "none.csv").exists()


def test_outputs_are_told_apart_and_only_maps_are_written_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = ratings(items=200, rated=60)
    table.write_csv("r.csv")
    with pytest.raises(InputError, match="two results would go there"):
        judged(table, save="x.json", batch="./x.json")
    told = ["judge", "r.csv", "--judge", "judge", "--human", "expert1,expert2"]
    shell = CliRunner().invoke(app, [*told, "--save", "x.json", "--html", "x.json"])
    assert "two results" in str(shell.exception)
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="a file that is no map"):
        judged(table, save="notes.json")
    for _ in range(2):
        judged(table, save="map.json")
    done = call(*told, "--save", "map.json", "--batch", "b.csv")
    rows = pl.read_csv("b.csv").height
    assert f"written: b.csv ({rows} rows to rate: fill in expert1, expert2)" in done.stdout
    assert "written: map.json (1 map)" in done.stdout


def test_what_was_there_stays_where_a_write_fails(tmp_path):
    place = tmp_path / "map.json"
    place.write_text("before")
    place.chmod(0o600)
    link = tmp_path / "link.json"
    link.symlink_to(place)
    torn = writing(link)
    torn.__enter__().write_text("torn")
    full = OSError(28, "No space left on device")
    with pytest.raises(InputError, match="No space left"):
        torn.__exit__(OSError, full, None)
    assert place.read_text() == "before"
    with writing(link) as fresh:
        fresh.write_text("after")
    assert (place.read_text(), link.is_symlink(), place.stat().st_mode & 0o777) == (
        "after",
        True,
        0o600,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "map.json"]


def test_the_next_command_takes_the_batch_back_and_keeps_every_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ratings(items=300, rated=60).write_csv("r.csv")
    options = {"margin": 0.1, "seed": 5, "save": "m.json"}
    found = judged("r.csv", batch="batch.csv", **options)
    words = shlex.split(found["next"]["command"])
    for pair in (["--margin", "0.1"], ["--seed", "5"], ["--save", "m.json"],
                 ["--rated", "batch.csv"]):  # fmt: skip
        assert pair in [words[place : place + 2] for place in range(len(words))]
    assert "Fill in expert1, expert2" in found["next"]["why"]
    again = judged("r.csv", **options)["next"]
    assert "--batch batch2.csv" in again["command"]
    assert "within about" in again["why"]


# -- options ----------------------------------------------------------------------------------


def test_a_choice_that_another_judge_shows_is_seen():
    rng = np.random.default_rng(0)
    table = ratings(items=600, rated=600).with_columns(other=pl.Series(rng.integers(1, 6, 600)))
    table = table.with_columns(
        pl.when(pl.col("other") >= 4).then(pl.col(name)).alias(name) for name in PEOPLE
    )
    assert judged(table, existing="random")
    with pytest.raises(InputError, match="no random choice"):
        judged(table, judge=["judge", "other"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": "1-5"}, "scale changes nothing"),
        ({"human_scale": "1-5"}, "human_scale changes nothing"),
        ({"features": ["size_a"]}, "the lengths of both sides are compared, got 1"),
        ({"first": "shown", "swapped": "other_order"}, "first changes nothing"),
        ({"cost": {"judge": 0.0}}, "cost is above 0"),
    ],
)
def test_options_that_change_nothing_of_pairs_are_refused(options, words):
    table = pairs(200).with_columns(size_a=pl.int_range(200), shown=pl.lit("A"))
    with pytest.raises(InputError, match=words):
        cal.judge(table, judge=["judge"], human=["person"], **options)


def test_precision_is_in_points_where_people_say_yes_or_no():
    table = pairs(600).with_columns(person=pl.when(pl.int_range(pl.len()) % 3 == 0).then("person"))
    found = cal.judge(table, judge=["judge"], human=["person"], precision=2)
    needed = found.results[0].labels_needed
    assert needed.precision == pytest.approx(0.02)
    assert found.results[0].labels < needed.labels <= 600
    assert judged(ratings(), precision=0.05).results[0].labels_needed.precision == 0.05


def test_one_name_may_stand_for_a_list_and_one_table_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, place = ratings(items=200, rated=60), "filled.csv"
    judged(table, batch=place)
    pl.read_csv(place, infer_schema=False).with_columns(
        pl.lit("4").alias(name) for name in PEOPLE
    ).write_csv(place)
    found = cal.judge(table, judge="judge", human=PEOPLE, by="model", rated=place)
    assert found.results[0].labels > 60
    table.write_csv("r.csv")
    assert "Usage: calibrant judge TABLE" in call("judge", "--help").stdout
    piped = CliRunner().invoke(app, ["judge", "-", "--judge", "judge", "--human", "expert1"])
    assert "standard input" in str(piped.exception)


def test_a_judge_that_says_the_same_of_every_row_is_told():
    found = judged(ratings().with_columns(judge=pl.lit(5)), scale="1-5", human_scale="1-5")
    assert "t gives 5 to every row" in str(found["claims"])


# -- maps -------------------------------------------------------------------------------------


def judged_words(tmp_path, change, **options):
    """A table whose judge says something else, its map, and rows with an outcome."""
    table = ratings(items=900, rated=900, seed=2)
    days = table.with_columns(change(pl.col("judge")), good=pl.col("expert1") > 3).drop(PEOPLE)
    judged(table.with_columns(change(pl.col("judge"))), save=tmp_path / "m.json", **options)
    return days, tmp_path / "m.json"


@pytest.mark.parametrize(
    ("change", "options", "scale"),
    [
        (lambda x: pl.when(x > 3).then(pl.lit("Pass")).otherwise(pl.lit("Fail")), {}, "fail=0"),
        (lambda x: x.replace_strict({1: "bad", 2: "bad", 3: "ok", 4: "good", 5: "good"}),
         {"order": ["bad", "ok", "good"]}, "bad=0,ok=0.5,good=1"),
        (lambda x: x - 3, {"scale": "-2-2", "human_scale": "1-5"}, "-2-2"),
        (lambda x: 6 - x, {"scale": "5-1", "human_scale": "1-5"}, "5-1"),
        (lambda x: x > 3, {}, "false=0"),
    ],
)  # fmt: skip
def test_cells_are_read_by_the_map_as_the_judge_meant_them(tmp_path, change, options, scale):
    days, place = judged_words(tmp_path, lambda x: change(x).alias("judge"), **options)
    assert scale in cal.load_mend(place).judge_scale
    found = cal.audit(days, confidence="judge", correct="good", mend=place, model="model")
    assert found.results[0].metrics.auroc.value > 0.7
    watched = cal.monitor(days, confidence="judge", correct="good", mend=place, every=100)
    assert watched.results


def test_verdicts_on_pairs_are_read_by_the_map(tmp_path):
    cal.judge(pairs(400), judge=["judge"], human=["person"], save=tmp_path / "p.json")
    assert cal.load_mend(tmp_path / "p.json").fitted_on["judge_words"] == {"b": 0.0, "a": 1.0}


def test_each_judge_of_a_file_has_its_own_scale(tmp_path):
    table = ratings(items=600, rated=300).with_columns(ten=2 * pl.col("judge"))
    place = tmp_path / "m.json"
    judged(table, judge=["judge", "ten"], save=place)
    assert [fitted.judge_scale for fitted in load_maps(place)[:2]] == ["1-5", "1-10"]
    days = table.with_columns(good=pl.col("expert1") > 3).drop_nulls("good").drop("model")
    asked = {"correct": "good", "mend": place}
    both = cal.audit(days, confidence="judge,ten", **asked).results
    alone = [cal.audit(days, confidence=name, **asked).results[0] for name in ("judge", "ten")]
    assert [part.metrics.brier.value for part in both] == [
        part.metrics.brier.value for part in alone
    ]
    rows = days.unpivot(on=["ten", "judge"], index=["item", "good"], variable_name="method",
                        value_name="score").sort("item")  # fmt: skip
    names = {"method": "method", "question": "item", "confidence": "score"}
    mixed = cal.audit(rows, **names, **asked).results
    assert {part.method: round(part.metrics.brier.value, 9) for part in mixed} == {
        part.method: round(part.metrics.brier.value, 9) for part in alone
    }


def test_a_map_says_which_column_and_scale_it_reads(tmp_path):
    table = ratings(items=600, rated=300).with_columns(ten=2 * pl.col("judge"))
    place = tmp_path / "m.json"
    judged(table, save=place)
    days = table.with_columns(good=pl.col("expert1") > 3, mine="judge").drop_nulls("good")
    asked = {"correct": "good", "mend": place}
    with pytest.raises(InputError, match="not the scale that the map reads, 1-5"):
        cal.audit(days, confidence="judge", scale="1-10", **asked)
    with pytest.raises(InputError, match="not on the judge's scale: the map reads judge 1-5"):
        cal.audit(days, confidence="ten", **asked)
    found = cal.audit(days, confidence="mine", **asked)
    assert "the map is of the judge judge, not of mine" in json.dumps(found.to_dict())


def test_raw_scores_and_odd_outcomes_are_refused_with_what_to_do(tmp_path):
    place = tmp_path / "m.json"
    judged(ratings(), save=place)
    fitted, raw = cal.load_mend(place), pl.DataFrame({"judge": [2.0, 5.0]})
    for use in (lambda: fitted.probability(3), lambda: fitted.check([3.0]),
                lambda: fitted.apply(raw, confidence="judge")):  # fmt: skip
        with pytest.raises(InputError, match=r"\(score - 1\) / 4"):
            use()
    with pytest.raises(InputError, match="an outcome must be between 0 and 1, got 5"):
        fitted.update([0.5], [5])


def test_a_map_is_served_where_people_say_yes_or_no_and_refused_where_they_rate(tmp_path):
    table = ratings(items=900, rated=900).with_columns(good=pl.col("expert1") > 1)
    rates, policy, shares = (tmp_path / name for name in ("m.json", "p.json", "s.json"))
    judged(table, save=rates)
    judged(table, human=["good"], save=shares)
    table = table.filter(pl.col("model") == "m0").with_columns(judge=(pl.col("judge") - 1) / 4)
    cal.decide(table, confidence="judge", correct="good", max_error=0.4, save=policy)
    how = {"keys": {}, "price": {}, "per_token": False, "measured_by": "endpoint"}
    for served, model, mend in ((policy, "m0", rates), (rates, "model", rates),
                                (policy, "m0", shares), (shares, "model", shares)):  # fmt: skip
        opened = {"endpoints": {model: "http://127.0.0.1:9/v1"}, "mend": mend,
                  "ledger": tmp_path / f"{served.stem}.sqlite", **how}  # fmt: skip
        if mend == rates:
            with pytest.raises(InputError, match="how people rate from 1 to 5"):
                open_engine(served, **opened)
            continue
        engine = open_engine(served, **opened)
        assert engine.mends[model] == cal.load_mend(shares)
        engine.ledger.close()
