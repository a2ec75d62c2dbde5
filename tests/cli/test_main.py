"""The entry point itself: versions, typing slips, and the module that runs it."""

import subprocess
import sys

import calibrant


def calls(*given):
    command = [sys.executable, "-m", "calibrant", *given]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_version_is_that_of_the_package():
    said = calls("--version")
    assert (said.returncode, said.stdout) == (0, f"calibrant {calibrant.__version__}\n")


def test_a_verb_that_is_not_there_is_answered_with_the_closest():
    said = calls("audti", "table.csv")
    assert said.returncode == 2
    assert said.stderr == "calibrant: there is no verb 'audti'\n  -> did you mean 'audit'?\n"
    assert "known: audit, bench" in calls("xyz").stderr


def test_a_filter_that_no_log_can_use_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("confidence,correct\n0.5,1\n")
    said = calls("import", str(path), "--filter", "strict-match")
    assert said.returncode == 2
    assert "table.csv: the filter 'strict-match' is one of lm-eval" in said.stderr


def test_the_demo_refuses_a_folder_without_a_name():
    said = calls("demo", "--out", "")
    assert said.returncode == 2
    assert "--out is a path to write to" in said.stderr
