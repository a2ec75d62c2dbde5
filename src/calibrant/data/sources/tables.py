"""Arrays, tables in files or in memory, and studies as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl
from msgspec.structs import replace

from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Hint
from calibrant.core.names import METHOD_WORDS
from calibrant.data import Study, read_table, scan_table, source_name
from calibrant.data.label_schema import WEIGHT
from calibrant.data.reading.names import name_roles
from calibrant.data.score_table import models_by_file
from calibrant.data.sources.draws import with_silent
from calibrant.data.sources.input import AuditedTable, Input, document_head, scores_outside
from calibrant.data.sources.objects import NO_OUTCOMES
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.tables import (
    collect,
    column_names,
    plain_array,
    with_fields,
    with_question_columns,
)
from calibrant.findings.claims.data import require_labels

if TYPE_CHECKING:
    from calibrant.data.sources.drawn_labels import Grades


_ROLES = {"question": "question_id", "model": "model", "correct": "correct"}


class OpenArrays(Input):
    """Confidences and outcomes as arrays.

    Parameters
    ----------
    confidence, outcomes
        Arrays of equal length; without outcomes nothing can be audited.
    """

    def __init__(self, confidence: Any, outcomes: Any) -> None:
        if outcomes is None:
            raise InputError(NO_OUTCOMES)
        self.columns = {"confidence": confidence, "correct": outcomes}

    def head(self, kind: str, *, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the head of a document; arrays name no file."""
        return document_head(kind, seed=seed, settings=settings, source="arrays in memory")

    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the arrays as columns under the names of the schema, of one length."""
        arrays = {name: plain_array(values) for name, values in self.columns.items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes["confidence"] != shapes["correct"] or arrays["correct"].ndim != 1:
            raise InputError(
                "confidence and correct must be one-dimensional and of equal length, got "
                f"{shapes['confidence']} and {shapes['correct']}"
            )
        return arrays, replace(asked, correct=None), by

    def scores_outside(self, asked: ReadingOptions, recalibrate: str) -> dict[str, int]:
        """Count scores outside [0, 1] that recalibration is to turn into probabilities."""
        column = {"confidence": plain_array(self.columns["confidence"])}
        return scores_outside(column, asked, recalibrate)

    def names_methods(self, asked: ReadingOptions) -> bool:
        """Arrays hold a plain confidence."""
        return False


class OpenTables(Input):
    """One or several tables: paths, dataframes, mappings of columns."""

    def __init__(self, given: Any, chosen: Mapping[str, Any] | None = None) -> None:
        # What a reading that was made before says, where the call says nothing else.
        self.given, self._chosen = given, chosen or {}

    def _read_so(self, request: ReadingOptions) -> ReadingOptions:
        open_ones = {n: x for n, x in self._chosen.items() if getattr(request, n) in (None, False)}
        return replace(request, **open_ones)

    @property
    def tables(self) -> list[Any]:
        """The single tables."""
        return list(self.given) if isinstance(self.given, list | tuple) else [self.given]

    @cached_property
    def _columns(self) -> list[list[str]]:
        """The names of the columns of each table."""
        return [column_names(scan_table(table), table) for table in self.tables]

    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the tables, whose drawn labels count by the weights of their draw."""
        asked = self._read_so(asked)
        for table in self.tables:
            _refuse_graded_lists(table, asked.confidence, asked.correct)
        self._require_labels(asked.correct)
        if self._drawn:
            # Loaded here: few tables are labels that were drawn.
            from calibrant.data.sources.drawn_labels import reading_of_drawn

            asked, spread, self.notes = reading_of_drawn(self._drawn, asked)
            return self.given, asked, [*by, *spread]
        # Rows of any column may hang together.
        return self.given, asked, None

    @property
    def _drawn(self) -> list[Any]:
        """Those of the tables that hold labels which calibrant drew, with what their draw was."""
        pair = zip(self.tables, self._columns, strict=True)
        return [table for table, names in pair if WEIGHT in names]

    def probabilities_table(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the tables for verbs that count every row the same."""
        asked = self._read_so(asked)
        for table in self._drawn:
            from calibrant.data.sources.drawn_labels import refuse_unequal

            refuse_unequal(read_table(table)[WEIGHT], source_name(table))
        return self.given, asked

    def compared(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the tables for a comparison: questions of drawn labels had the same chance."""
        asked = self._read_so(asked)
        for table in self._drawn:
            from calibrant.data.sources.drawn_labels import refuse_exported

            question, model = asked.question or "question_id", asked.model or "model"
            refuse_exported(table, source_name(table), question, model)
        return self.given, asked

    def has_scores(self, confidence: str | None) -> bool:
        """Return whether a confidence was named, or a table has the column."""
        return confidence is not None or any("confidence" in names for names in self._columns)

    def names_methods(self, asked: ReadingOptions) -> bool:
        """Return whether a column names methods, or is named after one: it is its rows' method."""
        return asked.method is not None or any(
            name == "method" or name.partition(":")[0] in METHOD_WORDS
            for name in chain(*self._columns)
        )

    def scores_outside(self, asked: ReadingOptions, recalibrate: str) -> dict[str, int]:
        """Count scores outside [0, 1] that recalibration is to turn into probabilities."""
        return scores_outside(self.given, asked, recalibrate)

    def draws(self, asked: ReadingOptions, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return one row per draw where every table has a column ``class_id``."""
        tables = self.tables
        if not tables or not self._hold_draws(asked):
            return None
        models = models_by_file(tables) if len(tables) > 1 else [None]
        names = zip(tables, models, strict=True)
        read = [_table_draws(table, asked, model or "model") for table, model in names]
        return pl.concat(read, how="diagonal_relaxed")

    def holds_only_draws(self, asked: ReadingOptions) -> bool:
        """Return whether all tables hold draws with their classes and no confidence."""
        states = chain(*self._columns)
        return asked.confidence is None and self._hold_draws(asked) and "confidence" not in states

    def _hold_draws(self, request: ReadingOptions) -> bool:
        requirement = {"class_id", request.question or "question_id"}
        return all(requirement <= {*names} for names in self._columns)

    def _require_labels(self, correct: str | None) -> None:
        """Say why a table without a single label cannot be audited, before its rows are read."""
        for source in self.tables:
            table = with_fields(scan_table(source), [correct])
            names = column_names(table, source)
            column = correct or "correct"
            if column not in names:
                continue
            # Both questions stop at the first row that answers them.
            some_row = collect(table.select(column).head(1), source).height > 0
            labelled = table.select(column).filter(pl.col(column).is_not_null()).head(1)
            if some_row and collect(labelled, source).height == 0:
                require_labels([], source=source_name(source))


def _refuse_graded_lists(source: Any, confidence: str | None, correct: str | None) -> None:
    """Say how lists of answers with a grade each are given: they hold no confidence yet."""
    schema = scan_table(source).collect_schema()
    names, column = schema.names(), correct or "correct"
    lists = [name for name, kind in schema.items() if isinstance(kind, pl.List) and name != column]
    if confidence or any(name_roles(name).stated >= 2 for name in names) or not lists:
        return
    if isinstance(schema.get(column), pl.List):
        rule = f"{column!r} holds a list of grades in each row, one per sampled answer"
        by_name = {"samples": lists[0], "correct": column}
        hint = Hint("name the answers too: {samples} {correct}", **by_name)
        raise InputError(rule, source=source_name(source), hint=hint)


def _table_draws(values: Any, options: ReadingOptions, model: str) -> pl.DataFrame:
    table = read_table(values)
    for role, name in _ROLES.items():
        request = getattr(options, role)
        if request is None or request == name:
            continue
        require_known([request], table.columns, "there is no column {}", source=source_name(values))
        table = table.drop(name, strict=False).rename({request: name})
    if "correct" not in table.columns:
        rule = "a table of draws needs a grade per draw: a column correct"
        raise InputError(rule, source=source_name(values))
    if "model" not in table.columns:
        table = table.with_columns(model=pl.lit(model))
    return table.with_columns(pl.col("question_id", "model").cast(pl.String))


_KEY = ["question_id", "model", "purpose", "draw"]


class OpenStudy(Input):
    """The tables of a study: scores, and draws with their meanings where it has them."""

    whole_record = True

    def __init__(self, study: Study, given: Any = None) -> None:
        self.given = study.path if given is None else given
        self.study = study

    def has_repeats(self) -> bool:
        """Return whether there is a row per draw: an imported log has one."""
        table = self.study.table_path("scores")
        return table.is_file() and "draw" in column_names(scan_table(table), table)

    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the scores of the study."""
        return self.study.read("scores"), asked, by

    def probabilities_table(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return the scores of methods that state a chance of one answer being right or wrong.

        A study holds others too: some only rank answers, some are about several draws at once and
        have the share of them that is right as their outcome.
        """
        # Loaded here: reading a table needs no method.
        from calibrant.core.names import ranking_methods

        table = self.study.read("scores")
        if not {"method", "correct"} <= set(table.columns):
            return table, asked
        grade = pl.col("correct").cast(pl.Float64)
        shares = table.filter((grade > 0) & (grade < 1))["method"].unique().to_list()
        mask = table.filter(~pl.col("method").is_in([*sorted(ranking_methods()), *shares]))
        return (mask if mask.height else table), asked

    def every_row(self, asked: ReadingOptions) -> tuple[pl.DataFrame, ReadingOptions]:
        """Return the scores that state a chance, and the answers without one."""
        table, asked = self.probabilities_table(asked)
        draws = self.draws(asked)
        return (table if draws is None else with_silent(table, draws)), asked

    def candidates(self) -> pl.DataFrame | None:
        """Return the candidates that every model judged, where the study has them."""
        return self.study.read("candidates") if self.study.has("candidates") else None

    def has_scores(self, confidence: str | None) -> bool:
        """Return whether the study has a table of scores."""
        return confidence is not None or self.study.has("scores")

    def grades(self) -> Grades | None:
        """Return the grades of the study with the checks of people beside it."""
        # Loaded here: reading a table needs no store of checks.
        from calibrant.data.sources.drawn_labels import study_grades

        return study_grades(self.study)

    def draws(self, asked: ReadingOptions, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return the draws with their classes; groups come from the table of questions."""
        study = self.study
        if not (study.has("draws") and study.has("semantics")):
            return None
        answers = study.read("draws")
        target_names = [name for name in ("answer", "stated_confidence") if name in answers.columns]
        draws = study.read("semantics").join(
            answers.select(*_KEY, *target_names), on=_KEY, how="left"
        )
        draws = draws.filter(pl.col("purpose") == "answer")
        if by and study.has("questions"):
            questions = study.read("questions")
            added = [name for name in by if name in questions.columns and name not in draws.columns]
            draws = with_question_columns(draws, questions, added)
        return draws

    def questions(self) -> pl.DataFrame | None:
        """Return the questions of the study."""
        return self.study.read("questions") if self.study.has("questions") else None
