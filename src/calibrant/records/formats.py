"""What a path holds, told from its first bytes, without loading a library that reads tables."""

from __future__ import annotations

import gzip
from pathlib import Path

from calibrant.core.errors import InputError

__all__ = ["file_format", "is_study"]

_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"


def file_format(path: Path) -> str:
    """Return ``parquet``, ``jsonl``, ``json`` or ``csv``, recognised by content, not by name."""
    with path.open("rb") as file:
        head = file.read(4)
        if head == _PARQUET:
            return "parquet"
    with gzip.open(path) if head[:2] == _GZIP else path.open("rb") as file:
        try:
            text = file.read(65_536).lstrip(b"\xef\xbb\xbf \t\r\n")
        except (OSError, EOFError) as error:
            raise InputError(f"the gzip data cannot be read: {error}", source=str(path)) from None
    if not text:
        raise InputError(
            "the file is empty; a table has a header and at least one row", source=str(path)
        )
    return {b"{": "jsonl", b"[": "json"}.get(text[:1], "csv")


def is_study(path: str | Path) -> bool:
    """Return whether `path` is a study folder."""
    folder = Path(path)
    return folder.is_dir() and ((folder / "study.toml").is_file() or (folder / "tables").is_dir())
