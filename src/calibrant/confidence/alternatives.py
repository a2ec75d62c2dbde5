"""Entropy, margin and claim-conditioned probability of the greedy answer's tokens."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import Options, register
from calibrant.confidence.segments import gather, mean_by, sum_by
from calibrant.confidence.text_words import bare_word, is_function_word
from calibrant.confidence.token_columns import TokenColumns
from calibrant.core.arrays import Floats


def _token_entropy(columns: TokenColumns) -> Floats:
    """Return the entropy of the listed alternatives of each token, renormalised over the list."""
    size = columns.row.size
    mass = np.exp(columns.alternative_logprob)
    share = mass / sum_by(columns.of, mass, size)[columns.of]
    terms = np.where(share > 0, -share * np.log(np.maximum(share, 1e-300)), 0.0)
    return np.maximum(sum_by(columns.of, terms, size), 0.0)


def _of_greedy(block: DrawBlock, values: Floats, *, largest: bool = False) -> Floats:
    """Return the mean or largest token value of each unit's greedy answer."""
    columns, rows = block.columns, len(block)
    found = mean_by(columns.row, values, rows)
    if largest:
        found = np.full(rows, -np.inf)
        np.maximum.at(found, columns.row, values)
    return gather(np.where(columns.rows_with_alternatives(rows), found, np.nan), block.first)


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
    return _of_greedy(table.greedy, _margins(table.greedy.columns))


def _margins(columns: TokenColumns) -> Floats:
    size = columns.row.size
    order = np.lexsort((-columns.alternative_logprob, columns.of))
    starts = np.searchsorted(columns.of[order], np.arange(size))
    counts = np.bincount(columns.of, minlength=size)
    best = gather(columns.alternative_logprob[order], np.where(counts > 0, starts, -1))
    second = gather(columns.alternative_logprob[order], np.where(counts > 1, starts + 1, -1))
    margin: Floats = np.exp(best) - np.where(np.isnan(second), 0.0, np.exp(second))
    return margin


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
    chosen = [bare_word(text) for text in columns.text]
    same = np.zeros(len(columns.alternative), dtype=bool)
    claims = np.zeros(len(columns.alternative), dtype=bool)
    for place, (token, text) in enumerate(zip(columns.of, columns.alternative, strict=True)):
        own, other = chosen[token], bare_word(text)
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
