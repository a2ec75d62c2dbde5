"""`import`: turn the logs of other tools into calibrant's tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from calibrant.answers.logs import ForeignTables, tables_of
from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.places import check_output, check_output_folder
from calibrant.core.verb import INPUT, Check, Option, verb
from calibrant.data import Study
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.log import ForeignLog
from calibrant.data.logs.recognise import read_log
from calibrant.data.sources.input import document_head
from calibrant.data.sources.options import table_settings
from calibrant.data.tables import WRITERS, neutral_cells
from calibrant.findings.documents.entries import ImportedLog
from calibrant.report.result import ImportResult
from calibrant.verbs.opening.open_input import logs_in

_PROBLEMS_SHOWN = 1_000


def _unreadable(document: Mapping[str, Any]) -> str | None:
    count = sum(entry["unreadable"] for entry in document["results"])
    return f"{count} parts of the logs could not be read" if count else None


@verb(
    example="calibrant import logs/*.eval --out study",
    outputs=("json",),
    checks=(Check("strict", "Exit with 1 where a part could not be read.", _unreadable),),
)
def import_logs(
    logs: Annotated[str | Path | Sequence[str | Path], opt.inputs(metavar="LOG..")],
    out: Annotated[str | Path | None, opt.written(place="file or folder")] = None,
    *,
    kind: Annotated[str | None, Option(metavar="KIND", group=INPUT)] = None,
    grade: Annotated[str | None, Option(metavar="NAME", group=INPUT)] = None,
    filter: Annotated[str | None, Option(metavar="NAME", group=INPUT)] = None,
    scale: Annotated[str, Option(group=INPUT, choices=("fraction", "percent"))] = "fraction",
    columns: Mapping[str, str] | None = None,
    confidence: opt.ConfidenceColumn = None,
    correct: opt.CorrectColumn = None,
    model: opt.ModelColumn = None,
    method: opt.MethodColumn = None,
    question: opt.QuestionColumn = None,
    answer: opt.AnswerColumn = None,
) -> ImportResult:
    """Read foreign logs, and write their tables where `out` is given.

    Parameters
    ----------
    logs
        Logs of other tools, recognised by content.

        Inspect (``.eval``, JSON), lm-eval samples and the other kinds of
        `calibrant.data.logs.recognise.KINDS`.
    out
        Study folder for all tables, or a .parquet, .csv or .jsonl file for the scores.

        A study folder, which gets the tables questions, draws, scores and, where questions have
        several graded answers, semantics; or a file ending in .parquet, .csv or .jsonl, which
        gets the scores alone.
    kind
        Which tool wrote them, e.g. inspect.

        Where it should not be recognised.
    grade
        Scorer, metric or column that decides what is right.
    filter
        Filter of lm-eval to use.
    scale
        How the logs state a confidence.

        ``"percent"`` where the logs state confidences as percentages.
    columns
        Names of the columns of a plain table, by role: confidence, correct, question, model,
        method, answer.
    confidence, correct, model, method, question, answer
        The same, one by one.

    Returns
    -------
    ImportResult
        Document ``calibrant.import_logs/1``: per log what was read, and everything that was not.
    """
    roles = {"confidence": confidence, "correct": correct, "model": model}
    roles |= {"method": method, "question": question, "answer": answer}
    columns = {**(columns or {}), **{k: name for k, name in roles.items() if name is not None}}
    values = [logs] if isinstance(logs, str | Path) else list(logs)
    paths = [path for item in values for path in (logs_in(item) or [Path(item)])]
    options = ReadOptions(grade=grade, filter=filter, scale=scale, columns=columns)
    read = [read_log(path, kind=kind, options=options) for path in paths]
    if filter is not None and not any(log.kind == "lm-eval" for log in read):
        raise InputError(
            f"the filter {filter!r} is one of lm-eval, and this log is not",
            source=read[0].source,
            hint=Hint("leave {filter} out, or give samples_*.jsonl files of lm-eval"),
        )
    tables = tables_of(read)
    pieces = [] if out is None else _write(tables, Path(out))
    steps = next((path for path in pieces if "steps" in path.name), None)
    if steps is not None and tables.steps["correct"].count():
        why = "See whether its turns tell which runs fail"
        call = Call("audit", steps, unit="run")
    elif tables.scores.height:
        why = "See how far the confidence can be trusted"
        call = Call("audit", *values, **columns) if out is None else Call("audit", out)
    else:
        why = "Without a confidence there is nothing to audit: see what each one needs"
        call = Call("methods")
    return ImportResult(
        {
            **document_head("import_logs", values, settings=table_settings(columns)),
            "results": [_entry(log) for log in read],
            "scores": _counted(tables),
            "notes": list(tables.notes),
            "written": [str(path) for path in pieces],
            "next": {"why": why, "command": call.shell()},
        }
    )


def _entry(log: ForeignLog) -> ImportedLog:
    ungraded = log.draws.filter(pl.col("correct").is_null())["reason"].fill_null("no reason given")
    names = log.draws if log.draws.height else log.scores
    return ImportedLog(
        source=log.source,
        kind=log.kind,
        models=names["model"].unique(maintain_order=True).to_list(),
        tasks=log.draws["task"].unique(maintain_order=True).drop_nulls().to_list(),
        questions=log.questions.height,
        draws=log.draws.height,
        scores=log.scores.height,
        expected=log.expected,
        expected_unit=log.expected_unit,
        ungraded=dict(ungraded.value_counts(sort=True).iter_rows()),
        unreadable=len(log.problems),
        steps=log.steps.height,
        problems=[asdict(problem) for problem in log.problems[:_PROBLEMS_SHOWN]],
    )


def _counted(tables: ForeignTables) -> list[dict[str, Any]]:
    entries = tables.scores.group_by("model", "method", maintain_order=True).agg(
        n=pl.len(),
        graded=pl.col("correct").is_not_null().sum(),
        probability=~pl.col("method").first().is_in(list(tables.ranking)),
    )
    return entries.to_dicts()


def _write(tables: ForeignTables, out: Path) -> list[Path]:
    # A scores table does not say which scores only rank: those go to a table of their own.
    only_rank = pl.col("method").is_in(list(tables.ranking))
    scores, ranking = tables.scores.filter(~only_rank), tables.scores.filter(only_rank)
    if out.suffix in WRITERS:
        check_output(out, makes_folders=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[out.suffix](scores, out)
        text = [out]
        problems_file = out.with_suffix(".unreadable.csv")
        beside_ranking = out.with_suffix(f".ranking{out.suffix}")
        beside_steps = out.with_suffix(f".steps{out.suffix}")
    else:
        if out.is_file():
            rule = f"the result goes to a folder or a file ending in {', '.join(WRITERS)}"
            raise InputError(rule, source=str(out))
        check_output_folder(out)
        study = Study(out)
        frames = {"questions": tables.questions, **_draw_tables(tables), "scores": scores}
        text = [study.write(name, frame) for name, frame in frames.items()]
        problems_file = out / "unreadable.csv"
        beside_ranking, beside_steps = out / "ranking.parquet", out / "steps.parquet"
    for table, companion in ((ranking, beside_ranking), (tables.steps, beside_steps)):
        if table.height:
            WRITERS[companion.suffix](table, companion)
            text.append(companion)
    problems = [{"source": log.source, **asdict(p)} for log in tables.logs for p in log.problems]
    if problems:
        neutral_cells(pl.DataFrame(problems)).write_csv(problems_file)
        text.append(problems_file)
    return text


def _draw_tables(tables: ForeignTables) -> dict[str, pl.DataFrame]:
    """Return the draws, and their classes and grades where meanings can be audited with them.

    One draw per question shows no agreement, and where a log grades some of the answers only the
    rest is not missing at random. The grades then stay with the draws.
    """
    if tables.draws_with_classes() is None:
        return {"draws": tables.draws}
    draws = tables.draws.drop("correct", "reason", "grader")
    return {"draws": draws, "semantics": tables.semantics}
