"""The questions that every kind of input answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from calibrant.core.errors import InputError, error_source
from calibrant.inputs.provenance import document_head
from calibrant.inputs.raw_scores import with_way_out

if TYPE_CHECKING:
    import polars as pl

    from calibrant.inputs.audit_source import AuditOptions
    from calibrant.inputs.labelled_rows import Grades
    from calibrant.records import Scores


Columns = Mapping[str, Any]
"""Column names by role; None stands for the name in the scores schema."""

_TEXT_COLUMNS = ("text", "question_text", "question", "prompt")


class Opened(ABC):
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
    unreadable: Mapping[str, int] = MappingProxyType({})
    """Rows that could not be read at all, by rule."""

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
        return replace(
            options,
            graded=True,
            repeats=options.repeats or self.has_repeats(),
            on_invalid=options.on_invalid or "drop",
        )

    def scores(self, options: AuditOptions, non_probability: Collection[str]) -> Scores:
        """Read and check the rows; `options` have the rules of this input, see `with_rules`."""
        rules = {
            **options.columns,
            **options.rules,
            "non_probability": non_probability,
            "features": list(options.by),
            "by": list(options.by),
        }
        try:
            with error_source(self.error_name):
                return self._load(rules)
        except InputError as error:
            raise with_way_out(error) from None

    @property
    def error_name(self) -> str | None:
        """How an error that names no file names this input."""
        return None

    def has_repeats(self) -> bool:
        """Return whether rows of one question are repeated answers to it."""
        return False

    @abstractmethod
    def _load(self, rules: dict[str, Any]) -> Scores:
        """Read the rows by these columns and rules."""

    @abstractmethod
    def scores_table(self) -> Any:
        """Return the table of scores, or what can be read as one."""

    def probabilities_table(self, columns: Columns) -> tuple[Any, Columns]:
        """Return the table of scores for verbs that take probabilities only, and its columns."""
        return self.scores_table(), columns

    def every_row(self, columns: Columns) -> tuple[Any, Columns]:
        """Return the table with all rows, for whoever looks at them, and its columns."""
        return self.probabilities_table(columns)

    def questions(self) -> pl.DataFrame | None:
        """Return the table of the questions where there is one of its own."""
        return None

    def compared(self, columns: Columns) -> tuple[Any, Columns]:
        """Return the table that a comparison reads, and the names of its columns."""
        return self.scores_table(), columns

    def scale_of_scores(self, scale: str | None) -> str | None:
        """Return the scale of the table of scores, where the input as given has this one."""
        return scale

    def candidates(self) -> Any:
        """Return the table of candidates that lies beside the scores, or None."""
        return None

    def has_scores(self, confidence: str | None) -> bool:
        """Return whether there is a confidence, not draws with their meanings alone."""
        return True

    def names_methods(self, columns: Columns) -> bool:
        """Return whether rows may carry the name of a method, not a plain confidence alone."""
        return True

    def require_usable(self) -> None:
        """Say what is missing where there is no confidence or no grade at all."""

    def scores_outside(self, options: AuditOptions) -> dict[str, int]:
        """Count, by method, scores outside [0, 1] that recalibration is to turn into some."""
        return {}

    def grades(self) -> Grades | None:
        """Return the grades that this program made itself; None where outcomes were given."""
        return None

    def draws(self, columns: Columns, by: Sequence[str] = ()) -> pl.DataFrame | None:
        """Return one row per draw (question_id, model, class_id, correct), or None without draws.

        Parameters
        ----------
        columns
            Names of the columns of question, model and correct where they differ.
        by
            Columns of the questions that groups are made of.
        """
        return None

    def holds_only_draws(self, columns: Columns) -> bool:
        """Return whether this is a table of draws with their classes and no confidence."""
        return False

    def question_texts(self, draws: pl.DataFrame) -> pl.DataFrame | None:
        """Return the questions' texts (question_id, text) where the input has them."""
        # Loaded here: a large table is streamed without this library.
        import polars as pl

        found = self.questions()
        found = draws if found is None else found
        column = next((name for name in _TEXT_COLUMNS if name in found.columns), None)
        if column is None:
            return None
        pair = pl.col("question_id").cast(pl.String), pl.col(column).cast(pl.String).alias("text")
        return found.select(pair).unique("question_id", keep="first", maintain_order=True)
