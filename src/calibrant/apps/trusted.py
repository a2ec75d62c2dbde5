"""`trusted`: a saved policy inside a program, without a server."""

from __future__ import annotations

import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module, util
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from calibrant.apps.serve import open_engine
from calibrant.apps.serving.engine import ServingEngine
from calibrant.apps.serving.measure import PATIENCE_S
from calibrant.apps.serving.replies import Answer, ServedReply, asked_of
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.event_loop import OwnLoop
from calibrant.trust import load_policy

T = TypeVar("T")
Messages: TypeAlias = str | Sequence[Mapping[str, object]]
"""A question: its text, or messages as a chat model takes them."""
OPENAI_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True)
class TrustedAnswer:
    """An answer, how probable it is that it is right, and whether the policy stands by it.

    `decision` is ``answer``, ``defer`` (leave the question to somebody else: `text` is None) or
    ``degraded`` (a stronger model was wanted and failed). `interval` is the 95 % interval of the
    probability, where a map of `mend` was given. `promise` holds for ``answer`` alone. `cost`
    counts calls, or what they cost where prices are given.
    """

    text: str | None
    probability: float | None
    interval: tuple[float, float] | None
    decision: str
    promise: str
    why: str
    model: str | None
    cost: float


class DeferredError(CalibrantError):
    """The policy leaves a question to somebody else; `answer` holds what is known of it."""

    def __init__(self, answer: TrustedAnswer) -> None:
        super().__init__(f"the policy leaves this question to somebody else: {answer.why}")
        self.answer = answer


class Trusted:
    """A policy that asks its models; made by `trusted`.

    Use `ask` and `score` in ordinary programs and `aask` and `ascore` inside an event loop, not
    both. ``chat.completions.create`` takes the place of an OpenAI client's.
    """

    def __init__(self, engine: ServingEngine, places: ExitStack) -> None:
        self._engine = engine
        self._places = places
        self._loop = OwnLoop()
        self.chat = _Chat(self)

    @property
    def calls(self) -> dict[str, int]:
        """Calls that one question takes of each model at most, known before anything is asked."""
        return {name: measure.calls for name, measure in self._engine.measures.items()}

    def ask(self, messages: Messages, **known: Any) -> TrustedAnswer:
        """Ask a question: a text, or messages as a chat model takes them.

        Parameters
        ----------
        messages
            The question.
        **known
            What is known of it: ``question_id``, ``kind``, ``choices``, features of the policy.
        """
        return self.wait_for(self.aask(messages, **known))

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to its end what would be awaited inside an event loop."""
        return self._loop.run(work)

    async def aask(self, messages: Messages, **known: Any) -> TrustedAnswer:
        """Ask a question inside an event loop; see `ask`."""
        return _answer(await self._ask({"messages": _turns(messages), "calibrant": known}))

    def score(self, messages: Messages, answer: str, **known: Any) -> TrustedAnswer:
        """Say how probable it is that an answer at hand is right, whoever gave it.

        The model is asked about this very answer in the way that was certified: self-asking and
        P(True) ask about it, consistency counts the draws that mean the same. What was promised
        holds for the model's own answers, so nothing is promised of others.

        Parameters
        ----------
        messages
            The question.
        answer
            The answer.
        **known
            As in `ask`.
        """
        return self.wait_for(self.ascore(messages, answer, **known))

    async def ascore(self, messages: Messages, answer: str, **known: Any) -> TrustedAnswer:
        """Score an answer inside an event loop; see `score`."""
        await self._engine.open()
        request = asked_of({"messages": _turns(messages), "calibrant": known})
        reply = await self._engine.score(request, answer)
        return replace(_answer(reply), text=answer, promise="none for an answer at hand")

    async def complete(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return a chat completion with the field ``calibrant``, or raise DeferredError."""
        reply = await self._ask({k: v for k, v in body.items() if k != "model"})
        if reply.decision == "defer":
            raise DeferredError(_answer(reply))
        number = self._engine.counts["questions"]
        return Answer(reply, reply.answer or "", reply.response, number).body

    async def _ask(self, body: Mapping[str, object]) -> ServedReply:
        await self._engine.open()
        return await self._engine.ask(asked_of(body))

    async def aclose(self) -> None:
        """Close connections and ledger."""
        await self._engine.close()
        self._places.close()

    def close(self) -> None:
        """Close connections and ledger."""
        with self._loop as loop:
            loop.run(self.aclose())

    def __enter__(self) -> Trusted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def trusted(
    policy: str | Path,
    client: Any = None,
    *,
    key_env: str | None = None,
    measured_by: str | None = None,
    mend: str | Path | None = None,
    ledger: str | Path | None = None,
    reuse: bool = False,
    patience: float = PATIENCE_S,
    confirm: str | None = None,
) -> Trusted:
    """Put a saved policy into a program: one line that asks, measures and decides.

    The confidence is measured as it was certified; where that cannot be done it is an error here,
    not later.

    Parameters
    ----------
    policy
        File of `decide` or `cascade`.
    client
        Where the models are asked: an address up to and with ``/v1``, a client of the openai
        package (its address is used), addresses by model, or None for those of the study.
    key_env
        Environment variable with the key; for a client of openai ``OPENAI_API_KEY``.
    measured_by
        For a policy of a table, how its confidence was made; see `serve`.
    mend
        Map of `mend`: the probability and its interval are then what the confidence means.
    ledger
        File that keeps every call; a temporary one by default.
    reuse
        Answer equal questions from the ledger also at a temperature above 0.
    patience
        Seconds to wait for an answer.
    confirm
        Code of the hosts and variables that the policy names itself; see `serve`.

    Examples
    --------
    >>> import calibrant as cal
    >>> with cal.trusted("policy.json") as model:  # doctest: +SKIP
    ...     answer = model.ask("What is the capital of Peru?")
    ...     print(answer.decision, answer.probability, answer.why)
    answer 0.8 4 of 5 draws say Lima
    """
    models = load_policy(policy).models
    address = getattr(client, "base_url", client)
    if client is not None and address is not client:
        key_env = key_env or OPENAI_KEY
    if isinstance(client, Mapping):
        endpoints = dict(client)
    else:
        endpoints = {} if address is None else dict.fromkeys(models, str(address).rstrip("/"))
    with ExitStack() as places:
        if ledger is None:
            ledger = Path(places.enter_context(tempfile.TemporaryDirectory())) / "served.sqlite"
        engine = open_engine(
            policy,
            endpoints=endpoints,
            keys={} if key_env is None else dict.fromkeys(models, key_env),
            price=dict.fromkeys(models, 1.0),
            per_token=False,
            ledger=ledger,
            measured_by=measured_by,
            mend=mend,
            reuse=reuse,
            patience_s=patience,
            confirm=confirm,
        )
        return Trusted(engine, places.pop_all())


def _answer(reply: ServedReply) -> TrustedAnswer:
    why = reply.why if reply.degraded is None else reply.degraded
    equal = ("probability", "interval", "decision", "promise", "model", "cost")
    # What is left to somebody else is not given, here as over HTTP.
    text = None if reply.decision == "defer" else reply.answer
    return TrustedAnswer(text, why=why, **{name: getattr(reply, name) for name in equal})


class _Chat:
    """``chat.completions.create`` of a trusted model, as an OpenAI client has it."""

    def __init__(self, trusted: Trusted) -> None:
        self._trusted = trusted

    @property
    def completions(self) -> _Chat:
        """The same object: what an OpenAI client calls by two names."""
        return self

    def create(self, *, messages: Sequence[Mapping[str, object]], **body: Any) -> Any:
        """Return a chat completion with the field ``calibrant``, or raise DeferredError.

        Parameters
        ----------
        messages
            The conversation.
        **body
            Further fields of the request; what is known of the question goes under ``extra_body``
            as ``{"calibrant": {..}}``.
        """
        return self._trusted.wait_for(self.acreate(messages=messages, **body))

    async def acreate(self, *, messages: Sequence[Mapping[str, object]], **body: Any) -> Any:
        """Return a chat completion inside an event loop; see `create`."""
        if body.get("stream"):
            raise InputError("a trusted answer is not streamed: it is judged as a whole")
        more = body.pop("extra_body", None) or {}
        completion = await self._trusted.complete({**body, **more, "messages": list(messages)})
        if util.find_spec("openai") is None:
            return _Fields(completion)
        return import_module("openai.types.chat").ChatCompletion.model_validate(completion)


class _Fields(dict[str, object]):
    """A completion whose fields are attributes, where the openai package is not installed."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        if isinstance(value, list):
            return [_Fields(item) if isinstance(item, dict) else item for item in value]
        return _Fields(value) if isinstance(value, dict) else value


def _turns(messages: Messages) -> list[Mapping[str, object]]:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
