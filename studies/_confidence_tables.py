"""Recorded experiments as calibrant tables, shared by the study of confidence and its tests."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.semantics import stated as parsers
from calibrant.semantics.extract import parse_vote
from calibrant.semantics.grade import Grader

MODEL = "deepseek-v3"
LISTS = ("stated_answers", "stated_confidences", "stated_classes", "stated_correct")


parse_stated = cache(parsers.parse_stated)
parse_top_k = cache(parsers.parse_top_k)
GRADER = Grader()


@cache
def plain(text: str) -> str:
    """Return letters and digits only, without accents and case."""
    bare = "".join(
        char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char)
    )
    return re.sub(r"[\W_]", "", bare.lower())


def parts(text: str) -> frozenset[str]:
    """Return the comma-separated parts: how the recorded agreement treats an answer."""
    return frozenset(filter(None, map(plain, text.split(","))))


class _Meanings:
    """Class ids of one question: recorded clusters of the samples, then further answers."""

    def __init__(self, samples: Iterable[str], clusters: Iterable[int]) -> None:
        self._ids: dict[str, int] = {}
        largest = -1
        for text, cluster in zip(samples, clusters, strict=True):
            self._ids.setdefault(plain(text), cluster)
            largest = max(largest, cluster)
        self._next = largest + 1

    def __call__(self, text: str) -> int | None:
        key = plain(text)
        if not key:
            return None
        if key not in self._ids:
            self._ids[key] = self._next
            self._next += 1
        return self._ids[key]


def _agreement(greedy: str) -> Callable[[str], int]:
    """Return the authors' rule: class 0 where any comma part equals one of the greedy answer."""
    ours = parts(greedy)
    return lambda text: 0 if ours & parts(text) else 1


def deepseek_tables(
    recorded: pl.DataFrame, *, authors_rule: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return draws and semantics of the recorded MACE experiment with DeepSeek-V3.

    Parameters
    ----------
    recorded
        The recorded table: texts, clusters of the samples, votes.
    authors_rule
        Give draws that agree with the greedy answer by the authors' rule (any comma-separated
        part in common) one class, and all others another one. Otherwise the recorded clusters
        are used, and further answers join a cluster where the text is the same.
    """
    rows = [
        row for question in recorded.iter_rows(named=True) for row in _rows(question, authors_rule)
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    draws = frame.drop("class_id", "correct", "stated_classes", "stated_correct")
    semantics = frame.select(
        "question_id", "model", "purpose", "draw", "class_id", "correct", "stated_classes",
        "stated_correct",
    )  # fmt: skip
    return draws, semantics


_SCHEMA: dict[str, Any] = {
    "question_id": pl.String,
    "model": pl.String,
    "purpose": pl.String,
    "draw": pl.Int64,
    "temperature": pl.Float64,
    "text": pl.String,
    "answer": pl.String,
    "stated_confidence": pl.Float64,
    "stated_answers": pl.List(pl.String),
    "stated_confidences": pl.List(pl.Float64),
    "class_id": pl.Int64,
    "correct": pl.Boolean,
    "stated_classes": pl.List(pl.Int64),
    "stated_correct": pl.List(pl.Boolean),
}


def _rows(question: dict[str, Any], authors_rule: bool) -> Iterator[dict[str, Any]]:
    greedy = question["greedy_answer"]
    meaning: Callable[[str], int | None]
    if authors_rule:
        meaning = _agreement(greedy)
    else:
        meaning = _Meanings(question["samples"], question["cluster"])
    known: dict[str, bool | None] = {plain(greedy): bool(question["greedy_correct"])}

    def grade(answer: str | None) -> bool | None:
        if not answer:
            return None
        key = plain(answer)
        if key not in known:
            known[key] = GRADER.grade(
                answer, question["references"], question=question["question"]
            ).correct
        return known[key]

    def row(purpose: str, draw: int, text: str, heat: float, **more: Any) -> dict[str, Any]:
        base = dict.fromkeys(_SCHEMA)
        base.update(question_id=question["id"], model=MODEL, purpose=purpose, draw=draw)
        return {**base, "temperature": heat, "text": text, **more}

    yield row(
        "greedy", 0, greedy, 0.0, answer=greedy, class_id=meaning(greedy), correct=grade(greedy)
    )
    for draw, (text, cluster) in enumerate(
        zip(question["samples"], question["cluster"], strict=True)
    ):
        same = meaning(text) if authors_rule else cluster
        yield row("answer", draw, text, 1.0, answer=text, class_id=same, correct=grade(text))
    texts = [question["verb_raw"], *question["verb_sample_raw"]]
    for draw, text in enumerate(texts):
        said = parse_stated(text)
        answer = said.answer if said.confidence is not None else None
        yield row(
            "verb", draw, text, float(draw > 0), answer=answer, stated_confidence=said.confidence,
            class_id=meaning(answer) if answer else None, correct=grade(answer),
        )  # fmt: skip
    for draw, text in enumerate([question["topk_raw"], *question["topk_sample_raw"]]):
        listed = [entry for entry in parse_top_k(text) if entry.answer]
        yield row(
            "verb_topk", draw, text, float(draw > 0),
            stated_answers=[entry.answer for entry in listed],
            stated_confidences=[entry.confidence for entry in listed],
            stated_classes=[meaning(entry.answer) for entry in listed],
            stated_correct=[grade(entry.answer) for entry in listed],
        )  # fmt: skip
    for purpose in ("p_true", "p_true_cand"):
        for draw, text in enumerate(question[f"{purpose}_votes"]):
            vote = parse_vote(text)
            yield row(purpose, draw, text, 1.0, answer=None if vote is None else str(vote))
    said = question["self_ask_raw"]
    yield row("self_ask", 0, said, 0.0, stated_confidence=parsers.parse_confidence(said))


def read_deepseek(data: Path) -> pl.DataFrame:
    """Return the recorded MACE experiment."""
    return pl.read_parquet(data / "mace" / "deepseek_v3.parquet")


def local_draws(data: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the draws and questions of the three small local models, not yet annotated."""
    folder = data / "local_models"
    questions = pl.read_parquet(folder / "questions.parquet")
    questions = questions.with_columns(
        pl.when(pl.col("source") == "math_small")
        .then(pl.lit("number"))
        .otherwise(pl.lit("open"))
        .alias("kind")
    )
    greedy = pl.read_parquet(folder / "greedy.parquet")
    verdicts = pl.read_parquet(folder / "p_true.parquet").filter(
        pl.col("judge") == pl.col("author")
    )
    logprobs = pl.col("token_logprobs").cast(pl.List(pl.Float64))
    samples = pl.read_parquet(folder / "draws.parquet").select(
        "question_id", "model", pl.lit("answer").alias("purpose"), "draw", "text",
        pl.lit(1.0).alias("temperature"), logprobs,
    )  # fmt: skip
    single = (pl.lit(0, dtype=pl.Int64).alias("draw"), pl.lit(0.0).alias("temperature"))
    answers = greedy.select(
        "question_id", "model", pl.lit("greedy").alias("purpose"), "text", *single, logprobs,
        _paired("first_token_top", "first_token_top_logprobs"),
    )  # fmt: skip
    stated = greedy.select(
        "question_id", "model", pl.lit("verb").alias("purpose"), pl.col("verb_text").alias("text"),
        *single,
    )  # fmt: skip
    asked = verdicts.with_columns(
        pl.lit(["True", "False"]).alias("words"),
        pl.concat_list(pl.col("p_true_mass").log(), pl.col("p_false_mass").log()).alias("logs"),
    ).select(
        "question_id", pl.col("judge").alias("model"), pl.lit("p_true").alias("purpose"),
        pl.lit("").alias("text"), *single, _paired("words", "logs"),
    )  # fmt: skip
    return pl.concat([samples, answers, stated, asked], how="diagonal"), questions


def _paired(tokens: str, logprobs: str) -> pl.Expr:
    """Join a list of tokens and a list of log-probs to a list of pairs."""
    return (
        pl.struct(tokens, logprobs)
        .map_elements(
            lambda row: [
                {"token": token, "logprob": logprob}
                for token, logprob in zip(row[tokens], row[logprobs], strict=True)
            ],
            return_dtype=pl.List(pl.Struct({"token": pl.String, "logprob": pl.Float64})),
        )
        .alias("first_token_top_logprobs")
    )
