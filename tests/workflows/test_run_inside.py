"""A study is run inside other programs, and its ledger is repaired by the same verb."""

import asyncio
import pickle

import polars as pl
import pytest

import calibrant as cal
from calibrant.data.recalibration_map import RecalibrationMap
from calibrant.verbs.run import run
from collect.endpoint import Oracle
from collect.studies import write_study
from support import break_page, call


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as server:
        yield server


@pytest.fixture(scope="module")
def study(tmp_path_factory, oracle):
    folder = write_study(tmp_path_factory.mktemp("inside") / "study", oracle.url)
    run(folder)
    return folder


def test_run_works_where_an_event_loop_is_running(study, oracle):
    async def notebook():
        return cal.run(study)

    calls = len(oracle.calls)
    assert asyncio.run(notebook())["results"]
    assert len(oracle.calls) == calls


def test_arun_leaves_the_loop_free(study):
    async def program():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.005)

        counter = asyncio.create_task(count())
        result = await cal.arun(study)
        counter.cancel()
        return result, turns

    result, turns = asyncio.run(program())
    assert result["results"]
    assert turns > 5


def test_a_run_writes_what_its_confidences_mean(study, tmp_path, oracle):
    plain = pl.read_parquet(study / "tables" / "scores.parquet")
    model, method = plain.drop_nulls("confidence").select("model", "method").row(0)
    halved = RecalibrationMap(
        (0.0, 1.0), (-2.0, 0.0), (-3.0, -1.0), (-1.0, 1.0), model=model, method=method
    )
    halved.save(tmp_path / "mend.json")
    calls = len(oracle.calls)
    run(study, mend=tmp_path / "mend.json")
    assert len(oracle.calls) == calls
    scores = pl.read_parquet(study / "tables" / "scores.parquet")
    assert scores.drop("mended", "mended_low", "mended_high").equals(plain)
    own = (pl.col("model") == model) & (pl.col("method") == method)
    for row in scores.filter(own).drop_nulls("confidence").iter_rows(named=True):
        assert row["mended"] == pytest.approx(halved.probability(row["confidence"]))
    assert scores.filter(~own)["mended"].null_count() == scores.filter(~own).height
    halved.save(tmp_path / "other.json")
    other = (tmp_path / "other.json").read_text().replace(model, "another")
    (tmp_path / "other.json").write_text(other)
    with pytest.raises(cal.InputError, match="no map of these models"):
        run(study, mend=tmp_path / "other.json")
    run(study)


def test_an_error_inside_a_loop_is_the_same_error(tmp_path):
    async def notebook():
        return cal.run(tmp_path / "none")

    with pytest.raises(cal.InputError):
        asyncio.run(notebook())


def test_a_result_can_be_pickled(study):
    result = run(study)
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
    assert type(again) is type(result)
    assert again.to_dict() == result.to_dict()


def test_a_sound_ledger_is_called_sound(study):
    done = call("run", study, "--repair")
    assert done.returncode == 0, done.stdout
    assert "ledger is sound" in done.stdout


def test_a_damaged_ledger_is_repaired_and_refilled(study, oracle):
    before = run(study).to_dict()["results"]
    ledger = study / "ledger.sqlite"
    break_page(ledger)
    failed = call("run", study)
    assert failed.returncode == 2
    assert "damaged" in failed.stderr
    assert "--repair" in failed.stderr
    assert "Traceback" not in failed.stderr
    calls = len(oracle.calls)
    result = run(study, repair=True)
    assert result["repair"]["draws"] > 0
    assert result["repair"]["lost"] == 0
    assert (study / "ledger.damaged-1.sqlite").is_file()
    assert len(oracle.calls) == calls, "nothing is bought twice"
    assert result.to_dict()["results"] == before
