"""What README and 'Which file do I need?' show is what commands print; links lead somewhere."""

import csv
import json
import re
import shlex

import pytest

from calibrant.report import render_text
from calibrant.verbs.audit import audit
from calibrant.verbs.demo import recorded_study
from support import ROOT, call

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 185
GITHUB = "https://github.com/calibrant/calibrant/"
# Where a link of this project leads to in a checkout.
PLACES = {
    f"{GITHUB}blob/main/": "",
    "https://raw.githubusercontent.com/calibrant/calibrant/main/": "",
    "https://calibrant.github.io/calibrant/": "docs/",
}


def test_the_output_of_the_readme_is_real(tmp_path, monkeypatch):
    shown = re.search(
        r"```text\n\$ calibrant audit demo --cluster question_id --top 4\n(.*?)```",
        README,
        re.DOTALL,
    )[1]
    monkeypatch.chdir(tmp_path)
    recorded_study("demo")
    text = render_text(audit("demo", cluster="question_id").to_dict(), width=80, top=4)
    assert [line.rstrip() for line in text.splitlines()] == shown.splitlines()


def test_the_readme_is_short_and_its_links_work_on_the_page_of_a_registry():
    assert len(README.splitlines()) < MOST_LINES
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert all(link.startswith("https://") for link in links)
    own = [link for link in links if "/calibrant/" in link and "shields.io" not in link]
    for link in own:
        if link.startswith((f"{GITHUB}actions/", "https://pypi.org/")):
            continue
        place = next(place for place in PLACES if link.startswith(place))
        assert (ROOT / PLACES[place] / link.removeprefix(place).partition("#")[0]).is_file(), link


def test_the_moving_picture_is_light_and_the_example_page_stands_alone():
    assert (ROOT / "docs/images/decide.gif").stat().st_size < 1_500_000
    page = (ROOT / "docs/files/example.html").read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)


def test_a_first_look_never_leads_to_a_command_that_fails():
    """Every command of the README reads what the first one wrote."""
    commands = re.findall(r"^\$ (calibrant .*)$", README, re.MULTILINE)
    assert "pip install calibrant && calibrant demo --recorded" in README
    assert all(" demo" in command for command in commands)


YOUR_FILE = (ROOT / "docs" / "your-file.md").read_text(encoding="utf-8")
SAMPLES = re.findall(r"```(?:csv|json)\n(.*?)```\n+`(calibrant [^`]*)`", YOUR_FILE, re.DOTALL)
OTHER_OUTCOME = {"0": "1", "1": "0", "yes": "no", "no": "yes"}


def longer(text, kind, times=40):
    """Three rows as a table of 120: in every third copy what was right is wrong."""
    lines = text.splitlines()
    if kind == "jsonl":
        copies = ({**json.loads(line), "question": f"{line[14:30]} {k}"}
                  for k in range(times) for line in lines)  # fmt: skip
        return "\n".join(map(json.dumps, copies))
    head, *rows = csv.reader(lines)
    table = [head]
    for k in range(times):
        for first, *others in rows:
            if k % 3 == 0:
                others = [OTHER_OUTCOME.get(cell, cell) for cell in others]
            if head[-1] == "expert":  # people rated a random half
                others[-1] = (others[-1] or "5") if k % 2 else ""
            own = f"2026-03-{1 + k % 28:02d}" if head[0] == "day" else f"{first} {k}"
            table.append([own, *others])
    return "\n".join(",".join(row) for row in table)


def test_there_are_ten_samples():
    assert len(SAMPLES) == 10
    assert all(len(text.splitlines()) == 3 + ("," in text.split("\n")[0] and text[0] != "{")
               for text, _ in SAMPLES)  # fmt: skip


@pytest.mark.parametrize(("text", "command"), SAMPLES, ids=lambda part: part.split()[1])
def test_a_file_like_a_sample_is_read_by_the_command_below_it(text, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)[1:]
    kind = words[1].rpartition(".")[2]
    (tmp_path / words[1]).write_text(longer(text, kind), encoding="utf-8")
    done = call(*words)
    assert done.returncode == 0, done.stderr
    assert "Left out" not in done.stdout
