"""What a user gave is read; it is never written over or into."""

import os
import sqlite3

import pytest

import calibrant as cal
from calibrant.cli.main import main
from calibrant.core.errors import InputError
from calibrant.data.label_store import LabelStore
from calibrant.models.ledger import Ledger

OPENERS = {
    "labels": LabelStore,
    "labels to read": lambda path: LabelStore(path, create=False),
    "ledger": Ledger,
}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.csv"
    rows = [f"q{n},0.{n % 9 + 1},{n % 2}" for n in range(60)]
    path.write_text("question_id,confidence,correct\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("opener", OPENERS)
def test_a_database_of_another_program_is_not_touched(tmp_path, opener):
    path = tmp_path / "mine.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (a)")
    db.execute("INSERT INTO mine VALUES (1)")
    db.commit()
    db.close()
    held = path.read_bytes()
    with pytest.raises(InputError, match=r"this is no|not a ledger"):
        OPENERS[opener](path)
    assert path.read_bytes() == held
    assert [file.name for file in tmp_path.iterdir()] == ["mine.db"]


@pytest.mark.parametrize("raw", [b"", b"5", b"a text\n" * 20])
def test_labels_are_not_made_of_a_file_that_holds_none(tmp_path, raw):
    path = tmp_path / "labels.sqlite"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        LabelStore(path, create=False)
    assert path.read_bytes() == raw


@pytest.mark.parametrize("name", ["scores.csv", "./scores.csv", "linked.csv", "hard.csv"])
@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--resamples", "20", "--json"],
        ["audit", "--resamples", "20", "--html"],
        ["audit", "--resamples", "20", "--fail-if", "ece>1", "--junit"],
        ["decide", "--max-error", "0.4", "--save"],
        ["import", "--out"],
        ["report", "--markdown"],
        ["plan", "--claim", "ece<0.05", "--json"],
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_an_input_is_never_written_over(table, monkeypatch, capsys, words, name):
    (table.parent / "linked.csv").symlink_to(table)
    os.link(table, table.parent / "hard.csv")
    held = table.read_bytes()
    verb, *options = words
    monkeypatch.chdir(table.parent)
    monkeypatch.setattr("sys.argv", ["calibrant", verb, str(table), *options, name])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "never written over" in capsys.readouterr().err
    assert table.read_bytes() == held


def test_python_keeps_inputs_as_well(table):
    held = table.read_bytes()
    with pytest.raises(InputError, match="never written over"):
        cal.import_logs([table], out=table)
    with pytest.raises(InputError, match="never written over"):
        cal.decide(table, max_error=0.4, save=table)
    result = cal.audit(table, resamples=20)
    for write in (result.to_json, result.to_html):
        with pytest.raises(InputError, match="never written over"):
            write(table)
    assert table.read_bytes() == held
    result.to_json(table.with_name("audit.json"))
    result.to_json(table.with_name("audit.json"))
