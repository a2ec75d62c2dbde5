"""The page on the papers: every row is counted, and what it names is there."""

import importlib
import os
import re
import shlex

import pytest

from calibrant.answers.confidence import methods
from calibrant.cli.main import app
from calibrant.models.study.prompts import shipped_prompts
from support import ROOT, call, real_data

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
STATES = ("right", "deviates", "not here")


def rows() -> dict[str, list[list[str]]]:
    """Return the cells of every row, by paper."""
    found = {}
    for part in PAGE.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        found[part.splitlines()[0]] = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]
        ]
    return found


def option_names(words: list[str]) -> set[str] | None:
    """Return the options of a command, None where there is no such command."""
    command = app
    for word in words:
        command = getattr(command, "commands", {}).get(word) or getattr(
            command, "get_command", lambda *_: None
        )(None, word)
        if command is None:
            return None
    return {name for parameter in command.params for name in (*parameter.opts, "--help")}


def test_every_element_has_a_state_and_the_summary_counts_them():
    listed = rows()
    assert len(listed) == 5
    assert sum(map(len, listed.values())) >= 211
    for paper, elements in listed.items():
        states = [cells[2] for cells in elements]
        assert set(states) <= set(STATES), paper
        counted = [len(elements), *(states.count(state) for state in STATES)]
        (told,) = re.findall(rf"^\| \[{re.escape(paper)}\]\([^)]*\) \|(.*)\|$", PAGE, re.MULTILINE)
        assert [int(number) for number in told.split("|")] == counted, f"{paper}: {counted}"
        names = [cells[0] for cells in elements]
        assert len(set(names)) == len(names), paper


def test_what_is_not_as_printed_says_why():
    for elements in rows().values():
        for element, where, state, why, by in elements:
            assert where, element
            assert state == "right" or why, element
            assert by, element
            # What is not here says where it was searched, or which row does.
            assert state != "not here" or re.search(r"[Ss]earch|those draws|above|ticked", why)


# Beside tests, studies and commands: what was read alone, and what was searched for.
ALONE = ("read", "search of 2026-11")


@pytest.mark.parametrize("by", sorted({cells[4] for part in rows().values() for cells in part}))
def test_every_row_names_what_checks_it(by, tmp_path, monkeypatch):
    told = re.fullmatch(r"`(.*)`", by)
    if told is None:
        assert by in (*ALONE, "the example of its docstring")
    elif told[1].startswith("tests/"):
        assert (ROOT / told[1]).is_file()
    elif script := re.fullmatch(r"python -m (studies|simulations) (\w+)", told[1]):
        assert (ROOT / script[1] / f"{script[2]}.py").is_file()
    else:
        monkeypatch.chdir(tmp_path)
        done = call(*shlex.split(told[1].removeprefix("calibrant ")))
        assert done.returncode == 0, done.stderr


def test_examples_of_docstrings_that_check_a_row_are_there():
    checked = [c for part in rows().values() for c in part if c[4].endswith("its docstring")]
    assert checked
    for cells in checked:
        (name,) = re.findall(r"`calibrant\.labels\.(\w+)`", cells[1])
        assert ">>>" in getattr(importlib.import_module("calibrant.labels"), name).__doc__


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(calibrant(?:\.\w+)+)`", PAGE))))
def test_every_name_can_be_imported(name):
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return
    raise AssertionError(name)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`calibrant ([^`]+)`", PAGE))))
def test_every_command_has_its_options(command):
    words = command.split()
    names = [word for word in words if word.startswith("--")]
    known = option_names(words[: words.index(names[0])] if names else words)
    assert known is not None, command
    assert set(names) <= known, command


def test_every_method_prompt_test_and_link_is_there():
    known = {method["name"] for method in methods()}
    assert set(re.findall(r"method `(\w+)`", PAGE)) <= known
    assert set(re.findall(r"prompt `(\w+)`", PAGE)) <= set(shipped_prompts())
    for path in re.findall(r"`(tests/[^`]+)`", PAGE):
        assert (ROOT / path).is_file(), path
    for path, anchor in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", PAGE):
        page = ROOT / "docs" / (path or "papers.md")
        assert page.is_file(), path
        headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = {"#" + re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
        assert not anchor or anchor in slugs, (path, anchor)


# What each story must show on the data that is there, in the words of the output.
STORIES = {
    "The Verification Tax": (r"50,000", r"0\.902 +0\.919", r"4 rounds", r"two-phase audit"),
    "Sem-ECE": (r"Sem1-ECE", r"Sem2-ECE", r"0\.20\d \[0\.1", r"under-confident by"),
    "MACE and SCA": (
        r"questions with exactly k right answers",
        r"80 questions",
        # What the paper is about, on recorded draws.
        r"accuracy rises by 8\.1 points and\s+consistency_conf\s+falls by 9\.5 points",
    ),
    "ACE": (
        r"better calibrated than Qwen3-4B,\s+on its own answers",
        r"turned round by DA",
        r"DA and IA agree",
    ),
    "Grouping loss and cascades": (
        r"as published",
        r"grouping: no recalibration",
        r"risk, with columns",
    ),
}


@pytest.mark.parametrize("paper", STORIES)
def test_the_story_of_a_paper_takes_three_commands_at_most(paper, tmp_path, monkeypatch):
    (part,) = [part for part in PAGE.split("\n## ") if part.startswith(f"{paper}\n")]
    commands = re.findall(r"^\$ calibrant (.*)$", part, re.MULTILINE)
    assert 1 <= len(commands) <= 3
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    if any("$DATA" in command for command in commands):
        monkeypatch.setenv("DATA", str(real_data()))
    told = ""
    for command in commands:
        done = call(*shlex.split(os.path.expandvars(command)))
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        told += done.stdout
    for words in STORIES[paper]:
        assert re.search(words, told), f"{words}\n{told}"


FINDINGS = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
PARTS = FINDINGS.split("\n## ")[1:]
# Numbers that are words of the text, not results: names, shares that a sentence sets, years.
SET = {"3.1", "0", "4", "8", "0.6", "50", "75", "90", "10", "20", "2", "100", "5", "13", "1", "52"}


def numbers(text: str) -> set[str]:
    """Return the numbers of a text without their signs; commas may part thousands or columns."""
    found = (
        re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", text.replace(",", by)) for by in ("", " ")
    )
    return {number for some in found for number in some}


@pytest.mark.parametrize("part", PARTS, ids=[part[:1] for part in PARTS])
def test_every_number_of_a_finding_stands_on_the_page_it_names(part):
    pages = set(re.findall(r"\]\(((?:studies|simulations)/\w[\w-]*\.md)\)", part))
    assert pages, part[:60]
    there: set[str] = set()
    for page in pages:
        path = ROOT / "docs" / page
        texts = [path, *path.parent.glob(f"tables/{path.stem}-*.csv")]
        there |= {n for text in texts for n in numbers(text.read_text(encoding="utf-8"))}
    prose = re.sub(r"!?\[[^\]]*\]\([^)]*\)|`[^`]*`", "", part.split("\n", 1)[1])
    assert numbers(prose) - there - SET == set()


@pytest.mark.parametrize("part", PARTS, ids=[part[:1] for part in PARTS])
def test_every_finding_has_a_picture_a_command_and_limits(part):
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", part)
    assert (ROOT / "docs" / picture).is_file()
    (folder, name) = re.findall(r"^`python -m (studies|simulations) (\w+)`$", part, re.MULTILINE)[0]
    assert (ROOT / folder / f"{name}.py").is_file()
    assert "*Limits.*" in part


def test_the_findings_are_reached_from_the_front():
    assert 6 <= len(PARTS) <= 12
    for page in ("README.md", "docs/index.md"):
        assert "findings.md" in (ROOT / page).read_text(encoding="utf-8")
