"""Scores from the probabilities of tokens and whole texts."""

from functools import partial

import numpy as np

from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.frequency import class_entropy
from calibrant.answers.confidence.method import Options, register, threshold
from calibrant.answers.confidence.segments import mean_by, ratio, sum_by
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


def draw_scale(block: DrawBlock) -> Floats:
    """Return by how much each unit's summed mass is scaled to the usual number of draws.

    Summed over draws, mass grows with their number. Units with fewer (or unreadable) draws are
    scaled to the number that most units have; with equally many draws nothing changes.
    """
    readable = block.known_count
    counts = readable[readable > 0]
    if not counts.size:
        return np.full(block.n_units, np.nan)
    usual = np.bincount(counts).argmax()
    return np.where(readable > 0, usual / np.maximum(readable, 1), np.nan)


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
    if not distinct and options.variant == "default":
        mass = mass * draw_scale(block)[block.classes.unit]
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
