"""The questions that every kind of input answers."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError, error_source
from calibrant.data import load_scores
from calibrant.data.sources.provenance import document_head
from calibrant.data.sources.raw_scores import with_way_out

if TYPE_CHECKING:
    import polars as pl

    from calibrant.data import Scores
    from calibrant.data.sources.audit_options import AuditOptions
    from calibrant.data.sources.drawn_labels import Grades
    from calibrant.data.sources.reading import ReadingOptions


AuditedTable: TypeAlias = "tuple[Any, ReadingOptions, Sequence[str] | None]"
_UNREADABLE, _PROBLEMS_NAMED = "unreadable_in_log", 10
_TEXT_COLUMNS = ("text", "question_text", "question", "prompt")


class Input(ABC):
    """An input that was opened: nobody below asks what kind it is.

    Attributes
    ----------
    given
        What names the input in documents and messages; None for arrays.
    """

    given: Any = None
    notes: Sequence[str] = ()
    """What every block should say about how its rows were read."""
    non_probability: frozenset[str] = frozenset()
    """Methods of this input whose score only ranks."""
    whole_record = False
    """Whether refusals and grades that are shares are part of the record."""

    pool_rows: int | None = None
    """Answers that the labelled ones were drawn from; None where nothing was drawn."""
    unreadable: Sequence[str] = ()
    """Where and why something of a log could not be read at all."""

    def head(self, kind: str, *, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the head of a document about this input."""
        return document_head(kind, self.given, seed=seed, settings=settings)

    def with_rules(self, options: AuditOptions) -> AuditOptions:
        """Return the options of an audit with the rules that this kind of input goes by.

        A study and a log hold refusals, and grades that are shares: rows that break a rule are
        left out and counted unless the caller says otherwise.
        """
        if not self.whole_record:
            return options
        request = options.table
        repeats, on_invalid = request.repeats or self.has_repeats(), request.on_invalid or "drop"
        table = replace(request, graded=True, repeats=repeats, on_invalid=on_invalid)
        return replace(options, table=table)

    def scores(self, options: AuditOptions, rankings: Collection[str]) -> Scores:
        """Read and check the rows; `options` have the rules of this input, see `with_rules`."""
        try:
            with error_source(self.error_name):
                table, request, selection = self.audited(options.table, options.by)
                checked = load_scores(
                    table,
                    **asdict(request),
                    features=selection,
                    by=options.by,
                    non_probability=rankings,
                    ranks=True,
                )
        except InputError as error:
            raise with_way_out(error) from None
        return self.with_unreadable(checked)

    @property
    def error_name(self) -> str | None:
        """How an error that names no file names this input: by its path, where it has one."""
        return str(self.given) if isinstance(self.given, str | Path) else None

    def has_repeats(self) -> bool:
        """Return whether rows of one question are repeated answers to it."""
        return False

    def with_unreadable(self, scores: Scores) -> Scores:
        """Return scores of this input that count what could not be read at all, too."""
        if not self.unreadable:
            return scores
        counts = {**scores.dropped, _UNREADABLE: len(self.unreadable)}
        names = {**scores.dropped_rows, _UNREADABLE: self.unreadable[:_PROBLEMS_NAMED]}
        return dataclasses.replace(scores, dropped=counts, dropped_rows=names)

    @abstractmethod
    def audited(self, asked: ReadingOptions, by: Sequence[str]) -> AuditedTable:
        """Return the table that an audit reads, how it is read, and further columns; None: all."""

    def probabilities_table(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the table of scores for verbs that take probabilities, and how it is read."""
        return self.audited(asked, ())[:2]

    def every_row(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the table with all rows, for whoever looks at them, and how it is read."""
        return self.probabilities_table(asked)

    def questions(self) -> pl.DataFrame | None:
        """Return the table of the questions where there is one of its own."""
        return None

    def compared(self, asked: ReadingOptions) -> tuple[Any, ReadingOptions]:
        """Return the table that a comparison reads, and how it is read."""
        return self.audited(asked, ())[:2]

    def candidates(self) -> Any:
        """Return the table of candidates that lies beside the scores, or None."""
        return None

    def has_scores(self, confidence: str | None) -> bool:
        """Return whether there is a confidence, not draws with their meanings alone."""
        return True

    def names_methods(self, asked: ReadingOptions) -> bool:
        """Return whether rows may carry the name of a method, not a plain confidence alone."""
        return True

    def require_usable(self) -> None:
        """Say what is missing where there is no confidence or no grade at all."""

    def scores_outside(self, asked: ReadingOptions, recalibrate: str) -> dict[str, int]:
        """Count, by method, scores outside [0, 1] that recalibration is to turn into some."""
        return {}

    def grades(self) -> Grades | None:
        """Return the grades that this program made itself; None where outcomes were given."""
        return None

    def draws(self, asked: ReadingOptions, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return one row per draw (question_id, model, class_id, correct), or None without draws.

        `by` names columns of the questions that groups are made of.
        """
        return None

    def holds_only_draws(self, asked: ReadingOptions) -> bool:
        """Return whether this is a table of draws with their classes and no confidence."""
        return False

    def question_texts(self, draws: pl.DataFrame) -> pl.DataFrame | None:
        """Return the questions' texts (question_id, text) where the input has them."""
        # Loaded here: a large table is streamed without this library.
        import polars as pl

        table = self.questions()
        table = draws if table is None else table
        column = next((name for name in _TEXT_COLUMNS if name in table.columns), None)
        if column is None:
            return None
        pair = pl.col("question_id").cast(pl.String), pl.col(column).cast(pl.String).alias("text")
        return table.select(pair).unique("question_id", keep="first", maintain_order=True)
