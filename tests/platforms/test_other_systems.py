"""What must hold where there are no POSIX modules, other line ends and other separators."""

import subprocess
import sys

# Modules that exist on POSIX systems alone; None in sys.modules makes their import fail.
ELSEWHERE = """
import sys
for name in ("fcntl", "resource", "termios", "tty", "pwd", "grp", "pty"):
    sys.modules[name] = None
import os
for name in ("sched_getaffinity", "register_at_fork", "geteuid", "fchmod"):
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
