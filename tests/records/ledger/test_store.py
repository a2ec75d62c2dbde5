"""The ledger: append-only, shared by processes, one row per draw."""

import multiprocessing
import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.core.errors import SchemaError
from calibrant.models.ledger import DrawRow, Ledger, LedgerKey
from ledgers import add_draws, claim, failures, in_flight, start_attempt


def key(number=0, purpose="answer", endpoint="http://127.0.0.1/v1", model="m"):
    return LedgerKey(endpoint, model, purpose, f'{{"q":{number}}}'.encode())


def add(ledger, request, draws):
    with ledger.writing():
        attempt = start_attempt(ledger, request, first_draw=min(draws), n=len(draws))
        new = add_draws(
            ledger,
            [
                DrawRow(request, draw, attempt, f"text {draw}".encode(), "m-1", 3, 4, 0.5)
                for draw in draws
            ],
        )
        ledger.end_attempt(attempt, "done")
    return new


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_a_draw_is_named_by_every_part_of_its_key(ledger):
    keys = [
        key(0), key(1), key(0, "greedy"), key(0, endpoint="http://127.0.0.2/v1"), key(0, model="n")
    ]  # fmt: skip
    with ledger.writing():
        ids = ledger.register(keys)
    assert len(set(ids)) == 5
    add(ledger, ids[0], [0, 1])
    assert ledger.held(keys) == [{0, 1}, set(), set(), set(), set()]
    with ledger.writing():
        assert ledger.register(keys) == ids


def test_draws_come_back_in_order_with_what_was_stored(ledger):
    with ledger.writing():
        (request,) = ledger.register([key()])
    add(ledger, request, [2, 3])
    add(ledger, request, [0, 1])
    stored = list(ledger.draws([request], below=3))
    assert [draw.draw for draw in stored] == [0, 1, 2]
    assert stored[0].payload == b"text 0"
    assert stored[0].cost == 0.5
    said = "SELECT answered_by, prompt_tokens FROM draws WHERE draw = 0"
    assert ledger._reader.execute(said).fetchone() == ("m-1", 3)
    assert ledger.totals() == {
        "calls": 2, "draws": 4, "prompt_tokens": 12, "completion_tokens": 16, "cost": 2.0,
        "draws_without_price": 0,
    }  # fmt: skip


@pytest.mark.parametrize("table", ["requests", "attempts", "attempt_ends", "draws", "payloads"])
def test_nothing_is_changed_or_deleted(ledger, table):
    with ledger.writing():
        (request,) = ledger.register([key()])
    add(ledger, request, [0])
    db = sqlite3.connect(ledger.path)
    column = "attempt_id" if table == "attempt_ends" else "id"
    for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = 7"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(statement)
    db.close()


def test_the_first_to_commit_a_draw_wins(ledger):
    with ledger.writing():
        (request,) = ledger.register([key()])
    assert add(ledger, request, [0, 1]) == 2
    with ledger.writing():
        late = start_attempt(ledger, request, first_draw=1, n=2)
        rows = [DrawRow(request, draw, late, b"late") for draw in (1, 2)]
        assert add_draws(ledger, rows) == 1
    assert [draw.payload for draw in ledger.draws([request])] == [b"text 0", b"text 1", b"late"]


def test_an_error_inside_a_block_leaves_nothing(ledger):
    def write_and_fail():
        with ledger.writing():
            (request,) = ledger.register([key()])
            start_attempt(ledger, request, first_draw=0, n=1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert ledger.find([key()]) == [None]
    assert in_flight(ledger) == []
    with ledger.writing():
        (request,) = ledger.register([key()])
        start_attempt(ledger, request, first_draw=0, n=1)
    assert len(in_flight(ledger)) == 1


def test_a_failure_keeps_its_last_reason(ledger):
    with ledger.writing():
        (request, _) = ledger.register([key(0), key(1)])
        ledger.add_failure(request, "permanent", "first")
        ledger.add_failure(request, "permanent", "last")
    assert [(k.body, why) for k, why in failures(ledger)] == [(b'{"q":0}', "last")]


def test_a_claim_is_refused_while_another_session_asks(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as first, Ledger(path) as second:
        with first.writing():
            (request,) = first.register([key()])
            first.heartbeat()
            attempt = claim(first, request, first_draw=0, n=4)
        with second.writing():
            assert claim(second, request, first_draw=3, n=2) is None
            assert claim(second, request, first_draw=4, n=2) is not None
        with first.writing():
            first.end_attempt(attempt, "transient")
        with second.writing():
            assert claim(second, request, first_draw=3, n=1) is not None
        assert add(first, request, [0]) == 1
        with second.writing():
            assert claim(second, request, first_draw=0, n=1) is None, "it is held"


def _die_in_the_middle(path):
    ledger = Ledger(path)
    with ledger.writing():
        (request,) = ledger.register([key()])
        start_attempt(ledger, request, first_draw=0, n=3)
    time.sleep(60)


def test_a_killed_process_leaves_its_calls_in_sight_and_frees_its_claims(tmp_path):
    path = tmp_path / "ledger.sqlite"
    process = multiprocessing.get_context("spawn").Process(target=_die_in_the_middle, args=(path,))
    process.start()
    with Ledger(path) as ledger:
        deadline = time.monotonic() + 30
        while not in_flight(ledger) and time.monotonic() < deadline:
            time.sleep(0.02)
        (attempt,) = in_flight(ledger)
        assert attempt.live
        (request,) = ledger.find([key()])
        with ledger.writing():
            assert claim(ledger, request, first_draw=0, n=1) is None
        process.kill()
        process.join()
        (attempt,) = in_flight(ledger)
        assert (attempt.live, attempt.first_draw, attempt.n, attempt.purpose) == (
            False, 0, 3, "answer",
        )  # fmt: skip
        with ledger.writing():
            assert claim(ledger, request, first_draw=0, n=1) is not None


def _write_many(path, start):
    with Ledger(path) as ledger:
        for number in range(30):
            with ledger.writing():
                (request,) = ledger.register([key(number)])
            add(ledger, request, list(range(start, start + 3)))


def test_two_processes_write_at_the_same_time(tmp_path):
    path = tmp_path / "ledger.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(path, 3 * i)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    with Ledger(path) as ledger:
        assert ledger.held([key(number) for number in range(30)]) == [set(range(6))] * 30
        assert in_flight(ledger) == []


def test_another_schema_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    db = sqlite3.connect(path)
    db.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    db.commit()
    db.close()
    with pytest.raises(SchemaError, match="schema 1, got '99'"):
        Ledger(path)


def test_a_ledger_of_version_02_is_carried_on(tmp_path):
    """It had neither leases nor accounts; what it has spent counts towards caps."""
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        with ledger.writing():
            request = ledger.register([key()])[0]
        add(ledger, request, [0, 1])
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE leases")
        db.execute("DROP TABLE accounts")
    db.close()
    with Ledger(path, read_only=True) as ledger:
        assert ledger.totals()["draws"] == 2
    with Ledger(path) as ledger:
        assert add(ledger, request, [2]) == 1
        assert ledger.held([key()]) == [{0, 1, 2}]
    with sqlite3.connect(path) as db:
        spent = db.execute("SELECT TOTAL(calls), TOTAL(tokens), TOTAL(money) FROM accounts")
        # The third draw is not charged by whoever adds it here.
        assert spent.fetchone() == (2, 14, 1.0)
    db.close()


def test_what_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_text("confidence,correct\n0.5,1\n" * 100)
    with pytest.raises(SchemaError, match="not a ledger"):
        Ledger(path)
    with pytest.raises(SchemaError, match="there is no ledger"):
        Ledger(tmp_path / "none.sqlite", read_only=True)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True), max_size=8))
def test_held_is_the_union_of_what_was_added(tmp_path_factory, batches):
    with Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as ledger:
        with ledger.writing():
            (request,) = ledger.register([key()])
        total = sum(add(ledger, request, batch) for batch in batches)
        expected = set().union(*batches) if batches else set()
        assert ledger.held([key()]) == [expected]
        assert total == len(expected)
