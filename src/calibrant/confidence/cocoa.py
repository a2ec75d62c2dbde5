"""Probability of the greedy answer and disagreement of the samples with it, multiplied."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.alternatives import mean_entropy
from calibrant.confidence.compact import DrawTable
from calibrant.confidence.frequency import agreement_with
from calibrant.confidence.lexical import greedy_texts, mean_by_unit
from calibrant.confidence.method import Options, Scored, about_first, answered, register
from calibrant.confidence.text_words import rouge_with
from calibrant.core.arrays import Floats

_VASHURIN = "Vashurin et al. 2025 (CoCoA)"
_NEEDS = ("samples", "clusters", "greedy", "greedy_token_logprobs")


def similarity_to_greedy(table: DrawTable, options: Options) -> Floats:
    """Return each draw's similarity with the greedy answer: equal meaning, or ROUGE-L."""
    block = table.samples
    if options.similarity == "lexical":
        return rouge_with(block, greedy_texts(table))
    target = table.greedy.first_class
    same = (block.class_id == target[block.unit]) & (block.class_id >= 0)
    return np.where(target[block.unit] >= 0, same.astype(np.float64), np.nan)


def _cocoa(table: DrawTable, options: Options, loss: Floats) -> Scored:
    if options.similarity == "lexical":
        agreement = mean_by_unit(table.samples, similarity_to_greedy(table, options))
    else:
        agreement = agreement_with(table.samples, table.greedy.first_class)
        agreement = answered(table.greedy.first_class >= 0, agreement)
    value = -loss * (1.0 - agreement)
    return about_first(value + 0.0, table.greedy, about="greedy")


@register(
    "minus -log p(greedy answer) times the samples' mean disagreement with it",
    needs=_NEEDS,
    about="greedy",
    probability=False,
    frequency=True,
    low=-np.inf,
    high=0.0,
    reference=f"{_VASHURIN}, with the sequence probability",
)
def cocoa_msp(table: DrawTable, options: Options) -> Scored:
    """Loss of the whole greedy answer times the share of samples that differ from it."""
    greedy = table.greedy
    return _cocoa(table, options, -greedy.of_first(greedy.text_logprob))


@register(
    "minus the mean token loss of the greedy answer times the samples' disagreement with it",
    needs=_NEEDS,
    about="greedy",
    probability=False,
    frequency=True,
    low=-np.inf,
    high=0.0,
    reference=f"{_VASHURIN}, with the perplexity",
)
def cocoa_ppl(table: DrawTable, options: Options) -> Scored:
    """Length-normalised loss of the greedy answer times the disagreement."""
    greedy = table.greedy
    loss = -greedy.of_first(greedy.logprob) / greedy.of_first(greedy.tokens)
    return _cocoa(table, options, loss)


@register(
    "minus the mean token entropy of the greedy answer times the samples' disagreement with it",
    needs=(*_NEEDS, "greedy_token_alternatives"),
    about="greedy",
    probability=False,
    frequency=True,
    low=-np.inf,
    high=0.0,
    reference=f"{_VASHURIN}, with the mean token entropy",
)
def cocoa_mte(table: DrawTable, options: Options) -> Scored:
    """Mean entropy of the greedy answer's tokens times the disagreement."""
    return _cocoa(table, options, mean_entropy(table.greedy))


@register(
    "share of the distinct samples' length-normalised probability near the greedy answer",
    needs=(*_NEEDS, "token_logprobs", "texts"),
    about="greedy",
    frequency=True,
    reference="Qiu and Miikkulainen 2024 (semantic density)",
)
def semantic_density(table: DrawTable, options: Options) -> Scored:
    """Kernel density of the greedy answer among distinct samples.

    The Epanechnikov kernel 1 - d^2 is taken with d^2 = 1 - similarity: for classes it is 1 for
    the same meaning and 0 for another; with ``lexical`` it is ROUGE-L.
    """
    block = table.samples
    if block.logprob is None or block.tokens is None:
        return about_first(np.full(len(table), np.nan), table.greedy, about="greedy")
    weight = np.where(block.distinct & block.known, np.exp(block.logprob / block.tokens), 0.0)
    near = similarity_to_greedy(table, options)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.bincount(block.unit, weights=weight * near, minlength=len(table)) / np.bincount(
            block.unit, weights=weight, minlength=len(table)
        )
    return about_first(np.minimum(value, 1.0), table.greedy, about="greedy")
