"""Reading a large Inspect log: calibrant's reader against Inspect's own.

Inspect is in the environment that `make frameworks` makes; both readers run there. Where it is
absent nothing is measured and the page stays as it is.
"""

import importlib.util
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO

import orjson
import zstandard

from benchmarks.harness import ROOT, Page, seconds
from calibrant.data.logs.zip_entries import ZipEntries

ZSTD = 93
COMPRESSOR = zstandard.ZstdCompressor()
SIZES, LARGER, EPOCHS = (2_000, 20_000), 60_000, 10
FIXTURE = ROOT / "tests" / "ecosystem" / "fixtures" / "inspect.eval"
REPEATS = 3

OURS = "from calibrant.data.logs.recognise import read_log; n = read_log({path!r}).draws.height"
THEIRS = "from inspect_ai.log import read_eval_log; n = len(read_eval_log({path!r}).samples)"
MEASURED = """
import json, resource, time
{imports}
begin, cpu = time.perf_counter(), time.process_time()
{work}
print(json.dumps([n, time.perf_counter() - begin, time.process_time() - cpu,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def write_log(path: Path, samples: int) -> None:
    """Pack the fixture's samples again and again under new ids, as Inspect packs them."""
    with ZipEntries(FIXTURE) as archive:
        content = {name: archive.read(entry) for name, entry in archive.entries.items()}
    header = json.loads(content["header.json"])
    ids = [f"q{i}" for i in range(samples // EPOCHS)]
    header["eval"]["dataset"] |= {"samples": len(ids), "sample_ids": ids}
    # The first sample carries the start-up events of the process, it is not typical.
    names = [name for name in content if name.startswith("samples/")][1:]
    pattern = [json.loads(content[name]) for name in names]
    with path.open("wb") as file:
        directory = [pack(file, "_journal/start.json", content["_journal/start.json"])]
        for i in range(samples):
            sample = pattern[i % len(pattern)] | {"id": ids[i // EPOCHS], "epoch": i % EPOCHS + 1}
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            directory.append(pack(file, name, orjson.dumps(sample)))
        directory.append(pack(file, "header.json", json.dumps(header).encode()))
        start = file.tell()
        file.write(b"".join(directory))
        end = (len(directory), len(directory), file.tell() - start, start, 0)
        file.write(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, *end))


def pack(file: BinaryIO, name: str, content: bytes) -> bytes:
    """Write an entry and return its record for the directory."""
    packed, title, start = COMPRESSOR.compress(content), name.encode(), file.tell()
    sizes = (zlib.crc32(content), len(packed), len(content), len(title), 0)
    common = struct.pack("<HHHHHIIIHH", 63, 0, ZSTD, 0, 33, *sizes)
    file.write(b"PK\x03\x04" + common + title + packed)
    place = struct.pack("<HHHII", 0, 0, 0, 0, start)
    return b"PK\x01\x02" + struct.pack("<H", 63) + common + place + title


def python_with_inspect() -> Path | None:
    """Return the interpreter of the environment that has Inspect, if there is one."""
    folder = Path(os.environ.get("CALIBRANT_FRAMEWORKS", ROOT / ".venv-frameworks"))
    if (folder / "bin" / "inspect").is_file():
        return folder / "bin" / "python"
    return Path(sys.executable) if importlib.util.find_spec("inspect_ai") else None


def version_in(python: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def measure(python: Path, statement: str, path: Path) -> tuple[int, float, float, float]:
    """Return rows, median wall and CPU seconds and peak memory in MB, each run in a new process."""
    imports, work = statement.format(path=str(path)).split("; ")
    code = MEASURED.format(imports=imports, work=work)
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        if runs[-1][1] > 60:
            break
    rows, wall, cpu, peak = (statistics.median(column) for column in zip(*runs, strict=True))
    return int(rows), wall, cpu, peak / 1024


def row(python: Path, folder: Path, samples: int, *, theirs: bool) -> list[str]:
    path = folder / f"{samples}.eval"
    write_log(path, samples)
    n, wall, cpu, memory = measure(python, OURS, path)
    assert n == samples
    cells = [f"{samples:,}", f"{path.stat().st_size / 2**20:.0f} MB", seconds(wall)]
    if not theirs:
        return [*cells, "-", "-", "-", f"{memory:.0f} MB", "-"]
    n, wall_theirs, cpu_theirs, memory_theirs = measure(python, THEIRS, path)
    assert n == samples
    ratios = [f"{wall_theirs / wall:.1f}x", f"{cpu_theirs / cpu:.1f}x"]
    return [
        *cells,
        seconds(wall_theirs),
        *ratios,
        f"{memory:.0f} MB",
        f"{memory_theirs:.0f} MB",
    ]


def main() -> None:
    python = python_with_inspect()
    if python is None:
        print("Inspect is not here (make frameworks): nothing is measured, the page is kept.")
        return
    page = Page("ecosystem", "Foreign logs", packages=["orjson", "zstandard"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [row(python, folder, samples, theirs=True) for samples in SIZES]
        rows.append(row(python, folder, LARGER, theirs=False))
    page.table(
        "Reading an Inspect log",
        [
            "samples",
            "file",
            "calibrant",
            "read_eval_log",
            "faster",
            "faster (CPU)",
            "memory",
            "memory of read_eval_log",
        ],
        rows,
    )
    page.text(
        f"Against inspect-ai {version_in(python, 'inspect-ai')}. Wall time, each reading in a "
        f"process of its own after its imports, medians of up to {REPEATS}; memory is the peak of "
        "the whole process, imports included. The samples are those of the test log (two "
        "messages, logprobs, two scorers, all events), packed again under new ids. The largest "
        "log is read by calibrant alone, to show how memory grows: samples are read one at a time, "
        "and what stays is the tables."
    )
    page.write()


if __name__ == "__main__":
    main()
