"""What a path holds, told from its first bytes without a library of tables; how much is read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from calibrant.core.errors import InputError, error_source
from calibrant.core.names import optional_import

# So many rows without an outcome are left out unasked; more may differ from the graded ones.
FEW_UNGRADED = 0.05
# So few confidences out of range are slips of the writer, and not another scale.
FEW_BROKEN = 0.001


class Limit(NamedTuple):
    """A limit as it is unless it is set, and what it bounds."""

    usual: int
    meaning: str


LIMITS = {
    "answer_bytes": Limit(64 * 1024**2, "bytes of an endpoint's answer, decompressed"),
    "draw_characters": Limit(2_000_000, "characters of one draw that are kept"),
    "json_levels": Limit(64, "levels of an answer's JSON that are read"),
    "unpacked_bytes": Limit(2 * 1024**3, "bytes that a packed file may become, all of its parts"),
    "plain_items": Limit(50_000_000, "items of a pickled log, counted as often as referred to"),
}


def variable(name: str) -> str:
    """Return the environment variable of a limit.

    Examples
    --------
    >>> variable("unpacked_bytes")
    'CALIBRANT_MOST_UNPACKED_BYTES'
    """
    return f"CALIBRANT_MOST_{name.upper()}"


def limit(name: str) -> int:
    """Return a limit: what its environment variable says, or what is usual.

    Examples
    --------
    >>> limit("json_levels")
    64
    """
    value = os.environ.get(variable(name))
    if value is None:
        return LIMITS[name].usual
    digits = value.strip().replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and 0 < len(digits) < 16 and int(digits)):
        raise InputError(
            f"{variable(name)} is a whole number above 0, got {value[:40]!r}",
            hint=f"the usual value is {LIMITS[name].usual}",
        )
    return int(digits)


def limit_hint(name: str) -> str:
    """Return how a limit is raised, to be put behind a message.

    Examples
    --------
    >>> limit_hint("unpacked_bytes")
    'set CALIBRANT_MOST_UNPACKED_BYTES to read more'
    """
    return f"set {variable(name)} to read more"


_PARQUET, _ARROW, _SQLITE = b"PAR1", b"ARROW1", b"SQLite format 3"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_ZIP, _OLD_WORKBOOK = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_UTF8, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
# First bytes of files that are no table; some of them would be unpacked without a limit.
_OTHERS: dict[str, bytes | tuple[bytes, ...]] = {
    "a zip file": _ZIP,
    "packed by lz4": b"\x04\x22\x4d\x18",
    "packed by zlib": (b"x\x01", b"x\x9c", b"x\xda"),
    "packed by 7-Zip": b"7z\xbc\xaf",
    "a PDF document": b"%PDF",
    "a Feather file of the first version": b"FEA1",
    "an HDF5 file": b"\x89HDF",
    "a NumPy file": b"\x93NUMPY",
    "a pickle": (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
}
MARKED = (_UTF8, *_UTF16, *_UTF32)
"""First bytes of a text that say how it is written."""
DATABASE_MARK = "#"
"""Stands between the file of a database and its table or query."""
_PACKED_ENDINGS = (".gz", ".zst", ".bz2", ".xz")
_TEXTS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")
_WHOLE_TABLES = (*_TEXTS, ".arrow", ".feather", ".db", ".sqlite", ".xlsx", ".ods")
_BOOKS = (".xlsx", ".xlsm", ".xlsb", ".ods")
_PARTS_OF_BOOKS = frozenset(["xl/workbook.xml", "xl/workbook.bin", "content.xml"])
_PIECE = 1 << 20


Found = TypeVar("Found")


def once_per_file(look: Callable[[Path], Found], most: int = 64) -> Callable[[Path], Found]:
    """Return a look at a file that is taken again only where its time or size has changed."""
    cached = lru_cache(most)(lambda path, *_stamp: look(path))

    def wrapped(path: Path) -> Found:
        stat = path.stat()
        return cached(path, stat.st_mtime_ns, stat.st_size)

    return wrapped


def file_format(path: Path) -> str:
    """Return what a file holds, recognised by content, not by name.

    ``parquet``, ``arrow``, ``sqlite``, ``workbook``, ``jsonl`` (also one object), ``json`` (a list)
    or ``csv``.
    """
    with path.open("rb") as file:
        head = file.read(16)
    for mark, kind in ((_PARQUET, "parquet"), (_ARROW, "arrow"), (_SQLITE, "sqlite")):
        if head.startswith(mark):
            return kind
    if _is_workbook(path, head):
        return "workbook"
    with error_source(str(path)):
        _refuse_others(head)
        start = first_bytes(path, 65_536)
        if (packing := packed_by(path)) is not None:
            if packed_by_head(start) is not None:
                rule = f"the file is packed twice, by {packing} at last"
                raise InputError(rule, hint="unpack it once")
            _refuse_others(start[:16])
        text = _as_utf8(start).lstrip(b"\xef\xbb\xbf \t\r\n")
        if not text:
            raise InputError("the file is empty; a table has a header and at least one row")
        return {b"{": "jsonl", b"[": "json"}.get(text[:1], "csv")


def _is_workbook(path: Path, head: bytes) -> bool:
    """Return whether a file is a workbook: of Excel, old or new, or an open document."""
    if head.startswith(_OLD_WORKBOOK):
        return True
    if not head.startswith(_ZIP) or path.suffix.lower() in _BOOKS:
        # What is wrong with one that is called so is said by what reads workbooks.
        return head.startswith(_ZIP)
    try:
        with zipfile.ZipFile(path) as packed:
            return bool(_PARTS_OF_BOOKS & {*packed.namelist()})
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        # A later kind of zip than Python knows is no workbook that can be read either.
        return False


def packed_by_head(head: bytes) -> str | None:
    """Return by what data that begin like this are packed, or None."""
    packing = next((kind for start, kind in _PACKED.items() if head.startswith(start)), None)
    # A text may begin with these letters.
    return None if packing == "bzip2" and head[4:10] != b"1AY&SY" else packing


def packed_by(path: Path) -> str | None:
    """Return by what a file is packed: gzip, zstd, bzip2, xz or nothing."""
    with path.open("rb") as file:
        return packed_by_head(file.read(16))


@contextmanager
def unpacked(path: Path) -> Iterator[Any]:
    """Open a file to read its bytes, unpacked where it is packed."""
    kind = packed_by(path)
    try:
        with _OPENERS[kind](path) as file:
            yield file
    except _damage(kind) as error:
        raise InputError(f"the {kind} data cannot be read: {error}", source=str(path)) from None


def zstandard() -> ModuleType:
    """Return the library of zstd, or say what to install: it weighs 24 MB and few files need it."""
    return optional_import("zstandard", extra="zstd", purpose="files packed with zstd")


def _damage(kind: str | None) -> tuple[type[Exception], ...]:
    """Return the errors by which a library says that its data are damaged."""
    own = (zstandard().ZstdError,) if kind == "zstd" else (zlib.error, lzma.LZMAError)
    return OSError, EOFError, *own


_OPENERS: dict[str | None, Callable[[Path], Any]] = {
    None: lambda path: path.open("rb"),
    "gzip": gzip.open,
    "bzip2": bz2.open,
    "xz": lzma.open,
    "zstd": lambda path: zstandard().open(path, "rb"),
}


def _refuse_others(head: bytes) -> None:
    """Refuse by name what is no table, or packed in a way that is not read."""
    hint = "save or unpack the table as .csv, .jsonl or .parquet; .csv.gz is read too"
    for what, starts in _OTHERS.items():
        if head.startswith(starts):
            raise InputError(f"the file is {what}, not a table of text or parquet", hint=hint)


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, unpacked where it is packed, up to the limit of a table."""
    return path.read_bytes() if packed_by(path) is None else b"".join(_pieces(path))


def first_bytes(path: Path, most: int) -> bytes:
    """Return the start of a file, unpacked where it is packed."""
    with unpacked(path) as file:
        return bytes(file.read(most))


def plain_text(path: Path) -> bytes:
    """Return a text as UTF-8 without marks at its start, also where it is UTF-16 or gzipped."""
    raw = read_bytes(path)
    about: dict[str, Any] = {"source": str(path), "hint": "save the table as UTF-8"}
    if raw.startswith(_UTF32):
        raise InputError("the text is UTF-32", **about)
    if raw.startswith(_UTF16):
        try:
            raw = raw.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise InputError(f"the UTF-16 text cannot be read: {error}", **about) from None
    while raw.startswith(_UTF8):
        raw = raw.removeprefix(_UTF8)
    return raw


def require_unpackable(path: Path) -> None:
    """Refuse a packed file that unpacks to more than the limit of a table.

    A few megabytes may hold gigabytes, and whoever unpacks them for us would not stop.
    """
    kind = packed_by(path)
    # Gzip packs at most about a thousandfold: most files need no second look.
    small = kind == "gzip" and path.stat().st_size * 1032 <= limit("unpacked_bytes")
    if kind is not None and not small:
        for _ in _pieces(path):
            pass


def _pieces(path: Path) -> Iterator[bytes]:
    most, observed = limit("unpacked_bytes"), 0
    with unpacked(path) as file:
        while piece := file.read(_PIECE):
            observed += len(piece)
            if observed > most:
                rule = f"the {packed_by(path)} data unpacks to more than {most:,} bytes"
                raise InputError(rule, source=str(path), hint=limit_hint("unpacked_bytes"))
            yield piece


def column_separator(path: Path) -> str:
    """Return the mark between the columns of a text table, told from its header."""
    line = _as_utf8(first_bytes(path, 65_536)).lstrip(b"\r\n").splitlines()
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


def is_fetched(source: str | Path) -> bool:
    """Return whether a table behind an address is read whole; parquet is read in parts.

    Examples
    --------
    >>> is_fetched("https://example.org/scores.csv.gz?raw=1"), is_fetched("s3://bucket/days")
    (True, False)
    """
    if not is_url(str(source)):
        return False
    endings = address_name(str(source)).suffixes
    endings = endings[:-1] if endings and endings[-1] in _PACKED_ENDINGS else endings
    return bool(endings) and endings[-1].lower() in _WHOLE_TABLES


def address_name(url: str) -> PurePosixPath:
    """Return the path of an address, without what follows it."""
    return PurePosixPath(url.partition("?")[0].partition("#")[0])


def database_part(source: str | Path) -> tuple[Path, str]:
    """Return the file of a database and what is asked of it, which may be nothing.

    Examples
    --------
    >>> database_part("no-such.db#scores")[1]
    ''
    """
    name, mark, what = str(source).partition(DATABASE_MARK)
    place = Path(name)
    names = mark and not Path(source).exists() and place.is_file()
    return (place, what.strip()) if names and file_format(place) == "sqlite" else (Path(source), "")


def require_there(source: str | Path) -> None:
    """Refuse a file that is not there, without loading what reads files.

    Addresses, standard input and patterns are told apart where they are read.
    """
    text = str(source)
    if is_url(text) or text == "-" or any(mark in text for mark in "*?["):
        return
    try:
        exists = database_part(source)[0].exists()
    except (OSError, ValueError):
        # A name that no system takes: said where it is opened.
        return
    if not exists:
        raise InputError("there is no such file", source=text, hint="check the path")


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


MOST_ENTRIES = 200_000
"""So many files and folders are looked through; the home of a user or `/proc` has more."""


def entries_below(folder: str | Path, ending: str = "") -> list[Path]:
    """Return the files and folders below a folder in order, or its files with an ending.

    Folders that cannot be opened are passed over, links to folders are not followed.

    Examples
    --------
    >>> entries_below("no/such/folder")
    []
    """
    entries: list[Path] = []
    observed = 0
    for place, folders, files in os.walk(folder):
        names = files if ending else [*folders, *files]
        observed += len(folders) + len(files)
        if observed > MOST_ENTRIES:
            rule = f"the folder holds more than {MOST_ENTRIES:,} files"
            hint = "name the folder in which the logs or tables are"
            raise InputError(rule, source=str(folder), hint=hint)
        entries += [Path(place, name) for name in names if name.endswith(ending)]
    return sorted(entries)
