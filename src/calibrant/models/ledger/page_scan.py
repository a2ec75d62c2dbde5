"""Rows of a SQLite file, read page by page: what a damaged header or tree hides is found.

Every page of a table's leaf holds whole rows, whatever the pages around it look like. The format is
described at sqlite.org/fileformat.html; only what a ledger has is read.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE_LEAF, INDEX_LEAF = 0x0D, 0x0A
_FILE_HEADER, _WAL_HEADER, _FRAME_HEADER = 100, 32, 24
_PAGE_SIZES = (4096, 8192, 16_384, 32_768, 65_536, 2048, 1024, 512)
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}


class Row(NamedTuple):
    """A row of a table with its id, or an entry of an index, whose id is None."""

    id: int | None
    values: tuple[object, ...]


def scan_rows(path: Path) -> list[Row]:
    """Return every row that can be read in a file and its journal, in whatever table it was.

    Rows may come twice: pages leave copies behind when they are split.
    """
    raw = path.read_bytes()
    journal = path.with_name(path.name + "-wal")
    frames = journal.read_bytes() if journal.is_file() else b""
    (page_size,) = struct.unpack_from(">H", raw, 16) if len(raw) >= _FILE_HEADER else (0,)
    sizes = dict.fromkeys((65_536 if page_size == 1 else page_size, *_PAGE_SIZES))
    scans = (_scanned(raw, frames, size) for size in sizes if size in _PAGE_SIZES)
    return max(scans, key=len, default=[]) if len(raw) else []


def _scanned(raw: bytes, frames: bytes, size: int) -> list[Row]:
    main = {n + 1: raw[n * size : (n + 1) * size] for n in range(-(-len(raw) // size))}
    newer = list(_frames(frames, size))
    latest = {**main, **dict(newer)}
    return [
        row
        for number, page in (*main.items(), *newer)
        for row in _rows_of_page(page, number, latest)
    ]


def _frames(journal: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    step = _FRAME_HEADER + size
    for start in range(_WAL_HEADER, len(journal) - step + 1, step):
        (number,) = struct.unpack_from(">I", journal, start)
        yield number, journal[start + _FRAME_HEADER : start + step]


def _rows_of_page(page: bytes, number: int, pages: dict[int, bytes]) -> Iterator[Row]:
    begin = _FILE_HEADER if number == 1 else 0
    if len(page) < begin + 8 or page[begin] not in (TABLE_LEAF, INDEX_LEAF):
        return
    (count,) = struct.unpack_from(">H", page, begin + 3)
    if count > len(page) // 4:
        return
    for cell in range(count):
        at = begin + 8 + 2 * cell
        if at + 2 > len(page):
            return
        (place,) = struct.unpack_from(">H", page, at)
        try:
            yield _cell(page, place, page[begin] == TABLE_LEAF, pages)
        except (IndexError, ValueError, struct.error):
            continue  # this one is damaged, the next one may not be


def _cell(page: bytes, place: int, is_table: bool, pages: dict[int, bytes]) -> Row:
    size, place = _varint(page, place)
    id_ = None
    if is_table:
        id_, place = _varint(page, place)
    usable = len(page)
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    if not 0 < size < 2**31:
        raise ValueError("no size of a row")
    if size <= most:
        body = page[place : place + size]
    else:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = local if local <= most else least
        (follows,) = struct.unpack_from(">I", page, place + local)
        body = page[place : place + local] + _overflow(follows, size - local, usable, pages)
    if len(body) != size:
        raise ValueError("the row is cut off")
    return Row(id_, _record(body))


def _overflow(number: int, size: int, usable: int, pages: dict[int, bytes]) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        page = pages.get(number, b"")
        (number,) = struct.unpack_from(">I", page, 0)
        parts.append(page[4 : 4 + min(size, usable - 4)])
        size -= len(parts[-1])
        if not parts[-1] or len(parts) > len(pages):
            raise ValueError("the chain of pages is broken")
    return b"".join(parts)


def _record(body: bytes) -> tuple[object, ...]:
    end, at = _varint(body, 0)
    kinds = []
    while at < end:
        kind, at = _varint(body, at)
        kinds.append(kind)
    if at != end:
        raise ValueError("no head of a row")
    values: list[object] = []
    for kind in kinds:
        length = _FIXED[kind] if kind in _FIXED else (kind - 12) // 2
        part = body[at : at + length]
        if kind in (10, 11) or len(part) != length:
            raise ValueError("no value of a row")
        values.append(_value(kind, part))
        at += length
    if at != len(body):
        raise ValueError("the row has another size")
    return tuple(values)


def _value(kind: int, part: bytes) -> object:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return struct.unpack(">d", part)[0]
    if kind <= 6:
        return int.from_bytes(part, signed=True)
    return part.decode() if kind % 2 else part


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | raw[place] & 0x7F
        if raw[place] < 0x80:
            return value, place + 1
    value = value << 8 | raw[at + 8]
    return value - (1 << 64 if value >= 1 << 63 else 0), at + 9
