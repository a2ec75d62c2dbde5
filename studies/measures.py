"""How much house there is: code lines, files, long functions, repeated lines, untyped places."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "calibrant"
# So many equal lines in a row are a repetition.
RUN = 6
_UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")
_PARTS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Measures:
    """What is counted of a folder of code."""

    code_lines: int
    files: int
    longest_file: int
    function_p90: int
    repeated_lines: int
    untyped_places: int


def code_lines(source: str) -> list[str]:
    """Return the lines of code, imports too, without blank lines, comments and docstrings.

    >>> code_lines('\"\"\"What.\"\"\"\\nimport os\\n\\n# Why.\\nx = 1\\n')
    ['import os', 'x = 1']
    """
    told: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _PARTS) and ast.get_docstring(node, clean=False) is not None:
            words = node.body[0]
            told.update(range(words.lineno, (words.end_lineno or 0) + 1))
    lines = enumerate(map(str.strip, source.splitlines()), 1)
    return [line for number, line in lines if line and line[0] != "#" and number not in told]


def function_lengths(source: str) -> list[int]:
    """Return the lines of every function without its docstring, in order."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            words = node.body[0] if ast.get_docstring(node) is not None else None
            doc = (words.end_lineno or 0) - words.lineno + 1 if words else 0
            found.append((node.end_lineno or 0) - node.lineno + 1 - doc)
    return found


def p90(lengths: list[int]) -> int:
    """Return the length that nine of ten functions do not exceed."""
    return sorted(lengths)[int(0.9 * len(lengths))] if lengths else 0


def repeated_lines(sources: list[str]) -> int:
    """Count lines that stand, in the same run of six or more, at another place too."""
    places: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, source in enumerate(sources):
        for start, run in _runs(code_lines(source)):
            places[run].append((number, start))
    found = {
        (number, start + step)
        for where in places.values()
        if len(where) > 1
        for number, start in where
        for step in range(RUN)
    }
    return len(found)


def _runs(lines: list[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    bare = [line for line in lines if not line.startswith(("import ", "from "))]
    for start in range(len(bare) - RUN + 1):
        yield start, tuple(bare[start : start + RUN])


def measured(folder: Path) -> Measures:
    """Measure a folder of code."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    return Measures(
        code_lines=sum(len(code_lines(source)) for source in sources),
        files=len(sources),
        longest_file=max((len(source.splitlines()) for source in sources), default=0),
        function_p90=p90([length for source in sources for length in function_lengths(source)]),
        repeated_lines=repeated_lines(sources),
        untyped_places=sum(len(_UNTYPED.findall(source)) for source in sources),
    )


HEAD = ("room", "code lines", "files", "longest file", "function p90", "repeated", "untyped")


def table() -> list[tuple[str, ...]]:
    """Return a row per room, the whole house last."""
    rooms = sorted(path for path in SOURCE.iterdir() if path.is_dir() and any(path.rglob("*.py")))
    folders = [*((path.name, path) for path in rooms), ("all", SOURCE)]
    return [(name, *_cells(measured(path))) for name, path in folders]


def _cells(found: Measures) -> tuple[str, ...]:
    return tuple(f"{getattr(found, name):,}" for name in Measures.__slots__)


def main() -> None:
    for row in (HEAD, *table()):
        sys.stdout.write("  ".join(cell.rjust(13) for cell in row) + "\n")


if __name__ == "__main__":
    main()
