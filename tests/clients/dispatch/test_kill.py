"""A process killed in the middle, twenty times: nothing is lost and nothing is paid twice."""

import os
import signal

from calibrant.models.ledger import Ledger
from clients.killable import ASKS, Starter, in_flight_draws, is_running, wait_until
from clients.sessions import Session, texts
from ledgers import in_flight

KILLS = 20


def kill_in_the_middle(starter, server, calls):
    """Start the study, let it make some calls, and kill it."""
    before = len(server.calls)
    pid = starter.start()
    wait_until(lambda: len(server.calls) >= before + calls)
    assert is_running(pid), "it was to be killed in the middle"
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))


def test_twenty_kills_change_nothing(server, tmp_path):
    with Ledger(tmp_path / "undisturbed.sqlite") as ledger:
        expected = texts(Session(server, ledger).run(ASKS))
    server.calls.clear()
    server.drawn.clear()
    server.behaviour.latency_s = 0.005

    path = tmp_path / "ledger.sqlite"
    with Starter(server.url, path) as starter:
        for number in range(KILLS):
            kill_in_the_middle(starter, server, calls=3 + number % 9)
    with Ledger(path) as ledger:
        committed = ledger.totals()["draws"]
        assert 0 < committed < 2 * len(ASKS)
        last = Session(server, ledger)
        assert texts(last.run(ASKS)) == expected
        assert last.dispatcher.progress.draws_new == 2 * len(ASKS) - committed
        shown = in_flight_draws(ledger)
        bought_again = {draw for draw, count in server.drawn.items() if count > 1}
        assert shown
        assert bought_again <= shown, "only calls in flight at a kill may be repeated"
        assert len(server.drawn) == 2 * len(ASKS)


def test_two_processes_on_one_study_buy_every_draw_once(server, tmp_path):
    server.behaviour.latency_s = 0.01
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    with Starter(server.url, path) as starter:
        workers = [starter.start(), starter.start()]
        wait_until(lambda: not any(map(is_running, workers)))
    assert set(server.drawn.values()) == {1}
    assert len(server.drawn) == 2 * len(ASKS)
    with Ledger(path) as ledger:
        assert ledger.totals()["draws"] == 2 * len(ASKS)
        assert in_flight(ledger) == []
