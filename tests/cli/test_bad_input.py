"""Whatever is given, a verb ends with a message that names it, never with a traceback."""

import shlex

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from calibrant.bench.evaluate import bench_evaluate
from calibrant.cli.main import app
from calibrant.core.errors import InputError, error_source
from calibrant.core.places import check_input
from calibrant.data import Study
from calibrant.data.sources.objects import follow_file
from calibrant.verbs.monitor import monitor
from cli.all_commands import commands

run = CliRunner().invoke
HEADER = "question_id,model,method,confidence,correct,topic,domain,k,time"


def good_rows(n=60):
    rng = np.random.default_rng(0)
    said, right = rng.uniform(0.4, 1, n), rng.integers(0, 2, n)
    return [
        f"q{i},small,consistency,{said[i]:.3f},{right[i]},law,math,{1 + i % 2},"
        f"2026-01-{1 + i % 28:02}"
        for i in range(n)
    ]


def with_cell(name, value):
    rows = [row.split(",") for row in good_rows()]
    rows[5][HEADER.split(",").index(name)] = value
    return "\n".join([HEADER, *(",".join(row) for row in rows)]) + "\n"


FILES = {
    "empty": "",
    "header alone": HEADER + "\n",
    "other columns": "a,b\n1,2\n3,4\n",
    "bytes": bytes(range(256)) * 8,
    "cut parquet": b"PAR1" + b"\x01" * 200,
    "damaged parquet": b"PAR1xxxxxxxxPAR1",
    "half json": '{"confidence": 0.5, "correct": 1}\n{"confidence":\n',
    "nested": '{"confidence": {"a": 1}, "correct": 1}\n' * 3,
    "mixed": '{"confidence": 0.5, "correct": 1}\n{"confidence": "x", "correct": [1]}\n',
    "page": "<html><body>404</body></html>",
    "utf-16": ("\n".join([HEADER, *good_rows()])).encode("utf-16"),
    "latin-1": ("\n".join([HEADER, *good_rows()])).replace("law", "l\xe4w").encode("latin-1"),
    "no gzip": b"\x1f\x8b\x08\x00abc",
    "words": with_cell("confidence", "high"),
    "nan": with_cell("confidence", "NaN"),
    "huge": with_cell("confidence", "1e308"),
    "beyond huge": with_cell("confidence", "1e999"),
    "outcome 2": with_cell("correct", "2"),
    "outcome huge": with_cell("correct", "9" * 40),
}
VERBS_WITH_INPUT = {
    "audit": ["audit", "{}", "--resamples", "20"],
    "recalibrated audit": ["audit", "{}", "--resamples", "20", "--recalibrate", "platt"],
    "groups": ["groups", "{}", "--features", "topic"],
    "plan": ["plan", "{}", "--precision", "0.1"],
    "label next": ["label", "next", "{}", "--out", "{out}"],
    "label status": ["label", "status", "{}"],
    "monitor": ["monitor", "{}", "--every", "50"],
    "followed monitor": ["monitor", "{}", "--follow", "0.01"],
    "bench check": ["bench", "check", "{}"],
    "bench evaluate": ["bench", "evaluate", "{}", "--reference", "consistency"],
    "report": ["report", "{}"],
    "methods": ["methods", "{}"],
}


def called(words, path):
    out = str(path.parent / "out.csv")
    done = run(app, [word.replace("{out}", out).replace("{}", str(path)) for word in words])
    return done.exception


@pytest.mark.parametrize("content", FILES)
@pytest.mark.parametrize("verb", VERBS_WITH_INPUT)
def test_a_bad_file_ends_with_a_message_that_names_it(verb, content, tmp_path):
    data = FILES[content]
    path = tmp_path / "given.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    error = called(VERBS_WITH_INPUT[verb], path)
    # Some verbs can use some of these: whoever labels next needs no outcome.
    assert error is None or isinstance(error, InputError), repr(error)
    if error is not None:
        assert "given.csv" in str(error)


@pytest.mark.parametrize("content", ["words", "outcome huge"])
def test_a_report_leads_to_the_audit_that_reads_the_table(content, tmp_path):
    """A report has no options that choose a reading: the command it names has, and works."""
    path = tmp_path / "given.csv"
    path.write_text(FILES[content])
    error = called(VERBS_WITH_INPUT["report"], path)
    command = str(error).rpartition("an audit has: ")[2]
    words = shlex.split(command.replace("audit.html", str(tmp_path / "audit.html")))
    assert words[:3] == ["calibrant", "audit", str(path)]
    assert run(app, words[1:]).exception is None
    assert (tmp_path / "audit.html").stat().st_size


WITH_MODELS = {
    name: words
    for name, words in VERBS_WITH_INPUT.items()
    if name not in ("bench check", "report", "methods", "recalibrated audit")
} | {
    "compare": ["compare", "{}", "--resamples", "20"],
    "cascade": ["cascade", "{}", "--models", "small,large", "--price", "1,8",
                "--features", "topic"],
}  # fmt: skip


@pytest.mark.parametrize("verb", WITH_MODELS)
def test_a_row_without_a_model_is_refused_by_every_verb(verb, tmp_path):
    path = tmp_path / "given.csv"
    path.write_text(with_cell("model", ""))
    error = called(WITH_MODELS[verb], path)
    assert isinstance(error, InputError), repr(error)
    assert "given.csv, row 6: the row names no model (model = null)" in str(error)
    assert "--on-invalid drop" in str(error)


def test_an_import_lists_the_row_without_a_model(tmp_path):
    path = tmp_path / "given.csv"
    path.write_text(with_cell("model", ""))
    done = run(app, ["import", str(path), "--full"])
    assert done.exit_code == 0
    assert "59 rows were read" in done.output
    assert "the row names no model (model_missing)" in done.output


@pytest.mark.parametrize("place", ["", "x" * 300, "a\0b", "loop", "nothing.csv", "folder"])
@pytest.mark.parametrize("verb", VERBS_WITH_INPUT)
def test_a_bad_place_ends_with_a_message(verb, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    done = run(app, [word.replace("{out}", "o.csv").replace("{}", place)
                     for word in VERBS_WITH_INPUT[verb]])  # fmt: skip
    assert isinstance(done.exception, InputError | SystemExit), repr(done.exception)
    assert done.exit_code != 0


def test_an_empty_path_is_not_the_folder_one_is_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"confidence": [0.5], "correct": [1]}).write_parquet("a.parquet")
    with pytest.raises(InputError, match="path of an input is empty"):
        check_input("")
    check_input(".")


def test_a_row_of_a_stream_is_counted_from_its_start(tmp_path):
    path = tmp_path / "stream.csv"
    rows = [f"0.{i % 9 + 1},{i % 2}" for i in range(250)]
    rows[207] = "1.7,1"
    path.write_text("\n".join(["confidence,correct", *rows]) + "\n")
    with pytest.raises(InputError, match=r"stream\.csv, row 208: the confidence must be at most 1"):
        monitor(follow_file(path, 100, 0.01), every=50, stream=str(path))


def test_the_name_is_put_in_only_where_there_is_none():
    with pytest.raises(InputError, match=r"^own\.csv: x"), error_source("other.csv"):
        raise InputError("x", source="own.csv")
    with pytest.raises(InputError, match=r"^x"), error_source(None):
        raise InputError("x")


def test_a_damaged_table_of_a_study_is_named(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/scores.parquet").write_bytes(b"PAR1junk")
    with pytest.raises(InputError, match=r"scores\.parquet: the table cannot be read"):
        Study(tmp_path).read("scores")


@pytest.mark.parametrize("value", ["many", "99999999999999999999", "0", "1.5", ""])
def test_a_k_that_is_no_number_of_answers_is_named_with_its_row(value, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(with_cell("k", value))
    with pytest.raises(InputError, match=r"scores\.csv") as error:
        bench_evaluate(path, reference="consistency")
    assert "k" in error.value.rule


def test_questions_without_ids_or_with_one_twice_are_refused(tmp_path):
    scores, questions = tmp_path / "scores.csv", tmp_path / "questions.csv"
    scores.write_text("\n".join([HEADER, *good_rows()]))
    questions.write_text("id,k\nq0,1\n")
    with pytest.raises(InputError, match=r"questions\.csv: there is no column 'question_id'"):
        bench_evaluate(scores, questions=questions)
    questions.write_text("question_id,k\nq0,1\nq0,2\n")
    with pytest.raises(InputError, match=r"questions\.csv, row 2: the question 'q0' appears more"):
        bench_evaluate(scores, questions=questions)


def test_every_input_of_every_verb_is_checked_before_it_is_opened():
    """An argument that names something to read says so in its declaration."""
    arguments = [
        (words, parameter)
        for words, command in commands()
        for parameter in command.verb.parameters.values()
        if parameter.option.argument and words not in ("init", "models fetch")
    ]
    assert len(arguments) > 12
    for words, parameter in arguments:
        assert parameter.option.place in ("read", "file or folder"), (words, parameter.name)


NUMBERS = {
    "plan": ["--precision", "--lipschitz", "--drift", "--stages"],
    "monitor": ["--horizon", "--tolerance", "--alpha", "--every"],
    "groups": ["--level", "--alpha", "--threshold", "--repeats", "--max-groups", "--seed"],
    "bench": ["--k", "--limit", "--per-k"],
}
STARTS = {
    "plan": ["plan", "--error-rate", "0.1", "--precision", "0.1"],
    "monitor": ["monitor", "{}", "--every", "50"],
    "groups": ["groups", "{}", "--features", "topic"],
    "bench": ["bench", "mace", "--out", "{out}", "--per-k", "1"],
}


@pytest.mark.parametrize("value", ["-1", "nan", "1e308", "99999999999999999999", "many", ""])
@pytest.mark.parametrize(
    ("verb", "option"), [(verb, option) for verb, given in NUMBERS.items() for option in given]
)
def test_a_number_that_makes_no_sense_is_refused(verb, option, value, tmp_path):
    path = tmp_path / "given.csv"
    path.write_text("\n".join([HEADER, *good_rows()]) + "\n")
    error = called([*STARTS[verb], option, value], path)
    refused = isinstance(error, InputError) or (isinstance(error, SystemExit) and error.code == 2)
    # Nothing given is the default: no stage, a batch of 100 rows.
    default = value == "" and option in ("--stages", "--every")
    assert refused or (default and error is None), repr(error)


def test_an_unknown_way_to_choose_questions_is_refused(tmp_path):
    out = str(tmp_path / "o.jsonl")
    done = run(app, ["bench", "mace", "--out", out, "--per-k", "1", "--strata", "kmeans"])
    assert isinstance(done.exception, InputError)
    assert "ngrams, sentence, random" in str(done.exception)


def test_an_option_whose_value_was_forgotten_does_not_take_the_next_option():
    words = ["plan", "scores.csv", "--rank", "--on-invalid", "drop"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "Option '--rank' needs a value: --rank METRIC" in done.output


@pytest.mark.parametrize("words", ["audit", "compare", "groups", "decide", "plan", "monitor"])
def test_some_percentages_among_fractions_lead_to_what_every_verb_can_do(words, tmp_path):
    path = tmp_path / "percent.csv"
    table = {
        "question_id": [*range(150)] * 2,
        "model": ["small"] * 150 + ["large"] * 150,
        "confidence": [84.0, 0.6, 91.0] * 100,
        "correct": [1, 0, 1] * 100,
        "topic": ["a", "b"] * 150,
    }
    pl.DataFrame(table).write_csv(path)
    more = {
        "decide": ["--max-error", "0.1"],
        "plan": ["--claim", "ece<0.1"],
        "groups": ["--features", "topic"],
    }.get(words, [])
    error = run(app, [words, str(path), *more]).exception
    assert [reading.options for reading in error.readings] == [
        {"scale": "mixed"},
        {"scale": "percent"},
    ]
    first, *ways, command = str(error).splitlines()
    assert first.endswith("33% of the confidences are at most 1, the others reach 91")
    assert ways == [
        "  1) values up to 1 are shares, the others percentages",
        "  2) all are percentages",
    ]
    assert shlex.split(command) == ["calibrant", words, str(path), *more, "--scale", "mixed"]
    for scale in ("mixed", "percent"):
        again = run(app, [words, str(path), *more, "--scale", scale]).exception
        assert again is None, again


@pytest.mark.parametrize("words", ["audit", "compare", "groups", "decide", "plan"])
def test_repeated_questions_lead_to_what_every_verb_can_do(words, tmp_path):
    path = tmp_path / "twice.csv"
    ids, prompts = [*range(80)] * 2, ["a"] * 80 + ["b"] * 80
    table = {"question_id": ids, "prompt": prompts, "confidence": [0.5, 0.8] * 80}
    pl.DataFrame({**table, "correct": [0, 1] * 80}).write_csv(path)
    more = {
        "decide": ["--max-error", "0.5"],
        "plan": ["--claim", "ece<0.1"],
        "groups": ["--features", "prompt"],
    }.get(words, [])
    error = run(app, [words, str(path), *more]).exception
    error.for_shell()
    assert "(--question id,prompt); if the rows are repeated answers to one question, use" in str(
        error
    )
    named = [words, str(path), *more, "--question", "question_id,prompt"]
    again = run(app, named).exception
    assert again is None or "more than once" not in str(again)
