"""The pages of the commands are those of the code, and name what exists."""

import ast
import json
import re
import shlex
from collections import defaultdict

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from calibrant.cli import GROUPS, VERBS, verb_function
from calibrant.cli.command import OUTPUTS
from calibrant.cli.main import app
from calibrant.cli.reference import (
    VERBS_FILE,
    reference_files,
    stored_verbs,
)
from calibrant.core.verb import GROUPS as HELP_GROUPS
from calibrant.core.verb import declaration
from cli.all_commands import commands, parameters
from support import ROOT

FOLDER = ROOT / "docs" / "reference" / "cli"
SCREENS = ROOT / "tests" / "report" / "snapshots"
SOURCE = ROOT / "src" / "calibrant"


def test_the_pages_are_current():
    made = reference_files(SCREENS)
    here = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    assert here == set(made), "run python -m calibrant.cli.reference"
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, (
            f"{name}: run python -m calibrant.cli.reference"
        )


def test_the_stored_options_are_current():
    assert VERBS_FILE.read_text(encoding="utf-8") == stored_verbs(), (
        "run python -m calibrant.cli.reference"
    )


def help_of(words, flag):
    result = CliRunner().invoke(app, [*words.split(), flag])
    assert result.exit_code == 0, result.output
    return result.output


def flags(text):
    return set(re.findall(r"^  (--[\w-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("words", VERBS)
def test_help_shows_what_a_first_call_needs_and_where_the_rest_is(words):
    command = dict(commands())[words]
    short, full = help_of(words, "-h"), help_of(words, "--help-all")
    every = {option for param in command.params for option in param.opts if option[:2] == "--"}
    assert every <= flags(full)
    assert flags(short) <= flags(full)
    assert len(flags(short)) <= 6 or flags(short) == {
        f"--{p.word}" for p in command.verb.parameters.values() if p.is_required
    }
    assert f"calibrant {words} --help-all" in short
    example = set(re.findall(r"--[\w-]+", command.verb.example))
    assert len(example) > 6 or example <= flags(short)


@pytest.mark.parametrize("words", VERBS)
def test_a_command_has_an_example_of_its_own_that_parses(words):
    command = dict(commands())[words]
    example = shlex.split(command.verb.example)
    assert example[: 1 + len(words.split())] == ["calibrant", *words.split()]
    context = command.make_context(
        words, example[1 + len(words.split()) :], resilient_parsing=False
    )
    assert context.params


@pytest.mark.parametrize("words", VERBS)
def test_every_option_says_what_goes_there_and_where_it_stands(words):
    for name, parameter in parameters(dict(commands())[words]).items():
        option = parameter.option
        assert option.help.strip(), (words, name)
        assert option.group in HELP_GROUPS, (words, name)
        assert option.metavar or parameter.type is bool, (words, name)


@pytest.mark.parametrize("words", VERBS)
def test_the_schema_takes_the_defaults_and_refuses_what_the_verb_refuses(words):
    schema = json.loads(reference_files(SCREENS)[f"schemas/{words.replace(' ', '-')}.json"])
    Draft202012Validator.check_schema(schema)
    needed = {name: "x" for name in schema["required"]}
    defaults = {
        name: entry["default"]
        for name, entry in schema["properties"].items()
        if "default" in entry and entry["default"] is not None
    }
    found = list(Draft202012Validator(schema).iter_errors({**needed, **defaults}))
    assert [error for error in found if error.path and error.path[0] in defaults] == []
    assert list(Draft202012Validator(schema).iter_errors({**needed, "nonsense": 1}))


def test_groups_of_verbs_are_all_described():
    assert {words.split()[0] for words in VERBS if " " in words} == set(GROUPS)


# -- messages -----------------------------------------------------------------------------------

OPTIONS = {name for words in VERBS for name in declaration(verb_function(words)).parameters} | set(
    OUTPUTS
)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# Flags of other programs, and custom properties of style sheets.
FOREIGN = (
    "apps/integrations/pytest_plugin.py",
    "report/charts/svg.py",
    "metrics/__main__.py",
    "models/inference/weights.py",
    "models/asks.py",
    "data/logs/inspect_log.py",
)


def texts(path):
    """Return the texts of a module that a reader may see: no docstrings, no examples."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} | {
        id(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "example"
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown
    ]


def test_options_are_written_as_flags_at_the_command_line_alone():
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not str(path.relative_to(SOURCE)).startswith(("cli/", *FOREIGN))
        for line, text in texts(path)
        if FLAG.search(text)
    ]
    assert found == [], "name options through Hint('use {by}'), commands through Call('audit', ..)"


def named_options():
    """Yield where a `Hint` names an option, in its text or in that of a variable."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        given = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                given[node.targets[0].id].append(node.value)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and is_call_of(node, "Hint") and node.args):
                continue
            calls = {
                word.arg
                for word in node.keywords
                if any(is_call_of(value, "Call") for value in values_of(word.value, given))
            }
            for value in values_of(node.args[0], given):
                for name in re.findall(r"\{([a-z_]+)\}", text_of(value)):
                    if name not in calls:
                        yield f"{path.relative_to(SOURCE)}:{node.lineno}", name


def values_of(node, given):
    """Return what a variable may hold in its file, or what stands there."""
    return given[node.id] if isinstance(node, ast.Name) else [node]


def text_of(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_call_of(node, name):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == name


def test_every_option_that_a_message_names_exists():
    found = list(named_options())
    assert len(found) > 30
    assert [(place, name) for place, name in found if name not in OPTIONS] == []
