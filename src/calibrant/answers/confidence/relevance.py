"""Probabilities weighed by relevant tokens, alike answers and agreement with the greedy one."""

import numpy as np

from calibrant.answers.confidence import text_words
from calibrant.answers.confidence.alternatives import mean_entropy
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.graph import similarity_stacks
from calibrant.answers.confidence.method import Options, register
from calibrant.answers.confidence.segments import mean_by, sum_by, weighted_mean
from calibrant.core.arrays import Floats, Mask

_TEMPERATURE = 0.001


def content_tokens(block: DrawBlock) -> Mask:
    """Return which tokens carry content: neither a mark nor a function word.

    This stands in for the cross-encoder of the paper: leaving out a content word changes the bag
    of content words, each of them by the same amount; leaving out another token changes nothing.
    A text without content words keeps all its tokens.
    """
    columns = block.columns
    bare = (text_words.bare_word(text) for text in columns.text)
    carries = np.array(
        [bool(word) and not text_words.is_function_word(word) for word in bare], dtype=bool
    )
    subset = sum_by(columns.row, carries, len(block)) > 0
    return np.asarray(carries | ~subset[columns.row])


def _relevant_loss(block: DrawBlock) -> Floats:
    """Return tokenSAR of each draw: mean -log p of its content tokens."""
    selection = np.where(content_tokens(block), -block.columns.logprob, np.nan)
    return mean_by(block.columns.row, selection, len(block))


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
    finite = ~np.isnan(probability)
    weight = np.where(finite, probability, 0.0)
    value = np.full(len(table), np.nan)
    for units, stack in similarity_stacks(table, options):
        rows = block.first[units][:, None] + np.arange(stack.shape[1])
        p, read = weight[rows], finite[rows]
        others = np.einsum("bij,bj->bi", stack, p) - np.einsum("bii,bi->bi", stack, p)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(read, np.log(p + others / _TEMPERATURE), 0.0)
            value[units] = logs.sum(axis=1) / read.sum(axis=1)
    return value


def similarity_to_greedy(table: DrawTable, options: Options) -> Floats:
    """Return each draw's similarity with the greedy answer: equal meaning, or ROUGE-L."""
    block = table.samples
    if options.similarity == "lexical":
        return text_words.rouge_with(block, text_words.greedy_texts(table))
    target = table.greedy.first_class
    equal = (block.class_id == target[block.unit]) & (block.class_id >= 0)
    return np.where(target[block.unit] >= 0, equal.astype(np.float64), np.nan)


def _cocoa(table: DrawTable, options: Options, loss: Floats) -> Floats:
    """Return minus the loss of the greedy answer times the samples' disagreement with it."""
    agreement = text_words.mean_by_unit(table.samples, similarity_to_greedy(table, options))
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
