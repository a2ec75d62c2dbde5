"""Terminals that know few letters, have no columns, or are closed."""

import os
import subprocess
import sys

import pytest

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
