"""Recorded experiments as calibrant tables, shared by the study of confidence and its tests."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.answers.semantics import stated as parsers
from calibrant.answers.semantics.extract import parse_vote
from calibrant.answers.semantics.grade import Grader

MODEL = "deepseek-v3"


parse_stated = cache(parsers.parse_stated)
parse_top_k = cache(parsers.parse_top_k)
parse_confidence = cache(parsers.parse_confidence)
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


@cache
def words(text: str) -> tuple[str, ...]:
    """Return the words, without accents, case and apostrophes."""
    return tuple(filter(None, map(plain, re.split(r"[^\w'\u2019\u02bd]+", text))))


# A list ends its entries with commas, semicolons, lines, full stops (not those of initials),
# 'or' and 'and', or puts remarks in brackets behind them.
ENTRY_END = re.compile(r"[,;\n]|(?<=\w\w)\.(?=\s|$)|\s(?:or|and)\s|\([^)]*\)")


@cache
def entries(text: str) -> frozenset[tuple[str, ...]]:
    """Return the words of every entry of an answer that lists several things."""
    return frozenset(filter(None, map(words, ENTRY_END.split(text))))


def named_in(part: tuple[str, ...], entry: tuple[str, ...]) -> bool:
    """Whether a draw's part is this entry, or a name without some of its words."""
    if len(part) < 2:
        return part == entry
    left = iter(entry)
    return all(word in left for word in part)


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
    """Return a rule for the authors' judge: class 0 where a draw agrees with the greedy answer.

    The judge was shown the comma-separated parts of the draw as references and the whole greedy
    answer as the text that may hold one of them; its verdicts are not recorded. 'Egypt' thus
    agrees with 'Egypt (Arabic), South Sudan', and 'Michael Waterman' with 'Michael S. Waterman',
    but not the other way round.
    """
    ours, listed = parts(greedy), entries(greedy)

    def agrees(text: str) -> bool:
        return bool(ours & parts(text)) or any(
            named_in(words(part), entry) for part in text.split(",") for entry in listed
        )

    return lambda text: 0 if agrees(text) else 1


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
        row
        for question in recorded.iter_rows(named=True)
        for row in _Recorded(question, authors_rule=authors_rule).rows()
    ]
    texts = pl.DataFrame(rows, schema=_SCHEMA)
    frame = pl.concat([texts, *_votes(recorded)], how="diagonal").with_columns(
        pl.lit(MODEL).alias("model"), pl.col("temperature").fill_null(0.0)
    )
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


def _votes(recorded: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the verdicts on the greedy answer, one row per vote."""
    frames = []
    for purpose in ("p_true", "p_true_cand"):
        votes = recorded.select(
            pl.col("id").alias("question_id"),
            pl.lit(purpose).alias("purpose"),
            pl.col(f"{purpose}_votes").alias("text"),
            pl.int_ranges(0, pl.col(f"{purpose}_votes").list.len()).alias("draw"),
            pl.lit(1.0).alias("temperature"),
        ).explode("text", "draw")
        said = {text: parse_vote(text) for text in votes["text"].unique()}
        words = {text: None if vote is None else str(vote) for text, vote in said.items()}
        frames.append(
            votes.with_columns(
                pl.col("text").replace_strict(words, return_dtype=pl.String).alias("answer")
            )
        )
    return frames


Row = dict[str, Any]


class _Recorded:
    """The recorded draws of one question, as rows."""

    def __init__(self, question: Row, *, authors_rule: bool) -> None:
        self.question = question
        self.authors_rule = authors_rule
        greedy: str = question["greedy_answer"]
        self.meaning: Callable[[str], int | None] = (
            _agreement(greedy)
            if authors_rule
            else _Meanings(question["samples"], question["cluster"])
        )
        self._grades: dict[str, bool | None] = {plain(greedy): bool(question["greedy_correct"])}

    def rows(self) -> Iterator[Row]:
        yield self._row("greedy", 0, **self._answer(self.question["greedy_answer"]))
        yield from self._samples()
        yield from self._stated()
        yield from self._lists()
        said = self.question["self_ask_raw"]
        yield self._row("self_ask", 0, text=said, stated_confidence=parse_confidence(said))

    def _row(self, purpose: str, draw: int, **more: Any) -> Row:
        return {"question_id": self.question["id"], "purpose": purpose, "draw": draw, **more}

    def _grade(self, answer: str | None) -> bool | None:
        """Grade as recorded for the greedy text, else by rules; the authors graded no other."""
        if not answer:
            return None
        key = plain(answer)
        if key not in self._grades and not self.authors_rule:
            known = self.question["references"], self.question["question"]
            self._grades[key] = GRADER.grade(answer, known[0], question=known[1]).correct
        return self._grades.get(key)

    def _answer(self, text: str) -> Row:
        return {
            "text": text,
            "answer": text,
            "class_id": self.meaning(text),
            "correct": self._grade(text),
        }

    def _samples(self) -> Iterator[Row]:
        pairs = zip(self.question["samples"], self.question["cluster"], strict=True)
        for draw, (text, cluster) in enumerate(pairs):
            found = self._answer(text)
            if not self.authors_rule:
                found["class_id"] = cluster
            yield self._row("answer", draw, temperature=1.0, **found)

    def _stated(self) -> Iterator[Row]:
        for draw, text in enumerate([self.question["verb_raw"], *self.question["verb_sample_raw"]]):
            said = parse_stated(text)
            answer = said.answer if said.confidence is not None else None
            yield self._row(
                "verb",
                draw,
                text=text,
                temperature=float(draw > 0),
                answer=answer,
                stated_confidence=said.confidence,
                class_id=self.meaning(answer) if answer else None,
                correct=self._grade(answer),
            )

    def _lists(self) -> Iterator[Row]:
        """Yield stated lists; only the surest entry needs a meaning and a grade."""
        for draw, text in enumerate([self.question["topk_raw"], *self.question["topk_sample_raw"]]):
            listed = [entry for entry in parse_top_k(text) if entry.answer]
            sure = [-1.0 if entry.confidence is None else entry.confidence for entry in listed]
            best = sure.index(max(sure)) if sure else -1
            yield self._row(
                "verb_topk",
                draw,
                text=text,
                temperature=float(draw > 0),
                stated_answers=[entry.answer for entry in listed],
                stated_confidences=[entry.confidence for entry in listed],
                stated_classes=[
                    self.meaning(entry.answer) if place == best else None
                    for place, entry in enumerate(listed)
                ],
                stated_correct=[
                    self._grade(entry.answer) if place == best else None
                    for place, entry in enumerate(listed)
                ],
            )


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
