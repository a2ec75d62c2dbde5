"""Probabilities shifted to what matters: relevant tokens, and answers that others support."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.graph import similarity_stacks
from calibrant.confidence.method import Options, register
from calibrant.confidence.segments import mean_by, sum_by
from calibrant.confidence.text_words import bare_word, is_function_word
from calibrant.core.arrays import Floats, Mask

_TEMPERATURE = 0.001


def content_tokens(block: DrawBlock) -> Mask:
    """Return which tokens carry content: neither a mark nor a function word.

    This stands in for the cross-encoder of the paper: leaving out a content word changes the bag
    of content words, each of them by the same amount; leaving out another token changes nothing.
    A text without content words keeps all its tokens.
    """
    columns = block.columns
    bare = (bare_word(text) for text in columns.text)
    carries = np.array([bool(word) and not is_function_word(word) for word in bare], dtype=bool)
    some = sum_by(columns.row, carries, len(block)) > 0
    found: Mask = carries | ~some[columns.row]
    return found


def _relevant_loss(block: DrawBlock) -> Floats:
    """Return tokenSAR of each draw: mean -log p of its content tokens."""
    kept = np.where(content_tokens(block), -block.columns.logprob, np.nan)
    return mean_by(block.columns.row, kept, len(block))


@register
def token_sar(table: DrawTable, _: Options) -> Floats:
    """Mean over draws of the log-probability per content token."""
    block = table.samples
    return -mean_by(block.unit, _relevant_loss(block), len(table))


@register
def sent_sar(table: DrawTable, options: Options) -> Floats:
    """Sentence-level shift: every draw gains the probability of the draws similar to it."""
    return _supported(table, options, table.samples.probability)


@register
def sar(table: DrawTable, options: Options) -> Floats:
    """Both shifts: relevant tokens, then similar texts."""
    probability = np.exp(-_relevant_loss(table.samples))
    return _supported(table, options, probability)


def _supported(table: DrawTable, options: Options, probability: Floats) -> Floats:
    block = table.samples
    known = ~np.isnan(probability)
    weight = np.where(known, probability, 0.0)
    value = np.full(len(table), np.nan)
    for units, stack in similarity_stacks(table, options):
        rows = block.first[units][:, None] + np.arange(stack.shape[1])
        p, read = weight[rows], known[rows]
        others = np.einsum("bij,bj->bi", stack, p) - np.einsum("bii,bi->bi", stack, p)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(read, np.log(p + others / _TEMPERATURE), 0.0)
            value[units] = logs.sum(axis=1) / read.sum(axis=1)
    return value
