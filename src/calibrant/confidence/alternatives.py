"""Entropy, margin and claim-conditioned probability of the greedy answer's tokens."""

from __future__ import annotations

import re

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import Options, Scored, about_first, register
from calibrant.confidence.segments import gather, sum_by
from calibrant.confidence.text_words import is_function_word
from calibrant.confidence.token_columns import TokenColumns
from calibrant.core.arrays import Floats

_NEEDS = ("greedy", "greedy_token_logprobs", "greedy_token_alternatives")
_MARKS = re.compile(r"[\W_]+")


def _token_entropy(columns: TokenColumns) -> Floats:
    """Return the entropy of the listed alternatives of each token, renormalised over the list."""
    size = columns.row.size
    mass = np.exp(columns.alternative_logprob)
    share = mass / sum_by(columns.of, mass, size)[columns.of]
    terms = np.where(share > 0, -share * np.log(np.maximum(share, 1e-300)), 0.0)
    return np.maximum(sum_by(columns.of, terms, size), 0.0)


def _of_greedy(block: DrawBlock, values: Floats, *, how: str) -> Floats:
    """Return the mean or largest token value of each unit's greedy answer."""
    if block.columns is None:
        return np.full(block.n_units, np.nan)
    rows = len(block)
    if how == "max":
        found = np.full(rows, -np.inf)
        np.maximum.at(found, block.columns.row, values)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = sum_by(block.columns.row, values, rows) / np.bincount(
                block.columns.row, minlength=rows
            )
    whole = block.columns.rows_with_alternatives(rows)
    return gather(np.where(whole, found, np.nan), block.first)


def mean_entropy(block: DrawBlock) -> Floats:
    """Return the mean token entropy (nats) of each unit's first draw."""
    if block.columns is None:
        return np.full(block.n_units, np.nan)
    return _of_greedy(block, _token_entropy(block.columns), how="mean")


@register(
    "exp(-H) with H the mean entropy of the tokens of the greedy answer",
    needs=_NEEDS,
    about="greedy",
    probability=False,
    reference="Fomicheva et al. 2020 (mean token entropy), over the listed alternatives",
)
def mean_token_entropy(table: DrawTable, _: Options) -> Scored:
    """Mean entropy of the listed alternatives of every token, as exp(-H)."""
    return about_first(np.exp(-mean_entropy(table.greedy)), table.greedy, about="greedy")


@register(
    "exp(-H) with H the largest entropy of a token of the greedy answer",
    needs=_NEEDS,
    about="greedy",
    probability=False,
    reference="Manakul et al. 2023 (maximum token entropy), over the listed alternatives",
)
def max_token_entropy(table: DrawTable, _: Options) -> Scored:
    """Entropy of the least certain token, as exp(-H)."""
    block = table.greedy
    value = np.full(len(table), np.nan)
    if block.columns is not None:
        value = _of_greedy(block, _token_entropy(block.columns), how="max")
    return about_first(np.exp(-value), block, about="greedy")


@register(
    "mean gap between the two most probable tokens, over the greedy answer",
    needs=_NEEDS,
    about="greedy",
    probability=False,
    reference="Farr et al. 2024; Bouchard and Chauhan 2025 (uqlm, probability margin)",
)
def probability_margin(table: DrawTable, _: Options) -> Scored:
    """Mean over tokens of the best minus the second best probability."""
    block = table.greedy
    if block.columns is None:
        return about_first(np.full(len(table), np.nan), block, about="greedy")
    return about_first(
        _of_greedy(block, _margins(block.columns), how="mean"), block, about="greedy"
    )


def _margins(columns: TokenColumns) -> Floats:
    size = columns.row.size
    order = np.lexsort((-columns.alternative_logprob, columns.of))
    starts = np.searchsorted(columns.of[order], np.arange(size))
    counts = np.bincount(columns.of, minlength=size)
    best = gather(columns.alternative_logprob[order], np.where(counts > 0, starts, -1))
    second = gather(columns.alternative_logprob[order], np.where(counts > 1, starts + 1, -1))
    margin: Floats = np.exp(best) - np.where(np.isnan(second), 0.0, np.exp(second))
    return margin


@register(
    "product over content tokens of the probability that the alternatives say the same",
    needs=(*_NEEDS, "greedy_token_texts"),
    about="greedy",
    probability=False,
    reference=(
        "Fadeeva et al. 2024 (claim-conditioned probability), with word rules in place of "
        "entailment"
    ),
)
def claim_conditioned_probability(table: DrawTable, _: Options) -> Scored:
    """Product of P(same) / (P(same) + P(another claim)) over the greedy answer's tokens.

    Alternatives that are function words or marks belong to another way of speaking, not to
    another claim, and are left out; so are tokens that are such themselves. The same letters in
    another case or with other marks, and a piece that begins the chosen word, say the same.
    """
    block = table.greedy
    if block.columns is None:
        return about_first(np.full(len(table), np.nan), block, about="greedy")
    logs = np.log(_claim_share(block.columns))
    value = np.exp(gather(sum_by(block.columns.row, logs, len(block)), block.first))
    return about_first(value, block, about="greedy")


def _claim_share(columns: TokenColumns) -> Floats:
    """Return per token the share of 'the same' among the alternatives that make a claim."""
    chosen = [_bare(text) for text in columns.text]
    same = np.zeros(len(columns.alternative), dtype=bool)
    claims = np.zeros(len(columns.alternative), dtype=bool)
    for place, (token, text) in enumerate(zip(columns.of, columns.alternative, strict=True)):
        own, other = chosen[token], _bare(text)
        claims[place] = bool(other) and not is_function_word(other)
        same[place] = own == other or (bool(other) and own.startswith(other))
    size = columns.row.size
    mass = np.exp(columns.alternative_logprob)
    agree = sum_by(columns.of, np.where(same, mass, 0.0), size)
    every = sum_by(columns.of, np.where(same | claims, mass, 0.0), size)
    # A token whose chosen form is not listed still says itself, with its own probability.
    missing = agree == 0.0
    agree = np.where(missing, np.exp(columns.logprob), agree)
    every = np.where(missing, every + np.exp(columns.logprob), every)
    neutral = np.array([not word or is_function_word(word) for word in chosen], dtype=bool)
    share: Floats = np.where(neutral, 1.0, np.minimum(agree / every, 1.0))
    return share


def _bare(text: str | None) -> str:
    return _MARKS.sub("", (text or "").replace("▁", "").lower())
