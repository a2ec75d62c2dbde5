"""Tables of the label store, what comes out of them, and the columns of tables of labels."""

import hashlib
import json

from msgspec import Struct

SCHEMA_VERSION = 1
LABELS = ("right", "wrong", "unsure", "skip")
# An item that somebody took and did not label goes back to the others after this long.
LEASE_SECONDS = 1800.0

TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS waves (
    wave INTEGER PRIMARY KEY, at REAL NOT NULL, design TEXT NOT NULL, size INTEGER NOT NULL,
    frame INTEGER NOT NULL, uniform INTEGER NOT NULL, seed INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY, item TEXT NOT NULL UNIQUE, question_id TEXT NOT NULL, answer TEXT,
    model TEXT, wave INTEGER NOT NULL, place INTEGER NOT NULL, pi REAL NOT NULL,
    twice INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS assignments (
    id INTEGER PRIMARY KEY, item_id INTEGER NOT NULL, who TEXT NOT NULL, at REAL NOT NULL,
    keeps INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS assignments_by_item ON assignments (item_id);
CREATE TABLE IF NOT EXISTS labels (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, item_id INTEGER NOT NULL,
    label TEXT NOT NULL CHECK (label IN ('right', 'wrong', 'unsure', 'skip', 'undo')),
    note TEXT, final INTEGER NOT NULL, undoes INTEGER);
CREATE INDEX IF NOT EXISTS labels_by_item ON labels (item_id);
CREATE TABLE IF NOT EXISTS spread (item TEXT PRIMARY KEY, along REAL NOT NULL) WITHOUT ROWID;
""" + "".join(
    f"CREATE TRIGGER IF NOT EXISTS {table}_{verb.lower()} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'labels are append-only'); END;\n"
    for table in ("waves", "items", "assignments", "labels", "spread")
    for verb in ("UPDATE", "DELETE")
)


class ItemKey(Struct, frozen=True):
    """What is labelled: one answer to one question, whoever gave it, however confident.

    Without the text of the answer the model stands in its place.

    Examples
    --------
    >>> ItemKey("0012", "3.50").code == ItemKey("12", "3.5").code
    False
    """

    question_id: str
    answer: str | None = None
    model: str | None = None

    @property
    def code(self) -> str:
        """A short name that is the same in every file and every process."""
        text = json.dumps([self.question_id, self.answer, self.model], ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=9).hexdigest()


class StoredWave(Struct, frozen=True):
    """A wave as it was drawn."""

    wave: int
    design: str
    size: int
    frame: int
    uniform: bool
    seed: int


class StoredItem(Struct, frozen=True):
    """A drawn item: its key, its wave, its chance, and whether two people label it.

    `along` is its place on the line along which its wave was spread, None where it was not.
    """

    id: int
    key: ItemKey
    wave: int
    pi: float
    twice: bool
    along: float | None = None


class StoredLabel(Struct, frozen=True):
    """A label that was not taken back."""

    id: int
    who: str
    item_id: int
    label: str
    final: bool


class ItemState(Struct, frozen=True):
    """What is known about a drawn item.

    Parameters
    ----------
    item
        The item.
    labels
        The last label of each person, unsure included, skips left out.
    final
        The adjudicated label, or None.
    at
        Number of the label that decided it, for the order of labels; 0 while open.
    """

    item: StoredItem
    labels: dict[str, str]
    final: str | None
    at: int

    @property
    def status(self) -> str:
        """``decided``, ``conflict``, ``unsure`` or ``open``."""
        if self.final in ("right", "wrong"):
            return "decided"
        confidence = {label for label in self.labels.values() if label in ("right", "wrong")}
        if len(confidence) == 2:
            return "conflict"
        if confidence:
            return "decided"
        return "unsure" if self.labels or self.final else "open"

    @property
    def outcome(self) -> float | None:
        """1 for right, 0 for wrong, None while undecided."""
        if self.status != "decided":
            return None
        label = self.final or next(x for x in self.labels.values() if x in ("right", "wrong"))
        return 1.0 if label == "right" else 0.0


WEIGHT = "label_weight"
"""How many rows of the pool the row stands for."""
ALONG = "label_along"
"""Where it lay on the line along which the draw was spread; empty where it was not."""
SPREAD = "label_spread"
"""Share of its variance that the spread is about, see `planning.labelling.pools`."""
DESIGN = "label_design"
"""The design that drew it."""
DRAW_COLUMNS = (WEIGHT, ALONG, SPREAD, DESIGN)


# How the store names a wave of whole questions, after its design.
WHOLE = ", whole questions"
