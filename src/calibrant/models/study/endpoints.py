"""Where a study's models are reached, who said yes to these hosts, and what they can do."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from calibrant.core.errors import ClientError, InputError
from calibrant.core.hints import Hint
from calibrant.core.places import AppendOnly
from calibrant.models.endpoints import factory
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.protocol import Client, Completion, Message, Request
from calibrant.models.study.config import ModelConfig

_LOCAL_KINDS = frozenset({"embedded", "replay"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_places(
    recipe: Mapping[str, Any], models: Sequence[str], endpoints: Mapping[str, str],
    keys: Mapping[str, str], confirm: str | None, *, source: str,
) -> None:  # fmt: skip
    """Refuse hosts and variables of the policy's own that nobody has confirmed.

    Models with an address of the caller's need nothing; neither do those that are asked on this
    very machine without a key.
    """
    names = {name: _place(recipe["models"][name], keys.get(name))
             for name in models if name not in endpoints}  # fmt: skip
    foreign = {name: place for name, place in names.items() if place is not None}
    if not foreign:
        return
    code = _code(foreign)
    if confirm == code:
        _remember(code)
    if confirm == code or code in _remembered():
        return
    raise InputError(
        f"the policy names hosts that nobody has confirmed: {_words(foreign)}",
        source=source,
        hint=Hint(
            "if they are yours, confirm them once with {confirm}; else give {endpoint} and "
            "{key_env}",
            confirm=code,
            endpoint="NAME=URL",
            key_env="NAME=VARIABLE",
        ),
    )


def agree_to_keys(
    entries: Mapping[str, Mapping[str, Any]], confirm: Callable[[str], bool]
) -> str | None:
    """Ask whether keys may go where a study says; return what was refused, None where nothing was.

    A provider's own address needs nothing, nor does this very machine.
    """
    named = {name: _place(entry, None) for name, entry in entries.items() if entry.get("base_url")}
    foreign = {
        name: place
        for name, place in named.items()
        if place is not None and place[2] and not all(map(_is_loopback, place[1]))
    }
    if not foreign or (code := _code(foreign)) in _remembered():
        return None
    words = f"this study asks {_words(foreign)}"
    if not confirm(f"{words[0].upper()}{words[1:]}. Send the key there?"):
        return words
    _remember(code)
    return None


_Place = tuple[str, list[str], str]


def _code(foreign: Mapping[str, _Place]) -> str:
    packed = orjson.dumps(foreign, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(packed, digest_size=6).hexdigest()


def _words(foreign: Mapping[str, _Place]) -> str:
    return "; ".join(
        f"{name} at {' and '.join(map(str, urls))}"
        + (f" with the key in {variable}" if variable else "")
        for name, (_, urls, variable) in foreign.items()
    )


def _place(entry: Mapping[str, Any], given_key: str | None) -> _Place | None:
    """Return kind, addresses and variable of a model; None where nothing leaves the machine."""
    kind = str(entry.get("client", entry.get("kind", "")))
    if kind in _LOCAL_KINDS:
        return None
    url = entry.get("base_url")
    urls = [url] if isinstance(url, str) else list(url or [f"the usual address of {kind}"])
    variable = "" if given_key is not None else str(entry.get("api_key_env") or "")
    if not variable and all(_is_loopback(item) for item in urls):
        return None
    return kind, urls, variable


def _is_loopback(url: object) -> bool:
    try:
        return urlsplit(str(url)).hostname in _LOOPBACK
    except ValueError:
        return False


def _file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "calibrant" / "confirmed"


def _remembered() -> list[str]:
    with suppress(OSError, RuntimeError):
        return _file().read_text(encoding="ascii", errors="replace").split()
    return []


def _remember(code: str) -> None:
    # A container may have no home: the code is then given each time.
    with suppress(OSError, RuntimeError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        if code not in _remembered():
            AppendOnly(_file()).append(code.encode())


def open_client(model: ModelConfig, *, source: str = "study.toml") -> Client:
    """Return the client of a model, or say which of its settings is wrong.

    Nothing is sent. API keys come from environment variables only.
    """
    spec: dict[str, Any] = {"kind": model.client, "model": model.model, **model.options}
    if model.client == "embedded":
        spec["model"] = spec.pop("weights", model.model)
    try:
        return factory.open_client(spec)
    except InputError as error:
        place = source if error.source is None else f"{source} ({error.source})"
        rule = f"models.{model.name}: {error.rule}"
        raise InputError(rule, source=place, hint=error.hint) from None


MOST_CALLS = 3
QUESTION = "What is the capital of Peru? Answer with the name alone."
_TOKENS = 512
"""Enough for a model that thinks a little; others stop by themselves."""


async def probe_endpoint(client: Client, model: str) -> dict[str, Any]:
    """Ask one question with every setting there is, and say which of them the endpoint takes.

    Parameters
    ----------
    client
        The endpoint. What it refuses is learned on the way and asked for no more.
    model
        The model as the endpoint calls it.
    """
    able = client.capabilities
    members = getattr(client, "members", [client])
    http = [item for item in members if isinstance(item, ProviderClient)]
    for item in http:
        item.most_refused = MOST_CALLS
    request = Request(
        model,
        (Message("user", QUESTION),),
        n=min(2, able.native_n),
        temperature=0.0,
        max_tokens=_TOKENS,
        logprobs=able.logprobs,
        top_logprobs=able.top_logprobs,
        seed=1 if able.seed else None,
        stop=("\n\n\n",),
    )
    settings = {
        "temperature": True,
        "stop": True,
        "seed": request.seed is not None,
        "logprobs": request.logprobs,
        "n": request.n > 1,
    }
    names = [name for name, is_asked in settings.items() if is_asked]
    problem, completions = None, list[Completion]()
    try:
        completions = await client.ask(request)
    except ClientError as error:
        problem = str(error)
    refusals = [item.refused[model] for item in http if model in item.refused]
    first = completions[0] if completions else None
    return {
        "endpoint": client.endpoint,
        "problem": problem,
        "answer": None if first is None else first.text,
        "answered_by": None if first is None else first.model,
        "seconds": None if first is None else first.latency_s,
        "takes": [] if first is None else [name for name in names if name not in first.not_sent],
        "refuses": {name: reply for item in refusals for name, reply in item.left_out.items()},
        "limits": {k: v for item in refusals for k, v in {**item.at_most, **item.renamed}.items()},
        "draws_per_call": len(completions),
        "logprobs": bool(first is not None and first.logprobs),
        "logprobs_refused": None if first is None else first.logprobs_refused,
        "thinking_tokens": None if first is None else first.thinking_tokens,
        "thinking_shown": bool(first is not None and first.thinking),
        "cut_off": bool(first is not None and first.finish_reason == "length"),
    }
