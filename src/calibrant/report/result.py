"""What verbs return: frozen documents, printed, saved and rendered; keys are attributes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import calibrant
from calibrant.core.document import dump_document, kind_of, plain
from calibrant.core.errors import InputError, did_you_mean
from calibrant.core.places import check_kept, writing
from calibrant.findings.documents import fields
from calibrant.findings.documents.fields import Fields

if TYPE_CHECKING:
    from calibrant.report.charts.draw import Plot


class Result(Fields):
    """The result of a verb: plain data with a schema, read like a dict, and the ways to look at it.

    Examples
    --------
    >>> result = Result({"schema": "calibrant.audit/1", "results": []})
    >>> result.kind
    'audit'
    >>> result["results"], list(result), "seed" in result
    ([], ['schema', 'results'], False)
    >>> type(result).__name__, result.results
    ('AuditResult', [])
    """

    # Classes by kind of document; filled at the end of this file.
    _of_kind: ClassVar[dict[str, type[Result]]] = {}

    def __init_subclass__(cls, kind: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind:
            Result._of_kind[kind] = cls

    def __new__(cls, document: Mapping[str, Any]) -> Result:
        """Return a result of the class that knows the keys of this kind of document."""
        if cls is Result:
            cls = Result._of_kind.get(kind_of(document), Result)
        return super().__new__(cls)

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(plain(document))

    @classmethod
    def of_plain(cls, document: dict[str, Any]) -> Self:
        """Return the result of a document that is plain data already, without looking at it all.

        Examples
        --------
        >>> type(Result.of_plain({"schema": "calibrant.audit/1", "results": []})).__name__
        'AuditResult'
        """
        of_kind = Result._of_kind.get(kind_of(document), cls) if cls is Result else cls
        result = super().__new__(cast("type[Self]", of_kind))
        result._document, result.kind = document, kind_of(document)
        return result

    rows_opener: Any = None
    """Opens the rows behind the numbers; None where they are no longer known."""

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._document})

    def to_json(self, path: str | Path) -> None:
        """Write the document as JSON."""
        self._check_place(path)
        with writing(path) as place:
            place.write_bytes(dump_document(self._document))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one self-contained page, and write it where `path` is given."""
        from calibrant.report.page import render_html

        questions, note = self._browsed()
        page = render_html([self._document], questions=questions, questions_note=note)
        if path is not None:
            self._check_place(path)
            with writing(path) as place:
                place.write_text(page, encoding="utf-8")
        return page

    def view(self, **options: Any) -> Any:
        """Open the app on the data behind this result; see `calibrant.view`."""
        if self.rows_opener is None:
            return calibrant.view(self, **options)
        data, table = self.rows_opener.args
        return calibrant.view(data, **{**table, **options})

    def _browsed(self) -> tuple[list[dict[str, Any]], str]:
        """Return the questions of a page; none where the input holds no texts to look at."""
        if self.rows_opener is None:
            return [], ""
        try:
            rows = self.rows_opener(whole=False)
        except (InputError, OSError):
            # The page tells the numbers all the same: the file may be gone by now.
            return [], ""
        if rows is None or not rows.texts:
            return [], ""
        browsed: tuple[list[dict[str, Any]], str] = rows.questions()
        return browsed

    def _check_place(self, path: str | Path) -> None:
        """Refuse to write over what was read."""
        read = self._document.get("input") or ()
        check_kept([entry.get("path") for entry in read if isinstance(entry, Mapping)], [path])

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        from calibrant.report.terminal import render_markdown

        return render_markdown(self)

    def to_polars(self) -> Any:
        """Return the results as a polars table: a row per entry, a column per number.

        Estimates give three columns: ``ece``, ``ece_low`` and ``ece_high``.

        Examples
        --------
        >>> result = Result({"schema": "calibrant.audit/1", "results": [{"model": "a", "n": 3}]})
        >>> result.to_polars().rows()
        [('a', 3)]
        """
        import polars as pl

        return pl.DataFrame(flat_rows(self._document), infer_schema_length=None)

    def to_pandas(self) -> Any:
        """Return the results as a pandas table; pandas has to be installed."""
        from calibrant.core.names import optional_import

        pandas = optional_import("pandas", extra="notebook", purpose="pandas tables")
        return pandas.DataFrame(flat_rows(self._document))

    def plot(self, name: str | None = None) -> Plot:
        """Return a chart, to be shown in a notebook or saved: ``plot().save("answer.svg")``.

        Parameters
        ----------
        name
            Which chart, for example ``reliability``; the one that answers by default. What there
            is stands in ``plot().names``.
        """
        from calibrant.report.charts import charts_of
        from calibrant.report.charts.draw import Plot

        charts = {chart.name: chart for chart in charts_of(self)}
        if not charts:
            raise InputError(f"a result of {self.kind} has no chart")
        # `reliability` is the first of `reliability-1`, `reliability-2` and so on.
        matching = [key for key in charts if name in (None, key, key.rpartition("-")[0])]
        if not matching:
            hint = did_you_mean(str(name), list(charts))
            raise InputError(f"there is no chart {name!r}", hint=hint)
        return Plot(charts[matching[0]], tuple(charts))

    def _repr_html_(self) -> str:
        from calibrant.report.page import notebook_html

        return notebook_html(self)

    def __reduce__(self) -> tuple[type[Result], tuple[dict[str, Any]]]:
        return type(self), (self._document,)

    def __str__(self) -> str:
        from shutil import get_terminal_size

        from calibrant.report.terminal import render_text

        width = get_terminal_size((80, 24)).columns
        return render_text(self, width=width, python=True)

    __repr__ = __str__


class RowsBehind(Result):
    """A result whose rows can be looked at."""

    def questions(self) -> Any:
        """Return the rows behind the numbers as a polars table, the most confidently wrong first.

        Question, answer and reference stand beside confidence and grade where the input has them.
        """
        import polars as pl

        if self.rows_opener is None:
            raise InputError("the rows behind this result are not known: it was read from a file")
        rows = self.rows_opener()
        page_rows = rows.page(rows.everything()).rows
        flat = [{**row, **row["group"]} for row in page_rows]
        table = pl.DataFrame(flat, infer_schema_length=None)
        return table.drop("place", "group", strict=False)


def flat_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row per entry of ``results``: names and numbers, estimates with their ends.

    Examples
    --------
    >>> entry = {"model": "a", "metrics": {"ece": {"value": 0.1, "low": 0.0, "high": 0.2}}}
    >>> flat_rows({"results": [entry]})
    [{'model': 'a', 'ece': 0.1, 'ece_low': 0.0, 'ece_high': 0.2}]
    """
    rows = [_flat(entry) for entry in document.get("results") or ()]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "metrics":
            row.update(_flat(value))
        elif isinstance(value, Mapping) and {"value", "low", "high"} <= set(value):
            row[name] = value["value"]
            row[f"{name}_low"], row[f"{name}_high"] = value["low"], value["high"]
        elif name == "group" and isinstance(value, Mapping):
            row.update({f"group.{key}": part for key, part in value.items()})
        elif not isinstance(value, Mapping | list | tuple):
            row[name] = value
    return row


class AuditResult(RowsBehind, fields.AuditFields, kind="audit"):
    """What `audit` returns."""


class AccuracyResult(Result, fields.AccuracyFields, kind="accuracy"):
    """What `audit` and `compare` return of graded answers without a confidence."""


class CompareResult(RowsBehind, fields.CompareFields, kind="compare"):
    """What `compare` returns."""


class GroupsResult(RowsBehind, fields.GroupsFields, kind="groups"):
    """What `groups` returns."""


class CascadeResult(Result, fields.CascadeFields, kind="cascade"):
    """What `cascade` returns."""


class DecideResult(RowsBehind, fields.DecideFields, kind="decide"):
    """What `decide` returns."""


class MendResult(Result, fields.MendFields, kind="mend"):
    """What `mend` returns."""


class JudgeResult(Result, fields.JudgeFields, kind="judge"):
    """What `judge` returns."""


class PlanResult(Result, fields.PlanFields, kind="plan"):
    """What `plan` returns."""


class LabelResult(Result, fields.LabelFields, kind="label"):
    """What `label_next`, `label_add` and `label_status` returns."""


class MonitorResult(Result, fields.MonitorFields, kind="monitor"):
    """What `monitor` returns."""


class MultiAnswerResult(Result, fields.MultiAnswerFields, kind="multi_answer"):
    """What `bench_evaluate` returns."""


class BenchResult(Result, fields.BenchFields, kind="bench"):
    """What `bench_mace` returns."""


class BenchCheckResult(Result, fields.BenchCheckFields, kind="bench_check"):
    """What `bench_check` returns."""


class ImportResult(Result, fields.ImportFields, kind="import_logs"):
    """What `import_logs` returns."""


class MethodsResult(Result, fields.MethodsFields, kind="methods"):
    """What `methods` returns."""


class ModelsResult(Result, fields.ModelsFields, kind="models"):
    """What `models` returns."""


class GradeResult(Result, fields.GradeFields, kind="grade"):
    """What `grade` returns."""


class RunResult(Result, fields.RunFields, kind="run"):
    """What `run` returns."""


class ReportResult(Result, fields.ReportFields, kind="report"):
    """What `report` returns."""


class DemoResult(Result, fields.DemoFields, kind="demo"):
    """What `demo` returns."""


class InitResult(Result, fields.InitFields, kind="init"):
    """What `init` returns."""


class ServeResult(Result, fields.ServeFields, kind="serve"):
    """What `serve` returns."""


class AnalysisResult(Result, fields.AnalysisFields, kind="analysis"):
    """Which parts of a study's report were made, and why others were not."""


class StudyResult(Result, fields.StudyFields, kind="study"):
    """Where the answers of a study come from."""


class LeaderboardResult(Result, fields.LeaderboardFields, kind="leaderboard"):
    """A ranking of models."""


class SemanticsResult(Result, fields.SemanticsFields, kind="semantics"):
    """How answers were put together and graded."""


class AgreementResult(Result, fields.AgreementFields, kind="agreement"):
    """How far grades agree with those of people."""
