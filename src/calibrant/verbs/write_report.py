"""`report`: render results as one HTML page, Markdown or figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from calibrant.core.document import load_document
from calibrant.core.errors import CalibrantError, InputError, QuestionError, SchemaError
from calibrant.core.hints import TABLE, Call, Hint
from calibrant.core.places import writing
from calibrant.core.shared_options import Data, Seed, written
from calibrant.core.verb import OUTPUT, Option, verb
from calibrant.data import Study
from calibrant.data.formats import is_study
from calibrant.data.sources.input import document_head
from calibrant.report import render_html, render_markdown
from calibrant.report.charts import charts_of
from calibrant.report.charts.draw import FORMATS, save_chart
from calibrant.report.result import ReportResult, Result
from calibrant.verbs.audit import audit
from calibrant.verbs.study.analysis import analyse, write_study_page


@verb(example="calibrant report study --html report.html", outputs=("json",))
def write_report(
    inputs: Data,
    *,
    html: Annotated[str | Path | None, written()] = None,
    markdown: Annotated[str | Path | None, written()] = None,
    figures: Annotated[str | Path | None, written(metavar="DIR", place="folder")] = None,
    formats: Sequence[str] = FORMATS,
    title: Annotated[str | None, Option(metavar="TEXT", group=OUTPUT)] = None,
    seed: Seed = 0,
) -> ReportResult:
    """Render results.

    Parameters
    ----------
    inputs
        A study folder, result documents (JSON), or a scores table, which is audited first.
    html
        Write a self-contained report.

        A study has its own place for it.
    markdown
        Write the tables as Markdown.
    figures
        Write every figure as SVG, PNG and PDF.

        In every one of `formats` (svg, png, pdf).
    title
        Title of the page.

        A single study has its name, and its questions on the page.
    seed
        Seed of an audit that is made on the way.

    Returns
    -------
    ReportResult
        Document ``calibrant.report/1``: what was ``written``; the ``documents`` themselves where
        nothing was, so that they are shown.
    """
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    if not paths:
        raise InputError("there is nothing to report on: name a study, a result or a table")
    pieces: list[str] = []
    documents: list[Result] = []
    for path in paths:
        if is_study(path):
            study = Study(path)
            if not study.results() and study.has("scores"):
                analyse(study.path, seed=seed)
            page = write_study_page(study)
            pieces += [str(page)] if html is None else []
            documents += map(Result.of_plain, study.results().values())
        elif str(path).endswith(".json"):
            documents.append(_document(path))
        else:
            documents.append(_audited(path, seed))
    if html is not None:
        pieces.append(_write(html, _page(paths, documents, title)))
    if markdown is not None:
        pieces.append(_write(markdown, "\n".join(render_markdown(d) for d in documents)))
    if figures is not None:
        # The picture that answers, and every further chart, in a folder per document.
        for number, document in enumerate(documents, 1):
            place = Path(figures) / f"{number}-{document.kind}"
            for chart in charts_of(document):
                pieces += map(str, save_chart(chart, place, formats=tuple(formats)))
    head = document_head("report", paths, seed=seed)
    # With no place to write to, the tables themselves are what was asked for.
    return ReportResult({**head, "written": pieces, "documents": [] if pieces else documents})


def _audited(path: Any, seed: int) -> Result:
    """Audit a table on the way; where several readings are possible, an audit takes the choice."""
    try:
        return audit(path, seed=seed)
    except QuestionError as question:
        several = question.readings if len(question.readings) > 1 else ()
        lines = [f"\n  {n}) {mode.text}" for n, mode in enumerate(several, start=1)]
        options = question.readings[0].options
        place = path if isinstance(path, str | Path) else TABLE
        hint = Hint(
            "a report has no options for the reading of a table; an audit has: {call}",
            call=Call("audit", place, **options, html="audit.html"),
        )
        raise InputError(
            "".join([question.rule, *lines]), source=question.source, row=question.row, hint=hint
        ) from None


def _document(path: str | Path) -> Result:
    """Read a result document and make sure that it can be shown."""
    if not Path(path).is_file():
        raise InputError("there is no such file", source=str(path))
    document = Result.of_plain(load_document(path))
    try:
        render_markdown(document)
        charts_of(document)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, CalibrantError):
            raise
        raise SchemaError(
            f"not a whole {document['schema']} document: {type(error).__name__} {error}",
            source=str(path),
            hint="write the document again with this version",
        ) from None
    return document


def _page(paths: Sequence[str | Path], documents: Sequence[Result], title: str | None) -> str:
    """Return the page: that of a single study has its questions and its own title."""
    if len(paths) == 1 and is_study(paths[0]) and title is None:
        return Study(paths[0]).report_path.read_text(encoding="utf-8")
    return render_html(documents, title=title or "calibrant report")


def _write(path: str | Path, text: str) -> str:
    with writing(path):
        Path(path).write_text(text, encoding="utf-8")
    return str(path)
