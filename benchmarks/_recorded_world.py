"""An endpoint on the loopback that answers as a real model once did, question by question."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import Any

import polars as pl
from aiohttp import web

STUDY = """\
seed = 7
questions = "questions.jsonl"
methods = ["verb", "consistency"]

[sampling]
draws = {draws}

[prompts]
style = "short"

[[models]]
name = "deepseek"
model = "deepseek"
client = "vllm"
base_url = "{url}"
"""


def mace_rows(data, count, draws) -> list[dict[str, Any]]:
    """Return recorded answers of DeepSeek-V3 to MACE questions, in an order of chance."""
    table = pl.read_parquet(data / "mace" / "deepseek_v3.parquet")
    rows = table.sample(count, seed=1, shuffle=True).iter_rows(named=True)
    return [{**row, "samples": row["samples"][:draws]} for row in rows]


def mmlu_rows(data, count) -> list[dict[str, Any]]:
    """Return recorded token probabilities and grades of one model on MMLU-Pro."""
    return token_rows(data, "gpt-4o-2024-08-06", seed=1)[:count]


def token_rows(data, model, *, seed) -> list[dict[str, Any]]:
    """Return token probabilities and grades of a model on MMLU-Pro, in an order of chance."""
    table = pl.read_parquet(data / "scores" / "mmlu_pro_16_models.parquet")
    said = pl.col("logit_perplexity_confidence").cast(pl.Float64)
    one = table.filter((pl.col("model") == model) & said.is_between(1e-6, 1.0)).select(
        pl.col("question_id").cast(pl.String),
        pl.col("category").cast(pl.String),
        pl.col("correct").cast(pl.Float64),
        said.alias("confidence"),
    )
    return one.sample(fraction=1.0, seed=seed, shuffle=True).to_dicts()


def questions_of(rows) -> list[dict[str, Any]]:
    """Return the questions as a study reads them."""
    return [
        {
            "question_id": row["id"],
            "text": row["question"],
            "references": [[reference] for reference in row["references"]],
            "domain": row["domain"],
        }
        for row in rows
    ]


@asynccontextmanager
async def recorded_answers(rows):
    """Serve what DeepSeek-V3 said: stated answers where the prompt asks for them, else samples."""
    by_text = {row["question"]: row for row in rows}

    def reply(asked: str, place: int) -> str:
        text = next(line for line in asked.splitlines() if line.startswith("Question: "))
        row = by_text[text.removeprefix("Question: ")]
        if "Answer and probability:" in asked:
            return str(row["verb_raw"])
        return str(row["samples"][place])

    async with _serve(lambda body: [reply(body["messages"][-1]["content"], place)
                                    for place in range(body.get("n", 1))]) as url:  # fmt: skip
        yield url


@asynccontextmanager
async def recorded_tokens(rows):
    """Serve one token per question with its recorded probability."""
    by_id = {str(row["question_id"]): row for row in rows}

    def reply(body):
        row = by_id[body["messages"][-1]["content"].split()[-1]]
        return "right" if row["correct"] else "wrong", math.log(row["confidence"])

    async with _serve(lambda body: [reply(body)[0]], lambda body: reply(body)[1]) as url:
        yield url


@asynccontextmanager
async def _serve(texts, logprob=None):
    async def complete(request):
        body = json.loads(await request.read())
        choices = [_choice(place, text, logprob and logprob(body))
                   for place, text in enumerate(texts(body))]  # fmt: skip
        used = {"prompt_tokens": 20, "completion_tokens": 4 * len(choices)}
        return web.json_response({"id": "r", "model": "m", "choices": choices, "usage": used})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def _choice(place: int, text: str, logprob: float | None) -> Mapping[str, Any]:
    choice: dict[str, Any] = {
        "index": place, "message": {"role": "assistant", "content": text}, "finish_reason": "stop",
    }  # fmt: skip
    if logprob is not None:
        choice["logprobs"] = {"content": [{"token": text, "logprob": logprob}]}
    return choice
