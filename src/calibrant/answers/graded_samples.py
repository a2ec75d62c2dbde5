"""Sampled answers clustered, graded (by rules or a judge) and scored, as the input of an audit."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from msgspec.structs import replace

from calibrant.answers.confidence import score_table
from calibrant.answers.samples import SampleColumns, Samples, read_samples
from calibrant.answers.semantics.annotate import Annotated, annotate
from calibrant.answers.semantics.settle import SemanticsOptions
from calibrant.answers.semantics.verdict import WORDS, embedded_judge
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.formats import is_study
from calibrant.data.sources.drawn_labels import Grades
from calibrant.data.sources.draws import GRADE, drawn_again, graded_by_given
from calibrant.data.sources.input import document_head
from calibrant.data.sources.objects import as_table
from calibrant.data.sources.options import AuditOptions, AuditSource
from calibrant.data.sources.row_source import row_source
from calibrant.data.sources.tables import OpenTables
from calibrant.data.study import Study
from calibrant.data.tables import with_question_columns
from calibrant.findings.claims.sem_ece import (
    judge_limit_warning,
    sample_warnings,
    several_right_warning,
)

if TYPE_CHECKING:
    from calibrant.models.inference.judge import EmbeddedJudge

_KEY = ["question_id", "model", "purpose", "draw"]


@dataclass(frozen=True, slots=True)
class GradedSamples:
    """The four tables of a study made from samples, and how they came about.

    Parameters
    ----------
    questions, draws, semantics, scores
        Tables as in a study.
    how
        Shape, columns and which of them were guessed.
    semantics_document
        What clustered and graded, see `annotate`.
    availability
        Which methods the columns allow, and what the others lack.
    """

    questions: pl.DataFrame
    draws: pl.DataFrame
    semantics: pl.DataFrame
    scores: pl.DataFrame
    how: Mapping[str, Any]
    semantics_document: Mapping[str, Any] = field(default_factory=dict)
    availability: tuple[Mapping[str, Any], ...] = ()

    @property
    def with_classes(self) -> pl.DataFrame:
        """One row per sampled answer with its class, grade, stated confidence and question."""
        answers = self.draws.filter(pl.col("purpose") == "answer")
        confidence = answers.select(*_KEY, "answer", "stated_confidence")
        classes = self.semantics.filter(pl.col("purpose") == "answer")
        classes = classes.join(confidence, on=_KEY, how="left", maintain_order="left")
        usual = ("question_id", "text", "references")
        target_names = [name for name in self.questions.columns if name not in usual]
        return with_question_columns(classes, self.questions, target_names)

    @property
    def several_right(self) -> tuple[int, int]:
        """Questions with one right answer: those where several classes of a model match it, all."""
        if "references" not in self.questions.columns:
            return 0, 0
        one = self.questions.filter(pl.col("references").list.len() == 1).select("question_id")
        right = self.semantics.filter(pl.col("purpose") == "answer", pl.col("correct"))
        matched = right.group_by("question_id", "model").agg(pl.col("class_id").n_unique())
        several = matched.filter(pl.col("class_id") > 1).select("question_id").unique()
        return several.join(one, on="question_id", how="semi").height, one.height


def grade_samples(
    samples: Samples, *, options: SemanticsOptions | None = None, seed: int = 0
) -> GradedSamples:
    """Put answers that mean the same together, grade them, and score every method possible.

    A confidence that a draw states ('Confidence: 80 %') feeds the methods of stated confidence:
    the same generations count as answers and as statements.

    Examples
    --------
    >>> import polars as pl
    >>> from calibrant.answers.samples import read_samples
    >>> table = pl.DataFrame({"question": ["Capital of Peru?"], "gold": ["Lima"],
    ...     "answers": [["Lima", "It is Lima.", "Quito"]]})
    >>> graded = grade_samples(read_samples(table))
    >>> graded.semantics["class_id"].to_list(), graded.semantics["correct"].to_list()
    ([0, 0, 1], [True, True, False])
    """
    annotated = annotate(samples.draws, samples.questions, options=options)
    draws, semantics = annotated
    notes = [*samples.notes, *_unread(annotated)]
    if GRADE in samples.draws.columns:
        draws, semantics, divided = graded_by_given(draws, semantics, samples.draws, _KEY)
        notes += divided
    if draws["stated_confidence"].is_not_null().any():
        again = pl.lit("verb").alias("purpose")
        draws = pl.concat([draws, draws.with_columns(again)])
        semantics = pl.concat([semantics, semantics.with_columns(again)])
    scored = score_table(draws, semantics, samples.questions, seed=seed)
    how = {
        "shape": samples.shape,
        "columns": dict(samples.columns),
        "guessed": list(samples.guessed),
        "notes": notes,
    } | ({} if samples.beside is None else {"references_file": samples.beside})
    tables = (samples.questions, draws, semantics, scored.scores)
    return GradedSamples(*tables, how, annotated.document, tuple(scored.availability))


def _unread(annotated: Annotated) -> list[str]:
    """Say what a judge would add, where there is none and words decided."""
    document = annotated.document
    if document["embedded"] or document["judge"] or os.environ.get("CALIBRANT_JUDGE") == "none":
        return []
    by_words = sum(document["graders"].get(name, 0) for name in WORDS)
    if not by_words:
        return []
    return [
        f"words alone decided {by_words} of {annotated.semantics.height} answers: the embedded "
        "judge reads them, without key or network, after `calibrant models fetch` (98 MB, once)"
    ]


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """How sampled answers are read and graded.

    Parameters
    ----------
    columns
        Columns of samples, references, questions and models where they are named.
    references
        File of references, where the data has none.
    judge
        Model that judges what rules leave open.
    """

    columns: SampleColumns
    references: Any = None
    judge: JudgeChoice | None = None


def sample_source(data: Any, options: AuditOptions, request: SampleRequest) -> AuditSource:
    """Read, cluster, grade and score sampled answers, and open them for an audit.

    Parameters
    ----------
    data
        Sampled answers in any shape that `read_samples` knows.
    options
        The options of `audit`.
    request
        Columns, references and judge.
    """
    values = as_table(data)
    samples = read_samples(values, request.columns, references=request.references)
    with judged_options(request.judge, ledger_beside(values)) as semantics:
        graded = grade_samples(samples, options=semantics, seed=options.seed)
    head = document_head("audit", values, seed=options.seed, settings=options.settings)
    return graded_source(graded, options, head)


class OpenGraded(OpenTables):
    """Scores of samples that were graded just now, with those grades."""

    def __init__(self, graded: GradedSamples) -> None:
        super().__init__(graded.scores)
        self._graded = graded

    def grades(self) -> Grades | None:
        """Return the grades; nobody has checked them yet."""
        return Grades.of_tables(self._graded.draws, self._graded.semantics)


def graded_source(
    graded: GradedSamples, options: AuditOptions, head: dict[str, Any]
) -> AuditSource:
    """Open graded samples for an audit."""
    rules = {"graded": True, "on_invalid": options.table.on_invalid or "drop"}
    table = replace(options.table.by_schema(), **rules)
    source = row_source(OpenGraded(graded), replace(options, table=table))
    grading = {**graded.how, "semantics": dict(graded.semantics_document)}
    return replace(
        source,
        head={**head, "samples": grading},
        coverage=partial(_coverage, source, graded),
        draws=drawn_again(graded.with_classes),
        texts=graded.questions.select("question_id", "text"),
    )


def _coverage(source: AuditSource, graded: GradedSamples) -> dict[str, Any]:
    """Return what the data covers, and which of its columns were guessed."""
    document = source.coverage()
    warnings = [
        *sample_warnings(graded.how),
        *judge_limit_warning(graded.semantics_document),
        *several_right_warning(*graded.several_right),
    ]
    return {**document, "warnings": [*warnings, *document["warnings"]]}


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """Which model judges, where it is reached, and how often it may be asked at most.

    `model` may begin with the kind of endpoint: ``anthropic:NAME``, ``ollama:NAME``; without one
    it is an OpenAI-style endpoint at `url`.
    """

    model: str
    url: str | None = None
    most_calls: int | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The description that a client is opened by.

        Examples
        --------
        >>> JudgeChoice("ollama:qwen3").spec
        {'kind': 'ollama', 'model': 'qwen3'}
        """
        kind, _, name = self.model.partition(":")
        if not name or kind not in _KINDS:
            kind, name = "openai", self.model
        spec: dict[str, Any] = {"kind": kind, "model": name}
        return spec if self.url is None else {**spec, "base_url": self.url}


_KINDS = ("openai", "anthropic", "gemini", "ollama", "vllm", "llamacpp", "embedded", "mistral")


@contextmanager
def judged_options(
    choice: JudgeChoice | None, ledger: Path | None
) -> Iterator[SemanticsOptions | None]:
    """Yield options with the judge; every reply is kept in the ledger and never paid for twice.

    Parameters
    ----------
    choice
        The judge; None is the embedded one where its weights were fetched, ``none`` rules alone.
    ledger
        File of all replies; what the embedded judge has read is kept beside it.
    """
    if choice is None or choice.model == "none":
        embedded = None if choice is not None else reading_judge(ledger)
        yield None if embedded is None else SemanticsOptions(embedded=embedded)
        return
    if ledger is None:
        raise InputError(
            "a judge's replies are kept in a file, and tables in memory have no place for it",
            hint=Hint("write the table to a file, or use `calibrant grade` with {out}"),
        )
    # Loaded here: rules need nothing that talks to models.
    from calibrant.answers.semantics.llm_judge import open_judge
    from calibrant.models.endpoints.factory import open_client

    try:
        client = open_client(choice.spec)
    except InputError as error:
        name = f"judge {choice.model}"
        raise InputError(error.rule, source=name, hint=error.hint) from None
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with open_judge(client, choice.spec["model"], ledger) as judge:
        yield SemanticsOptions(judge=judge, max_judge_calls=choice.most_calls)


def reading_judge(ledger: Path | None) -> EmbeddedJudge | None:
    """Return the embedded judge, which keeps what it has read beside the ledger."""
    selection = None
    if ledger is not None and os.access(ledger.parent, os.W_OK):
        selection = ledger.with_name(ledger.stem.removesuffix(".judge") + ".read.sqlite")
    return embedded_judge(selection, tell=_progress())


def _progress() -> Callable[[int, int], None] | None:
    """Return what shows how far the embedded judge is, where somebody looks."""
    if not sys.stderr.isatty():
        return None
    begin = time.monotonic()

    def tell(done: int, every: int) -> None:
        nonlocal begin
        rate = done / max(time.monotonic() - begin, 1e-9)
        remaining = f"{(every - done) / rate:.0f} s left" if done < every else "done"
        sys.stderr.write(f"\rreading answers: {done:,} of {every:,}, {rate:.0f}/s, {remaining}  ")
        if done == every:
            # Answers are read in rounds: pairs of answers first, grades last.
            sys.stderr.write("\n")
            begin = time.monotonic()
        sys.stderr.flush()

    return tell


def ledger_beside(data: Any) -> Path | None:
    """Return the file for a judge's replies: of a study its ledger, else one beside the file."""
    first = data[0] if isinstance(data, list | tuple) and data else data
    if not isinstance(first, str | Path):
        return None
    return Study(first).ledger_path if is_study(first) else Path(f"{first}.judge.sqlite")


def ledger_for(data: Any, out: str | Path | None) -> Path | None:
    """Return the ledger of the study `out`, with the replies that the input has already.

    A judge that `audit` has asked about a file is not asked again when `grade` makes it a study.
    """
    companion = ledger_beside(data)
    if out is None:
        return companion
    ledger = Study(out).ledger_path
    if companion is not None and companion.is_file() and not ledger.exists():
        ledger.parent.mkdir(parents=True, exist_ok=True)
        with (
            closing(sqlite3.connect(companion)) as replies,
            closing(sqlite3.connect(ledger)) as copy,
        ):
            replies.backup(copy)
    return ledger
