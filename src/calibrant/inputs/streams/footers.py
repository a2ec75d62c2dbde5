"""What names the input of a streamed document: the footers of its parquet files."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, BinaryIO, cast

from calibrant.core.errors import InputError
from calibrant.core.optional import optional_import
from calibrant.inputs.streams.engines import LocalEngine
from calibrant.records.batches import Part, parquet_files
from calibrant.records.formats import is_url

# A parquet file ends with its footer, the length of that in four bytes, and four letters.
_END = 8


def footer_facts(files: Sequence[str], parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return path, bytes, rows and the SHA-256 of the footer of every file.

    Hashing a large table would take longer than auditing it. The footer holds the schema, and for
    every row group and column the number of rows, the place and size of its bytes and, where the
    writer gave them, the least and the largest value: a file that was written again with other
    rows has another footer, but a byte that was changed in place has not.

    Parameters
    ----------
    files
        Parquet files, local or behind URLs.
    parts
        The parts of the table, which know the rows of each file.
    """
    rows: Counter[str] = Counter()
    for part in parts:
        rows[part.file] += part.rows
    return list(LocalEngine().map(partial(_facts, rows=rows), files))


def streamed_input(shown: str, source: str, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return what names the input of a streamed document.

    Parameters
    ----------
    shown
        The table as it was given.
    source
        What was read: the same, or its copy as a parquet file where it is a table of text. That
        is read to the end for the copy, so that it is hashed whole.
    parts
        The parts of the table.
    """
    if source == shown:
        return footer_facts(parquet_files(source), parts)
    from calibrant.inputs.provenance import input_files

    return input_files(shown)


def _facts(file: str, rows: Counter[str]) -> dict[str, Any]:
    try:
        with _opened(file) as opened:
            size = opened.seek(0, os.SEEK_END)
            opened.seek(size - _END)
            footer = int.from_bytes(opened.read(4), "little") + _END
            opened.seek(size - footer)
            digest = hashlib.sha256(opened.read(footer)).hexdigest()
    except OSError as error:
        raise InputError(f"the footer cannot be read: {error}", source=file) from None
    return {"path": file, "bytes": size, "rows": rows[file], "footer_sha256": digest}


def _opened(file: str) -> BinaryIO:
    if not is_url(file):
        return open(file, "rb")
    fsspec = optional_import("fsspec", extra="scale", purpose=f"reading {file}")
    return cast("BinaryIO", fsspec.open(file, "rb").open())
