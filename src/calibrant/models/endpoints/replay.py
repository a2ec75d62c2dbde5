"""Replay: the draws of a ledger as an endpoint, so that a study can be run again for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from msgspec import Struct
from msgspec.json import decode

from calibrant.core.errors import CapabilityError, InputError, PermanentClientError
from calibrant.models.capabilities import adjusted
from calibrant.models.ledger import Ledger, LedgerKey
from calibrant.models.protocol import Capabilities, Completion, Json, Request
from calibrant.models.replies.codec import canonical_request, decode_completion

EVERYTHING = Capabilities(
    native_n=1_000_000,
    logprobs=True,
    top_logprobs=1_000_000,
    seed=True,
    json_schema=True,
    max_temperature=float("inf"),
    samplers=("top_p", "top_k", "min_p"),
)


class ReplayClient:
    """Answers from another ledger, draw by draw; never sends anything.

    Parameters
    ----------
    ledger
        Path of the ledger to replay.
    model
        Model whose settings of then are all that may be asked for; None: anything may.
    endpoint
        Which of its endpoints; needed only where it holds several.
    capabilities
        Changes to what may be asked for; by default all that was asked for then.
    """

    def __init__(
        self,
        ledger: str | Path,
        *,
        model: str | None = None,
        endpoint: str | None = None,
        capabilities: Mapping[str, Json] | None = None,
    ) -> None:
        self._ledger = Ledger(ledger, read_only=True)
        self._sources = _sources(self._ledger, endpoint)
        # A request that asks for more than was asked for then would find nothing.
        source = self._sources.get(model or "")
        then = EVERYTHING if source is None else source.asked_for
        self.capabilities = adjusted(then, capabilities)
        endpoints = sorted({source.endpoint for source in self._sources.values()})
        if len(endpoints) != 1:
            raise InputError(
                f"a replay is of one endpoint, the ledger holds {endpoints}",
                source=str(ledger),
                hint="name one as `endpoint`",
            )
        self.endpoint = endpoints[0]

    def resolve(self, model: str) -> str:
        """Return the resolved model of the draws."""
        return self._source(model).model

    def prepare(self, request: Request) -> Request:
        """Return the request with the sampling settings that were in force."""
        return request.with_sampler(self._source(request.model).sampler)

    async def ask(self, request: Request) -> list[Completion]:
        """Raise: a replay needs to know purpose and draw index, so use the dispatcher."""
        raise CapabilityError(
            "a replay has no new draws; use it through the dispatcher, which names purpose and "
            f"draw index (asked for n = {request.n})"
        )

    async def replay(
        self, request: Request, *, purpose: str, first_draw: int, n: int
    ) -> list[Completion]:
        """Return the draws as they were then, or raise where one is missing."""
        key = LedgerKey(
            self.endpoint, self.resolve(request.model), purpose, canonical_request(request)
        )
        ids = [id_ for id_ in self._ledger.find([key]) if id_ is not None]
        target = range(first_draw, first_draw + n)
        rows = self._ledger.draws(ids, below=target.stop)
        stored = {row.draw: row.payload for row in rows}
        missing = [draw for draw in target if draw not in stored]
        if missing:
            raise PermanentClientError(
                f"{self._ledger.path} has no draw {missing[0]} of this request for {purpose!r}"
            )
        return [decode_completion(stored[draw]) for draw in target]

    async def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _source(self, model: str) -> Source:
        try:
            return self._sources[model]
        except KeyError:
            raise InputError(
                f"the ledger holds no draws of {model!r}, only of {sorted(self._sources)}",
                source=str(self._ledger.path),
            ) from None


@dataclass(frozen=True, slots=True)
class Source:
    """Where draws of a model name came from, sampling settings always sent, what was asked for."""

    endpoint: str
    model: str
    sampler: Mapping[str, float]
    asked_for: Capabilities


class KeptRequest(Struct):
    """What a replay reads of a request as the ledger keeps it."""

    model: str
    sampler: dict[str, float] = {}
    seed: int | None = None
    logprobs: bool = False
    top_logprobs: int = 0


def _sources(ledger: Ledger, endpoint: str | None) -> dict[str, Source]:
    """Return the source of each model name.

    A client may add sampling settings to every request; those of most requests are taken for
    them.
    """
    observed: dict[str, Counter[tuple[str, str, bytes]]] = {}
    request: dict[str, Capabilities] = {}
    nothing = replace(EVERYTHING, seed=False, logprobs=False, top_logprobs=0)
    for _, key in ledger.requests():
        if endpoint is None or key.endpoint == endpoint:
            body = decode(key.body, type=KeptRequest)
            sampler = orjson.dumps(body.sampler)
            observed.setdefault(body.model, Counter())[key.endpoint, key.model, sampler] += 1
            able = request.get(body.model, nothing)
            request[body.model] = replace(
                able,
                seed=able.seed or body.seed is not None,
                logprobs=able.logprobs or body.logprobs,
                top_logprobs=max(able.top_logprobs, body.top_logprobs),
            )
    if not observed:
        raise InputError("the ledger holds no requests to replay", source=str(ledger.path))
    sources = {}
    for name, counts in observed.items():
        origins = {(place, resolved) for place, resolved, _ in counts}
        if len(origins) > 1:
            raise InputError(
                f"the draws of {name!r} come from {sorted(origins)}: a replay is of one source",
                source=str(ledger.path),
                hint="name one endpoint, or use a ledger with draws of one version of the model",
            )
        place, resolved, sampler = counts.most_common(1)[0][0]
        sources[name] = Source(place, resolved, orjson.loads(sampler), request[name])
    return sources
