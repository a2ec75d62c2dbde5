"""The environment that holds the evaluation frameworks, apart from the one of the tests.

`make test` puts it into ``.venv-frameworks``; elsewhere CALIBRANT_FRAMEWORKS names its folder.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT, call

HERE = Path(__file__).parent


def folder():
    """Return the environment's folder of commands, or None where there is none."""
    named = os.environ.get("CALIBRANT_FRAMEWORKS")
    place = Path(named) if named else ROOT / ".venv-frameworks"
    if (place / "bin" / "inspect").is_file():
        return place / "bin"
    if named:
        raise FileNotFoundError(f"CALIBRANT_FRAMEWORKS={named} holds no bin/inspect")
    return Path(sys.executable).parent if importlib.util.find_spec("inspect_ai") else None


needed = pytest.mark.skipif(
    folder() is None,
    reason="FRAMEWORKS ABSENT: neither .venv-frameworks nor CALIBRANT_FRAMEWORKS is there "
    "(make frameworks); the logs that they wrote are tested instead",
)


def run(command, *arguments, cwd, home):
    """Run a command of the frameworks' environment, off the network, and return its output."""
    private = {name: str(home) for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME")}
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(
        [folder() / command, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **private, **offline, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def calibrant(*arguments):
    """Run calibrant itself, and return its output."""
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
