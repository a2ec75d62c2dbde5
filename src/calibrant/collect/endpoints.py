"""From a ``[[models]]`` table to the client that reaches the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrant.clients.capabilities import PRESETS
from calibrant.clients.http import key_from_environment
from calibrant.clients.protocol import Client
from calibrant.collect.config import ModelConfig
from calibrant.collect.settings import Settings

__all__ = ["open_client"]


def open_client(model: ModelConfig, *, source: str = "study.toml") -> Client:
    """Return the client of a model, or say which of its settings is wrong.

    Nothing is sent. API keys come from environment variables only.
    """
    settings = Settings(dict(model.options), source=source, path=f"models.{model.name}")
    return _OPENERS[model.client](model, settings)


def _openai(model: ModelConfig, settings: Settings) -> Client:
    from calibrant.clients.openai import OpenAIClient

    name = settings.text("preset", "openai", choices=list(PRESETS))
    preset = PRESETS[name]
    base_url = settings.text("base_url", None)
    # A key is needed where the preset says so and the user has not pointed it elsewhere.
    default = preset.key_env if base_url is None else None
    key_env = settings.text("api_key_env", default)
    options = _http_options(settings)
    settings.finish()
    return OpenAIClient(
        preset=name,
        model=model.model,
        base_url=base_url,
        key=key_from_environment(key_env),
        **options,
    )


def _anthropic(_: ModelConfig, settings: Settings) -> Client:
    from calibrant.clients.anthropic import AnthropicClient

    return _native(AnthropicClient, "ANTHROPIC_API_KEY", settings)


def _gemini(_: ModelConfig, settings: Settings) -> Client:
    from calibrant.clients.gemini import GeminiClient

    return _native(GeminiClient, "GEMINI_API_KEY", settings)


def _native(kind: Callable[..., Client], key_env: str, settings: Settings) -> Client:
    options = _http_options(settings)
    if settings.has("base_url"):
        options["base_url"] = settings.text("base_url")
    key = key_from_environment(settings.text("api_key_env", key_env))
    settings.finish()
    return kind(key=key, **options)


def _http_options(settings: Settings) -> dict[str, Any]:
    return {
        "timeout_s": settings.real("timeout_s", 120.0, low=0.1),
        "capabilities": settings.raw("capabilities", None),
    }


def _embedded(_: ModelConfig, settings: Settings) -> Client:
    from calibrant.clients.embedded import EmbeddedClient

    weights = settings.text("weights", None)
    settings.finish()
    return EmbeddedClient(None if weights is None else Path(weights))


def _replay(_: ModelConfig, settings: Settings) -> Client:
    from calibrant.clients.replay import ReplayClient

    ledger = Path(settings.text("ledger"))
    settings.finish()
    return ReplayClient(ledger)


_OPENERS: dict[str, Callable[[ModelConfig, Settings], Client]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "embedded": _embedded,
    "replay": _replay,
}
