"""Scores from the probabilities of tokens and whole texts."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.frequency import class_entropy
from calibrant.confidence.method import (
    Options,
    Scored,
    about_first,
    about_question,
    register,
    threshold,
)
from calibrant.confidence.segments import mean_by, sum_by
from calibrant.core.arrays import Floats, Mask

_SAMPLED = ("samples", "token_logprobs")
_CLUSTERED = ("samples", "clusters", "token_logprobs")
_GREEDY = ("greedy", "greedy_token_logprobs")


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
    ended = None if block.end_logprob is None else ~np.isnan(block.end_logprob)
    if ended is not None and bool(ended[block.known].all()):
        return first
    rows = np.flatnonzero(first)
    texts = (
        block.answer.gather(rows).fill_null("").to_list()
        if block.text is None
        else (block.text.gather(rows).fill_null("").to_list())
    )
    open_end = np.ones(len(block), dtype=bool) if ended is None else ~ended
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
    known = block.known_count
    counts = known[known > 0]
    if not counts.size:
        return np.full(block.n_units, np.nan)
    usual = np.bincount(counts).argmax()
    with np.errstate(divide="ignore"):
        scale: Floats = np.where(known > 0, usual / known, np.nan)
    return scale


@register(
    "exp(-H) with H the mean of -log p(text) over the samples",
    needs=_SAMPLED,
    about="modal",
    question_level=True,
    frequency=True,
    reference="Malinin and Gales 2021; Kadavath et al. 2022 (predictive entropy)",
)
def prob_entropy(table: DrawTable, options: Options) -> Scored:
    """Monte-Carlo predictive entropy of whole texts, as exp(-H).

    The ``paper`` variant is exp of the sum of p log p over the drawn texts, as the authors' code
    has it: every draw is weighted by its probability once more.
    """
    block = table.samples
    value = np.exp(mean_by(block.unit, _chosen(block, block.text_logprob, options), block.n_units))
    return about_question(value, table, options)


@register(
    "exp(-H) with H the mean of -log p(text) / tokens over the samples",
    needs=_SAMPLED,
    about="modal",
    question_level=True,
    frequency=True,
    reference="Malinin and Gales 2021 (length-normalised predictive entropy)",
)
def norm_prob_entropy(table: DrawTable, options: Options) -> Scored:
    """Length-normalised predictive entropy, as exp(-H).

    The ``paper`` variant weights each text by its length-normalised probability once more.
    """
    block = table.samples
    per_token = _or_missing(block, block.logprob) / _or_missing(block, block.tokens)
    value = np.exp(mean_by(block.unit, _chosen(block, per_token, options), block.n_units))
    return about_question(value, table, options)


@register(
    "exp(-H) of the normalised probability mass of the classes",
    needs=_CLUSTERED,
    about="modal",
    question_level=True,
    frequency=True,
    reference="Kuhn et al. 2023 (semantic entropy)",
)
def semantic_entropy(table: DrawTable, options: Options) -> Scored:
    """Entropy over classes weighted by summed text probability, as exp(-H)."""
    block = table.samples
    return about_question(np.exp(-class_entropy(block, class_mass(block))), table, options)


@register(
    "summed probability of all drawn texts in classes of mass >= tau; it may exceed 1",
    needs=_CLUSTERED,
    about="modal",
    question_level=True,
    probability=False,
    high=np.inf,
    default_tau=0.0,
    reference="MACE and SCA (semantic confidence aggregation)",
)
def sca(table: DrawTable, options: Options) -> Scored:
    """Unnormalised mass of the classes at or above tau, every draw counted.

    Where questions have different numbers of draws, masses are scaled to the usual number; the
    ``paper`` variant sums what is there.
    """
    return _aggregated(table, options, "sca", distinct=False)


@register(
    "as sca, every distinct text counted once: probability mass that the draws have uncovered",
    needs=(*_CLUSTERED, "texts"),
    about="modal",
    question_level=True,
    probability=False,
    frequency=True,
    default_tau=0.0,
    reference="calibrant, after MACE and SCA",
)
def sca_distinct(table: DrawTable, options: Options) -> Scored:
    """Mass of distinct texts, at most 1: a text that another one begins with counts once."""
    return _aggregated(table, options, "sca_distinct", distinct=True)


def _aggregated(table: DrawTable, options: Options, name: str, *, distinct: bool) -> Scored:
    block = table.samples
    mass = class_mass(block, distinct=distinct)
    if not distinct and options.variant == "default":
        mass = mass * draw_scale(block)[block.classes.unit]
    kept = (mass >= threshold(name, options)) & block.classes.answered
    kept_mass = np.where(np.isnan(mass), np.nan, np.where(kept, mass, 0.0))
    value = sum_by(block.classes.unit, kept_mass, len(table))
    return about_question(np.minimum(value, 1.0) if distinct else value, table, options)


@register(
    "share of probability mass in classes whose share is at least tau",
    needs=_CLUSTERED,
    about="modal",
    question_level=True,
    frequency=True,
    default_tau=0.1,
    reference="MACE and SCA, baseline SNCA",
)
def snca(table: DrawTable, options: Options) -> Scored:
    """Normalised mass of the classes at or above tau (constant 1 for tau = 0)."""
    block = table.samples
    mass = class_mass(block)
    unit = block.classes.unit
    with np.errstate(divide="ignore", invalid="ignore"):
        share = mass / sum_by(unit, mass, len(table))[unit]
    kept = (share >= threshold("snca", options)) & block.classes.answered
    kept_share = np.where(np.isnan(share), np.nan, np.where(kept, share, 0.0))
    return about_question(sum_by(unit, kept_share, len(table)), table, options)


@register(
    "geometric mean of the greedy answer's token probabilities",
    needs=_GREEDY,
    about="greedy",
    reference="Manakul et al. 2023; MACE and SCA (perplexity)",
)
def perplexity(table: DrawTable, _: Options) -> Scored:
    """Exponential of the mean token log-prob, the inverse of the perplexity."""
    block = table.greedy
    value = block.of_first(block.logprob) / block.of_first(block.tokens)
    return about_first(np.exp(value), block, about="greedy")


@register(
    "probability of the whole greedy answer",
    needs=_GREEDY,
    about="greedy",
    reference="common baseline: product of token probabilities",
)
def sequence_probability(table: DrawTable, _: Options) -> Scored:
    """Product of the greedy answer's token probabilities."""
    block = table.greedy
    return about_first(np.exp(block.of_first(block.logprob)), block, about="greedy")


@register(
    "probability of the greedy answer's least probable token",
    needs=_GREEDY,
    about="greedy",
    reference="Manakul et al. 2023 (minimum token probability)",
)
def min_token_probability(table: DrawTable, _: Options) -> Scored:
    """Smallest token probability of the greedy answer."""
    block = table.greedy
    return about_first(np.exp(block.of_first(block.min_logprob)), block, about="greedy")


def _chosen(block: DrawBlock, logprob: Floats, options: Options) -> Floats:
    """Return log p of each draw, or the authors' n p log p so that the mean is their sum."""
    if options.variant == "default":
        return logprob
    return block.known_count[block.unit] * np.exp(logprob) * logprob


def _or_missing(block: DrawBlock, values: Floats | None) -> Floats:
    return np.full(len(block), np.nan) if values is None else values
