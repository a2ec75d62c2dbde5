"""Scores from the probabilities of tokens and texts, plain or weighed by relevance."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.answers.confidence import likeness
from calibrant.answers.confidence.alternatives import mean_entropy
from calibrant.answers.confidence.columns import mean_by, ratio, sum_by, weighted_mean
from calibrant.answers.confidence.compact import DrawBlock, DrawTable, class_entropy
from calibrant.answers.confidence.likeness import similarity_stacks
from calibrant.answers.confidence.method import Options, register, threshold
from calibrant.core.arrays import Floats, Mask


def class_mass(block: DrawBlock, *, distinct: bool = False) -> Floats:
    """Return the summed text probability of each class.

    Parameters
    ----------
    block
        Draws with log-probs and meanings.
    distinct
        Count every distinct text once. Otherwise a text drawn r times counts r times, and the
        sum may exceed 1.
    """
    if not block.known.any():
        return np.full(block.classes.unit.size, np.nan)
    weight = np.where(block.known, block.probability, 0.0)
    if distinct:
        weight = np.where(_first_events(block), weight, 0.0)
    mass = sum_by(block.classes.group, weight, block.classes.unit.size)
    return np.where(block.known_count[block.classes.unit] > 0, mass, np.nan)


def _first_events(block: DrawBlock) -> Mask:
    """Return which draws are new events: a text not seen before, nor the start of one.

    Where the probability of the end is not known, a text stands for all its continuations, and
    a continuation of a text that was drawn too is already counted: 'Lima' holds 'Lima, Peru'.
    """
    first = block.distinct & block.known
    open_end = np.isnan(block.end_logprob)
    if not open_end[block.known].any():
        return first
    rows = np.flatnonzero(first)
    output = block.answer if block.text is None else block.text
    texts = output.gather(rows).fill_null("").to_list()
    order = sorted(range(rows.size), key=lambda place: (block.unit[rows[place]], texts[place]))
    holder: tuple[int, str] | None = None
    for place in order:
        unit, text = int(block.unit[rows[place]]), texts[place]
        if holder is not None and holder[0] == unit and text.startswith(holder[1]):
            first[rows[place]] = False
        elif open_end[rows[place]]:
            holder = (unit, text)
    return first


@register
def prob_entropy(table: DrawTable, options: Options) -> Floats:
    """Monte-Carlo predictive entropy of whole texts, as exp(-H).

    The ``paper`` variant is exp of the sum of p log p over the drawn texts, as the authors' code
    has it: every draw is weighted by its probability once more.
    """
    block = table.samples
    return np.exp(mean_by(block.unit, _chosen(block, block.text_logprob, options), len(table)))


@register
def norm_prob_entropy(table: DrawTable, options: Options) -> Floats:
    """Length-normalised predictive entropy, as exp(-H).

    The ``paper`` variant weights each text by its length-normalised probability once more.
    """
    block = table.samples
    return np.exp(mean_by(block.unit, _chosen(block, block.per_token, options), len(table)))


@register
def semantic_entropy(table: DrawTable, _: Options) -> Floats:
    """Entropy over classes weighted by summed text probability, as exp(-H)."""
    block = table.samples
    return np.exp(-class_entropy(block, class_mass(block)))


def _aggregated(table: DrawTable, options: Options, *, name: str) -> Floats:
    """Return the unnormalised mass of the classes at or above tau.

    Of sca every draw counts. Where questions have different numbers of draws, masses are scaled
    to the usual number; the ``paper`` variant sums what is there. Of sca_distinct a text counts
    once, and so does one that another begins with: the mass is at most 1.
    """
    block, distinct = table.samples, name == "sca_distinct"
    mass = class_mass(block, distinct=distinct)
    readable = block.known_count
    if not distinct and options.variant == "default" and readable.any():
        # Mass grows with the number of draws: units with fewer, or unreadable, ones are scaled.
        usual = np.bincount(readable[readable > 0]).argmax()
        scale = np.where(readable > 0, usual / np.maximum(readable, 1), np.nan)
        mass = mass * scale[block.classes.unit]
    value = _kept(block, mass, threshold(name, options))
    return np.minimum(value, 1.0) if distinct else value


def _kept(block: DrawBlock, mass: Floats, least: float) -> Floats:
    """Return the mass of each unit's answered classes that have at least this much."""
    mask = np.where((mass >= least) & block.classes.answered, mass, 0.0)
    return sum_by(block.classes.unit, np.where(np.isnan(mass), np.nan, mask), block.n_units)


register(partial(_aggregated, name="sca"), "sca")
register(partial(_aggregated, name="sca_distinct"), "sca_distinct")


@register
def snca(table: DrawTable, options: Options) -> Floats:
    """Normalised mass of the classes at or above tau (constant 1 for tau = 0)."""
    block, unit = table.samples, table.samples.classes.unit
    mass = class_mass(block)
    share = ratio(mass, sum_by(unit, mass, len(table))[unit])
    return _kept(block, share, threshold("snca", options))


@register
def perplexity(table: DrawTable, _: Options) -> Floats:
    """Exponential of the mean token log-prob, the inverse of the perplexity."""
    return np.exp(table.greedy.of_first(table.greedy.per_token))


@register
def sequence_probability(table: DrawTable, _: Options) -> Floats:
    """Product of the greedy answer's token probabilities."""
    return np.exp(table.greedy.of_first(table.greedy.logprob))


@register
def min_token_probability(table: DrawTable, _: Options) -> Floats:
    """Smallest token probability of the greedy answer."""
    return np.exp(table.greedy.of_first(table.greedy.min_logprob))


@register
def pmi(table: DrawTable, _: Options) -> Floats:
    """Mean over tokens of log p with the question minus log p without it."""
    block = table.greedy
    return block.of_first((block.logprob - block.alone_logprob) / block.tokens)


def _chosen(block: DrawBlock, logprob: Floats, options: Options) -> Floats:
    """Return log p of each draw, or the authors' n p log p so that the mean is their sum."""
    if options.variant == "default":
        return logprob
    return block.known_count[block.unit] * np.exp(logprob) * logprob


_TEMPERATURE = 0.001


def _relevant_loss(block: DrawBlock) -> Floats:
    """Return tokenSAR of each draw: mean -log p of the tokens that carry content.

    These are neither marks nor function words, which stands in for the cross-encoder of the paper:
    leaving out a content word changes the bag of content words, each of them by the same amount;
    leaving out another token changes nothing. A text without content words keeps all its tokens.
    """
    columns = block.columns
    bare = [likeness.bare_word(text) for text in columns.text]
    carries = np.array([word and not likeness.is_function_word(word) for word in bare], dtype=bool)
    subset = sum_by(columns.row, carries, len(block)) > 0
    selection = np.where(carries | ~subset[columns.row], -columns.logprob, np.nan)
    return mean_by(columns.row, selection, len(block))


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
        return likeness.rouge_with(block, likeness.greedy_texts(table))
    target = table.greedy.first_class
    equal = (block.class_id == target[block.unit]) & (block.class_id >= 0)
    return np.where(target[block.unit] >= 0, equal.astype(np.float64), np.nan)


def _cocoa(table: DrawTable, options: Options, loss: Floats) -> Floats:
    """Return minus the loss of the greedy answer times the samples' disagreement with it."""
    agreement = likeness.mean_by_unit(table.samples, similarity_to_greedy(table, options))
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
