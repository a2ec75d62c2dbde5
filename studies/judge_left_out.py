"""The embedded judge where its training left out what it is asked about.

Four adapters were trained as the shipped one (`judge_train`: layers=24, wordings=1), each without
one set of rows and its questions: NQ301, and each domain of MACE. Run
`python -m studies.judge_left_out FOLDER` with their files; `embedded_judge` shows what it writes.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from calibrant.models.inference import judge as runtime
from studies import judge_rows
from studies.embedded_judge import graded
from studies.judge_rows import Row

# So many answers of each domain of MACE.
ANSWERS = 800
SETS = ("nq301", "award", "language", "math")


def left_out(name: str) -> list[Row]:
    """Return the rows that one training did not see."""
    if name == "nq301":
        return judge_rows.nq301()
    rows = [r for r in judge_rows.mace(random.Random(0))[0] if r.source == f"mace.{name}"]
    return random.Random(60).sample(rows, ANSWERS)


def lines(name: str, adapter: Path) -> list[Sequence[object]]:
    """Return right, kappa, sure and wrong among the sure, by rules and with this judge."""
    runtime.ADAPTER = str(adapter.resolve())
    runtime._open_reader.cache_clear()
    judge = runtime.EmbeddedJudge(adapter.with_suffix(".sqlite"))
    rows = [r for r in left_out(name) if r.references]
    title = "NQ301" if name == "nq301" else f"MACE, {name}"
    return [
        (title, len(rows), grader, *graded(rows, reader).cells)
        for grader, reader in (("rules", None), ("rules and judge", judge))
    ]


def main() -> None:
    """Write the lines of all sets."""
    with Path(__file__).with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for name in SETS:
            writer.writerows(lines(name, Path(sys.argv[1]) / f"without_{name}.npz"))


if __name__ == "__main__":
    main()
