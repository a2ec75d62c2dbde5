"""How alike the sampled answers are in their words, to each other and to the greedy answer."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.frequency import greedy_agreement
from calibrant.confidence.method import Options, register
from calibrant.confidence.segments import ratio, sum_by
from calibrant.confidence.text_words import rouge_matrices, rouge_with, texts_of, words
from calibrant.core.arrays import Floats


def mean_by_unit(block: DrawBlock, values: Floats) -> Floats:
    """Return the mean of the draws' values per unit; a NaN makes its unit NaN."""
    return ratio(sum_by(block.unit, values, block.n_units), block.count)


def greedy_texts(table: DrawTable) -> list[str | None]:
    """Return the greedy answer of each unit, None where there is none."""
    texts = texts_of(table.greedy)
    return [texts[row] if row >= 0 else None for row in table.greedy.first]


@register
def lexical_similarity(table: DrawTable, _: Options) -> Floats:
    """Mean over pairs of different draws; undefined for one draw."""
    block = table.samples
    value = np.full(len(table), np.nan)
    for units, stack in rouge_matrices(block):
        size = stack.shape[1]
        if size > 1:
            value[units] = (stack.sum(axis=(1, 2)) - size) / (size * (size - 1))
    return value


@register
def lexical_similarity_greedy(table: DrawTable, _: Options) -> Floats:
    """Mean lexical similarity with the greedy answer, about the greedy answer."""
    values = rouge_with(table.samples, greedy_texts(table))
    return mean_by_unit(table.samples, values)


@register
def exact_match_greedy(table: DrawTable, _: Options) -> Floats:
    """Share of draws that have the greedy answer's words, case and marks aside."""
    block, targets = table.samples, greedy_texts(table)
    same = np.array(
        [
            words(text) == words(targets[unit] or "")
            for unit, text in zip(block.unit, texts_of(block), strict=True)
        ],
        dtype=np.float64,
    )
    return mean_by_unit(block, same)


@register
def consistency_greedy(table: DrawTable, _: Options) -> Floats:
    """Agreement of the samples with the greedy answer, about the greedy answer."""
    return greedy_agreement(table)
