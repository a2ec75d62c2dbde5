"""The example for GitHub Actions: its steps are run as they stand."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from support import ROOT

WORKFLOW = yaml.safe_load((ROOT / "examples" / "github-action.yml").read_text())
STEPS = WORKFLOW["jobs"]["audit"]["steps"]
LOG = Path(__file__).parent / "fixtures" / "inspect.eval"


def run_steps(folder):
    """Run the steps of the job as its runner does: bash, stop at the first failure."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for step in STEPS:
        if "run" in step and not step["run"].startswith("pip install"):
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                return done
    return done


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path


def uploaded(folder):
    (step,) = [step for step in STEPS if "upload-artifact" in step.get("uses", "")]
    assert step["if"] == "always()"  # the report matters most where a check fails
    return [folder / name for name in step["with"]["path"].split()]


def test_the_workflow_has_the_keys_that_a_workflow_needs():
    # YAML 1.1 reads the key `on` as true.
    assert {"name", True, "jobs"} == set(WORKFLOW)
    assert all(("uses" in step) != ("run" in step) for step in STEPS)
    assert 'pip install "$CALIBRANT"' in [step.get("run") for step in STEPS]
    assert WORKFLOW["jobs"]["audit"]["env"] == {"CALIBRANT": "calibrant"}


def test_a_log_that_passes(folder):
    shutil.copy(LOG, folder / "logs" / "latest.eval")
    done = run_steps(folder)
    assert done.returncode == 0, done.stderr
    assert all(path.is_file() for path in uploaded(folder))
    assert ElementTree.parse(folder / "junit.xml").getroot().get("failures") == "0"


def test_a_log_that_fails_still_leaves_its_report(folder):
    rows = "".join(f"0.9{i % 9 + 1},{int(i % 3 == 0)}\n" for i in range(90))
    (folder / "logs" / "latest.eval").write_text(f"confidence,correct\n{rows}")
    done = run_steps(folder)
    assert done.returncode == 1
    assert "ece.low>0.05" in done.stderr
    assert all(path.is_file() for path in uploaded(folder))
    # Confidences around 0.95, one answer in three is right, and neither says anything of the other.
    assert ElementTree.parse(folder / "junit.xml").getroot().get("failures") == "2"


def test_data_that_cannot_be_read_is_another_failure(folder):
    (folder / "logs" / "latest.eval").write_bytes(b"PK\x03\x04rubbish")
    assert run_steps(folder).returncode == 2
