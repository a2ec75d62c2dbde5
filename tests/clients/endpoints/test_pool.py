"""Several equal endpoints: spread, left out when dead, never part of the key."""

import asyncio
from collections import Counter

import pytest

from calibrant.core.errors import InputError
from calibrant.models import Dispatcher, open_client
from calibrant.models.ledger import Ledger
from clients.server import Behaviour, Endpoint, error
from clients.sessions import client_of, questions, texts


def pool_of(*servers, **options):
    urls = [server.url + "/v1" for server in servers]
    return open_client({"kind": "vllm", "base_url": urls, "timeout_s": 5.0, **options})


def ask(client, ledger, asks, **options):
    dispatcher = Dispatcher(client, ledger, first_backoff_s=0.01, **options)

    async def go():
        found = {}
        try:
            async for outcome in dispatcher.ask_all(asks):
                found[outcome.ask.tag] = outcome
        finally:
            await client.close()
        return found

    return asyncio.run(go()), dispatcher


def served(outcomes):
    return Counter(draw.completion.served_by for one in outcomes.values() for draw in one.draws)


def test_requests_are_spread_and_the_draw_says_who_answered(ledger):
    slow = Behaviour(latency_s=0.01)
    with Endpoint(slow) as one, Endpoint(slow) as two:
        outcomes, dispatcher = ask(pool_of(one, two), ledger, questions(60))
        count = served(outcomes)
        assert set(count) == {one.url + "/v1", two.url + "/v1"}
        assert min(count.values()) >= 15
        assert (len(one.calls), len(two.calls)) == tuple(
            count[server.url + "/v1"] for server in (one, two)
        )
        assert dispatcher.findings == []


# A server that is shut down with calls under way leaves unfinished tasks behind.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_is_killed_in_the_middle_and_nothing_is_lost_or_bought_twice(tmp_path):
    asks = questions(120, draws=2)
    with Endpoint() as whole, Ledger(tmp_path / "whole.sqlite") as ledger:
        expected, _ = ask(client_of(whole), ledger, asks)
    notices = []
    two = Endpoint(Behaviour(latency_s=0.005))
    two.__enter__()
    with Endpoint(Behaviour(latency_s=0.005)) as one, Ledger(tmp_path / "l.sqlite") as ledger:
        client = pool_of(one, two)
        dispatcher = Dispatcher(
            client, ledger, first_backoff_s=0.01, max_attempts=3,
            progress=lambda progress: notices.append(progress.notice),
        )  # fmt: skip

        async def go():
            found = {}
            async for outcome in dispatcher.ask_all(asks):
                found[outcome.ask.tag] = outcome
                if len(found) == 20:
                    await asyncio.to_thread(two.__exit__)
            await client.close()
            return found

        outcomes = asyncio.run(go())
        assert texts(outcomes) == texts(expected)
        assert all(one.complete for one in outcomes.values())
        assert ledger.totals()["draws"] == 240
        drawn = one.drawn + two.drawn
        assert len(drawn) == 240
        # Only what was in flight at that moment may have been computed twice.
        assert drawn.total() - 240 <= 2 * two.most_under_way
        count = served(outcomes)
        assert count[two.url + "/v1"] > 0
        assert count[one.url + "/v1"] > count[two.url + "/v1"]
        (finding,) = dispatcher.findings
        assert (finding.kind, two.url in finding.message) == ("endpoint-left-out", True)
        (told,) = {notice for notice in notices if notice and "left out" in notice}
        assert "1 of 2 endpoints go on" in told


def test_the_key_does_not_depend_on_who_answers_or_on_later_members(server, ledger):
    asks = questions(10, draws=2)
    with Endpoint() as second:
        ask(client_of(server), ledger, asks)
        _, rerun = ask(pool_of(server, second), ledger, asks)
        assert rerun.progress.calls == 0
        _, named = ask(pool_of(second, server, endpoint=server.url + "/v1"), ledger, asks)
        assert named.progress.calls == 0
        _, other = ask(pool_of(second, server), ledger, asks)
        assert other.progress.calls == 10


def test_where_all_are_dead_the_run_gives_up_with_the_reason(ledger):
    with Endpoint() as one, Endpoint() as two:
        client = pool_of(one, two)
    outcomes, dispatcher = ask(client, ledger, questions(3), max_attempts=3)
    assert all(one.problem.kind == "exhausted" for one in outcomes.values())
    assert "given up after 3 tries" in outcomes[0].problem.message
    assert dispatcher.progress.draws_new == 0


def test_a_rate_limit_of_one_slows_that_one_only(ledger):
    limited = Behaviour(fault=lambda number, _: error(429) if number <= 8 else None)
    with Endpoint(limited) as one, Endpoint(Behaviour(latency_s=0.005)) as two:
        outcomes, dispatcher = ask(pool_of(one, two), ledger, questions(60))
        assert all(outcome.complete for outcome in outcomes.values())
        assert dispatcher.limit.allowed > 8  # the pool as a whole was not cut
        assert set(served(outcomes)) == {one.url + "/v1", two.url + "/v1"}
        assert dispatcher.findings == []


def test_a_member_that_refuses_everything_is_left_out(ledger):
    wrong = Behaviour(fault=lambda *_: error(404, "no such model"))
    with Endpoint(wrong) as one, Endpoint() as two:
        outcomes, dispatcher = ask(pool_of(one, two), ledger, questions(20))
        assert set(served(outcomes)) == {two.url + "/v1"}
        assert [finding.kind for finding in dispatcher.findings] == ["endpoint-left-out"]


@pytest.mark.parametrize("urls", [[], [5], ["http://127.0.0.1:1/v1"] * 2])
def test_a_pool_that_is_none_is_refused(urls):
    with pytest.raises(InputError):
        open_client({"kind": "vllm", "base_url": urls})


def test_a_waiting_user_is_told_which_endpoint_fails_and_when_it_is_tried_again(
    monkeypatch, server, ledger
):
    monkeypatch.setattr("calibrant.models.dispatch.limits.AFTER_S", 0.02)
    notices = []
    server.behaviour.fault = lambda number, _: error(503, "warming up") if number <= 12 else None
    outcomes, _ = ask(
        client_of(server), ledger, questions(2), progress=lambda seen: notices.append(seen.notice)
    )
    assert all(outcome.complete for outcome in outcomes.values())
    told = [notice for notice in notices if notice]
    assert server.url in told[0]
    assert "HTTP 503: warming up" in told[0]
    assert "next try in" in told[0]
    assert "answers again after" in told[-1]
