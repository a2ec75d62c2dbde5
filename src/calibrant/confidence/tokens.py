"""Scores from the most probable first tokens of the greedy answer."""

from __future__ import annotations

import numpy as np
import polars as pl

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import Options, Scored, about_first, register
from calibrant.confidence.segments import gather, sum_by
from calibrant.core.arrays import Floats, Ints

_TOP = ("greedy", "greedy_top_logprobs")


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


@register(
    "exp(-H) over the most probable first tokens of the greedy answer",
    needs=_TOP,
    about="greedy",
    reference="MACE and SCA, appendix (first-token entropy)",
)
def first_token_entropy(table: DrawTable, _: Options) -> Scored:
    """Entropy of the listed first tokens, renormalised over the list, as exp(-H)."""
    unit, logprob = _top_of_first(table.greedy)
    share, listed = _shares(unit, logprob, len(table))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(share > 0, -share * np.log(share), 0.0)
    value = np.exp(-sum_by(unit, terms, len(table)))
    return about_first(np.where(listed > 0, value, np.nan), table.greedy, about="greedy")


@register(
    "probability of the most probable first token",
    needs=_TOP,
    about="greedy",
    reference="common baseline: maximum softmax probability of the first token",
)
def first_token_probability(table: DrawTable, _: Options) -> Scored:
    """Largest first-token probability."""
    return about_first(_ranked(table, 1), table.greedy, about="greedy")


@register(
    "gap between the two most probable first tokens",
    needs=_TOP,
    about="greedy",
    probability=False,
    reference="common baseline: top-two margin",
)
def first_token_margin(table: DrawTable, _: Options) -> Scored:
    """Probability of the best first token minus that of the second best."""
    return about_first(_ranked(table, 1) - _ranked(table, 2), table.greedy, about="greedy")


def _ranked(table: DrawTable, rank: int) -> Floats:
    """Return the probability of the token of this rank, NaN where fewer are listed."""
    unit, logprob = _top_of_first(table.greedy)
    order = np.lexsort((-logprob, unit))
    starts = np.searchsorted(unit[order], np.arange(len(table)))
    counts = np.bincount(unit, minlength=len(table))
    rows = np.where(counts >= rank, starts + rank - 1, -1)
    return np.exp(gather(logprob[order], rows))


@register(
    "divergence of the listed first tokens from the uniform law (needs top-k log-probs)",
    needs=_TOP,
    about="greedy",
    probability=False,
    high=np.inf,
    reference="Kang et al. 2025 (self-certainty), on the listed tokens of the first position",
)
def self_certainty(table: DrawTable, _: Options) -> Scored:
    """Mean of -log(k p) over the k listed tokens, renormalised over the list.

    Published self-certainty averages over the whole vocabulary and all positions; draws keep the
    list of the first position only, so values with different k are not comparable.
    """
    unit, logprob = _top_of_first(table.greedy)
    share, listed = _shares(unit, logprob, len(table))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sum_by(unit, -np.log(share * listed[unit]), len(table)) / listed
    return about_first(np.maximum(value, 0.0), table.greedy, about="greedy")


@register(
    "largest share among the options of a choice question, about that option",
    needs=("greedy", "option_logprobs"),
    about="option",
    reference="max softmax probability over options; Plaut et al. 2024",
)
def option_softmax(table: DrawTable, _: Options) -> Scored:
    """Softmax over the options' first-token log-probs, largest share."""
    block = table.greedy
    scored = about_first(block.of_first(block.option_share), block, about="option")
    answers = None if block.option is None else block.option.gather(_safe(block.first))
    if answers is not None:
        hidden = pl.Series(block.first < 0)
        answers = pl.select(pl.when(~hidden).then(answers)).to_series()
    return Scored(
        value=scored.value,
        block=block,
        row=block.first,
        correct=block.of_first(block.option_correct),
        about="option",
        answers=answers,
    )


def _safe(rows: Ints) -> Ints:
    return np.where(rows >= 0, rows, 0)


@register(
    "P(yes) / (P(yes) + P(no)) of the first token of a yes/no question, about the answer yes",
    needs=("greedy", "yes_no_logprobs"),
    about="option",
    reference="Cruz et al. 2024 (folktexts); next-token ratio of binary questions",
)
def yes_no_ratio(table: DrawTable, _: Options) -> Scored:
    """Next-token share of yes among yes and no.

    It is about the answer 'yes'. Exactly one of the two answers is right, so the grade of a
    greedy 'no' grades 'yes' too.
    """
    block = table.greedy
    yes, no = block.of_first(block.true_mass), block.of_first(block.false_mass)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = yes / (yes + no)
    word = block.answer.str.strip_chars().str.to_lowercase()
    says_yes = word.str.contains("^(yes|true)").fill_null(False).to_numpy()
    says_no = word.str.contains("^(no|false)").fill_null(False).to_numpy()
    grade = np.where(says_yes, block.correct, np.where(says_no, 1.0 - block.correct, np.nan))
    return Scored(
        value=np.where(block.first >= 0, value, np.nan),
        block=block,
        row=block.first,
        correct=block.of_first(grade),
        about="option",
        answers=pl.Series("answer", ["yes"] * len(table), dtype=pl.String),
    )
