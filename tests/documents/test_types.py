"""Type checkers know the public names: what is right passes, what is wrong is found."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

CALLS = Path(__file__).parent / "typed_calls.py"
WRONG = {
    number
    for number, line in enumerate(CALLS.read_text(encoding="utf-8").splitlines(), 1)
    if "# wrong:" in line
}
BIN = Path(sys.executable).parent


def test_mypy_strict_finds_what_is_wrong_and_nothing_else():
    # With the cache of the project: the first check of all packages takes a minute.
    words = ["--strict", "--output", "json", str(CALLS)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    errors = [entry for entry in found if entry["severity"] == "error"]
    assert {entry["line"] for entry in errors if entry["file"].endswith(CALLS.name)} == WRONG, found
    assert {entry["file"] for entry in errors} == {str(CALLS.relative_to(ROOT))}


def test_pyright_finds_what_is_wrong_and_nothing_else(tmp_path):
    checker = next((name for name in ("pyright", "basedpyright") if (BIN / name).exists()), None)
    if checker is None:
        pytest.skip("PYRIGHT ABSENT: pip install basedpyright")
    shutil.copy(CALLS, tmp_path / CALLS.name)
    settings = {"typeCheckingMode": "standard", "venvPath": str(BIN.parent.parent)}
    settings |= {"venv": BIN.parent.name, "extraPaths": [str(ROOT / "src")]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [BIN / checker, "--outputjson", "-p", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [entry for entry in found if entry["severity"] == "error"]
    assert {entry["range"]["start"]["line"] + 1 for entry in errors} == WRONG, errors
