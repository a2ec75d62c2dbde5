"""Anthropic's own message interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.clients.capabilities import adjusted
from calibrant.clients.http import MOST_BYTES, HttpClient
from calibrant.clients.protocol import Capabilities, Completion, Request, Usage
from calibrant.core.errors import TransientClientError

__all__ = ["AnthropicClient"]

ABLE = Capabilities(native_n=1, max_temperature=1.0, samplers=("top_p", "top_k"))
"""One draw per call; no log-probs, no seed; temperatures up to 1."""
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class AnthropicClient(HttpClient):
    """The message interface: system text apart, one draw per call, no log-probs."""

    key_header = "x-api-key"
    key_prefix = ""

    def __init__(
        self,
        *,
        base_url: str = "https://api.anthropic.com",
        key: str | None = None,
        capabilities: Mapping[str, Any] | None = None,
        timeout_s: float = 120.0,
        headers: Mapping[str, str] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        super().__init__(
            base_url,
            key=key,
            capabilities=adjusted(ABLE, capabilities),
            timeout_s=timeout_s,
            headers={"anthropic-version": "2023-06-01", **(headers or {})},
            most_bytes=most_bytes,
        )

    async def _call(self, request: Request) -> list[Completion]:
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": [
                {"role": message.role, "content": message.content}
                for message in request.messages
                if message.role != "system"
            ],
            **{
                name: int(value) if name == "top_k" else value
                for name, value in request.sampler.items()
            },
        }
        if self._capabilities.temperature:
            body["temperature"] = request.temperature
        system = "\n\n".join(
            message.content for message in request.messages if message.role == "system"
        )
        if system:
            body["system"] = system
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        answer, latency = await self._post("/v1/messages", body)
        return [_read(answer, request, latency)]


def _read(answer: Mapping[str, Any], request: Request, latency_s: float) -> Completion:
    try:
        usage = answer["usage"]
        cached = (usage.get("cache_creation_input_tokens") or 0) + (
            usage.get("cache_read_input_tokens") or 0
        )
        reason = answer.get("stop_reason") or "unknown"
        return Completion(
            text="".join(
                block["text"] for block in answer["content"] if block.get("type") == "text"
            ),
            finish_reason=FINISH.get(reason, reason),
            usage=Usage(usage["input_tokens"] + cached, usage["output_tokens"]),
            model=answer.get("model"),
            request_id=answer.get("id"),
            native_n=False,
            latency_s=round(latency_s, 4),
            sampler=request.sampler,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise TransientClientError(
            f"the answer has not the form of a message: {type(error).__name__}: {error}"
        ) from None
