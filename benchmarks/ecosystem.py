"""Reading a large Inspect log: calibrant's reader against Inspect's own.

Inspect is not part of the base install; where it is absent the page says so.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import ROOT, Page, peer, seconds

SAMPLES, EPOCHS = 20_000, 10
FIXTURE = ROOT / "tests" / "ecosystem" / "fixtures" / "inspect.eval"
REPEATS = 3

OURS = "from calibrant.records.convert import read_log; n = read_log({path!r}).draws.height"
THEIRS = "from inspect_ai.log import read_eval_log; n = len(read_eval_log({path!r}).samples)"
MEASURED = """
import json, resource, time
{imports}
begin, cpu = time.perf_counter(), time.process_time()
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{work}
print(json.dumps([n, time.perf_counter() - begin, time.process_time() - cpu, base,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def write_log(path: Path, samples: int) -> None:
    """Write a log with Inspect itself: the fixture's samples again and again under new ids."""
    from inspect_ai.log import read_eval_log, write_eval_log

    log = read_eval_log(str(FIXTURE))
    pattern = log.samples[1:]  # the first one carries the start-up events of the process
    log.samples = [
        pattern[i % len(pattern)].model_copy(
            update={"id": f"q{i // EPOCHS}", "epoch": i % EPOCHS + 1, "uuid": f"u{i}"}
        )
        for i in range(samples)
    ]
    questions = samples // EPOCHS
    log.eval.dataset.samples = questions
    log.eval.dataset.sample_ids = [f"q{i}" for i in range(questions)]
    log.reductions = None
    write_eval_log(log, str(path), format="eval")


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
    rows, wall, cpu, base, peak = (statistics.median(column) for column in zip(*runs, strict=True))
    return int(rows), wall, cpu, (peak - base) / 1024


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
        "Wall time, each reading in a process of its own after its imports; memory is the growth "
        "of the resident set. The samples are those of the test log (two messages, logprobs, "
        "two scorers, all events), written by Inspect under new ids."
    )
    page.write()


if __name__ == "__main__":
    main()
