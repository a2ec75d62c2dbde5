"""The public surface is small and on purpose, and type checkers see all of it."""

import ast
import importlib
from pathlib import Path

import pytest

import calibrant
from calibrant.cli import VERBS, verb_function

# Verbs that are for the command line: they set up the machine, or show the product.
ONLY_COMMANDS = {"demo", "models list", "models fetch", "serve", "view", "init"}
OTHER_NAMES = {"report": "write_report", "import": "import_logs"}
MODULES = {
    "answers",
    "comparison",
    "data",
    "findings",
    "labels",
    "metrics",
    "models",
    "report",
    "trust",
}


def shown_to_type_checkers():
    tree = ast.parse(Path(calibrant.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.asname for node in block.body for alias in node.names}


def test_every_name_is_there_and_is_the_one_that_type_checkers_see():
    assert shown_to_type_checkers() | {"__version__"} == set(calibrant.__all__)
    assert sorted(calibrant.__all__) == calibrant.__all__
    for name in calibrant.__all__:
        assert getattr(calibrant, name) is not None
    assert set(calibrant.__all__) == set(dir(calibrant))


@pytest.mark.parametrize("words", sorted(set(VERBS) - ONLY_COMMANDS))
def test_every_verb_is_a_function(words):
    name = OTHER_NAMES.get(words, words.replace(" ", "_"))
    assert name in calibrant.__all__
    assert getattr(calibrant, name) is verb_function(words)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_public_name_exists(name):
    module = getattr(calibrant, name)
    assert module is importlib.import_module(f"calibrant.{name}")
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), public


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = calibrant.nonsense


KEPT = (Path(__file__).parent / "kept_names.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", KEPT)
def test_what_scripts_outside_import_stays_where_it_is(name):
    module, _, public = name.partition(".")
    assert hasattr(importlib.import_module(f"calibrant.{module}"), public)
