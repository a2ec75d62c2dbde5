"""Anthropic's own message interface."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from calibrant.clients.answers.odd import bounded_text, short_name, text_of, token_count
from calibrant.clients.answers.thinking import kept_thinking
from calibrant.clients.dispatch.budget import completion_tokens_estimate, prompt_tokens_estimate
from calibrant.clients.endpoints.service import ServiceClient
from calibrant.clients.protocol import Capabilities, Completion, Request, Usage
from calibrant.core.errors import TransientClientError

ABLE = Capabilities(native_n=1, max_temperature=1.0, samplers=("top_p", "top_k"))
"""One draw per call; no log-probs, no seed; temperatures up to 1."""
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class AnthropicClient(ServiceClient):
    """The message interface: system text apart, one draw per call, no log-probs."""

    address = "https://api.anthropic.com"
    able = ABLE
    key_header = "x-api-key"
    own_headers = MappingProxyType({"anthropic-version": "2023-06-01"})

    async def _call(self, request: Request) -> list[Completion]:
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.most_tokens,
            "temperature": request.temperature,
            "messages": [
                {"role": message.role, "content": message.content}
                for message in request.messages
                if message.role != "system"
            ],
            **{
                name: int(value) if name == "top_k" else value
                for name, value in request.sampler.items()
            },
            **(request.extra or {}),
        }
        if request.thinking_tokens:
            # With thinking the interface takes no other temperature than 1.
            body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_tokens}
            body.pop("temperature")
        system = "\n\n".join(
            message.content for message in request.messages if message.role == "system"
        )
        if system:
            body["system"] = system
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        answer, latency, missing = await self._post("/v1/messages", body, request.model)
        if request.thinking_tokens and request.temperature != 1.0:
            missing = (*missing, "temperature")
        return [replace(_read(answer, request, latency), not_sent=missing)]

    @classmethod
    def effort(cls, effort: str | None) -> dict[str, Any]:
        """Return the fields that say how long a model is to think."""
        return {} if effort is None else {"output_config": {"effort": effort}}


def _read(answer: Mapping[str, Any], request: Request, latency_s: float) -> Completion:
    blocks = answer.get("content")
    text = None if blocks == [] else text_of(_spoken(blocks))
    silent = isinstance(blocks, list) and not any(isinstance(b, Mapping | str) for b in blocks)
    if blocks != [] and (text is None or silent):
        raise TransientClientError("the answer has not the form of a message: it has no content")
    usage, estimated = _usage(answer.get("usage"), request, text or "")
    reason = short_name(answer.get("stop_reason")) or "unknown"
    return Completion(
        text=bounded_text(text or ""),
        finish_reason=FINISH.get(reason, reason),
        usage=usage,
        model=short_name(answer.get("model")),
        request_id=short_name(answer.get("id")),
        native_n=False,
        latency_s=round(latency_s, 4),
        sampler=request.sampler,
        usage_estimated=estimated,
        odd=None if isinstance(blocks, list) else "content is no list of blocks",
        thinking=kept_thinking(_thoughts(blocks)),
    )


def _thoughts(blocks: Any) -> str:
    listed = blocks if isinstance(blocks, list) else []
    found = [block.get("thinking") for block in listed if isinstance(block, Mapping)]
    return "\n".join(one for one in found if isinstance(one, str))


def _spoken(blocks: Any) -> Any:
    """Return the blocks that are part of the answer: neither thoughts nor calls of tools."""
    if not isinstance(blocks, list):
        return blocks
    return [
        block
        for block in blocks
        if not isinstance(block, Mapping) or block.get("type", "text") == "text"
    ]


def _usage(found: Any, request: Request, text: str) -> tuple[Usage, str | None]:
    """Return the tokens, and why they are an estimate where they are one."""
    usage = found if isinstance(found, Mapping) else {}
    prompt = token_count(usage.get("input_tokens"))
    completion = token_count(usage.get("output_tokens"))
    cached = sum(
        token_count(usage.get(name)) or 0
        for name in ("cache_creation_input_tokens", "cache_read_input_tokens")
    )
    if prompt is not None and completion is not None:
        return Usage(prompt + cached, completion), None
    if prompt is None:
        prompt = prompt_tokens_estimate(request)
    if completion is None:
        completion = completion_tokens_estimate(text)
    given = any(usage.get(name) is not None for name in ("input_tokens", "output_tokens"))
    return Usage(prompt + cached, completion), (
        "impossible counts of tokens" if given else "no count of tokens"
    )
