"""`python -m calibrant` is the command line."""

import subprocess
import sys

import calibrant


def called(*words):
    return subprocess.run(
        [sys.executable, "-m", "calibrant", *words], capture_output=True, text=True, check=False
    )


def test_the_module_is_the_command():
    done = called("plan", "--precision", "0.1", "--error-rate", "0.2", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert '"schema": "calibrant.plan/1"' in done.stdout.replace('":"', '": "')
    assert calibrant.__version__ in done.stdout


def test_bad_input_ends_with_a_message_and_exit_code_2():
    done = called("audit", "nothing.csv")
    assert done.returncode == 2
    assert done.stderr.startswith("calibrant: nothing.csv: ")
    assert "Traceback" not in done.stderr
