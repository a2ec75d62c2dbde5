"""Every fault with every adapter: the run ends, and its table is the same or the draw is named."""

import asyncio
from collections import Counter

import pytest

from calibrant.models import Ask, Dispatcher, EndpointRefusedError, Message, Request
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.ledger import Ledger
from calibrant.models.protocol import TransientClientError
from clients.faults import FAULTS, KEPT, KEY, NAMED, SAME, STOPS
from clients.server import Behaviour, Endpoint
from ledgers import in_flight

QUESTIONS = 4


def client_of(adapter, url, timeout_s):
    options = {"timeout_s": timeout_s, "key": KEY, "most_bytes": 8 * 1024**2}
    if adapter == "openai":
        return ProviderClient(preset="vllm", base_url=url + "/v1", **options)
    if adapter == "anthropic":
        return ProviderClient(preset="anthropic", base_url=url, **options)
    return ProviderClient(preset="gemini", base_url=url + "/v1beta", **options)


def asks(adapter):
    seed = {} if adapter == "anthropic" else {"seed": 0}
    return [
        Ask(
            Request(
                "m",
                (Message("user", f"Question {number}?"),),
                temperature=0.0,
                max_tokens=16,
                **seed,
            ),
            "answer",
            1,
            number,
        )
        for number in range(QUESTIONS)
    ]


def noting(client, late):
    """Return the client, which notes the calls that it found too late.

    A short timeout is also passed by a good answer where the machine stands still for a moment:
    to ask again is right then.
    """
    ask = client.ask

    async def noted(request):
        try:
            return await ask(request)
        except TransientClientError as error:
            if str(error).startswith("no answer within"):
                late.append(request)
            raise

    client.ask = noted
    return client


def ask(adapter, url, path, *, timeout_s=20.0):
    """Run a study; return its outcomes, findings, late calls and the message that ended it."""
    late = []

    async def go():
        client = noting(client_of(adapter, url, timeout_s), late)
        outcomes, ended = {}, None
        with Ledger(path) as ledger:
            dispatcher = Dispatcher(
                client,
                ledger,
                max_concurrency=1,
                start_concurrency=1,
                first_backoff_s=0.01,
                max_attempts=4,
                patience_s=20.0,
            )
            try:
                async for outcome in dispatcher.ask_all(asks(adapter)):
                    outcomes[outcome.ask.tag] = outcome
            except EndpointRefusedError as error:
                ended = str(error)
            finally:
                await client.close()
            assert in_flight(ledger) == []
        return outcomes, {finding.kind for finding in dispatcher.findings}, late, ended

    return asyncio.run(go())


@pytest.fixture(scope="module")
def endpoint():
    with Endpoint() as server:
        yield server


@pytest.fixture(scope="module")
def good(endpoint, tmp_path_factory):
    """What each adapter gets from an endpoint without faults."""
    found = {}
    for adapter in ("openai", "anthropic", "gemini"):
        outcomes, findings, _, ended = ask(
            adapter, endpoint.url, tmp_path_factory.mktemp(adapter) / "ledger.sqlite"
        )
        assert (findings, ended) == (set(), None)
        found[adapter] = {
            tag: outcome.draws[0].completion.text for tag, outcome in outcomes.items()
        }
    return found


def strike(behaviour, fault, adapter):
    """Let the fault hit the first call of every other question: what passes by is over then."""
    met, struck = set(), set()

    def fail(number, body):
        (message,) = body.get("messages") or body["contents"]
        name = str(message)
        if name not in met and any(f"Question {even}?" in name for even in (0, 2)):
            struck.add(number)
        met.add(name)
        return fault.call() if fault.call is not None and number in struck else None

    def spoil(number, answer):
        hit = fault.spoil is not None and number in struck
        return fault.spoil(adapter, answer) if hit else answer

    behaviour.fault, behaviour.spoil = fail, spoil


def test_there_are_at_least_seventy_faults():
    assert len(FAULTS) >= 70
    assert set(Counter(fault.end for fault in FAULTS.values())) == {SAME, KEPT, NAMED, STOPS}


@pytest.mark.parametrize(
    "adapter",
    ["openai", *(pytest.param(name, marks=pytest.mark.long) for name in ("anthropic", "gemini"))],
)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_as_it_should(endpoint, good, tmp_path, adapter, name):
    fault = FAULTS[name]
    end = fault.end_for(adapter)
    endpoint.calls.clear()
    endpoint.behaviour = behaviour = Behaviour()
    strike(behaviour, fault, adapter)
    path = tmp_path / "ledger.sqlite"
    outcomes, _, late, ended = ask(adapter, endpoint.url, path, timeout_s=fault.timeout_s)
    calls = len(endpoint.calls)
    texts = {
        tag: outcome.draws[0].completion.text
        for tag, outcome in outcomes.items()
        if outcome.complete
    }
    struck = [tag for tag in range(QUESTIONS) if texts.get(tag) != good[adapter][tag]]
    if end == STOPS:
        assert ended
        assert KEY not in ended
        assert calls == 1, "nothing more is sent"
        assert outcomes == {}
    else:
        assert ended is None
    if end == SAME:
        assert texts == good[adapter]
        asked = calls - len(late)
        assert asked in (QUESTIONS, QUESTIONS + 2), "only those struck or late are repeated"
    if end == KEPT:
        assert struck, "the answers are odd"
        assert set(texts) == set(range(QUESTIONS)), "and kept"
        assert calls == QUESTIONS, "none is bought again"
    if end == NAMED:
        assert [tag for tag, one in outcomes.items() if one.problem] == struck
        assert all(outcomes[tag].problem.message for tag in struck)
        assert calls == QUESTIONS
    assert KEY.encode() not in path.read_bytes()
    # The next run asks for nothing that is held, whatever is odd about it.
    endpoint.behaviour = Behaviour()
    endpoint.calls.clear()
    again, _, _, _ = ask(adapter, endpoint.url, path)
    assert len(endpoint.calls) == QUESTIONS - len(outcomes)
    assert all(
        one.draws[0].completion.text == texts[tag] for tag, one in again.items() if tag in texts
    )
