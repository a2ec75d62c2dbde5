"""Folders of logs read as one, files that only stand for a log, and the interim Inspect layout."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.recognise import KINDS, read_log, recognise
from calibrant.verbs.import_logs import import_logs
from calibrant.verbs.opening.open_input import logs_in
from ecosystem import frameworks, table_of_logs

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def blocks(document):
    return {(b["model"], b["method"]): b["metrics"] for b in document["results"]}


def test_a_folder_of_lm_eval_is_its_files(tmp_path):
    files = sorted((FIXTURES / "lm_eval").glob("samples_*.jsonl"))
    assert len(files) == 3
    # lm-eval writes a folder per model, with the totals beside the samples.
    place = tmp_path / "out" / "model"
    shutil.copytree(FIXTURES / "lm_eval", place)
    assert [path.name for path in logs_in(tmp_path)] == [path.name for path in files]
    whole = cal.audit(tmp_path / "out", resamples=20)
    assert blocks(whole) == blocks(cal.audit(files, resamples=20))
    import_logs(tmp_path / "out", tmp_path / "study")
    assert blocks(cal.audit(tmp_path / "study", resamples=20)) == blocks(whole)


def test_a_folder_of_inspect_logs(tmp_path):
    shutil.copy(FIXTURES / "inspect.eval", tmp_path / "a.eval")
    assert blocks(cal.audit(tmp_path, resamples=20)) == blocks(
        cal.audit(FIXTURES / "inspect.eval", resamples=20)
    )
    shutil.copy(FIXTURES / "inspect.eval", tmp_path / "b.eval")
    with pytest.raises(InputError, match="is there twice"):
        cal.audit(tmp_path)


def test_a_folder_of_two_tools_is_refused(tmp_path):
    shutil.copy(FIXTURES / "inspect.eval", tmp_path)
    shutil.copy(FIXTURES / "deepeval.json", tmp_path)
    with pytest.raises(InputError, match="several tools: 1 of deepeval, 1 of inspect"):
        cal.audit(tmp_path)


def test_a_folder_of_helm_runs_is_read_as_one(tmp_path):
    for name in ("one", "two"):
        shutil.copytree(FIXTURES / "helm", tmp_path / "runs" / name)
    assert [path.name for path in logs_in(tmp_path)] == ["one", "two"]
    with pytest.raises(InputError, match="is there twice"):
        cal.audit(tmp_path)
    shutil.rmtree(tmp_path / "runs" / "two")
    assert blocks(cal.audit(tmp_path, resamples=20)) == blocks(
        cal.audit(FIXTURES / "helm", resamples=20)
    )
    shutil.copy(FIXTURES / "inspect.eval", tmp_path)
    with pytest.raises(InputError, match="several tools: 1 of inspect, 1 of helm"):
        cal.audit(tmp_path)


def test_one_file_of_a_helm_run_is_named():
    files = sorted((FIXTURES / "helm").glob("*.json"))
    assert {"scenario_state.json", "per_instance_stats.json"} <= {path.name for path in files}
    for path in files:
        for action in (cal.audit, read_log, cal.compare):
            with pytest.raises(InputError, match="one file of a HELM run, and the run is its fold"):
                action(path)


def test_a_file_with_the_name_of_a_part_is_read_as_what_it_is(tmp_path):
    path = tmp_path / "stats.json"
    path.write_text('[{"confidence": 0.9, "correct": 1}, {"confidence": 0.4, "correct": 0}]')
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 2


def test_the_next_step_of_a_log_without_confidence_is_to_choose_one(shared_data):
    without = shared_data / "logs" / "inspect" / "interim_version_3.eval"
    assert import_logs(without)["next"]["command"] == "calibrant methods"


def test_the_next_step_of_an_import_can_be_typed(tmp_path):
    log = FIXTURES / "promptfoo.json"
    assert import_logs(log)["next"]["command"] == f"calibrant audit {log}"
    out = tmp_path / "a study"
    assert import_logs(log, out)["next"]["command"] == f"calibrant audit '{out}'"
    table = tmp_path / "t.csv"
    table.write_text("p,ok\n0.9,1\n0.3,0\n0.8,1\n")
    found = import_logs(table, confidence="p", correct="ok")
    assert found["next"]["command"] == f"calibrant audit {table} --confidence p --correct ok"
    assert found["source"] == str(table)
    assert len(found["input"]) == 1


def test_a_folder_of_parquet_stays_a_table(tmp_path):
    table = pl.DataFrame({"confidence": [0.9, 0.6, 0.7], "correct": [1, 0, 1]})
    table.write_parquet(tmp_path / "part.parquet")
    assert cal.audit(tmp_path, resamples=20)["results"][0]["n"] == 3
    shutil.copy(FIXTURES / "deepeval.json", tmp_path)
    assert logs_in(tmp_path) == []


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.jsonl", "t.eval"])
def test_a_pointer_is_named(tmp_path, name):
    path = tmp_path / name
    path.write_text(POINTER)
    for action in (cal.audit, read_log, cal.compare):
        with pytest.raises(InputError, match=r"Git LFS pointer.*12,345 bytes.*\n.*git lfs pull"):
            action(path)


def test_totals_without_samples_are_named():
    (path,) = (FIXTURES / "lm_eval").glob("results_*.json")
    with pytest.raises(InputError, match=r"totals only, no samples\n.*samples_\*\.jsonl"):
        cal.audit(path)


def test_the_interim_inspect_layout_is_read(shared_data):
    path = shared_data / "logs" / "inspect" / "interim_version_3.eval"
    log = read_log(path)
    assert log.draws.select("question_id", "answer", "correct").rows() == [("0", "done", 0.0)]
    assert (log.expected, log.notes) == (1, [])


@frameworks.needed
def test_the_interim_layout_is_what_inspect_reads(tmp_path, shared_data):
    path = shared_data / "logs" / "inspect" / "interim_version_3.eval"
    script = HERE / "read_with_inspect.py"
    frameworks.run("python", script, path, cwd=tmp_path, home=tmp_path)
    ours = read_log(path)
    for table in ("questions", "draws", "scores"):
        theirs = pl.read_parquet(tmp_path / f"{path.name}.{table}.parquet")
        assert theirs.equals(getattr(ours, table)), table


def test_the_log_says_how_many_samples_its_results_have(tmp_path):
    log = json.loads((FIXTURES / "inspect.json").read_text())
    assert log["results"]["total_samples"] == 12
    told = "its results are those of 12 samples; 9 could be read"
    assert not any("its results" in note for note in read_log(FIXTURES / "inspect.json").notes)
    log["samples"] = log["samples"][:9]
    log["eval"]["dataset"].pop("sample_ids")
    path = tmp_path / "short.json"
    path.write_text(json.dumps(log))
    found = read_log(path)
    assert found.expected == 12
    assert told in found.notes


def test_the_page_tells_what_each_file_gives(shared_data):
    found = table_of_logs.table(shared_data)
    assert found == table_of_logs.written()
    lines = [" | ".join(cells) for cells in found]
    assert all("Traceback" not in line and len(line) < 400 for line in lines)


def test_every_kind_has_its_row_on_the_page():
    text = (table_of_logs.ROOT / "docs" / "import.md").read_text(encoding="utf-8")
    first = text.partition("## What is refused")[0]
    rows = {line.split("`")[1]: line for line in first.splitlines() if line.startswith("| `")}
    assert [kind for kind in KINDS if kind not in rows] == []
    # What is read, what becomes a grade, what a confidence, what is refused.
    assert [kind for kind in KINDS if sum(map(bool, rows[kind].split(" | "))) != 5] == []


def test_every_shared_file_is_read_or_refused_in_one_line(shared_data):
    logs = shared_data / "logs"
    for path in sorted(logs.rglob("*")):
        try:
            cal.audit(path, resamples=20)
        except InputError as error:
            rule, *hints = str(error).splitlines()
            assert len(rule) - len(str(path)) < 200, rule
            assert len(hints) <= 1
            assert "cannot be read" not in rule


def test_every_shared_log_is_read_as_what_it_is(shared_data):
    logs = shared_data / "logs"
    for folder in sorted((logs / "helm").iterdir()):
        assert recognise(folder) == "helm"
        # What stands there for a confidence is none: its grades are told, and why that is all.
        found = cal.audit(folder)
        assert found["schema"] == "calibrant.accuracy/1"
        assert any("placeholder" in note for note in found["data"]["notes"])
    plain = logs / "simple_evals" / "gpqa_60.jsonl"
    with pytest.raises(InputError, match="no column 'confidence'"):
        cal.audit(plain)
    nested = logs / "simple_evals" / "nested_classifier_150.jsonl"
    with pytest.raises(InputError, match="no column 'correct'"):
        cal.audit(nested, confidence="classifier.confidence")
