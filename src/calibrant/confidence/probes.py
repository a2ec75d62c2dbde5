"""Scores from asking the model whether its greedy answer is true."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import Options, Scored, about_first, answered, register
from calibrant.confidence.segments import count_by, sum_by
from calibrant.core.arrays import Floats

_KADAVATH = "Kadavath et al. 2022 (P(True))"


def _votes(table: DrawTable, purpose: str, options: Options) -> Scored:
    block = table.block(purpose)
    vote = np.full(len(block), np.nan) if block.vote is None else block.vote
    missing = np.isnan(vote)
    failures = count_by(block.unit[missing], len(table))
    if options.impute is not None:
        vote = np.where(missing, options.impute, vote)
    read = ~np.isnan(vote)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sum_by(block.unit, np.where(read, vote, 0.0), len(table)) / sum_by(
            block.unit, read, len(table)
        )
    return about_first(value, table.greedy, about="greedy", failures=failures)


def _first_known(block: DrawBlock, values: Floats | None) -> Floats:
    """Return the value of each unit's first draw (all draws of a probe share the prompt)."""
    return answered(block.first >= 0, block.of_first(values))


def _true_mass(table: DrawTable, purpose: str, options: Options) -> Scored:
    block = table.block(purpose)
    value = _first_known(block, block.true_mass)
    if options.variant == "paper":
        with np.errstate(divide="ignore", invalid="ignore"):
            value = value / (value + _first_known(block, block.false_mass))
    return about_first(value, table.greedy, about="greedy")


@register(
    "share of True among repeated verdicts on the greedy answer",
    needs=("greedy", "p_true_votes"),
    about="greedy",
    frequency=True,
    reference=_KADAVATH,
)
def p_true_consistency(table: DrawTable, options: Options) -> Scored:
    """Share of True votes."""
    return _votes(table, "p_true", options)


@register(
    "share of True among repeated verdicts, sampled answers shown as candidates",
    needs=("greedy", "p_true_cand_votes"),
    about="greedy",
    frequency=True,
    reference=_KADAVATH,
)
def p_true_consistency_cand(table: DrawTable, options: Options) -> Scored:
    """Share of True votes, candidates shown."""
    return _votes(table, "p_true_cand", options)


@register(
    "probability of the token True when asked about the greedy answer",
    needs=("greedy", "p_true_logprobs"),
    about="greedy",
    reference=_KADAVATH,
)
def p_true_prob(table: DrawTable, options: Options) -> Scored:
    """First-token probability of True; what goes to neither True nor False counts against it.

    The ``paper`` variant is normalised over True and False, as the authors' code has it.
    """
    return _true_mass(table, "p_true", options)


@register(
    "probability of the token True, sampled answers shown as candidates",
    needs=("greedy", "p_true_cand_logprobs"),
    about="greedy",
    reference=_KADAVATH,
)
def p_true_prob_cand(table: DrawTable, options: Options) -> Scored:
    """First-token probability of True, candidates shown; ``paper`` as in p_true_prob."""
    return _true_mass(table, "p_true_cand", options)


@register(
    "P(True) / (P(True) + P(False)) when asked about the greedy answer",
    needs=("greedy", "p_true_logprobs"),
    about="greedy",
    reference="Kadavath et al. 2022 (P(True)), normalised over the two words",
)
def p_true_ratio(table: DrawTable, _: Options) -> Scored:
    """Next-token probability of True among True and False only."""
    block = table.block("p_true")
    yes, no = _first_known(block, block.true_mass), _first_known(block, block.false_mass)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = yes / (yes + no)
    return about_first(value, table.greedy, about="greedy")
