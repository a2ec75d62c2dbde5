"""A page of the documentation that a study writes: words, tables and figures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))
FOLDER = ROOT / "docs" / "studies"


class StudyPage:
    """Collects a page and writes ``docs/studies/<part>.md`` with its figures beside it."""

    def __init__(self, part: str, title: str) -> None:
        self.part = part
        self.lines = [f"# {title}", "", f"Written by `python -m studies {part}`.", ""]

    def text(self, words: str) -> None:
        print(words, flush=True)
        self.lines += [words, ""]

    def heading(self, words: str) -> None:
        self.lines += [f"## {words}", ""]

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        block = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
        block += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
        print("\n".join(block), flush=True)
        self.lines += [*block, ""]

    def figure(self, name: str, chart: alt.TopLevelMixin, caption: str) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        file = f"{self.part}-{name}.svg"
        chart.save(FOLDER / file)
        self.lines += [f"![Figure]({file})", "", f"*{caption}*", ""]

    def move_end(self, start: int, to: int) -> None:
        """Put the lines from `start` on before line `to`: a page says first what was found."""
        self.lines[to:] = [*self.lines[start:], *self.lines[to:start]]

    def write(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.lines).rstrip() + "\n"
        (FOLDER / f"{self.part}.md").write_text(text, encoding="utf-8")


def estimate(found: dict[str, Any]) -> str:
    """Write an estimate of a result document with its interval."""
    if found["value"] is None:
        return "undefined"
    if found["low"] is None:
        return f"{found['value']:.3f}"
    return f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value).replace("|", "\\|")
