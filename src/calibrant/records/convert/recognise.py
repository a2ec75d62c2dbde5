"""Which tool wrote this file?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.records.convert.deepeval import is_deepeval, read_deepeval
from calibrant.records.convert.helm import is_helm, read_helm
from calibrant.records.convert.inspect_log import is_inspect_archive, is_inspect_json, read_inspect
from calibrant.records.convert.json_text import load_json
from calibrant.records.convert.judged import is_judged, read_judged
from calibrant.records.convert.harnesses.lm_eval import is_lm_eval, read_lm_eval
from calibrant.records.convert.log import ForeignLog
from calibrant.records.convert.not_logs import refuse_stand_in
from calibrant.records.convert.openai_batch import is_openai_batch, read_openai_batch
from calibrant.records.convert.options import ReadOptions
from calibrant.records.convert.polygraph import is_polygraph, read_polygraph
from calibrant.records.convert.promptfoo import is_promptfoo, is_promptfoo_row, read_promptfoo
from calibrant.records.convert.tables import is_table, is_uqlm, read_plain_table, read_uqlm

__all__ = ["READERS", "Reader", "read_log", "recognise"]

_HEAD = 262_144
"""Bytes looked at; the first row of a jsonl log may be long."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A kind of log: its name, what it is, and how it is read."""

    kind: str
    what: str
    read: Callable[[Path, ReadOptions], ForeignLog]


READERS: dict[str, Reader] = {
    reader.kind: reader
    for reader in (
        Reader("inspect", "Inspect log (.eval or .json)", read_inspect),
        Reader("lm-eval", "lm-evaluation-harness samples_*.jsonl", read_lm_eval),
        Reader("helm", "HELM run folder", read_helm),
        Reader("openai-batch", "batch output of an OpenAI-style endpoint", read_openai_batch),
        Reader("hle", "judged answers in the manner of HLE", read_judged),
        Reader("promptfoo", "results of promptfoo (.json or .jsonl)", read_promptfoo),
        Reader("deepeval", "test run of DeepEval", read_deepeval),
        Reader("lm-polygraph", "saved manager of LM-Polygraph", read_polygraph),
        Reader("uqlm", "result table of uqlm", read_uqlm),
        Reader("table", "table of confidences and outcomes", read_plain_table),
    )
}


def recognise(path: str | Path) -> Reader | None:
    """Return the reader of a foreign log, or None where the path is no log that is known.

    Only the content counts, not the name. Tables are no logs: verbs read them as they are. A file
    that only stands for another (a Git LFS pointer, totals without samples) is refused.
    """
    place = Path(path)
    if is_helm(place):
        return READERS["helm"]
    if not place.is_file():
        return None
    with place.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        return _reader_of_archive(place)
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    refuse_stand_in(place, text)
    if not text.startswith(b"{"):
        return None
    if is_inspect_json(text):
        return READERS["inspect"]
    if is_judged(text):
        return READERS["hle"]
    if is_promptfoo(text):
        return READERS["promptfoo"]
    if is_deepeval(text):
        return READERS["deepeval"]
    row = _first_row(place)
    return None if row is None else _reader_of_row(row)


def _reader_of_archive(path: Path) -> Reader | None:
    if is_inspect_archive(path):
        return READERS["inspect"]
    return READERS["lm-polygraph"] if is_polygraph(path) else None


def _reader_of_table(path: Path, options: ReadOptions) -> Reader | None:
    if not path.is_file():
        return None
    if is_uqlm(path):
        return READERS["uqlm"]
    return READERS["table"] if options.columns or is_table(path) else None


def _reader_of_row(row: Mapping[str, Any]) -> Reader | None:
    if is_lm_eval(row):
        return READERS["lm-eval"]
    if is_promptfoo_row(row):
        return READERS["promptfoo"]
    if is_openai_batch(row):
        return READERS["openai-batch"]
    return None


def _first_row(path: Path) -> dict[str, Any] | None:
    """Return the first line that is an object: a damaged first line must not hide a log."""
    with path.open("rb") as file:
        for _, line in zip(range(20), file, strict=False):
            try:
                row = load_json(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                return row
    return None


def read_log(
    path: str | Path, *, kind: str | None = None, options: ReadOptions | None = None
) -> ForeignLog:
    """Read a foreign log.

    Parameters
    ----------
    path
        The file or folder.
    kind
        Which tool wrote it; None recognises it by content.
    options
        See `ReadOptions`.
    """
    place = Path(path)
    if not place.exists():
        raise InputError("there is no such file", source=str(path), hint="check the path")
    if kind is not None and kind not in READERS:
        raise InputError(f"there is no kind of log {kind!r}", hint=f"known: {', '.join(READERS)}")
    chosen = options or ReadOptions()
    found = READERS[kind] if kind is not None else recognise(place)
    reader = found or _reader_of_table(place, chosen)
    if reader is None:
        raise InputError(
            "not a log of a known tool",
            source=str(path),
            hint=Hint(
                "known: {0}; for a table (csv, jsonl, parquet) name its columns: {confidence} "
                "{correct}",
                ", ".join(entry.what for entry in READERS.values()),
                confidence="COL",
                correct="COL",
            ),
        )
    try:
        return reader.read(place, chosen)
    except OSError as error:
        # A folder where a file is expected or the other way round, or no right to read it.
        raise InputError(
            f"cannot be read as {reader.what}: {error.strerror}", source=str(path)
        ) from None
