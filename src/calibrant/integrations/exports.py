"""Results in the formats of other tools: tables, JUnit XML, model cards, MLflow and more."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from calibrant.claims.checks import checked_blocks, failed_checks, parse_check
from calibrant.core.errors import InputError
from calibrant.core.places import writing
from calibrant.records.tables import neutral_cells
from calibrant.report.exports import (
    RELATIONSHIPS,
    Check,
    card_snippet,
    every_eval_ever_records,
    junit_xml,
    log_to_mlflow,
    model_index,
)
from calibrant.report.result import Result

_COLUMNS: dict[str, type[pl.DataType]] = {
    "model": pl.String,
    "method": pl.String,
    "group": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
}


def to_frame(result: Result) -> pl.DataFrame:
    """Return the metrics of an audit as a long table: one row per block and metric.

    ``.to_pandas()`` and ``.to_arrow()`` of the frame lead on to other libraries.

    Examples
    --------
    >>> import calibrant as cal
    >>> frame = to_frame(cal.audit([0.9, 0.8, 0.7, 0.9], [1, 0, 1, 1], resamples=20))
    >>> frame.filter(metric="accuracy").select("model", "value", "n").row(0)
    ('model', 0.75, 4)
    """
    rows = [
        {
            "model": entry["model"],
            "method": entry["method"],
            "group": ", ".join(f"{k}={v}" for k, v in (entry.get("group") or {}).items()) or None,
            "metric": name,
            **estimate,
        }
        for entry in result["results"]
        for name, estimate in entry["metrics"].items()
    ]
    return pl.DataFrame(rows, schema=_COLUMNS)


def to_table(result: Result, path: str | Path) -> None:
    """Write the table of `to_frame` as .parquet, .csv or .jsonl, by the ending of the path."""
    frame, place = to_frame(result), Path(path)
    if place.suffix == ".parquet":
        frame.write_parquet(place)
    elif place.suffix == ".csv":
        neutral_cells(frame).write_csv(place)
    elif place.suffix == ".jsonl":
        frame.write_ndjson(place)
    else:
        raise InputError(
            f"a table is written as .parquet, .csv or .jsonl, got {place.suffix!r}",
            source=str(path),
        )


def to_every_eval_ever(
    result: Result,
    path: str | Path | None = None,
    *,
    dataset: str,
    organization: str,
    relationship: str,
    timestamp: int | None = None,
) -> str:
    """Return the records of Every Eval Ever as JSON lines, one per model, and write them.

    Parameters
    ----------
    result
        An audit.
    path
        File to write, if any.
    dataset, organization
        Name of the questions; who made the evaluation.
    relationship
        What the evaluator is to the model's maker: first_party, third_party, collaborative or
        other.
    timestamp
        Seconds since 1970; None is now.

    Examples
    --------
    >>> import calibrant as cal
    >>> audit = cal.audit([0.9, 0.8, 0.7, 0.9], [1, 0, 1, 1], resamples=20)
    >>> about = {"dataset": "d", "organization": "me", "relationship": "third_party"}
    >>> json.loads(to_every_eval_ever(audit, timestamp=0, **about))["evaluation_id"]
    'd/model/0'
    """
    if relationship not in RELATIONSHIPS:
        known = ", ".join(RELATIONSHIPS)
        raise InputError(f"the relationship must be one of {known}, got {relationship!r}")
    records = every_eval_ever_records(
        result.to_dict(),
        dataset=dataset,
        organization=organization,
        relationship=relationship,
        timestamp=int(time.time()) if timestamp is None else timestamp,
    )
    text = "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
    if path is not None:
        with writing(path):
            Path(path).write_text(text, encoding="utf-8")
    return text


def to_junit(
    result: Result,
    claims: Sequence[str],
    path: str | Path | None = None,
    *,
    allow_undecided: bool = False,
) -> str:
    """Check claims such as ``ece>0.05`` on every block, and return the outcome as JUnit XML.

    A claim names what must not be: where it holds, is undefined or undecided, the test fails;
    `allow_undecided` lets what is undecided pass.

    Examples
    --------
    >>> import calibrant as cal
    >>> audit = cal.audit([0.9, 0.9, 0.9, 0.9], [1, 0, 0, 1], resamples=20)
    >>> 'failures="1"' in to_junit(audit, ["brier>0.2", "brier>0.9"])
    True
    """
    checks = []
    for place, metrics, told in checked_blocks(result):
        for text in claims:
            check = parse_check(text)
            if check.metric not in metrics and not (check.of_claims and told):
                continue
            lines = failed_checks(result, [check], allow_undecided=allow_undecided)
            failures = [line for line in lines if line.startswith((f"{place}:", f"{text}:"))]
            checks.append(Check(place, f"not {text}", failures[0] if failures else None))
    xml = junit_xml(checks, suite=f"calibrant {result['source']}")
    if path is not None:
        with writing(path):
            Path(path).write_text(xml, encoding="utf-8")
    return xml


def to_model_index(result: Result, *, model: str, dataset: str, dataset_type: str) -> str:
    """Return the `model-index` entry of a Hugging Face model card, as YAML."""
    return model_index(result.to_dict(), model=model, dataset=dataset, dataset_type=dataset_type)


def to_model_card(result: Result) -> str:
    """Return a Markdown section for a model card."""
    return card_snippet(result.to_dict())


def to_mlflow(result: Result) -> None:
    """Log an audit to the active MLflow run (needs ``mlflow``)."""
    log_to_mlflow(result.to_dict())
