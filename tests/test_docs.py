"""Every example of the documentation is run, so that none can rot; output that is shown is real."""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path
from unittest import mock

import pytest

from support import ROOT, call, real_data, shared_data_folder

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# An example, and the output that the page shows below it, where it does.
FENCE = re.compile(
    r"^```(python|console)\n(.*?)^```$(?:\n+<!-- prints -->\n```text\n(.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
# What a page lets its reader write before its examples.
FIRST = re.compile(r"^pip install calibrant && (calibrant demo --recorded)$", re.MULTILINE)
# Examples that name the folder of real data are left out where it is absent.
REAL_DATA = re.compile(r"\bDATA\b")


def examples(page: Path) -> list[tuple[str, bool, str, str]]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(name, bool(REAL_DATA.search(body)), body, shown) for name, body, shown in found]


def run_python(body: str, page: Path, namespace: dict) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, str(page), "exec"), namespace)
    return printed.getvalue()


def run_console(body: str) -> str:
    printed = ""
    environment = {"DATA": str(shared_data_folder()), "COLUMNS": "160"}
    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        command = line.removeprefix("$ ")
        assert command.startswith("calibrant "), f"only calibrant commands are run: {command}"
        with mock.patch.dict(os.environ, environment):
            done = call(*shlex.split(os.path.expandvars(command))[1:])
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        printed += done.stdout
    return printed


def as_case(page: Path):
    needs_data = any(needs for _, needs, _, _ in examples(page))
    marks = [pytest.mark.data] if needs_data else []
    return pytest.param(page, marks=marks, id=page.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("page", [as_case(page) for page in PAGES])
def test_examples_run(page, tmp_path, monkeypatch):
    runnable = examples(page)
    if not runnable:
        pytest.skip("no examples on this page")
    monkeypatch.chdir(tmp_path)
    have_data = shared_data_folder().is_dir()
    namespace = {"__name__": "docs", "DATA": shared_data_folder()}
    for command in FIRST.findall(page.read_text(encoding="utf-8")):
        run_console(f"$ {command}")
    left_out = 0
    for language, needs_data, body, shown in runnable:
        if needs_data and not have_data:
            left_out += 1
            continue
        printed = run_python(body, page, namespace) if language == "python" else run_console(body)
        # Where a line is broken is up to the page.
        assert not shown or shown.split() == printed.split(), printed
    if left_out == len(runnable):
        real_data()


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_row_of_a_table_has_the_cells_of_its_head(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(cells) == 1, table[:200]
