"""The embedded model itself: every trap of the runtime, checked on the real thing."""

import asyncio
import math
import os
import subprocess
import sys

import pytest

from calibrant.core.errors import CapabilityError, MissingDependencyError
from calibrant.models import Ask, Dispatcher, Message, Request, open_client, open_embedder
from calibrant.models.endpoints.embedded import PrefixCache
from calibrant.models.ledger import Ledger
from support import need_small_model

MODEL = "smollm2-135m-instruct"
pytestmark = pytest.mark.local


@pytest.fixture(scope="module", autouse=True)
def _weights():
    need_small_model(MODEL)


def request(text="What is the capital of France?", **options):
    settings = {"max_tokens": 3, "seed": 11, "logprobs": True, **options}
    return Request(MODEL, (Message("user", text),), **settings)


@pytest.fixture(scope="module")
def answers():
    """All calls of this module in one loop: the model is loaded once."""

    async def go():
        client = open_client({"kind": "embedded", "parallel": 2, "context": 512})
        one = [(await client.ask(request(seed=11 + i)))[0] for i in range(2)]
        both = await client.ask(request(n=2))
        mixed = await asyncio.gather(client.ask(request(n=2)), client.ask(request("A bird?")))
        warm = await client.ask(request(temperature=1.7, top_logprobs=20, max_tokens=1))
        cold = await client.ask(request(temperature=0.0, top_logprobs=20, max_tokens=1))
        greedy = await client.ask(request("What is 2+2?", temperature=0.0, max_tokens=16))
        stars = await client.ask(request("Say hello", temperature=0.0, max_tokens=7))
        plain = await client.ask(request(logprobs=False, n=2))
        errors = []
        for bad in (request(n=3), request("word " * 600)):
            try:
                await client.ask(bad)
            except Exception as error:  # noqa: BLE001
                errors.append(error)
        await client.close()
        return {
            "one": one, "both": both, "mixed": mixed[0], "warm": warm[0], "cold": cold[0],
            "greedy": greedy[0], "plain": plain, "errors": errors, "stars": stars[0],
        }  # fmt: skip

    return asyncio.run(go())


def bare(completions):
    return [(one.text, one.logprobs) for one in completions]


def test_choice_i_uses_seed_plus_i(answers):
    assert bare(answers["one"]) == bare(answers["both"])
    assert [one.seed for one in answers["both"]] == [11, 12]
    assert len({one.text for one in answers["both"]}) > 1


def test_a_neighbour_in_the_batch_changes_nothing(answers):
    assert bare(answers["mixed"]) == bare(answers["both"])


def test_log_probs_are_at_temperature_1_whatever_the_temperature(answers):
    warm, cold = (dict(answers[name].logprobs[0].top) for name in ("warm", "cold"))
    assert len(warm) == 20
    assert warm == cold
    assert 0.5 < sum(map(math.exp, warm.values())) <= 1.0


def test_the_whole_distribution_is_sampled_and_recorded(answers):
    for one in answers["both"]:
        assert one.sampler == {"top_k": 0.0, "top_p": 1.0, "min_p": 0.0}


def test_usage_counts_every_choice(answers):
    assert [one.usage.completion_tokens for one in answers["both"]] == [3] * 2
    assert [one.usage.prompt_tokens > 0 for one in answers["both"]] == [True, False]
    assert [one.usage.completion_tokens for one in answers["plain"]] == [3] * 2


def test_log_probs_are_given_only_where_asked_for(answers):
    assert [one.logprobs for one in answers["plain"]] == [None, None]


def test_the_end_token_is_left_out(answers):
    greedy = answers["greedy"]
    assert greedy.finish_reason == "stop"
    assert "".join(entry.token for entry in greedy.logprobs).strip() == greedy.text.strip()


def test_log_probs_with_gaps_inside_a_character_are_refused(answers):
    stars = answers["stars"]
    assert not stars.text.isascii()
    assert stars.logprobs is None
    assert "inside a character" in stars.logprobs_refused


def test_too_many_draws_and_too_long_prompts_are_clear_errors(answers):
    many, long = answers["errors"]
    assert isinstance(many, CapabilityError)
    assert "at most 2 draws" in str(many)
    assert "context size" in str(long)


def test_through_the_ledger_a_second_run_computes_nothing(tmp_path):
    asks = [Ask(request(f"Is {i} even?", max_tokens=1), "answer", 3, i) for i in range(2)]

    async def go():
        client = open_client({"kind": "embedded", "parallel": 2, "context": 512})
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            calls, found = [], []
            for _ in range(2):
                dispatcher = Dispatcher(client, ledger)
                found.append(
                    {one.ask.tag: [d.completion for d in one.draws]
                     async for one in dispatcher.ask_all(asks)}
                )  # fmt: skip
                calls.append(dispatcher.progress.calls)
        await client.close()
        return calls, found

    calls, (first, second) = asyncio.run(go())
    assert calls == [4, 0]
    assert first == second
    assert first[0][0].model.startswith(f"{MODEL}@")


SHOTS = (
    Message("system", "Answer in one word."),
    Message("user", "Question: What is the capital of France?"),
    Message("assistant", "Paris"),
)


def few_shot(text, **options):
    settings = {"max_tokens": 2, "seed": 5, "logprobs": True, "top_logprobs": 3, **options}
    return Request(MODEL, (*SHOTS, Message("user", f"Question: {text}")), **settings)


def test_a_cached_beginning_changes_no_bit_in_any_order():
    requests = [
        few_shot("What is the capital of Peru?", n=2),
        few_shot("What is 2 + 3?", n=2),
        few_shot("What is the capital of Peru?", temperature=0.0),
        few_shot("What is the capital of Peru?", n=2),
        few_shot("What is 2 + 3?"),
    ]

    async def go():
        client = open_client({"kind": "embedded", "parallel": 2, "context": 256})
        await client.ask(requests[0])  # loads the model, and leaves its prompt in the slots
        cache = client._prefixes
        assert cache.safe
        found = []
        for cached, order in ((False, range(5)), (True, (4, 2, 1, 3, 0)), (True, range(5))):
            cache.safe = cached
            found.append({index: bare(await client.ask(requests[index])) for index in order})
        await client.close()
        return found

    plain, backward, forward = asyncio.run(go())
    assert backward == plain
    assert forward == plain


class Recorder:
    """Stands for the runtime: notes what it is asked, says how much it had cached."""

    def __init__(self, timings):
        self.timings = timings
        self.cached = []

    def __call__(self, body):
        self.cached.append(body["cache_prompt"])
        shown = [{"token": "a", "logprob": -0.5 if self.cached[-1] else -0.7}]
        logprobs = {"content": [{"token": "a", "logprob": -0.5, "top_logprobs": shown}]}
        return {"choices": [{"logprobs": logprobs}], "timings": dict(self.timings)}


def test_a_runtime_whose_cache_changes_log_probs_is_asked_without_it():
    runtime = Recorder({"cache_n": 20, "prompt_n": 9})
    cache = PrefixCache(runtime, slots=4)
    assert not cache.safe
    del runtime.cached[:]
    cache.ask({"messages": []})
    assert runtime.cached == [False]


@pytest.mark.parametrize(
    ("timings", "sent"),
    [
        ({"cache_n": 20, "prompt_n": 9}, [True]),
        ({"cache_n": 28, "prompt_n": 1}, [True, False]),  # the last token alone
        ({"cache_n": 500, "prompt_n": 20}, [True, False]),  # more than one batch
        ({}, [True, False]),  # a runtime that does not tell
    ],
)
def test_an_answer_that_cannot_be_trusted_is_computed_again_as_a_whole(timings, sent):
    runtime = Recorder(timings)
    cache = PrefixCache(runtime, slots=4)
    cache.safe = True
    del runtime.cached[:]
    cache.ask({"messages": []})
    assert runtime.cached == sent
    cache.ask({"messages": []})
    assert runtime.cached == [*sent, False]  # the same prompt again is never taken from the cache
    cache.ask({"messages": ["other"], "n": 4})  # fills all slots
    del runtime.cached[:]
    cache.ask({"messages": []})
    assert runtime.cached == sent


def test_threads_wait_passively():
    code = (
        "import os; from calibrant.models import open_client; open_client({'kind': 'embedded'});"
        "print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "passive"


def test_without_the_extra_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'calibrant\[local\]'"):
        open_client({"kind": "embedded"})


def test_embeddings_are_unit_rows_that_put_paraphrases_nearer():
    embedder = open_embedder()
    rows = embedder.embed(["Barack Obama", "President Obama", "a kilo of potatoes"])
    assert rows.shape == (3, 512)
    assert rows.dtype == "float32"
    cosines = rows @ rows.T
    assert cosines[0, 0] == pytest.approx(1.0, abs=1e-5)
    assert cosines[0, 1] > cosines[0, 2] + 0.3
    assert embedder.embed([]).shape == (0, 512)
