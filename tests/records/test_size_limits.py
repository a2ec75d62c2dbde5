"""A small file cannot become a large one in memory, nor a walk without an end."""

import bz2
import gzip
import io
import lzma
import pickle
import zipfile

import polars as pl
import pytest
import zstandard

from calibrant.core.errors import InputError
from calibrant.data import load_scores
from calibrant.data.logs.json_text import load_json, readable_rows, readable_samples
from calibrant.data.logs.polygraph import read_plain_data
from calibrant.data.logs.zip_entries import ZipEntries, ZipEntry
from calibrant.data.questions import load_questions


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv("CALIBRANT_MOST_UNPACKED_BYTES", str(8 * 1024**2))


def test_an_entry_that_unpacks_to_gigabytes_is_not_read(tmp_path, small_limit):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("bomb.json", b" " * (200 * 1024**2))
        file.writestr("good.json", b"{}")
    assert path.stat().st_size < 1024**2
    with ZipEntries(path) as entries:
        with pytest.raises(ValueError, match="more than 8 MB"):
            entries.read(entries.entries["bomb.json"])
        assert entries.read(entries.entries["good.json"]) == b"{}"


@pytest.mark.parametrize("method", [8, 93])
def test_an_entry_that_lies_about_its_size_is_not_unpacked_whole(tmp_path, small_limit, method):
    content = b" " * (300 * 1024**2)
    if method == 93:
        packed = zstandard.ZstdCompressor().compress(content)
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("x", content)
            info = file.infolist()[0]
        packed = buffer.getvalue()[31 : 31 + info.compress_size]
    del content
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04" + packed)
    with ZipEntries(path) as entries, pytest.raises(ValueError, match="more than 8 MB"):
        entries.read(ZipEntry("x", 4, method, len(packed), 10, None))


def test_sound_entries_are_read_as_before(tmp_path):
    path = tmp_path / "log.eval"
    content = bytes(range(256)) * 40_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", content)
        file.writestr("empty", b"")
    with ZipEntries(path) as entries:
        assert entries.read(entries.entries["a"]) == content
        assert entries.read(entries.entries["empty"]) == b""


def test_deep_json_is_damage_not_a_crash():
    deep = b"[" * 200_000 + b"]" * 200_000
    with pytest.raises(ValueError, match=r"deeply|depth"):
        load_json(deep)
    assert readable_rows(b"[1, " + deep) == [1]
    assert readable_samples(b'{"version": 2, "samples": ' + deep) == {"version": 2, "samples": []}


def test_references_to_references_are_refused_at_once():
    """Each level refers ten times to the one below: thirty levels, 10^30 items, have no end."""
    data = ["x"]
    for _ in range(30):
        data = [data] * 10
    raw = pickle.dumps(data)
    assert len(raw) < 2_000
    with pytest.raises(ValueError, match="stands for more than"):
        read_plain_data(raw)


def test_a_key_whose_hash_would_never_end_is_refused_at_once():
    # A tuple of two references to the tuple before, sixty times; then a dict with it as its key.
    lines = [b"(dp99\n", b"VX\np0\n"]
    for level in range(60):
        lines.append(f"0(g{level}\ng{level}\ntp{level + 1}\n".encode())
    lines.append(b"VY\ns.")
    with pytest.raises(ValueError, match="nested"):
        read_plain_data(b"".join(lines))


def test_data_that_refers_to_itself_is_refused():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="refers to itself"):
        read_plain_data(pickle.dumps(data))


def test_plain_data_is_read_as_before():
    shared = [1.0, 2.0]
    data = {("sequence", "x"): shared, "y": {"z": shared, "w": (1, "a", None, True)}}
    assert read_plain_data(pickle.dumps(data)) == data


_CSV = b"confidence,correct\n" + b"0.5,1\n" * 400_000
_LINES = b'{"confidence": 0.5, "correct": 1}\n' * 400_000


def _arrow(_):
    buffer = io.BytesIO()
    columns = {name: pl.repeat(1, 10_000_000, eager=True) for name in ("confidence", "correct")}
    pl.DataFrame(columns).write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def _workbook(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/workbook.xml", b"<workbook/>")
        for sheet in range(9):
            file.writestr(f"xl/worksheets/sheet{sheet}.xml", content[:900_000])
    return buffer.getvalue()


BOMBS = {
    "bomb.csv.gz": (gzip.compress, _CSV),
    "bomb.csv.zst": (zstandard.ZstdCompressor().compress, _CSV),
    "bomb.csv.bz2": (bz2.compress, _CSV),
    "bomb.csv.xz": (lzma.compress, _CSV),
    "bomb.jsonl.gz": (gzip.compress, _LINES),
    "bomb.jsonl.zst": (zstandard.ZstdCompressor().compress, _LINES),
    "bomb.arrow": (_arrow, b""),
    "bomb.xlsx": (_workbook, _CSV),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_table_that_unpacks_to_gigabytes_is_not_read(tmp_path, monkeypatch, name):
    monkeypatch.setenv("CALIBRANT_MOST_UNPACKED_BYTES", "1_000_000")
    pack, content = BOMBS[name]
    path = tmp_path / name
    path.write_bytes(pack(content))
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"unpacks to (more than|about)") as refused:
        load_scores(path)
    assert "CALIBRANT_MOST_UNPACKED_BYTES" in str(refused.value)
    if name == "bomb.csv.gz":
        monkeypatch.delenv("CALIBRANT_MOST_UNPACKED_BYTES")
        assert load_scores(path, on_invalid="drop").frame.height == 400_000


def test_entries_of_a_log_share_one_limit(tmp_path, small_limit):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for sample in range(4):
            file.writestr(f"{sample}.json", b" " * (3 * 1024**2))
    with ZipEntries(path) as entries:
        assert [len(entries.read(entries.entries[f"{n}.json"])) for n in (0, 1, 1)] == [3 << 20] * 3
        with pytest.raises(ValueError, match="more than 8 MB"):
            entries.read(entries.entries["2.json"])


def test_a_gzipped_file_of_questions_has_the_same_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_MOST_UNPACKED_BYTES", "1_000_000")
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"question": "who?", "answer": "me"}\n' * 40_000))
    with pytest.raises(InputError, match="unpacks to more than"):
        load_questions(path)
