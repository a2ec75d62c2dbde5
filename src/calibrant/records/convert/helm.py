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
from calibrant.records.convert.json_text import load_json
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder, finite_number
from calibrant.records.convert.options import ReadOptions

__all__ = ["is_helm", "read_helm"]

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
    state = _load(path / _STATE)
    grades = _grades(path, builder, options)
    task = _load(path / "run_spec.json").get("name") if (path / "run_spec.json").is_file() else None
    requests = state.get("request_states") or []
    builder.expected = len(requests)
    for number, request in enumerate(requests, start=1):
        try:
            _add_request(builder, request, grades, str(task or path.name))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"request {number}", f"not the layout of a request: {error!r}")
    return builder.finish()


def _load(path: Path) -> Any:
    try:
        return load_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"the file cannot be read: {error}", source=str(path)) from None


def _grades(
    path: Path, builder: LogBuilder, options: ReadOptions
) -> dict[_Key, tuple[float | None, str]]:
    if not (path / _STATS).is_file():
        builder.problem(_STATS, "not in the folder: nothing is graded")
        return {}
    found: dict[_Key, tuple[float | None, str]] = {}
    for entry in _load(path / _STATS):
        means = {stat["name"]["name"]: stat.get("mean") for stat in entry["stats"]}
        for name in [options.grade] if options.grade else _GRADES:
            number = finite_number(means.get(name))
            if number is not None and 0.0 <= number <= 1.0:
                found.setdefault(_key(entry, entry["instance_id"]), (number, str(name)))
    return found


def _key(entry: Mapping[str, Any], instance: Any) -> _Key:
    perturbation = (entry.get("perturbation") or {}).get("name", "")
    return str(instance), str(perturbation), int(entry["train_trial_index"])


def _add_request(
    builder: LogBuilder,
    request: Mapping[str, Any],
    grades: Mapping[_Key, tuple[float | None, str]],
    task: str,
) -> None:
    instance = request["instance"]
    trial = int(request["train_trial_index"])
    name, perturbation, _ = key = _key({**instance, "train_trial_index": trial}, instance["id"])
    question = f"{name}:{perturbation}" if perturbation else name
    if request.get("reference_index") is not None:
        builder.problem(f"instance {question}", "options asked one by one are not read")
        return
    result = request.get("result") or {}
    if not result.get("success", True):
        builder.problem(f"instance {question}", f"the request failed: {result.get('error')}")
        return
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
        tokens = [float(token["logprob"]) for token in completion.get("tokens") or []]
        reason = None if correct is not None else FILTERED_ONLY if place else "not graded"
        builder.draw(**row, text=text, reason=reason, grader=grader, token_logprobs=tokens or None)
        total = math.fsum(tokens)
        if tokens and max(tokens) <= 0.0 and math.isfinite(total):
            builder.score(**row, method="perplexity", confidence=math.exp(total / len(tokens)))
            builder.score(**row, method="sequence_probability", confidence=math.exp(total))


def _references(instance: Mapping[str, Any]) -> list[list[str]] | None:
    right = [
        str(reference["output"].get("text"))
        for reference in instance.get("references") or []
        if "correct" in (reference.get("tags") or [])
    ]
    return [right] if right else None
