"""The command line of the benchmark: files, exit codes, messages."""

import json
import shlex

import polars as pl
import pytest
from click.testing import CliRunner

from calibrant.cli.main import app
from calibrant.core.errors import ClaimFailed, InputError

COLUMNS = {"question_id", "text", "references", "k", "domain"}


def run(*words):
    return CliRunner().invoke(
        app, ["bench", *(str(word) for word in words)], catch_exceptions=False
    )


def test_the_fixed_command_writes_the_fixed_columns(tmp_path):
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for file in files:
        done = run("mace", "--domain", "math", "--k", "1,2,4,6", "--per-k", 10, "--seed", 7,
                   "--out", file)  # fmt: skip
        assert done.exit_code == 0
        assert "40 questions" in done.output
    assert files[0].read_bytes() == files[1].read_bytes()
    rows = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert len(rows) == 40
    for row in rows:
        assert row.keys() >= COLUMNS
        assert len(row["references"]) == row["k"]
        assert all(isinstance(names, list) for names in row["references"])
    assert run("check", files[0]).exit_code == 0


def test_the_next_step_of_a_domain_of_ones_own_can_be_taken_as_it_stands(tmp_path, monkeypatch):
    CliRunner().invoke(app, ["init", str(tmp_path / "mine"), "--domain"])
    monkeypatch.chdir(tmp_path / "mine")
    words = ["mace", "--k", "2", "--per-k", 3, "--out", tmp_path / "q.jsonl", "--domain-file"]
    done = run(*words, "borders.toml")
    assert done.exit_code == 0
    step = done.output.partition("Next:")[2].partition("More:")[0].replace("\\\n", " ")
    name, *words = shlex.split(step)
    assert name == "calibrant"
    checked = CliRunner().invoke(app, words, catch_exceptions=False)
    assert checked.exit_code == 0
    assert "All 3 questions follow from their list" in " ".join(checked.output.split())


def test_a_wrong_reference_ends_with_exit_code_1(tmp_path):
    path = tmp_path / "bad.parquet"
    pl.DataFrame(
        {"text": ["Name one perfect square from 5 to 20, both included."],
         "references": [["9", "17"]], "domain": ["math"]}
    ).write_parquet(path)  # fmt: skip
    words = ["bench", "check", str(path), "--json", str(tmp_path / "found.json")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ClaimFailed)
    assert done.exception.exit_code == 1
    assert "not an answer: 17" in " ".join(done.output.split())
    assert json.loads((tmp_path / "found.json").read_text())["schema"] == "calibrant.bench_check/1"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--k", "one"], "comma list of whole numbers"),
        (["--domain", "mth"], "did you mean 'math'"),
        (["--kinds", "prim"], "did you mean 'prime'"),
        (["--domain", "language", "--strata", "kmeans"], "strata is one of"),
        (["--domain", "river"], "--triples"),
        (["--triples", "absent.csv"], "does not exist"),
    ],
)
def test_bad_options_are_refused_with_the_rule(tmp_path, words, rule):
    with pytest.raises(InputError, match=rule):
        run("mace", "--out", tmp_path / "x.jsonl", "--per-k", 3, *words)
    assert not (tmp_path / "x.jsonl").exists()


def test_evaluate_reads_scores_and_writes_json(tmp_path):
    frame = pl.DataFrame(
        {"question_id": [f"q{i}" for i in range(80)], "method": ["verb"] * 80,
         "confidence": [0.1 + 0.01 * i for i in range(80)],
         "correct": [i % 3 > 0 for i in range(80)], "k": [1, 2] * 40, "domain": ["award"] * 80}
    )  # fmt: skip
    frame.write_csv(tmp_path / "scores.csv")
    done = run("evaluate", tmp_path / "scores.csv", "--json", tmp_path / "out.json")
    assert done.exit_code == 0
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["schema"] == "calibrant.multi_answer/1"
    assert document["mixes"] == [[1], [1, 2]]
    assert set(document["results"][0]["by_k"][0]["accuracy"]) == {"value", "low", "high", "n"}
