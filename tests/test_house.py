"""The structure: no circles of imports, no file or function that overflows."""

import ast
import importlib.util
import re
from collections import Counter

import grimp
import pytest
from studies.measures import RUN, code_lines, function_lengths, p90, repeated_lines

from support import ROOT

SOURCE = ROOT / "src" / "calibrant"
LONGEST_FILE = 400
LONG_FUNCTION = 25


def circles(follows):
    """Return the groups of names that follow each other in a circle (Tarjan)."""
    found, order, low, waiting = [], {}, {}, []

    def visit(start):
        work = [(start, iter(sorted(follows[start])))]
        order[start] = low[start] = len(order)
        waiting.append(start)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    waiting.append(other)
                    work.append((other, iter(sorted(follows[other]))))
                    break
                if other in waiting:
                    low[name] = min(low[name], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    place = waiting.index(name)
                    if len(waiting) - place > 1:
                        found.append(sorted(waiting[place:]))
                    del waiting[place:]

    for name in follows:
        if name not in order:
            visit(name)
    return found


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_no_modules_import_each_other_in_a_circle():
    graph = grimp.build_graph("calibrant", exclude_type_checking_imports=True, cache_dir=None)
    follows = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert circles(follows) == []


def test_no_file_is_longer_than_one_can_read():
    long = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_only_the_fixture_leads_to_the_real_data():
    """Any other way would fail where they are absent, and nobody with the data would see it."""
    ways = ("shared_data_folder", "CALIBRANT_DATA", "ROOT.parent", '/ "shared"')
    # These say where it is, or are told to leave out what needs it.
    allowed = {"support.py", "test_docs.py", "test_house.py", "ecosystem/table_of_logs.py"}
    tests = ROOT / "tests"
    found = [
        path.relative_to(tests).as_posix()
        for path in tests.rglob("*.py")
        if any(way in path.read_text(encoding="utf-8") for way in ways)
    ]
    assert set(found) <= allowed


def test_what_only_the_long_run_tests_exists():
    for line in (ROOT / "tests" / "long.txt").read_text(encoding="utf-8").splitlines():
        path, _, name = line.removesuffix("*").partition("::")
        if line and not line.startswith("#"):
            text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
            assert text, f"{line}: no such file: change tests/long.txt"
            assert not name or f"def {name}(" in text, f"{line}: change tests/long.txt"


def defined(path):
    """Yield the functions, classes and constants of a module; what registers itself is left out."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.decorator_list and not getattr(node, "bases", ()):
                yield node.name
        elif isinstance(node, ast.Assign):
            yield from (name.id for name in node.targets if isinstance(name, ast.Name))


def test_nothing_is_defined_that_nobody_names():
    """Counted by name over modules, scripts and pages: what a test alone calls is not used."""
    modules = sorted(SOURCE.rglob("*.py"))
    pages = [ROOT / "pyproject.toml", *sorted((ROOT / "docs").rglob("*.md"))]
    pages += sorted(SOURCE.rglob("*.toml"))
    named = Counter()
    scripts = [
        path
        for part in ("benchmarks", "simulations", "studies")
        for path in (ROOT / part).rglob("*.py")
    ]
    for path in (*modules, *scripts, *pages):
        named.update(re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8")))
    for path in modules:
        if path.name != "__init__.py":
            named.subtract(defined(path))
    unused = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in modules
        if path.name != "__init__.py"
        for name in defined(path)
        if named[name] < 1 and not name.startswith(("__", "pytest_"))
    ]
    assert unused == [], "delete what nothing but a test names"


def test_docstrings_are_not_counted():
    assert function_lengths('def f():\n    """Two\n    lines."""\n    return 1\n') == [2]


def test_nine_of_ten_functions_are_short():
    found = [lines for path in SOURCE.rglob("*.py") for lines in function_lengths(path.read_text())]
    assert p90(found) <= LONG_FUNCTION


def test_lines_of_code_are_those_that_do_something():
    head = '"""What."""\n\nimport os  # why\n# why\n'
    source = f'{head}\n\ndef f():\n    """Say\n    it."""\n    return os\n'
    assert code_lines(source) == ["import os  # why", "def f():", "return os"]


def test_a_run_that_stands_twice_is_counted_at_both_places():
    run = "".join(f"x{number} = {number}\n" for number in range(RUN))
    assert repeated_lines([f"import os\n{run}a = 1\n", f"b = 2\n{run}"]) == 2 * RUN
    assert repeated_lines([run, run.replace("x0", "y")]) == 0


PACKAGES = sorted(path.parent for path in SOURCE.glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_says_where_to_start(package):
    words = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    sentence, _, start = words.partition("\n\n")
    assert sentence.endswith(".")
    assert start.startswith("Start with")
    for name in re.findall(r"`([a-z_.]+(?:\.[A-Za-z_]+)?)`", start):
        module, _, last = f"calibrant.{package.name}.{name}".rpartition(".")
        found = importlib.util.find_spec(f"{module}.{last}") if "." not in name else None
        assert found or hasattr(importlib.import_module(module), last), name
