"""The structure of the code, drawn from its imports: who may use whom, and who does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import grimp

from studies._journey import (
    DECLARED,
    SOURCE,
    audited,
    calls_with,
    climbs,
    entered,
    inputs,
    layers,
)
from studies._page import FOLDER, StudyPage
from studies.measures import HEAD, RUN, table

SAYS = {
    "cli": "words of a shell",
    "apps": "browser, serve, Inspect, pytest",
    "verbs": "one function per verb",
    "bench": "questions with k right answers",
    "answers": "draws become meanings and grades",
    "labels": "plans, labels, watching, judges",
    "models": "endpoints, who is asked, ledger",
    "comparison": "who is better calibrated",
    "trust": "groups, decisions, policies",
    "report": "page, terminal, notebook: from documents alone",
    "data": "any file becomes one checked table",
    "findings": "every sentence, with its test",
    "metrics": "numbers with intervals",
    "core": "errors, randomness, the verb declaration",
}
WIDTH, COLUMN, ROW, BOX = 860, 460, 58, 40


def rooms() -> list[list[str]]:
    """Return the packages of each layer of the import contract, from the top."""
    found: dict[int, list[str]] = {}
    for name, number in layers().items():
        if name in SAYS:
            found.setdefault(number, []).append(name)
    return [found[number] for number in sorted(found)]


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


def size(name: str) -> tuple[int, int]:
    """Return lines and files of a package."""
    files = [path.read_text(encoding="utf-8") for path in (SOURCE / name).rglob("*.py")]
    return sum(len(text.splitlines()) for text in files), len(files)


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
            lines, files = size(name)
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
    rows, found = rooms(), imports()
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
    page.table(["room", "what lives there"], [[name, SAYS[name]] for row in rows for name in row])
    page.heading("How much there is")
    page.text(
        "`python -m studies measures` prints this. Code lines count imports, not blank lines, "
        "comments or docstrings. Nine of ten functions are no longer than 'function p90'. "
        f"'Repeated' lines stand in a run of {RUN} or more at another place of the room, or of the "
        "house, too. 'Untyped' are places that say `dict[str, Any]` or `Mapping[str, Any]`."
    )
    page.table(list(HEAD), [list(row) for row in table()])
    journey(page)
    page.write()


def journey(page: StudyPage) -> None:
    """Write where the input of an audit goes, from a run of each kind."""
    page.heading("One door")
    page.text(
        "`audit` was run on an input of each kind, and every call was followed. The table has the "
        "files that the input itself enters (not what is made of it) until it is opened, in order; "
        "the verb's declaration in `core/verb.py` checks options before it calls the verb, and is "
        "not counted."
    )
    climbed: dict[str, set[tuple[str, str]]] = {}
    rows = []
    with TemporaryDirectory(prefix="calibrant-house-") as folder:
        kinds = dict(inputs(Path(folder)))
        for kind, data in kinds.items():
            calls = audited(data)
            places = entered(data, calls)
            climbed[kind] = climbs(calls)
            handed_up = climbs(calls_with(data, calls)) - {DECLARED}
            rows.append([kind, len(places), " → ".join(places), len(handed_up)])
        climbed["streamed"] = climbs(audited(kinds["parquet"], engine="local"))
    page.table(["input", "files", "entered", "handed back up"], rows)
    page.text(
        "'Handed back up' counts calls with the input from code of a lower layer into a higher "
        "one. Of all other calls of these runs, streamed or not, these climb:"
    )
    pairs = sorted(set().union(*climbed.values()))
    page.table(
        ["from", "into", "in"],
        [
            [*pair, ", ".join(kind for kind, own in climbed.items() if pair in own)]
            for pair in pairs
        ],
    )
    page.text(
        "The first is the declaration, which calls the verb. The others are functions given to "
        "`stats` as the thing to search or to sum: they get numbers and return numbers. A "
        "streamed audit works on blocks side by side: threads run the function that builds a "
        "block's entry. `tests/inputs/test_door.py` repeats these runs."
    )


if __name__ == "__main__":
    main()
