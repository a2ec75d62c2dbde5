"""How each interface is written, and its answers in the form of chat completions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from calibrant.core.errors import PermanentClientError, TransientClientError
from calibrant.models.asks import ProviderPreset
from calibrant.models.endpoints.chat import ChatAnswer, ChatChoice, Logprobs, Reply, TokenCounts
from calibrant.models.protocol import Json, Message, Request, image_address
from calibrant.models.replies import bounded_text, short_name, text_of, token_count

_SHOW_LOGPROBS = "message.output_text.logprobs"
_Read: TypeAlias = tuple[ChatChoice, str | None]
"""A choice, and what is odd about its log-probs."""
_STRICT: dict[str, Json] = {"name": "answer", "strict": True}
_FINISH = {
    **dict.fromkeys(("end_turn", "stop_sequence", "STOP"), "stop"),
    **dict.fromkeys(("max_tokens", "max_output_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("refusal", "SAFETY", "RECITATION", "BLOCKLIST"), "content_filter"),
    **dict.fromkeys(("PROHIBITED_CONTENT", "SPII"), "content_filter"),
}


class Wire(Struct, frozen=True):
    """One interface: where a call goes, how it is written, and how its answer is read.

    `effort` is the field that says how long a model thinks, as ``outer.inner`` where it is nested.
    """

    path: str
    write: Callable[[Request, ProviderPreset], dict[str, Json]]
    read: Callable[[Mapping[str, object]], ChatAnswer] | None
    effort: str


# -- chat completions ------------------------------------------------------------------------------


def _turns(
    request: Request, text: Callable[[str], Json], image: Callable[[str, str, str], Json]
) -> list[dict[str, Json]]:
    """Return the turns with their parts in another interface's form; texts stay texts."""
    return [
        {
            "role": m.role,
            "content": m.content if isinstance(m.content, str) else _parts(m, text, image),
        }
        for m in request.messages
    ]


def _parts(
    message: Message, text: Callable[[str], Json], image: Callable[[str, str, str], Json]
) -> list[Json]:
    """Return a message part by part; of an image its address, or kind and data if it is here."""
    visible = []
    for part in message.parts:
        url = image_address(part)
        head, _, data = url.partition(",")
        kind = head.removeprefix("data:").partition(";")[0]
        here = (url, kind, data if "base64" in head else "")
        visible.append(text(part["text"]) if "text" in part else image(*here))
    return visible


def _samplers(request: Request) -> dict[str, float]:
    return {k: int(v) if k == "top_k" else v for k, v in request.sampler.items()}


def write_request(request: Request, preset: ProviderPreset) -> dict[str, Json]:
    """Return the body of a call of the chat interface."""
    if request.body is not None:
        return {**request.body, "model": request.model}
    body: dict[str, Json] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        preset.max_tokens_field: request.most_tokens,
        "temperature": request.temperature,
    }
    if request.n > 1:
        body["n"] = request.n
    if request.logprobs and preset.integer_logprobs:
        body["logprobs"] = max(1, request.top_logprobs)
    elif request.logprobs:
        body["logprobs"] = True
        if request.top_logprobs:
            body["top_logprobs"] = request.top_logprobs
    if request.seed is not None:
        body[preset.seed_field] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        schema = {**_STRICT, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return {**body, **_samplers(request), **(request.extra or {})}


# -- responses -------------------------------------------------------------------------------------


def _write_responses(request: Request, _: ProviderPreset) -> dict[str, Json]:
    body: dict[str, Json] = {
        "model": request.model,
        "input": _turns(
            request,
            lambda text: {"type": "input_text", "text": text},
            lambda url, *_: {"type": "input_image", "image_url": url},
        ),
        "max_output_tokens": request.most_tokens,
        "temperature": request.temperature,
        # Nothing of a study is to stay with the provider.
        "store": False,
        **request.sampler,
    }
    if request.logprobs:
        body["include"] = [_SHOW_LOGPROBS]
        if request.top_logprobs:
            body["top_logprobs"] = request.top_logprobs
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", **_STRICT, "schema": request.schema}}
    return {**body, **(request.extra or {})}


def read_response(answer: Mapping[str, object]) -> ChatAnswer:
    """Return an answer of the Responses interface as a chat completion.

    Examples
    --------
    >>> part = {"type": "output_text", "text": "Lima"}
    >>> answer = {"output": [{"type": "message", "content": [part]}], "status": "completed"}
    >>> read_response(answer).choices[0].message.content
    'Lima'
    """
    output = answer.get("output")
    if not isinstance(output, list):
        raise TransientClientError("the answer has not the form of a response: it has no output")
    parts, summaries = (
        [p for i in _mappings(output) if i.get("type") == kind for p in _mappings(i.get(name))]
        for kind, name in (("message", "content"), ("reasoning", "summary"))
    )
    texts = [part for part in parts if part.get("type") == "output_text"]
    tokens = [token for part in texts for token in part.get("logprobs") or ()]
    stopped = _inside(answer, "incomplete_details").get("reason")
    choice = _choice(
        "".join(str(part.get("text", "")) for part in texts),
        "\n".join(str(part.get("text", "")) for part in summaries),
        "stop" if stopped is None else stopped,
        tokens or None,
        refusal="".join(str(part.get("refusal", "")) for part in parts) or None,
    )
    counts = ("input_tokens", "output_tokens", "output_tokens_details")
    return _answer(answer, [choice], TokenCounts(*map(_inside(answer, "usage").get, counts)))


def _inside(answer: Mapping[str, object], name: str) -> Mapping[str, Any]:
    """Return the fields below a name; none where there is nothing of that form."""
    fields = answer.get(name)
    return fields if isinstance(fields, Mapping) else {}


def _mappings(values: object) -> list[Mapping[str, Any]]:
    listed = values if isinstance(values, list) else ()
    return [value for value in listed if isinstance(value, Mapping)]


def _answer(
    answer: Mapping[str, object], choices: list[_Read], usage: TokenCounts, odd: str | None = None,
    *, names: tuple[str, str] = ("id", "model"),
) -> ChatAnswer:  # fmt: skip
    """Return the answer of these choices, with the first thing that is odd about it."""
    odd = next((why for _, why in choices if why is not None), odd)
    id_, model = map(answer.get, names)
    return ChatAnswer([choice for choice, _ in choices], usage, model=model, id=id_, odd=odd)


def _choice(
    text: str | None,
    thought: str,
    finish: Any,
    tokens: list[Any] | None = None,
    *,
    refusal: str | None = None,
    index: int = 0,
) -> _Read:
    """Return a choice whose text is kept also without its log-probs."""
    reason, logprobs, odd = short_name(finish) or "unknown", None, None
    try:
        logprobs = None if tokens is None else msgspec.convert({"content": tokens}, Logprobs)
    except msgspec.ValidationError as error:
        odd = str(error)
    reply = Reply(bounded_text(text or ""), refusal, reasoning=thought or None)
    return ChatChoice(reply, index, logprobs, _FINISH.get(reason, reason.lower())), odd


def _joined(parts: Iterable[Any]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str))


# -- Anthropic's messages --------------------------------------------------------------------------


def _system(request: Request) -> list[str]:
    return [message.text for message in request.messages if message.role == "system"]


def _write_messages(request: Request, _: ProviderPreset) -> dict[str, Json]:
    def image(url: str, kind: str, data: str) -> dict[str, Json]:
        source = {"type": "base64", "media_type": kind, "data": data} if data else {}
        return {"type": "image", "source": source or {"type": "url", "url": url}}

    turns = _turns(request, lambda text: {"type": "text", "text": text}, image)
    body: dict[str, Json] = {
        "model": request.model,
        "max_tokens": request.most_tokens,
        "temperature": request.temperature,
        "messages": [turn for turn in turns if turn["role"] != "system"],
        **_samplers(request),
        **(request.extra or {}),
    }
    if request.thinking_tokens:
        # With thinking the interface takes no other temperature than 1.
        body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_tokens}
        body.pop("temperature")
    if system := _system(request):
        body["system"] = "\n\n".join(system)
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    return body


def _read_message(answer: Mapping[str, object]) -> ChatAnswer:
    blocks = answer.get("content")
    listed = blocks if isinstance(blocks, list) else []
    reply = [block for block in listed if isinstance(block, Mapping | str)]
    if blocks is None or (listed and not reply):
        raise TransientClientError("the answer has not the form of a message: it has no content")
    # Neither thoughts nor calls of tools are part of the answer.
    spoken = [b for b in reply if isinstance(b, str) or b.get("type", "text") == "text"]
    used = _inside(answer, "usage")
    prompt = used.get("input_tokens")
    if (counts := token_count(prompt)) is not None:
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        prompt = counts + sum(token_count(used.get(name)) or 0 for name in cached)
    thought = _joined(block.get("thinking") for block in _mappings(reply))
    choice = _choice(text_of(spoken if listed else blocks), thought, answer.get("stop_reason"))
    odd = None if isinstance(blocks, list) else "content is no list of blocks"
    return _answer(answer, [choice], TokenCounts(prompt, used.get("output_tokens")), odd)


# -- Gemini's content ------------------------------------------------------------------------------


def _write_content(request: Request, _: ProviderPreset) -> dict[str, Json]:
    names = {"top_p": "topP", "top_k": "topK"}
    config: dict[str, Json] = {
        "temperature": request.temperature,
        "maxOutputTokens": request.most_tokens,
        "candidateCount": request.n,
        **{names[name]: value for name, value in _samplers(request).items()},
        **(request.extra or {}),
    }
    if request.thinking_tokens:
        config.setdefault("thinkingConfig", {"thinkingBudget": request.thinking_tokens})
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
    turns = [
        {
            "role": "model" if m.role == "assistant" else m.role,
            "parts": _parts(m, lambda text: {"text": text}, _file),
        }
        for m in request.messages
        if m.role != "system"
    ]
    body: dict[str, Json] = {"contents": turns, "generationConfig": config}
    if system := _system(request):
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    return body


def _file(url: str, kind: str, data: str) -> dict[str, Json]:
    if data:
        return {"inlineData": {"mimeType": kind, "data": data}}
    return {"fileData": {"fileUri": url}}


def _read_content(answer: Mapping[str, object]) -> ChatAnswer:
    candidates = answer.get("candidates")
    if not candidates:
        if blocked := _inside(answer, "promptFeedback").get("blockReason"):
            raise PermanentClientError(f"the prompt was blocked: {blocked}")
        raise TransientClientError("the answer holds no candidates")
    if not isinstance(candidates, list) or len(_mappings(candidates)) < len(candidates):
        raise TransientClientError("the answer has not the form of candidates")
    usage = _inside(answer, "usageMetadata")
    spoken, thought = usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")
    if count := token_count(thought):
        spoken = count + (token_count(spoken) or 0)
    counts = TokenCounts(usage.get("promptTokenCount"), spoken, {"reasoning_tokens": thought})
    names = ("responseId", "modelVersion")
    return _answer(answer, list(map(_candidate, candidates)), counts, names=names)


def _candidate(candidate: Mapping[str, object]) -> _Read:
    content, index = candidate.get("content"), candidate.get("index")
    parts = content.get("parts") if isinstance(content, Mapping) else content
    thought = _joined(part.get("text") for part in _mappings(parts) if part.get("thought"))
    try:
        tokens = _tokens(_inside(candidate, "logprobsResult"))
    except (KeyError, TypeError, ValueError, AttributeError):
        tokens = None  # the answer is paid for: its text is kept without them
    return _choice(
        text_of(parts) or "",
        thought,
        candidate.get("finishReason"),
        tokens,
        index=index if isinstance(index, int) else 0,
    )


def _tokens(result: Mapping[str, Any]) -> list[Any] | None:
    choice = result.get("chosenCandidates")
    if not choice:
        return None
    tops = [top.get("candidates") for top in result.get("topCandidates") or [{}] * len(choice)]
    visible = [[_entry(item) for item in top or ()] for top in tops]
    pairs = zip(choice, visible, strict=True)
    return [{**_entry(entry), "top_logprobs": peers} for entry, peers in pairs]


def _entry(entry: Mapping[str, Any]) -> dict[str, object]:
    return {"token": entry["token"], "logprob": entry["logProbability"]}


WIRES = {
    "chat": Wire("/chat/completions", write_request, None, "reasoning_effort"),
    "responses": Wire("/responses", _write_responses, read_response, "reasoning.effort"),
    "messages": Wire("/v1/messages", _write_messages, _read_message, "output_config.effort"),
    "content": Wire(
        "/models/{model}:generateContent",
        _write_content,
        _read_content,
        "thinkingConfig.thinkingLevel",
    ),
}
