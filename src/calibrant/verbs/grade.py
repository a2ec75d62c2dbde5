"""`grade`: from sampled answers and references to a study with classes, grades and scores."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from calibrant.answers.graded_samples import (
    GradedSamples,
    JudgeChoice,
    grade_samples,
    judged_options,
    ledger_beside,
    ledger_for,
)
from calibrant.answers.samples import SampleColumns, read_samples
from calibrant.answers.semantics import Grader
from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError, require_known
from calibrant.core.places import check_output_folder
from calibrant.core.verb import OUTPUT, Option, verb
from calibrant.data import Study
from calibrant.data.mend import mended_columns
from calibrant.data.sources.input import document_head
from calibrant.findings.claims.next_step import step_of_grades
from calibrant.report.result import GradeResult

_TABLES = ("questions", "draws", "semantics", "scores")


@verb(
    example="calibrant grade samples.jsonl --samples answers --reference gold --out study",
    outputs=("json",),
)
def grade(
    data: opt.Data,
    out: Annotated[str | Path | None, Option(metavar="STUDY", group=OUTPUT, place="folder")] = None,
    *,
    samples: opt.SampleColumn = None,
    reference: opt.ReferenceColumn = None,
    correct: opt.CorrectColumn = None,
    references: opt.ReferencesFile = None,
    judge: opt.JudgeModel = None,
    judge_url: opt.JudgeUrl = None,
    max_judge_calls: opt.MostJudgeCalls = None,
    question: opt.QuestionColumn = None,
    model: opt.ModelColumn = None,
    mend: opt.MendColumns = None,
    why: Annotated[str | None, Option(metavar="QUESTION", group=OUTPUT)] = None,
    seed: opt.Seed = 0,
) -> GradeResult:
    """Put sampled answers that mean the same together, grade and score them.

    Parameters
    ----------
    data
        Sampled answers: a table with a list per question or a row per draw, the output of a batch
        endpoint or another log, a study without classes (as `import` writes it), or several
        tables.
    out
        Study folder for the tables.

        It gets questions, draws, semantics and scores; None writes nothing.
    samples, reference, question, model
        Columns of the sampled answers, the right answer, the question ids and the models, where
        they should not be guessed.
    correct
        Column of grades that are there already: 0 or 1 per draw, or a list of them beside the list
        of answers. Then no right answer is needed.
    references
        File of questions with their right answers, in any layout of `calibrant.data.questions`.
    judge, judge_url, max_judge_calls
        Model that judges what rules leave open (``gpt-5-mini``, ``anthropic:NAME``,
        ``ollama:NAME``), where it is reached, and how often it may be asked. Its replies are kept
        in the ledger of the study and never paid for twice. Without it the embedded judge reads,
        where its weights were fetched (`calibrant models fetch`); ``none`` is rules alone.
    mend
        A file that `mend` saved: scores get columns ``mended``, ``mended_low``, ``mended_high``.
    why
        Say for each answer to the question of this id why it is graded so.

        Rule, nearest reference, words that both have, and the table of names that knows them.
    seed
        The same seed gives the same tables.

    Returns
    -------
    GradeResult
        Document ``calibrant.grade/1``: per model questions, draws, classes and grades; which
        columns were used and which of them were guessed; which methods were scored.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"question": ["Capital of Peru?"], "gold": ["Lima"],
    ...     "answers": [["Lima", "It is Lima.", "Quito"]]})
    >>> found = grade(table)
    >>> found["results"][0]["classes"], found["samples"]["guessed"]
    (2, ['samples', 'reference', 'text'])
    """
    read = read_samples(
        data, SampleColumns(samples, reference, question, model, correct), references=references
    )
    if out is not None:
        _check_out(data, out)
    choice = None if judge is None else JudgeChoice(judge, judge_url, max_judge_calls)
    ledger = ledger_beside(data) if choice is None else ledger_for(data, out)
    with judged_options(choice, ledger) as options:
        graded = grade_samples(read, options=options, seed=seed)
    if mend is not None:
        graded = replace(graded, scores=mended_columns(graded.scores, mend))
    settings = {"columns": dict(read.columns)}
    head = document_head("grade", data, seed=seed, settings=settings)
    study = None if out is None else Study(out)
    if study is not None:
        study.write_result("semantics", {**graded.semantics_document, "verb": "grade"})
    return GradeResult(
        {
            **head,
            "samples": dict(graded.how),
            "semantics": dict(graded.semantics_document),
            "results": [
                _entry(part)
                for part in graded.with_classes.partition_by("model", maintain_order=True)
            ],
            "methods": _methods(graded),
            **({} if why is None else {"why": _why(graded, why)}),
            "written": [str(study.write(t, getattr(graded, t))) for t in _TABLES if study],
            "next": step_of_grades({**head, "samples": graded.how}, out),
        }
    )


def _check_out(data: Any, out: str | Path) -> None:
    is_same = isinstance(data, str | Path) and Path(data).resolve() == Path(out).resolve()
    if not is_same and (Path(out) / "tables").exists():
        raise InputError(
            "the folder holds a study already",
            source=str(out),
            hint="name a new folder, or give the study itself as input",
        )
    check_output_folder(out)


def _entry(part: pl.DataFrame) -> dict[str, Any]:
    """Return what one model's draws became."""
    classes = part.filter(pl.col("class_id").is_not_null()).select("question_id", "class_id")
    right = part.filter(pl.col("correct")).select("question_id", "class_id").unique()
    several = right.group_by("question_id").len().filter(pl.col("len") > 1)
    reasons = part.filter(pl.col("class_id").is_null())["reason"].value_counts(sort=True)
    return {
        "model": part["model"][0],
        "questions": part["question_id"].n_unique(),
        "draws": part.height,
        "classes": classes.unique().height,
        "right": int(part["correct"].sum() or 0),
        "wrong": int((~part["correct"]).sum() or 0),
        "without_answer": dict(reasons.iter_rows()),
        "ungraded": int(part.filter(pl.col("class_id").is_not_null())["correct"].null_count()),
        "several_right": several.height,
    }


def _why(graded: GradedSamples, question: str) -> list[dict[str, Any]]:
    """Return what the grades of one question rest on, each distinct answer once."""
    ids = graded.questions["question_id"].to_list()
    require_known([question], ids, "no question has the id {}")
    about, grader = graded.questions.row(ids.index(question), named=True), Grader(judge=None)
    rows = graded.with_classes.filter(
        pl.col("question_id") == question, pl.col("answer").is_not_null()
    ).unique(["model", "answer"], keep="first", maintain_order=True)
    return [
        {
            **grader.why(row["answer"], about.get("references"), question=about["text"] or None),
            # A judge or given grades may have decided otherwise than rules and words.
            **{name: row[name] for name in ("model", "answer", "correct", "chance")},
            "rule": row["grader"],
        }
        for row in rows.iter_rows(named=True)
    ]


def _methods(graded: GradedSamples) -> list[dict[str, Any]]:
    """Return which methods were scored, and what the others lack."""
    names = ("method", "available", "reason")
    by_method: dict[str, Mapping[str, Any]] = {}
    for entry in graded.availability:
        by_method.setdefault(entry["method"], {name: entry[name] for name in names})
    return [dict(entry) for entry in by_method.values()]
