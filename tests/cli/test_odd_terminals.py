"""Terminals that know few letters, have no columns, or are closed."""

import io
import os
import subprocess
import sys
import time

import pytest

from calibrant.cli import VERBS, terminal, verb_function
from calibrant.cli.command import _supplied, cluster_speaks_on_stderr

ROWS = "".join(f"gr\u00f6\u00dfe,{i % 7 / 7:.2f},{i % 2}\n" for i in range(40))
BARE = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
COMMANDS = (["audit", "s.csv"], ["audit", "s.csv", "--json", "-"], ["decide", "s.csv"])


def run(folder, words, redirect="", **environment):
    (folder / "s.csv").write_text("model,confidence,correct\n" + ROWS, encoding="utf-8")
    command = f'exec "{sys.executable}" -m calibrant {" ".join(words)} {redirect}'
    known = {**os.environ, **environment}
    return subprocess.run(["sh", "-c", command], cwd=folder, env=known, capture_output=True)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("usual")
    return {" ".join(words): run(folder, words) for words in COMMANDS}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("redirect", "environment"),
    [("", BARE), ("", {"COLUMNS": "0"}), ("", {"COLUMNS": "1"}), (">&-", {}), ("2>&-", {})],
    ids=["ascii", "no columns", "one column", "no output", "no errors"],
)
def test_a_command_ends_as_it_does_elsewhere(tmp_path, usual, words, redirect, environment):
    expected = usual[" ".join(words)]
    ended = run(tmp_path, words, redirect, **environment)
    assert ended.returncode == expected.returncode
    assert b"Traceback" not in ended.stderr
    if redirect == "":
        assert ended.stderr == expected.stderr


def test_a_name_that_cannot_be_shown_does_not_hide_the_rest(tmp_path):
    shown = run(tmp_path, ["audit", "s.csv", "--json", "out.json", "--html", "page.html"], **BARE)
    assert shown.returncode == 0
    assert b"gr??e" in shown.stdout or b"is right" in shown.stdout
    assert "gr\u00f6\u00dfe" in (tmp_path / "out.json").read_text(encoding="utf-8")
    assert "gr\u00f6\u00dfe" in (tmp_path / "page.html").read_text(encoding="utf-8")


class Screen(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


def bars_at_once(monkeypatch):
    """Return a screen on which a bar is drawn at once."""
    monkeypatch.setattr("calibrant.cli.terminal._SHOWN_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown := Screen())
    return shown


def until(screen, words):
    for _ in range(400):
        if words in screen.getvalue():
            return
        time.sleep(0.02)
    raise AssertionError(screen.getvalue())


def test_work_that_takes_a_while_moves_a_bar_and_then_counts(monkeypatch):
    screen = bars_at_once(monkeypatch)
    with terminal.StepBar("calibrant audit") as bar:
        until(screen, "calibrant audit")
        bar("models", 1, 3)
        until(screen, "1/3")
    assert sys.stderr is screen
    assert screen.getvalue().endswith("\x1b[2K")
    before = screen.getvalue()
    monkeypatch.setattr("calibrant.cli.terminal._SHOWN_AFTER_S", 60.0)
    with terminal.StepBar("calibrant audit"):
        pass
    assert screen.getvalue() == before


@pytest.mark.parametrize("words", VERBS)
def test_every_verb_that_works_has_a_bar_and_none_that_waits(words, monkeypatch):
    """A server that is up waits for callers, and `run` asks its question on that line."""
    screen = bars_at_once(monkeypatch)
    waits = words in ("view", "serve", "label serve", "run")
    output = sys.stdout
    with cluster_speaks_on_stderr(), _supplied(verb_function(words), words, quiet=False):
        if not waits:
            until(screen, f"calibrant {words}")
    assert sys.stdout is output
    assert (f"calibrant {words}" in screen.getvalue()) is not waits
