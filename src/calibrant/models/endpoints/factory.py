"""From a plain description to a client."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from calibrant.core.errors import InputError, did_you_mean, require_known
from calibrant.models.capabilities import PRESETS
from calibrant.models.endpoints.batches import BatchClient
from calibrant.models.endpoints.embedded import EmbeddedClient
from calibrant.models.endpoints.pool import PoolClient
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.endpoints.replay import ReplayClient
from calibrant.models.endpoints.secrets import key_from_environment
from calibrant.models.protocol import Client, PreparingClient

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
