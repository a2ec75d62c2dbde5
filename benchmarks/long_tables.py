"""Long tables of a written page become files: the page shows their first rows and links the rest.

A page is read by people in a hurry; every row stays, as CSV, in the folder `tables` beside it.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path

from benchmarks.harness import ROOT

FOLDERS = tuple(ROOT / "docs" / name for name in ("studies", "simulations", "benchmarks"))
# A table of more rows than this is cut to the rows shown.
MOST, SHOWN = 5, 3
# Wide rows are fewer: so many words, or more where the table has not many rows.
_WORDS, _WORDS_OF_FEW, _FEW = 30, 45, 7
_TABLE = re.compile(r"(?:^\|.*(?:\n|\Z))+", re.MULTILINE)
_BETWEEN = re.compile(r"(?<!\\)\|")


def shorten_pages() -> None:
    """Shorten every generated page; what is short already stays as it is."""
    for folder in FOLDERS:
        for page in sorted(folder.glob("*.md")):
            shorten(page)


def shorten(page: Path) -> None:
    """Keep the long tables of one page as files beside it; a file has the number of its table."""
    whole = page.read_text(encoding="utf-8")
    names = (f"{page.stem}-{number}.csv" for number in itertools.count(1))
    files: dict[str, str] = {}

    def shortened(found: re.Match[str]) -> str:
        head, rule, *rows = found[0].splitlines()
        if len(rows) <= MOST:
            return found[0]
        # A table that was cut before keeps its file.
        name = next(name for name in names if f"(tables/{name})" not in whole)
        files[name] = _as_csv([head, *rows])
        link = f"[All {len(rows)} rows](tables/{name})"
        return "\n".join([head, rule, *first_rows(rows, len(rows)), "", link, ""])

    text = _TABLE.sub(shortened, whole)
    folder = page.parent / "tables"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    for old in folder.glob(f"{page.stem}-[0-9]*.csv"):
        if f"(tables/{old.name})" not in text:
            old.unlink()
    page.write_text(text, encoding="utf-8")


def first_rows(rows: list[str], size: int) -> list[str]:
    """Return the rows that the page shows of a table of this size: one at least."""
    most = _WORDS_OF_FEW if size <= _FEW else _WORDS
    words = itertools.accumulate(len(row.split()) for row in rows[:SHOWN])
    return rows[: max(1, sum(count <= most for count in words))]


def _as_csv(lines: list[str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in lines:
        cells = _BETWEEN.split(line.strip().removeprefix("|").removesuffix("|"))
        writer.writerow(cell.strip().replace("\\|", "|") for cell in cells)
    return out.getvalue()
