"""What the README shows is what the commands print."""

import re

from calibrant.report import render_text
from calibrant.verbs.audit import audit
from calibrant.verbs.study.recorded_study import recorded_study
from support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 150


def test_the_output_of_the_readme_is_real(tmp_path, monkeypatch):
    shown = re.search(r"```text\n\$ calibrant audit demo --top 4\n(.*?)```", README, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    recorded_study("demo")
    text = render_text(audit("demo").to_dict(), width=80, top=4)
    assert [line.rstrip() for line in text.splitlines()] == shown.splitlines()


def test_the_readme_is_short_and_every_picture_of_it_exists():
    assert len(README.splitlines()) < MOST_LINES
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert len(pictures) >= 4
    assert all((ROOT / name).is_file() for name in pictures)
    links = re.findall(r"(?<!!)\[[^\]]+\]\(([^)#]+)\)", README)
    assert all((ROOT / name).exists() for name in links)


def test_a_first_look_never_leads_to_a_command_that_fails():
    """Every command of the README reads what the first one wrote."""
    commands = re.findall(r"^\$ (calibrant .*)$", README, re.MULTILINE)
    assert any(command == "calibrant demo --recorded" for command in commands)
    assert all(" demo" in command for command in commands)
