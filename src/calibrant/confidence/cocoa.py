"""Probability of the greedy answer and disagreement of the samples with it, multiplied."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.alternatives import mean_entropy
from calibrant.confidence.compact import DrawTable
from calibrant.confidence.lexical import greedy_texts, mean_by_unit
from calibrant.confidence.method import Options, register
from calibrant.confidence.segments import weighted_mean
from calibrant.confidence.text_words import rouge_with
from calibrant.core.arrays import Floats


def similarity_to_greedy(table: DrawTable, options: Options) -> Floats:
    """Return each draw's similarity with the greedy answer: equal meaning, or ROUGE-L."""
    block = table.samples
    if options.similarity == "lexical":
        return rouge_with(block, greedy_texts(table))
    target = table.greedy.first_class
    same = (block.class_id == target[block.unit]) & (block.class_id >= 0)
    return np.where(target[block.unit] >= 0, same.astype(np.float64), np.nan)


def _cocoa(table: DrawTable, options: Options, loss: Floats) -> Floats:
    """Return minus the loss of the greedy answer times the samples' disagreement with it."""
    agreement = mean_by_unit(table.samples, similarity_to_greedy(table, options))
    return -loss * (1.0 - agreement) + 0.0


@register
def cocoa_msp(table: DrawTable, options: Options) -> Floats:
    """Loss of the whole greedy answer times the share of samples that differ from it."""
    return _cocoa(table, options, -table.greedy.of_first(table.greedy.text_logprob))


@register
def cocoa_ppl(table: DrawTable, options: Options) -> Floats:
    """Length-normalised loss of the greedy answer times the disagreement."""
    return _cocoa(table, options, -table.greedy.of_first(table.greedy.per_token))


@register
def cocoa_mte(table: DrawTable, options: Options) -> Floats:
    """Mean entropy of the greedy answer's tokens times the disagreement."""
    return _cocoa(table, options, mean_entropy(table.greedy))


@register
def semantic_density(table: DrawTable, options: Options) -> Floats:
    """Kernel density of the greedy answer among distinct samples.

    The Epanechnikov kernel 1 - d^2 is taken with d^2 = 1 - similarity: for classes it is 1 for
    the same meaning and 0 for another; with ``lexical`` it is ROUGE-L.
    """
    block = table.samples
    weight = np.where(block.distinct & block.known, np.exp(block.per_token), 0.0)
    near = similarity_to_greedy(table, options)
    return np.minimum(weighted_mean(block.unit, near, weight, len(table)), 1.0)
