"""Entries of a zip file whose entries may be zstd-compressed, and of a zip file cut short.

Python before 3.14 lists entries of method 93 (zstd) but cannot open them. A log whose writer died
has no central directory at all; its entries are then found by their local headers.
"""

from __future__ import annotations

import mmap
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.data.formats import limit, limit_hint, zstandard

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_SIGNATURE = b"PK\x03\x04"
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_IN_ZIP64 = 0xFFFFFFFF
_SIZES_FOLLOW = 0x08
_LARGEST = 2**31
"""An entry that claims more than this is taken for damage; a sample is never that large."""
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A place in the file. Sizes and checksum are None where only the data itself can tell."""

    name: str
    start: int
    method: int
    packed: int | None
    size: int | None
    crc: int | None


class ZipEntries:
    """Random access to the entries of a zip file.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    complete
        Whether the file has its central directory; where it has none, `entries` holds what the
        local headers show.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        try:
            self._bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            self._file.close()
            raise InputError("the file is empty") from None
        self._sizes: dict[str, int] = {}
        self._total = 0
        try:
            self.entries = {entry.name: entry for entry in self._listed()}
            self.complete = True
        except (zipfile.BadZipFile, NotImplementedError, struct.error, UnicodeDecodeError):
            self.entries = {entry.name: entry for entry in self._found()}
            self.complete = False

    def __enter__(self) -> ZipEntries:
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes.close()
        self._file.close()

    def read(self, entry: ZipEntry) -> bytes:
        """Return the content; damage raises ValueError with the reason.

        All entries that are read share one limit.
        """
        start = entry.start
        if entry.packed is not None:
            data = self._bytes[start : start + entry.packed]
            if len(data) < entry.packed:
                raise ValueError(f"cut short: {len(data)} of {entry.packed} bytes are there")
        else:
            # Where the data must have ended: the compressed stream knows its own end.
            following = self._bytes.find(_SIGNATURE, start)
            data = self._bytes[start : following if following >= 0 else len(self._bytes)]
        earlier = self._total - self._sizes.get(entry.name, 0)
        if (entry.size or 0) > limit("unpacked_bytes") - earlier:
            raise _too_large()
        content = self._unpacked(entry, data, limit("unpacked_bytes") - earlier)
        self._sizes[entry.name] = len(content)
        self._total = earlier + len(content)
        if entry.size is not None and len(content) != entry.size:
            raise ValueError(f"{len(content)} bytes where {entry.size} are declared")
        if entry.crc is not None and zlib.crc32(content) != entry.crc:
            raise ValueError("the checksum does not match")
        return content

    def _unpacked(self, entry: ZipEntry, data: bytes, most: int) -> bytes:
        """Return the content, up to the size that a sample may have."""
        if entry.method == _STORED:
            return data
        content, ended = bytearray(), False
        try:
            if entry.method == _ZSTD:
                content, ended = _unzstd(data, most)
            elif entry.method == _DEFLATED:
                inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                content += inflate.decompress(data, most + 1)
                ended = inflate.eof
            else:
                raise InputError(
                    f"entry {entry.name!r} uses zip compression {entry.method}",
                    hint="pack the log again, with deflate or zstd",
                )
        except zlib.error as error:
            raise ValueError(f"the compressed data is damaged: {error}") from None
        if len(content) > most:
            raise _too_large()
        if not ended:
            raise ValueError("the compressed data is cut short")
        return bytes(content)

    def _listed(self) -> Iterator[ZipEntry]:
        """Yield the entries of the central directory."""
        with zipfile.ZipFile(self._file) as directory:
            for info in directory.infolist():
                head = self._bytes[info.header_offset : info.header_offset + _LOCAL.size]
                # The local header has name and extra lengths of its own.
                *_, name_length, extra_length = _LOCAL.unpack(head)
                yield ZipEntry(
                    info.filename,
                    info.header_offset + _LOCAL.size + name_length + extra_length,
                    info.compress_type,
                    info.compress_size,
                    min(info.file_size, _LARGEST),
                    info.CRC,
                )

    def _found(self) -> Iterator[ZipEntry]:
        """Yield the entries whose local headers are there, in the order of the file."""
        position = self._bytes.find(_SIGNATURE)
        while position >= 0 and position + _LOCAL.size <= len(self._bytes):
            entry = self._entry_at(position)
            if entry is None:
                position = self._bytes.find(_SIGNATURE, position + 4)
                continue
            yield entry
            past = entry.start + (entry.packed or 0)
            position = self._bytes.find(_SIGNATURE, max(past, position + 4))

    def _entry_at(self, position: int) -> ZipEntry | None:
        fields = _LOCAL.unpack(self._bytes[position : position + _LOCAL.size])
        _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = fields
        name_start = position + _LOCAL.size
        start = name_start + name_length + extra_length
        if method not in (_STORED, _DEFLATED, _ZSTD) or start > len(self._bytes):
            return None
        try:
            name = self._bytes[name_start : name_start + name_length].decode("utf-8")
        except UnicodeDecodeError:
            return None
        if _IN_ZIP64 in (packed, size):
            wide = _zip64_sizes(self._bytes[name_start + name_length : start])
            if wide is None:
                return None
            size, packed = wide
        if flags & _SIZES_FOLLOW and not packed:
            return ZipEntry(name, start, method, None, None, None)
        return ZipEntry(name, start, method, packed, size, crc)


def _unzstd(data: bytes, most: int) -> tuple[bytearray, bool]:
    """Return content packed with zstd, and whether its end was reached."""
    library, content = zstandard(), bytearray()
    stream = library.ZstdDecompressor().decompressobj()
    try:
        for start in range(0, len(data), _PIECE):
            content += stream.decompress(data[start : start + _PIECE])
            if len(content) > most:
                raise _too_large()
    except library.ZstdError as error:
        raise ValueError(f"the compressed data is damaged: {error}") from None
    return content, stream.eof


def _too_large() -> ValueError:
    """Three megabytes can unpack to six gigabytes: say where the line is and how to move it."""
    most, hint = limit("unpacked_bytes"), limit_hint("unpacked_bytes")
    return ValueError(f"unpacks to more than {most / 1024**2:,.0f} MB: not read ({hint})")


def _zip64_sizes(extra: bytes) -> tuple[int, int] | None:
    """Return (size, packed size) from the zip64 field of a local header."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        if kind == 1 and length >= 16:
            size, packed = struct.unpack_from("<QQ", extra, place + 4)
            return size, packed
        place += 4 + length
    return None
