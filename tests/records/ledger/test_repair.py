"""A ledger damaged in thirty ways: the backup takes its place, and what is lost is told."""

import random
import shutil
import sqlite3

import pytest

from calibrant.core.errors import InputError, SchemaError
from calibrant.models.codec import encode_completion
from calibrant.models.ledger import DrawRow, Ledger, LedgerKey
from calibrant.models.ledger.repair import back_up, backup_path, repair_ledger
from calibrant.models.ledger.store import BACKUP_EVERY_S
from calibrant.models.protocol import Completion, Usage
from calibrant.verbs.run import run
from collect.studies import write_study
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


def write_requests(ledger, numbers):
    for number in numbers:
        with ledger.writing():
            (request,) = ledger.register([key(number)])
            attempt = start_attempt(ledger, request, first_draw=0, n=DRAWS)
            rows = [
                DrawRow(request, draw, attempt, payload(number, draw), "m", 20, 10, 0.01)
                for draw in range(DRAWS)
            ]
            ledger.keep_all([(attempt, rows)])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A ledger of 280 draws, all of it in the one file, with its backup beside it."""
    path = tmp_path_factory.mktemp("sound") / "ledger.sqlite"
    with Ledger(path) as ledger:
        write_requests(ledger, range(REQUESTS))
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


def damaged(sound, folder, name, backup):
    """A copy of the ledger with this damage, and with what is given as its backup."""
    source, roots = sound
    path = folder / "ledger.sqlite"
    raw = bytearray(source.read_bytes())
    DAMAGES[name](raw, roots)
    path.write_bytes(raw)
    if backup is not None:
        shutil.copy(backup, backup_path(path))
    return path, raw


def saved_draws(path, *, may_differ=False):
    """How many draws a ledger holds; each has the payload that was written."""
    saved = 0
    with Ledger(path, read_only=True) as ledger:
        for number, id_ in enumerate(ledger.find([key(number) for number in range(REQUESTS)])):
            for stored in [] if id_ is None else ledger.draws([id_], below=DRAWS):
                saved += 1
                assert may_differ or stored.payload == payload(number, stored.draw)
    return saved


@pytest.mark.parametrize("name", DAMAGES)
def test_with_the_backup_of_a_run_that_ended_nothing_is_lost(sound, tmp_path, name):
    path, raw = damaged(sound, tmp_path, name, backup_path(sound[0]))
    found = repair_ledger(path)
    if found.backup is None:
        assert found.problems == [], "nothing was wrong, and nothing was changed"
        assert path.read_bytes() == raw
    else:
        assert found.backup.read_bytes() == raw, "a copy of the damaged file is kept"
        assert found.saved_at is not None
    assert found.draws == TOTAL
    # Bits that flip in the numbers of a draw name one that never was.
    assert found.lost == 0 or "bits" in name
    assert saved_draws(path, may_differ=found.backup is None) == TOTAL
    again = repair_ledger(path)
    assert (again.problems, again.draws, again.lost) == ([], TOTAL, 0)


@pytest.fixture(scope="module")
def older(sound, tmp_path_factory):
    """The backup as it was when half of the draws were there."""
    path = tmp_path_factory.mktemp("older") / "ledger.sqlite"
    with Ledger(path) as ledger:
        write_requests(ledger, range(REQUESTS // 2))
    return backup_path(path)


@pytest.mark.parametrize("name", DAMAGES)
def test_an_older_backup_is_filled_up_from_what_can_be_read(sound, older, tmp_path, name):
    path, _ = damaged(sound, tmp_path, name, older)
    found = repair_ledger(path)
    assert found.draws >= TOTAL // 2
    assert saved_draws(path, may_differ="bits" in name) == found.draws
    if found.draws + found.lost < TOTAL:
        assert found.unread, "what cannot be counted is told"
    else:
        assert found.draws + found.lost == TOTAL or "bits" in name
    again = repair_ledger(path)
    assert (again.problems, again.draws, again.lost) == ([], found.draws, 0)


def test_without_a_backup_one_page_of_noise_costs_few_draws(sound, tmp_path):
    path, _ = damaged(sound, tmp_path, "one page of noise", None)
    found = repair_ledger(path)
    assert found.saved_at is None
    assert found.draws + found.lost == TOTAL
    assert found.draws >= TOTAL * 0.9
    assert saved_draws(path) == found.draws


def test_a_damaged_ledger_does_not_replace_its_backup(sound, tmp_path):
    path, _ = damaged(sound, tmp_path, "the root of draws", backup_path(sound[0]))
    before = backup_path(path).read_bytes()
    with pytest.raises(sqlite3.DatabaseError):
        back_up(path)
    assert backup_path(path).read_bytes() == before
    assert [item.name for item in tmp_path.glob("ledger.backup*")] == ["ledger.backup.sqlite"]


def test_a_backup_is_made_when_a_run_ends_and_every_ten_minutes(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        write_requests(ledger, range(3))
        ledger.checkpoint()
        assert not backup_path(path).exists()
        ledger._backed_up_at -= BACKUP_EVERY_S
        ledger.checkpoint()
        assert saved_draws(backup_path(path)) == 3 * DRAWS
        ledger.checkpoint()
        write_requests(ledger, range(3, 5))
    assert saved_draws(backup_path(path)) == 5 * DRAWS
    ended = backup_path(path).stat().st_mtime_ns
    with Ledger(path) as ledger:
        ledger.totals()
    assert backup_path(path).stat().st_mtime_ns == ended, "nothing new, nothing copied"


def test_a_backup_that_cannot_be_written_is_told_and_the_ledger_is_whole(tmp_path):
    path = tmp_path / "ledger.sqlite"
    backup_path(path).mkdir()
    ledger = Ledger(path)
    write_requests(ledger, [0])
    with pytest.warns(UserWarning, match="no new backup"):
        ledger.close()
    assert saved_draws(path) == DRAWS


@pytest.mark.parametrize("name", ["one page of noise", "the last page is gone", "a bit of byte 0"])
def test_what_only_the_journal_holds_is_saved_where_the_file_can_be_opened(sound, tmp_path, name):
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
    DAMAGES[name](raw, sound[1])
    other.write_bytes(raw)
    shutil.copy(backup_path(sound[0]), backup_path(other))
    found = repair_ledger(other)
    if name == "a bit of byte 0":
        assert found.draws == TOTAL
        assert "draws" in found.unread, "what came after the backup is gone, and that is told"
    else:
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


def test_an_emptied_ledger_is_not_filled_anew_in_silence(sound, tmp_path):
    path = tmp_path / "served.sqlite"
    shutil.copy(backup_path(sound[0]), backup_path(path))
    path.write_bytes(b"")
    with pytest.raises(SchemaError, match="the ledger is empty, and its backup is not") as refused:
        Ledger(path)
    assert "mv served.backup.sqlite served.sqlite" in str(refused.value)
    backup_path(path).replace(path)
    with Ledger(path, read_only=True) as ledger:
        assert ledger.totals()["draws"] == TOTAL


@pytest.mark.parametrize("damage", [b"", b"no database" * 900, None])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_run_on_a_damaged_ledger_says_how_it_is_repaired(sound, tmp_path, damage, dry_run):
    study = write_study(tmp_path / "study", "http://127.0.0.1:9/v1")
    path = study / "ledger.sqlite"
    whole = sound[0].read_bytes()
    path.write_bytes(whole[: len(whole) // 3] if damage is None else damage)
    shutil.copy(backup_path(sound[0]), backup_path(path))
    with pytest.raises(SchemaError, match="ledger") as refused:
        run(study, dry_run=dry_run)
    assert "repair=True" in str(refused.value)
