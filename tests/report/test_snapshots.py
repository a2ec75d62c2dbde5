"""Terminal and Markdown of every kind of document, beside stored texts.

Where a change is meant, write the texts anew and look at the difference:
``CALIBRANT_SNAPSHOTS=write python -m pytest tests/report/test_snapshots.py``.
"""

import difflib
import os
import pkgutil
import re
from pathlib import Path

import pytest
from documents import KINDS, WITH_FOLDER, document_of

from calibrant.core.document import kind_of, plain
from calibrant.core.errors import SchemaError
from calibrant.report import render_markdown, render_text, terminal

FOLDER = Path(__file__).parent / "snapshots"
WIDTH = 100
# Kinds whose numbers come from a model, a server or foreign files; their own tests read them.
ELSEWHERE = {"import_logs", "models", "run"}
PART_OF_AUDIT = {"semantic"}


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


def both(name, document):
    document = plain(document)
    text = "\n".join(line.rstrip() for line in render_text(document, width=WIDTH).splitlines())
    check(f"{name}.txt", text + "\n")
    check(f"{name}.md", render_markdown(document))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_terminal_and_markdown(kind):
    both(kind, document_of(kind))


@pytest.mark.parametrize("kind", sorted(WITH_FOLDER))
def test_terminal_and_markdown_of_what_needs_a_folder(kind, tmp_path):
    both(kind, WITH_FOLDER[kind](tmp_path))


def test_every_kind_of_document_has_a_snapshot():
    names = (entry.name for entry in pkgutil.iter_modules(terminal.__path__))
    known = {name for name in names if not name.startswith("_")}
    covered = {kind_of(document_of(kind)) for kind in KINDS} | set(WITH_FOLDER)
    assert known - covered == ELSEWHERE | PART_OF_AUDIT


def test_no_line_is_wider_than_the_terminal():
    for kind in KINDS:
        lines = render_text(plain(document_of(kind)), width=WIDTH).splitlines()
        assert max(map(len, lines)) <= WIDTH, kind


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(SchemaError, match=r"calibrant\.audits/1") as error:
        render_text({"schema": "calibrant.audits/1"})
    assert "audit" in str(error.value)
