"""Which tool wrote this file? Its words and fields tell, see kinds.toml.

Readers are loaded when a file is one of theirs: a table that is no log needs none of them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Call, Hint
from calibrant.data.logs import json_text
from calibrant.data.logs.json_text import BLANK, KINDS, ReadOptions

if TYPE_CHECKING:
    from calibrant.data.logs.log import ForeignLog

# What a reader trips over where a value is not of the kind that its tool writes.
_BROKEN = (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)
_HEAD = 262_144
"""Bytes looked at; the first row of a jsonl log may be long."""
_FOOTER = 131_072
"""Bytes at the end of a parquet file, where the names of its columns are."""


def recognise(path: str | Path, *, scores: bool = False) -> str | None:
    """Return the kind of a foreign log, or None where the path is no log that is known.

    Only the content counts, not the name. Tables are no logs: verbs read them as they are, unless
    lists of `scores` are asked for. A file that only stands for another (a Git LFS pointer, totals
    without samples) is refused.
    """
    place = Path(path)
    if place.is_dir():
        return kind_of_folder(place)
    if not place.is_file():
        return None
    with place.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        # Loaded here: most logs are no archives.
        from calibrant.data.logs.inspect_log import is_inspect_archive
        from calibrant.data.logs.polygraph import is_polygraph

        if is_inspect_archive(place):
            return "inspect"
        return "lm-polygraph" if is_polygraph(place) else None
    if head.startswith(b"PAR1"):
        with place.open("rb") as file:
            file.seek(max(0, place.stat().st_size - _FOOTER))
            return kind_by("parquet", file.read())
    text = head.lstrip(BLANK)
    with error_source(str(place)):
        refuse_stand_in(place, text)
    if text[:1] not in (b"{", b"[", b"<"):
        names = text.partition(b"\n")[0].decode("utf-8", "replace").replace('"', "").split(",")
        return "scores" if scores and fits([*map(str.strip, names)], ROWS["scores"]) else None
    return kind_of_text(place, text)


def _kind_of_table(path: Path, options: ReadOptions) -> str | None:
    """Return the kind of a table that only `import` takes for a log: of a tool, or of any."""
    # Loaded here: most logs are no tables.
    from calibrant.data.tables import column_names, scan_table

    try:
        columns = column_names(scan_table(path), path) if path.is_file() else []
    except InputError:
        columns = []
    is_known = path.is_file() and (options.columns or {"confidence", "correct"} <= set(columns))
    return kind_by("table", columns) or ("table" if is_known else None)


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
    if kind is not None and kind not in KINDS:
        raise InputError(f"there is no kind of log {kind!r}", hint=f"known: {', '.join(KINDS)}")
    with error_source(str(path)):
        return _read(Path(path), kind, options or ReadOptions())


def _read(path: Path, kind: str | None, options: ReadOptions) -> ForeignLog:
    if not path.exists():
        raise InputError("there is no such file", hint="check the path")
    kind = kind or recognise(path) or _kind_of_table(path, options)
    if kind is None:
        raise InputError(
            "not a log of a known tool",
            hint=Hint(
                "known: {0}; for a table (csv, jsonl, parquet) name its columns: {confidence} "
                "{correct}",
                ", ".join(name for name in KINDS if name != "table"),
                confidence="COL",
                correct="COL",
            ),
        )
    # Loaded here: what is no log needs no reader.
    from calibrant.data.logs.log import ForeignLog

    log, what = ForeignLog(kind, path, options), KINDS[kind]["what"]
    module, _, function = KINDS[kind]["read"].rpartition(".")
    try:
        getattr(import_module(f"{__package__}.{module}"), function)(log)
        if log.opinions_of_rows:
            import_module(f"{__package__}.opinions").add_columns(log)
        log.finish()
    except InputError:
        raise
    except _BROKEN as error:
        # Damage may leave a file that is well formed and says something else than the tool does.
        raise InputError(
            f"cannot be read as {what}: it is damaged, or its layout is another "
            f"({type(error).__name__}: {str(error)[:80]})"
        ) from error
    except OSError as error:
        # A folder where a file is expected or the other way round, or no right to read it.
        raise InputError(f"cannot be read as {what}: {error.strerror}") from None
    return log


_POINTER = b"version https://git-lfs.github.com/spec/"
_SIZE = re.compile(rb"^size (\d+)", re.MULTILINE)
_SIMPLE_EVALS = re.compile(rb'^\{[^{}\[\]]*"score(:std)?":[^{}\[\]]*\}\s*$')
_OVERVIEW = 4_096
"""Bytes: totals of simple-evals are a dozen numbers."""
_HELM = frozenset({"per_instance_stats.json", "scenario_state.json"})
_BESIDE_HELM = frozenset({"run_spec.json", "scenario.json", "stats.json", "instances.json"})


def refuse_stand_in(path: Path, head: bytes) -> None:
    """Say in one line what a file is that only stands for a log.

    Parameters
    ----------
    path
        The file.
    head
        Its beginning.
    """
    if head.startswith(_POINTER):
        size = _SIZE.search(head)
        bytes_shown = f" ({int(size[1]):,} bytes)" if size else ""
        raise InputError(
            f"this is a Git LFS pointer, not the file itself{bytes_shown}",
            hint="fetch the file first: git lfs pull",
        )
    neighbour = all((path.parent / name).is_file() for name in _HELM)
    if path.name in _HELM | _BESIDE_HELM and neighbour:
        raise InputError(
            "this is one file of a HELM run, and the run is its folder",
            hint=Hint("give the folder: {call}", call=Call("audit", str(path.parent))),
        )
    for totals in (facts["totals"] for facts in KINDS.values() if "totals" in facts):
        if head[:1] in (b"{", b"[") and all(word.encode() in head for word in totals["words"]):
            rule = f"this {totals['file']} holds totals only, no samples"
            raise InputError(rule, hint=totals["hint"])
    # One flat object of numbers with a score and its spread.
    if len(head) < _OVERVIEW and b'"score:std"' in head and _SIMPLE_EVALS.match(head):
        raise InputError(
            "this file of simple-evals holds totals only, no examples",
            hint="give the file *_allresults.json, or the HTML report",
        )


Ways: TypeAlias = list[list[Any]]


def _ways(where: str) -> dict[str, Ways]:
    return {kind: facts[where] for kind, facts in KINDS.items() if where in facts}


ROWS = _ways("rows")
# Fields that hold an object, and one of its own fields: their names alone say too little.
_INSIDE = {"hle": ("judge_response", ""), "openai-evals": ("spec", "completion_fns")}
_LINES = 20


def fits(content: Container[Any], modes: Ways) -> bool:
    """Return whether the words of one of the ways are there.

    Examples
    --------
    >>> fits({"custom_id": 1, "response": {}}, ROWS["openai-batch"])
    True
    """
    return any(
        all(any(word in content for word in ([w] if isinstance(w, str) else w)) for w in mode)
        for mode in modes
    )


def kind_by(where: str, content: Container[Any]) -> str | None:
    """Return the first kind whose words for this place are there; bytes are looked at as text."""
    content = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    return next((kind for kind, modes in _ways(where).items() if fits(content, modes)), None)


def kind_of_row(row: Mapping[str, object]) -> str | None:
    """Return the kind of log that a row of JSON is of; an answer of an API holds rows itself."""
    inner = row.get("data")
    row = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else row
    for kind in (kind for kind, modes in ROWS.items() if fits(row, modes)):
        name, inner = _INSIDE.get(kind, ("", ""))
        value = row.get(name)
        if name not in row or (isinstance(value, Mapping) and (not inner or inner in value)):
            return kind
    return None


def kind_of_folder(path: Path) -> str | None:
    """Return the kind of a log that is a folder, or None."""
    if (path / "scenario_state.json").is_file():
        return "helm"
    stems = {entry.stem for entry in path.iterdir()}
    if "scores" in stems and stems & {"observations", "observations_v2"}:
        return "langfuse"
    return "phoenix" if {"spans", "annotations"} <= stems else None


def kind_of_text(path: Path, head: bytes) -> str | None:
    """Return the kind of a file of JSON, JSON lines or HTML, or None."""
    if head.startswith(b"<"):
        return kind_by("page", head)
    if head.startswith(b"{") and (kind := kind_by("head", head)) is not None:
        return kind
    row = next((row for row in _first_rows(path, head) if isinstance(row, dict)), None)
    return None if row is None else kind_of_row(row)


def _first_rows(path: Path, head: bytes) -> Iterator[object]:
    """Yield what may be the first row: of a list, of lines, or the whole object of a platform."""
    if head.startswith(b"["):
        # The file may hold more of the list than was looked at.
        yield from json_text.readable_rows(head)[:1]
        return
    with path.open("rb") as file:
        # A damaged first line must not hide a log.
        yield from map(json_text.json_or_none, islice(file, _LINES))
    if head.startswith(b"{") and b'"data"' in head:
        yield json_text.json_or_none(path.read_bytes())
