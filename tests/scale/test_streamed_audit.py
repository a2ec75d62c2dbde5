"""A streamed audit is the audit in memory, read another way."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.data import batches
from calibrant.report.page.parts import provenance_table
from calibrant.verbs.opening import choose_source as ways

pytest.importorskip("pyarrow")


def frame(n=30_000, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1.2, n)
    return pl.DataFrame(
        {
            "confidence": confidence,
            "correct": (rng.random(n) < confidence**1.3).astype(np.int8),
            "model": rng.choice(["small", "large"], n),
            "topic": rng.choice(["history", "maths", "law"], n),
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    frame().write_parquet(path, row_group_size=2_000)
    return path


def by_block(document):
    return {(entry["model"], json.dumps(entry["group"])): entry for entry in document["results"]}


def test_every_number_is_that_of_the_audit_in_memory(table):
    streamed = cal.audit(table, engine="local", by=["topic"])
    memory = cal.audit(table, by=["topic"])
    assert streamed["reading"]["way"] == "streamed"
    assert memory["reading"]["way"] == "in memory"
    ours, theirs = by_block(streamed), by_block(memory)
    assert ours.keys() == theirs.keys()
    assert len(ours) == 8
    assert streamed["multiplicity"] == memory["multiplicity"]
    assert streamed["multiplicity"]["groups"]["tests"] == 18
    for key, entry in ours.items():
        other = theirs[key]
        assert entry["n"] == other["n"]
        for name, estimate in other["metrics"].items():
            # The ends of these two are simulated over cells that are cut elsewhere.
            near = 3e-3 if name in ("mcb", "dsc") else 2e-4
            # Its slices are cut where cells end: as far off as it says, and wider by as much.
            near = max(near, 2 * entry["sketch_error"][name]) if name == "error" else near
            for part in ("value", "low", "high"):
                found = entry["metrics"][name][part]
                assert found == pytest.approx(estimate[part], abs=near), (key, name, part)
        exact = ("ece", "ece_debiased", "brier", "accuracy", "mean_confidence", "confidence_gap")
        for name in exact:
            assert entry["metrics"][name]["value"] == pytest.approx(
                other["metrics"][name]["value"], abs=1e-9
            )
        assert entry["calibration_test"] == pytest.approx(other["calibration_test"], abs=1e-6)
        assert entry["verification"]["labels"] == other["verification"]["labels"]
        assert entry["reliability"]["histogram"] == other["reliability"]["histogram"]
        mine, rows = entry["reliability"]["bins"], other["reliability"]["bins"]
        # Slices are cut where cells end: a row or two may lie on the other side.
        assert [row["n"] for row in mine] == pytest.approx([row["n"] for row in rows], abs=2)
        assert [row["rate"] for row in mine] == pytest.approx(
            [row["rate"] for row in rows], abs=0.03
        )
        assert sum(row["n"] for row in mine) == entry["n"]
        assert entry["verdict"]["calibration"] == other["verdict"]["calibration"]
        assert entry["significance"]["tests"] == other["significance"]["tests"]


def test_the_tests_of_a_block_are_those_of_the_audit_in_memory(tmp_path):
    """Of the mean gap the larger p-value counts: Student's, or that under perfect calibration.

    All answers are right here, so that Student's alone would claim a gap that luck explains.
    """
    path = tmp_path / "sure.parquet"
    pl.DataFrame(
        {"confidence": np.linspace(0.995, 0.999, 300), "correct": [1] * 300}
    ).write_parquet(path)
    streamed, memory = cal.audit(path, engine="local"), cal.audit(path)
    ours, theirs = (found["results"][0]["significance"] for found in (streamed, memory))
    assert ours["gap"]["p_value"] > 0.3
    assert ours.keys() == theirs.keys()
    for name in ("calibration", "gap"):
        # A confidence stands at the mean of its cell, whose positions are kept to 2e-11.
        assert ours[name] == pytest.approx(theirs[name], abs=1e-6)


def test_a_model_of_which_no_row_is_left_is_named_as_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 1_000)
    path = tmp_path / "t.parquet"
    rows = frame(3_000).with_columns(
        # A quarter of the rows of 'large' is broken too, but not all of them.
        confidence=pl.when(pl.col("model") == "small").then(2.0).otherwise("confidence"),
        answer=pl.when(pl.int_range(pl.len()) % 4 > 0).then(pl.lit("a")),
    )
    rows.write_parquet(path, row_group_size=500)
    streamed = cal.audit(path, engine="local", on_invalid="drop")
    memory = cal.audit(path, on_invalid="drop")
    assert streamed["emptied_models"] == memory["emptied_models"] == ["small"]
    assert streamed["dropped"] == memory["dropped"]
    assert cal.audit(path, engine="local", on_invalid="drop", by=["topic"])["emptied_models"] == [
        "small"
    ]


def _footer_digest(content):
    footer = int.from_bytes(content[-8:-4], "little")
    return hashlib.sha256(content[-8 - footer :]).hexdigest()


def test_the_input_is_known_by_its_footers(tmp_path):
    for number in (0, 1):
        frame(1_000 + number, seed=number).write_parquet(tmp_path / f"part-{number}.parquet")
    found = cal.audit(tmp_path, engine="local")
    assert found["input"] == [
        {
            "path": str(path),
            "bytes": path.stat().st_size,
            "rows": 1_000 + number,
            "footer_sha256": _footer_digest(path.read_bytes()),
        }
        for number, path in enumerate(sorted(tmp_path.glob("*.parquet")))
    ]
    frame(1_000, seed=2).write_parquet(tmp_path / "part-0.parquet")
    again = cal.audit(tmp_path, engine="local")
    assert again["input"][0]["footer_sha256"] != found["input"][0]["footer_sha256"]
    assert again["input"][1] == found["input"][1]
    assert "part-0.parquet footer " in str(provenance_table([found]).rows)


def test_the_head_is_that_of_the_audit_in_memory(table):
    streamed, memory = cal.audit(table, engine="local", bins=10), cal.audit(table, bins=10)
    keys = list(memory)
    assert [key for key in streamed if key in keys] == keys
    # Intervals are simulated over cells that are cut elsewhere; claims follow them.
    for key in set(keys) - {"input", "reading", "results", "data", "claims"}:
        assert streamed[key] == memory[key], key
    told = [
        [(claim["id"], claim["outcome"], claim["subject"]) for claim in found["claims"]]
        for found in (streamed, memory)
    ]
    assert told[0] == told[1]
    warnings = [found["data"]["warnings"] for found in (streamed, memory)]
    assert warnings[0] == warnings[1]


def test_the_band_of_the_curve_is_that_of_all_rows(table):
    (streamed, *_), (memory, *_) = (
        cal.audit(table, engine=name)["results"] for name in ("local", None)
    )
    ours, theirs = (
        np.subtract(
            entry["reliability"]["curve"]["band_high"], entry["reliability"]["curve"]["band_low"]
        ).mean()
        for entry in (streamed, memory)
    )
    assert ours == pytest.approx(theirs, rel=0.25)


def test_the_cut_into_parts_changes_nothing(table, monkeypatch):
    once = cal.audit(table, engine="local").to_dict()
    monkeypatch.setattr(batches, "PART_ROWS", 5_000)
    monkeypatch.setattr(batches, "BATCH_ROWS", 777)
    many = cal.audit(table, engine="local").to_dict()
    assert once["reading"].pop("parts") == 1
    assert many["reading"].pop("parts") > 5
    assert once == many


def test_a_folder_with_partition_columns_gives_groups(tmp_path):
    whole = frame()
    for (model, topic), part in whole.partition_by("model", "topic", as_dict=True).items():
        folder = tmp_path / "runs" / f"model={model}" / f"topic={topic}"
        folder.mkdir(parents=True)
        part.drop("model", "topic").write_parquet(folder / "0.parquet")
    for source in (tmp_path / "runs", str(tmp_path / "runs" / "**" / "*.parquet")):
        streamed = by_block(cal.audit(source, engine="local", by=["topic"]))
        whole.write_parquet(tmp_path / "one.parquet")
        one = by_block(cal.audit(tmp_path / "one.parquet", engine="local", by=["topic"]))
        assert streamed.keys() == one.keys()
        for key, entry in streamed.items():
            assert entry["metrics"] == one[key]["metrics"]


def test_a_url_is_read_through_fsspec():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    with system.open("/bucket/scores/part-0.parquet", "wb") as file:
        frame(2_000).write_parquet(file)
    found = cal.audit("memory://bucket/scores")
    how = {"way": "streamed", "rows": 2_000, "parts": 1, "cells": 61_440}
    assert found["reading"].items() >= how.items()
    content = system.cat("/bucket/scores/part-0.parquet")
    assert found["input"] == [
        {
            "path": "memory:///bucket/scores/part-0.parquet",
            "bytes": len(content),
            "rows": 2_000,
            "footer_sha256": _footer_digest(content),
        }
    ]
    with pytest.raises(InputError, match="no parquet file matches"):
        cal.audit("memory://bucket/nothing")


def test_behind_a_url_columns_are_read_by_what_they_hold(tmp_path):
    """Names that say too little are looked into, through fsspec as the rest."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    rows = frame(2_000).rename({"confidence": "p_true", "correct": "is_right"})
    for number, part in enumerate((rows[:1_500], rows[1_500:])):
        with system.open(f"/bucket/named/part-{number}.parquet", "wb") as file:
            part.write_parquet(file, statistics=False)
        part.write_parquet(tmp_path / f"part-{number}.parquet", statistics=False)
    behind, here = cal.audit("memory://bucket/named"), cal.audit(tmp_path, engine="local")
    assert behind["reading"]["columns"]["confidence"] == "p_true"
    assert behind["reading"]["columns"]["correct"] == "is_right"
    # Intervals differ: an address is read once, and not searched for rows that hang together.
    assert values_of(behind) == values_of(here)


def values_of(document):
    return {
        (key, name): estimate["value"]
        for key, entry in by_block(document).items()
        for name, estimate in entry["metrics"].items()
    }


@pytest.mark.parametrize("correct", ["no statistics", "a slip"])
def test_behind_a_url_a_doubtful_outcome_is_looked_into(correct):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    rows = frame(2_000)
    if correct == "a slip":
        rows = rows.with_columns(
            correct=pl.when(pl.int_range(pl.len()) == 7).then(3).otherwise("correct")
        )
    place = correct.replace(" ", "-")
    with system.open(f"/bucket/{place}/part-0.parquet", "wb") as file:
        rows.write_parquet(file, statistics=correct != "no statistics")
    if correct == "a slip":
        with pytest.raises(InputError, match=r"part-0\.parquet, row 8"):
            cal.audit(f"memory://bucket/{place}")
    else:
        assert cal.audit(f"memory://bucket/{place}")["reading"]["rows"] == 2_000


def test_a_large_table_is_streamed_without_being_asked(table, monkeypatch):
    monkeypatch.setattr(ways, "STREAM_ROWS", 10_000)
    assert cal.audit(table)["reading"]["way"] == "streamed"
    assert cal.audit(table, recalibrate="platt")["reading"]["way"] == "in memory"


def test_a_text_table_is_streamed_and_its_rows_keep_their_numbers(tmp_path):
    path = tmp_path / "t.csv"
    frame(2_000).write_csv(path)
    streamed = cal.audit(path, engine="local")
    assert streamed["source"] == str(path)
    # A text table is rewritten anyway, so that it is hashed whole.
    assert streamed["input"] == cal.audit(path)["input"]
    assert streamed["results"][0]["n"] == cal.audit(path)["results"][1]["n"]
    lines = path.read_text().splitlines()
    lines[12] = "1.5,1,small,law"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"t\.csv, row 12: the confidence must be at most 1"):
        cal.audit(path, engine="local", on_invalid="error")
    assert cal.audit(path, engine="local")["dropped"] == cal.audit(path)["dropped"]
    path.write_text("\n".join([*lines, *["1.5,1,small,law"] * 5]))
    for engine in ("local", None):
        with pytest.raises(InputError, match=r"t\.csv, row 12: the confidence must be at most 1"):
            cal.audit(path, engine=engine)


def broken(tmp_path, **changes):
    table = frame(5_000)
    for column, (row, value) in changes.items():
        values = table[column].to_list()
        values[row] = value
        table = table.with_columns(pl.Series(column, values))
    path = tmp_path / "broken.parquet"
    table.write_parquet(path, row_group_size=1_000)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": (3_456, float("nan"))}, "row 3457: the confidence is NaN"),
        ({"confidence": (10, None)}, "row 11: the confidence is missing"),
        ({"confidence": (4_999, 1.0000001)}, "row 5000: the confidence must be at most 1"),
        ({"confidence": (0, -1.0)}, "row 1: the confidence is -1"),
        ({"correct": (2_000, 2)}, "row 2001: the outcome must be 0 or 1"),
        ({"correct": (2_001, None)}, "row 2002: the outcome is missing"),
    ],
)
def test_a_broken_row_is_named_with_its_file(tmp_path, change, message):
    path = broken(tmp_path, **change)
    with pytest.raises(InputError, match=f"broken.parquet, {message}"):
        cal.audit(path, engine="local", on_invalid="error")
    dropped = cal.audit(path, engine="local", on_invalid="drop")
    (count,) = dropped["dropped"].values()
    (rows,) = dropped["dropped_rows"].values()
    number = message.split(":")[0].removeprefix("row ")
    assert count == 1
    assert rows == [f"{path}:{number}"]
    assert sum(entry["n"] for entry in dropped["results"]) == 4_999


def test_of_two_broken_files_the_first_is_named(tmp_path, monkeypatch):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        broken(tmp_path / name, confidence=(5, 2.0))
    with pytest.raises(InputError, match=r"a/broken\.parquet, row 6"):
        cal.audit(tmp_path, engine="local", on_invalid="error")


def test_questions_that_come_up_again_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    ids = pl.Series("question_id", np.arange(30_000) // 3)
    frame().with_columns(ids, model=pl.lit("m")).write_parquet(path)
    with pytest.raises(InputError, match="depend on each other"):
        cal.audit(path, engine="local")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graded": True}, "graded needs all of it"),
        ({"recalibrate": "platt"}, "recalibrate needs all of it"),
        ({"confidence": "nothing"}, "there is no column 'nothing'"),
        ({"by": ["tpic"]}, "there is no column 'tpic' for by"),
        ({"bins": 9973}, "common multiple with 60"),
    ],
)
def test_what_cannot_be_streamed_is_said(table, options, message):
    with pytest.raises(InputError, match=message):
        cal.audit(table, engine="local", **options)


def test_text_where_numbers_belong_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"confidence": ["high"], "correct": [1]}).write_parquet(path)
    with pytest.raises(InputError, match=r"t\.parquet.*confidence.*string"):
        cal.audit(path, engine="local")


def test_a_file_without_the_column_is_named(tmp_path):
    frame(100).write_parquet(tmp_path / "a.parquet")
    frame(100).drop("correct").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: there is no column 'correct'"):
        cal.audit(tmp_path, engine="local")


def test_the_command_line_takes_the_engine(table, tmp_path):
    out = tmp_path / "out.json"
    words = ["audit", str(table), "--engine", "local", "--json", str(out), "--full"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["reading"]["rows"] == 30_000
    assert "streamed" in done.output


TALKING = ("calibrant.models", "calibrant.answers.semantics", "aiohttp", "sklearn", "pandas", "ray")
DRAWING = ("jinja2", "altair", "vl_convert", "scipy.stats", "narwhals")


@pytest.mark.parametrize("options", [["--engine", "local"], []], ids=["streamed", "in memory"])
def test_an_audit_loads_no_library_that_it_does_not_use(table, options):
    """Loading is the longest part of a short audit: what is not needed stays out.

    A streamed audit needs the library for tables too: stretches are searched for dependent rows.
    """
    unused = (*TALKING, *DRAWING)
    code = (
        "import sys; from calibrant.cli.main import main\n"
        f"sys.argv = {['calibrant', 'audit', str(table), '--resamples', '20', *options]!r}\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {unused!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "95 % intervals" in done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("questions", [500, 1500, 5000])
def test_a_table_without_repeats_is_never_taken_for_one(tmp_path, questions):
    rng = np.random.default_rng(questions)
    for attempt in range(5):
        said = rng.random(2 * questions)
        path = tmp_path / f"{attempt}.parquet"
        pl.DataFrame(
            {
                "question_id": [f"{attempt}-{number}" for number in range(questions)] * 2,
                "model": ["a"] * questions + ["b"] * questions,
                "confidence": said,
                "correct": (rng.random(2 * questions) < said).astype(int),
            }
        ).write_parquet(path)
        assert len(cal.audit(path, engine="local")["results"]) == 2
