"""What tells the kinds of log apart: words that a file begins with, and fields of a row.

A kind has one or more ways to be written. A way is a list of words that must be there; of several
words in brackets one is enough.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from calibrant.records.convert.json_text import load_json, readable_rows

Ways: TypeAlias = tuple[tuple[Any, ...], ...]

_MLFLOW_ROW = (
    "trace_id",
    "request",
    "response",
    ("assessments", "trace_metadata", "execution_duration"),
)
_LANGFUSE_ROW: Ways = (
    (
        *("id", "timestamp", "input", "output"),
        ("observations", "htmlPath", "observationCount", "bookmarked", "environment"),
    ),
    ("id", "type", "input", "output", ("traceId", "trace_id"), ("startTime", "start_time")),
)
_LANGSMITH_ROW: Ways = (("example_id", "execution_time", "id", "error"),)
HEADS: dict[str, Ways] = {
    "inspect": ((b'"eval_id"',), (b'"eval"', b'"task_id"')),
    "hle": ((b'"judge_response"',),),
    "promptfoo": ((b'"evalId"', b'"results"', b'"prompts"'),),
    "deepeval": ((b'"testCases"', b'"metricsData"'),),
    "simple-evals": ((b'"htmls"', b'"score"'),),
    "mlflow": ((b'{"columns":', b'"data":', b'"inputs"'),),
}
"""Words in the beginning of one JSON object."""
PAGES: dict[str, Ways] = {"simple-evals": ((b"<h3>Prompt conversation</h3>",),)}
"""Words in the beginning of a page."""
ROWS: dict[str, Ways] = {
    "lm-eval": (("doc_id", "doc", "resps", "filtered_resps"),),
    "promptfoo": (("promptIdx", "testIdx", "gradingResult"),),
    "openai-batch": (("custom_id", "response"),),
    "openai-evals": (("spec",), ("run_id", "event_id", "sample_id", "type", "data")),
    "hle": (("judge_response",),),
    "every-eval-ever": (("evaluation_id", "sample_id", "answer_attribution", "evaluation"),),
    "phoenix": (("example_id", "output", "annotations"),),
    "mlflow": (_MLFLOW_ROW,),
    "langfuse": _LANGFUSE_ROW,
    "anthropic-batch": (("custom_id", "result"),),
    "gemini-batch": (("key", "response"),),
    "langsmith": _LANGSMITH_ROW,
    "braintrust": (
        ("input", "output", "expected", "scores", ("metadata", "tags", "span_id", "metrics")),
    ),
}
"""Fields of a row of JSON."""
TABLES: dict[str, Ways] = {
    "phoenix": (("context.span_id", ("attributes.output.value", "attributes.input.value")),),
    "langfuse": _LANGFUSE_ROW,
    "ragas": (
        ("user_input", "response", ("retrieved_contexts", "reference")),
        ("question", "answer", "contexts"),
    ),
    "mlflow": (_MLFLOW_ROW,),
    "langsmith": _LANGSMITH_ROW,
}
"""Columns of a table."""
PARQUET: dict[str, Ways] = {
    "lighteval": (
        (b"model_response", b"metric", b"gold_index"),
        (b"pred_logits", b"full_prompt", b"gold_index"),
    ),
    "phoenix": ((b"context.span_id", b"attributes."),),
}
"""Names of columns, which stand in clear at the end of a parquet file."""
# Fields that hold an object, and one of its own fields: their names alone say too little.
_INSIDE = {"hle": ("judge_response", None), "openai-evals": ("spec", "completion_fns")}
_LINES = 20


def fits(held: Container[Any], ways: Ways) -> bool:
    """Return whether the words of one of the ways are there.

    Examples
    --------
    >>> fits({"custom_id": 1, "response": {}}, ROWS["openai-batch"])
    True
    """
    return any(
        all(any(word in held for word in (w if isinstance(w, tuple) else (w,))) for w in way)
        for way in ways
    )


def kind_among(held: Container[Any], kinds: Mapping[str, Ways]) -> str | None:
    """Return the first kind that fits."""
    return next((kind for kind, ways in kinds.items() if fits(held, ways)), None)


def kind_of_row(row: Mapping[str, Any]) -> str | None:
    """Return the kind of log that a row of JSON is of; an answer of an API holds rows itself."""
    inner = row.get("data")
    row = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else row
    return next((k for k, ways in ROWS.items() if fits(row, ways) and _holds_more(row, k)), None)


def _holds_more(row: Mapping[str, Any], kind: str) -> bool:
    name, inner = _INSIDE.get(kind, ("", None))
    if name not in row:
        return True
    return isinstance(row[name], Mapping) and (inner is None or inner in row[name])


def kind_of_folder(path: Path) -> str | None:
    """Return the kind of a log that is a folder, or None."""
    if (path / "scenario_state.json").is_file():
        return "helm"
    held = {entry.stem for entry in path.iterdir()}
    if "scores" in held and held & {"observations", "observations_v2"}:
        return "langfuse"
    return "phoenix" if {"spans", "annotations"} <= held else None


def kind_of_text(path: Path, head: bytes) -> str | None:
    """Return the kind of a file of JSON, JSON lines or HTML, or None."""
    if head.startswith(b"<"):
        return kind_among(head, PAGES)
    if head.startswith(b"{") and (kind := kind_among(head, HEADS)) is not None:
        return kind
    row = _first_of_list(head) if head.startswith(b"[") else _first_row(path)
    row = _whole(path, head) if row is None else row
    return None if row is None else kind_of_row(row)


def _first_row(path: Path) -> Mapping[str, Any] | None:
    """Return the first line that is an object: a damaged first line must not hide a log."""
    with path.open("rb") as file:
        for _, line in zip(range(_LINES), file, strict=False):
            try:
                row = load_json(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                return row
    return None


def _first_of_list(head: bytes) -> Mapping[str, Any] | None:
    """Return the first object of a list, of which the file may hold more than was looked at."""
    rows = readable_rows(head)
    return rows[0] if rows and isinstance(rows[0], dict) else None


def _whole(path: Path, head: bytes) -> Mapping[str, Any] | None:
    """Return the object that the whole file is, where it may be one of a platform."""
    if not head.startswith(b"{") or b'"data"' not in head:
        return None
    try:
        found = load_json(path.read_bytes())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
