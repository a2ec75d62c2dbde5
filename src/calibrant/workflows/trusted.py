"""`trusted`: a saved policy inside a program, without a server."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.event_loop import OwnLoop
from calibrant.epistemic import load_policy
from calibrant.workflows.serve import open_engine
from calibrant.workflows.serving.engine import Engine, Told, asked_of

OPENAI_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True)
class TrustedAnswer:
    """An answer, how probable it is that it is right, and whether the policy stands by it.

    `decision` is ``answer``, ``defer`` (leave the question to somebody else) or ``degraded`` (a
    stronger model was wanted and failed). `promise` holds for ``answer`` alone. `cost` counts
    calls, or what they cost where prices are given.
    """

    text: str | None
    probability: float | None
    decision: str
    promise: str
    why: str
    model: str | None
    cost: float


class Trusted:
    """A policy that asks its models; made by `trusted`.

    Use `ask` in ordinary programs and `aask` inside an event loop, not both.
    """

    def __init__(
        self, engine: Engine, folder: tempfile.TemporaryDirectory[str] | None = None
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._loop: OwnLoop | None = None
        self._is_open = False

    def ask(self, messages: str | Sequence[Mapping[str, Any]], **known: Any) -> TrustedAnswer:
        """Ask a question: a text, or messages as a chat model takes them.

        Parameters
        ----------
        messages
            The question.
        **known
            What is known of it: ``question_id``, ``kind``, ``choices``, features of the policy.
        """
        self._loop = self._loop or OwnLoop()
        return self._loop.run(self.aask(messages, **known))

    async def aask(
        self, messages: str | Sequence[Mapping[str, Any]], **known: Any
    ) -> TrustedAnswer:
        """Ask a question inside an event loop; see `ask`."""
        if not self._is_open:
            await self._engine.open()
            self._is_open = True
        turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        told = await self._engine.ask(asked_of({"messages": list(turns), "calibrant": known}))
        return _answer(told, str(self._engine.about["promise"]))

    async def aclose(self) -> None:
        """Close connections and ledger."""
        await self._engine.close()
        if self._folder is not None:
            self._folder.cleanup()

    def close(self) -> None:
        """Close connections and ledger."""
        with self._loop or OwnLoop() as loop:
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
    ledger: str | Path | None = None,
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
    ledger
        File that keeps every call; a temporary one by default.

    Examples
    --------
    >>> import calibrant as cal
    >>> with cal.trusted("policy.json") as model:  # doctest: +SKIP
    ...     answer = model.ask("What is the capital of Peru?")
    ...     print(answer.decision, answer.probability, answer.why)
    answer 0.8 4 of 5 draws say Lima
    """
    loaded = load_policy(policy)
    fitted_on = dict(getattr(loaded, "fitted_on", {}))
    models = list(getattr(loaded, "models", None) or [str(fitted_on.get("model", "model"))])
    address = getattr(client, "base_url", client)
    if client is not None and address is not client:
        key_env = key_env or OPENAI_KEY
    if isinstance(client, Mapping):
        endpoints = dict(client)
    else:
        endpoints = {} if address is None else dict.fromkeys(models, str(address).rstrip("/"))
    folder = tempfile.TemporaryDirectory() if ledger is None else None
    engine = open_engine(
        policy,
        endpoints=endpoints,
        keys={} if key_env is None else dict.fromkeys(models, key_env),
        price=dict.fromkeys(models, 1.0),
        per_token=False,
        ledger=Path(folder.name) / "served.sqlite" if folder is not None else Path(str(ledger)),
        measured_by=measured_by,
    )
    return Trusted(engine, folder)


def _answer(told: Told, promise: str) -> TrustedAnswer:
    stands = told.decision == "answer"
    return TrustedAnswer(
        told.answer,
        told.confidence,
        told.decision,
        promise if stands else "none for this answer",
        told.why if told.failure is None else told.failure,
        told.model,
        told.cost,
    )
