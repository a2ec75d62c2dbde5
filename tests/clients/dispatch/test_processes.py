"""Several processes on one ledger: caps hold over all of them, and no clock is believed."""

import os
import signal

import pytest

from calibrant.core.errors import BudgetError
from calibrant.models import Caps
from calibrant.models.ledger import DrawRow, Ledger, LedgerClaim, LedgerKey, Refusal
from clients.killable import ASKS, Starter, in_flight_draws, is_running, wait_until
from clients.sessions import Session
from ledgers import in_flight

HOUR_S = 3_600.0


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    return path


def run_all(server, path, options):
    with Starter(server.url, path) as starter:
        workers = [starter.start(**one) for one in options]
        wait_until(lambda: not any(map(is_running, workers)), seconds=120)


@pytest.mark.parametrize(
    "caps", [{"calls": 100}, {"tokens": 4_000}, {"money": 0.004}], ids=["calls", "tokens", "money"]
)
def test_four_processes_share_one_cap(server, path, caps):
    server.behaviour.latency_s = 0.01
    run_all(server, path, [{"caps": caps}] * 4)
    with Ledger(path) as ledger:
        totals = ledger.totals()
        assert in_flight(ledger) == []
        # The next process finds the cap as the four have left it.
        with pytest.raises(BudgetError):
            Session(server, ledger, caps=Caps(calls=len(server.calls))).run(ASKS)
    assert totals["calls"] == len(server.calls)
    spent = {
        "calls": totals["calls"],
        "tokens": totals["prompt_tokens"] + totals["completion_tokens"],
        "money": totals["cost"],
    }
    ((name, cap),) = caps.items()
    assert 0.9 * cap <= spent[name] <= cap, "the cap holds, and is made use of"
    assert set(server.drawn.values()) == {1}


@pytest.mark.parametrize("clocks", [(0.0, 600.0), (-HOUR_S, HOUR_S), (0.0, -90.0)])
def test_clocks_that_differ_buy_nothing_twice(server, path, clocks):
    server.behaviour.latency_s = 0.02
    run_all(server, path, [{"clock_s": clock} for clock in clocks])
    assert set(server.drawn.values()) == {1}
    assert len(server.drawn) == 2 * len(ASKS)
    with Ledger(path) as ledger:
        assert ledger.totals()["draws"] == 2 * len(ASKS)
        assert in_flight(ledger) == []


def test_kills_among_processes_with_wrong_clocks_lose_nothing(server, path):
    server.behaviour.latency_s = 0.01
    with Starter(server.url, path) as starter:
        for number in range(10):
            pair = [starter.start(clock_s=(-1) ** place * HOUR_S) for place in range(2)]
            before = len(server.calls)
            wait_until(lambda: len(server.calls) >= before + 4 + number)  # noqa: B023
            with Ledger(path, read_only=True) as ledger:
                committed = ledger.totals()["draws"]
            for pid in pair:
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not any(map(is_running, pair)))  # noqa: B023
            with Ledger(path, read_only=True) as ledger:
                assert ledger.totals()["draws"] >= committed
        last = starter.start()
        wait_until(lambda: not is_running(last), seconds=120)
    with Ledger(path) as ledger:
        assert ledger.totals()["draws"] == len(server.drawn) == 2 * len(ASKS)
        bought_again = {draw for draw, count in server.drawn.items() if count > 1}
        assert bought_again <= in_flight_draws(ledger), "only calls in flight at a kill"


def test_what_a_killed_process_had_under_way_stays_charged(server, path):
    """A call that was cut off may be billed: a cap counts it with the most that it can cost."""
    server.behaviour.latency_s = 5.0
    with Starter(server.url, path) as starter:
        pid = starter.start(caps={"tokens": 1_000})
        wait_until(lambda: len(server.calls) >= 4)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid))
    server.behaviour.latency_s = 0.0
    with Ledger(path) as ledger:
        charged = sum(13 + attempt.n * 16 for attempt in in_flight(ledger))
        assert charged >= 4 * 45
        with pytest.raises(BudgetError, match="cap of 1,000 tokens"):
            Session(server, ledger, caps=Caps(tokens=1_000)).run(ASKS)
        totals = ledger.totals()
    assert totals["prompt_tokens"] + totals["completion_tokens"] <= 1_000 - charged


def _bought(ledger, number, *, tokens, caps):
    """Claim a draw of a new request; commit an answer of so many tokens where it was given."""
    with ledger.writing():
        (request,) = ledger.register([LedgerKey("http://e", "m", "answer", b"%d" % number)])
        (attempt,) = ledger.claim_all([LedgerClaim(request, 0, 1, tokens, 0.0, caps)])
    return request, attempt


def test_the_rest_of_a_cap_is_given_once_and_freed_by_what_was_not_needed(path):
    caps = Caps(tokens=100)
    with Ledger(path) as first, Ledger(path) as second:
        request, attempt = _bought(first, 0, tokens=80, caps=caps)
        _, refused = _bought(second, 1, tokens=30, caps=caps)
        assert isinstance(refused, Refusal)
        assert refused.may_wait, "the call of the first may use less than it can"
        with first.writing():
            first.keep_all([(attempt, [DrawRow(request, 0, attempt, b"{}", None, 5, 5)])])
        _, given = _bought(second, 1, tokens=90, caps=caps)
        assert isinstance(given, int)
        _, refused = _bought(first, 2, tokens=1, caps=caps)
        assert isinstance(refused, Refusal)


def test_a_failed_transaction_leaves_the_account_as_it_was(path):
    caps = Caps(calls=1)
    with Ledger(path) as ledger:
        with ledger.writing():
            (request,) = ledger.register([LedgerKey("http://e", "m", "answer", b"{}")])
        ledger.begin()
        assert ledger.claim_all([LedgerClaim(request, 0, 1, 5, 0.0, caps)]) != [None]
        ledger.rollback()
        with ledger.writing():
            (attempt,) = ledger.claim_all([LedgerClaim(request, 0, 1, 5, 0.0, caps)])
            assert isinstance(attempt, int)
        with ledger.writing():
            ledger.end_attempt(attempt, "unsent")
        with ledger.writing():
            (attempt,) = ledger.claim_all([LedgerClaim(request, 0, 1, 5, 0.0, caps)])
            assert isinstance(attempt, int), "a call that was not sent is none"


def test_a_disk_that_takes_no_more_is_one_message_and_loses_nothing(server, path, tmp_path):
    """The system itself refuses to write: what is committed stays, and the next run goes on."""
    said = tmp_path / "said.txt"
    with said.open("wb") as errors, Starter(server.url, path, errors=errors) as starter:
        pid = starter.start(most_bytes=150_000)
        wait_until(lambda: not is_running(pid), seconds=120)
    assert "what was kept before stays kept" in said.read_text()
    assert "Traceback" not in said.read_text()
    with Ledger(path) as ledger:
        kept = ledger.totals()["draws"]
        assert 0 < kept < 2 * len(ASKS)
        before, under_way = len(server.drawn), in_flight_draws(ledger)
        outcomes = Session(server, ledger).run(ASKS)
        assert all(outcome.complete for outcome in outcomes.values())
        assert ledger.totals()["draws"] == 2 * len(ASKS)
    assert before >= kept
    bought_again = {draw for draw, count in server.drawn.items() if count > 1}
    assert bought_again <= under_way, "only what could not be written is bought again"
