"""What is readable is imported, the rest is listed; rows never just go missing."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.api.import_logs import import_logs
from calibrant.core.errors import InputError
from calibrant.records.convert import read_log, recognise
from calibrant.records.convert.zip_entries import ZipEntries

CALIBRANT = Path(sys.executable).parent / "calibrant"
FIXTURE = Path(__file__).parent / "fixtures" / "inspect.eval"
WHOLE = FIXTURE.read_bytes()


@functools.cache
def whole_rows():
    rows = read_log(FIXTURE).draws.iter_rows(named=True)
    return {(row["question_id"], row["draw"]): row for row in rows}


def accounted(log):
    """Every sample that the header promises is read or listed, exactly once."""
    read = {
        f"samples/{q}_epoch_{d + 1}.json"
        for q, d in log.draws.select("question_id", "draw").iter_rows()
    }
    listed = [problem.place for problem in log.problems if problem.place.startswith("samples/")]
    assert len(listed) == len(set(listed))
    assert not read & set(listed)
    return len(read) + len(listed)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7, 0.9, 0.999])
def test_a_log_cut_short(tmp_path, share):
    path = tmp_path / "cut.eval"
    path.write_bytes(WHOLE[: int(len(WHOLE) * share)])
    log = read_log(path)
    assert log.expected == 80
    assert accounted(log) == 80
    # Entries lie one after the other: about as much is read as there is.
    assert log.draws.height >= int(80 * share) - 10
    assert any("no directory" in note for note in log.notes)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, len(WHOLE) - 1), length=st.integers(1, 4000), seed=st.integers(0, 255))
def test_damage_anywhere_is_noticed(tmp_path, place, length, seed):
    path = tmp_path / "damaged.eval"
    end = min(place + length, len(WHOLE))
    path.write_bytes(WHOLE[:place] + bytes([seed]) * (end - place) + WHOLE[end:])
    if recognise(path) is None:
        return  # its first bytes are gone: no longer a zip file, and refused as such
    try:
        log = read_log(path)
    except InputError:
        return
    if log.expected is not None:
        assert accounted(log) >= 80
    whole = whole_rows()
    for row in log.draws.iter_rows(named=True):
        good = whole[row["question_id"], row["draw"]]
        assert (row["text"], row["correct"]) == (good["text"], good["correct"])


def test_one_flipped_bit_costs_one_sample(tmp_path):
    with ZipEntries(FIXTURE) as archive:
        entry = archive.entries["samples/city-3_epoch_4.json"]
    data = bytearray(WHOLE)
    data[entry.start + entry.packed // 2] ^= 1
    path = tmp_path / "bit.eval"
    path.write_bytes(data)
    log = read_log(path)
    assert log.draws.height == 79
    assert [problem.place for problem in log.problems] == ["samples/city-3_epoch_4.json"]
    audited = cal.audit(path, resamples=20)
    assert audited["dropped"]["unreadable_in_log"] == 1
    assert "city-3_epoch_4" in audited["dropped_rows"]["unreadable_in_log"][0]


def test_the_list_is_written_beside_the_tables(tmp_path):
    path = tmp_path / "cut.eval"
    path.write_bytes(WHOLE[: len(WHOLE) // 2])
    result = import_logs(path, tmp_path / "study")
    entry = result["results"][0]
    listed = cal.records.read_table(tmp_path / "study" / "unreadable.csv")
    assert listed.height == entry["unreadable"] == len(entry["problems"])
    done = subprocess.run([CALIBRANT, "import", path, "--strict"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "could not be read" in done.stderr


def test_json_cut_short(tmp_path):
    data = FIXTURE.with_suffix(".json").read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(data[: len(data) * 2 // 3])
    log = read_log(path)
    assert accounted(log) == 12
    assert 4 <= log.draws.height < 12


def test_lm_eval_lines_cut_and_damaged(lm_eval_file, tmp_path):
    source = lm_eval_file("tiny_choice")
    folder = tmp_path / "run"
    folder.mkdir()
    results = next(source.parent.glob("results_*.json"))
    (folder / results.name).write_bytes(results.read_bytes())
    lines = source.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"doc_id": 3, "doc": {\n'
    path = folder / source.name
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:40])
    log = read_log(path)
    assert log.draws.height == 27
    assert [problem.place for problem in log.problems] == ["line 4", "line 29", path.name]
    assert "3 of the 30" in log.problems[-1].reason


def test_a_sample_of_another_layout_is_listed(tmp_path):
    log = json.loads(FIXTURE.with_suffix(".json").read_text())
    log["samples"][0]["output"] = {"choices": "none"}
    path = tmp_path / "layout.json"
    path.write_text(json.dumps(log))
    read = read_log(path)
    assert read.draws.height == 11
    assert "layout" in read.problems[0].reason


def test_no_traceback_for_what_is_no_log(tmp_path):
    for name, content in {
        "a.eval": b"PK\x03\x04rubbish",
        "b.json": b'{"eval_id": ',
        "c": b"",
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        done = subprocess.run([CALIBRANT, "import", path], capture_output=True, text=True)
        assert done.returncode == 2, (name, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_json_file_that_is_neither_table_nor_log(lm_eval_file):
    results = next(lm_eval_file("tiny_open").parent.glob("results_*.json"))
    done = subprocess.run([CALIBRANT, "audit", results], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert str(results) in done.stderr


def test_a_value_of_another_type_costs_its_own_row_only(tmp_path):
    log = json.loads(FIXTURE.with_suffix(".json").read_text())
    log["samples"][2]["output"]["usage"]["input_tokens"] = "many"
    log["samples"][5]["output"]["choices"][0]["stop_reason"] = {"why": "stop"}
    path = tmp_path / "types.json"
    path.write_text(json.dumps(log))
    read = read_log(path)
    assert read.draws.height == 10
    assert len(read.problems) == 2
    assert all("another type" in problem.reason for problem in read.problems)
