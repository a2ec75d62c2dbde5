"""Packages that load their names when asked for still behave as if they had loaded them all."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = [
    f"calibrant.{name}"
    for name in ("core", "metrics", "metrics.semantic", "labels", "data", "report")
]


def _run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _shown_to_type_checkers(package):
    """Return {name: full name of its module} of the imports that type checkers read.

    They take a name for public where it is imported under its own name (`x as x`).
    """
    tree = ast.parse(Path(importlib.import_module(package).__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        alias.name: node.module
        for node in imports
        for alias in node.names
        if alias.asname == alias.name
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_types_names_and_modules_agree(package):
    module = importlib.import_module(package)
    shown = _shown_to_type_checkers(package)
    assert set(shown) == set(module.__all__) == set(module.__all__) & set(dir(module))
    for name, home in shown.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name), name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_never_becomes_its_module(package):
    """Import every module of the package first: no exported name may turn into a module."""
    modules = [
        found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ]
    code = (
        f"import importlib, types; package = importlib.import_module({package!r})\n"
        f"for name in {modules!r}: importlib.import_module({package!r} + '.' + name)\n"
        "print([n for n in package.__all__ if isinstance(getattr(package, n), types.ModuleType)])"
    )
    assert _run(code) == "[]"


@pytest.mark.parametrize(("package", "name"), [("metrics", "corp")])
def test_a_function_named_like_its_module_is_the_function(package, name):
    import_both = f"import calibrant.{package}.{name} as m; from calibrant.{package} import {name}"
    assert _run(f"{import_both}; print(type({name}).__name__, m is {name})") == "function True"


def test_modules_are_attributes_without_an_import_of_their_own():
    code = "import calibrant.metrics as m; print(m.binned.__name__, m.semantic.pool.__name__)"
    assert _run(code) == "calibrant.metrics.binned calibrant.metrics.semantic.pool"


def test_unknown_name_is_an_attribute_error_that_imports_report():
    with pytest.raises(AttributeError, match="has no attribute 'eec'"):
        _ = importlib.import_module("calibrant.metrics").eec
    with pytest.raises(ImportError, match="cannot import name 'eec'"):
        from calibrant.metrics import eec  # noqa: F401


@pytest.mark.parametrize(
    ("loaded", "spared"),
    [
        ("calibrant.cli.main", ["numpy", "scipy", "pyarrow", "polars", "rich.console"]),
        (
            "calibrant.metrics.blocks.cell_block",
            ["scipy.fft", "scipy.optimize", "scipy.sparse", "polars"],
        ),
        ("calibrant.verbs.audit", ["scipy.stats", "polars", "calibrant.metrics.semantic"]),
        (
            "calibrant.metrics",
            ["calibrant.metrics.semantic", "calibrant.metrics.recalibration.calibrators"],
        ),
    ],
)
def test_what_is_not_needed_is_not_loaded(loaded, spared):
    code = f"import sys, {loaded}; print([name for name in {spared!r} if name in sys.modules])"
    assert _run(code) == "[]"
