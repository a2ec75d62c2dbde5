"""Gemini's own content interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from calibrant.clients.answers.logprobs import refusal
from calibrant.clients.answers.odd import bounded_text, short_name, text_of, token_count
from calibrant.clients.answers.thinking import kept_thinking
from calibrant.clients.dispatch.budget import completion_tokens_estimate, prompt_tokens_estimate
from calibrant.clients.endpoints.service import ServiceClient
from calibrant.clients.protocol import Capabilities, Completion, Request, TokenLogprob, Usage
from calibrant.core.errors import PermanentClientError, TransientClientError
from calibrant.records.spelling import MISSPELT, spells

ABLE = Capabilities(
    native_n=8,
    logprobs=True,
    top_logprobs=5,
    seed=True,
    json_schema=True,
    samplers=("top_p", "top_k"),
)
FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
}
ROLES = {"assistant": "model", "user": "user"}
SAMPLERS = {"top_p": "topP", "top_k": "topK"}


class GeminiClient(ServiceClient):
    """The content interface: several candidates in one call, log-probs with up to 5 others."""

    address = "https://generativelanguage.googleapis.com/v1beta"
    able = ABLE
    key_header = "x-goog-api-key"

    async def _call(self, request: Request) -> list[Completion]:
        path = f"/models/{quote(request.model.removeprefix('models/'))}:generateContent"
        answer, latency, missing = await self._post(path, _write(request), request.model)
        found = _read(answer, request, latency)
        return [replace(one, not_sent=missing) for one in found] if missing else found

    @classmethod
    def effort(cls, effort: str | None) -> dict[str, Any]:
        """Return the fields that say how long a model is to think."""
        return {} if effort is None else {"thinkingConfig": {"thinkingLevel": effort}}


def _write(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {
        "temperature": request.temperature,
        "maxOutputTokens": request.most_tokens,
        "candidateCount": request.n,
        **{
            SAMPLERS[name]: int(value) if name == "top_k" else value
            for name, value in request.sampler.items()
        },
        **(request.extra or {}),
    }
    if request.thinking_tokens and "thinkingConfig" not in config:
        config["thinkingConfig"] = {"thinkingBudget": request.thinking_tokens}
    if request.logprobs:
        config["responseLogprobs"] = True
        if request.top_logprobs:
            config["logprobs"] = request.top_logprobs
    if request.seed is not None:
        config["seed"] = request.seed
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = request.schema
    body: dict[str, Any] = {
        "contents": [
            {"role": ROLES.get(message.role, message.role), "parts": [{"text": message.content}]}
            for message in request.messages
            if message.role != "system"
        ],
        "generationConfig": config,
    }
    system = [message.content for message in request.messages if message.role == "system"]
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    return body


def _read(answer: Mapping[str, Any], request: Request, latency_s: float) -> list[Completion]:
    candidates = answer.get("candidates")
    if not candidates:
        blocked = (answer.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            raise PermanentClientError(f"the prompt was blocked: {blocked}")
        raise TransientClientError("the answer holds no candidates")
    try:
        usage = answer.get("usageMetadata") or {}
        prompt = token_count(usage.get("promptTokenCount"))
        spoken = token_count(usage.get("candidatesTokenCount"))
        total = (spoken or 0) + (token_count(usage.get("thoughtsTokenCount")) or 0)
        estimated = prompt is None or (spoken is None and not total)
        if prompt is None:
            prompt = prompt_tokens_estimate(request)
        if estimated and not total:
            total = sum(completion_tokens_estimate(_text(one)) for one in candidates)
        count = len(candidates)
        shares = [total // count + (position < total % count) for position in range(count)]
        ordered = sorted(candidates, key=_index)[: request.n]
        completions = [
            _completion(
                answer,
                candidate,
                Usage(0 if position else prompt, shares[position]),
                request,
                latency_s,
                position,
                "no usable count of tokens" if estimated else None,
            )
            for position, candidate in enumerate(ordered)
        ]
        thought = token_count(usage.get("thoughtsTokenCount"))
        if thought is not None:
            completions[0] = replace(completions[0], thinking_tokens=thought)
        return completions
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TransientClientError(
            f"the answer has not the form of candidates: {type(error).__name__}: {error}"
        ) from None


def _completion(
    answer: Mapping[str, Any],
    candidate: Mapping[str, Any],
    usage: Usage,
    request: Request,
    latency_s: float,
    position: int,
    estimated: str | None,
) -> Completion:
    logprobs = _logprobs(candidate) if request.logprobs else None
    text = _text(candidate)
    refused = refusal(logprobs) if logprobs else None
    tokens = [entry.token for entry in logprobs or ()]
    if tokens and refused is None and not spells(tokens, text, stop=request.stop):
        refused = MISSPELT
    reason = short_name(candidate.get("finishReason")) or "unknown"
    return Completion(
        text=text,
        finish_reason=FINISH.get(reason, reason.lower()),
        usage=usage,
        logprobs=logprobs if refused is None else None,
        model=short_name(answer.get("modelVersion")),
        request_id=short_name(answer.get("responseId")),
        seed=None if request.seed is None else request.seed + position,
        native_n=request.n > 1,
        latency_s=round(latency_s, 4),
        sampler=request.sampler,
        logprobs_refused=refused,
        usage_estimated=estimated,
        thinking=kept_thinking(_thoughts(candidate)),
    )


def _thoughts(candidate: Mapping[str, Any]) -> str:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    listed = parts if isinstance(parts, list) else []
    thoughts = [part for part in listed if isinstance(part, Mapping) and part.get("thought")]
    found = [part.get("text") for part in thoughts]
    return "\n".join(one for one in found if isinstance(one, str))


def _text(candidate: Mapping[str, Any]) -> str:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else content
    return bounded_text(text_of(parts) or "")


def _index(candidate: Mapping[str, Any]) -> int:
    index = candidate.get("index")
    return index if isinstance(index, int) else 0


def _logprobs(candidate: Mapping[str, Any]) -> tuple[TokenLogprob, ...] | None:
    result = candidate.get("logprobsResult")
    if not result:
        return None
    try:
        return _tokens(result)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # the answer is paid for: its text is kept without them


def _tokens(result: Mapping[str, Any]) -> tuple[TokenLogprob, ...]:
    chosen = result["chosenCandidates"]
    tops = result.get("topCandidates") or [{}] * len(chosen)
    return tuple(
        TokenLogprob(
            entry["token"],
            entry["logProbability"],
            tuple(
                (other["token"], other["logProbability"]) for other in top.get("candidates") or ()
            ),
        )
        for entry, top in zip(chosen, tops, strict=True)
    )
