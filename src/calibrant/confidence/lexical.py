"""How alike the sampled answers are in their words, to each other and to the greedy answer."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.frequency import agreement_with
from calibrant.confidence.method import (
    Options,
    Scored,
    about_first,
    about_question,
    answered,
    register,
)
from calibrant.confidence.segments import sum_by
from calibrant.confidence.text_words import rouge_matrices, rouge_with, texts_of, words
from calibrant.core.arrays import Floats


def mean_by_unit(block: DrawBlock, values: Floats) -> Floats:
    """Return the mean of the draws' values per unit; a NaN makes its unit NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = sum_by(block.unit, values, block.n_units) / block.count
    return mean


def greedy_texts(table: DrawTable) -> list[str | None]:
    """Return the greedy answer of each unit, None where there is none."""
    texts = texts_of(table.greedy)
    return [texts[row] if row >= 0 else None for row in table.greedy.first]


@register(
    "mean ROUGE-L of two different sampled answers",
    needs=("samples", "texts"),
    about="modal",
    question_level=True,
    probability=False,
    reference="Fomicheva et al. 2020; Kuhn et al. 2023 (lexical similarity)",
)
def lexical_similarity(table: DrawTable, options: Options) -> Scored:
    """Mean over pairs of different draws; undefined for one draw."""
    block = table.samples
    value = np.full(len(table), np.nan)
    for units, stack in rouge_matrices(block):
        size = stack.shape[1]
        if size > 1:
            value[units] = (stack.sum(axis=(1, 2)) - size) / (size * (size - 1))
    return about_question(value, table, options)


@register(
    "mean ROUGE-L of the sampled answers with the greedy answer",
    needs=("samples", "texts", "greedy"),
    about="greedy",
    frequency=True,
    probability=False,
    reference="Bouchard and Chauhan 2025 (uqlm, black-box consistency with ROUGE-L)",
)
def lexical_similarity_greedy(table: DrawTable, _: Options) -> Scored:
    """Mean lexical similarity with the greedy answer, about the greedy answer."""
    values = rouge_with(table.samples, greedy_texts(table))
    return about_first(mean_by_unit(table.samples, values), table.greedy, about="greedy")


@register(
    "share of sampled answers with the same words as the greedy answer",
    needs=("samples", "texts", "greedy"),
    about="greedy",
    frequency=True,
    reference="Cole et al. 2023 (sampling repetition); uqlm (exact match)",
)
def exact_match_greedy(table: DrawTable, _: Options) -> Scored:
    """Share of draws that have the greedy answer's words, case and marks aside."""
    block, targets = table.samples, greedy_texts(table)
    same = np.array(
        [
            words(text) == words(targets[unit] or "")
            for unit, text in zip(block.unit, texts_of(block), strict=True)
        ],
        dtype=np.float64,
    )
    return about_first(mean_by_unit(block, same), table.greedy, about="greedy")


@register(
    "share of sampled answers that mean the same as the greedy answer",
    needs=("samples", "clusters", "greedy"),
    about="greedy",
    frequency=True,
    reference="Lyu et al. 2025; MACE and SCA (consistency with the greedy answer)",
)
def consistency_greedy(table: DrawTable, _: Options) -> Scored:
    """Agreement of the samples with the greedy answer, about the greedy answer."""
    greedy = table.greedy
    value = agreement_with(table.samples, greedy.first_class)
    known = (greedy.first_class >= 0) & (table.samples.count > 0)
    return about_first(answered(known, value), greedy, about="greedy")
