"""Every hint names an option, a verb or an extra that exists."""

import ast
import re
import tomllib

import pytest
from prose import calls, messages, nodes, text_of

from calibrant.cli import GROUPS, VERBS, verb_function
from calibrant.cli.command import VerbCommand
from calibrant.core.verb import declaration
from support import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
COMMANDS = {words: VerbCommand(words) for words in VERBS}
FLAGS = {
    words: {flag for part in command.params for flag in (*part.opts, *part.secondary_opts)}
    | {"--help", "-h"}
    for words, command in COMMANDS.items()
}
ARGUMENTS = {words: set(declaration(verb_function(words)).signature.parameters) for words in VERBS}
ALL_ARGUMENTS = set().union(*ARGUMENTS.values()) | {
    part.name for command in COMMANDS.values() for part in command.params
}
# A command in running text: `calibrant VERB ..`, up to the closing quote.
COMMAND = re.compile(r"`(calibrant (?:[^`]|\n)+)`")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
EXTRA = re.compile(r"calibrant\[([\w,-]+)\]|extras? `?([a-z-]+)`?(?=[\s.,;)`']|$)")
PLACEHOLDERS = ("VERB", "X")
_NAMED = re.compile(r"\{(\w+)\}")


def words_of(command):
    """Return the verb of a command, the longest name that fits; None where there is none."""
    rest = command.removeprefix("calibrant ").split()
    for size in (2, 1):
        if " ".join(rest[:size]) in VERBS:
            return " ".join(rest[:size])
    return None


def wrong_with(command):
    """Return what a command names that does not exist."""
    first = command.split()[1]
    if first in PLACEHOLDERS or first.startswith(("-", "{")):
        return None
    words = words_of(command)
    if words is None:
        return None if first in GROUPS else f"no verb {first}"
    unknown = set(FLAG.findall(command)) - FLAGS[words]
    return f"{words} has no {', '.join(sorted(unknown))}" if unknown else None


def texts():
    """Yield every text of the source and of the pages that may hold a command."""
    for path, node in nodes():
        text = text_of(node) if isinstance(node, ast.Constant | ast.JoinedStr) else None
        if text and "calibrant" in text:
            yield str(path), text
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield page.name, page.read_text(encoding="utf-8")


def test_every_option_of_a_hint_exists():
    seen = 0
    for path, line, node in calls("Hint"):
        template = text_of(node.args[0]) if node.args else None
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        # What is filled in by the code is an X here.
        for name in set(_NAMED.findall(template or "")) - {"X"}:
            is_call = isinstance(given.get(name), ast.Call)
            if not name.isdigit() and not is_call and not isinstance(given.get(name), ast.Name):
                seen += 1
                assert name in ALL_ARGUMENTS, f"{path}:{line}: no verb has {name}"
    assert seen > 50


def test_every_call_of_a_hint_can_be_made():
    seen = 0
    for path, line, node in calls("Call"):
        if not (node.args and isinstance(node.args[0], ast.Constant)):
            continue
        words = node.args[0].value
        seen += 1
        assert words in VERBS, f"{path}:{line}: no verb {words}"
        # Columns that the caller named are handed on as they are.
        for keyword in (keyword for keyword in node.keywords if keyword.arg is not None):
            known = ARGUMENTS[words] | {part.name for part in COMMANDS[words].params}
            assert keyword.arg in known, f"{path}:{line}: {words} has no {keyword.arg}"
    assert seen > 5


def test_every_command_in_a_text_exists():
    seen = 0
    for where, text in texts():
        for command in COMMAND.findall(text):
            seen += 1
            problem = wrong_with(" ".join(command.split()))
            assert problem is None, f"{where}: {problem}: {command}"
    assert seen > 80


def test_every_extra_that_is_named_exists():
    seen = 0
    for where, text in [*texts(), *messages()]:
        for several, one in EXTRA.findall(text):
            for name in set((several or one).split(",")) - {"X"}:
                if several or name in ("local", "ray", "scale", "notebook", "math") or "-" in name:
                    seen += 1
                    assert name in EXTRAS, f"{where}: no extra {name}"
    for path, line, node in calls("optional_import", "require", "MissingDependencyError"):
        for keyword in node.keywords:
            if keyword.arg == "extra" and isinstance(keyword.value, ast.Constant):
                seen += 1
                assert keyword.value.value in EXTRAS, f"{path}:{line}"
    assert seen > 5


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("calibrant audit T --by topic", None),
        ("calibrant audit T --nonsense", "audit has no --nonsense"),
        ("calibrant label next T --out b.csv", None),
        ("calibrant frobnicate T", "no verb frobnicate"),
    ],
)
def test_the_rule_sees_what_is_wrong(command, problem):
    assert wrong_with(command) == problem
