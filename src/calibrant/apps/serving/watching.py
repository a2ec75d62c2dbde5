"""Is what is served still what was certified? Looked at as questions and labels come in."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from calibrant.apps.serving.engine import RECENT, Engine
from calibrant.core.errors import CalibrantError, InputError
from calibrant.data.label_store import LabelStore
from calibrant.data.tables import read_table
from calibrant.trust.traffic_shift import GuardCheck
from calibrant.verbs.monitor import monitor

EVERY_S = 60.0


@dataclass
class Watch:
    """Looks at what was served, and tells the engine what is not as it was.

    Parameters
    ----------
    engine
        Takes `shift` and `expired`.
    policy
        The file that is served.
    check
        The policy's own test of unlabelled rows; None where it has none.
    labels
        A table with ``question_id`` and ``correct``, or the file of `label serve`; both grow. None
        where nobody labels.
    every_s
        Seconds between two looks at the labels.
    """

    engine: Engine
    policy: str | Path
    check: Callable[[pl.DataFrame], GuardCheck] | None = None
    labels: Path | None = None
    every_s: float = EVERY_S
    _task: asyncio.Task[None] | None = None
    _seen: int = 0
    _labelled: int = -1
    _problem: str = ""
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        looked = time.monotonic()
        while True:
            await asyncio.sleep(min(1.0, self.every_s))
            due = time.monotonic() - looked >= self.every_s
            looked = time.monotonic() if due else looked
            await self.look(labels=due)

    async def look(self, *, labels: bool = True) -> None:
        """Look once, in a thread: answers are not held up by it."""
        async with self._looking:
            count = self.engine.counts["questions"]
            if self.check is not None and count - self._seen >= RECENT:
                self._seen = count
                rows = pl.DataFrame(list(self.engine.recent), infer_schema_length=None)
                with contextlib.suppress(InputError):
                    # What is unlike the labelled questions, in a sentence.
                    guard = await asyncio.to_thread(self.check, rows)
                    self.engine.shift = None if guard.holds else guard.text
            if labels and self.labels is not None and self.engine.expired is None:
                self.engine.expired = await asyncio.to_thread(self._broken, self.labels)

    def _broken(self, labels: Path) -> str | None:
        """Return why the promise is broken, as the labels show it."""
        labelled = with_labels(served_rows(self.engine.rows), labels)
        if labelled.height in (0, self._labelled):
            return None
        self._labelled = labelled.height
        try:
            watched = monitor(labelled, time="time", policy=self.policy, on_invalid="drop")
        except CalibrantError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                sys.stderr.write(f"calibrant serve: labels are not watched: {error}\n")
            return None
        promises = [entry.get("promise") or {} for entry in watched["results"]]
        if not any(promise.get("broken") for promise in promises):
            return None
        shown = [claim for claim in watched["claims"] if claim["outcome"] == "shown"]
        reasons = [claim["text"] for claim in shown if "promise" in claim["id"]]
        return reasons[0] if reasons else "more answers are wrong than was promised"


def served_rows(path: Path) -> pl.DataFrame:
    """Return the rows that were served, empty where there are none yet."""
    if not path.is_file():
        return pl.DataFrame(schema={"question_id": pl.String, "answer": pl.String})
    return pl.read_ndjson(path, infer_schema_length=None)


def with_labels(rows: pl.DataFrame, labels: Path) -> pl.DataFrame:
    """Return the rows whose answers somebody has labelled, however late, with ``correct``."""
    if not labels.is_file():
        return rows.clear()  # nobody has labelled yet
    if labels.suffix == ".sqlite":
        states = LabelStore(labels, create=False).states()
        outcomes = [(s.item.key.question_id, s.outcome) for s in states if s.outcome is not None]
        table = pl.DataFrame(outcomes, schema=["question_id", "correct"], orient="row")
    else:
        table = read_table(labels).select("question_id", "correct").drop_nulls()
    latest = table.with_columns(pl.col("question_id").cast(pl.String)).unique(
        "question_id", keep="last", maintain_order=True
    )
    return rows.join(latest, on="question_id", how="inner", maintain_order="left")
