"""Batch results of Anthropic and Gemini: answers without grades, one line per request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.records.convert.exchange import Exchange, NoAnswerError, read_exchanges
from calibrant.records.convert.json_text import ReadOptions, json_lines
from calibrant.records.convert.log import ForeignLog, LogBuilder

_NO_GRADES = "a batch output holds no grades"


def read_anthropic_batch(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the results of a message batch; ``custom_id`` names the question."""
    return _read("anthropic-batch", path, options, _message)


def _message(row: Mapping[str, Any]) -> Iterator[Exchange]:
    question, result = str(row["custom_id"]), row["result"]
    if result["type"] != "succeeded":
        why = (result.get("error") or {}).get("error") or result["type"]
        raise NoAnswerError(f"the request {question} {result['type']}: {why!r:.120}")
    message = result["message"]
    usage = message.get("usage") or {}
    blocks = [block for block in message["content"] if block.get("type", "text") == "text"]
    yield _answer(
        question,
        "".join(str(block["text"]) for block in blocks),
        str(message.get("model") or "model"),
        None,
        message.get("stop_reason"),
        (usage.get("input_tokens"), usage.get("output_tokens")),
    )


def read_gemini_batch(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the results of a batch of Gemini; ``key`` names the question."""
    return _read("gemini-batch", path, options, _candidates)


def _candidates(row: Mapping[str, Any]) -> Iterator[Exchange]:
    question, response = str(row["key"]), row.get("response")
    if row.get("error") or not isinstance(response, Mapping):
        raise NoAnswerError(f"the request {question} failed: {row.get('error')!r:.120}")
    usage = response.get("usageMetadata") or {}
    for candidate in response["candidates"]:
        parts = candidate["content"]["parts"]
        chosen = (candidate.get("logprobsResult") or {}).get("chosenCandidates") or ()
        yield _answer(
            question,
            "".join(str(part.get("text", "")) for part in parts if not part.get("thought")),
            str(response.get("modelVersion") or "model"),
            [{"token": one["token"], "logprob": one["logProbability"]} for one in chosen],
            str(candidate.get("finishReason") or "").lower() or None,
            (usage.get("promptTokenCount"), usage.get("candidatesTokenCount")),
        )


def _answer(
    question: str, text: str, model: str, tokens: list[Any] | None, finish: str | None,
    used: tuple[Any, Any],
) -> Exchange:  # fmt: skip
    return Exchange(
        question_id=question,
        question="",
        answer=text,
        model=model,
        reason=_NO_GRADES,
        tokens=tokens,
        details={
            "finish_reason": finish, "prompt_tokens": used[0], "completion_tokens": used[1],
        },
    )  # fmt: skip


def _read(kind: str, path: Path, options: ReadOptions, exchanges: Any) -> ForeignLog:
    builder = LogBuilder(kind, str(path))
    builder.note(f"{_NO_GRADES}: import it and grade the draws")
    rows = ((f"line {number}", row) for number, row in json_lines(path, builder))
    return read_exchanges(builder, rows, exchanges, options, row_is="a result").finish()
