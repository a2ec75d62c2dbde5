"""What every reader of a foreign log returns, and which of its numbers are believed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.data.logs.json_text import ReadOptions, finite_number
from calibrant.data.study import DRAWS, QUESTIONS, SCORES, SEMANTICS
from calibrant.data.texts import spells

# A hair above 0 is rounding; far below, a writer says that it does not know.
_HIGHEST, _LOWEST = 1e-4, -9000.0
_NAMES = ("token", "text")


def believed_tokens(
    log: ForeignLog, entries: Sequence[Any], text: str | None
) -> list[float] | None:
    """Return the log-probabilities of an answer's tokens, or None with a note that says why.

    Refused are values that are no log-probability, and tokens that do not spell the text: such
    numbers belong to another answer.

    Parameters
    ----------
    log
        Where refusals are noted.
    entries
        A number for each token, or a mapping with its ``logprob`` and its text.
    text
        What the tokens must spell; None where the log does not say.

    Examples
    --------
    >>> from calibrant.data.logs.log import ForeignLog
    >>> log = ForeignLog("mine", Path("file"))
    >>> believed_tokens(log, [{"token": "Par", "logprob": -0.1}], "London"), log.notes
    (None, ['some log-probs are not read: the tokens do not spell the answer'])
    """
    if not entries:
        return None
    tokens = [entry if isinstance(entry, Mapping) else {"logprob": entry} for entry in entries]
    values = [finite_number(token.get("logprob")) for token in tokens]
    sound = [value for value in values if value is not None and _LOWEST < value <= _HIGHEST]
    if len(sound) < len(values):
        log.note("some log-probs are not read: a value is no log-probability")
        return None
    pieces: list[Any] = [
        next((token[name] for name in _NAMES if isinstance(token.get(name), str)), None)
        for token in tokens
    ]
    if text is not None and None not in pieces and not spells(pieces, text):
        log.note("some log-probs are not read: the tokens do not spell the answer")
        return None
    return [min(value, 0.0) for value in sound]


_STATED, _STEP_METHODS = ("stated", "verb"), ("stated", "perplexity")

# Of fewer tokens all may be alike by chance: a model that is certain of a short answer or two.
_LEAST_TOKENS = 5
_FROM_TOKENS = ("perplexity", "sequence_probability")
_MADE_UP = "{}: every {}, which is a placeholder of the writer; it is not read as a confidence"


def _constant(values: pl.DataFrame, *keys: str) -> list[Any]:
    """Return keys and value where the last column holds one and the same number throughout."""
    last = pl.col(values.columns[-1])
    is_same = (last.min() == last.max()) & (pl.len() >= _LEAST_TOKENS)
    groups = values.group_by(keys, maintain_order=True).agg(last.first(), same=is_same)
    return groups.filter("same").drop("same").rows()


def without_placeholders(
    draws: pl.DataFrame, scores: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return draws and scores without made-up probabilities, and a note per model."""
    notes = []
    confidence = scores.filter(pl.col("method").is_in(_STATED))
    confidence = confidence.select("model", "method", "confidence")
    for model, method, value in _constant(confidence, "model", "method"):
        if value == 0.0:
            scores = scores.filter((pl.col("model") != model) | (pl.col("method") != method))
            notes.append(_MADE_UP.format(model, "confidence is 0"))
        else:
            notes.append(
                f"{model}: every confidence is {value:g}; make sure that the tool did not fill it "
                "in where there was none"
            )
    tokens = draws.select("model", "token_logprobs").drop_nulls().explode("token_logprobs")
    for model, value in _constant(tokens.drop_nulls(), "model"):
        ours, rows = pl.col("model") == model, pl.col("token_logprobs")
        draws = draws.with_columns(token_logprobs=pl.when(~ours).then(rows))
        scores = scores.filter(~(ours & pl.col("method").is_in(_FROM_TOKENS)))
        notes.append(_MADE_UP.format(model, f"token has the log-probability {value:g}"))
    return draws, scores, notes


_IN_WORDS = re.compile(
    r"confidence\W{0,4}\s*(?:score|level)?\W{0,4}:\W{0,4}\s*(\d{1,3}(?:\.\d+)?)(?![\d,])\s*(%|/\s*100)?",
    re.IGNORECASE,
)


def stated_percent(reply: str) -> float | None:
    r"""Return the confidence of the last line ``Confidence: 85%`` as a fraction, or None.

    A number without a percent sign is a percentage above 1 and a fraction below; what is above
    100 % is none.

    Examples
    --------
    >>> stated_percent("Answer: 4\nConfidence: 85%"), stated_percent("**Confidence:** 0.4")
    (0.85, 0.4)
    >>> stated_percent("I am confident."), stated_percent("Confidence: 850%")
    (None, None)
    >>> stated_percent("Confidence: 1,238,222") is None
    True
    """
    confidence = _IN_WORDS.findall(reply)
    if not confidence:
        return None
    number, unit = confidence[-1]
    value = float(number) / (100.0 if unit or float(number) > 1.0 else 1.0)
    return value if value <= 1.0 else None


FILTERED_ONLY = "the log grades the filtered answer only"
"""Reason of a draw without a grade where a log grades one answer for all repeats."""

CHUNK = 2_000
"""Rows that are held as Python objects before they are packed into columns."""

_TYPES = {**SEMANTICS.columns, **QUESTIONS.columns, **DRAWS.columns, **SCORES.columns}
_TYPES |= {name: pl.String() for name in ("task", "run", "tool")}
_TYPES |= {"step": pl.Int64(), "stated": pl.Float64(), "perplexity": pl.Float64()}
_COLUMNS = {
    table: {name: _TYPES[name] for name in names.split()}
    for table, names in {
        "questions": "question_id text references kind choices domain",
        "draws": "question_id model task purpose draw text answer correct reason grader "
        "finish_reason token_logprobs first_token_top_logprobs temperature prompt_tokens "
        "completion_tokens",
        "scores": "question_id model method answer confidence correct task draw",
        "steps": "run model step tool stated perplexity correct",
    }.items()
}


@dataclass(frozen=True, slots=True)
class LogProblem:
    """Something of the log that could not be read: where, and why."""

    place: str
    reason: str


@dataclass(slots=True)
class ForeignLog:
    """The readable part of a log, and a list of the rest.

    Rows are packed into columns chunk by chunk, so that memory stays bounded.

    Parameters
    ----------
    kind, path, options
        Which tool wrote it; where it is, and how it is read.
    problems
        Parts that could not be read.
    notes
        What a reader of the result should know.
    expected
        How much the log says it should hold, where it says so.
    expected_unit
        What is counted by `expected`: questions, draws, requests or rows.
    ranking
        Methods whose score is no probability and only ranks.
    opinions
        All that judges and people said of each answer, by name, where that is asked for.
    roles
        Who gave the opinions of a column, ``"judge"`` or ``"people"``, where the log says so.
    corrections
        Of columns in which people put a verdict in place of another: whether each changes it.
        Rows that they left alone are no agreement.
    counts
        What is noted once, with its number, when the log is read.
    opinions_of_rows
        Rows of `opinions`, and what was said of each by whom, before they become columns.
    questions, draws, scores
        Tables, when the log is read. A draw carries the log's own grade in ``correct`` (null with
        a ``reason``), a score is a confidence that the log holds, with the grade of its very
        answer.
    steps
        Turns of agents on the way to their answer, each with the outcome of its run.

    Examples
    --------
    >>> log = ForeignLog("example", Path("a.jsonl"))
    >>> log.draw(question_id="q", model="m", draw=0, text="Paris", correct=1.0)
    >>> log.finish()
    >>> log.draws.select("question_id", "purpose", "answer", "correct").row(0)
    ('q', 'answer', 'Paris', 1.0)
    """

    kind: str
    path: Path
    options: ReadOptions = field(default_factory=ReadOptions)
    problems: list[LogProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    expected: int | None = None
    expected_unit: str = "questions"
    ranking: set[str] = field(default_factory=set)
    questions: pl.DataFrame = field(default_factory=pl.DataFrame)
    draws: pl.DataFrame = field(default_factory=pl.DataFrame)
    scores: pl.DataFrame = field(default_factory=pl.DataFrame)
    steps: pl.DataFrame = field(default_factory=pl.DataFrame)
    opinions: list[dict[str, str | None]] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    corrections: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    opinions_of_rows: list[tuple[dict[str, str | None], Any]] = field(default_factory=list)
    finished: bool = False
    _rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    _frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _question_ids: set[str] = field(default_factory=set)

    @property
    def source(self) -> str:
        """The path as messages call it."""
        return str(self.path)

    def draw(self, **row: Any) -> None:
        """Add a draw; the answer is the text where the log names none."""
        row.setdefault("purpose", "answer")
        if row.get("answer") is None:
            row["answer"] = row.get("text")
        self._add("draws", row)

    def score(self, **row: Any) -> None:
        """Add a confidence that the log holds."""
        self._add("scores", row)

    def step(self, **row: Any) -> None:
        """Add a turn of an agent."""
        self._add("steps", row)

    def question(self, **row: Any) -> None:
        """Add a question, once."""
        if row["question_id"] not in self._question_ids:
            self._question_ids.add(row["question_id"])
            self._add("questions", row)

    def problem(self, place: str, reason: str) -> None:
        """Note a part that could not be read."""
        self.problems.append(LogProblem(place, reason))

    def note(self, text: str) -> None:
        """Add a remark, once."""
        if text not in self.notes:
            self.notes.append(text)

    def remarks(self) -> list[str]:
        """Return what a reader of the opinions should know: what is missing, and the notes."""
        if not self.problems:
            return self.notes
        rule = f"could not be read: {len(self.problems):,} of the log's parts"
        first = f"{self.problems[0].place}: {self.problems[0].reason}"
        return [f"{rule}, {len(self.opinions):,} answers could ({first})", *self.notes]

    def expect_sum(self, counts: Sequence[Any], unit: str = "draws") -> None:
        """Keep how much there should be, where the log counts all of its parts."""
        if all(isinstance(count, int) for count in counts):
            self.expected, self.expected_unit = sum(counts), unit

    def finish(self) -> None:
        """Make the tables; what a writer puts in place of a probability is taken out."""
        if self.finished:
            return
        self.finished = True
        self.questions, draws, scores, steps = map(self._table, _COLUMNS)
        self.draws, self.scores, notes = without_placeholders(draws, scores)
        # Nobody asks for confidences where opinions are read.
        notes = [] if self.options.opinions else notes
        counts = [f"{number:,} {text}" for text, number in self.counts.items() if number]
        for column, changes in self.corrections.items():
            rule = f"{column}: {len(changes):,} corrections, which change {sum(changes):,} verdicts"
            counts.append(f"{rule}; answers that people left alone do not count as agreement")
        for text in (*notes, *counts):
            self.note(text)
        # Each way to be sure is a method, with all steps of every run.
        methods = [name for name in _STEP_METHODS if steps[name].count()]
        about = steps.drop(_STEP_METHODS)
        long = {"variable_name": "method", "value_name": "confidence"}
        self.steps = steps.unpivot(methods, index=about.columns, **long) if methods else about
        self._question_ids.clear()

    def _add(self, table: str, row: dict[str, object]) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= CHUNK:
            self._pack(table)

    def _pack(self, table: str) -> None:
        rows = self._rows.pop(table, [])
        try:
            # From rows, not column by column: nested columns are built several times faster so.
            frame = pl.DataFrame(rows, schema=_COLUMNS[table])
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            frame = self._one_by_one(table, rows)
        self._frames.setdefault(table, []).append(frame)

    def _one_by_one(self, table: str, rows: Sequence[dict[str, object]]) -> pl.DataFrame:
        """Pack rows singly, so that one odd value costs its own row and no other."""
        frames = [pl.DataFrame(schema=_COLUMNS[table])]
        for row in rows:
            try:
                frames.append(pl.DataFrame([row], schema=_COLUMNS[table]))
            except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
                place = f"question {row.get('question_id')!r}, draw {row.get('draw')}"
                self.problem(place, f"a value of another type in {table}: {error}")
        return pl.concat(frames)

    def _table(self, table: str) -> pl.DataFrame:
        self._pack(table)
        return pl.concat(self._frames.pop(table), rechunk=False)
