"""A release is one thing, and the workflows name files and targets that exist."""

import re

import yaml
from studies.release_check import days, differences, versions

from support import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def commands():
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)


def test_every_file_names_the_same_version():
    version = versions()["pyproject.toml"]
    assert differences(f"v{version}") == []
    assert len(differences("v99.0")) == 4
    changelog, citation = days()
    assert changelog == citation


def test_what_the_workflows_run_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands():
        if command.startswith("make "):
            target = command.split()[1]
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), command
        for path in re.findall(r"(?:examples|tests|studies)/[\w./]+", command):
            assert (ROOT / path).exists(), command


def test_every_python_that_is_promised_is_tested():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    promised = re.findall(r"Python :: (3\.\d+)", text)
    jobs = yaml.safe_load(WORKFLOWS[-1].read_text(encoding="utf-8"))["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == promised
