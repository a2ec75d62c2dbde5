"""What the app looks at: rows, corrected grades, documents, and the process that makes these."""

from __future__ import annotations

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

import calibrant
import calibrant.verbs.score_documents
from calibrant.core.document import dump_document, load_document
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.hints import Call, declared_options
from calibrant.data.formats import is_study
from calibrant.data.judge_shape import is_scored, likely_columns
from calibrant.data.judge_table import open_judged
from calibrant.data.sources.engines import Helper, NotDoneError
from calibrant.data.sources.rows import Rows
from calibrant.data.tables import collect, column_names, scan_table
from calibrant.report.result import Result
from calibrant.verbs.opening.open_rows import open_rows

GRADES = ("right", "wrong", "as given")
_HALF = 0.5
# So many rows say what a column holds.
_HEAD = 10_000


class Corrections:
    """A file of corrections, one a line; the last one of an answer counts.

    Parameters
    ----------
    path
        Where they are kept; the file is made with the first correction.

    Examples
    --------
    >>> import tempfile
    >>> kept = Corrections(Path(tempfile.mkdtemp()) / "t.csv.corrections.jsonl")
    >>> kept.add({"question_id": "q1", "model": "m", "answer": "7", "correct": 0.0}, "right")
    >>> Corrections(kept.path).grade({"question_id": "q1", "model": "m", "answer": "7"})
    1.0
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: dict[tuple[str, str, str], float] = {}
        if path.is_file():
            for line in path.read_bytes().splitlines():
                self._take(orjson.loads(line))

    def __len__(self) -> int:
        return len(self._held)

    def add(self, row: Mapping[str, object], grade: str, note: str = "") -> None:
        """Keep what the grade of an answer should be, or take a correction back."""
        if grade not in GRADES:
            raise InputError(f"a grade is one of {', '.join(GRADES)}, got {grade!r}")
        key = {name: row.get(name) for name in ("question_id", "model", "answer")}
        entry = {**key, "was": row.get("correct"), "is": grade, "note": note, "at": time.time()}
        with self.path.open("ab") as file:
            file.write(orjson.dumps(entry) + b"\n")
        self._take(entry)

    def grade(self, row: Mapping[str, object]) -> float | None:
        """Return the corrected grade of an answer; None where nobody corrected it."""
        return self._held.get(_key(row))

    def graded(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with the word of its grade; what somebody corrected comes first."""
        fixed = self.grade(row)
        grade = row["correct"] if fixed is None else fixed
        word = "open" if grade is None else "wrong" if grade < _HALF else "right"
        words = "not graded" if word == "open" else word
        if fixed is not None:
            words += ", corrected"
        return {**row, "grade": word, "grade_words": words, "corrected": fixed is not None}

    def _take(self, entry: Mapping[str, object]) -> None:
        if entry["is"] == "as given":
            self._held.pop(_key(entry), None)
        else:
            self._held[_key(entry)] = 1.0 if entry["is"] == "right" else 0.0


def _key(row: Mapping[str, object]) -> tuple[str, str, str]:
    return str(row["question_id"]), str(row["model"]), str(row.get("answer") or "")


class Stopped(Exception):
    """The call was stopped before it was done."""


class Worker:
    """Calls verbs one at a time in a process of its own, which is started when needed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._helper = Helper(_called)

    def start(self) -> None:
        """Start the process ahead of its first call: loading the libraries takes a while."""
        self._helper.start()

    def call(self, verb: str, data: Any, settings: Mapping[str, object]) -> Result:
        """Call a verb and return its result; what it refuses is an `InputError`."""
        with self._turn:
            try:
                document, error = self._helper.ask((verb, data, settings))
            except NotDoneError:
                self.stop()
                raise Stopped from None
        if error:
            raise InputError(error)
        return Result.of_plain(orjson.loads(document))

    def stop(self) -> None:
        """End the process, and with it the call that it works on."""
        self._helper.end()
        self._helper = Helper(_called)


def _called(request: tuple[str, Any, Mapping[str, object]]) -> tuple[bytes, str]:
    """Return the document of a verb as JSON, or what the verb refuses."""
    verb, data, settings = request
    try:
        result = getattr(calibrant, verb.replace(" ", "_"))(data, **settings)
    except CalibrantError as error:
        return b"", str(error)
    return dump_document(result.to_dict()), ""


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

    def judged(self) -> dict[str, list[str]]:
        """Return the columns that are called like a judge's and people's, and all with verdicts."""
        frame = pl.DataFrame()
        with contextlib.suppress(CalibrantError, OSError):
            path, is_table = self.paths[0], bool(self.columns())
            frame = open_judged(collect(scan_table(path).head(_HEAD), path) if is_table else path)
        scored = [name for name in frame.columns if is_scored(frame[name])]
        return {**likely_columns(frame), "scored": scored}

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
