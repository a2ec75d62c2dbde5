"""Options that several verbs share, in one vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AnswerColumn",
    "By",
    "ConfidenceColumn",
    "CorrectColumn",
    "EngineName",
    "HtmlPath",
    "Inputs",
    "JsonPath",
    "MethodColumn",
    "ModelColumn",
    "OnInvalid",
    "OnInvalidByInput",
    "QuestionColumn",
    "Seed",
    "WeightsColumn",
]

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT..", help="Study folder, table (csv, jsonl, parquet) or foreign log."
    ),
]
JsonPath = Annotated[
    str | None, typer.Option("--json", metavar="PATH|-", help="Write the result as JSON.")
]
HtmlPath = Annotated[
    Path | None, typer.Option("--html", metavar="PATH", help="Write a self-contained report.")
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="local|ray|ray://HOST:PORT",
        help="Read the table in parts: in threads, or on a Ray cluster.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same bytes.")]
By = Annotated[
    list[str] | None, typer.Option("--by", metavar="COL", help="A block per value of this column.")
]
ConfidenceColumn = Annotated[
    str | None, typer.Option("--confidence", metavar="COL", help="Column of the confidence.")
]
CorrectColumn = Annotated[
    str | None, typer.Option("--correct", metavar="COL", help="Column of the outcome, 0 or 1.")
]
ModelColumn = Annotated[
    str | None, typer.Option("--model", metavar="COL", help="Column of models.")
]
MethodColumn = Annotated[
    str | None, typer.Option("--method", metavar="COL", help="Column of confidence methods.")
]
QuestionColumn = Annotated[
    str | None, typer.Option("--question", metavar="COL", help="Column of question ids.")
]
AnswerColumn = Annotated[
    str | None, typer.Option("--answer", metavar="COL", help="Column of the answer graded.")
]
WeightsColumn = Annotated[
    str | None, typer.Option("--weights", metavar="COL", help="Column of row weights.")
]
OnInvalid = Annotated[
    str,
    typer.Option(
        "--on-invalid",
        metavar="error|drop",
        help="What to do with rows that break a rule: stop, or drop them and report which.",
    ),
]
OnInvalidByInput = Annotated[
    str | None,
    typer.Option(
        "--on-invalid",
        metavar="error|drop",
        help="Rows that break a rule: stop (default for a table), or drop and report which "
        "(default for a study).",
    ),
]
