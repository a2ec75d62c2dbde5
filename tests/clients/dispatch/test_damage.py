"""Damage to the ledger: rows without an answer, unreadable rows, broken pages, a full disk."""

import sqlite3

import pytest

from calibrant.core.errors import InputError
from calibrant.models.ledger import Ledger
from calibrant.models.ledger.repair import backup_path, ledger_error, repair_ledger
from clients.sessions import Session, questions, texts
from support import break_page

ASKS = questions(20, draws=3)


@pytest.fixture
def bought(server, tmp_path):
    """A ledger with 60 draws, and what they say."""
    path = tmp_path / "study" / "ledger.sqlite"
    path.parent.mkdir()
    with Ledger(path) as ledger:
        said = texts(Session(server, ledger).run(ASKS))
    server.calls.clear()
    return path, said


def spoil(path, sql, *args):
    """Change what the ledger itself never changes."""
    db = sqlite3.connect(path)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    db.execute(sql, args)
    db.commit()
    db.close()


def run(server, path):
    with Ledger(path) as ledger:
        session = Session(server, ledger)
        return session.run(ASKS), session


def test_a_draw_without_its_answer_is_reported_and_asked_for_again(server, bought):
    path, said = bought
    spoil(path, "DELETE FROM payloads WHERE id IN (SELECT id FROM draws ORDER BY id LIMIT 4)")
    outcomes, session = run(server, path)
    assert texts(outcomes) == said
    assert session.findings["ledger-rows-refilled"].count == 4
    assert sum(call.get("n", 1) for call in server.calls) == 4
    calls = len(server.calls)
    outcomes, session = run(server, path)
    assert texts(outcomes) == said
    assert len(server.calls) == calls
    assert "ledger-rows-refilled" not in session.findings


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"text": 3}', b'["x"]'])
def test_an_unreadable_row_is_named_and_does_not_stop_the_others(server, bought, body):
    path, said = bought
    spoil(
        path,
        "UPDATE payloads SET body = ? WHERE id = (SELECT id FROM draws ORDER BY id LIMIT 1)",
        body,
    )
    outcomes, _ = run(server, path)
    broken = [tag for tag, outcome in outcomes.items() if outcome.problem]
    assert len(broken) == 1
    assert "cannot be read" in outcomes[broken[0]].problem.message
    assert server.calls == []
    found = repair_ledger(path)
    assert (found.draws, found.lost) == (59, 1)
    assert found.backup.is_file()
    outcomes, _ = run(server, path)
    assert texts(outcomes) == said
    assert sum(call.get("n", 1) for call in server.calls) == 1


def test_broken_pages_are_told_in_one_message_and_the_rest_is_saved(server, bought):
    path, said = bought
    page = break_page(path)
    with pytest.raises(InputError, match="damaged") as caught:
        run(server, path)
    caught.value.for_shell()
    # Outside a study no command repairs a ledger: its backup takes its place.
    assert f"mv {backup_path(path).name} {path.name}" in str(caught.value)
    (path.parent / "study.toml").touch()
    with pytest.raises(InputError, match="damaged") as caught:
        run(server, path)
    caught.value.for_shell()
    assert f"calibrant run {path.parent} --repair" in str(caught.value)
    assert server.calls == []
    found = repair_ledger(path)
    assert found.problems
    copied = found.backup.read_bytes()
    assert set(copied[page]) == {0xAA}, "the copy is as it was"
    assert found.draws == 60, "an index holds nothing that the table does not"
    outcomes, _ = run(server, path)
    assert texts(outcomes) == said
    assert server.calls == [], "nothing is bought twice"


@pytest.mark.parametrize("backup", [True, False])
def test_a_broken_page_of_answers_loses_only_draws_that_no_backup_has(server, bought, backup):
    path, said = bought
    if not backup:
        backup_path(path).unlink()
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = [
        row[0]
        for row in db.execute(
            "SELECT pageno FROM dbstat WHERE name = 'payloads' AND pagetype = 'leaf'"
        )
    ] if _has_dbstat(db) else []  # fmt: skip
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    if len(pages) < 2:
        pytest.skip("this SQLite does not show its pages")
    raw = bytearray(path.read_bytes())
    raw[(pages[1] - 1) * size : pages[1] * size] = b"\xaa" * size
    path.write_bytes(raw)
    found = repair_ledger(path)
    assert found.lost == 0 if backup else 0 < found.lost < 60
    assert found.draws + found.lost == 60
    outcomes, _ = run(server, path)
    assert texts(outcomes) == said
    assert sum(call.get("n", 1) for call in server.calls) == found.lost


def _has_dbstat(db):
    try:
        db.execute("SELECT 1 FROM dbstat LIMIT 1")
    except sqlite3.OperationalError:
        return False
    return True


def test_a_sound_ledger_is_not_touched(bought):
    path, _ = bought
    before = path.read_bytes()
    found = repair_ledger(path)
    assert (found.problems, found.draws, found.lost, found.backup) == ([], 60, 0, None)
    assert path.read_bytes() == before


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, but some text that is long enough" * 100)
    with pytest.raises(InputError, match="not a ledger"):
        Ledger(path)
    with pytest.raises(InputError, match="no ledger to repair"):
        repair_ledger(tmp_path / "none.sqlite")


def test_a_full_disk_is_one_clear_message_and_the_run_goes_on_afterwards(server, tmp_path):
    """SQLite's own limit on pages gives the error of a full disk."""
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger._db.execute("PRAGMA max_page_count=24")
        with pytest.raises(InputError, match="the disk is full"):
            Session(server, ledger).run(questions(400))
        kept = ledger.totals()["draws"]
        ledger._db.execute("PRAGMA max_page_count=1000000")
    with Ledger(path) as ledger:
        calls = len(server.calls)
        outcomes = Session(server, ledger).run(questions(400))
        assert all(outcome.complete for outcome in outcomes.values())
        assert len(server.calls) - calls == 400 - kept, "what was kept is not bought again"


def test_another_error_stays_what_it_is(tmp_path):
    error = sqlite3.OperationalError("no such table: draws")
    assert ledger_error(error, tmp_path) is error
