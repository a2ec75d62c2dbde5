"""Labels made by people, kept beside the pool in an append-only SQLite file.

The user's own file is never written. Ids and answers are kept as text, byte for byte. Taking a
label back is a new row, so that everything that ever happened can be read again.
"""

import math
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.places import statements
from calibrant.data import label_schema as schema
from calibrant.data.places import refuse_foreign_database

# Rows written after the one of this number.
_SINCE = {
    "items": "SELECT i.id, i.question_id, i.answer, i.model, i.wave, i.pi, i.twice, s.along "
    "FROM items i LEFT JOIN spread s ON s.item = i.item WHERE i.id > ? ORDER BY i.id",
    "labels": "SELECT id, who, item_id, label, final, undoes FROM labels WHERE id > ? ORDER BY id",
    "assignments": "SELECT id, item_id, who, at, keeps FROM assignments WHERE id > ? ORDER BY id",
}


_PRIVATE = 0o600
_IN_MEMORY = ":memory:"
_ASSIGN = "INSERT INTO assignments (item_id, who, at, keeps) VALUES (?, ?, ?, ?)"


class LabelStore:
    """An append-only store of waves, assignments and labels.

    Parameters
    ----------
    path
        The SQLite file; created when it does not exist and `create` is set.
    create
        Whether to create it.

    Examples
    --------
    >>> import tempfile
    >>> store = LabelStore(Path(tempfile.mkdtemp()) / "x.labels.sqlite")
    >>> wave = store.add_wave([schema.ItemKey("0012", "3.50")], [0.5], design="random", frame=2)
    >>> item = store.take("ann")[0]
    >>> store.label(item.id, "ann", "right")
    1
    >>> store.states()[0].outcome
    1.0
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        # What was read so far: the file only grows.
        self._read = dict.fromkeys(_SINCE, 0)
        self._states: dict[int, schema.ItemState] = {}
        self._labels: dict[int, list[schema.StoredLabel]] = {}
        self._assigned: dict[int, dict[str, tuple[float, bool]]] = {}
        self._open: set[int] = set()
        size = self.path.is_file() and self.path.stat().st_size
        self._is_new = not size
        if not size and not create:
            raise InputError("there are no labels yet", source=str(path))
        refuse_foreign_database(self.path, "waves", "store of labels")
        if self._is_new and str(path) != _IN_MEMORY:
            # Its journal gets the rights of the file: the token of a page will lie in both.
            with suppress(OSError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
        try:
            self._db = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            with self._writing():
                self._prepare()
        except sqlite3.DatabaseError as error:
            raise InputError(f"this is no store of labels ({error})", source=str(path)) from None

    def _prepare(self) -> None:
        # executescript would end the transaction that guards two programs starting at once.
        for statement in statements(schema.TABLES):
            self._db.execute(statement)
        self._db.execute(
            "INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(schema.SCHEMA_VERSION),)
        )
        version = self.meta("schema")
        if version != str(schema.SCHEMA_VERSION):
            raise InputError(
                f"the labels have schema {version}, this program reads {schema.SCHEMA_VERSION}",
                source=str(self.path),
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def removed_if_unused(self) -> Iterator[None]:
        """Take the file away again when what it was made for fails before anything is drawn."""
        try:
            yield
        except BaseException:
            if self._is_new and not self.waves():
                self.close()
                self.path.unlink(missing_ok=True)
            raise

    def keep_private(self) -> None:
        """Take the file and its journal away from everybody else on this machine."""
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + ending).chmod(_PRIVATE)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def meta(self, name: str) -> str | None:
        """Return a note about the store, such as the pool's fingerprint."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        """Write a note once; a second, other value is refused."""
        with self._writing():
            stored = self.meta(name)
            if stored is None:
                self._db.execute("INSERT INTO meta VALUES (?, ?)", (name, value))
            elif stored != value:
                raise InputError(
                    f"the labels belong to another pool ({name} is {stored!r}, not {value!r})",
                    source=str(self.path),
                )

    def add_wave(
        self,
        keys: Sequence[schema.ItemKey],
        pi: Sequence[float],
        *,
        design: str,
        frame: int,
        uniform: bool = True,
        seed: int = 0,
        twice: Iterable[int] = (),
        along: Sequence[float] = (),
    ) -> int:
        """Keep the items of a wave, in the order in which they are to be shown.

        Parameters
        ----------
        keys, pi
            Items in random order, and the chance each of them had.
        design, frame, uniform, seed
            How they were drawn, from how many, and whether with equal chances.
        twice
            Places (from 0) of the items that two people label, to see how they agree.
        along
            Where each item lies on the line along which the draw was spread, NaN for nowhere.
        """
        double = set(twice)
        with self._writing():
            row = self._db.execute("SELECT COALESCE(MAX(wave), 0) + 1 FROM waves").fetchone()
            wave = int(row[0])
            self._db.execute(
                "INSERT INTO waves VALUES (?, ?, ?, ?, ?, ?, ?)",
                (wave, time.time(), design, len(keys), frame, int(uniform), seed),
            )
            self._db.executemany(
                "INSERT INTO items (item, question_id, answer, model, wave, place, pi, twice) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (k.code, k.question_id, k.answer, k.model, wave, n, float(p), int(n in double))
                    for n, (k, p) in enumerate(zip(keys, pi, strict=True))
                ],
            )
            places = zip(keys, map(float, along), strict=bool(along))
            spread = [(key.code, place) for key, place in places if math.isfinite(place)]
            self._db.executemany("INSERT INTO spread VALUES (?, ?)", spread)
        return wave

    def waves(self) -> list[schema.StoredWave]:
        """Return the waves, first to last."""
        rows = self._db.execute(
            "SELECT wave, design, size, frame, uniform, seed FROM waves ORDER BY wave"
        )
        return [schema.StoredWave(a, b, c, d, bool(e), f) for a, b, c, d, e, f in rows]

    def take(
        self, who: str, count: int = 1, *, keeps: bool = False, now: float | None = None
    ) -> list[schema.StoredItem]:
        """Give a person items: their open ones first, then second labels, then fresh ones.

        Parameters
        ----------
        who
            The person.
        count
            Items wanted; fewer come back where fewer are open.
        keeps
            Whether the items stay with this person (a spreadsheet that is away for days).
        now
            Time in seconds; the clock unless given.
        """
        place = time.time() if now is None else now
        with self._writing():
            queue = self._queue(who, place)[:count]
            # One assignment per open item, until half its lease is over.
            assigned = {item.id for item in queue if self._holds(item.id, who, place, keeps=keeps)}
            rows = [(item.id, who, place, int(keeps)) for item in queue if item.id not in assigned]
            self._db.executemany(_ASSIGN, rows)
        return queue

    def _holds(self, item_id: int, person: str, now: float, *, keeps: bool) -> bool:
        place, selection = self._assigned.get(item_id, {}).get(person, (-math.inf, False))
        return selection or (not keeps and place > now - schema.LEASE_SECONDS / 2)

    def open_for(self, who: str, *, now: float | None = None) -> int:
        """Return how many items this person could still be given."""
        return len(self._queue(who, time.time() if now is None else now))

    def _queue(self, person: str, now: float) -> list[schema.StoredItem]:
        """Return what `who` may label, in the order in which it is given out."""
        self._read_on()
        ranking = []
        for item_id in sorted(self._open):
            item, statement = self._states[item_id].item, self._states[item_id].labels
            if person in statement:
                continue
            holders = self._holders(item_id, now)
            others = (statement.keys() | holders) - {person}
            if len(others) >= _needed(item):
                continue
            skipped = any(row.who == person for row in self._labels.get(item_id, ()))
            rank = 3 if skipped else 0 if person in holders else 1 if others else 2
            ranking.append((rank, item_id, item))
        return [item for _, _, item in sorted(ranking, key=lambda entry: entry[:2])]

    def _holders(self, item_id: int, now: float) -> set[str]:
        """Return who has this item at hand; a skip gives it back."""
        skipped = {row.who: row.label == "skip" for row in self._labels.get(item_id, ())}
        return {
            person
            for person, (place, keeps) in self._assigned.get(item_id, {}).items()
            if (keeps or now - place < schema.LEASE_SECONDS) and not skipped.get(person)
        }

    def items(self) -> list[schema.StoredItem]:
        """Return every drawn item, in the order in which they are shown."""
        return [state.item for state in self.states()]

    def states(self) -> list[schema.ItemState]:
        """Return every drawn item with what is known about it."""
        self._read_on()
        return list(self._states.values())

    def _read_on(self) -> None:
        """Read what was written since the last look: a request costs no more for what is known."""
        changed = set()
        for i, q, a, m, wave, pi, twice, extra in self._since("items"):
            item = schema.StoredItem(i, schema.ItemKey(q, a, m), wave, pi, bool(twice), extra)
            self._states[i] = _state(item, [])
            changed.add(i)
        for number, person, item_id, label, final, undoes in self._since("labels"):
            rows = self._labels.setdefault(item_id, [])
            if undoes is None:
                rows.append(schema.StoredLabel(number, person, item_id, label, bool(final)))
            else:
                rows[:] = [row for row in rows if row.id != undoes]
            changed.add(item_id)
        for _, item_id, person, place, keeps in self._since("assignments"):
            before = self._assigned.setdefault(item_id, {}).get(person, (place, False))
            self._assigned[item_id][person] = (max(place, before[0]), bool(keeps) or before[1])
        for item_id in changed:
            state = _state(self._states[item_id].item, self._labels.get(item_id, []))
            self._states[item_id] = state
            finished = state.final is not None or len(state.labels) >= _needed(state.item)
            (self._open.discard if finished else self._open.add)(item_id)

    def _since(self, table: str) -> list[Any]:
        rows = self._db.execute(_SINCE[table], (self._read[table],)).fetchall()
        if rows:
            self._read[table] = rows[-1][0]
        return rows

    def label(
        self,
        item_id: int,
        who: str,
        label: str,
        *,
        note: str | None = None,
        final: bool = False,
        now: float | None = None,
    ) -> int:
        """Keep a label and return its number; `final` settles a conflict."""
        if label not in schema.LABELS:
            raise InputError(f"a label is one of {', '.join(schema.LABELS)}, got {label!r}")
        if not who.strip():
            raise InputError("a label has the name of who made it")
        with self._writing():
            if not self._db.execute("SELECT 1 FROM items WHERE id = ?", (item_id,)).fetchone():
                raise InputError(f"item {item_id} was never drawn", source=str(self.path))
            place = time.time() if now is None else now
            return self._insert_label(place, who, item_id, label, note, int(final), None)

    def _insert_label(self, *values: object) -> int:
        columns = "at, who, item_id, label, note, final, undoes"
        cursor = self._db.execute(
            f"INSERT INTO labels ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values
        )
        return int(cursor.lastrowid or 0)

    def undo(self, who: str) -> schema.StoredItem | None:
        """Take back the last label of a person (a new row), and return its item."""
        with self._writing():
            self._read_on()
            theirs = (row for rows in self._labels.values() for row in rows if row.who == who)
            row = max(theirs, key=lambda row: row.id, default=None)
            if row is None:
                return None
            place = time.time()
            self._insert_label(place, who, row.item_id, "undo", None, int(row.final), row.id)
            self._db.execute(_ASSIGN, (row.item_id, who, place, 0))
        return self._states[row.item_id].item

    def history(self) -> list[dict[str, object]]:
        """Return every row that was ever written, undone ones included, for export."""
        rows = self._db.execute(
            "SELECT l.id, l.at, l.who, i.question_id, i.answer, i.model, l.label, l.note, "
            "l.final, l.undoes, i.wave, i.pi, i.item FROM labels l "
            "JOIN items i ON i.id = l.item_id ORDER BY l.id"
        )
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows]


def _needed(item: schema.StoredItem) -> int:
    return 2 if item.twice else 1


def _state(item: schema.StoredItem, rows: list[schema.StoredLabel]) -> schema.ItemState:
    """Return what the labels of one item say; of each person the last one counts."""
    last = {row.who: row for row in rows if not row.final}
    settled = next((row for row in reversed(rows) if row.final), None)
    statement = {person: row.label for person, row in last.items() if row.label != "skip"}
    state = schema.ItemState(item, statement, None if settled is None else settled.label, 0)
    if state.status != "decided":
        return state
    deciding = (row.id for row in last.values() if row.label in ("right", "wrong"))
    first = min(deciding, default=0 if settled is None else settled.id)
    return schema.ItemState(item, statement, state.final, first)
