"""The tokens listed as most probable: options and yes/no words read from them, and scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from calibrant.answers.confidence.columns import (
    TokenColumns,
    first_argmax,
    gather,
    mean_by,
    ratio,
    sum_by,
)
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.likeness import bare_word, is_function_word
from calibrant.answers.confidence.method import Options, Scored, about_first, register
from calibrant.core.arrays import Floats, Ints

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
    equal = (pl.col("word") == pl.col("letter")) | (pl.col("word") == pl.col("lower"))
    masses = names.join(_flat_tokens(greedy), on="row", how="inner").filter(equal)
    masses = masses.group_by("row", "place").agg(pl.col("mass").sum())
    every = names.join(masses, on=["row", "place"], how="left").sort("row", "place")
    best = every.group_by("row", maintain_order=True).agg(
        pl.col("mass").is_null().any().alias("partial"),
        (pl.col("mass").max() / pl.col("mass").sum()).alias("share"),
        pl.col("unit").first(),
        pl.col("choice", "letter", "lower").get(pl.col("mass").arg_max()),
    )
    best = _with_grades(best.filter(~pl.col("partial")), graded)
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
    answer = pl.col("answer").str.strip_chars(" \t\n.()").str.to_lowercase()
    values = graded.drop_nulls(["correct", "answer"]).select("unit", answer, grade="correct")
    values = values.unique(["unit", "answer"], keep="first", maintain_order=True)
    for column in ("letter", "lower"):
        names = values.rename({"answer": column, "grade": f"grade of {column}"})
        best = best.join(names, on=["unit", column], how="left")
    return best.with_columns(grade=pl.coalesce("grade of letter", "grade of lower"))


def _shares(group: Ints, logprob: Floats, size: int) -> Floats:
    """Return each listed token's share among those of its group."""
    mass = np.exp(logprob)
    return np.asarray(mass / sum_by(group, mass, size)[group])


def _entropy(group: Ints, logprob: Floats, size: int) -> Floats:
    """Return the entropy of the listed tokens of each group, renormalised over the list."""
    share = _shares(group, logprob, size)
    terms = np.where(share > 0, -share * np.log(np.maximum(share, 1e-300)), 0.0)
    return sum_by(group, terms, size)


def _ranked(group: Ints, logprob: Floats, size: int, rank: int) -> Floats:
    """Return the probability of the token of this rank, NaN where fewer are listed."""
    order = np.lexsort((-logprob, group))
    starts = np.searchsorted(group[order], np.arange(size))
    counts = np.bincount(group, minlength=size)
    rows = np.where(counts >= rank, starts + rank - 1, -1)
    return np.exp(gather(logprob[order], rows))


def _token_entropy(columns: TokenColumns) -> Floats:
    """Return the entropy of the listed alternatives of each token."""
    return np.maximum(_entropy(columns.of, columns.alternative_logprob, columns.row.size), 0.0)


def _likeness_to_uniform(columns: TokenColumns) -> Floats:
    """Return Bhattacharyya's coefficient of each token's listed alternatives and equal shares."""
    size = columns.row.size
    equal = 1.0 / np.maximum(np.bincount(columns.of, minlength=size), 1)[columns.of]
    roots = np.sqrt(_shares(columns.of, columns.alternative_logprob, size) * equal)
    return np.clip(sum_by(columns.of, roots, size), 1e-300, 1.0)


def _of_greedy(block: DrawBlock, values: Floats, *, largest: bool = False) -> Floats:
    """Return the mean or largest token value of each unit's greedy answer."""
    columns, rows = block.columns, len(block)
    by_row = mean_by(columns.row, values, rows)
    if largest:
        by_row = np.full(rows, -np.inf)
        np.maximum.at(by_row, columns.row, values)
    return gather(np.where(columns.rows_with_all("alternative", rows), by_row, np.nan), block.first)


def mean_entropy(block: DrawBlock) -> Floats:
    """Return the mean token entropy (nats) of each unit's first draw."""
    return _of_greedy(block, _token_entropy(block.columns))


@register
def mean_token_entropy(table: DrawTable, _: Options) -> Floats:
    """Mean entropy of the listed alternatives of every token, as exp(-H)."""
    return np.exp(-mean_entropy(table.greedy))


@register
def max_token_entropy(table: DrawTable, _: Options) -> Floats:
    """Entropy of the least certain token, as exp(-H)."""
    block = table.greedy
    return np.exp(-_of_greedy(block, _token_entropy(block.columns), largest=True))


@register
def probability_margin(table: DrawTable, _: Options) -> Floats:
    """Mean over tokens of the best minus the second best probability."""
    columns = table.greedy.columns
    listed = columns.of, columns.alternative_logprob, columns.row.size
    margins = _ranked(*listed, 1) - np.nan_to_num(_ranked(*listed, 2))
    return _of_greedy(table.greedy, margins)


@register
def renyi_divergence(table: DrawTable, _: Options) -> Floats:
    """Mean over tokens of the divergence of order 1/2 from equal shares of what is listed."""
    block = table.greedy
    return _of_greedy(block, -2.0 * np.log(_likeness_to_uniform(block.columns)))


@register
def fisher_rao(table: DrawTable, _: Options) -> Floats:
    """Mean over tokens of the Fisher-Rao distance from equal shares, 1 at the largest."""
    block = table.greedy
    return _of_greedy(block, 2.0 / np.pi * np.arccos(_likeness_to_uniform(block.columns)))


@register
def boosted_probability(table: DrawTable, _: Options) -> Floats:
    """Geometric mean of token probabilities, each with that of the tokens as good as it.

    The dominant tokens of a place stand before the largest drop of the listed probabilities; a
    chosen token that is one of them counts with the sum of all of them.
    """
    block = table.greedy
    return np.exp(_of_greedy(block, np.log(_boosted(block.columns))))


def _boosted(columns: TokenColumns) -> Floats:
    size, selection = columns.row.size, np.exp(columns.logprob)
    order = np.lexsort((-columns.alternative_logprob, columns.of))
    of, mass = columns.of[order], np.exp(columns.alternative_logprob[order])
    # After the last alternative of a place comes nothing: its drop is all that it has.
    same_place = np.append(of[1:] == of[:-1], np.zeros(min(of.size, 1), bool))
    drop = np.where(same_place, mass - np.append(mass[1:], 0.0), mass)
    last = first_argmax(drop, of, np.ones(of.size, dtype=bool), size)
    dominant = np.arange(of.size) <= last[of]
    best = sum_by(of[dominant], mass[dominant], size)
    boosted: Floats = np.where(
        selection >= gather(mass, last) - 1e-12, np.maximum(best, selection), selection
    )
    return np.minimum(boosted, 1.0)


@register
def claim_conditioned_probability(table: DrawTable, _: Options) -> Floats:
    """Product of P(same) / (P(same) + P(another claim)) over the greedy answer's tokens.

    Alternatives that are function words or marks belong to another way of speaking, not to
    another claim, and are left out; so are tokens that are such themselves. The same letters in
    another case or with other marks, and a piece that begins the chosen word, say the same.
    """
    block = table.greedy
    logs = np.log(_claim_share(block.columns))
    return np.exp(gather(sum_by(block.columns.row, logs, len(block)), block.first))


def _claim_share(columns: TokenColumns) -> Floats:
    """Return per token the share of 'the same' among the alternatives that make a claim."""
    choice = [bare_word(text) for text in columns.text]
    is_same = np.zeros(len(columns.alternative), dtype=bool)
    claims = np.zeros(len(columns.alternative), dtype=bool)
    for place, (token, text) in enumerate(zip(columns.of, columns.alternative, strict=True)):
        own, peer = choice[token], bare_word(text)
        claims[place] = bool(peer) and not is_function_word(peer)
        is_same[place] = own == peer or (bool(peer) and own.startswith(peer))
    size = columns.row.size
    mass = np.exp(columns.alternative_logprob)
    agree = sum_by(columns.of, np.where(is_same, mass, 0.0), size)
    total = sum_by(columns.of, np.where(is_same | claims, mass, 0.0), size)
    # A token whose chosen form is not listed still says itself, with its own probability.
    missing = agree == 0.0
    agree = np.where(missing, np.exp(columns.logprob), agree)
    total = np.where(missing, total + np.exp(columns.logprob), total)
    neutral = np.array([not word or is_function_word(word) for word in choice], dtype=bool)
    return np.asarray(np.where(neutral, 1.0, np.minimum(agree / total, 1.0)))


def _top_of_first(block: DrawBlock) -> tuple[Ints, Floats, int]:
    """Return unit and log-prob of the top tokens of each unit's first draw, and how many units."""
    if block.top is None or not len(block):
        return np.zeros(0, dtype=np.int64), np.zeros(0), block.n_units
    first = np.zeros(len(block), dtype=bool)
    first[block.first[block.first >= 0]] = True
    selection = first[block.top.row]
    return block.unit[block.top.row[selection]], block.top.logprob[selection], block.n_units


@register
def first_token_entropy(table: DrawTable, _: Options) -> Floats:
    """Entropy of the listed first tokens, renormalised over the list, as exp(-H)."""
    unit, logprob, size = _top_of_first(table.greedy)
    listed = np.bincount(unit, minlength=size)
    return np.where(listed > 0, np.exp(-_entropy(unit, logprob, size)), np.nan)


@register
def first_token_probability(table: DrawTable, _: Options) -> Floats:
    """Largest first-token probability."""
    return _ranked(*_top_of_first(table.greedy), 1)


@register
def first_token_margin(table: DrawTable, _: Options) -> Floats:
    """Probability of the best first token minus that of the second best."""
    top = _top_of_first(table.greedy)
    return _ranked(*top, 1) - _ranked(*top, 2)


@register
def self_certainty(table: DrawTable, _: Options) -> Floats:
    """Mean of -log(k p) over the k listed tokens, renormalised over the list.

    Published self-certainty averages over the whole vocabulary and all positions; draws keep the
    list of the first position only, so values with different k are not comparable.
    """
    unit, logprob, size = _top_of_first(table.greedy)
    listed = np.bincount(unit, minlength=size).astype(np.float64)
    with np.errstate(divide="ignore"):
        loss = -np.log(_shares(unit, logprob, size) * listed[unit])
    return np.maximum(ratio(sum_by(unit, loss, size), listed), 0.0)


@register
def option_softmax(table: DrawTable, _: Options) -> Scored:
    """Softmax over the options' first-token log-probs, largest share."""
    block = table.greedy
    answers = None
    if block.option is not None:
        choice = block.option.gather(np.where(block.first >= 0, block.first, 0))
        answers = pl.select(pl.when(pl.Series(block.first >= 0)).then(choice)).to_series()
    scored = about_first(block.of_first(block.option_share), block, about="option")
    return replace(scored, correct=block.of_first(block.option_correct), answers=answers)


@register
def yes_no_ratio(table: DrawTable, _: Options) -> Scored:
    """Next-token share of yes among yes and no.

    It is about the answer 'yes'. Exactly one of the two answers is right, so the grade of a
    greedy 'no' grades 'yes' too.
    """
    block = table.greedy
    yes, no = block.of_first(block.true_mass), block.of_first(block.false_mass)
    word = block.answer.str.strip_chars().str.to_lowercase()
    says_yes = word.str.contains("^(yes|true)").fill_null(False).to_numpy()
    says_no = word.str.contains("^(no|false)").fill_null(False).to_numpy()
    grade = np.where(says_yes, block.correct, np.where(says_no, 1.0 - block.correct, np.nan))
    return replace(
        about_first(ratio(yes, yes + no), block, about="option"),
        correct=block.of_first(grade),
        answers=pl.Series("answer", ["yes"] * len(table), dtype=pl.String),
    )
