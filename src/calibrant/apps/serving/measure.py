"""An answer and its confidence, live: the caller's own request, scored by its own tokens."""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from calibrant.answers.semantics.verdict import embedded_judge
from calibrant.core.errors import ClientError, InputError
from calibrant.models import Dispatcher
from calibrant.models.asks import Ask
from calibrant.models.endpoints.factory import open_client
from calibrant.models.ledger import Ledger
from calibrant.models.ledger.store import storage_error
from calibrant.models.protocol import Completion, Json, Request
from calibrant.trust.policy import Row

if TYPE_CHECKING:
    from calibrant.models.inference.judge import EmbeddedJudge

PATIENCE_S = 60.0
MOST_CALLS = 1024
"""Calls at a time to one endpoint; how many of them it takes is found out."""
_HOW: dict[str, Any] = {"max_attempts": 3, "patience_s": 8.0, "max_concurrency": MOST_CALLS}
"""A caller waits: an endpoint that is too busy for longer is handed on as such, with its wait."""
CUT_OFF = {"length": "was cut off at its longest", "content_filter": "was cut off by a filter"}
"""Ends of an answer that is not the whole one, whose confidence says little."""


class UpstreamError(Exception):
    """An endpoint gave no answer; `status` is what it said over HTTP."""

    def __init__(
        self, message: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True)
class Asked:
    """A caller's question: its own request, its text, and what it says about it."""

    body: Mapping[str, Json]
    text: str
    known: Row = field(default_factory=dict)

    @property
    def question_id(self) -> str:
        """The caller's name of the question, or one made from its text."""
        names = self.known.get("question_id")
        digest = hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()
        return digest if names is None else str(names)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """An answer, its confidence and why, and what they took.

    `how_sure` is `why` without the answer, `cut` says where the answer is not the whole one,
    `answered_by` and `fingerprint` are who the endpoint says has answered. `response` is the
    endpoint's own, where the caller's request was passed on.
    """

    answer: str | None = None
    confidence: float | None = None
    why: str = ""
    how_sure: str = ""
    tokens: int = 0
    new_calls: int = 0
    new_tokens: int = 0
    cut: str | None = None
    answered_by: str | None = None
    fingerprint: str | None = None
    response: Mapping[str, object] | None = None
    extra: Row = field(default_factory=dict)


NOTHING = Measured()
"""Before any model was asked."""


class Measure(Protocol):
    """One model, asked in the way that was certified."""

    unrecorded: int
    """Draws that were paid for and could not be kept."""

    @property
    def calls(self) -> int:
        """Calls that one question takes at most."""

    async def close(self) -> None:
        """Close the connections."""

    def key(self, asked: Asked) -> bytes:
        """Return what two equal questions have in common."""

    async def measure(self, asked: Asked) -> Measured:
        """Ask the model, or the ledger where the answer cannot differ."""

    async def score(self, asked: Asked, answer: str) -> Measured:
        """Ask how sure the model is of an answer that is at hand."""


PASSED_ON: dict[str, Callable[[list[float]], float]] = {
    "perplexity": lambda values: math.exp(math.fsum(values) / len(values)),
    "sequence_probability": lambda values: math.exp(math.fsum(values)),
    "min_token_probability": lambda values: math.exp(min(values)),
}
"""Confidences that the tokens of the very answer give; any request can be passed on for them."""
ENDPOINT = "endpoint"
"""The endpoint states the confidence itself, as ``calibrant.confidence`` of its answer."""


class PassedOn:
    """Pass a caller's request on, and score the answer by its own tokens.

    Parameters
    ----------
    model, address, key_env
        The model as the endpoint calls it, where that is, and which variable holds its key.
    ledger
        Where every call is kept.
    method
        One of `PASSED_ON`, or `ENDPOINT`.
    reuse
        Answer a request from the ledger also where it is drawn at a temperature.
    patience_s
        Seconds for which a caller waits.
    """

    calls = 1

    def __init__(
        self, model: str, address: str, key_env: str | None, ledger: Ledger, *,
        method: str = ENDPOINT, reuse: bool = False, patience_s: float = PATIENCE_S,
    ) -> None:  # fmt: skip
        spec = {"kind": "openai", "model": model, "base_url": address, "api_key_env": key_env or "",
                "timeout_s": patience_s}  # fmt: skip
        self.client = open_client(spec)
        self.unrecorded = 0
        self._model, self._method, self._reuse = model, method, reuse
        self._ledger, self._patience_s = ledger, patience_s
        self._dispatcher = serving_dispatcher(self, ledger)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def score(self, asked: Asked, answer: str) -> Measured:  # noqa: ARG002
        """Refuse: only the tokens of the endpoint's own answer have probabilities."""
        raise InputError(
            f"{self._method} reads the tokens of the model's own answer, and a given one has none",
            hint="certify a policy of a study on self_ask, p_true_prob or consistency",
        )

    def key(self, asked: Asked) -> bytes:
        """Return the request as it is sent."""
        return orjson.dumps(self._body(asked), option=orjson.OPT_SORT_KEYS)

    def _body(self, request: Asked) -> dict[str, Json]:
        more = {"logprobs": True} if self._method in PASSED_ON else {}
        return {**request.body, **more}

    async def measure(self, asked: Asked) -> Measured:
        """Ask the endpoint, or the ledger where the answer cannot differ."""
        body = self._body(asked)
        request = Request(self._model, (), logprobs=self._method in PASSED_ON, body=body)
        once = self._reuse or body.get("temperature") == 0
        purpose = "served" if once else f"served:{secrets.token_hex(8)}"
        async with patience(self._ledger, self._patience_s):
            (outcome,) = [o async for o in self._dispatcher.ask_all([Ask(request, purpose)])]
        if (problem := outcome.problem) is not None:
            raise UpstreamError(problem.message, problem.status, problem.retry_after)
        draw = outcome.draws[0]
        completion, new = draw.completion, int(not draw.cached)
        tokens, response = completion.usage.completion_tokens, completion.response or {}
        stated_confidence = response.get("calibrant")
        reply: Row = stated_confidence if isinstance(stated_confidence, dict) else {}
        confidence, why = self._confidence(completion, reply)
        return Measured(
            answer=completion.text,
            confidence=confidence,
            why=why,
            how_sure=why,
            tokens=tokens,
            new_calls=new,
            new_tokens=new * tokens,
            cut=cut_off([completion.finish_reason]),
            answered_by=completion.model,
            fingerprint=completion.fingerprint,
            response=completion.response,
            extra=reply,
        )

    def _confidence(self, finished: Completion, statement: Row) -> tuple[float | None, str]:
        if self._method == ENDPOINT:
            confidence = statement.get("confidence")
            if isinstance(confidence, int | float) and 0 <= confidence <= 1:
                return float(confidence), "stated by the endpoint"
            return None, "the endpoint states none"
        if not finished.logprobs:
            return None, finished.logprobs_refused or "the endpoint gave no log-probs"
        values = [token.logprob for token in finished.logprobs]
        return PASSED_ON[self._method](values), f"{self._method} of {len(values)} tokens"


def serving_dispatcher(measure: Any, ledger: Ledger) -> Dispatcher:
    """Return a dispatcher for callers who wait; what it cannot keep is handed on and counted."""

    def unkept(draws: int) -> None:
        measure.unrecorded += draws

    return Dispatcher(measure.client, ledger, retry_failures=True, unkept=unkept, **_HOW)


def cut_off(ends: list[str | None]) -> str | None:
    """Say where an answer is not the whole one.

    Examples
    --------
    >>> cut_off(["stop", "length"]), cut_off(["stop"])
    ('the answer was cut off at its longest (finish_reason length)', None)
    """
    end = next((end for end in ends if end in CUT_OFF), None)
    return None if end is None else f"the answer {CUT_OFF[end]} (finish_reason {end})"


@asynccontextmanager
async def patience(ledger: Ledger, seconds: float) -> AsyncIterator[None]:
    """Wait no longer than a caller does; an endpoint that cannot be asked is an UpstreamError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UpstreamError(f"no answer within {seconds:g} s", 504) from None
    except ClientError as error:
        after = getattr(error, "retry_after", None)
        raise UpstreamError(str(error), error.status, after) from None
    except sqlite3.Error as error:
        raise storage_error(error, ledger.path) from None


def open_reader(read_by: str | None, source: str) -> EmbeddedJudge | None:
    """Return who tells answers apart as in the study, or say that it is not here."""
    if read_by is None:
        return None
    judge = embedded_judge()
    if judge is not None and judge.name == read_by:
        # Its weights are read now: no caller waits for them, and damaged ones are an error here.
        judge.scores([("", ("yes",), "no")])
        return judge
    here = "it is not here" if judge is None else f"here is the {judge.name}"
    raise InputError(
        f"the {read_by} told the answers of its study apart, and {here}: the confidence would be "
        "another one than was certified",
        source=source,
        hint="fetch its weights with `calibrant models fetch`, and leave CALIBRANT_JUDGE unset"
        if judge is None
        else "run the study again, which pays for nothing twice, and decide anew",
    )


def check_method(method: str, source: str) -> None:
    """Refuse a method that a table's policy cannot be served with."""
    methods = (*PASSED_ON, ENDPOINT)
    if method not in methods:
        raise InputError(
            f"a confidence of a table is served as one of {', '.join(methods)}, got {method!r}",
            source=source,
        )
