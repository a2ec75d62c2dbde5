"""Foreign logs as calibrant's tables, and as an input."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import structs

from calibrant.core.errors import InputError, NoConfidenceError, error_source
from calibrant.core.hints import Call, Hint
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.log import FILTERED_ONLY, ForeignLog
from calibrant.data.logs.recognise import read_log
from calibrant.data.reading import FRACTION
from calibrant.data.sources.draws import divided_note, majority_grade, with_silent
from calibrant.data.sources.input import AuditedTable, Input
from calibrant.data.sources.options import ReadingOptions

_KEY = ["question_id", "model", "purpose", "draw"]
_UNIT = ["question_id", "model"]
_FROM_REPEATS = ["consistency", "first_run_consistency"]


@dataclass(frozen=True, slots=True)
class ForeignTables:
    """The tables of one or more logs, under common ids."""

    logs: tuple[ForeignLog, ...]
    questions: pl.DataFrame
    draws: pl.DataFrame
    semantics: pl.DataFrame
    scores: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def ranking(self) -> frozenset[str]:
        """The methods whose score is no probability and only ranks."""
        return frozenset().union(*(log.ranking for log in self.logs))

    @property
    def repeated(self) -> bool:
        """Whether some question has several draws."""
        return bool(self.draws.select(pl.struct(_UNIT).is_duplicated().any()).item())

    @property
    def unreadable(self) -> list[str]:
        """Where and why something could not be read."""
        return [
            f"{log.source}: {problem.place}: {problem.reason}"
            for log in self.logs
            for problem in log.problems
        ]

    @property
    def steps(self) -> pl.DataFrame:
        """Turns of agents, each with the outcome of its run."""
        return pl.concat([log.steps for log in self.logs], how="diagonal_relaxed")

    def draws_with_classes(self) -> pl.DataFrame | None:
        """Return the draws with class, grade and answer.

        None where nothing was repeated, and where the log grades only some of the answers: those
        left without a grade are not a random part.
        """
        graded = self.semantics["correct"].is_not_null().any()
        if not graded or not self.repeated or _partly_graded(self.semantics):
            return None
        answers = self.draws.select(*_KEY, "answer")
        return self.semantics.join(answers, on=_KEY, how="left", maintain_order="left")

    def one_row_per_question(self) -> pl.DataFrame:
        """Return the scores of methods that speak once per question, for paired comparison."""
        key = ["question_id", "model", "method"]
        repeated = self.scores.filter(pl.struct(key).is_duplicated())["method"].unique()
        mask = self.scores.filter(~pl.col("method").is_in(repeated.implode()))
        if not mask.height:
            rule = "every confidence in the log belongs to one of several draws of a question"
            hint = "compare logs with one epoch, or audit each of them"
            raise InputError(rule, source=self.logs[0].source, hint=hint)
        return mask


def foreign_tables(
    paths: Sequence[str | Path], *, options: ReadOptions | None = None, ranked: bool = False
) -> ForeignTables:
    """Return the tables of logs that are read as one evaluation.

    Parameters
    ----------
    paths
        The logs, see `calibrant.verbs.opening.open_input`.
    options
        How the logs are read.
    ranked
        Keep the scores that only rank. A caller that takes every score for a probability leaves
        them out, and a note says so.
    """
    tables = tables_of([read_log(path, options=options) for path in paths])
    if ranked or not tables.ranking:
        return tables
    names = sorted(tables.ranking)
    note = (
        f"{', '.join(names)} are no probabilities and are left out: import the log, and "
        "recalibrate them"
    )
    mask = tables.scores.filter(~pl.col("method").is_in(names))
    return replace(tables, scores=mask, notes=(*tables.notes, note))


def tables_of(logs: Sequence[ForeignLog]) -> ForeignTables:
    """Join logs under common ids, and add what repeated draws show.

    Ids are those of the log; where the logs hold several tasks, the task is put before them.
    """
    tasks = pl.concat([log.draws["task"] for log in logs]).drop_nulls().unique()
    several = tasks.len() > 1
    draws = pl.concat([_named(log.draws, several) for log in logs])
    questions = pl.concat(
        [_named(log.questions.with_columns(task="domain"), several).drop("task") for log in logs]
    ).unique("question_id", keep="first", maintain_order=True)
    confidence = pl.concat([_named(log.scores, several) for log in logs], how="diagonal_relaxed")
    with error_source(", ".join(log.source for log in logs)):
        _refuse_repeated(draws)
        _refuse_percentages(confidence, [method for log in logs for method in log.ranking])
    notes = [note for log in logs for note in log.notes]
    semantics = _semantics(draws, questions, notes)
    parts = [confidence, _from_repeats(draws, semantics, questions, notes)]
    scores = pl.concat([part for part in parts if part is not None], how="diagonal_relaxed")
    distinct = tuple(dict.fromkeys(notes))
    return ForeignTables(tuple(logs), questions, draws, semantics, scores, distinct)


def _named(frame: pl.DataFrame, several: bool) -> pl.DataFrame:
    if not several:
        return frame
    return frame.with_columns(question_id=pl.concat_str("task", "question_id", separator="/"))


def _refuse_repeated(draws: pl.DataFrame) -> None:
    again = draws.filter(pl.struct(_KEY).is_duplicated())
    if again.height:
        row = again.row(0, named=True)
        raise InputError(
            f"question {row['question_id']!r}, draw {row['draw']} of {row['model']!r} is there "
            "twice",
            hint="give each run once; a retried evaluation has a newer log that replaces the old",
        )


def _refuse_percentages(scores: pl.DataFrame, ranking: Sequence[str]) -> None:
    """Refuse confidences above 1 as a whole: dropping some of them would hide a wrong scale."""
    above = scores.filter((pl.col("confidence") > 1) & ~pl.col("method").is_in(ranking))
    if above.height:
        row = above.row(0, named=True)
        raise InputError(
            f"a confidence must be at most 1, got {row['confidence']:g} for question "
            f"{row['question_id']!r} ({above.height} of {scores.height} are above 1)",
            hint=Hint("if the log states percentages, use {scale}", scale="percent"),
        )


def _semantics(draws: pl.DataFrame, questions: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Return class and grade of each draw.

    Draws of one meaning have one grade, see `majority_grade`; an ungraded draw takes it too.
    """
    meaning = _meanings(draws, questions.select("question_id", "text", "kind"))
    grade = pl.col("correct").replace_strict({0.0: False, 1.0: True}, default=None)
    partial = pl.col("correct").is_not_null() & grade.is_null()
    reason = pl.when(partial).then(pl.lit("a partial grade")).otherwise("reason").alias("reason")
    frame = draws.select(*_KEY, "grader", reason, grade.alias("grade"), meaning)
    equal = [*_UNIT, "meaning"]
    notes += divided_note(frame, "grade", equal)
    frame = frame.with_columns(majority_grade("grade", equal).alias("correct"))
    selection = pl.col("correct").is_not_null() & pl.col("grade").ne_missing(pl.col("correct"))
    same_answer = pl.when(selection).then(pl.lit("graded as the same answer"))
    frame = frame.with_columns(same_answer.otherwise("reason").alias("reason"), class_id="meaning")
    return frame.select(*_KEY, "class_id", "correct", "reason", "grader")


def _meanings(draws: pl.DataFrame, questions: pl.DataFrame) -> pl.Series:
    """Return a number per answer and question, equal where answers mean the same."""
    frame = draws.select(*_UNIT, "answer").with_row_index("row")
    frame = frame.join(questions, on="question_id", how="left", maintain_order="left")
    numbers = [0] * frame.height
    for part in frame.partition_by(_UNIT, maintain_order=True):
        answers = part["answer"].fill_null("").to_list()
        kind, text = part["kind"][0], part["text"][0]
        for row, number in zip(part["row"], _classes(answers, kind, text), strict=True):
            numbers[row] = number
    return pl.Series("meaning", numbers, dtype=pl.Int64)


def _classes(answers: list[str], kind: str | None, question: str | None) -> list[int]:
    distinct = list(dict.fromkeys(answers))
    if len(distinct) == 1 or kind == "choice":
        return [distinct.index(answer) for answer in answers]
    # Loaded here: a table of scores has nothing to cluster.
    from calibrant.answers.semantics import cluster_answers

    classes = dict(zip(distinct, cluster_answers(distinct, question=question), strict=True))
    return [classes[answer] for answer in answers]


def _partly_graded(semantics: pl.DataFrame) -> bool:
    return semantics["reason"].eq(FILTERED_ONLY).any()


def _from_repeats(
    draws: pl.DataFrame, semantics: pl.DataFrame, questions: pl.DataFrame, notes: list[str]
) -> pl.DataFrame | None:
    """Return what agreement among repeated draws says, once per question."""
    repeated = draws.filter(pl.struct(_UNIT).is_duplicated())
    if not repeated.height:
        return None
    # Loaded here: an audit of a table asks this module whether it is a log, and no more.
    from calibrant.answers.confidence import score_table

    rows = semantics.join(repeated.select(_KEY), on=_KEY, how="semi", maintain_order="left")
    table = repeated.select(*_KEY, pl.col("text").fill_null(""), "answer")
    scored = score_table(table, rows, questions, methods=_FROM_REPEATS).scores
    ungraded = scored.filter((pl.col("method") == "consistency") & pl.col("correct").is_null())
    if ungraded.height and _partly_graded(rows):
        scored = scored.filter(pl.col("method") != "consistency")
        notes.append(
            f"consistency is left out: the most frequent answer of {ungraded.height} questions "
            "has no grade in the log, and those are not a random part (add a majority filter, or "
            "grade every answer)"
        )
    tasks = draws.select(*_UNIT, "task").unique(_UNIT, keep="first", maintain_order=True)
    return scored.select(
        *_UNIT, "method", "answer", "confidence", pl.col("correct").cast(pl.Float64)
    ).join(tasks, on=_UNIT, how="left", maintain_order="left")


class OpenLog(Input):
    """One or several logs, read as one evaluation."""

    whole_record = True

    def __init__(self, tables: ForeignTables, given: Any) -> None:
        self.given = given
        self.tables = tables
        self.notes = tables.notes
        self.non_probability = frozenset(tables.ranking)
        self.unreadable = tables.unreadable

    @property
    def error_name(self) -> str | None:
        """None: what a log's own reader refuses names the log."""

    def has_repeats(self) -> bool:
        """Rows of one question are the draws that were logged."""
        return True

    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the confidences of all draws."""
        return self.tables.scores, structs.replace(asked, scale=FRACTION), by

    def probabilities_table(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return one row per question; how the log wrote a confidence was known at its reading."""
        return self.tables.one_row_per_question(), structs.replace(asked, scale=FRACTION)

    compared = probabilities_table

    def every_row(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return the confidences of all draws, and the answers without one."""
        rows = with_silent(self.tables.scores, self.tables.draws)
        return rows, structs.replace(asked.by_schema(), right=None, scale=FRACTION)

    def questions(self) -> pl.DataFrame | None:
        """Return the questions of the logs."""
        return self.tables.questions

    def draws(self, asked: ReadingOptions, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return the draws with the meanings that their answers have."""
        return self.tables.draws_with_classes()

    def require_usable(self) -> None:
        """Say what is missing where a log has no confidence or no grade at all."""
        tables = self.tables
        if tables.scores.height and tables.draws["correct"].null_count() == tables.draws.height:
            call = Call("import", "LOG", out="FOLDER")
            hint = Hint("grade the answers first: {call} gives their tables", call=call)
            raise InputError("the log holds no grades", source=tables.logs[0].source, hint=hint)
        if tables.scores.height == 0:
            usual = "one reply per question, without token probabilities or a stated confidence"
            why = next((note for note in tables.notes if "placeholder" in note), usual)
            raise NoConfidenceError(
                f"the log holds grades but no confidence: {why}",
                source=tables.logs[0].source,
                hint="run several epochs, ask for logprobs, or use calibrant's scorers; see the "
                "recipes in the documentation",
            )
