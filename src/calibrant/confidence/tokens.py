"""Scores from the most probable first tokens of the greedy answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import Options, Scored, about_first, register
from calibrant.confidence.segments import gather, ratio, sum_by
from calibrant.core.arrays import Floats, Ints


def _top_of_first(block: DrawBlock) -> tuple[Ints, Floats]:
    """Return unit and log-prob of the top tokens of each unit's first draw."""
    if block.top is None or not len(block):
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    first = np.zeros(len(block), dtype=bool)
    first[block.first[block.first >= 0]] = True
    kept = first[block.top.row]
    return block.unit[block.top.row[kept]], block.top.logprob[kept]


def _shares(unit: Ints, logprob: Floats, n_units: int) -> tuple[Floats, Floats]:
    """Return each listed token's share among the listed ones, and the tokens listed per unit."""
    mass = np.exp(logprob)
    total = sum_by(unit, mass, n_units)
    return mass / total[unit], np.bincount(unit, minlength=n_units).astype(np.float64)


@register
def first_token_entropy(table: DrawTable, _: Options) -> Floats:
    """Entropy of the listed first tokens, renormalised over the list, as exp(-H)."""
    unit, logprob = _top_of_first(table.greedy)
    share, listed = _shares(unit, logprob, len(table))
    terms = np.where(share > 0, -share * np.log(np.maximum(share, 1e-300)), 0.0)
    return np.where(listed > 0, np.exp(-sum_by(unit, terms, len(table))), np.nan)


@register
def first_token_probability(table: DrawTable, _: Options) -> Floats:
    """Largest first-token probability."""
    return _ranked(table, 1)


@register
def first_token_margin(table: DrawTable, _: Options) -> Floats:
    """Probability of the best first token minus that of the second best."""
    return _ranked(table, 1) - _ranked(table, 2)


def _ranked(table: DrawTable, rank: int) -> Floats:
    """Return the probability of the token of this rank, NaN where fewer are listed."""
    unit, logprob = _top_of_first(table.greedy)
    order = np.lexsort((-logprob, unit))
    starts = np.searchsorted(unit[order], np.arange(len(table)))
    counts = np.bincount(unit, minlength=len(table))
    rows = np.where(counts >= rank, starts + rank - 1, -1)
    return np.exp(gather(logprob[order], rows))


@register
def self_certainty(table: DrawTable, _: Options) -> Floats:
    """Mean of -log(k p) over the k listed tokens, renormalised over the list.

    Published self-certainty averages over the whole vocabulary and all positions; draws keep the
    list of the first position only, so values with different k are not comparable.
    """
    unit, logprob = _top_of_first(table.greedy)
    share, listed = _shares(unit, logprob, len(table))
    with np.errstate(divide="ignore"):
        loss = -np.log(share * listed[unit])
    return np.maximum(ratio(sum_by(unit, loss, len(table)), listed), 0.0)


@register
def option_softmax(table: DrawTable, _: Options) -> Scored:
    """Softmax over the options' first-token log-probs, largest share."""
    block = table.greedy
    answers = None
    if block.option is not None:
        chosen = block.option.gather(np.where(block.first >= 0, block.first, 0))
        answers = pl.select(pl.when(pl.Series(block.first >= 0)).then(chosen)).to_series()
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
