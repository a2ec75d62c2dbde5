"""The kinds of log, told apart by what a file begins with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.records.convert.answer_tables import (
    is_mlflow,
    is_mlflow_row,
    is_ragas_row,
)
from calibrant.records.convert.helm import is_helm
from calibrant.records.convert.inspect_log import is_inspect_json
from calibrant.records.convert.json_text import ReadOptions, load_json, readable_rows
from calibrant.records.convert.judged import is_judged, is_judged_row
from calibrant.records.convert.langfuse import is_langfuse_folder, is_langfuse_row
from calibrant.records.convert.lm_eval import is_lm_eval
from calibrant.records.convert.openai_logs import (
    is_openai_batch,
    is_openai_evals,
    is_simple_evals,
    is_simple_evals_page,
)
from calibrant.records.convert.phoenix import (
    is_experiment_row,
    is_phoenix_folder,
    is_span_row,
)
from calibrant.records.convert.tables import columns_of, is_table, is_uqlm
from calibrant.records.convert.test_runners import is_deepeval, is_promptfoo, is_promptfoo_row

_BY_HEAD = {
    "inspect": is_inspect_json,
    "hle": is_judged,
    "promptfoo": is_promptfoo,
    "deepeval": is_deepeval,
    "simple-evals": is_simple_evals,
    "mlflow": is_mlflow,
}
_BY_ROW = {
    "lm-eval": is_lm_eval,
    "promptfoo": is_promptfoo_row,
    "openai-batch": is_openai_batch,
    "openai-evals": is_openai_evals,
    "hle": is_judged_row,
    "phoenix": is_experiment_row,
    "mlflow": is_mlflow_row,
    "langfuse": is_langfuse_row,
}
_LINES = 20


def kind_of_folder(path: Path) -> str | None:
    """Return the kind of a log that is a folder, or None."""
    if is_helm(path):
        return "helm"
    if is_langfuse_folder(path):
        return "langfuse"
    return "phoenix" if is_phoenix_folder(path) else None


def kind_of_text(path: Path, head: bytes) -> str | None:
    """Return the kind of a file of JSON, JSON lines or HTML, or None."""
    if head.startswith(b"<"):
        return "simple-evals" if is_simple_evals_page(head) else None
    if head.startswith(b"{"):
        for kind, is_one in _BY_HEAD.items():
            if is_one(head):
                return kind
    row = _first_of_list(head) if head.startswith(b"[") else _first_row(path)
    row = _whole(path, head) if row is None else row
    if row is None:
        return None
    return next((kind for kind, is_one in _BY_ROW.items() if is_one(row)), None)


def kind_of_table(path: Path, options: ReadOptions) -> str | None:
    """Return the kind of a table: those of tools first, then any with columns that are known."""
    columns = dict.fromkeys(columns_of(path))
    if is_span_row(columns):
        return "phoenix"
    if is_langfuse_row(columns):
        return "langfuse"
    if is_ragas_row(columns):
        return "ragas"
    if is_mlflow_row(columns):
        return "mlflow"
    if is_uqlm(path):
        return "uqlm"
    return "table" if options.columns or is_table(path) else None


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
