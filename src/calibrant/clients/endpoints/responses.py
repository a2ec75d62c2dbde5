"""The Responses interface: what OpenAI and Azure offer beside chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any

from msgspec.structs import replace

from calibrant.clients.answers.chat import read_answer, typed_answer
from calibrant.clients.endpoints.openai import OpenAIClient
from calibrant.clients.protocol import Capabilities, Completion, Request
from calibrant.core.errors import TransientClientError

SHOW_LOGPROBS = "message.output_text.logprobs"


class ResponsesClient(OpenAIClient):
    """An endpoint asked at ``/responses``: one draw per call, log-probs, no seed."""

    def _able(self, model: str) -> Capabilities:
        return changed(self._preset.capabilities_of(model), native_n=1, seed=False)

    def _effort(self, effort: str | None) -> dict[str, Any]:
        return {} if effort is None else {"reasoning": {"effort": effort}}

    async def _call(self, request: Request) -> list[Completion]:
        answer, latency, missing = await self._post("/responses", _write(request), request.model)
        if request.stop:
            missing = (*missing, "stop")  # the interface has none: texts are cut here
        return [
            replace(one, not_sent=missing)
            for one in read_answer(typed_answer(as_chat(answer)), request, latency)
        ]


def _write(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "input": [
            {"role": message.role, "content": message.content} for message in request.messages
        ],
        "max_output_tokens": request.most_tokens,
        "temperature": request.temperature,
        # Nothing of a study is to stay with the provider.
        "store": False,
        **request.sampler,
    }
    if request.logprobs:
        body["include"] = [SHOW_LOGPROBS]
        if request.top_logprobs:
            body["top_logprobs"] = request.top_logprobs
    if request.schema is not None:
        body["text"] = {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "strict": True,
                "schema": request.schema,
            }
        }
    return {**body, **(request.extra or {})}


def as_chat(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of this interface in the form of a chat completion.

    Examples
    --------
    >>> part = {"type": "output_text", "text": "Lima"}
    >>> answer = {"output": [{"type": "message", "content": [part]}], "status": "completed"}
    >>> as_chat(answer)["choices"][0]["message"]["content"]
    'Lima'
    """
    output = answer.get("output")
    if not isinstance(output, list):
        raise TransientClientError("the answer has not the form of a response: it has no output")
    parts = _parts(output, "message", "content")
    texts = [part for part in parts if part.get("type") == "output_text"]
    tokens = [token for part in texts for token in part.get("logprobs") or ()]
    refusals = "".join(str(part.get("refusal", "")) for part in parts)
    summaries = _parts(output, "reasoning", "summary")
    thoughts = "\n".join(str(part.get("text", "")) for part in summaries)
    stopped = (answer.get("incomplete_details") or {}).get("reason")
    finish = {"max_output_tokens": "length", None: "stop"}.get(stopped, stopped)
    choice = {
        "message": {
            "content": "".join(str(part.get("text", "")) for part in texts),
            "refusal": refusals or None,
            "reasoning": thoughts or None,
        },
        "logprobs": {"content": tokens} if tokens else None,
        "finish_reason": finish,
    }
    usage = answer.get("usage") or {}
    return {
        "id": answer.get("id"),
        "model": answer.get("model"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        },
    }


def _parts(output: list[Any], kind: str, name: str) -> list[Mapping[str, Any]]:
    found = [item for item in output if isinstance(item, Mapping) and item.get("type") == kind]
    return [part for item in found for part in item.get(name) or () if isinstance(part, Mapping)]
