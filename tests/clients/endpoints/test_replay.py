"""A study run again from its ledger, for nothing."""

import pytest

from calibrant.core.errors import InputError
from calibrant.models import open_client
from calibrant.models.ledger import Ledger
from clients.sessions import Session, client_of, questions


@pytest.mark.parametrize("preset", ["vllm", "openai"])
def test_a_replay_gives_the_same_draws_and_sends_nothing(server, tmp_path, preset):
    asks = questions(5, draws=6, logprobs=True) + questions(2, draws=1, purpose="greedy")
    with Ledger(tmp_path / "paid.sqlite") as ledger:
        paid = Session(server, ledger, client=client_of(server, preset=preset)).run(asks)
    calls = len(server.calls)
    client = open_client({"kind": "replay", "ledger": tmp_path / "paid.sqlite"})
    with Ledger(tmp_path / "again.sqlite") as ledger:
        run = Session(server, ledger, client=client)
        again = run.run(asks)
        assert ledger.totals()["draws"] == 5 * 6 + 2
    assert len(server.calls) == calls
    for tag, outcome in paid.items():
        assert [d.completion for d in outcome.draws] == [d.completion for d in again[tag].draws]


def test_what_was_never_drawn_is_set_aside(server, tmp_path):
    with Ledger(tmp_path / "paid.sqlite") as ledger:
        Session(server, ledger).run(questions(1, draws=2))
    client = open_client({"kind": "replay", "ledger": tmp_path / "paid.sqlite"})
    with Ledger(tmp_path / "again.sqlite") as ledger:
        outcome = Session(server, ledger, client=client).run(questions(1, draws=4))[0]
    assert "has no draw 2" in outcome.problem.message


def test_an_empty_ledger_cannot_be_replayed(tmp_path):
    Ledger(tmp_path / "empty.sqlite").close()
    with pytest.raises(InputError, match="no requests to replay"):
        open_client({"kind": "replay", "ledger": tmp_path / "empty.sqlite"})
