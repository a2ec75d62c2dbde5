"""Reading a large Inspect log: calibrant's reader against Inspect's own.

Inspect is not part of the base install; where it is absent the page says so.
"""

import json
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

from benchmarks.harness import ROOT, Page, peer, seconds
from calibrant.records.convert.zip_entries import ZipEntries

ZSTD = 93
COMPRESSOR = zstandard.ZstdCompressor()
SAMPLES, EPOCHS = 20_000, 10
FIXTURE = ROOT / "tests" / "ecosystem" / "fixtures" / "inspect.eval"
REPEATS = 3

OURS = "from calibrant.records.convert import read_log; n = read_log({path!r}).draws.height"
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


def measure(statement: str, path: Path) -> tuple[int, float, float, float]:
    """Return rows, median wall and CPU seconds and peak memory in MB, each run in a new process."""
    imports, work = statement.format(path=str(path)).split("; ")
    code = MEASURED.format(imports=imports, work=work)
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        if runs[-1][1] > 30:
            break
    rows, wall, cpu, peak = (statistics.median(column) for column in zip(*runs, strict=True))
    return int(rows), wall, cpu, peak / 1024


def main() -> None:
    page = Page("ecosystem", "Foreign logs", packages=["inspect-ai", "orjson", "zstandard"])
    if peer("inspect_ai") is None:
        page.text("Inspect is not installed here: nothing was measured.")
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for samples in (2_000, SAMPLES):
            path = Path(folder) / f"{samples}.eval"
            write_log(path, samples)
            size = path.stat().st_size / 2**20
            n, wall, cpu, memory = measure(OURS, path)
            n_theirs, wall_theirs, cpu_theirs, memory_theirs = measure(THEIRS, path)
            assert n == n_theirs == samples
            rows.append(
                [
                    f"{samples:,}",
                    f"{size:.0f} MB",
                    seconds(wall),
                    seconds(wall_theirs),
                    f"{wall_theirs / wall:.1f}x",
                    f"{cpu_theirs / cpu:.1f}x",
                    f"{memory:.0f} MB",
                    f"{memory_theirs:.0f} MB",
                ]
            )
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
        "Wall time, each reading in a process of its own after its imports; memory is the peak of "
        "the whole process, imports included. The samples are those of the test log (two "
        "messages, logprobs, two scorers, all events), packed again under new ids."
    )
    page.write()


if __name__ == "__main__":
    main()
