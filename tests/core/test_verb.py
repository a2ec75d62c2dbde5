"""What follows from a verb's signature: the same rule for Python and for the command line."""

import datetime as dt
import inspect
import json
import os
import pickle
import subprocess
import sys
from typing import Annotated, TypedDict, Unpack

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli import VERBS, verb_function
from calibrant.cli.main import app
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.values import checked, parsed
from calibrant.core.verb import Option, declaration, verb

RANGES = ("min", "max", "above", "below")


def limited():
    """Every number of every verb that has a range, with values just outside of it."""
    for words in VERBS:
        for name, parameter in declaration(verb_function(words)).parameters.items():
            option = parameter.option
            if parameter.type not in (int, float):
                continue
            outside = {
                "min": lambda end: end - 1,
                "max": lambda end: end * 2 + 1,
                "above": lambda end: end,
                "below": lambda end: end,
            }
            for end in RANGES:
                limit = getattr(option, end)
                if limit is not None:
                    yield words, name, outside[end](limit)


LIMITED = list(limited())


def test_most_numbers_have_a_range():
    assert len(LIMITED) > 60


@pytest.mark.parametrize(("words", "name", "value"), LIMITED)
def test_a_number_out_of_range_is_refused_by_name_before_any_work(words, name, value):
    parameter = declaration(verb_function(words)).parameters[name]
    value = int(value) if parameter.type is int else value
    with pytest.raises(InputError) as error:
        parameter.taken(value)
    assert str(error.value).startswith(f"{name} ")
    error.value.for_shell({name: parameter.word})
    assert str(error.value).startswith(f"--{parameter.word} ")


@pytest.mark.parametrize(("words", "name"), sorted({(words, name) for words, name, _ in LIMITED}))
def test_nan_and_text_are_no_numbers(words, name):
    parameter = declaration(verb_function(words)).parameters[name]
    for value in (float("nan"), "many", True):
        with pytest.raises(InputError, match=f"^{name} "):
            parameter.taken(value)


@pytest.mark.parametrize("words", VERBS)
def test_defaults_keep_their_own_rules(words):
    for parameter in declaration(verb_function(words)).parameters.values():
        if parameter.default is not inspect.Parameter.empty and not parameter.option.place:
            parameter.taken(parameter.default)


def test_python_and_the_command_say_the_same():
    with pytest.raises(InputError) as python:
        cal.audit([0.5, 0.6], [1, 0], bins=0)
    assert str(python.value) == "bins is a whole number from 1 to 100,000, got 0"
    typed = CliRunner().invoke(app, ["audit", "nothing.csv", "--bins", "0"])
    assert str(typed.exception) == "--bins is a whole number from 1 to 100,000, got 0"
    assert typed.exception.exit_code == 2


def test_numpy_numbers_are_numbers():
    assert cal.audit([0.5, 0.6] * 20, [1, 0] * 20, bins=np.int64(5), resamples=20)["settings"]


def test_one_name_may_stand_alone_in_a_list():
    table = {"confidence": [0.9, 0.4] * 30, "correct": [1, 0] * 30, "topic": ["a", "b"] * 30}
    one = cal.audit(table, by="topic", resamples=20)
    assert [entry["group"] for entry in one["results"] if entry["group"]] == [
        {"topic": "a"},
        {"topic": "b"},
    ]


def test_an_unknown_argument_is_answered_with_the_closest():
    with pytest.raises(InputError, match=r"no option 'bin'\n.*'bins'"):
        cal.audit([0.5], [1], bin=3)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("names", "a, b", ["a", "b"]),
        ("whole numbers", "1,2", [1, 2]),
        ("numbers", "1,inf", [1.0, float("inf")]),
        ("map", "a=1,b=2", {"a": 1.0, "b": 2.0}),
        ("map or numbers", "1,2", [1.0, 2.0]),
        ("name or number", "0.5", 0.5),
        ("name or number", "mean", "mean"),
    ],
)
def test_texts_become_values(kind, text, value):
    assert parsed(Option("x", kind=kind), "x", text, str) == value


def test_a_day_may_be_a_text():
    option = Option("x", kind="date")
    assert checked(option, "start", "2026-01-31", str) == dt.date(2026, 1, 31)
    with pytest.raises(InputError, match="start, a date, is written like 2026-01-31"):
        checked(option, "start", "2026-02-30", str)


def test_hints_survive_a_trip_to_another_process():
    error = InputError("x", hint=Hint("use {by} or `{call}`", by="a", call=Call("run", "S")))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own bytes
    again.for_shell()
    assert str(again) == "x\n  -> use --by a or `calibrant run S`"


def test_a_reader_who_has_had_enough_is_no_failure():
    done = subprocess.run(
        f"{sys.executable} -m calibrant methods | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[-1] in ("0", "141")


def test_help_has_its_groups_in_order_and_ends_with_an_example():
    flags = ("-h", "--help", "--help-all")
    short, named, every = (CliRunner().invoke(app, ["audit", flag]).output for flag in flags)
    assert short == named
    positions = [
        every.index(name) for name in ("Input:", "What to compute:", "Output:", "Advanced:")
    ]
    assert positions == sorted(positions)
    for text in (short, every):
        assert "Example:\n  calibrant audit" in text


class Shared(TypedDict, total=False):
    level: float
    name: str | None


@verb()
def shared(
    *,
    level: Annotated[float, Option("Level.", above=0, below=1)] = 0.95,
    name: Annotated[str | None, Option("Name.", metavar="NAME")] = None,
) -> None:
    """Declare options that verbs share."""


def test_options_that_verbs_share_are_declared_once():
    @verb(shared=declaration(shared))
    def first(
        size: Annotated[int, Option("Size.", min=1)] = 3, **options: Unpack[Shared]
    ) -> dict[str, object]:
        return {"size": size, **options}

    assert first() == {"size": 3, "level": 0.95, "name": None}
    assert first(size=2, level=0.5)["level"] == 0.5
    assert list(inspect.signature(first).parameters) == ["size", "level", "name"]
    assert list(declaration(first).parameters) == ["size", "level", "name"]
    with pytest.raises(InputError, match="level"):
        first(level=2.0)
    with pytest.raises(InputError, match="no option 'nam'"):
        first(nam="x")


ODD = (0, -1, 1.5, float("nan"), True, "", "x", "wrong=1", "1,2", b"x", [], [1], ["a", "a"], {})
ODD += (
    {"x": "y"},
    {"x": 1e300},
    {"x": float("nan")},
    object(),
    dt.date(2026, 1, 1),
    np.array([1.0]),
)


def refusal(parameter, value):
    try:
        parameter.taken(value)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("words", VERBS)
def test_whatever_is_given_is_taken_or_refused_by_name(words):
    for name, parameter in declaration(verb_function(words)).parameters.items():
        for value in ODD:
            told = refusal(parameter, value)
            assert told is None or parameter.option.argument or name in told, (name, value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda table: cal.groups(table, features=["x", "x"]), "features names 'x' more than once"),
        (lambda table: cal.audit(table, by=["x", "x"]), "by names 'x' more than once"),
        (lambda table: cal.audit(table, labels=3), "labels is a path, got 3"),
        (lambda table: cal.label_status(table, labels=3), "labels is a path, got 3"),
        (lambda table: cal.compare(table, target=None), "target is a word or a number, got None"),
        (lambda table: cal.plan(table, start=5), "start, a date, is written like 2026-01-31"),
        (
            lambda table: cal.plan(table, published=5),
            "published is a list of numbers or a table, got 5",
        ),
        (
            lambda table: cal.decide(table, costs={"wrong": 1e300, "ask": 1}),
            "costs holds numbers up to 1e+15",
        ),
        (lambda table: cal.decide(table, costs=[1, 2]), "costs is written wrong=10,ask=1"),
        (
            lambda table: cal.cascade(table, models=["a", "b"], price="1,x"),
            "price is written",
        ),
    ],
)
def test_python_refuses_what_the_command_cannot_even_be_told(call, told):
    with pytest.raises(InputError) as error:
        call({"confidence": [0.5], "correct": [1], "x": ["u"]})
    assert str(error.value).startswith(told)


def test_a_document_with_a_date_is_plain():
    document = cal.plan(error_rate=0.1, precision=0.05, drift=0.01, start="2026-01-31").to_dict()
    assert document["settings"]["start"] == "2026-01-31"
    assert json.loads(json.dumps(document)) == document


def test_an_option_says_what_the_docstring_says_first():
    @verb()
    def count(
        size: Annotated[int, Option(min=1)] = 3,
        by: Annotated[str, Option(choices=("row", "question"))] = "row",
        told: Annotated[int, Option("By itself.")] = 0,
    ) -> int:
        """Count.

        Parameters
        ----------
        size
            How many
            rows.

            More for readers of Python.
        by, told
            What is counted.

        Returns
        -------
        int
            Rows.
        """
        return size

    options = {name: known.option for name, known in declaration(count).parameters.items()}
    assert [options[name].help for name in options] == [
        "How many rows.",
        "What is counted.",
        "By itself.",
    ]
    assert options["by"].metavar == "row|question"
