"""Examples that ask a saved policy from LangChain and DSPy, run with the real packages."""

import os
import subprocess
import sys

import numpy as np
import pytest

import calibrant as cal
from ecosystem import frameworks
from support import ROOT

ANSWERS = {
    "langchain": ("langchain_core", ["answer", "ask", "ask"]),
    "dspy": ("dspy", ["answer", "ask"]),
}


def interpreter(package):
    """Return a Python that has the package; the environment of the frameworks comes first."""
    named = os.environ.get("CALIBRANT_EXAMPLES")
    places = [named, frameworks.folder() and frameworks.folder() / "python", sys.executable]
    for place in filter(None, places):
        asked = [str(place), "-c", f"import {package}"]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return str(place)
    pytest.skip(f"{package.upper()} ABSENT: pip install it, CALIBRANT_EXAMPLES=its python")


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_asks_a_saved_policy(name, tmp_path):
    package, actions = ANSWERS[name]
    python = interpreter(package)
    said = np.random.default_rng(0).random(2000)
    right = (np.random.default_rng(1).random(2000) < 0.5 + 0.5 * said).astype(int)
    policy = tmp_path / "policy.json"
    cal.decide({"confidence": said, "correct": right}, max_error=0.2, save=policy)
    paths = [str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    done = subprocess.run(
        [python, str(ROOT / "examples" / f"{name}_policy.py"), str(policy)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "DSPY_CACHEDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [line.partition("'action': '")[2].partition("'")[0] for line in done.stdout.splitlines()]
    assert told == actions
