"""Whether another process is at work is told from a count that moves, never from a time of day."""

import pytest

from calibrant.models.ledger import Ledger, LedgerKey
from calibrant.models.ledger import lookup as lookup_module
from ledgers import claim


@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that the test moves, and a time of day that is nonsense."""

    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    found = Clock()
    monkeypatch.setattr(lookup_module.Leases, "__init__", _with(found))
    return found


def _with(clock):
    def make(self):
        self._clock, self._seen = clock, {}

    return make


@pytest.fixture
def elsewhere(monkeypatch):
    """Sessions look as if they came from machines of their own."""
    monkeypatch.setattr(lookup_module, "this_machine", lambda: f"machine-{id(object())}")


KEY = LedgerKey("http://e", "m", "answer", b"{}")


def _claimed(ledger):
    with ledger.writing():
        (request,) = ledger.register([KEY])
        return claim(ledger, request, first_draw=0, n=1)


@pytest.mark.usefixtures("elsewhere")
def test_a_silent_machine_is_waited_for_a_minute_and_then_no_more(tmp_path, clock):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as silent, Ledger(path) as other:
        assert _claimed(silent) is not None
        assert _claimed(other) is None
        clock.now += 59.0
        assert _claimed(other) is None
        clock.now += 2.0
        assert _claimed(other) is not None
        with Ledger(path) as third:
            assert third._other_sessions() == {other.session}, "the silent one is noted as over"
        with silent.writing():
            silent.heartbeat()
        with Ledger(path) as third:
            assert third._other_sessions() == {silent.session, other.session}, "it is back"


@pytest.mark.usefixtures("elsewhere")
def test_a_machine_that_beats_keeps_its_claim_for_ever(tmp_path, clock):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as slow, Ledger(path) as other:
        assert _claimed(slow) is not None
        for _ in range(20):
            clock.now += 50.0
            with slow.writing():
                slow.heartbeat()
            assert _claimed(other) is None


@pytest.mark.parametrize("wrong_by", [-1e6, -61.0, 61.0, 1e9])
def test_the_time_of_day_decides_nothing(tmp_path, monkeypatch, wrong_by):
    path = tmp_path / "ledger.sqlite"
    true_time = lookup_module.time.time
    with Ledger(path) as first, Ledger(path) as second:
        assert _claimed(first) is not None
        monkeypatch.setattr(lookup_module.time, "time", lambda: true_time() + wrong_by)
        assert _claimed(second) is None
