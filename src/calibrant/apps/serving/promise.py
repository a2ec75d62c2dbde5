"""How the promise stands: what labels of served answers show, and what is known on disk."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import orjson
import polars as pl
from msgspec import Struct, field

from calibrant.core.errors import InputError, SchemaError
from calibrant.core.places import locked_beside, replace_file
from calibrant.data.formats import file_format
from calibrant.data.label_store import LabelStore
from calibrant.data.reading.cells import meaning_of
from calibrant.data.tables import read_table
from calibrant.data.text_tables import read_cells
from calibrant.findings.claims import About
from calibrant.findings.claims.labels import PROMISE
from calibrant.labels.watching.betting import PromiseWatch

SCHEMA = "calibrant.serve_state/1"
LEARNED = 200
"""Answers of an endpoint in which the versions behind its name are learned."""


class Seen(Struct):
    """Who answered under a model's name, and how often it was looked at."""

    model: str | None = None
    fingerprints: list[str] = []
    answers: int = 0


class Known(Struct):
    """What is known of one policy; it is kept until another policy is served.

    `expired` is why labels show the promise broken, `changed` what answers in place of the model
    that was certified, `shift` what is unlike the labelled questions, `labels` how many answers
    are labelled.
    """

    expired: str | None = None
    changed: str | None = None
    shift: str | None = None
    labels: int = 0
    seen: dict[str, Seen] = field(default_factory=dict)


class _State(Struct):
    schema: str = SCHEMA
    policies: dict[str, Known] = field(default_factory=dict)


class PromiseState:
    """How a policy stands, and where that is written down.

    Several processes may share the file: what one finds, all tell at their next look.

    Parameters
    ----------
    path
        The file.
    policy
        Short name of the policy.
    """

    def __init__(self, path: Path, policy: str) -> None:
        self.path, self.policy = path, policy
        self.known = self._read().policies.get(policy, Known())
        self.not_verified: Callable[[], str | None] = lambda: None
        """Says since when nobody has looked, where that is too long ago."""
        self._one_at_a_time = threading.Lock()

    def _read(self) -> _State:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return _State()
        try:
            state = msgspec.json.decode(raw, type=_State)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SchemaError(
                f"the state of the watch cannot be read: {error}",
                source=str(self.path),
                hint="move the file away; what it knew against the promise is then found anew "
                "from the labels",
            ) from None
        if state.schema != SCHEMA:
            rule = f"this version reads states of {SCHEMA}, got {state.schema!r}"
            raise SchemaError(rule, source=str(self.path), hint="move the file away")
        return state

    def share(self) -> None:
        """Write down what is new, and take over what another process has found."""
        with self._one_at_a_time, locked_beside(self.path):
            self._merge(self._read())

    def _merge(self, state: _State) -> None:
        peer = state.policies.get(self.policy, Known())
        knowledge = self.known
        knowledge.expired = knowledge.expired or peer.expired
        knowledge.changed = knowledge.changed or peer.changed
        knowledge.labels = max(knowledge.labels, peer.labels)
        for name, observed in peer.seen.items():
            mine = knowledge.seen.setdefault(name, msgspec.structs.replace(observed))
            mine.model = observed.model or mine.model
            mine.fingerprints = list(dict.fromkeys([*observed.fingerprints, *mine.fingerprints]))
            mine.answers = max(observed.answers, mine.answers)
        if self.policy not in state.policies or knowledge != peer:
            state.policies[self.policy] = knowledge
            replace_file(self.path, msgspec.json.encode(state) + b"\n")

    def see(self, name: str, model: str | None, fingerprint: str | None) -> None:
        """Look who answers under a model's name: another one than before ends the promise."""
        observed = self.known.seen.setdefault(name, Seen())
        observed.answers = min(observed.answers + 1, LEARNED + 1)
        if model is not None:
            observed.model = observed.model or model
            if model != observed.model:
                self._change(f"{name} is answered by {model}, at first it was {observed.model}")
        if fingerprint is None or fingerprint in observed.fingerprints:
            return
        if observed.answers <= LEARNED:
            observed.fingerprints.append(fingerprint)
        else:
            self._change(f"{name} is answered by another version ({fingerprint})")

    def _change(self, what: str) -> None:
        today = dt.datetime.now(dt.UTC).date().isoformat()
        self.known.changed = self.known.changed or f"since {today} {what}"

    @property
    def shift(self) -> str | None:
        """What is not as it was certified, for callers."""
        return " ".join(filter(None, (self.known.changed, self.known.shift))) or None

    @property
    def against(self) -> str | None:
        """Why nothing is promised at the moment; None where nothing is against it."""
        knowledge = self.known
        return knowledge.expired or knowledge.changed or self.not_verified() or knowledge.shift


_HALF = 0.5


class ServedAnswer(NamedTuple):
    """An answer that was given alone: its row, its question, the day."""

    row: str
    question: str
    answer: bytes
    day: str


class AnswerLabel(NamedTuple):
    """What somebody says of an answer, which is named by row, by question and text, or question."""

    row: str | None
    question: str | None
    answer: bytes | None
    right: float


@dataclass
class ServedAnswers:
    """The answers that a policy gave alone, read on from where the file ended last time.

    Parameters
    ----------
    path
        Rows that were served.
    policy
        Short name of the policy: answers of another one are no evidence about this.
    """

    path: Path
    policy: str
    answers: list[ServedAnswer] = dataclasses.field(default_factory=list)
    unreadable: int = 0
    _offset: int = 0
    _file: int = 0

    def read_on(self) -> None:
        """Read the lines that came since; one that cannot be read costs that row alone."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            about = self.path.stat()
            if about.st_ino != self._file or about.st_size < self._offset:
                self.answers, self.unreadable = [], 0
                self._file, self._offset = about.st_ino, 0
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._offset += len(line)
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            row = orjson.loads(line)
            if row["policy"] == self.policy and row["decision"] == "answer":
                question, day = str(row["question_id"]), str(row["time"])[:10]
                # Rows of earlier versions have no name of their own.
                name = str(row.get("id", len(self.answers)))
                self.answers.append(ServedAnswer(name, question, digest(row["answer"]), day))
        except (ValueError, KeyError, TypeError, AttributeError):
            self.unreadable += bool(line.strip())


def digest(answer: object) -> bytes:
    """Return what stands for the text of an answer."""
    text = "" if answer is None else str(answer).strip()
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).digest()


def read_labels(path: Path) -> list[AnswerLabel]:
    """Return the labels in a table, or in the file of `label serve`; none where it is not there.

    The last label of an answer counts. A label that cannot be read is left out.
    """
    if not path.is_file():
        return []
    if path.suffix == ".sqlite":
        store = LabelStore(path, create=False)
        try:
            return [_stored(state.item.key, state.outcome) for state in store.states()
                    if state.outcome is not None]  # fmt: skip
        finally:
            store.close()
    table = read_cells(path) if file_format(path) == "csv" else read_table(path)
    names = [name for name in ("id", "question_id", "answer", "correct") if name in table.columns]
    if "correct" not in names or not {"id", "question_id"} & {*names}:
        raise InputError(
            f"labels have the columns question_id and correct, got {', '.join(table.columns[:8])}",
            source=str(path),
            hint="also give the column answer, or the id of the served row",
        )
    labels = list(_listed(table.select(pl.col(names).cast(pl.String))))
    if table.height and not labels:
        raise InputError(
            "no label can be read: correct is 1 or 0, true or false, right or wrong",
            source=str(path),
        )
    return labels


def _stored(key: object, outcome: float) -> AnswerLabel:
    answer = getattr(key, "answer", None)
    name = str(getattr(key, "question_id", ""))
    return AnswerLabel(None, name, digest(answer) if answer else None, float(outcome))


def _listed(table: pl.DataFrame) -> Iterator[AnswerLabel]:
    for row in table.iter_rows(named=True):
        right = _outcome(row["correct"])
        name, question, answer = (row.get(column) for column in ("id", "question_id", "answer"))
        if right is not None and (name or question):
            yield AnswerLabel(
                name or None, question, None if answer is None else digest(answer), right
            )


def _outcome(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return meaning_of(text)
    return number if 0.0 <= number <= 1.0 else None


class Outcomes(NamedTuple):
    """Graded answers, how many labels fit none of them, and how many fit more than one answer."""

    graded: list[tuple[ServedAnswer, float]]
    strange: int
    ambiguous: int


def graded_answers(answers: list[ServedAnswer], labels: list[AnswerLabel]) -> Outcomes:
    """Return the answers with their labels: by row, by question and answer, or by question alone.

    A label that names a question alone counts where all its answers are the same.
    """
    by_row: dict[str, list[int]] = defaultdict(list)
    by_answer: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    by_question: dict[str, set[bytes]] = defaultdict(set)
    for place, answer in enumerate(answers):
        by_row[answer.row].append(place)
        by_answer[answer.question, answer.answer].append(place)
        by_question[answer.question].add(answer.answer)
    graded: dict[int, float] = {}
    strange = ambiguous = 0
    for label in labels:
        question, text = label.question or "", label.answer
        if label.row is not None and label.row in by_row:
            places = by_row[label.row]
        else:
            reply = by_question.get(question, set())
            ambiguous += text is None and len(reply) > 1
            text = next(iter(reply)) if text is None and len(reply) == 1 else text
            places = [] if text is None else by_answer.get((question, text), [])
        strange += not places
        graded.update(dict.fromkeys(places, label.right))
    return Outcomes([(answers[p], graded[p]) for p in sorted(graded)], strange, ambiguous)


def broken_promise(watch: PromiseWatch, graded: list[tuple[ServedAnswer, float]]) -> str | None:
    """Return why a promise is broken, as the labels show it day by day; None where they do not."""
    days: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for answer, right in graded:
        days[answer.day].append((answer.question, 1.0 - right))
    for day in sorted(days):
        questions, wrong = zip(*days[day], strict=True)
        if watch.update(day, wrong, list(questions)):
            document = watch.document()
            about = About({}, {"name": "", "named": False})
            return PROMISE.claim("shown", about, document, n=watch.given).text
    return None
