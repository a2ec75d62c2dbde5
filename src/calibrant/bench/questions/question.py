"""One question with exactly k right answers, and the JSONL form that it travels in."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from calibrant.answers.semantics.text.normalise import strip_accents
from calibrant.core.errors import InputError
from calibrant.data import read_table, source_name

_NOT_WORD = re.compile(r"[^\w]+", flags=re.UNICODE)


@lru_cache(maxsize=1 << 16)
def normalised(text: str) -> str:
    """Return the form under which two spellings of a name or question are the same.

    Examples
    --------
    >>> normalised("  The Bahamas ") == normalised("Bahamas")
    True
    >>> normalised("Côte d’Ivoire")
    'cote d ivoire'
    """
    words = _NOT_WORD.sub(" ", strip_accents(text).casefold()).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)


class BenchQuestion(Struct, frozen=True):
    """A question whose right answers are known in full.

    Parameters
    ----------
    text
        What the model is asked.
    references
        Every right answer as a tuple of its names; the first one is the main name.
    domain, subtype
        For example ``math`` and ``prime``.
    source
        Where the ground truth comes from, in words.
    kind
        ``number`` or ``open``: how an answer is to be compared with the references.
    siblings
        Answers of the same type that are known to be wrong: other objects of the relation.
    date
        When the ground truth was written down.
    meta
        What the builder knew: subjects and bounds. `bench check` does not trust it.

    Examples
    --------
    >>> one = BenchQuestion("Name one prime from 8 to 12.", (("11",),), "math", "prime", "rule")
    >>> one.k, one.question_id
    (1, 'math-1-421dedd918')
    """

    text: str
    references: tuple[tuple[str, ...], ...]
    domain: str
    subtype: str
    source: str
    kind: str = "open"
    meta: Mapping[str, Any] = {}
    siblings: tuple[str, ...] = ()
    date: str = ""

    @property
    def k(self) -> int:
        """Number of right answers."""
        return len(self.references)

    @property
    def question_id(self) -> str:
        """An id that follows from the content: the same question has it under every seed."""
        digest = hashlib.blake2b(self.text.encode(), digest_size=5).hexdigest()
        return f"{self.domain}-{self.k}-{digest}"

    @property
    def answers(self) -> frozenset[str]:
        """Normalised main names of the right answers."""
        return frozenset(normalised(names[0]) for names in self.references)

    def row(self) -> dict[str, Any]:
        """Return the row of a questions table; `meta` is a JSON text, the same for all rows."""
        return {
            "question_id": self.question_id,
            "text": self.text,
            "references": [list(names) for names in self.references],
            "k": self.k,
            "domain": self.domain,
            "subtype": self.subtype,
            "kind": self.kind,
            "source": self.source,
            "source_date": self.date,
            "siblings": list(self.siblings),
            "meta": orjson.dumps(dict(self.meta)).decode(),
        }


_SHORT_NAME = 4


def named_answer(question: BenchQuestion) -> str | None:
    """Return a right answer that the question itself names; None where it names none.

    Names of four letters and more are looked for inside words too: 'Malay' is in 'Malaysia'.

    Examples
    --------
    >>> two = BenchQuestion("Name one prime number from 2 to 3, both included.", (("2",), ("3",)),
    ...                "math", "prime", "rule")
    >>> named_answer(two)
    '2'
    """
    text = f" {normalised(question.text).removeprefix('name one')} "
    for name in (name for names in question.references for name in names):
        form = normalised(name)
        whole = len(form) < _SHORT_NAME or form.isdecimal()
        if form and (f" {form} " if whole else form) in text:
            return name
    return None


def question_rows(questions: Iterable[BenchQuestion]) -> bytes:
    """Return the questions as JSON lines."""
    return b"".join(orjson.dumps(question.row()) + b"\n" for question in questions)


def write_questions(questions: Iterable[BenchQuestion], path: str | Path) -> None:
    """Write the questions as JSON lines; the same questions give the same bytes."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(question_rows(questions))


def read_questions(source: Any) -> list[BenchQuestion]:
    """Read questions: a table with text (or question), references, domain and, if given, k.

    References may be lists of names or plain names. A ``k`` that is not the number of
    references is an error: the file contradicts itself.
    """
    frame = read_table(source)
    name = source_name(source)
    text = next((column for column in ("text", "question") if column in frame.columns), None)
    missing = {"references", "domain"} - set(frame.columns)
    if text is None or missing:
        raise InputError(
            f"questions have columns text, references and domain, got {', '.join(frame.columns)}",
            source=name,
        )
    return [
        _question(record, record[text], name, row)
        for row, record in enumerate(frame.iter_rows(named=True), start=1)
    ]


def _question(record: Mapping[str, Any], text: str, source: str, row: int) -> BenchQuestion:
    references = tuple(
        tuple(names) if isinstance(names, list) else (str(names),)
        for names in record["references"] or ()
    )
    if record.get("k") is not None and record["k"] != len(references):
        raise InputError(
            f"k is the number of right answers: k is {record['k']}, "
            f"and there are {len(references)} references",
            source=source,
            row=row,
        )
    meta = record.get("meta") or {}
    return BenchQuestion(
        text=text,
        references=references,
        domain=record["domain"],
        subtype=record.get("subtype") or "",
        source=record.get("source") or source,
        kind=record.get("kind") or "open",
        meta=orjson.loads(meta) if isinstance(meta, str) else meta,
        siblings=tuple(record.get("siblings") or ()),
        date=record.get("source_date") or "",
    )
