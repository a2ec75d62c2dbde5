"""Run folders of HELM: ``scenario_state.json`` and ``per_instance_stats.json``.

Completions of a request are draws; HELM grades the first of them. A training trial is a further
draw of the same question, a perturbed instance a question of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.believed import believed_tokens
from calibrant.records.convert.json_text import (
    ReadOptions,
    finite_number,
    load_json,
    readable_rows,
    readable_samples,
)
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder

KIND = "helm"
_STATE, _STATS = "scenario_state.json", "per_instance_stats.json"
_GRADES = ("exact_match", "quasi_exact_match", "prefix_exact_match", "final_number_exact_match")
_Key = tuple[str, str, int]


def is_helm(path: Path) -> bool:
    """Return whether a folder is a HELM run."""
    return path.is_dir() and (path / _STATE).is_file()


def read_helm(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a run folder."""
    builder = LogBuilder(KIND, str(path))
    requests = _load(path / _STATE, builder, rows="request_states")
    if not requests:
        raise InputError("no request of the run can be read", source=str(path / _STATE))
    whole = not builder.problems
    stats = _load(path / _STATS, builder) if (path / _STATS).is_file() else None
    grades = _grades(stats, builder, options)
    task = _task(path, builder)
    builder.expected, builder.expected_unit = len(requests) if whole else None, "requests"
    seen: set[_Key] = set()
    for number, request in enumerate(requests, start=1):
        try:
            seen.add(_add_request(builder, request, grades, task))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"request {number}", f"not the layout of a request: {error!r}")
    if not whole:
        _note_missing(builder, stats or [], seen)
    return builder.finish()


def _load(path: Path, builder: LogBuilder, *, rows: str | None = None) -> list[Any]:
    """Return the rows of a JSON file; of a damaged one those before the damage."""
    data = path.read_bytes()
    try:
        found = load_json(data)
        found = found.get(rows) if rows and isinstance(found, dict) else found
    except ValueError as error:
        read = readable_rows(data) if rows is None else readable_samples(data, rows=rows).get(rows)
        found = read or []
        builder.problem(path.name, f"the JSON is damaged: {error}; {len(found)} rows before it")
    return found if isinstance(found, list) else []


def _task(path: Path, builder: LogBuilder) -> str:
    place = path / "run_spec.json"
    if place.is_file():
        try:
            spec = load_json(place.read_bytes())
            return str(spec["name"])
        except (ValueError, KeyError, TypeError) as error:
            builder.note(f"run_spec.json cannot be read ({error!r:.60}): the folder names the task")
    return path.name


def _note_missing(builder: LogBuilder, stats: list[Any], seen: set[_Key]) -> None:
    """List what was graded and is not among the requests that can be read."""
    for entry in stats:
        try:
            key = _key(entry, entry["instance_id"])
        except (KeyError, TypeError, AttributeError, ValueError):
            continue
        if key not in seen:
            name, perturbation, trial = key
            place = f"instance {name}{f':{perturbation}' if perturbation else ''}, trial {trial}"
            builder.problem(place, f"graded, but not in {_STATE}")


def _grades(
    stats: list[Any] | None, builder: LogBuilder, options: ReadOptions
) -> dict[_Key, tuple[float | None, str]]:
    if stats is None:
        builder.problem(_STATS, "not in the folder: nothing is graded")
        return {}
    found: dict[_Key, tuple[float | None, str]] = {}
    for row, entry in enumerate(stats, start=1):
        try:
            means = {stat["name"]["name"]: stat.get("mean") for stat in entry["stats"]}
            key = _key(entry, entry["instance_id"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"{_STATS}, row {row}", f"not the layout of grades: {error!r}")
            continue
        for name in [options.grade] if options.grade else _GRADES:
            number = finite_number(means.get(name))
            if number is not None and 0.0 <= number <= 1.0:
                found.setdefault(key, (number, str(name)))
    return found


def _key(entry: Mapping[str, Any], instance: Any) -> _Key:
    perturbation = (entry.get("perturbation") or {}).get("name", "")
    return str(instance), str(perturbation), int(entry["train_trial_index"])


def _add_request(
    builder: LogBuilder,
    request: Mapping[str, Any],
    grades: Mapping[_Key, tuple[float | None, str]],
    task: str,
) -> _Key:
    """Add a request as draws, and return which one it is."""
    instance = request["instance"]
    trial = int(request["train_trial_index"])
    name, perturbation, _ = key = _key({**instance, "train_trial_index": trial}, instance["id"])
    question = f"{name}:{perturbation}" if perturbation else name
    if request.get("reference_index") is not None:
        builder.problem(f"instance {question}", "options asked one by one are not read")
        return key
    result = request.get("result") or {}
    if not result.get("success", True):
        builder.problem(f"instance {question}", f"the request failed: {result.get('error')}")
        return key
    mapping = request.get("output_mapping") or {}
    builder.question(
        question_id=question,
        text=instance["input"].get("text", ""),
        references=_references(instance),
        kind="choice" if mapping else "open",
        choices=list(mapping.values()) or None,
        domain=task,
    )
    completions = result.get("completions") or []
    for place, completion in enumerate(completions):
        correct, grader = grades.get(key, (None, "")) if place == 0 else (None, "")
        text = str(completion["text"])
        row = {
            "question_id": question,
            "model": str(request["request"]["model"]),
            "task": task,
            "draw": trial * len(completions) + place,
            "answer": mapping.get(text.strip(), text.strip()),
            "correct": correct,
        }
        tokens = believed_tokens(builder, completion.get("tokens") or [], text)
        reason = None if correct is not None else FILTERED_ONLY if place else "not graded"
        builder.draw(**row, text=text, reason=reason, grader=grader, token_logprobs=tokens)
        if tokens:
            total = math.fsum(tokens)
            builder.score(**row, method="perplexity", confidence=math.exp(total / len(tokens)))
            builder.score(**row, method="sequence_probability", confidence=math.exp(total))
    return key


def _references(instance: Mapping[str, Any]) -> list[list[str]] | None:
    right = [
        str(reference["output"].get("text"))
        for reference in instance.get("references") or []
        if "correct" in (reference.get("tags") or [])
    ]
    return [right] if right else None
