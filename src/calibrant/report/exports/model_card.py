"""An audit as part of a Hugging Face model card: a `model-index` entry and a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.cells import estimate_cell, share_cell
from calibrant.report.terminal import render_markdown

_NAMES = {
    "ece": "expected calibration error",
    "smooth_ece": "smooth calibration error",
    "brier": "Brier score",
    "auroc": "AUROC of the confidence",
    "accuracy": "accuracy",
}


def model_index(
    document: Mapping[str, Any],
    *,
    model: str,
    dataset: str,
    dataset_type: str,
    task: str = "question-answering",
) -> str:
    """Return YAML for the front matter of a model card.

    Parameters
    ----------
    document
        Document ``calibrant.audit/1``.
    model
        Name of the model in the card; only blocks of a single model should be in the document.
    dataset, dataset_type
        Name of the data, and its id on the hub.
    task
        The task's type on the hub.

    Returns
    -------
    str
        A ``model-index`` with one metric per method and measure; the interval and the number of
        rows stand in its name, because the format has no place for them.
    """
    lines = ["model-index:", f"- name: {_quoted(model)}", "  results:", "  - task:"]
    lines += [f"      type: {_quoted(task)}", "    dataset:"]
    lines += [f"      name: {_quoted(dataset)}", f"      type: {_quoted(dataset_type)}"]
    lines.append("    metrics:")
    for entry in _whole_blocks(document):
        for name, title in _NAMES.items():
            estimate = entry["metrics"].get(name)
            if estimate is None or estimate["value"] is None:
                continue
            ends = estimate_cell(estimate).ends
            interval = "[no interval]" if ends is None else f"[{', '.join(ends)}]"
            label = f"{title} ({entry['method']}), n = {entry['n']}, {_level(document)} {interval}"
            lines += [
                f"    - type: {_quoted(name)}",
                f"      name: {_quoted(label)}",
                f"      value: {json.dumps(round(estimate['value'], 6))}",
            ]
    return "\n".join(lines) + "\n"


def card_snippet(document: Mapping[str, Any]) -> str:
    """Return a Markdown section for the body of a model card."""
    return f"## Calibration\n\n{render_markdown(document)}"


def _whole_blocks(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [entry for entry in document["results"] if not entry.get("group")]


def _level(document: Mapping[str, Any]) -> str:
    return f"{share_cell(document['level'])} interval"


def _quoted(text: str) -> str:
    """Return a YAML string: JSON strings are YAML strings, whatever they hold."""
    return json.dumps(text)
