"""Logs of OpenAI's evals (``oaieval``): one event per line, a run's description first.

The grade of a sample is its ``match``, or the score of a model that graded it (``metrics``). The
harness keeps no confidence; where an eval records one, under that name, it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.exchange import (
    CONFIDENCE,
    Draws,
    Exchange,
    add_exchange,
    grade_among,
    grade_value,
    plain_text,
    response_logprobs,
)
from calibrant.records.convert.json_text import json_lines
from calibrant.records.convert.log import ForeignLog, LogBuilder, as_text
from calibrant.records.convert.options import ReadOptions

KIND = "openai-evals"
_GRADED = ("match", "metrics")


@dataclass(slots=True)
class _Sample:
    """The events of one sample of one run."""

    run: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    graded: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def is_openai_evals(row: Mapping[str, Any]) -> bool:
    """Return whether a jsonl file that begins with this row is a log of OpenAI's evals."""
    described = row.get("spec")
    if isinstance(described, Mapping) and "completion_fns" in described:
        return True
    return {"run_id", "event_id", "sample_id", "type", "data"} <= set(row)


def read_openai_evals(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the samples of the runs in a log; a sample that several runs have is drawn again."""
    builder = LogBuilder(KIND, str(path))
    runs: dict[str, Mapping[str, Any]] = {}
    samples: dict[tuple[str, str], _Sample] = {}
    for number, row in json_lines(path, builder):
        if isinstance(described := row.get("spec"), Mapping):
            runs[str(described.get("run_id"))] = described
        elif "final_report" not in row:
            _add_event(builder, f"line {number}", row, samples)
    if not samples:
        raise InputError(
            "this log of OpenAI's evals holds no events of samples",
            source=str(path),
            hint="a run that ended early leaves its description and its report only: run it again",
        )
    draws: Draws = Draws()
    for (_, name), sample in samples.items():
        _add_sample(builder, name, sample, runs.get(sample.run, {}), draws, options)
    return builder.finish()


def _add_event(
    builder: LogBuilder,
    place: str,
    row: Mapping[str, Any],
    samples: dict[tuple[str, str], _Sample],
) -> None:
    data, kind = row.get("data"), row.get("type")
    if row.get("sample_id") is None or not isinstance(data, Mapping):
        builder.problem(place, "not the layout of an event")
        return
    run = str(row.get("run_id"))
    sample = samples.setdefault((run, str(row["sample_id"])), _Sample(run))
    if kind == "sampling":
        sample.asked = data
    elif kind in _GRADED:
        sample.graded |= data
    elif kind == "error":
        sample.errors.append(str(data.get("message") or data))


def _add_sample(
    builder: LogBuilder,
    name: str,
    sample: _Sample,
    run: Mapping[str, Any],
    draws: Draws,
    options: ReadOptions,
) -> None:
    asked, graded = sample.asked, sample.graded
    if sample.errors:
        builder.problem(f"sample {name}", f"it failed: {sample.errors[0]!r:.120}")
        return
    models = run.get("completion_fns") or []
    correct, reason, grader = _grade(graded, options.grade)
    expected = graded.get("expected")
    said = graded.get("sampled", asked.get("sampled"))
    add_exchange(
        builder,
        Exchange(
            question_id=name,
            question=plain_text(asked.get("prompt") or graded.get("prompt") or ""),
            answer=plain_text(said[0] if isinstance(said, list) and said else said),
            model=str(models[0] if models else "model"),
            correct=correct,
            reason=reason,
            grader=grader,
            confidence=graded.get(CONFIDENCE, asked.get(CONFIDENCE)),
            tokens=response_logprobs(asked),
            task=as_text(run.get("eval_name")),
            references=[str(one) for one in expected]
            if isinstance(expected, list)
            else [str(expected)]
            if expected is not None
            else (),
        ),
        draws,
        options,
        place=f"sample {name}",
    )


def _grade(
    graded: Mapping[str, Any], name: str | None
) -> tuple[float | None, str | None, str | None]:
    if name is None and "correct" not in graded:
        # A grading model gives a choice, and a score where the eval says what choices are worth.
        score = grade_value(graded.get("score"))
        if score is not None:
            return score, None, "score"
        if "choice" in graded:
            return None, f"the grading model chose {graded['choice']!r:.40}, without a score", None
    return grade_among(graded, name)
