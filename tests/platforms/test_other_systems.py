"""What must hold where there are no POSIX modules, other line ends and other separators."""

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path, PurePosixPath, PureWindowsPath

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.hints import Call
from calibrant.core.places import bare_name

# Modules that exist on POSIX systems alone; None in sys.modules makes their import fail.
ELSEWHERE = """
import sys
for name in ("fcntl", "resource", "termios", "tty", "pwd", "grp", "pty"):
    sys.modules[name] = None
import os
for name in ("fork", "sched_getaffinity", "register_at_fork", "geteuid", "fchmod"):
    if hasattr(os, name):
        delattr(os, name)
import calibrant
for name in calibrant.__all__:
    getattr(calibrant, name)
import calibrant.cli.main, calibrant.apps.serve, calibrant.apps.view
print("loaded")
"""


def test_the_package_loads_without_posix_modules():
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=False
    )
    assert run.stdout == "loaded\n", run.stderr


TABLE = "id,confidence,correct\r\n" + "".join(f"{k},{k % 7 / 7:.2f},{k % 2}\r\n" for k in range(60))


def test_a_file_with_line_ends_of_windows_is_read_as_any_other(tmp_path):
    (tmp_path / "unix.csv").write_bytes(TABLE.replace("\r", "").encode())
    (tmp_path / "windows.csv").write_bytes(b"\xef\xbb\xbf" + TABLE.encode())
    lines = (json.dumps({"confidence": k % 7 / 7, "correct": k % 2}) for k in range(60))
    (tmp_path / "windows.jsonl").write_bytes("\r\n".join(lines).encode())
    unix, windows = (cal.audit(tmp_path / f"{name}.csv")["results"] for name in ("unix", "windows"))
    assert unix == windows
    assert cal.audit(tmp_path / "windows.jsonl")["results"][0]["n"] == 60


SAMPLES = [
    {"question": f"Capital of land {k}?", "answers": ["Rome", "rome.", "Oslo"], "gold": "Rome"}
    for k in range(5)
]


@contextlib.contextmanager
def text_mode_of_windows(monkeypatch):
    """Let every file that is opened as text without a word on line ends write those of Windows."""
    original = io.open

    def opened(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **more):
        if "b" not in mode and newline is None and set(mode) & set("wax"):
            newline = "\r\n"
        return original(file, mode, buffering, encoding, errors, newline, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "linesep", "\r\n")
        patch.setattr(io, "open", opened)
        patch.setattr("builtins.open", opened)
        yield


def test_what_is_written_is_read_again_whatever_ends_a_line(tmp_path, monkeypatch):
    """A file of this machine and one of Windows hold the same policy, map, page and state."""
    (tmp_path / "rows.csv").write_bytes(TABLE.replace("\r", "").encode())
    monkeypatch.chdir(tmp_path)
    modes = {"unix": contextlib.nullcontext(), "windows": text_mode_of_windows(monkeypatch)}
    found = {}
    for name, mode in modes.items():
        with mode:
            cal.decide("rows.csv", costs={"wrong": 2, "ask": 1}, save=f"{name}.policy.json")
            cal.mend("rows.csv", save=f"{name}.mend.json")
            result = cal.audit("rows.csv")
            result.to_html(f"{name}.html")
            result.to_json(f"{name}.json")
            cal.grade(SAMPLES, f"{name}.study", samples="answers", reference="gold", judge="none")
            graded = pl.read_parquet(next(Path(f"{name}.study").rglob("semantics*.parquet")))
            found[name] = (
                cal.load_policy(f"{name}.policy.json").answers(0.9),
                cal.load_mend(f"{name}.mend.json").probability(0.9),
                json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))["results"],
                graded["correct"].to_list(),
            )
            assert b"\r\r\n" not in Path(f"{name}.html").read_bytes()
    assert found["unix"] == found["windows"]


@pytest.mark.parametrize("kind", [PureWindowsPath, PurePosixPath])
def test_places_are_named_by_their_last_part(kind):
    place = kind("runs") / "my study" / "scores.csv"
    assert bare_name(str(place)) == "scores"
    assert not place.is_absolute()


def test_a_command_spells_a_place_of_windows_so_that_a_shell_reads_it_back():
    place = str(PureWindowsPath(r"C:\Users\me\my runs") / "scores.csv")
    words = shlex.split(Call("audit", place).text())
    assert words == ["calibrant", "audit", place]
