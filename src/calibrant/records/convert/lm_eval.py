"""Sample files of lm-evaluation-harness: ``samples_<task>_<time>.jsonl``.

A file has one row per question and filter; here every question appears once. All repeats in
``resps`` become draws. A multiple-choice row holds the log-likelihood of each option: their softmax
is the confidence in the option that the harness took.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.json_text import (
    ReadOptions,
    as_text,
    finite_number,
    json_lines,
    load_json,
)
from calibrant.records.convert.lm_eval_filters import Extraction, extraction
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder

KIND = "lm-eval"
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
_GRADES = ("acc", "exact_match", "em", "exact", "correct")
_QUESTION_KEYS = ("question", "query", "prompt", "input", "text", "problem")


@dataclass(slots=True)
class _Run:
    """What the file beside the samples says about the run."""

    task: str
    model: str = "model"
    expected: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Document:
    """The rows of one question, one per filter."""

    rows: list[Mapping[str, Any]] = field(default_factory=list)


def is_lm_eval(row: Mapping[str, Any]) -> bool:
    """Return whether a jsonl file that begins with this row is a samples file."""
    return {"doc_id", "doc", "resps", "filtered_resps"} <= set(row)


def read_lm_eval(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a samples file; model and expected size come from the results file beside it."""
    builder = LogBuilder(KIND, str(path))
    run = _run(path, builder)
    builder.expected = run.expected
    documents: dict[str, _Document] = {}
    filters: list[str] = []
    for number, row in json_lines(path, builder):
        if not is_lm_eval(row):
            builder.problem(f"line {number}", "not a row of a samples file")
            continue
        name = str(row.get("filter", "none"))
        if name not in filters:
            filters.append(name)
        document = documents.setdefault(str(row["doc_id"]), _Document())
        if any(str(known.get("filter", "none")) == name for known in document.rows):
            builder.problem(
                f"line {number}",
                f"doc_id {row['doc_id']} of the filter {name!r} is there already: left out",
            )
            continue
        document.rows.append(row)
    _check_filter(filters, options, path)
    _note_missing_filters(builder, documents, filters)
    for question, document in documents.items():
        try:
            _add_document(builder, question, document, run, options)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            builder.problem(f"doc_id {question}", f"not the layout of a sample: {error!r}")
    if run.expected is not None and len(documents) < run.expected:
        builder.problem(
            path.name,
            f"{run.expected - len(documents)} of the {run.expected} questions of the run are "
            "not in the file",
        )
    return builder.finish()


def _note_missing_filters(
    builder: LogBuilder, documents: Mapping[str, _Document], filters: Sequence[str]
) -> None:
    """List the filters that do not have a row for every question: their grades are lost."""
    for name in filters:
        without = [
            question
            for question, document in documents.items()
            if not any(str(row.get("filter", "none")) == name for row in document.rows)
        ]
        if without:
            builder.problem(
                f"filter {name}",
                f"no row for {len(without)} of the {len(documents)} questions: doc_id "
                f"{', '.join(without[:5])}{', ..' if len(without) > 5 else ''}",
            )


def _check_filter(filters: Sequence[str], options: ReadOptions, path: Path) -> None:
    if options.filter is not None and options.filter not in filters:
        raise InputError(
            f"there is no filter {options.filter!r}",
            source=str(path),
            hint=f"the file has: {', '.join(filters)}",
        )


def _run(path: Path, builder: LogBuilder) -> _Run:
    match = _NAME.fullmatch(path.name)
    run = _Run(match["task"] if match else path.stem.removeprefix("samples_"))
    if match is None:
        return run
    beside = path.with_name(f"results_{match['time']}.json")
    try:
        results = load_json(beside.read_bytes())
        if not isinstance(results, dict):
            raise ValueError("not an object")
    except (OSError, ValueError) as error:
        if beside.is_file():
            builder.note(
                f"{beside.name} cannot be read ({error!s:.60}): the model's name is that of the "
                "folder, and how many questions the run had is not known"
            )
        # The harness names the folder after the model.
        run.model = path.resolve().parent.name
        return run
    config = results.get("config") or {}
    run.model = str(results.get("model_name") or config.get("model") or path.resolve().parent.name)
    run.config = (results.get("configs") or {}).get(run.task) or {}
    run.expected = ((results.get("n-samples") or {}).get(run.task) or {}).get("effective")
    return run


def _add_document(
    builder: LogBuilder, question: str, document: _Document, run: _Run, options: ReadOptions
) -> None:
    rows = document.rows
    if options.filter is not None:
        rows = [row for row in rows if str(row.get("filter")) == options.filter]
        if not rows:
            builder.problem(f"doc_id {question}", f"no row of the filter {options.filter!r}")
            return
    first = rows[0]
    if _is_pair(first) and len(first["resps"]) == 1:
        builder.problem(
            f"doc_id {question}",
            "the log-likelihood of one continuation is no confidence in an answer",
        )
        return
    arguments = _arguments(first)
    choices = [option.strip() for option in arguments] if _is_choice(first) else []
    builder.question(
        question_id=question,
        text=_question_text(first),
        references=_references(first, choices),
        kind="choice" if choices else "open",
        choices=choices or None,
        domain=run.task,
    )
    if choices:
        _add_choice(builder, question, first, choices, run, options)
    else:
        _add_replies(builder, question, rows, run, options)


def _arguments(row: Mapping[str, Any]) -> list[str]:
    """Return the continuations that were scored, or the settings as text, in order."""
    given = row.get("arguments") or {}
    values = list(given.values()) if isinstance(given, Mapping) else list(given)
    found = []
    for value in values:
        item = value.get("arg_1") if isinstance(value, Mapping) else value[1]
        found.append(str(item))
    return found


def _question_text(row: Mapping[str, Any]) -> str:
    document = row.get("doc")
    if isinstance(document, Mapping):
        for key in _QUESTION_KEYS:
            if isinstance(document.get(key), str):
                return str(document[key])
    given = row.get("arguments") or {}
    values = list(given.values()) if isinstance(given, Mapping) else list(given)
    if values:
        return str(values[0].get("arg_0") if isinstance(values[0], Mapping) else values[0][0])
    return ""


def _references(row: Mapping[str, Any], choices: Sequence[str]) -> list[list[str]] | None:
    target = row.get("target")
    if isinstance(target, list):
        return [[str(text) for text in target]] if target else None
    text = as_text(target)
    if text is not None and text.isdecimal() and int(text) < len(choices):
        return [[choices[int(text)]]]  # the target of a choice is the place of the option
    return [[text]] if text else None


def _is_choice(row: Mapping[str, Any]) -> bool:
    return _is_pair(row) and len(row["resps"]) > 1


def _is_pair(row: Mapping[str, Any]) -> bool:
    """Return whether replies are (log-likelihood, greedy) pairs rather than texts."""
    response = row["resps"][0][0]
    return isinstance(response, list | tuple) and len(response) == 2


def _grade(row: Mapping[str, Any], wanted: str | None) -> tuple[float | None, str | None, str]:
    """Return the grade, the reason where there is none, and the metric that gave it."""
    names = [wanted] if wanted else [*_GRADES, *map(str, row.get("metrics") or [])]
    for name in names:
        value = row.get(name)
        number = float(value) if isinstance(value, bool) else finite_number(value)
        if number is not None and 0.0 <= number <= 1.0:
            return number, None, name
    return None, f"no metric between 0 and 1 among {', '.join(names)}", ""


def _add_choice(
    builder: LogBuilder,
    question: str,
    row: Mapping[str, Any],
    choices: Sequence[str],
    run: _Run,
    options: ReadOptions,
) -> None:
    logs = [float(response[0][0]) for response in row["resps"]]
    # Mutual-information accuracy asks every option a second time, without the question.
    if len(set(choices)) * 2 == len(logs):
        logs = logs[: len(logs) // 2]
    chosen = max(range(len(logs)), key=logs.__getitem__)
    top = logs[chosen]
    confidence = 1.0 / math.fsum(math.exp(value - top) for value in logs)
    if not math.isfinite(confidence):
        raise ValueError(f"log-likelihoods {logs} have no softmax")
    correct, reason, grader = _choice_grade(row, chosen, options)
    answer = choices[chosen]
    key = {"question_id": question, "model": run.model, "task": run.task, "draw": 0}
    builder.draw(**key, text=answer, answer=answer, correct=correct, reason=reason, grader=grader)
    builder.score(
        **key, method="option_softmax", answer=answer, confidence=confidence, correct=correct
    )


def _choice_grade(
    row: Mapping[str, Any], chosen: int, options: ReadOptions
) -> tuple[float | None, str | None, str]:
    """Return the grade of the most likely option: the harness's, or else from the target."""
    if options.grade not in (None, "acc"):
        raise InputError(
            f"{options.grade!r} may judge another option than the most likely one, which is the "
            "one that the confidence is about",
            hint="multiple choice is graded by acc",
        )
    if "acc" in row:
        return _grade(row, "acc")
    target = as_text(row.get("target"))
    if target is not None and target.isdecimal():
        return float(int(target) == chosen), None, "target"
    return None, "neither acc nor the place of the right option is in the file", ""


def _add_replies(
    builder: LogBuilder,
    question: str,
    rows: Sequence[Mapping[str, Any]],
    run: _Run,
    options: ReadOptions,
) -> None:
    texts = [str(text) for text in rows[0]["resps"][0]]
    read, answers = _read_answers(builder, rows, texts, run)
    grades: dict[str, tuple[float | None, str]] = {}
    for row in rows:
        filtered = row["filtered_resps"]
        graded = as_text(filtered[0] if isinstance(filtered, list) else filtered) or ""
        correct, _, grader = _grade(row, options.grade)
        grades.setdefault(graded, (correct, grader))
    if len(texts) == 1:
        # One reply: the filtered answer is its answer, however the filter found it.
        answers = list(grades)[:1]
    elif not read and not any(answer in grades for answer in answers):
        builder.note(
            "the filter's answers cannot be found among the repeats: their grades are unknown"
        )
    settings = run.config.get("generation_kwargs") or {}
    for draw, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        correct, grader = grades.get(answer, (None, ""))
        builder.draw(
            question_id=question,
            model=run.model,
            task=run.task,
            draw=draw,
            text=text if options.texts else None,
            answer=answer,
            correct=correct,
            reason=None if correct is not None else FILTERED_ONLY,
            grader=grader,
            temperature=finite_number(settings.get("temperature")),
        )


def _read_answers(
    builder: LogBuilder, rows: Sequence[Mapping[str, Any]], texts: list[str], run: _Run
) -> tuple[bool, list[str]]:
    """Return the answer in each repeat, read in the way of the first filter where it is known."""
    name = str(rows[0].get("filter", "none"))
    steps: Extraction | None = extraction(run.config, name)
    if steps is None:
        return False, texts
    if steps.unknown and len(texts) > 1:
        builder.note(f"the filter {name!r} uses {steps.unknown!r}: repeats are read as they stand")
        return False, texts
    return True, [steps(text) for text in texts]
