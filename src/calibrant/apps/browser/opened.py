"""What the app looks at: a table, a log or a study, with its rows and the documents about it."""

import asyncio
import contextlib
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson
import polars as pl

from calibrant.apps.browser.corrections import Corrections
from calibrant.apps.browser.worker import Stopped, Worker
from calibrant.core.document import load_document
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.hints import Call, declared_options
from calibrant.data.formats import is_study
from calibrant.data.sources.rows import Rows
from calibrant.data.tables import column_names, scan_table
from calibrant.report.result import Result
from calibrant.verbs.opening.open_rows import open_rows

MOST_UPLOADED = 512 * 1024**2
"""Bytes of files that may be dropped on the app together."""
_KEPT = 32


class NamedColumns(msgspec.Struct, forbid_unknown_fields=True):
    """Which column is what, as somebody said."""

    confidence: str = ""
    correct: str = ""
    model: str = ""
    question: str = ""
    answer: str = ""
    gold: str = ""
    right: str = ""
    probs: str = ""
    repeats: bool = False
    unit: str = ""
    scale: str = ""


@dataclass(slots=True)
class BrowserJob:
    """A piece of work, while it goes on and when it is done."""

    words: str
    began: float = field(default_factory=time.monotonic)
    result: Result | None = None
    error: str = ""
    began_work: bool = False
    done: bool = False
    shown: dict[str, object] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self.began


class AppData:
    """One input that is looked at from all sides.

    Parameters
    ----------
    data
        A path, or several.
    table
        How the table is read, as every verb takes it.
    folder
        A folder of this process that holds what was dropped.
    """

    def __init__(
        self, data: str | Sequence[str], table: Mapping[str, object] | None = None, *,
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        self.data = data
        self.table = {name: value for name, value in (table or {}).items() if value}
        self.worker = Worker()
        self._folder = folder
        self._jobs: dict[str, BrowserJob] = {}
        self._rows: tuple[str, Rows | str] | None = None
        self._columns: list[str] | None = None
        self._rows_turn, self._turn = threading.Lock(), threading.Lock()
        first, name = Path(self.paths[0]), "corrections.jsonl"
        neighbour = first / name if first.is_dir() else first.with_name(f"{first.name}.{name}")
        self.corrections = Corrections(neighbour)

    @property
    def paths(self) -> list[str]:
        """The files and folders that are looked at."""
        return [self.data] if isinstance(self.data, str) else list(self.data)

    @property
    def name(self) -> str:
        """What the input is called on the page: no place of a machine."""
        names = [Path(path).name for path in self.paths]
        return names[0] if len(names) == 1 else f"{len(names)} files"

    @property
    def folder(self) -> Path:
        """A folder of this process alone, for what is made on the way."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="calibrant-view-"))
        return self._folder

    def close(self) -> None:
        """Stop what goes on and remove what was made on the way."""
        self.worker.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # -- rows -----------------------------------------------------------------------------

    def rows(self) -> Rows:
        """Return the rows, read when they are first asked for."""
        with self._rows_turn:
            version = self._version()
            if self._rows is None or self._rows[0] != version:
                try:
                    source = open_rows(self.data, self.table)
                    threading.Thread(target=source.prepare, daemon=True).start()
                    self._rows = version, source
                except CalibrantError as error:
                    self._rows = version, str(error)
            _, rows = self._rows
        if isinstance(rows, str):
            raise InputError(rows)
        return rows

    def columns(self) -> list[str]:
        """Return the names of the columns, so that one can say which is which; none of a study."""
        if self._columns is None:
            self._columns = []
            with contextlib.suppress(CalibrantError, OSError):
                self._columns = column_names(scan_table(self.paths[0]), self.paths[0])
        return self._columns

    def read_as(self, roles: NamedColumns) -> None:
        """Read the table by these columns from now on; what is empty is guessed again."""
        choice = {**self.table, **msgspec.structs.asdict(roles)}
        self.table = {name: value for name, value in choice.items() if value}
        self._rows = None
        self._jobs.clear()

    def _version(self) -> str:
        """Return a mark that changes when a file does: what was read of it is then old."""
        changed = [path.stat().st_mtime_ns for path in map(Path, self.paths) if path.exists()]
        return str(changed)

    # -- documents ------------------------------------------------------------------------

    def document(self, call: Call) -> BrowserJob:
        """Return the work on a document, begun where nobody has asked for it yet."""
        key = self._key(call)
        job = self._jobs.get(key)
        if job is None:
            while len(self._jobs) >= _KEPT:
                self._jobs.pop(next(iter(self._jobs)))
            job = self._jobs[key] = BrowserJob(call.verb)
            threading.Thread(target=self._work, args=(job, call), daemon=True).start()
        return job

    def cancel(self, call: Call) -> None:
        """Stop the work on a document; the next question begins it anew."""
        job = self._jobs.get(self._key(call))
        if job is not None and not job.done:
            job.error = "Stopped."
            if job.began_work:
                self.worker.stop()

    def forget(self, call: Call) -> None:
        """Let a document be made again."""
        self._jobs.pop(self._key(call), None)

    def make(self, call: Call) -> Result:
        """Return a result that was not made before: one that writes something."""
        return self.worker.call(call.verb, self.data, self.settings(call))

    def settings(self, call: Call) -> dict[str, object]:
        """Return how the table is read, as far as the verb takes it, and what the call says."""
        selection = declared_options(call.verb)
        read = {name: value for name, value in self.table.items() if name in selection}
        return {**read, **call.settings}

    def _work(self, job: BrowserJob, call: Call) -> None:
        try:
            job.result = self._stored(call)
            if job.result is None:
                with self._turn:
                    # It may have been stopped while it waited for its turn.
                    if not job.error:
                        job.began_work = True
                        job.result = self.make(call)
        except Stopped:
            job.error = job.error or "Stopped."
        except CalibrantError as error:
            job.error = str(error)
        job.done = True

    def _stored(self, call: Call) -> Result | None:
        """Return the result that a study holds already."""
        if call.settings or self.table or not is_study(self.paths[0]):
            return None
        path = Path(self.paths[0]) / "results" / f"{call.verb}.json"
        return Result.of_plain(load_document(path)) if path.is_file() else None

    def _key(self, call: Call) -> str:
        return orjson.dumps([call.verb, call.settings, self._version()], default=str).decode()

    # -- corrected grades -----------------------------------------------------------------

    def corrected(self) -> pl.DataFrame:
        """Return the whole table with the corrected grades in it."""
        frame = self.rows().stored.whole()
        answer = self.rows().texts.get("answer")
        keys = frame.select("question_id", "model", answer=pl.col(answer) if answer else None)
        fixed = [self.corrections.grade(key) for key in keys.iter_rows(named=True)]
        grades = pl.Series("correct", fixed, dtype=pl.Float64)
        return frame.with_columns(correct=pl.coalesce(grades, pl.col("correct").cast(pl.Float64)))


class Dropped:
    """Files that are dropped on the app together, in a folder of this process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="calibrant-view-"))
        self.paths: list[str] = []
        self._size = 0

    async def take(self, stream: Any, name: str) -> None:
        """Keep one more; what is too large is refused."""
        plain = re.sub(r"[^\w.\- ]", "_", Path(name).name)[-120:].lstrip(".") or "table.csv"
        path = self.folder / plain
        while path.exists():
            path = path.with_name(f"_{path.name}")
        with path.open("wb") as file:
            async for part in stream.iter_chunked(1 << 20):
                self._size += len(part)
                if self._size > MOST_UPLOADED:
                    shutil.rmtree(self.folder)
                    raise InputError(
                        f"dropped files may have {MOST_UPLOADED >> 20} MB",
                        hint="name them on the command line instead: calibrant view FILE",
                    )
                await asyncio.to_thread(file.write, part)
        self.paths.append(str(path))

    def opened(self) -> AppData:
        """Return them as what is looked at."""
        return AppData(self.paths[0] if len(self.paths) == 1 else self.paths, folder=self.folder)
