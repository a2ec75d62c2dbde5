"""Which paths are logs of other tools. Asked of every input, so without what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrant.core.calls import Call
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.records.convert.recognise import recognise
from calibrant.records.formats import is_study

_LOG_ENDINGS = frozenset({".eval", ".html", ".json", ".jsonl", ".parquet"})


def log_files(data: Any) -> Sequence[str | Path]:
    """Return the logs that these data are: a path, a list of paths or a folder; none for tables.

    Examples
    --------
    >>> log_files({"confidence": [0.5], "correct": [1]})
    ()
    """
    if isinstance(data, str | Path):
        return [data] if recognise(data) is not None else logs_in(data)
    if not isinstance(data, list | tuple) or not data:
        return ()
    found = [isinstance(item, str | Path) and recognise(item) is not None for item in data]
    if any(found) and not all(found):
        other = data[found.index(False)]
        raise InputError(
            f"logs and tables cannot be read in one go, got both (a table: {other})",
            hint=Hint(
                "turn the logs into tables first: {call}",
                call=Call("import", "LOG", out="scores.parquet"),
            ),
        )
    return data if all(found) else ()


def logs_in(folder: str | Path) -> list[Path]:
    """Return the logs of one tool in a folder and its sub-folders, sorted by name.

    None where the path is no folder, a study, or a folder of parquet files that are no logs: that
    is a table. Files that are no log, such as totals beside samples, are passed over; logs of
    several tools are refused, because one folder is read as one evaluation.
    """
    place = Path(folder)
    if not place.is_dir() or is_study(place):
        return []
    parquet = next(place.rglob("*.parquet"), None)
    if parquet is not None and _kind_of(parquet) is None:
        return []
    found: dict[str, list[Path]] = {}
    runs: list[Path] = []
    for entry in sorted(place.rglob("*")):
        if any(run in entry.parents for run in runs):
            continue
        if entry.is_dir() or entry.suffix in _LOG_ENDINGS:
            kind = _kind_of(entry)
            if kind is not None:
                found.setdefault(kind, []).append(entry)
                # The files of a folder that is one log, such as a run of HELM, are its parts.
                runs += [entry] if entry.is_dir() else []
    if len(found) > 1:
        told = ", ".join(f"{len(files)} of {kind}" for kind, files in found.items())
        raise InputError(
            f"the folder holds logs of several tools: {told}",
            source=str(folder),
            hint="give the logs of one tool, file by file or in a folder of their own",
        )
    return next(iter(found.values()), [])


def _kind_of(place: Path) -> str | None:
    try:
        reader = recognise(place)
    except InputError:
        return None
    return None if reader is None else reader.kind
