"""Output files of batch endpoints in the manner of OpenAI: one response per line, no grades."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.records.convert.believed import believed_tokens
from calibrant.records.convert.json_text import json_lines
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.convert.options import ReadOptions

KIND = "openai-batch"


def is_openai_batch(row: Mapping[str, Any]) -> bool:
    """Return whether a jsonl file that begins with this row is a batch output."""
    return "custom_id" in row and "response" in row


def read_openai_batch(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a batch output; every choice is a draw of the question named by ``custom_id``."""
    builder = LogBuilder(KIND, str(path))
    builder.note("a batch output holds no grades: import it and grade the draws")
    for number, row in json_lines(path, builder):
        try:
            _add(builder, row, options)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"line {number}", f"not the layout of a response: {error!r}")
    return builder.finish()


def _add(builder: LogBuilder, row: Mapping[str, Any], options: ReadOptions) -> None:
    question = str(row["custom_id"])
    response = row["response"]
    if row.get("error") or response is None or response.get("status_code", 200) != 200:
        why = row.get("error") or (response or {}).get("body")
        builder.problem(f"custom_id {question}", f"the request failed: {why!r:.120}")
        return
    body = response["body"]
    usage = body.get("usage") or {}
    builder.question(question_id=question, text="", kind="open")
    for choice in body["choices"]:
        content = (choice.get("logprobs") or {}).get("content") or []
        text = choice["message"].get("content") or ""
        tokens = believed_tokens(builder, content, text)
        key = {"question_id": question, "model": str(body["model"]), "draw": int(choice["index"])}
        builder.draw(
            **key,
            text=text if options.texts else None,
            answer=text,
            reason="a batch output holds no grades",
            finish_reason=choice.get("finish_reason"),
            token_logprobs=tokens,
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
        )
        if tokens:
            mean = math.fsum(tokens) / len(tokens)
            builder.score(**key, method="perplexity", answer=text, confidence=math.exp(mean))
