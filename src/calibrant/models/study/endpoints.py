"""Where a model is reached, and what can be done there."""

from collections.abc import Mapping
from typing import Any

from calibrant.core.errors import ClientError, InputError
from calibrant.models.endpoints import factory
from calibrant.models.endpoints.http import HttpClient
from calibrant.models.protocol import Client, Completion, Message, Request
from calibrant.models.study.config import ModelConfig, StudyConfig


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


async def probe_models(config: StudyConfig, clients: Mapping[str, Client]) -> list[dict[str, Any]]:
    """Probe every model of a study, one after the other; the clients are closed."""
    reports = []
    for model in config.models:
        client = clients[model.name]
        reports.append({"model": model.name, **await probe_endpoint(client, model.model)})
        await client.close()
    return reports


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
    http = [item for item in members if isinstance(item, HttpClient)]
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
        "takes": [] if first is None else _taken(request, first),
        "refuses": {name: reply for item in refusals for name, reply in item.left_out.items()},
        "limits": {k: v for item in refusals for k, v in {**item.at_most, **item.renamed}.items()},
        "draws_per_call": len(completions),
        "logprobs": bool(first is not None and first.logprobs),
        "logprobs_refused": None if first is None else first.logprobs_refused,
        "thinking_tokens": None if first is None else first.thinking_tokens,
        "thinking_shown": bool(first is not None and first.thinking),
        "cut_off": bool(first is not None and first.finish_reason == "length"),
    }


def _taken(request: Request, finished: Completion) -> list[str]:
    query = {
        "temperature": True,
        "stop": True,
        "seed": request.seed is not None,
        "logprobs": request.logprobs,
        "n": request.n > 1,
    }
    return [
        name
        for name, target_names in query.items()
        if target_names and name not in finished.not_sent
    ]
