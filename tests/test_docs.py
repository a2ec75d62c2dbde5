"""Every example of the documentation is run, so that none can rot."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT, shared_data_folder

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Examples that name the folder of real data are left out where it is absent.
REAL_DATA = re.compile(r"\bDATA\b")
CALIBRANT = Path(sys.executable).parent / "calibrant"


def examples(page: Path) -> list[tuple[str, bool, str]]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, bool(REAL_DATA.search(body)), body) for language, body in found]


def run_console(body: str, folder: Path) -> None:
    environment = {**os.environ, "DATA": str(shared_data_folder()), "COLUMNS": "160"}
    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        command = line.removeprefix("$ ")
        assert command.startswith("calibrant "), f"only calibrant commands are run: {command}"
        words = shlex.split(os.path.expandvars(command.replace("$DATA", environment["DATA"])))
        done = subprocess.run(
            [CALIBRANT, *words[1:]],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch):
    runnable = examples(page)
    if not runnable:
        pytest.skip("no examples on this page")
    monkeypatch.chdir(tmp_path)
    have_data = shared_data_folder().is_dir()
    namespace = {"__name__": "docs", "DATA": shared_data_folder()}
    left_out = 0
    for language, needs_data, body in runnable:
        if needs_data and not have_data:
            left_out += 1
        elif language == "python":
            exec(compile(body, str(page), "exec"), namespace)
        else:
            run_console(body, tmp_path)
    if left_out == len(runnable):
        pytest.skip(f"REAL DATA ABSENT: all {left_out} examples need {shared_data_folder()}")
