"""A ledger damaged in thirty ways: what can be read is saved, what is lost is told."""

import random
import shutil
import sqlite3

import pytest

from calibrant.core.errors import InputError
from calibrant.models.ledger import DrawRow, Ledger, LedgerKey
from calibrant.models.ledger.repair import repair_ledger
from calibrant.models.protocol import Completion, Usage
from calibrant.models.replies.codec import encode_completion
from ledgers import start_attempt

REQUESTS, DRAWS = 70, 4
TOTAL = REQUESTS * DRAWS
PAGE = 4096


def payload(request, draw):
    # Every seventh is so long that it fills pages of its own.
    text = f"answer {draw} to question {request}" + " at length" * (900 * (request % 7 == 0))
    return encode_completion(Completion(text, "stop", Usage(20, 10)))


def key(number):
    return LedgerKey("http://127.0.0.1/v1", "m", "answer", b'{"question": %d}' % number)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A ledger of 280 draws, all of it in the one file."""
    path = tmp_path_factory.mktemp("sound") / "ledger.sqlite"
    with Ledger(path) as ledger:
        for number in range(REQUESTS):
            with ledger.writing():
                (request,) = ledger.register([key(number)])
                attempt = start_attempt(ledger, request, first_draw=0, n=DRAWS)
                rows = [
                    DrawRow(request, draw, attempt, payload(number, draw), "m", 20, 10, 0.01)
                    for draw in range(DRAWS)
                ]
                ledger.keep_all([(attempt, rows)])
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0"))
    db.close()
    assert path.stat().st_size > 60 * PAGE
    return path, roots


def flip(*places):
    def damage(raw, roots):
        for place in places:
            raw[place] ^= 1 << (place % 8)

    return damage


def fill(start, end, byte=0):
    def damage(raw, roots):
        raw[start:end] = bytes([byte]) * (end - start)

    return damage


def page_of(name, byte=0xAA):
    def damage(raw, roots):
        start = (roots[name] - 1) * PAGE
        raw[start : start + PAGE] = bytes([byte]) * PAGE

    return damage


def cut(share):
    def damage(raw, roots):
        del raw[int(len(raw) * share) :]

    return damage


def noise(seed, places):
    def damage(raw, roots):
        rng = random.Random(seed)
        for _ in range(places):
            raw[rng.randrange(PAGE, len(raw))] ^= 1 << rng.randrange(8)

    return damage


def pages_of_noise(seed, count):
    def damage(raw, roots):
        rng = random.Random(seed)
        for _ in range(count):
            start = rng.randrange(1, len(raw) // PAGE) * PAGE
            raw[start : start + PAGE] = rng.randbytes(PAGE)

    return damage


def swap(first, second):
    def damage(raw, roots):
        a, b = slice(first * PAGE, (first + 1) * PAGE), slice(second * PAGE, (second + 1) * PAGE)
        raw[a], raw[b] = raw[b], raw[a]

    return damage


DAMAGES = {
    "a bit of byte 0": flip(0),
    "a bit of byte 15": flip(15),
    "the magic word": fill(0, 16),
    "the size of a page": fill(16, 18, 0x7F),
    "the versions of the format": fill(18, 20, 9),
    "the number of pages": fill(28, 32, 0xFF),
    "the free list": fill(32, 40, 0xFF),
    "the encoding": fill(56, 60, 7),
    "the whole header": fill(0, 100),
    "the first page": fill(0, PAGE),
    "the list of tables": fill(100, PAGE, 0xFF),
    **{
        f"the root of {name}": page_of(name)
        for name in ("requests", "draws", "payloads", "draws_by_request", "attempts",
                     "attempt_ends", "failures", "meta", "sessions", "attempts_by_request")
    },
    "one page of noise": pages_of_noise(1, 1),
    "five pages of noise": pages_of_noise(2, 5),
    "ten pages of noise": pages_of_noise(3, 10),
    "twenty flipped bits": noise(4, 20),
    "two hundred flipped bits": noise(5, 200),
    "two pages in each other's place": swap(10, 20),
    "the last page is gone": cut(0.985),
    "the last tenth is gone": cut(0.9),
    "header and five pages": lambda raw, roots: (
        fill(0, 100)(raw, roots), pages_of_noise(6, 5)(raw, roots)
    ),
    "roots of all tables": lambda raw, roots: [page_of(name)(raw, roots) for name in roots],
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_what_can_be_read_is_saved_and_losses_are_told(sound, tmp_path, name):
    source, roots = sound
    path = tmp_path / "ledger.sqlite"
    shutil.copy(source, path)
    raw = bytearray(path.read_bytes())
    DAMAGES[name](raw, roots)
    path.write_bytes(raw)

    found = repair_ledger(path)

    if found.backup is None:
        assert found.problems == [], "nothing was wrong, and nothing was changed"
        assert path.read_bytes() == raw
    else:
        assert found.backup.read_bytes() == raw, "a copy of the damaged file is kept"
    assert found.draws + found.lost == TOTAL
    assert found.draws >= TOTAL // 2
    if name in list(DAMAGES)[:11]:
        assert found.lost == 0, "no answer stands on the first page"
    kept = 0
    with Ledger(path, read_only=True) as ledger:
        keys = [key(number) for number in range(REQUESTS)]
        for number, id_ in enumerate(ledger.find(keys)):
            for stored in [] if id_ is None else ledger.draws([id_], below=DRAWS):
                kept += 1
                if "bits" not in name:
                    assert stored.payload == payload(number, stored.draw)
    assert kept == found.draws
    again = repair_ledger(path)
    assert (again.problems, again.draws, again.lost) == ([], found.draws, 0)


def test_only_the_header_is_damaged_and_nothing_is_lost(sound, tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(bytes(100) + sound[0].read_bytes()[100:])
    found = repair_ledger(path)
    assert (found.draws, found.lost) == (TOTAL, 0)


def test_what_only_the_journal_holds_is_saved_too(sound, tmp_path):
    path = tmp_path / "ledger.sqlite"
    shutil.copy(sound[0], path)
    with Ledger(path) as ledger:
        with ledger.writing():
            (request,) = ledger.register([key(1000)])
            attempt = start_attempt(ledger, request, first_draw=0, n=1)
            ledger.keep_all([(attempt, [DrawRow(request, 0, attempt, payload(1000, 0))])])
        # Copied while it is open: the journal is not folded into the file yet.
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", tmp_path / f"other.sqlite{ending}")
    other = tmp_path / "other.sqlite"
    raw = bytearray(other.read_bytes())
    raw[0] ^= 1
    other.write_bytes(raw)
    found = repair_ledger(other)
    assert (found.draws, found.lost) == (TOTAL + 1, 0)


@pytest.mark.parametrize("raw", [b"", b"x" * 5000, bytes(20_000)], ids=["empty", "text", "zeros"])
def test_a_file_without_anything_to_save_is_left_alone(tmp_path, raw):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="nothing can be read"):
        repair_ledger(path)
    assert path.read_bytes() == raw
    assert [item.name for item in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_there_are_thirty_ways():
    assert len(DAMAGES) >= 30
