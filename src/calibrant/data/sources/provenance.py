"""The head of every result document: what was done, with which version, on which bytes."""

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.version import __version__
from calibrant.data import Study, source_name
from calibrant.data.formats import database_part, entries_below, is_fetched, is_study
from calibrant.data.places import fetched


def document_head(
    kind: str,
    data: Any = None,
    *,
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
    source: str | None = None,
) -> dict[str, Any]:
    """Return schema, version, source, input files, seed and settings, the same for every verb.

    Parameters
    ----------
    kind
        Kind of the document, for example ``groups``.
    data
        What the verb was given: a path, a study folder, dataframes, a list of these, or None
        where a verb has no input.
    seed
        Seed, where the verb draws at random.
    settings
        Options that change the numbers.
    source
        How messages call the data, where that is known better than by its type.

    Examples
    --------
    >>> head = document_head("plan", seed=3, settings={"precision": 0.05})
    >>> head["schema"], head["source"], head["input"], head["seed"], head["settings"]
    ('calibrant.plan/1', None, [], 3, {'precision': 0.05})
    """
    return {
        "schema": f"calibrant.{kind}/1",
        "version": __version__,
        "source": source or _source(data),
        "input": input_files(data),
        "seed": seed,
        "settings": settings or {},
    }


def origin_of(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a saved policy or map keeps of where it came from: data and version."""
    return {name: head[name] for name in ("source", "input", "version")}


def today() -> str:
    """Return the day on which something is made, everywhere the same."""
    return dt.datetime.now(dt.UTC).date().isoformat()


def recorded(arguments: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Return the options of a verb as a document keeps them: plain, and in the order named.

    Parameters
    ----------
    arguments
        The options by name, with whatever else the verb holds.
    names
        Which of them, apart by spaces; one that ends in ``?`` is left out where it is None.

    Examples
    --------
    >>> recorded({"features": ("a", "b"), "save": Path("x.json"), "by": None}, "features save by?")
    {'features': ['a', 'b'], 'save': 'x.json'}
    """
    return {
        name.rstrip("?"): _plain(arguments[name.rstrip("?")])
        for name in names.split()
        if not name.endswith("?") or arguments[name[:-1]] is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path | dt.date):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list | tuple) else value


def input_files(data: Any) -> list[dict[str, Any]]:
    """Return path, bytes and SHA-256 of every file that `data` names.

    A study stands for its tables, a folder or pattern for its parquet files; dataframes and
    streams name no file, and a file that is not there is the reader's to refuse.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("confidence,correct")
    ...     [(entry["bytes"], entry["sha256"][:12]) for entry in input_files(path)]
    [(18, '9fb77369eac4')]
    """
    return [
        _facts(path) | ({"path": str(item)} if is_fetched(str(item)) else {})
        for item in _items(data)
        for path in _files(item)
    ]


def _source(data: Any) -> str | None:
    if isinstance(data, Iterator):
        return "a stream of tables"
    return source_name([_path_of(item) for item in _items(data)]) or None


def _items(data: Any) -> Sequence[Any]:
    """Return the single inputs; a stream is not touched, since reading it would use it up."""
    if data is None:
        return ()
    return data if isinstance(data, list | tuple) else [data]


def _path_of(item: Any) -> Any:
    return item.path if isinstance(item, Study) else item


def _files(item: Any) -> Iterable[Path]:
    item = _path_of(item)
    if not isinstance(item, str | Path):
        return []
    path = fetched(str(item)) if is_fetched(item) else database_part(item)[0]
    if is_study(path):
        return sorted((path / "tables").glob("*.parquet"))
    if path.is_dir():
        return entries_below(path, ".parquet")
    if path.is_file():
        return [path]
    if any(mark in str(item) for mark in "*?["):
        return sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    return []


def _facts(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from None
    return {"path": str(path), "bytes": path.stat().st_size, "sha256": digest}
