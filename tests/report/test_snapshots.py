"""Terminal and Markdown of every kind of document, beside stored texts.

Where a change is meant, write the texts anew and look at the difference:
``CALIBRANT_SNAPSHOTS=write python -m pytest tests/report/test_snapshots.py``.
"""

import difflib
import json
import os
import re
from pathlib import Path

import pytest

from calibrant.core.document import kind_of, plain
from calibrant.core.errors import SchemaError
from calibrant.report import render_markdown, render_text
from calibrant.report.tables import KINDS as KINDS_WITH_TABLES
from documents import KINDS, WITH_FOLDER, document_of
from support import call

FOLDER = Path(__file__).parent / "snapshots"
# The short view is stored in 80 columns, the whole one in 100.
SHORT, WIDTH = 80, 100
# Kinds whose numbers come from a model, a server or foreign files; their own tests read them.
ELSEWHERE = {"accuracy", "grade", "import_logs", "init", "models", "run"}


def check(name, text):
    text = re.sub(r"babel [\d.]+", "babel *", text)
    path = FOLDER / name
    if os.environ.get("CALIBRANT_SNAPSHOTS") == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    stored = path.read_text(encoding="utf-8")
    lines = (stored.splitlines(), text.splitlines())
    difference = "\n".join(difflib.unified_diff(*lines, "stored", "now", lineterm=""))
    assert stored == text, f"{name} has changed:\n{difference}"


def lines_of(document, **options):
    text = render_text(plain(document), **options)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def all_views(name, document, folder="no folder"):
    # The command in the short view names the folder of the test.
    check(f"{name}.txt", lines_of(document, width=SHORT).replace(f"{folder}/", "", 1))
    full = lines_of(document, width=WIDTH, full=True)
    check(f"{name}.full.txt", full.replace(f"{folder}/", "").replace(f"{folder}", ""))
    check(f"{name}.md", render_markdown(plain(document)))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_terminal_and_markdown(kind):
    all_views(kind, document_of(kind))


@pytest.mark.parametrize("kind", sorted(WITH_FOLDER))
def test_terminal_and_markdown_of_what_needs_a_folder(kind, tmp_path):
    all_views(kind, WITH_FOLDER[kind](tmp_path), tmp_path)


def test_every_kind_of_document_has_a_snapshot():
    covered = {kind_of(document_of(kind)) for kind in KINDS} | set(WITH_FOLDER)
    assert set(KINDS_WITH_TABLES) - covered == ELSEWHERE


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width, full):
    for kind in KINDS:
        lines = render_text(plain(document_of(kind)), width=width, full=full).splitlines()
        assert max(map(len, lines)) <= width, kind


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(SchemaError, match=r"calibrant\.audits/1") as error:
        render_text({"schema": "calibrant.audits/1"})
    assert "audit" in str(error.value)


QUESTIONS = ("Capital of Italy?", "Capital of Norway?", "Capital of Peru?")
ANSWERS = (["Rome", "rome.", "Milan"], ["Oslo", "Bergen", "Oslo"], ["Lima", "Lima", "Lima"])
MODEL = '[[models]]\nname = "m"\nclient = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
SCREENS = {
    "init": "init my-study",
    "run": "run my-study --dry-run",
    "grade": "grade samples.jsonl --samples answers --reference gold --judge none --out study",
    "import": "import logs/lm_eval --out imported",
}


def test_first_screens_of_the_commands_that_make_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(SHORT))
    rows = zip(QUESTIONS, ANSWERS, ("Rome", "Oslo", "Lima"), strict=True)
    table = [dict(zip(("question", "answers", "gold"), row, strict=True)) for row in rows]
    Path("samples.jsonl").write_text("\n".join(map(json.dumps, table)))
    assert call("init", "logs", "--logs").returncode == 0
    for name, command in SCREENS.items():
        done = call(*command.split())
        assert done.returncode == 0, done.stderr
        check(f"{name}.txt", done.stdout)
        if name == "init":
            study = Path("my-study/study.toml").read_text().partition("[[models]]")[0]
            Path("my-study/study.toml").write_text(study + MODEL)
