"""Run folders of HELM: ``scenario_state.json`` and ``per_instance_stats.json``.

Completions of a request are draws; HELM grades the first of them. A training trial is a further
draw of the same question, a perturbed instance a question of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.exchange import (
    Exchange,
    NoAnswerError,
    first_grade,
    read_exchanges,
)
from calibrant.records.convert.json_text import ReadOptions, load_json, numbered, read_json
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder

_STATE, _STATS = "scenario_state.json", "per_instance_stats.json"
_GRADES = ("exact_match", "quasi_exact_match", "prefix_exact_match", "final_number_exact_match")
_Key = tuple[str, str, int]


def read_helm(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a run folder."""
    builder = LogBuilder("helm", str(path))
    requests = _load(path / _STATE, builder, rows="request_states")
    if not requests:
        raise InputError("no request of the run can be read", source=str(path / _STATE))
    whole = not builder.problems
    stats = _load(path / _STATS, builder) if (path / _STATS).is_file() else None
    grades = _grades(stats, builder, options)
    task = _task(path, builder)
    builder.expected, builder.expected_unit = len(requests) if whole else None, "requests"
    seen: set[_Key] = set()

    def exchanges(request: Mapping[str, Any]) -> Iterator[Exchange]:
        instance, trial = request["instance"], int(request["train_trial_index"])
        key = _key({**instance, "train_trial_index": trial}, instance["id"])
        seen.add(key)
        yield from _completions(request, key, grades.get(key, (None, None)), task)

    rows = numbered("request", requests)
    read_exchanges(builder, rows, exchanges, options, row_is="a request")
    if not whole:
        _list_missing(builder, stats or [], seen)
    return builder.finish()


def _load(path: Path, builder: LogBuilder, *, rows: str = "") -> list[Any]:
    """Return the rows of a JSON file; of a damaged one those before the damage."""
    found = read_json(path, builder, rows=rows)
    found = found.get(rows) if rows and isinstance(found, dict) else found
    return found if isinstance(found, list) else []


def _task(path: Path, builder: LogBuilder) -> str:
    place = path / "run_spec.json"
    if place.is_file():
        try:
            return str(load_json(place.read_bytes())["name"])
        except (ValueError, KeyError, TypeError) as error:
            builder.note(f"run_spec.json cannot be read ({error!r:.60}): the folder names the task")
    return path.name


def _list_missing(builder: LogBuilder, stats: list[Any], seen: set[_Key]) -> None:
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
) -> dict[_Key, tuple[float | None, str | None]]:
    if stats is None:
        builder.problem(_STATS, "not in the folder: nothing is graded")
    found: dict[_Key, tuple[float | None, str | None]] = {}
    for row, entry in enumerate(stats or [], start=1):
        try:
            means = {stat["name"]["name"]: stat.get("mean") for stat in entry["stats"]}
            key = _key(entry, entry["instance_id"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"{_STATS}, row {row}", f"not the layout of grades: {error!r}")
            continue
        grade, _, name = first_grade(means, [options.grade] if options.grade else _GRADES)
        if grade is not None:
            found.setdefault(key, (grade, name))
    return found


def _key(entry: Mapping[str, Any], instance: Any) -> _Key:
    perturbation = (entry.get("perturbation") or {}).get("name", "")
    return str(instance), str(perturbation), int(entry["train_trial_index"])


def _completions(
    request: Mapping[str, Any], key: _Key, grade: tuple[float | None, str | None], task: str
) -> Iterator[Exchange]:
    name, perturbation, trial = key
    if request.get("reference_index") is not None:
        raise NoAnswerError(f"instance {name}: options asked one by one are not read")
    result = request.get("result") or {}
    if not result.get("success", True):
        raise NoAnswerError(f"instance {name}: the request failed: {result.get('error')}")
    mapping = request.get("output_mapping") or {}
    instance, completions = request["instance"], result.get("completions") or []
    for place, completion in enumerate(completions):
        correct, grader = (None, None) if place else grade
        text = str(completion["text"])
        yield Exchange(
            question_id=f"{name}:{perturbation}" if perturbation else name,
            question=instance["input"].get("text", ""),
            text=text,
            answer=mapping.get(text.strip(), text.strip()),
            model=str(request["request"]["model"]),
            draw=trial * len(completions) + place,
            correct=correct,
            reason=None if correct is not None else FILTERED_ONLY if place else "not graded",
            grader=grader,
            tokens=completion.get("tokens"),
            task=task,
            references=_references(instance),
            choices=list(mapping.values()),
        )


def _references(instance: Mapping[str, Any]) -> list[str]:
    return [
        str(reference["output"].get("text"))
        for reference in instance.get("references") or []
        if "correct" in (reference.get("tags") or [])
    ]
