"""Where the numbers of a report come from: one row of facts per result document."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.blocks import Table

_NOT_SAID = "not stated"
_FILES_NAMED = 3
_DIGITS_SHOWN = 12
_SETTINGS = ("level", "bins", "resamples", "recalibrated", "target", "decision")


def provenance_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """Return version, source, input files, seed, settings and rows left out of each document.

    Examples
    --------
    >>> table = {"path": "runs/a.csv", "bytes": 9, "sha256": "5f" * 32}
    >>> document = {"schema": "calibrant.audit/1", "seed": 3, "input": [table], "dropped": {"x": 2}}
    >>> provenance_table([document]).rows
    (('audit', 'not stated', 'not stated', 'a.csv 5f5f5f5f5f5f', '3', 'not stated', 'x 2'),)
    """
    rows = tuple(
        (
            kind_of(document),
            str(document.get("version") or _NOT_SAID),
            str(document.get("source") or document.get("study") or _NOT_SAID),
            _files(document.get("input")),
            _NOT_SAID if document.get("seed") is None else str(document["seed"]),
            _settings(document),
            _dropped(document),
        )
        for document in documents
    )
    return Table(
        ("part", "calibrant", "source", "input (SHA-256)", "seed", "settings", "rows left out"),
        rows,
        title="Where the numbers come from",
        note="The same inputs, settings and seed give the same file. A digest is shown by its "
        f"first {_DIGITS_SHOWN} digits; the documents below have all of it.",
        labels=7,
    )


def _files(files: Sequence[Mapping[str, Any]] | None) -> str:
    if files is None:
        return _NOT_SAID
    names = [f"{Path(entry['path']).name} {_digest(entry)}" for entry in files[:_FILES_NAMED]]
    more = len(files) - _FILES_NAMED
    return ", ".join([*names, *([f"{more:,} more"] if more > 0 else [])]) or "no file"


def _digest(entry: Mapping[str, Any]) -> str:
    """Return the first digits of what a file was known by: of a streamed one, its footer."""
    whole = entry.get("sha256")
    return whole[:_DIGITS_SHOWN] if whole else f"footer {entry['footer_sha256'][:_DIGITS_SHOWN]}"


def _settings(document: Mapping[str, Any]) -> str:
    setting = {name: document.get(name) for name in _SETTINGS} | document.get("settings", {})
    settings = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in setting.items()
        if value is not None and not isinstance(value, Mapping | list | tuple)
    ]
    return ", ".join(settings) or _NOT_SAID


def _dropped(document: Mapping[str, Any]) -> str:
    if "dropped" not in document:
        return _NOT_SAID
    counts = [f"{rule} {count:,}" for rule, count in document["dropped"].items() if count]
    return ", ".join(counts) or "none"
