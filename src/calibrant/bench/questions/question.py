"""One question with exactly k right answers: how it is worded, read back and written down."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from calibrant.answers.semantics.text.normalise import strip_accents
from calibrant.core.errors import InputError
from calibrant.core.names import Registry, data_beside
from calibrant.data import read_table, source_name

Bounds = tuple[float, float]
WORDS: dict[str, Any] = data_beside(__file__, "data/wordings.toml")


class Parsed(Struct, frozen=True):
    """What a question asks for: subjects of a relation, where it has them with bounds."""

    relation: str
    subjects: tuple[str, ...]
    bounds: Bounds | None


class Wording(Struct, frozen=True):
    """The frame of a relation's questions.

    Parameters
    ----------
    relation, domain
        For example ``flows_through`` and ``river``.
    frame
        The sentence with ``{subjects}`` and, for a window, ``{bounds}``.
    unit
        ``year``, ``area`` or ``letter`` for a window; None for a union of subjects.
    article
        What stands before each subject.
    joiner
        What stands before the last of several subjects.
    own_unit
        How bounds are written in a domain of one's own.
    """

    relation: str
    domain: str
    frame: str
    unit: str | None = None
    article: str = ""
    joiner: str = " or "
    own_unit: Unit | None = None

    @property
    def words_one_value(self) -> bool:
        """Whether bounds may be one and the same number."""
        unit = self._unit()
        return unit is not None and bool(unit.one)

    @property
    def bounded(self) -> bool:
        """Whether questions ask about one subject within bounds."""
        return self.unit is not None

    def _unit(self) -> Unit | None:
        return self.own_unit or (_UNITS[self.unit] if self.unit else None)

    def _named(self, subject: str) -> str:
        """Return a subject as it stands in a sentence: 'the Drava', 'the Bahamas', 'Peru'."""
        return self.article + subject if self.article else in_a_sentence(subject)

    def union_text(self, subjects: Sequence[str]) -> str:
        """Return the question about one to three subjects."""
        names = [self._named(subject) for subject in subjects]
        head, last = names[:-1], names[-1]
        return self.frame.format(subjects=", ".join(head) + self.joiner + last if head else last)

    def window_text(self, subject: str, bounds: Bounds) -> str:
        """Return the question about one subject within bounds, both included."""
        unit = self._unit()
        assert unit is not None
        return self.frame.format(subjects=self._named(subject), bounds=unit.write(*bounds))

    def read(self, text: str, subjects: Collection[str]) -> Parsed | None:
        """Return what `text` asks for, or None when it is not of this frame."""
        pattern = re.escape(self.frame).replace(r"\{subjects\}", "(?P<subjects>.+)")
        unit = self._unit()
        if unit is not None:
            pattern = pattern.replace(r"\{bounds\}", f"(?P<bounds>{unit.pattern})")
        match = re.fullmatch(pattern, text)
        if match is None:
            return None
        names = match["subjects"]
        bounds = unit.read(match["bounds"]) if unit is not None else None
        request = (
            (_bare(names, self.article, subjects),)
            if unit is not None
            else split_subjects(names, self.article, frozenset(subjects), self.joiner)
        )
        return Parsed(self.relation, request, bounds) if request else None


def in_a_sentence(name: str) -> str:
    """Return a name with the article that English gives it.

    Examples
    --------
    >>> in_a_sentence("Bahamas"), in_a_sentence("Peru")
    ('the Bahamas', 'Peru')
    """
    return f"the {name}" if name in WORDS["with_article"] else name


def _bare(text: str, article: str, subjects: Collection[str]) -> str:
    """Return the subject that a piece of text names, without the article before it."""
    name = text.removeprefix(article)
    return name if name in subjects else name.removeprefix("the ")


def split_subjects(
    text: str, article: str, subjects: frozenset[str], joiner: str = " or "
) -> tuple[str, ...]:
    """Split 'A, B or C' into known subjects; names may hold commas and 'or' themselves."""
    whole = _bare(text, article, subjects)
    if whole in subjects:
        return (whole,)
    for match in re.finditer(rf"{re.escape(joiner)}|,{re.escape(joiner)}", text):
        last = _bare(text[match.end() :], article, subjects)
        if last not in subjects:
            continue
        head = text[: match.start()]
        if _bare(head, article, subjects) in subjects:
            return (_bare(head, article, subjects), last)
        for comma in re.finditer(", ", head):
            pair = (head[: comma.start()], head[comma.end() :])
            first, second = (_bare(part, article, subjects) for part in pair)
            if first in subjects and second in subjects:
                return (first, second, last)
    return ()


class Unit(Struct, frozen=True):
    """How bounds are written and read back.

    Parameters
    ----------
    text
        Words with ``{low}`` and ``{high}``, for example ``from {low} to {high}``.
    one
        Words for bounds that are one value: 'in {low}', never 'from 2016 to 2016'; empty: none.
    letters
        The values are letters, A being 0.
    """

    text: str
    one: str = ""
    letters: bool = False

    def write(self, low: float, high: float) -> str:
        """Return the words of bounds."""
        spelled = [chr(ord("A") + round(v)) if self.letters else f"{v:.15g}" for v in (low, high)]
        form = self.one if self.one and spelled[0] == spelled[1] else self.text
        return form.replace("{low}", spelled[0]).replace("{high}", spelled[1])

    @property
    def pattern(self) -> str:
        """A pattern that finds such words."""
        return "|".join(
            re.escape(form).replace(r"\{low\}", self._value).replace(r"\{high\}", self._value)
            for form in (self.text, self.one)
            if form
        )

    def read(self, words: str) -> Bounds:
        """Return the first and the last value that words name."""
        ends = re.findall(r"\b[A-Z]\b" if self.letters else self._value, words)
        values = [float(ord(text) - ord("A")) if self.letters else float(text) for text in ends]
        return values[0], values[-1]

    @property
    def _value(self) -> str:
        return "[A-Z]" if self.letters else r"-?\d+(?:\.\d+)?"


_UNITS = {name: Unit(**own) for name, own in WORDS["units"].items()}
WORDINGS: Registry[Wording] = Registry("relation")
for _relation, _words in WORDS["relations"].items():
    WORDINGS.add(_relation, Wording(_relation, **_words))


def read_math(text: str) -> Parsed | None:
    """Return what a generated Math question asks for.

    Examples
    --------
    >>> read_math("Name one perfect cube from 2 to 40, both included.")
    Parsed(relation='math', subjects=('perfect cube',), bounds=(2, 40))
    """
    match = re.fullmatch(r"Name one (.+) from (\d+) to (\d+), both included\.", text)
    return Parsed("math", (match[1],), (int(match[2]), int(match[3]))) if match else None


def read_published(text: str, relation: str, subjects: Collection[str]) -> Parsed | None:
    """Return what a published question asks for, or None when the words are others.

    Examples
    --------
    >>> read_published("Name a prime number between 20 and 30.", "math", [])
    Parsed(relation='math', subjects=('prime',), bounds=(20.0, 30.0))
    """
    match = re.fullmatch(WORDS["published"].get(relation, "(?!)"), text.strip())
    if match is None:
        return None
    groups = match.groupdict()
    ends = [float(end) for name in ("one", "low", "high") if (end := groups.get(name))]
    bounds = (ends[0], ends[-1]) if ends else None
    request: tuple[str, ...] = (groups["subjects"],)
    if relation in ("spoken_in", "flows_through"):
        article = "the " if relation == "flows_through" else ""
        request = split_subjects(groups["subjects"], article, frozenset(subjects))
    return Parsed(relation, request, bounds) if request else None


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
