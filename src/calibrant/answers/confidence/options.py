"""Options of choice questions and yes/no words, read from the most probable first tokens."""

from dataclasses import replace

import numpy as np
import polars as pl

from calibrant.answers.confidence.compact import DrawBlock
from calibrant.core.arrays import Floats

_PAIRS = (("true", "false"), ("yes", "no"), ("a", "b"))
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def first_tokens(frame: pl.DataFrame) -> pl.DataFrame:
    """Return row, token and log-prob of all listed first tokens."""
    listed = "first_token_top_logprobs"
    rows = frame.select(pl.int_range(pl.len()).alias("row"), listed)
    return rows.explode(listed, empty_as_null=True, keep_nulls=True).drop_nulls().unnest(listed)


def _flat_tokens(frame: pl.DataFrame) -> pl.DataFrame:
    """Return row, word (stripped, lower case) and probability of all listed first tokens."""
    word = pl.col("token").str.strip_chars(" \t\n.()*\"'▁Ġ").str.to_lowercase()
    mass = pl.col("logprob").exp()
    return first_tokens(frame).select("row", word.alias("word"), mass.alias("mass"))


def yes_no_masses(frame: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return the probability of saying True (or Yes, or A) and False (or No, or B).

    A row uses the pair of words with the largest listed mass: a prompt that asks for A or B
    still lists True and False far down. A word that is not listed has an unknown probability,
    NaN.
    """
    words = [word for pair in _PAIRS for word in pair]
    flat = _flat_tokens(frame).filter(pl.col("word").is_in(words))
    masses = flat.group_by("row", "word").agg(pl.col("mass").sum())
    table = np.full((frame.height, len(words)), np.nan)
    rows = masses["row"].to_numpy()
    columns = masses["word"].replace_strict(words, list(range(len(words))), return_dtype=pl.Int64)
    table[rows, columns.to_numpy()] = masses["mass"].to_numpy()
    pairs = table.reshape(frame.height, len(_PAIRS), 2)
    best = np.nansum(pairs, axis=2).argmax(axis=1)
    choice = pairs[np.arange(frame.height), best]
    return choice[:, 0], choice[:, 1]


def with_best_option(
    block: DrawBlock, greedy: pl.DataFrame, graded: pl.DataFrame, questions: pl.DataFrame
) -> DrawBlock:
    """Add the best option of each greedy draw, its share among the options and its grade.

    The share is NaN unless every option's letter (or text) is among the listed tokens. The grade
    is that of a graded draw that gave this option as its answer; NaN where there is none.
    """
    if "choices" not in questions.columns or questions["choices"].null_count() == len(questions):
        return replace(block, option=pl.Series("option", [None] * greedy.height, dtype=pl.String))
    names = _named_options(greedy, questions)
    masses = (
        names.join(_flat_tokens(greedy), on="row", how="inner")
        .filter((pl.col("word") == pl.col("letter")) | (pl.col("word") == pl.col("lower")))
        .group_by("row", "place")
        .agg(pl.col("mass").sum())
    )
    every = names.join(masses, on=["row", "place"], how="left").sort("row", "place")
    best = (
        every.group_by("row", maintain_order=True)
        .agg(
            pl.col("mass").is_null().any().alias("partial"),
            (pl.col("mass").max() / pl.col("mass").sum()).alias("share"),
            pl.col("unit").first(),
            pl.col("choice", "letter", "lower").get(pl.col("mass").arg_max()),
        )
        .filter(~pl.col("partial"))
    )
    best = _with_grades(best, graded)
    every_row = pl.DataFrame({"row": np.arange(greedy.height)})
    best_options = best.select("row", "choice", "share", pl.col("grade").cast(pl.Float64))
    rows = every_row.join(best_options, on="row", how="left", maintain_order="left")
    share, grade = (rows[name].fill_null(float("nan")).to_numpy() for name in ("share", "grade"))
    return replace(block, option=rows["choice"], option_share=share, option_correct=grade)


def _named_options(greedy: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Return one row per greedy draw and option: place, letter, text."""
    return (
        greedy.select(pl.int_range(pl.len()).alias("row"), "unit", "question_id")
        .join(questions.select("question_id", "choices"), on="question_id", how="inner")
        .filter(pl.col("choices").list.len() > 1)
        .with_columns(pl.int_ranges(0, pl.col("choices").list.len()).alias("place"))
        .explode("choices", "place")
        .rename({"choices": "choice"})
        .with_columns(
            pl.col("place")
            .replace_strict(dict(enumerate(_LETTERS.lower())), default=None, return_dtype=pl.String)
            .alias("letter"),
            pl.col("choice").str.strip_chars().str.to_lowercase().alias("lower"),
        )
    )


def _with_grades(best: pl.DataFrame, graded: pl.DataFrame) -> pl.DataFrame:
    """Add the grade of a draw whose answer is the option's letter or text."""
    values = (
        graded.filter(pl.col("correct").is_not_null() & pl.col("answer").is_not_null())
        .select(
            "unit",
            pl.col("answer").str.strip_chars(" \t\n.()").str.to_lowercase().alias("given"),
            pl.col("correct").alias("grade"),
        )
        .unique(["unit", "given"], keep="first", maintain_order=True)
    )
    for column in ("letter", "lower"):
        names = values.rename({"given": column, "grade": f"grade of {column}"})
        best = best.join(names, on=["unit", column], how="left")
    return best.with_columns(grade=pl.coalesce("grade of letter", "grade of lower"))
