"""From a description to a client: an endpoint, several as one, or the replay of a ledger."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
from msgspec import Struct, structs
from msgspec.json import decode

from calibrant.core import errors
from calibrant.models import protocol
from calibrant.models.asks import PRESETS, adjusted
from calibrant.models.codec import canonical_request, decode_completion
from calibrant.models.dispatch.limits import FAILURES, AdaptiveLimit, Breaker
from calibrant.models.endpoints.batches import BatchClient
from calibrant.models.endpoints.embedded import EmbeddedClient
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.endpoints.secrets import key_from_environment
from calibrant.models.ledger import Ledger, LedgerKey
from calibrant.models.protocol import Capabilities, Client, Completion, Json, Request

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
            raise errors.InputError(
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
        raise errors.CapabilityError(
            "a replay has no new draws; use it through the dispatcher, which names purpose and "
            f"draw index (asked for n = {request.n})"
        )

    async def replay(
        self, request: Request, *, purpose: str, first_draw: int, n: int
    ) -> list[Completion]:
        """Return the draws as they were then, or raise where one is missing."""
        model, body = self.resolve(request.model), canonical_request(request)
        key = LedgerKey(self.endpoint, model, purpose, body)
        ids = [id_ for id_ in self._ledger.find([key]) if id_ is not None]
        target = range(first_draw, first_draw + n)
        rows = self._ledger.draws(ids, below=target.stop)
        stored = {row.draw: row.payload for row in rows}
        missing = [draw for draw in target if draw not in stored]
        if missing:
            raise errors.PermanentClientError(
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
            raise errors.InputError(
                f"the ledger holds no draws of {model!r}, only of {sorted(self._sources)}",
                source=str(self._ledger.path),
            ) from None


class Source(Struct, frozen=True):
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
    observed: defaultdict[str, Counter[tuple[str, str, bytes]]] = defaultdict(Counter)
    abilities: dict[str, Capabilities] = {}
    nothing = structs.replace(EVERYTHING, seed=False, logprobs=False, top_logprobs=0)
    for _, key in ledger.requests():
        if endpoint is None or key.endpoint == endpoint:
            body = decode(key.body, type=KeptRequest)
            sampler = orjson.dumps(body.sampler)
            observed[body.model][key.endpoint, key.model, sampler] += 1
            able = abilities.get(body.model, nothing)
            abilities[body.model] = structs.replace(
                able,
                seed=able.seed or body.seed is not None,
                logprobs=able.logprobs or body.logprobs,
                top_logprobs=max(able.top_logprobs, body.top_logprobs),
            )
    if not observed:
        raise errors.InputError("the ledger holds no requests to replay", source=str(ledger.path))
    sources = {}
    for name, counts in observed.items():
        origins = {(place, resolved) for place, resolved, _ in counts}
        if len(origins) > 1:
            raise errors.InputError(
                f"the draws of {name!r} come from {sorted(origins)}: a replay is of one source",
                source=str(ledger.path),
                hint="name one endpoint, or use a ledger with draws of one version of the model",
            )
        place, resolved, sampler = counts.most_common(1)[0][0]
        sources[name] = Source(place, resolved, orjson.loads(sampler), abilities[name])
    return sources


MOST_CALLS = 256


class _Member(Struct):
    """One of the endpoints, and how it does."""

    client: protocol.PreparingClient
    limit: AdaptiveLimit
    breaker: Breaker
    under_way: int = 0

    @property
    def load(self) -> float:
        """Calls under way and waiting, per place."""
        return self.under_way / max(1, self.limit.allowed)

    def is_out(self, now: float) -> bool:
        """Whether it is left out, or is being tried by a first call after that."""
        tried = self.breaker.failures >= FAILURES and self.under_way > 0
        return tried or self.breaker.closed_for(now) > 0


class PoolClient:
    """Endpoints that serve the same model with the same settings, asked as one.

    Which of them answers is written down with the draw (`Completion.served_by`) and is no part
    of the ledger key: a draw is the same draw whoever computed it.

    Parameters
    ----------
    clients
        The endpoints.
    name
        Name in the ledger key; the first endpoint's by default, so that a study that began
        with one server keeps its draws when more are added behind it.
    """

    def __init__(
        self, clients: Sequence[protocol.PreparingClient], *, name: str | None = None
    ) -> None:
        names = [client.endpoint for client in clients]
        if len(set(names)) != len(names) or not names:
            raise errors.InputError(f"the endpoints of a pool differ from each other, got {names}")
        self.capabilities = clients[0].capabilities
        most = self.capabilities.concurrency or MOST_CALLS
        self._members = [_Member(client, AdaptiveLimit(most), Breaker()) for client in clients]
        self.endpoint = name or names[0]

    @property
    def members(self) -> list[protocol.PreparingClient]:
        """The clients themselves."""
        return [member.client for member in self._members]

    def resolve(self, model: str) -> str:
        """Return the exact model behind the name."""
        return self._members[0].client.resolve(model)

    def prepare(self, request: Request) -> Request:
        """Return the request as it will be sent, or raise CapabilityError."""
        return self._members[0].client.prepare(request)

    async def ask(self, request: Request) -> list[Completion]:
        """Ask the endpoint that has most room; raise ElsewhereError where another may do."""
        member = self._choose()
        member.under_way += 1
        try:
            await member.limit.acquire()
            began = time.monotonic()
            try:
                completions = await member.client.ask(request)
            finally:
                member.limit.release()
        except (errors.TransientClientError, protocol.EndpointRefusedError) as error:
            raise self._failed(member, error) from None
        finally:
            member.under_way -= 1
        member.limit.succeeded()
        member.breaker.answered(began)
        name = member.client.endpoint
        return [structs.replace(completion, served_by=name) for completion in completions]

    async def close(self) -> None:
        """Close all of them."""
        for member in self._members:
            await member.client.close()

    def _choose(self) -> _Member:
        now = time.monotonic()
        usable = [member for member in self._members if not member.is_out(now)]
        if usable:
            return min(usable, key=lambda member: member.load)
        # Where all are left out, the one that may come back first is asked all the same: its
        # error then reaches the dispatcher, which knows how long to wait and when to give up.
        return min(self._members, key=lambda member: member.breaker.until)

    def _failed(
        self, member: _Member, error: errors.TransientClientError | protocol.EndpointRefusedError
    ) -> errors.TransientClientError | protocol.EndpointRefusedError:
        """Note the failure; return the error that the dispatcher is to see."""
        now, name = time.monotonic(), member.client.endpoint
        limited = left_out = False
        if isinstance(error, protocol.OverloadError):
            # Its own calls wait as long as it asks; the others need not.
            member.limit.overloaded(now=now, retry_after=error.retry_after)
            limited = error.rate_limited
        if not limited:  # what asks for patience is alive
            refused = isinstance(error, protocol.EndpointRefusedError)
            left_out = member.breaker.failed(now, for_good=refused)
        remaining = sum(not peer.is_out(now) for peer in self._members if peer is not member)
        if not remaining:
            return error
        elsewhere = protocol.ElsewhereError(f"{name}: {error}", rate_limited=limited)
        if left_out:
            elsewhere.left_out = name
            elsewhere.notice = (
                f"{name} is left out for {member.breaker.closed_for(now):.0f} s ({error}); "
                f"{remaining} of {len(self._members)} endpoints go on"
            )
        return elsewhere


SHARED = (
    "base_url", "api_key_env", "capabilities", "timeout_s", "most_bytes", "extra_headers",
    "extra_body", "thinking_tokens", "reasoning_effort", "batch",
)  # fmt: skip
EMBEDDED = ("parallel", "context", "threads", "capabilities")
REPLAY = ("ledger", "endpoint", "capabilities")


def open_client(spec: Mapping[str, Any]) -> Client:
    """Return the client that a description names.

    Parameters
    ----------
    spec
        ``kind``: a provider with an OpenAI-style interface (``openai``, ``vllm``,
        ``llamacpp``, ``ollama``, ``mistral``, ``xai``, ``together`` ...), ``anthropic``,
        ``gemini``, ``embedded`` or ``replay``.

        For HTTP kinds: ``model``, ``base_url``, ``api_key_env`` (name of the environment
        variable that holds the key; ``""`` for none), ``capabilities``, ``timeout_s``,
        ``extra_headers``, ``extra_body`` (further fields of every call), ``thinking_tokens`` (room
        for thinking), ``reasoning_effort``, ``batch`` (file that keeps batches, see
        `BatchClient`), and for OpenAI-style ones ``api`` (``chat`` or
        ``responses``). A list as ``base_url`` is a pool of equal endpoints (see `PoolClient`),
        which ``endpoint`` may give a name. For ``embedded``: ``model``, ``parallel``, ``context``,
        ``threads``. For ``replay``: ``ledger``, ``endpoint``.

    Examples
    --------
    >>> client = open_client({"kind": "llamacpp", "model": "any"})
    >>> client.endpoint
    'http://127.0.0.1:8080/v1'
    >>> open_client({"kind": "opnai"})
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: there is no kind of client 'opnai'
      -> did you mean 'openai'?
    """
    kind: Any = spec.get("kind")
    if isinstance(spec.get("base_url"), list | tuple):
        return _open_pool(spec)
    if kind == "embedded":
        options = _options(spec, EMBEDDED)
        return EmbeddedClient(**({"model": spec["model"]} if spec.get("model") else {}), **options)
    if kind == "replay":
        options = _options(spec, REPLAY)
        if "ledger" not in options:
            raise errors.InputError("a replay needs the path of a ledger", hint="set `ledger`")
        return ReplayClient(options.pop("ledger"), model=spec.get("model"), **options)
    errors.require_known([kind], [*PRESETS, "embedded", "replay"], "there is no kind of client {}")
    preset = PRESETS[str(kind)]
    options = _options(spec, (*SHARED, "api") if preset.wire == "chat" else SHARED)
    if "thinking_tokens" in options:
        room = options.pop("thinking_tokens")
        if isinstance(room, bool) or not isinstance(room, int) or room < 0:
            raise errors.InputError(
                f"thinking_tokens is a whole number of at least 0, got {room!r}"
            )
        options["capabilities"] = {**options.get("capabilities", {}), "thinking_tokens": room}
    # A key must not be sent to a server that merely speaks the same language.
    own_server = options.get("base_url") in (None, preset.base_url)
    names = options.pop("api_key_env", preset.key_env if own_server else None)
    key = key_from_environment(names or None)
    batches = options.pop("batch", None)
    client = ProviderClient(preset=str(kind), model=spec.get("model", ""), key=key, **options)
    return client if batches is None else BatchClient(client, Path(batches))


def _open_pool(spec: Mapping[str, Any]) -> Client:
    """Return one client of several equal endpoints."""
    if "batch" in spec:
        raise errors.InputError("batches go to one address, and base_url is a list of them")
    urls = list(spec["base_url"])
    if not urls or not all(isinstance(url, str) for url in urls):
        raise errors.InputError(f"base_url is an address or a list of addresses, got {urls!r}")
    members = [open_client({n: v for n, v in spec.items() if n != "endpoint"} | {"base_url": url})
               for url in urls]  # fmt: skip
    return PoolClient(cast("list[protocol.PreparingClient]", members), name=spec.get("endpoint"))


def _options(spec: Mapping[str, Any], settings: tuple[str, ...]) -> dict[str, Any]:
    for name in spec:
        if name not in (*settings, "kind", "model", "name"):
            if "key" in name.lower():
                raise errors.InputError(
                    f"an API key is never written down, got the setting {name!r}",
                    hint="put it into an environment variable and name that as api_key_env",
                )
            raise errors.InputError(
                f"a client of kind {spec.get('kind')!r} has no setting {name!r}",
                hint=errors.did_you_mean(name, list(settings)),
            )
    return {name: spec[name] for name in settings if name in spec}
