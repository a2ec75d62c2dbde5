"""From parquet to an audit with intervals, end to end, beside bare SQL: time, memory, growth.

Every run is a process of its own, so that start-up and peak memory are those a user has.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import altair as alt
import numpy as np

from benchmarks import epistemic
from benchmarks.harness import DOCS, Page, seconds

QUICK = bool(os.environ.get("CALIBRANT_QUICK"))
SIZES = (100_000, 1_000_000, 10_000_000) if QUICK else (100_000, 1_000_000, 10_000_000, 100_000_000)
SMALLEST = 1_000
REPEATS = 5
CHUNK = 1_000_000
MODELS = np.array(["small", "medium", "large", "huge"])
TARGET_SPEED, TARGET_MEMORY, TARGET_SLOPE = 0.5, 2.0, 1.05

# The binned calibration error and nothing else: no interval, no check of a value.
SQL = """
with bins as (
    select {model} least(floor(confidence * 15), 14) as bin,
           sum(confidence) as promised, sum(correct) as kept, count(*) as n
    from read_parquet('{path}') group by all)
select {model} sum(abs(promised - kept)) / sum(n) from bins {group}
"""
DUCKDB = """
import json, sys, time
import duckdb
connection = duckdb.connect()
connection.execute(f"set threads = {sys.argv[2]}; set enable_progress_bar = false")
begin = time.perf_counter()
found = connection.execute(sys.argv[1]).fetchall()
print(json.dumps([time.perf_counter() - begin, len(found)]))
"""


def write_table(path: Path, rows: int) -> None:
    """Write scores of four models, from calibrated to over-confident, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(rows)
    schema = pa.schema(
        [("confidence", pa.float64()), ("correct", pa.int8()), ("model", pa.string())]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            confidence, model = rng.random(size), rng.integers(0, 4, size)
            correct = rng.random(size) < confidence ** (1 + 0.1 * model)
            columns = [confidence, correct.astype(np.int8), MODELS[model]]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=CHUNK)


# A process inherits the peak of the one that starts it, so a small one starts what is measured.
LAUNCHER = """
import json, os, sys, time
begin = time.perf_counter()
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ,
                       file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
_, status, used = os.wait4(child, 0)
print(json.dumps([time.perf_counter() - begin, used.ru_utime + used.ru_stime,
                  used.ru_maxrss * 1024.0, os.waitstatus_to_exitcode(status)]))
"""


def run(command: list[str]) -> tuple[float, float, float, str]:
    """Run a process; return wall time, CPU time, peak memory in bytes and what it printed."""
    with tempfile.NamedTemporaryFile() as out:
        launched = [sys.executable, "-S", "-c", LAUNCHER, out.name, *command]
        done = subprocess.run(launched, capture_output=True, text=True, check=True)
        wall, cpu, peak, code = json.loads(done.stdout)
        if code:
            raise RuntimeError(f"{command} ended with {code}: {done.stderr}")
        text = Path(out.name).read_text()
    return wall, cpu, peak, text


def measured(path: Path, rows: int) -> dict[str, float]:
    """Return medians of the audit and of both queries, run in turns."""
    audit = [
        str(Path(sys.executable).parent / "calibrant"), "audit", str(path), "--engine", "local",
        "--json", str(path.with_suffix(".json")),
    ]  # fmt: skip
    threads = str(os.cpu_count())
    queries = {
        "by model": SQL.format(path=path, model="model,", group="group by model"),
        "all rows": SQL.format(path=path, model="", group=""),
    }
    taken: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        wall, cpu, peak, _ = run(audit)
        values = {"audit": wall, "audit cpu": cpu, "audit peak": peak}
        for name, query in queries.items():
            wall, cpu, peak, text = run([sys.executable, "-c", DUCKDB, query, threads])
            values |= {
                name: json.loads(text.splitlines()[-1])[0],
                f"{name} cpu": cpu,
                f"{name} process": wall,
                f"{name} peak": peak,
            }
        for name, value in values.items():
            taken.setdefault(name, []).append(value)
    found = {name: statistics.median(values) for name, values in taken.items()}
    document = json.loads(path.with_suffix(".json").read_text())
    assert document["reading"]["rows"] == rows
    assert sum(entry["n"] for entry in document["results"]) == rows
    return found


# Where the time of one audit goes; the functions are those that `calibrant audit` calls.
PHASES = """
import json, sys, time
begin = time.perf_counter()
from calibrant.cli.main import main
from calibrant.data.streams import cell_source
marks = {}
def timed(module, name, then=None):
    function = getattr(module, name)
    def wrapped(*given, **options):
        start = time.perf_counter()
        try:
            return function(*given, **options)
        finally:
            marks[name] = (start, time.perf_counter())
            if then is not None:
                then()
    setattr(module, name, wrapped)
def then():
    # Loaded after the rows are read, as the audit itself does.
    from calibrant.verbs import audit_document
    timed(audit_document, "_entries")
timed(cell_source, "sum_table", then)
sys.argv = ["calibrant", "audit", sys.argv[1], "--engine", "local", "--json", sys.argv[2]]
try:
    main()
except SystemExit:
    pass
print(json.dumps([
    marks["sum_table"][0] - begin,
    marks["sum_table"][1] - marks["sum_table"][0],
    marks["_entries"][0] - marks["sum_table"][1],
    marks["_entries"][1] - marks["_entries"][0],
    time.perf_counter() - marks["_entries"][1],
]))
"""


def split(page: Page, paths: dict[int, Path]) -> None:
    """Write down where the time of an audit goes."""
    rows = []
    for size, path in paths.items():
        found = []
        for _ in range(REPEATS):
            command = [sys.executable, "-c", PHASES, str(path), str(path.with_suffix(".json"))]
            *_, text = run(command)
            found.append(json.loads(text.splitlines()[-1]))
        rows.append((f"{size:,}", *(seconds(float(v)) for v in np.median(found, axis=0))))
    page.table(
        "Where the time goes",
        (
            "rows",
            "start",
            "reading and summing",
            "loading what measures",
            "metrics and intervals",
            "printing and JSON",
        ),
        rows,
    )
    page.text(
        "Medians of runs of their own. The start is what is loaded before the first row is read. "
        "The start of Python itself and its end are not in this table."
    )


def slope(sizes: list[int], values: list[float]) -> float:
    """Return the least-squares slope of log value on log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def growth(page: Page, base: dict[str, float], found: dict[int, dict[str, float]]) -> None:
    """Write down how time and memory grow, with and without what a start costs."""
    sizes = list(found)
    rows = []
    for label, key in (("time", "audit"), ("CPU time", "audit cpu"), ("peak memory", "audit peak")):
        values = [found[n][key] for n in sizes]
        # What is left after the start is noise at the small sizes; it is fitted where it is not.
        above = [(n, v - base[key]) for n, v in zip(sizes, values, strict=True)]
        above = [(n, v) for n, v in above if v > 0.2 * base[key]]
        fitted = slope(*map(list, zip(*above, strict=True))) if len(above) > 1 else float("nan")
        last = slope(sizes[-2:], values[-2:])
        where = ", ".join(f"{n:.0e}" for n, _ in above) or "none"
        rows.append((label, slope(sizes, values), last, fitted, where))
    page.table(
        f"Growth: log-log slopes (aim: at most {TARGET_SLOPE})",
        ("what", "raw, all sizes", "raw, last two sizes", "above the start", "fitted at"),
        rows,
    )
    page.text(
        f"The start alone, an audit of {SMALLEST:,} rows, takes {seconds(base['audit'])} and "
        f"{base['audit peak'] / 1e6:.0f} MB. 'Above the start' leaves that off and uses the sizes "
        "where at least a fifth of it is left."
    )


def plan(page: Page, base: dict[str, float], found: dict[int, dict[str, float]]) -> None:
    """Extend the measured line to 1e9 rows: on paper, from the slope between the last two sizes."""
    before, last = list(found)[-2:]
    per_row = (found[last]["audit cpu"] - found[before]["audit cpu"]) / (last - before)
    # Where memory did not rise any more, the plan must not promise that it falls.
    rise = max(found[last]["audit peak"] - found[before]["audit peak"], 0.0) / (last - before)
    rows, cores = 1_000_000_000, os.cpu_count() or 1
    work, parts = per_row * rows, rows // 4_000_000
    start = base["audit"]
    lines = [
        (
            machines,
            machines * cores,
            f"{parts:,}",
            seconds(start + work / (machines * cores)),
            f"{(found[last]['audit peak'] + rise * (rows - last)) / 1e9:.2f} GB"
            if machines == 1
            else "as for one",
        )
        for machines in (1, 4, 16)
    ]
    page.table(
        "1e9 rows, on paper",
        ("machines", "cores", "parts", "time, if all cores are busy", "peak memory, at most"),
        lines,
    )
    page.text(
        f"From {per_row * 1e9:.0f} ns of CPU per row between {before:.0e} and {last:.0e} rows, a "
        f"start of {seconds(start)}, and parts of four million rows. Merging a part's sums takes "
        "8 MB and some milliseconds for four models, whatever its rows. Memory is extended as if "
        "it went on rising as between the last two sizes, although the sums have a fixed size."
    )


def figure(page: Page, found: dict[int, dict[str, float]]) -> None:
    """Draw time against rows."""
    lines = {"calibrant audit, end to end": "audit", "duckdb, query by model": "by model",
             "duckdb, query over all rows": "all rows"}  # fmt: skip
    values = [
        {"rows": n, "seconds": found[n][key], "what": label}
        for label, key in lines.items()
        for n in found
    ]
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_line(point=True)
        .encode(
            x=alt.X("rows:Q", scale=alt.Scale(type="log"), title="rows"),
            y=alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds"),
            color=alt.Color("what:N", title=None, sort=list(lines)),
        )
        .properties(width=420, height=280)
    )
    chart.save(str(DOCS / "scale-time.svg"))
    page.lines += ["![Time against rows](scale-time.svg)", ""]


def main() -> None:
    page = Page(
        "scale",
        "Scale: from parquet to an audit",
        packages=["numpy", "pyarrow", "polars", "duckdb", "scikit-learn"],
    )
    found: dict[int, dict[str, float]] = {}
    paths: dict[int, Path] = {}
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as folder:
        for rows in (SMALLEST, *SIZES):
            path = Path(folder) / f"{rows}.parquet"
            write_table(path, rows)
            found[rows] = measured(path, rows)
            print(rows, {name: round(value, 3) for name, value in found[rows].items()}, flush=True)
            paths[rows] = path
        base = found.pop(SMALLEST)
        report(page, base, found)
        split(page, {rows: paths[rows] for rows in (SMALLEST, max(SIZES))})
    figure(page, found)
    growth(page, base, found)
    plan(page, base, found)
    if not QUICK:
        epistemic.trees(page, (1_000_000,))
    page.write()


def report(page: Page, base: dict[str, float], found: dict[int, dict[str, float]]) -> None:
    """Write down times and memory beside those of the queries, and whether the aim is reached."""
    page.text(
        f"Each line is the median of {REPEATS} runs, taken in turns. The audit is the whole "
        "process: start, reading, a check of every value, sixteen metrics with intervals for each "
        "of four models, the verification, the printed tables and the JSON. The query is the "
        "binned calibration error in SQL, timed inside a process that is already running, "
        f"{os.cpu_count()} threads each."
    )
    page.table(
        "1e5 to 1e8 rows x (confidence, correct, model), one parquet file",
        (
            "rows",
            "audit",
            "CPU",
            "peak memory",
            "duckdb by model",
            "duckdb all rows",
            "duckdb process, by model",
            "speed relative to duckdb by model",
            "relative to all rows",
        ),
        [
            (
                f"{n:,}",
                seconds(values["audit"]),
                seconds(values["audit cpu"]),
                f"{values['audit peak'] / 1e9:.2f} GB",
                seconds(values["by model"]),
                seconds(values["all rows"]),
                seconds(values["by model process"]),
                values["by model"] / values["audit"],
                values["all rows"] / values["audit"],
            )
            for n, values in found.items()
        ],
    )
    largest = found[max(found)]
    speed, peak = largest["by model"] / largest["audit"], largest["audit peak"] / 1e9
    page.text(
        f"Aim at {max(found):,} rows: at least {TARGET_SPEED} times the speed of the bare query "
        f"and less than {TARGET_MEMORY} GB. Measured: {speed:.2f} times, {peak:.2f} GB: "
        f"{'reached' if speed >= TARGET_SPEED and peak < TARGET_MEMORY else 'not reached'}. The "
        f"start alone, an audit of {SMALLEST:,} rows, takes {seconds(base['audit'])}."
    )


if __name__ == "__main__":
    main()
