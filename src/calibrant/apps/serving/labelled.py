"""Which of the answers that were given are labelled, and do the labels break the promise?"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson
import polars as pl

from calibrant.core.errors import InputError
from calibrant.data.formats import file_format
from calibrant.data.label_store import LabelStore
from calibrant.data.reading.cells import meaning_of
from calibrant.data.tables import read_table
from calibrant.data.text_tables import read_cells
from calibrant.findings.claims.claim import About
from calibrant.findings.claims.monitor import PROMISE
from calibrant.labels.watching.promise import PromiseWatch

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
    answers: list[ServedAnswer] = field(default_factory=list)
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
