"""Probabilities shifted to what matters: relevant tokens, and answers that others support."""

from __future__ import annotations

import re

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.graph import similarity_stacks
from calibrant.confidence.method import Options, Scored, about_question, register
from calibrant.confidence.segments import sum_by
from calibrant.confidence.text_words import is_function_word
from calibrant.core.arrays import Floats, Mask

_TEMPERATURE = 0.001
_DUAN = "Duan et al. 2024 (shifting attention to relevance)"
_MARKS = re.compile(r"[\W_]+")


def content_tokens(block: DrawBlock) -> Mask:
    """Return which tokens carry content: neither a mark nor a function word.

    This stands in for the cross-encoder of the paper: leaving out a content word changes the bag
    of content words, each of them by the same amount; leaving out another token changes nothing.
    A text without content words keeps all its tokens.
    """
    columns = block.columns
    if columns is None:
        return np.zeros(0, dtype=bool)
    bare = [_MARKS.sub("", (text or "").replace("▁", "").lower()) for text in columns.text]
    carries = np.array([bool(word) and not is_function_word(word) for word in bare], dtype=bool)
    some = sum_by(columns.row, carries, len(block)) > 0
    found: Mask = carries | ~some[columns.row]
    return found


def _relevant_loss(block: DrawBlock) -> Floats:
    """Return tokenSAR of each draw: mean -log p of its content tokens."""
    columns = block.columns
    if columns is None:
        return np.full(len(block), np.nan)
    kept = content_tokens(block)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss: Floats = sum_by(
            columns.row, np.where(kept, -columns.logprob, 0.0), len(block)
        ) / sum_by(columns.row, kept, len(block))
    return loss


@register(
    "minus the mean -log p of content tokens, over the samples",
    needs=("samples", "token_logprobs", "token_texts"),
    about="modal",
    question_level=True,
    frequency=True,
    probability=False,
    low=-np.inf,
    high=0.0,
    reference=f"{_DUAN}, tokenSAR with a word rule in place of a cross-encoder",
)
def token_sar(table: DrawTable, options: Options) -> Scored:
    """Mean over draws of the log-probability per content token."""
    block = table.samples
    return about_question(-_known_mean(block, _relevant_loss(block)), table, options)


@register(
    "mean log of each text's probability plus what similar texts lend it",
    needs=("samples", "token_logprobs", "similarity"),
    about="modal",
    question_level=True,
    probability=False,
    low=-np.inf,
    high=np.inf,
    reference=f"{_DUAN}, sentSAR",
)
def sent_sar(table: DrawTable, options: Options) -> Scored:
    """Sentence-level shift: every draw gains the probability of the draws similar to it."""
    return about_question(_supported(table, options, table.samples.probability), table, options)


@register(
    "as sent_sar, with text probabilities made of content tokens",
    needs=("samples", "token_logprobs", "token_texts", "similarity"),
    about="modal",
    question_level=True,
    probability=False,
    low=-np.inf,
    high=np.inf,
    reference=f"{_DUAN}, SAR",
)
def sar(table: DrawTable, options: Options) -> Scored:
    """Both shifts: relevant tokens, then similar texts."""
    probability = np.exp(-_relevant_loss(table.samples))
    return about_question(_supported(table, options, probability), table, options)


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


def _known_mean(block: DrawBlock, values: Floats) -> Floats:
    read = ~np.isnan(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = sum_by(block.unit, np.where(read, values, 0.0), block.n_units) / sum_by(
            block.unit, read, block.n_units
        )
    return mean
