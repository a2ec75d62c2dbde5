"""How are tables read that nobody prepared? 47 with a truth, 25 fresh and 1,000 random ones."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.inputs.random_tables import count

from calibrant import audit, read
from calibrant.core.errors import InputError, QuestionError
from calibrant.data.reading.assignment import decide
from calibrant.data.tables import scan_table, some_rows
from studies._page import DATA, ROOT, StudyPage
from studies.measures import code_lines

FRESH = Path(__file__).with_name("door_tables.json")
FOLDER = Path(os.environ.get("CALIBRANT_FRESH", ""))
NEAR = 0.015
ORDER = (
    "right at once", "good question", "second of a question", "refused rightly",
    "refused wrongly", "needless question", "bad question", "WRONG SILENTLY",
)  # fmt: skip
BEFORE = "d66e99b9"
OLD = ["cells", "reading", "guesses", "side_by_side", "tables", "text_tables", "json_tables"]
NEW = ["reading", "tables", "text_tables", "json_tables", "loose_tables"]


def main() -> None:
    page = StudyPage("door", "Any file, read by what it holds")
    known(page)
    fresh(page)
    neutral(page)
    units(page)
    random_ones(page)
    speed(page)
    size(page)
    page.write()


# -- how a table fares ------------------------------------------------------------------------


def fares(path: Path, kind: str, accepted: Sequence[Sequence[Any]], never: Sequence[str] = ()):
    """Return how a table fares, and what comes of the first command that is printed."""
    try:
        good = is_right(audit(path, resamples=20), accepted, never)
    except QuestionError as question:
        ends = [followed(path, way.options, accepted, never) for way in question.readings]
        if kind == "refuse":
            return "needless question", ends[0]
        second = "second of a question" if "right" in ends else "bad question"
        return "good question" if ends[0] == "right" else second, ends[0]
    except InputError:
        return "refused rightly" if kind == "refuse" else "refused wrongly", ""
    return "right at once" if good and kind != "refuse" else "WRONG SILENTLY", ""


def followed(path: Path, options: Mapping[str, Any], accepted: Any, never: Any) -> str:
    """Return what a command ends in that is printed below a question."""
    try:
        good = is_right(audit(path, resamples=20, **options), accepted, never)
    except InputError:
        return "stops"
    return "right" if good else "wrong"


def is_right(document: Any, accepted: Sequence[Sequence[Any]], never: Sequence[str]) -> bool:
    """Return whether share right and mean confidence are those of a reading that a person accepts.

    Either each result is one, or all results of a method together are.
    """
    entries = [entry for entry in document["results"] if not entry["group"]]
    if any(entry["method"] in never for entry in entries):
        return False
    alone = [_numbers([entry]) for entry in entries]
    methods = dict.fromkeys(entry["method"] for entry in entries)
    pooled = [_numbers([e for e in entries if e["method"] == name]) for name in methods]
    whole = [_numbers(entries)]
    return any(all(_fits(pair, accepted) for pair in some) for some in (alone, pooled, whole))


def _numbers(entries: Sequence[Any]) -> tuple[float, float | None]:
    n = np.array([entry["n"] for entry in entries], dtype=float)
    values = [{k: (x or {}).get("value") for k, x in e["metrics"].items()} for e in entries]
    said = [value.get("mean_confidence") for value in values]
    right = [
        value["accuracy"] if s is None or value.get("confidence_gap") is None
        # An answer without a confidence counts for the accuracy alone.
        else s - value["confidence_gap"]
        for s, value in zip(said, values, strict=True)
    ]  # fmt: skip
    mean = None if None in said else float(np.average(said, weights=n))
    return float(np.average(right, weights=n)), mean


def _fits(pair: tuple[float, float | None], accepted: Sequence[Sequence[Any]]) -> bool:
    right, said = pair
    return any(
        (y is None or abs(right - y) < NEAR)
        and (p is None or (said is not None and abs(said - p) < NEAR))
        for y, p in accepted
    )


# -- the page ---------------------------------------------------------------------------------


def known(page: StudyPage) -> None:
    """Write how the tables fare whose truth was labelled by hand before the reader was written."""
    page.heading("47 tables with a truth by hand")
    rows, ends = [], []
    for row in csv.DictReader((DATA / "tables" / "truth.csv").open()):
        others = row["other accepted (accuracy/mean confidence)"].split(";")
        pairs = [(row["accuracy"], row["mean_confidence"])]
        pairs += [tuple(part.strip().split("/")) for part in others if part.strip()]
        accepted = [(float(y), float(p) if p else None) for y, p in pairs if y]
        kind, end = fares(DATA / "tables" / row["file"], row["kind"], accepted)
        rows.append([row["file"], row["kind"], kind, end or "–"])
        ends.append((kind, end))
    page.table(["how they fare", "tables"], _counts(ends))
    page.table(["table", "a person would", "here", "first command, followed"], rows)


def fresh(page: StudyPage) -> None:
    """Write how 25 tables fare that were fetched after the reader was frozen; then as mended."""
    page.heading("25 fresh tables")
    tables = json.loads(FRESH.read_text())
    if FOLDER.is_dir() and str(FOLDER) != ".":
        for table in tables:
            given = (FOLDER / table["file"], table["kind"], table["accepted"])
            kind, end = fares(*given, table.get("not", ()))
            table["mended"] = {"kind": kind, "followed": end}
    page.text(
        "They come from public repositories, were labelled by hand before anything was run, and "
        "were read once by the version that was frozen before (blind). Then the reader was mended. "
        "The tables themselves are no part of this project."
    )
    left, right = (
        dict(_counts([(table[when]["kind"], table[when]["followed"]) for table in tables]))
        for when in ("blind", "mended")
    )
    page.table(
        ["how they fare", "blind", "mended"], [[kind, left[kind], right[kind]] for kind in left]
    )
    page.text(
        "Mended: columns called like the classes themselves (A, B, C beside the right letter); "
        "`parsed_confidence` and `token_confidence` are confidences; whether a format was correct "
        "is no outcome; a code of -1 beside 0 and 1 is no confidence; scores of a true and a false "
        "answer that were given are none either; kinds of wrong (`obvious_wrong`); a verdict that "
        "is a probability rounded is no outcome; a column that most rows lack asks nothing; ids "
        "that return are said in the command (`--repeats`); whole numbers beside shares are read."
    )
    page.table(
        ["repository, file", "what a person reads", "blind", "followed", "mended", "followed"],
        [
            [f"{t['repository']}: `{t['path'].rpartition('/')[2]}`", f"{t['kind']}: {t['truth']}",
             t["blind"]["kind"], t["blind"]["followed"] or "–",
             t["mended"]["kind"], t["mended"]["followed"] or "–"]
            for t in tables
        ],
    )  # fmt: skip


def _counts(ends: Sequence[tuple[str, str]]) -> list[list[Any]]:
    kinds = Counter(kind for kind, _ in ends)
    rows: list[list[Any]] = [[kind, kinds[kind]] for kind in ORDER]
    wrong = sum(end == "wrong" for _, end in ends)
    return [*rows, ["first command, followed, ends in a wrong number", wrong]]


def neutral(page: StudyPage) -> None:
    """Write which models and questions are told when their columns are called c1, c2 and so on."""
    page.heading("Models and questions without names")
    folder = DATA / "tables"
    known = [folder / row["file"] for row in csv.DictReader((folder / "truth.csv").open())]
    paths = [*known, *(FOLDER / table["file"] for table in json.loads(FRESH.read_text()))]
    rows = [row for path in paths if path.is_file() and (row := _without_names(path))]
    page.text(
        "All columns but confidence and outcome are renamed, and these two are named. Shown are "
        "the tables in which several models answer; `–`: not told, rows are pooled."
    )
    page.table(["table", "model, with names", "without", "question, with names", "without"], rows)


def _without_names(path: Path) -> list[Any] | None:
    """Return the columns of models and questions with names and without; None for one model."""
    try:
        frame = some_rows(scan_table(path), path)
        named = read(frame)
    except QuestionError as question:
        named = read(frame, **question.readings[0].options)
    except InputError:
        return None
    roles = named.columns
    ours = {roles["confidence"], roles["correct"]}
    if "model" not in roles or frame[roles["model"]].n_unique() < 2 or not ours <= {*frame.columns}:
        return None
    names = {name: f"c{n}" for n, name in enumerate(frame.columns, 1) if name not in ours}
    kept = {role: roles[role] for role in ("confidence", "correct")}
    kept |= {name: text for name, text in named.options.items() if name in ("scale", "right")}
    bare = read(frame.rename(names), **kept).columns
    own = {new: name for name, new in names.items()}
    pairs = ((roles.get(role), own.get(bare.get(role))) for role in ("model", "question_id"))
    return [path.name, *(name or "–" for pair in pairs for name in pair)]


PARTS = {"claims of documents": (3, 9), "fields of forms": (6, 7), "steps of runs": (5, 15)}


def units(page: StudyPage, tables: int = 20) -> None:
    """Write whether the column is told whose rows are alike, by content alone."""
    page.heading("Units without names")
    rows = [
        [kind, *(_units_found(parts, share, tables) for share in (1.2, 0.8, 0.0))]
        for kind, parts in PARTS.items()
    ]
    page.text(
        "Rows are parts of 120 units, and a unit shifts the log odds of all of its rows alike. No "
        "column but confidence and outcome has a name: the unit, the number of the part, a topic "
        "and a number are c1 to c4. `audit` and `decide` say which column it is and name the "
        f"option ({tables} tables each; where units shift nothing, none should be told)."
    )
    columns = [
        "rows are",
        "shift 1.2: c1, another",
        "shift 0.8: c1, another",
        "no shift: c1, another",
    ]
    page.table(columns, rows)


def _units_found(parts: tuple[int, int], spread: float, tables: int) -> str:
    """Return in how many tables the unit is told, and in how many another column."""
    audits = [audit(_parts(parts, spread, seed), resamples=20) for seed in range(tables)]
    blocks = [entry for result in audits for entry in result["results"] if not entry["group"]]
    groups = [group for entry in blocks for group in entry["dependence"]["groups"]]
    columns = [group["column"] for group in groups if group["kind"] == "column"]
    return f"{columns.count('c1')}, {len(columns) - columns.count('c1')}"


def _parts(parts: tuple[int, int], spread: float, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng([7, seed])
    sizes = rng.integers(*parts, 120)
    unit, total = np.repeat(np.arange(120), sizes), int(sizes.sum())
    said = rng.choice([0.6, 0.7, 0.8, 0.9, 0.95], total)
    odds = np.log(said / (1 - said)) + rng.normal(0, spread, 120)[unit]
    return pl.DataFrame({
        "c1": unit + 1000, "c2": np.concatenate([np.arange(size) for size in sizes]),
        "confidence": said, "correct": rng.random(total) < 1 / (1 + np.exp(-odds)),
        "c3": rng.choice(list("xyz"), total), "c4": rng.integers(5, 900, total),
    })  # fmt: skip


def random_ones(page: StudyPage, runs: int = 8, each: int = 125) -> None:
    """Write how random tables fare, with names that are neutral, reversed or misleading."""
    page.heading(f"{runs * each:,} random tables")
    kinds: Counter[str] = Counter()
    for seed in range(runs):
        kinds += count(each, seed)[0]
    page.text(
        "Each has 540 rows, a confidence and an outcome whose names say what they are, say nothing "
        "or say the opposite, and up to seven other columns. One in six has only one of the two."
    )
    page.table(["how they fare", "tables"], [[kind, kinds[kind]] for kind in ORDER])


def speed(page: StudyPage, rows: int = 1_000_000) -> None:
    """Write how long a table of a million rows takes to be decided about."""
    page.heading("A million rows")
    rng = np.random.default_rng(0)
    said = rng.choice([0.5, 0.7, 0.8, 0.9, 0.95], rows)
    table = pl.DataFrame({
        "id": np.arange(rows), "certainty": said, "was_right": rng.random(rows) < said,
        "answer": rng.choice(list("ABCD"), rows), "latency": rng.random(rows),
        "tokens": rng.integers(5, 900, rows), "topic": rng.choice(list("xyz"), rows),
        "cost": rng.random(rows) / 100,
    })  # fmt: skip
    began = time.perf_counter(), time.process_time()
    sample = some_rows(table.lazy(), "memory")
    kind = decide(sample).kind
    ended = time.perf_counter(), time.process_time()
    page.text(
        f"{rows:,} rows of {table.width} columns in memory: looked at and decided ({kind}) in "
        f"{ended[0] - began[0]:.2f} s, {ended[1] - began[1]:.2f} s of CPU, by {sample.height:,} of "
        "them. Numbers are made of all rows."
    )


def size(page: StudyPage) -> None:
    """Write how many lines of code read tables, before this reader and now."""
    page.heading("Lines of code")
    data = ROOT / "src" / "calibrant" / "data"
    files = [file for name in NEW for file in _files(data / name)]
    now = sum(len(code_lines(file.read_text())) for file in files)
    before = [_git(f"{BEFORE}:src/calibrant/records/{name}.py") for name in OLD]
    lines = sum(len(code_lines(text)) for text in before) if all(before) else None
    was = "not known here" if lines is None else f"{lines:,}"
    page.text(
        f"What reads tables had {was} lines of code (records/{', '.join(OLD)}) and has {now:,} "
        f"(data/{', '.join(NEW)}), comments, docstrings and lists of words left out: more, not "
        "fewer. The lists of column names are gone; what took their place asks, verifies, reads "
        "workbooks, nested objects and lines around a table, which nothing did before."
    )


def _files(path: Path) -> Iterable[Path]:
    return sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def _git(name: str) -> str:
    done = subprocess.run(["git", "show", name], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    main()
