"""Every next step of a stored document can be taken: the command runs, the call is well-formed."""

import ast
import shlex

import polars as pl
import pytest

import calibrant as cal
from calibrant.cli import VERBS
from calibrant.cli.command import VerbCommand
from calibrant.core.verb import declaration
from calibrant.findings.claims.next_step import next_step
from golden.cases import CASES
from support import call

# Commands that end only when somebody ends them, or that name a place of the reader's.
NOT_RUN = ("calibrant serve ", "calibrant run STUDY", "calibrant view ")


def check_call(text):
    """Refuse a call in Python whose function or whose values the verb does not take."""
    expression = ast.parse(text, mode="eval").body
    if isinstance(expression.func, ast.Attribute) and isinstance(expression.func.value, ast.Call):
        assert expression.func.attr in ("to_html", "to_json")
        expression = expression.func.value
    declared = declaration(getattr(cal, expression.func.attr)).parameters
    assert [argument.id for argument in expression.args] == ["table"]
    for keyword in expression.keywords:
        declared[keyword.arg].taken(ast.literal_eval(keyword.value))


def check_command(command):
    """Refuse a command that cannot be typed."""
    rest = shlex.split(command)[1:]
    words = next(w for w in (" ".join(rest[:2]), rest[0]) if w in VERBS)
    VerbCommand(words).make_context(words, rest[len(words.split()) :])


def fill_in(batch):
    """Label a batch as a person would."""
    pl.read_csv(batch).with_columns(correct=pl.lit(1)).write_csv(batch)


@pytest.mark.parametrize("name", CASES)
def test_the_next_step_can_be_taken(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    step = next_step(CASES[name]().to_dict())
    if step is None:
        return
    if step.command.startswith("calibrant."):
        check_call(step.command)
        return
    if (tmp_path / "batch.csv").exists():
        fill_in(tmp_path / "batch.csv")
    # A copy may follow, of what the command needs.
    command = step.command.partition(" && ")[0]
    check_command(command)
    if not command.startswith(NOT_RUN):
        done = call(*shlex.split(command)[1:])
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "text", ["calibrant.decide(table, max_error=2)", "calibrant.decide(table, best=1)"]
)
def test_a_call_that_cannot_be_made_is_seen(text):
    with pytest.raises((KeyError, cal.InputError)):
        check_call(text)
