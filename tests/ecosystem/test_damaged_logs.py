"""What is readable is imported, the rest is listed; rows never just go missing."""

import functools
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.recognise import KINDS, read_log, recognise
from calibrant.data.logs.zip_entries import ZipEntries
from calibrant.verbs.import_logs import import_logs
from support import call

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
    listed = cal.data.read_table(tmp_path / "study" / "unreadable.csv")
    assert listed.height == entry["unreadable"] == len(entry["problems"])
    done = call("import", path, "--strict")
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
        done = call("import", path)
        assert done.returncode == 2, (name, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_json_file_that_is_neither_table_nor_log(lm_eval_file):
    results = next(lm_eval_file("tiny_open").parent.glob("results_*.json"))
    done = call("audit", results)
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


# -- the other kinds -----------------------------------------------------------------------------


def helm_folder(tmp_path, **damage):
    """Copy the HELM fixture; `damage` maps the stem of a file to a function of its bytes."""
    folder = tmp_path / "run"
    folder.mkdir()
    for source in (FIXTURE.parent / "helm").iterdir():
        change = damage.get(source.stem, bytes)
        (folder / source.name).write_bytes(change(source.read_bytes()))
    return folder


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_helm_run_cut_short_names_what_was_graded_and_is_not_there(tmp_path, share):
    folder = helm_folder(tmp_path, scenario_state=lambda data: data[: int(len(data) * share)])
    log = read_log(folder)
    assert log.expected is None
    assert 0 < log.draws.height < 12 or share == 0.99
    missing = [problem for problem in log.problems if "graded, but not in" in problem.reason]
    assert log.draws.height + len(missing) == 12
    assert log.problems[0].place == "scenario_state.json"
    audited = cal.audit(folder, resamples=20)
    assert audited["dropped"]["unreadable_in_log"] == len(log.problems)


def test_helm_grades_cut_short_leave_draws_without_a_grade(tmp_path):
    folder = helm_folder(tmp_path, per_instance_stats=lambda data: data[: len(data) // 2])
    log = read_log(folder)
    assert log.draws.height == 12
    ungraded = log.draws["correct"].null_count()
    assert 0 < ungraded < 12
    assert log.problems[0].place == "per_instance_stats.json"
    assert f"{12 - ungraded} rows before it" in log.problems[0].reason


def test_a_helm_run_whose_specification_is_damaged(tmp_path):
    folder = helm_folder(tmp_path, run_spec=lambda data: data[:10])
    log = read_log(folder)
    assert log.draws.height == 12
    assert set(log.draws["task"]) == {"run"}
    assert any("run_spec.json" in note for note in log.notes)


def judged_file(tmp_path, count):
    judged = {"model_answer": "7", "correct_answer": "7", "correct": "yes", "confidence": 80}
    entry = {"model": "m", "response": "7", "judge_response": judged}
    path = tmp_path / "judged.json"
    path.write_text(json.dumps({f"q{i}": entry for i in range(count)}))
    return path


@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_judged_answers_cut_short(tmp_path, share):
    path = judged_file(tmp_path, 40)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    log = read_log(path)
    assert log.draws.height == pytest.approx(40 * share, abs=1)
    assert len(log.problems) == 1
    assert "the JSON is damaged" in log.problems[0].reason


def test_judged_answers_damaged_in_the_middle_are_counted(tmp_path):
    path = judged_file(tmp_path, 40)
    data = path.read_bytes().replace(b'"q30": {', b'"q30": @', 1)
    path.write_bytes(data)
    log = read_log(path)
    assert log.draws.height == 30
    assert any("at least 10 of its entries" in problem.reason for problem in log.problems)


def test_a_batch_output_cut_short(tmp_path):
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}
    body = {"model": "m", "choices": [choice]}
    rows = [
        {"custom_id": str(i), "response": {"status_code": 200, "body": body}} for i in range(10)
    ]
    rows[4]["response"]["body"] = {"model": "m"}
    path = tmp_path / "output.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text[: len(text) - 30])
    log = read_log(path)
    assert log.draws.height == 8
    assert [problem.place for problem in log.problems] == ["line 5", "line 10"]


def lm_eval_copy(lm_eval_file, tmp_path, change, results=bytes):
    source = lm_eval_file("tiny_open")
    beside = next(source.parent.glob("results_*.json"))
    (tmp_path / beside.name).write_bytes(results(beside.read_bytes()))
    path = tmp_path / source.name
    path.write_bytes(b"".join(change(source.read_bytes().splitlines(keepends=True))))
    return path


def test_lm_eval_rows_of_one_filter_missing(lm_eval_file, tmp_path):
    path = lm_eval_copy(lm_eval_file, tmp_path, lambda lines: lines[:-3])
    log = read_log(path)
    # Every question is there, but three have lost the grade of their majority answer.
    assert log.questions.height == 20
    (problem,) = log.problems
    assert problem.place == "filter majority"
    assert "3 of the 20 questions" in problem.reason


def test_lm_eval_rows_twice(lm_eval_file, tmp_path):
    path = lm_eval_copy(lm_eval_file, tmp_path, lambda lines: [*lines, lines[0]])
    log = read_log(path)
    assert log.draws.height == 100
    assert [problem.place for problem in log.problems] == ["line 41"]


def test_lm_eval_results_damaged(lm_eval_file, tmp_path):
    path = lm_eval_copy(lm_eval_file, tmp_path, list, results=lambda data: data[:50])
    log = read_log(path)
    assert log.expected is None
    assert any("cannot be read" in note for note in log.notes)


def test_a_file_read_as_what_it_is_not_ends_with_a_message(lm_eval_file, tmp_path):
    (tmp_path / "list.json").write_text("[1, 2]")
    folder = FIXTURE.parent
    names = ("inspect.eval", "inspect.json", "uqlm.csv", "lm_polygraph.pth", "helm")
    files = [*(folder / name for name in names), tmp_path / "list.json", lm_eval_file("tiny_open")]
    for file in files:
        for kind in KINDS:
            try:
                read = read_log(file, kind=kind)
            except InputError:
                continue
            # Whatever it was taken for, nothing is made up: a read row comes from its own kind.
            if file.name == "inspect.json" and kind == "table":
                # Nested objects are a table to who says so: of what the log itself says.
                assert facts_of(read.scores, "id") == facts_of(
                    read_log(file).scores.filter(pl.col("method") == "verb"), "question_id"
                )
            elif read.draws.height or read.scores.height:
                assert kind == recognise_all(file), (file, kind)


def facts_of(scores, question):
    return sorted(scores.select(question, "confidence", "correct").rows())


def recognise_all(file):
    return "uqlm" if file.name == "uqlm.csv" else recognise(file)
