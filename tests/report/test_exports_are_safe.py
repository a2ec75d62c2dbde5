"""What is written for people runs nowhere: spreadsheets, Markdown pages, terminals."""

import csv
import io
import re

import polars as pl
import pytest

import calibrant as cal
from calibrant.cli.main import main
from calibrant.cli.terminal import announce
from calibrant.data.tables import neutral_cells

FORMULAS = ['=HYPERLINK("http://x")', "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "  =1"]
FORMULAS += ["\uff1d1+1", "\uff0b1", "\u200b=1"]


def result(model):
    return cal.audit(
        {"confidence": [0.9, 0.8, 0.7, 0.4], "correct": [1, 0, 1, 1], "model": [model] * 4},
        resamples=20,
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_a_cell_that_looks_like_a_formula_is_text(name):
    text = neutral_cells(pl.DataFrame({"model": [name]})).write_csv()
    cells = {row["model"] for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert cells == {"'" + name}


def test_numbers_and_plain_text_stay_as_they_are():
    frame = pl.DataFrame({"a": ["-0.5", "+3", "1e-5", "Paris", "a=b", None, ""], "n": range(7)})
    assert neutral_cells(frame).equals(frame)
    assert neutral_cells(pl.DataFrame({"=x": ["a"], "@id": ["b"]}), keep=("@id",)).columns == [
        "'=x",
        "@id",
    ]
    ids = pl.DataFrame({"item": ["=1"], "answer": ["=1"]})
    assert neutral_cells(ids, keep=("item",)).row(0) == ("=1", "'=1")


@pytest.mark.parametrize(
    "name",
    [
        "![x](http://evil/p.png)",
        "[click](http://evil)",
        "[a][b]",
        "http://evil.example/x",
        "javascript:alert(1)",
        "<img src=http://evil>",
        "www.evil.example",
        "WWW.evil.example/x",
        "me@evil.example",
        "xmpp:me@evil.example",
    ],
)
def test_markdown_holds_no_link_and_no_image(name):
    text = result(name).to_markdown()
    for live in ("](", "![", "][", "http:", "javascript:", "<img", "www.", "e@evil", "xmpp:"):
        assert live not in text.replace("WWW", "www")


def test_control_characters_are_not_written(capsys):
    name = "a\x1b[31mred\x07\x00\u202eb"
    shown = result(name)
    for text in (str(shown), shown.to_markdown()):
        assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in text)
        assert "\u202e" not in text


HOSTILE = "a\x1b[31mred\x07\u202eb"


def unseen(text):
    return re.findall("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_names_of_files_and_columns_are_not_obeyed_by_a_terminal(tmp_path, capsys, monkeypatch):
    """The title, the next command and headings name the file and its columns."""
    path = tmp_path / f"{HOSTILE}.csv"
    rows = [f"{n},0.{n % 9 + 1},{n % 2},{'xy'[n % 2]}" for n in range(80)]
    path.write_text(f"question_id,confidence,correct,{HOSTILE}\n" + "\n".join(rows))
    place = tmp_path / f"{HOSTILE}[bold].json"
    for more in (["--full"], []):
        arguments = ["audit", str(path), "--by", HOSTILE, "--resamples", "20", "--json", str(place)]
        monkeypatch.setattr("sys.argv", ["calibrant", *arguments, *more])
        with pytest.raises(SystemExit, match="0"):
            main()
        shown = capsys.readouterr()
        assert not unseen(shown.out + shown.err)
        assert "[bold].json" in shown.out.replace("\n", ""), "a name in brackets is no style"
    assert place.is_file()


def test_what_is_said_on_the_way_is_not_obeyed_by_a_terminal(capsys):
    alarm = {"model": HOSTILE, "method": "m", "promise": {"when": "now", "since": 1, "error": 0.5}}
    announce(alarm)
    assert not unseen(capsys.readouterr().err)


def test_a_failed_check_names_the_model_in_letters(tmp_path, capsys, monkeypatch):
    path = tmp_path / "scores.csv"
    rows = [f"{n},0.9,{n % 2},{HOSTILE}" for n in range(80)]
    path.write_text("question_id,confidence,correct,model\n" + "\n".join(rows))
    monkeypatch.setattr("sys.argv", ["calibrant", "audit", str(path), "--fail-if", "ece>0.1"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert not unseen(capsys.readouterr().err)


def test_messages_show_control_characters_as_text():
    error = cal.InputError("no column 'a\x1b[31m\x07\u202eb'", source="x\x00.csv", hint="type\rit")
    text = str(error)
    assert "a\\x1b[31m\\x07\\u202eb" in text
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text)
