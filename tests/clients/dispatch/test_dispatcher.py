"""Draws come from the ledger first, and are counted one by one."""

import asyncio
import contextlib

import pytest

from calibrant.core.errors import BudgetError, CapabilityError
from calibrant.models import Ask, Caps, Dispatcher, Price
from calibrant.models.ledger import Ledger, LedgerClaim
from clients.server import error
from clients.sessions import Session, client_of, question, questions, texts
from ledgers import in_flight


def test_a_second_run_asks_nothing_and_gives_the_same(server, session):
    first = session().run(questions(10, draws=4, logprobs=True))
    calls = len(server.calls)
    again = session()
    second = again.run(questions(10, draws=4, logprobs=True))
    assert len(server.calls) == calls
    for tag, outcome in first.items():
        assert [d.completion for d in outcome.draws] == [d.completion for d in second[tag].draws]
        assert all(draw.cached for draw in second[tag].draws)
    assert again.dispatcher.progress.calls == 0


def test_a_larger_number_adds_only_the_missing_draws(server, session):
    few = texts(session().run(questions(3, draws=4)))
    many = session()
    more = texts(many.run(questions(3, draws=10)))
    assert {tag: found[:4] for tag, found in more.items()} == few
    assert many.dispatcher.progress.draws_new == 3 * 6
    assert set(server.drawn.values()) == {1}
    fewer = texts(session().run(questions(3, draws=2)))
    assert {tag: found[:2] for tag, found in few.items()} == fewer


def test_draws_are_independent_of_how_calls_are_made(server, tmp_path):
    found = []
    for native_n in (1, 3, 8):
        with Ledger(tmp_path / f"{native_n}.sqlite") as ledger:
            run = Session(server, ledger, client_options={"capabilities": {"native_n": native_n}})
            outcomes = run.run(questions(2, draws=8))
            found.append(texts(outcomes))
            assert {d.completion.native_n for d in outcomes[0].draws} == (
                {False} if native_n == 1 else {True}
            )
    assert found[0] == found[1] == found[2]
    assert len(set(found[0][0])) == 8, "eight draws are eight draws"


def test_purposes_do_not_share_draws_but_equal_asks_do(server, session):
    asks = [
        Ask(question(0), "answer", 2, "a"),
        Ask(question(0), "judge", 2, "b"),
        Ask(question(0), "answer", 5, "c"),
        Ask(question(0), "answer", 1, "d"),
    ]
    run = session()
    found = texts(run.run(asks))
    assert run.dispatcher.progress.draws_new == 2 + 5
    assert found["c"][:2] == found["a"]
    assert found["d"] == found["a"][:1]


def test_what_an_endpoint_cannot_give_is_an_error_before_anything_is_sent(server, session):
    options = {"capabilities": {"logprobs": False}}
    for run in (session(client_options=options).run, _plan_of(session(client_options=options))):
        with pytest.raises(CapabilityError, match="no log-probs"):
            run(questions(3, logprobs=True))
    assert server.calls == []


def _plan_of(run):
    return run.dispatcher.plan


def test_a_plan_counts_what_is_missing(server, session):
    run = session(prices={"m": Price(1.0, 2.0)})
    session().run(questions(2, draws=3))
    plan = run.dispatcher.plan(questions(4, draws=5, purpose="answer"))
    assert (plan.asks, plan.draws_wanted, plan.draws_held, plan.calls) == (4, 20, 6, 4)
    assert plan.completion_tokens == 14 * 16
    assert plan.cost == pytest.approx((plan.prompt_tokens + 2 * plan.completion_tokens) / 1e6)


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        (Caps(calls=7), "cap of 7 calls"),
        (Caps(tokens=400), "cap of 400 tokens"),
        (Caps(money=0.0005), "cap of 0.0005"),
    ],
)
def test_caps_hold_before_dispatch_and_nothing_under_way_is_lost(
    server, session, ledger, caps, words
):
    server.behaviour.latency_s = 0.01
    run = session(caps=caps, prices={"m": Price(1.0, 1.0)})
    with pytest.raises(BudgetError, match=words):
        run.run(questions(200, draws=2))
    progress, totals = run.dispatcher.progress, ledger.totals()
    assert 0 < len(server.calls) == progress.calls
    assert caps.calls is None or progress.calls <= caps.calls
    assert caps.tokens is None or progress.prompt_tokens + progress.completion_tokens <= 400
    assert caps.money is None or progress.cost <= 0.0005
    assert totals["draws"] == progress.draws_new == sum(len(o.draws) for o in run.outcomes.values())
    assert in_flight(ledger) == []


def test_a_cap_on_money_needs_a_price(session):
    with pytest.raises(BudgetError, match="no price for the model 'm'"):
        session(caps=Caps(money=1.0)).run(questions(1))


def test_retries_count_as_calls(server, session):
    server.behaviour.fault = lambda number, body: error(500)
    with pytest.raises(BudgetError, match="cap of 3 calls"):
        session(caps=Caps(calls=3), max_attempts=10).run(questions(1))
    assert len(server.calls) == 3


def test_leaving_early_keeps_what_arrives(server, ledger):
    server.behaviour.latency_s = 0.05

    async def go():
        client = client_of(server)
        dispatcher = Dispatcher(client, ledger, start_concurrency=16)
        async with contextlib.aclosing(dispatcher.ask_all(questions(200))) as outcomes:
            async for _ in outcomes:
                break
        await client.close()

    asyncio.run(go())
    assert in_flight(ledger) == []
    assert ledger.totals()["draws"] == sum(server.drawn.values())


def test_cancelling_notes_what_was_abandoned(server, ledger, session):
    server.behaviour.latency_s = 10.0

    async def go():
        client = client_of(server, timeout_s=30.0)
        dispatcher = Dispatcher(client, ledger, drain_s=0.05)

        async def consume():
            async for _ in dispatcher.ask_all(questions(20)):
                pass

        task = asyncio.create_task(consume())
        while not server.under_way:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.close()

    asyncio.run(go())
    assert in_flight(ledger) == []
    assert ledger.totals()["draws"] == 0
    server.behaviour.latency_s = 0.0
    assert len(session().run(questions(20))) == 20


def test_asks_are_read_lazily(server, ledger):
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield Ask(question(read % 3 or read), "answer")

    async def go():
        client = client_of(server)
        outcomes = Dispatcher(client, ledger).ask_all(endless())
        async with contextlib.aclosing(outcomes):
            count = 0
            async for _ in outcomes:
                count += 1
                if count == 10:
                    break
        await client.close()

    asyncio.run(go())
    assert read < 2000


def test_two_dispatchers_share_one_ledger_object(server, ledger):
    async def go():
        client = client_of(server)

        async def collect(asks):
            return [one async for one in Dispatcher(client, ledger).ask_all(asks)]

        found = await asyncio.gather(
            collect(questions(40, draws=2)), collect(questions(40, draws=2, purpose="judge"))
        )
        await client.close()
        return found

    first, second = asyncio.run(go())
    assert len(first) == len(second) == 40
    assert ledger.totals()["draws"] == 160


def test_progress_is_told(server, session):
    told = []
    run = session(progress=told.append)
    run.run(questions(30, draws=2))
    assert told[-1].draws_new == 60
    assert told[-1].asks_done == 30


def test_an_error_of_the_callers_iterable_is_raised_after_what_was_under_way(session, ledger):
    def broken():
        yield from questions(130)
        raise RuntimeError("the file ended too early")

    run = session()
    with pytest.raises(RuntimeError, match="too early"):
        run.run(broken())
    assert len(run.outcomes) == ledger.totals()["draws"] >= 128


def test_what_is_handed_on_is_committed_already(server, ledger):
    async def go():
        client = client_of(server)
        dispatcher = Dispatcher(client, ledger)
        with Ledger(ledger.path, read_only=True) as another:
            async for outcome in dispatcher.ask_all(questions(60, draws=2)):
                (held,) = another.held([dispatcher.prepare(outcome.ask)[1]])
                assert held == {0, 1}
        await client.close()

    asyncio.run(go())


def test_two_runs_of_one_dispatcher_share_its_places(server, ledger):
    server.behaviour.latency_s = 0.005

    async def go():
        client = client_of(server)
        dispatcher = Dispatcher(client, ledger, max_concurrency=2, start_concurrency=1)

        async def consume(purpose):
            asks = questions(20, draws=2, purpose=purpose)
            return [outcome async for outcome in dispatcher.ask_all(asks)]

        found = await asyncio.wait_for(asyncio.gather(consume("a"), consume("b")), 60)
        await client.close()
        return found

    assert [len(outcomes) for outcomes in asyncio.run(go())] == [20, 20]
    assert in_flight(ledger) == []


def test_a_place_taken_after_another_process_gave_up_is_given_back(server, ledger):
    async def go():
        client = client_of(server)
        dispatcher = Dispatcher(client, ledger, max_concurrency=1, start_concurrency=1)
        asks = questions(2)
        with Ledger(ledger.path) as other:
            with other.writing():
                (request,) = other.register([dispatcher.prepare(asks[0])[1]])
                (attempt,) = other.claim_all([LedgerClaim(request, 0, 1)])

            def give_up():
                with other.writing():
                    other.end_attempt(attempt, "unsent")

            asyncio.get_running_loop().call_later(0.2, give_up)
            async with asyncio.timeout(60):
                outcomes = [outcome async for outcome in dispatcher.ask_all(asks)]
        await client.close()
        return outcomes, dispatcher.limit.free

    outcomes, free = asyncio.run(go())
    assert sorted(outcome.ask.tag for outcome in outcomes) == [0, 1]
    assert free == 1
