"""The draws table, gathered outcome by outcome."""

from collections.abc import Iterable, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import Any

import orjson
import polars as pl

from calibrant.data.study import DRAWS, TOP_TOKENS
from calibrant.models.asks import LedgeredDraw, Outcome
from calibrant.models.protocol import Completion
from calibrant.models.replies.tokens import TokenLogprobs
from calibrant.models.study.plan import Tag
from calibrant.models.study.probes import PROBES

CHUNK = 20_000
EXTRA: dict[str, pl.DataType] = {
    "about": pl.String(),
    "answered_by": pl.String(),
    "native_n": pl.Boolean(),
    "sampler": pl.String(),
    "logprobs_refused": pl.String(),
    "served_by": pl.String(),
    "end_logprob": pl.Float64(),
    "thinking": pl.String(),
    "thinking_tokens": pl.Int64(),
    "not_sent": pl.String(),
    "token_texts": pl.List(pl.String()),
    "token_alternatives": pl.List(TOP_TOKENS),
}
_KEPT_ALTERNATIVES = 5
SCHEMA: dict[str, Any] = {**DRAWS.columns, **EXTRA}


class DrawRows:
    """Rows of the draws table; finished chunks are kept in columns, so memory stays small."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._chunks: list[pl.DataFrame] = []

    def add(self, model: str, outcome: Outcome) -> None:
        """Add every draw of an outcome."""
        tag = Tag.of(outcome.ask)
        self._rows.extend(_row(model, tag, outcome, draw) for draw in outcome.draws)
        if len(self._rows) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._chunks.append(pl.DataFrame(self._rows, schema=SCHEMA))
            self._rows = []

    def frame(self, models: Sequence[str], questions: Sequence[str]) -> pl.DataFrame:
        """Return the table in the order of the study: model, question, purpose, draw."""
        self._flush()
        if not self._chunks:
            return pl.DataFrame(schema=SCHEMA)
        purposes = list(dict.fromkeys(probe.purpose for probe in PROBES.values()))
        order = [
            pl.col("model").cast(pl.Enum(list(models))),
            pl.col("question_id").cast(pl.Enum(list(questions))),
            pl.col("purpose").cast(pl.Enum(purposes)),
            pl.col("draw"),
        ]
        return pl.concat(self._chunks).sort(order)


def _row(model: str, tag: Tag, outcome: Outcome, draw: LedgeredDraw) -> dict[str, Any]:
    completion = draw.completion
    tokens = completion.logprobs
    columns = None if tokens is None else TokenLogprobs.of(tokens)
    temperature = outcome.ask.request.temperature
    return {
        "question_id": tag.question.question_id,
        "model": model,
        "purpose": tag.probe.purpose,
        "draw": tag.probe.first_draw + tag.position + draw.index,
        "text": completion.text,
        "answer": None,
        "finish_reason": completion.finish_reason,
        "token_logprobs": None if columns is None else list(columns.values),
        "first_token_top_logprobs": (tokens and _alternatives(tokens[0].top)) or None,
        "temperature": None if "temperature" in completion.not_sent else temperature,
        "seed": completion.seed,
        "prompt_tokens": completion.usage.prompt_tokens,
        "completion_tokens": completion.usage.completion_tokens,
        "cost": draw.cost,
        "latency_s": completion.latency_s,
        "request_id": completion.request_id,
        "about": tag.about,
        "answered_by": completion.model,
        "native_n": completion.native_n,
        "sampler": orjson.dumps(dict(completion.sampler), option=orjson.OPT_SORT_KEYS).decode(),
        "logprobs_refused": completion.logprobs_refused,
        "served_by": completion.served_by,
        "end_logprob": completion.end_logprob,
        "thinking": completion.thinking,
        "thinking_tokens": completion.thinking_tokens,
        "not_sent": ", ".join(completion.not_sent) or None,
        "token_texts": None if columns is None else list(columns.tokens),
        "token_alternatives": _likeliest(tag, completion),
    }


def _alternatives(pairs: Iterable[tuple[str, float]]) -> list[dict[str, object]]:
    return [{"token": token, "logprob": logprob} for token, logprob in pairs]


def _likeliest(tag: Tag, finished: Completion) -> list[list[dict[str, object]]] | None:
    """Return the five most probable tokens at every place of a greedy answer.

    Samples are many and long: of them the alternatives of the first token are kept.
    """
    if finished.logprobs is None or tag.probe.name != "greedy":
        return None
    columns = TokenLogprobs.of(finished.logprobs)
    if columns.tops is None:
        return None
    places = map(columns.tops.of, range(len(columns)))
    return [_alternatives(nlargest(_KEPT_ALTERNATIVES, top, itemgetter(1))) for top in places]
