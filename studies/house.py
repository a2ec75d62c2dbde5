"""The structure of the code, drawn from its imports: who may use whom, and who does."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import grimp

from studies._page import FOLDER, ROOT, StudyPage

SOURCE = ROOT / "src" / "calibrant"
SAYS = {
    "cli": "commands, generated from the verbs",
    "workflows": "what joins several verbs",
    "integrations": "other frameworks call us",
    "verbs": "one function per verb",
    "inputs": "the one door: opens everything once",
    "report": "page, terminal, notebook: from documents alone",
    "planning": "labels, plans, monitoring",
    "epistemic": "groups, deferral, cascades",
    "comparison": "who is better calibrated",
    "claims": "every sentence, with its test",
    "metrics": "numbers with intervals",
    "confidence": "methods that score answers",
    "semantics": "same meaning, right or wrong",
    "collect": "asks the models of a study",
    "sources": "question sets and benchmarks",
    "clients": "endpoints, ledger traffic, the small model",
    "records": "tables, studies, logs, ledger",
    "stats": "intervals, tests, sums that merge",
    "documents": "types and schemas of results",
    "core": "errors, randomness, the verb declaration",
}
WIDTH, COLUMN, ROW, BOX = 860, 460, 58, 40


def layers() -> list[list[str]]:
    """Return the layers of the contract, from the top, as they are declared."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
    rows = [[name.strip() for name in row.split("|")] for row in contract["layers"]]
    return [kept for row in rows if (kept := [name for name in row if name in SAYS])]


def imports() -> Counter[tuple[str, str]]:
    """Count the imports of modules between packages."""
    graph = grimp.build_graph("calibrant", exclude_type_checking_imports=True, cache_dir=None)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = module.split(".")[1:2], other.split(".")[1:2]
            if all(pair) and pair[0] != pair[1]:
                found[pair[0][0], pair[1][0]] += 1
    return found


def size(name: str) -> tuple[int, int, int]:
    """Return lines, files and lines of the longest file of a package."""
    files = [len(path.read_text(encoding="utf-8").splitlines()) for path in _files(name)]
    return sum(files), len(files), max(files)


def _files(name: str) -> list[Path]:
    return sorted((SOURCE / name).rglob("*.py"))


def drawing(rows: list[list[str]], found: Counter[tuple[str, str]]) -> str:
    """Draw a room per package, layers from the top, an arc per pair of packages that import."""
    depth = {name: number for number, row in enumerate(rows) for name in row}
    parts = []
    for (above, below), count in sorted(found.items(), key=lambda item: item[1]):
        if above not in depth or below not in depth or depth[above] == depth[below]:
            continue
        start, end = (depth[name] * ROW + 10 + BOX / 2 for name in (above, below))
        bulge = COLUMN + 20 + 28 * abs(depth[below] - depth[above])
        colour = "#c62828" if end < start else "#33475b"
        parts.append(
            f'<path d="M{COLUMN},{start} C{bulge},{start} {bulge},{end} {COLUMN},{end}" '
            f'fill="none" stroke="{colour}" stroke-width="{min(0.5 + count / 20, 5):.1f}" '
            f'opacity="0.45"><title>{above} uses {below}: {count}</title></path>'
        )
    for row in rows:
        wide = (COLUMN - 10) / len(row)
        for number, name in enumerate(row):
            x, y = 10 + wide * number, depth[name] * ROW + 10
            lines, files, _ = size(name)
            told = f"{lines:,} lines, {files} files"
            words = told if len(row) > 1 else f"{SAYS[name]} · {told}"
            parts.append(
                f'<rect x="{x:.0f}" y="{y}" width="{wide - 6 * (len(row) > 1):.0f}" '
                f'height="{BOX}" rx="6" fill="#fff" stroke="#33475b"/>'
                f'<text x="{x + 10:.0f}" y="{y + 17}" font-weight="600">{name}</text>'
                f'<text x="{x + 10:.0f}" y="{y + 32}" font-size="11" fill="#444">{words}</text>'
            )
    height = len(rows) * ROW + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" font-size="13"><rect width="{WIDTH}" '
        f'height="{height}" fill="#f7f8fa"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    rows, found = layers(), imports()
    rank = {name: depth for depth, row in enumerate(rows) for name in row}
    upward = [pair for pair in found if rank.get(pair[0], 0) > rank.get(pair[1], 99)]
    page = StudyPage("house", "The house")
    page.text(
        "A room is a package, a line an import, and higher rooms use lower ones. The layers are "
        "those of the import contracts in `pyproject.toml`; `make imports` checks them, "
        "`tests/test_house.py` that no modules import each other in a circle."
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "house-rooms.svg").write_text(drawing(rows, found), encoding="utf-8")
    page.lines += ["![Packages from the top down, with their imports.](house-rooms.svg)", ""]
    page.text(f"{sum(found.values()):,} imports between packages, {len(upward)} of them upwards.")
    page.table(
        ["room", "what lives there", "lines", "files", "longest file"],
        [
            [name, SAYS[name], *(f"{number:,}" for number in size(name))]
            for row in rows
            for name in row
        ],
    )
    page.heading("One door")
    page.text(
        "What `audit` is given enters at most twelve files before it has become an opened input: "
        "the verb, the door (`inputs/audit_door.py`, `inputs/opened/door.py`), the question "
        "whether it is too large for memory (`inputs/streams/large.py`), whether it is a log "
        "(`inputs/log_files.py`, `records/convert/recognise.py`), and the readers of `records`. "
        "A test follows it at run time (`tests/inputs/test_door.py`)."
    )
    page.write()
