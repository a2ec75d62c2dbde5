"""Tables of `python -m simulations dependence` for the page of claims."""

from __future__ import annotations

import json

from simulations import whole_tables
from simulations._pieces import markdown_table
from simulations.dependence import POWER, REAL, SIZES, WORLDS, rate, stored

# What is counted as false of a verb, and what it is.
_FALSE = {
    "audit": ("false", "a direction or an error is shown"),
    "compare": ("false", "a model is called more accurate or better"),
    "groups": ("false", "a group stands out"),
    "decide": ("broken", "the promise fails"),
    "mend": ("broken", "the promise fails"),
}


def lines() -> list[str]:
    """Return the tables of the page of claims."""
    before = {_key(row): row for row in stored("before")}
    now = [row for row in stored("now") if row["world"] != POWER]
    rows = []
    for verb, (counted_as, _) in _FALSE.items():
        for row in sorted((row for row in now if row["verb"] == verb), key=_order):
            old = before.get(_key(row))
            found = row["counts"]["as it is"]
            cells = [verb, row["world"], f"{row['n']:,}", f"{row['runs']:,}"]
            cells.append("" if old is None else _false_rate(old, "as it is", counted_as))
            cells += [_false_rate(row, way, counted_as) for way in ("as it is", "named")]
            cells.append(rate(found["fires"], row["runs"]) if "fires" in found else "")
            rows.append(cells)
    columns = ["verb", "world", "rows", "tables", "before", "as it is", "cluster named", "found"]
    counted_words = "; ".join(f"`{verb}`: {words}" for verb, (_, words) in _FALSE.items())
    return [
        "Percent of tables in which something false is said, with 95 % intervals "
        f"({counted_words}). 'Before': the version that searched nothing, of the same tables. "
        "'Found': the search warned. Confidences are calibrated for topics, customers and "
        "questions like these. Of real pools (16 models, 12,032 questions of MMLU-Pro) it counts "
        "that the interval of confidence minus share right misses that of the whole pool.",
        "",
        *markdown_table(columns, rows),
        *_power_lines(before),
        "Stretches of the confidence (`groups`), many methods (`decide`) and three claims in one "
        "order (`compare`) have [a page of their own](simulations/whole_tables.md). "
        "`monitor` in years of ordinary days:",
        "",
        *_year_lines(),
    ]


def _key(row):
    return row["verb"], row["world"], row["n"]


def _order(row):
    names = [*WORLDS, *REAL]
    place = names.index(row["world"]) if row["world"] in WORLDS else len(names)
    return sorted(SIZES).index(row["n"]) if row["n"] in SIZES else 9, place


def _false_rate(row, way, counted_as) -> str:
    counts = row["counts"].get(way)
    if counts is None:
        return ""
    promised = ""
    if "promised" in counts:
        promised = f", {rate(counts['promised'], row['runs'])} promised"
    return rate(counts[counted_as], row["runs"], interval=True) + promised


def _power_lines(before) -> list[str]:
    """Say how often a true direction is shown of independent rows, before and now."""
    row = next((row for row in stored("now") if row["world"] == POWER), None)
    if row is None or _key(row) not in before:
        return []
    old = before[_key(row)]
    now, then = (100 * r["counts"]["as it is"]["over"] / r["runs"] for r in (row, old))
    return [
        f"What the search costs: of {row['runs']:,} tables of 1,000 independent rows that are over "
        f"by 5 points it is shown in {now:.1f} % (before: {then:.1f} % of {old['runs']:,}).",
        "",
    ]


def _year_lines() -> list[str]:
    """Return the table of years under a monitor, from the whole tables of the other page."""
    old, now = (
        json.loads((whole_tables.FOLDER / f"{which}-monitor.json").read_text())
        for which in ("before", "now")
    )
    rows = []
    for key, (runs, false, true, late) in now.items():
        world = key.split("|")[0]
        then = old[key]
        cells = [world, rate(then[1], then[0], interval=True), rate(false, runs, interval=True)]
        found = ""
        if late is not None:
            found = f"in {rate(true, runs)} %, after {late:.0f} days (before: {then[3]:.0f})"
        rows.append([*cells, found])
    return markdown_table(["year", "false alarm before", "now", "the drop is found"], rows)
