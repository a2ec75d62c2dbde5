"""What a path holds, told from its first bytes, without loading a library that reads tables."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.records.limits import limit, limit_hint

_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
_UTF8, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
# Files that are no table, by their first bytes; some of them would be unpacked without a limit.
_OTHERS = {
    b"PK\x03\x04": "a zip file or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"\xfd7zXZ": "packed by xz",
    b"BZh": "packed by bzip2",
    b"\x04\x22\x4d\x18": "packed by lz4",
    b"x\x01": "packed by zlib",
    b"x\x9c": "packed by zlib",
    b"x\xda": "packed by zlib",
    b"7z\xbc\xaf": "packed by 7-Zip",
    b"%PDF": "a PDF document",
    b"ARROW1": "an Arrow file",
    b"FEA1": "a Feather file",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
MARKED = (_UTF8, *_UTF16, *_UTF32)
"""First bytes of a text that say how it is written."""
_PIECE = 1 << 20


def file_format(path: Path) -> str:
    """Return ``parquet``, ``jsonl``, ``json`` or ``csv``, recognised by content, not by name."""
    with path.open("rb") as file:
        head = file.read(4)
        if head == _PARQUET:
            return "parquet"
        _refuse_others(head + file.read(12), path)
    with gzip.open(path) if head[:2] == _GZIP else path.open("rb") as file:
        try:
            start = file.read(65_536)
            text = _as_utf8(start).lstrip(b"\xef\xbb\xbf \t\r\n")
        except (OSError, EOFError) as error:
            raise InputError(f"the gzip data cannot be read: {error}", source=str(path)) from None
    if head[:2] == _GZIP:
        if start[:2] == _GZIP:
            raise InputError("the file is gzipped twice", source=str(path), hint="unpack it once")
        _refuse_others(start[:16], path)
    if not text:
        raise InputError(
            "the file is empty; a table has a header and at least one row", source=str(path)
        )
    return {b"{": "jsonl", b"[": "json"}.get(text[:1], "csv")


def _refuse_others(head: bytes, path: Path) -> None:
    """Refuse by name what is no table, or packed in another way than by gzip."""
    what = next((what for start, what in _OTHERS.items() if head.startswith(start)), None)
    # A text may begin with these letters.
    if what is None or (head.startswith(b"BZh") and head[4:10] != b"1AY&SY"):
        return
    raise InputError(
        f"the file is {what}, not a table of text or parquet",
        source=str(path),
        hint="save or unpack the table as .csv, .jsonl or .parquet; .csv.gz is read too",
    )


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, unpacked where it is gzipped, up to the limit of a table."""
    with path.open("rb") as file:
        if file.read(2) != _GZIP:
            return path.read_bytes()
    return b"".join(_pieces(path))


def first_bytes(path: Path, most: int) -> bytes:
    """Return the start of a file, unpacked where it is gzipped."""
    with path.open("rb") as file:
        if file.read(2) != _GZIP:
            file.seek(0)
            return file.read(most)
    try:
        with gzip.open(path) as unpacked:
            return unpacked.read(most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the gzip data cannot be read: {error}", source=str(path)) from None


def plain_text(path: Path) -> bytes:
    """Return a text as UTF-8 without marks at its start, also where it is UTF-16 or gzipped."""
    raw = read_bytes(path)
    if raw.startswith(_UTF32):
        raise InputError("the text is UTF-32", source=str(path), hint="save the table as UTF-8")
    if raw.startswith(_UTF16):
        try:
            raw = raw.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"the UTF-16 text cannot be read: {error}",
                source=str(path),
                hint="save the table as UTF-8",
            ) from None
    while raw.startswith(_UTF8):
        raw = raw.removeprefix(_UTF8)
    return raw


def require_unpackable(path: Path) -> None:
    """Refuse a gzipped file that unpacks to more than the limit of a table.

    A few megabytes may hold gigabytes, and whoever unpacks them for us would not stop.
    """
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
    # Gzip packs at most about a thousandfold: most files need no second look.
    if zipped and path.stat().st_size * 1032 > limit("table_bytes"):
        for _ in _pieces(path):
            pass


def _pieces(path: Path) -> Iterator[bytes]:
    most, seen = limit("table_bytes"), 0
    try:
        with gzip.open(path) as file:
            while piece := file.read(_PIECE):
                seen += len(piece)
                if seen > most:
                    raise InputError(
                        f"the gzip data unpacks to more than {most:,} bytes",
                        source=str(path),
                        hint=limit_hint("table_bytes"),
                    )
                yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the gzip data cannot be read: {error}", source=str(path)) from None


def column_separator(path: Path) -> str:
    """Return the mark between the columns of a text table, told from its header."""
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
    with gzip.open(path) if zipped else path.open("rb") as file:
        line = _as_utf8(file.read(65_536)).lstrip(b"\r\n").splitlines()
        return separator_of(line[0].decode(errors="replace") if line else "")


def _as_utf8(head: bytes) -> bytes:
    """Return the start of a text in UTF-8, also where its first two bytes say UTF-16."""
    if not head.startswith(_UTF16):
        return head
    return head[: len(head) // 2 * 2].decode("utf-16", "replace").encode()


def separator_of(header: str) -> str:
    """Return which of comma, tab, semicolon and bar is the most frequent in the header.

    Examples
    --------
    >>> separator_of("confidence;correct"), separator_of("confidence")
    (';', ',')
    """
    return max(",\t;|", key=header.count)


def is_url(source: str) -> bool:
    """Return whether the source is a URL such as ``s3://bucket/folder``."""
    return "://" in source


def is_study(path: str | Path) -> bool:
    """Return whether `path` is a study folder."""
    folder = Path(path)
    return folder.is_dir() and ((folder / "study.toml").is_file() or (folder / "tables").is_dir())


def store_path(pool: str | Path) -> Path:
    """Return where the labels of a pool are kept: beside it, never in it.

    Examples
    --------
    >>> store_path("data/pool.csv").name
    'pool.csv.labels.sqlite'
    """
    place = Path(pool)
    if place.is_dir():
        return place / "labels.sqlite"
    return place.with_name(place.name + ".labels.sqlite")
