"""Answers of chat interfaces: typed while they are parsed, checked before they are believed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from calibrant.core.errors import PermanentClientError, TransientClientError
from calibrant.data.formats import limit
from calibrant.data.texts import MISSPELT, spells
from calibrant.models import replies
from calibrant.models.dispatch.limits import completion_tokens_estimate, prompt_tokens_estimate
from calibrant.models.protocol import Completion, Request, Usage
from calibrant.models.replies import Alternatives, TokenLogprobs, refusal

NO_FORM = "the answer has not the form of a chat completion"
MOST_RAW = 200_000
"""Characters of an odd answer that are kept as they came."""
MOST_THINKING = 100_000
"""Characters of thinking that are kept."""


# Parsing straight into these skips what nobody reads (the bytes of every token and of every
# alternative), and objects without `gc` are not visited by the collector: of the time that a
# call takes beyond the network, this is the half that could be saved.
class Alternative(msgspec.Struct, gc=False):
    """A token that could have stood there."""

    token: str
    logprob: float


class LogprobEntry(msgspec.Struct, gc=False):
    """A token, its log-prob and its alternatives."""

    token: str
    logprob: float | None
    top_logprobs: list[Alternative] | None = None


class Logprobs(msgspec.Struct):
    """Log-probs in the form of OpenAI (`content`) or in the older one (columns)."""

    content: list[LogprobEntry] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class Reply(msgspec.Struct):
    """The message of a choice."""

    content: str | None = None
    refusal: str | None = None
    # DeepSeek, vLLM and llama.cpp write the first, OpenRouter and Ollama the second.
    reasoning_content: Any = None
    reasoning: Any = None


class ChatChoice(msgspec.Struct):
    """One draw of a call."""

    message: Reply
    index: int | None = 0
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class TokenCounts(msgspec.Struct):
    """Tokens of a call as the endpoint counts them; a count may be anything."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    completion_tokens_details: Any = None


class ChatAnswer(msgspec.Struct):
    """A chat completion, as far as it is read."""

    choices: list[ChatChoice] | None = None
    usage: TokenCounts | None = None
    model: Any = None
    id: Any = None
    system_fingerprint: Any = None
    odd: str | None = None
    raw: str | None = None


_decoder = msgspec.json.Decoder(ChatAnswer)


def parse_answer(raw: bytes) -> ChatAnswer | str:
    """Return the parsed answer, or what is wrong with its form.

    Examples
    --------
    >>> parse_answer(b'{"choices": [{"message": {"content": "Paris"}}]}').choices[0].index
    0
    >>> parse_answer(b'{"choices": [{"message": "Paris"}]}')
    'Expected `object`, got `str` - at `$.choices[0].message`'
    """
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return str(error)


def loose_answer(raw: bytes, form: str) -> ChatAnswer | None:
    """Return what can be read of an answer of an odd form, with the raw text; None if nothing.

    Examples
    --------
    >>> parts = b'{"choices": [{"message": {"content": [{"type": "text", "text": "Paris"}]}}]}'
    >>> loose_answer(parts, "content is a list").choices[0].message.content
    'Paris'
    """
    try:
        return _loosely(replies.loose_json(raw), form, raw)
    except ValueError:
        return None


def _loosely(body: Any, form: str, raw: bytes = b"") -> ChatAnswer | None:
    listed = body.get("choices") if isinstance(body, Mapping) else None
    read = [_loose_choice(item) for item in listed] if isinstance(listed, list) else []
    choices = [choice for choice in read if choice is not None]
    if not choices or len(choices) < len(read):
        return None
    usage, text = body.get("usage"), raw[: 4 * MOST_RAW].decode("utf-8", "replace")
    return ChatAnswer(
        choices=choices,
        usage=msgspec.convert(usage, TokenCounts) if isinstance(usage, dict) else None,
        model=body.get("model"),
        id=body.get("id"),
        odd=form,
        raw=replies.bounded_text(text, MOST_RAW) or None,
    )


def _loose_choice(choice: Any) -> ChatChoice | None:
    """Return a choice that has a text in any form; its log-probs only where they are sound."""
    if not isinstance(choice, Mapping):
        return None
    message = choice.get("message")
    content = message.get("content") if isinstance(message, Mapping) else message
    if content is None:
        content = choice.get("text")
    text = replies.text_of(content)
    if text is None:
        return None
    try:
        logprobs = msgspec.convert(choice.get("logprobs"), Logprobs | None)
    except (msgspec.ValidationError, RecursionError):
        logprobs = None
    index = choice.get("index")
    finish = replies.short_name(choice.get("finish_reason"))
    return ChatChoice(Reply(text), index if isinstance(index, int) else 0, logprobs, finish)


def typed_answer(answer: Mapping[str, object]) -> ChatAnswer:
    """Return an answer that was parsed already, as far as it can be read, or raise."""
    try:
        return msgspec.convert(answer, ChatAnswer)
    except msgspec.ValidationError as error:
        loose = _loosely(answer, str(error))
        if loose is None:
            raise without_choices(answer, form=str(error)) from None
        return loose


def read_answer(
    answer: ChatAnswer, request: Request, latency_s: float, *, one_choice_counted: bool = False
) -> list[Completion]:
    """Return the completions of an answer, in the order of their index.

    With `one_choice_counted` the endpoint is llama.cpp, which counts the tokens of a single
    choice only, and shows a character of several tokens as one entry with the log-prob of the
    last of them: such log-probs are refused, because their sum is not that of the text.
    """
    choices = answer.choices or []
    if len(choices) > 1:
        choices = sorted(choices, key=lambda choice: choice.index or 0)[: request.n]
    usage = answer.usage or TokenCounts()
    logprobs = [_read_logprobs(choice) if request.logprobs else None for choice in choices]
    usages, estimated = _read_usages(
        usage, logprobs, choices, request, one_choice_counted=one_choice_counted
    )
    completions = [
        _completion(answer, request, latency_s, *parts, estimated, position)
        for position, parts in enumerate(zip(choices, logprobs, usages, strict=True))
    ]
    details = usage.completion_tokens_details
    thinking = details.get("reasoning_tokens") if isinstance(details, dict) else None
    thought = replies.token_count(thinking)
    if answer.raw is not None or thought is not None:
        # Of several choices only the sum is told; it stands with the first.
        completions[0] = msgspec.structs.replace(
            completions[0], raw=answer.raw, thinking_tokens=thought
        )
    if not one_choice_counted:
        return completions
    total = replies.token_count(usage.completion_tokens) or 0
    return [
        _refuse_gaps(one, display, request, total)
        for one, display in zip(completions, logprobs, strict=True)
    ]


def _completion(
    answer: ChatAnswer,
    request: Request,
    latency_s: float,
    choice: ChatChoice,
    logprobs: TokenLogprobs | None,
    usage: Usage,
    estimated: str | None,
    position: int,
) -> Completion:
    message = choice.message
    end = None
    if logprobs and not logprobs.tokens[-1] and choice.finish_reason == "stop":
        # llama.cpp shows the end of the text as an empty token; other endpoints do not, and
        # per-token scores must not depend on who served the model: it is kept apart. Of an
        # empty reply the end is all there is, so there it stays the only token.
        shortened = logprobs.part(0, len(logprobs) - 1)
        if shortened:
            logprobs, end = shortened, logprobs.values[-1]
    text = message.content or message.refusal or ""
    thought, text = replies.split_thinking(text)
    refused = None
    if thought is not None and logprobs:
        logprobs = replies.tokens_of_answer(logprobs)
        refused = replies.INSEPARABLE if logprobs is None else None
    odd = answer.odd
    if len(text) > (most := limit("draw_characters")):
        odd = f"a text of more than {most:,} characters, of which the first are kept"
    if odd is not None:
        text = replies.bounded_text(text)
    thoughts = (thought, message.reasoning_content, message.reasoning)
    thinking = next((item for item in thoughts if isinstance(item, str) and item), None)
    refused = refusal(logprobs) if logprobs else refused
    if logprobs and refused is None and not spells(logprobs.tokens, text, stop=request.stop):
        refused = MISSPELT
    return Completion(
        text=text,
        finish_reason=choice.finish_reason or "unknown",
        usage=usage,
        logprobs=(logprobs or None) if refused is None else None,
        model=replies.short_name(answer.model),
        request_id=replies.short_name(answer.id),
        fingerprint=replies.short_name(answer.system_fingerprint),
        seed=None if request.seed is None else request.seed + position,
        native_n=request.n > 1,
        latency_s=round(latency_s, 4),
        sampler=request.sampler,
        logprobs_refused=refused,
        end_logprob=end if refused is None else None,
        usage_estimated=estimated,
        odd=odd,
        thinking=thinking and replies.bounded_text(thinking, MOST_THINKING),
    )


def _refuse_gaps(
    completion: Completion, display: TokenLogprobs | None, request: Request, counts: int
) -> Completion:
    """Refuse log-probs that leave out tokens inside a character."""
    if completion.logprobs is None or display is None or completion.text.isascii():
        return completion
    if completion.finish_reason == "length":
        expected = request.most_tokens
    elif request.n == 1:
        expected = counts
    else:
        # Of several choices only one is counted; a character of three bytes or more is
        # seldom one token.
        wide = any(len(token.strip().encode()) > 2 * len(token) for token in display.tokens)
        expected = len(display) + wide
    if len(display) >= expected:
        return completion
    reason = f"{len(display)} entries for more tokens: those inside a character are left out"
    return msgspec.structs.replace(completion, logprobs=None, logprobs_refused=reason)


def _read_logprobs(choice: ChatChoice) -> TokenLogprobs | None:
    """Return the token log-probs; None where a choice lacks them, which can happen."""
    given_values = choice.logprobs
    if given_values is None:
        return None
    content = given_values.content
    if content is not None:
        tokens = [entry.token for entry in content]
        values = [entry.logprob for entry in content]
        tops = Alternatives.joined([entry.top_logprobs for entry in content])
    elif given_values.tokens is not None and given_values.token_logprobs is not None:
        tokens, values, display = (
            given_values.tokens,
            given_values.token_logprobs,
            given_values.top_logprobs,
        )
        if not len(tokens) == len(values) == len(display or tokens):
            return None  # columns of different lengths: nobody knows which is whose
        pairs = [list((top or {}).items()) for top in display or ()]
        tops = Alternatives.joined([[Alternative(*pair) for pair in top] for top in pairs])
    else:
        return None
    if None in values:
        # null, which some servers write for minus infinity, is no number
        values = [math.nan if value is None else value for value in values]
    return TokenLogprobs(tokens, cast("list[float]", values), tops)


def _read_usages(
    usage: TokenCounts,
    logprobs: list[TokenLogprobs | None],
    choices: list[ChatChoice],
    request: Request,
    *,
    one_choice_counted: bool,
) -> tuple[list[Usage], str | None]:
    """Share the tokens of a call among its draws: the prompt is paid once.

    Where log-probs show how long each draw is, that is its share; otherwise shares are equal
    and only their sum means anything. A count that is missing or impossible is estimated from
    the text; the second value says so.
    """
    count = len(logprobs)
    # A prompt of no tokens, or a text of none, is no count: caps must not take it for free.
    prompt = replies.token_count(usage.prompt_tokens) or None
    total = replies.token_count(usage.completion_tokens)
    if total == 0 and any(map(_tokens_of, choices)):
        total = None
    estimated = None
    if prompt is None or total is None:
        stated = {name: getattr(usage, name) for name in ("prompt_tokens", "completion_tokens")}
        wrong = [k for k, n in stated.items() if n is not None and not replies.token_count(n)]
        estimated = f"impossible {' and '.join(wrong)}" if wrong else "no count of tokens"
    if prompt is None:
        prompt = prompt_tokens_estimate(request)
    lengths = [len(entries or ()) for entries in logprobs]
    if total is None:
        pairs = zip(lengths, choices, strict=True)
        shares = [length or _tokens_of(choice) for length, choice in pairs]
    else:
        if one_choice_counted:
            total *= count
        shares = [total // count + (position < total % count) for position in range(count)]
        if all(lengths) and (one_choice_counted or sum(lengths) == total or not total):
            shares = lengths
    usages = [Usage(prompt if position == 0 else 0, share) for position, share in enumerate(shares)]
    return usages, estimated


def _tokens_of(choice: ChatChoice) -> int:
    return completion_tokens_estimate(choice.message.content or choice.message.refusal or "")


def without_choices(
    answer: Mapping[str, object], *, form: object = None
) -> TransientClientError | PermanentClientError:
    """Return the error that an answer with status 200 holds; some gateways do that."""
    error = answer.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        message = f"error in an answer with status 200: {error.get('message')} ({code})"
        if isinstance(code, int) and 400 <= code < 500 and code not in (408, 429):
            return PermanentClientError(message[:400])
        return TransientClientError(message[:400])
    if answer.get("choices"):
        return TransientClientError(f"{NO_FORM}: {form}")
    return TransientClientError("the answer holds no choices")
