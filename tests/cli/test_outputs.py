"""A place that cannot be written to: named with its rule before any work is done."""

import polars as pl
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.core.places import check_output, check_output_folder, writing
from calibrant.verbs.label import label_next
from cli.all_commands import commands
from support import two_models

run = CliRunner().invoke
# Options that name a file or folder to write.
WRITERS = {"--json", "--html", "--markdown", "--figures", "--junit", "--save", "--out"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.csv"
    two_models(60).write_csv(path)
    return path


PLACES = [
    (words, option)
    for words, command in commands()
    for parameter in command.params
    for option in parameter.opts
    if option in WRITERS
]


def arguments(words, table):
    """The least that each command needs."""
    batch = table.with_name("batch.csv")
    needed = {
        "groups": [table, "--features", "topic"],
        "cascade": [table, "--models", "small,large", "--price", "1,8", "--features", "topic"],
        "plan": ["--precision", "0.1", "--error-rate", "0.1"],
        "label next": [table, "--out", batch],
        "label add": [table, batch],
        "label export": [table, "--out", batch],
        "bench mace": ["--out", batch],
        "demo": [],
        "methods": [],
        "models list": [],
        "models fetch": [],
    }
    return [str(word) for word in needed.get(words, [table])]


def test_the_list_of_places_is_whole():
    assert {option for _, option in PLACES} == WRITERS
    assert len(PLACES) > 30


def refused(words, option):
    """What must be refused: an option that creates its folders takes a missing one."""
    makes_folders = option in ("--figures", "--out") and not words.startswith("label")
    return ["file as folder"] if makes_folders else ["file as folder", "missing folder"]


CASES = [(words, option, place) for words, option in PLACES for place in refused(words, option)]


@pytest.mark.parametrize(("words", "option", "place"), CASES, ids=map(" ".join, CASES))
def test_a_place_that_cannot_be_written_is_refused_before_the_work(words, option, place, table):
    folder = table if place == "file as folder" else table.parent / "none"
    target = folder / "result.json"
    done = run(app, [*words.split(), *arguments(words, table), option, str(target)])
    assert isinstance(done.exception, InputError), done.output
    assert done.exception.exit_code == 2
    message = str(done.exception)
    assert str(target) in message
    assert "cannot be written" in message
    assert "\n  -> " in message
    assert not (table.parent / "batch.csv").exists(), "work was done before the refusal"


def test_a_verb_writes_to_a_folder_that_is_there(table):
    place = table.parent / "plan.json"
    done = run(app, ["plan", *arguments("plan", table), "--json", str(place)])
    assert done.exit_code == 0, done.output
    assert place.is_file()


@pytest.mark.parametrize("write", ["to_json", "to_html"])
def test_a_full_disk_is_named(write):
    result = cal.audit([0.9, 0.6, 0.7, 0.4], [1, 0, 1, 0], resamples=20)
    with pytest.raises(InputError, match="/dev/full: cannot be written: No space left"):
        getattr(result, write)("/dev/full")


def test_junit_and_batches_name_their_place(table):
    place = table.parent / "none" / "checks.xml"
    done = run(app, ["audit", str(table), "--fail-if", "ece>0.9", "--junit", str(place)])
    assert isinstance(done.exception, InputError)
    assert str(place) in str(done.exception)
    with pytest.raises(InputError, match="there is no folder"):
        label_next(open_table(table), table.parent / "none" / "batch.csv", size=2)


def open_table(path):
    return pl.read_csv(path).with_columns(correct=pl.lit(None, dtype=pl.Float64))


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="it is a folder"):
        check_output(tmp_path)


def test_missing_folders_are_allowed_where_they_are_created(tmp_path):
    check_output(tmp_path / "a/b/c.json", makes_folders=True)
    check_output_folder(tmp_path / "a/b")
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match="a is a file, not a folder"):
        check_output(tmp_path / "a/b/c.json", makes_folders=True)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_no_permission_is_said(tmp_path, monkeypatch, kind):
    place = tmp_path / "x.json"
    if kind == "file":
        place.write_text("")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match="may not be"):
        check_output(place)


def test_other_errors_pass_through_unchanged(tmp_path):
    with pytest.raises(KeyError), writing(tmp_path / "x"):
        raise KeyError("x")


SHARED = {
    "--confidence",
    "--correct",
    "--model",
    "--method",
    "--question",
    "--answer",
    "--weights",
    "--by",
    "--seed",
    "--json",
    "--html",
    "--level",
    "--embed",
    "--embed-dimensions",
    "--recalibration",
}


def test_an_option_has_one_meaning_in_all_verbs():
    meanings = {}
    for words, command in commands():
        for parameter in command.params:
            for option in set(parameter.opts) & SHARED:
                found = (parameter.metavar, parameter.help.partition(" [default")[0])
                meanings.setdefault(option, {}).setdefault(found, []).append(words)
    assert set(meanings) == SHARED
    several = {option: found for option, found in meanings.items() if len(found) > 1}
    assert several == {}
