"""From a ``[[models]]`` table to the client that reaches the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from calibrant.clients.endpoints import factory
from calibrant.clients.protocol import Client
from calibrant.collect.config import ModelConfig
from calibrant.core.errors import InputError
from calibrant.records.ledger import Ledger


def open_client(model: ModelConfig, *, source: str = "study.toml") -> Client:
    """Return the client of a model, or say which of its settings is wrong.

    Nothing is sent. API keys come from environment variables only.
    """
    spec: dict[str, Any] = {"kind": model.client, "model": model.model, **model.options}
    if model.client == "embedded":
        spec["model"] = spec.pop("weights", model.model)
    try:
        if model.client == "replay" and "ledger" in spec:
            spec.setdefault("capabilities", _asked_for_then(Path(spec["ledger"]), model.model))
        return factory.open_client(spec)
    except InputError as error:
        place = source if error.source is None else f"{source} ({error.source})"
        rule = f"models.{model.name}: {error.rule}"
        raise InputError(rule, source=place, hint=error.hint) from None


def _asked_for_then(ledger: Path, model: str) -> dict[str, Any]:
    """Return what was asked for then: a request that asks for more would find nothing."""
    able: dict[str, Any] = {"seed": False, "logprobs": False, "top_logprobs": 0}
    with Ledger(ledger, read_only=True) as opened:
        for _, key in opened.requests():
            body = orjson.loads(key.body)
            if body["model"] == model:
                able["seed"] |= "seed" in body
                able["logprobs"] |= "logprobs" in body
                able["top_logprobs"] = max(able["top_logprobs"], body.get("top_logprobs", 0))
    return able
