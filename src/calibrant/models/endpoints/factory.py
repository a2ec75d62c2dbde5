"""From a plain description to a client: an endpoint, or the replay of a ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson
from msgspec import Struct
from msgspec.json import decode

from calibrant.core.errors import (
    CapabilityError,
    InputError,
    PermanentClientError,
    did_you_mean,
    require_known,
)
from calibrant.models.asks import PRESETS, adjusted
from calibrant.models.endpoints.embedded import EmbeddedClient
from calibrant.models.endpoints.pool import PoolClient
from calibrant.models.endpoints.provider import BatchClient, ProviderClient
from calibrant.models.endpoints.secrets import key_from_environment
from calibrant.models.ledger import Ledger, LedgerKey
from calibrant.models.protocol import (
    Capabilities,
    Client,
    Completion,
    Json,
    PreparingClient,
    Request,
)
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
            raise InputError("a replay needs the path of a ledger", hint="set `ledger`")
        return ReplayClient(options.pop("ledger"), model=spec.get("model"), **options)
    require_known([kind], [*PRESETS, "embedded", "replay"], "there is no kind of client {}")
    preset = PRESETS[str(kind)]
    options = _options(spec, (*SHARED, "api") if preset.wire == "chat" else SHARED)
    if "thinking_tokens" in options:
        room = options.pop("thinking_tokens")
        if isinstance(room, bool) or not isinstance(room, int) or room < 0:
            raise InputError(f"thinking_tokens is a whole number of at least 0, got {room!r}")
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
        raise InputError("batches go to one address, and base_url is a list of them")
    urls = list(spec["base_url"])
    if not urls or not all(isinstance(url, str) for url in urls):
        raise InputError(f"base_url is an address or a list of addresses, got {urls!r}")
    remainder = {
        name: value for name, value in spec.items() if name not in ("base_url", "endpoint")
    }
    members = [open_client({**remainder, "base_url": url}) for url in urls]
    return PoolClient(cast("list[PreparingClient]", members), name=spec.get("endpoint"))


def _options(spec: Mapping[str, Any], settings: tuple[str, ...]) -> dict[str, Any]:
    for name in spec:
        if name not in (*settings, "kind", "model", "name"):
            if "key" in name.lower():
                raise InputError(
                    f"an API key is never written down, got the setting {name!r}",
                    hint="put it into an environment variable and name that as api_key_env",
                )
            raise InputError(
                f"a client of kind {spec.get('kind')!r} has no setting {name!r}",
                hint=did_you_mean(name, list(settings)),
            )
    return {name: spec[name] for name in settings if name in spec}
