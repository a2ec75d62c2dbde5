"""What a model is called whose table does not say so: by its file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.inputs import bare_name


def models_by_file(sources: Sequence[Any]) -> list[str | None]:
    """Return a name for the model of each file; None for what is no file.

    Files of one name in several folders are told apart by these: as one name they would be one
    model.

    Examples
    --------
    >>> models_by_file(["runs/llama-3.1.csv", "runs/llama-3.2.csv.gz", {"confidence": []}])
    ['llama-3.1', 'llama-3.2', None]
    >>> models_by_file(["runs/a/scores.csv", "runs/b/scores.csv"])
    ['a/scores', 'b/scores']
    >>> models_by_file(["scores.csv", "scores.parquet"])
    ['scores.csv', 'scores.parquet']
    """
    files = [str(source) for source in sources if isinstance(source, str | Path)]
    if not files:
        return [None] * len(sources)
    paths = [_parts(file) for file in files]
    own = _without_shared(paths)
    for names in (
        [bare_name(path[-1]) for path in paths],
        ["/".join([*path[:-1], bare_name(path[-1])]) for path in own],
        ["/".join(path) for path in own],
    ):
        if len(set(names)) == len(names):
            found = iter(names)
            return [next(found) if isinstance(s, str | Path) else None for s in sources]
    twice = next(file for file, path in zip(files, paths, strict=True) if paths.count(path) > 1)
    raise InputError("the file is given twice", source=twice, hint="give each file once")


def _parts(file: str) -> list[str]:
    """Return folders and name; of a URL as it is written, of a file from the root on."""
    if "://" in file:
        return file.split("/")
    return list(Path(os.path.abspath(file)).parts)


def _without_shared(paths: list[list[str]]) -> list[list[str]]:
    """Return the paths below the folder that holds them all."""
    shared = 0
    while all(len(path) > shared + 1 for path in paths) and len({p[shared] for p in paths}) == 1:
        shared += 1
    return [path[shared:] for path in paths]
