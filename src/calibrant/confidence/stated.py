"""Scores that a model states in words, alone or as weights of repeated answers."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.frequency import agreement_with
from calibrant.confidence.method import (
    Options,
    Scored,
    about_first,
    about_modal,
    answered,
    register,
)
from calibrant.confidence.segments import count_by, first_argmax, gather, sum_by
from calibrant.core.arrays import Floats, Ints

_TIAN = "Tian et al. 2023 (just ask for calibration)"
_XIONG = "Xiong et al. 2024 (top-k prompting, weighted consistency)"


def _stated(block: DrawBlock, options: Options) -> tuple[Floats, Ints]:
    """Return stated confidences and the number of unreadable ones per unit."""
    stated = np.full(len(block), np.nan) if block.stated is None else block.stated
    missing = np.isnan(stated)
    failures = count_by(block.unit[missing], block.n_units)
    if options.impute is not None:
        stated = np.where(missing, options.impute, stated)
    return stated, failures


def _own_answer(table: DrawTable, purpose: str, options: Options) -> Scored:
    block = table.block(purpose)
    stated, failures = _stated(block, options)
    value = block.of_first(stated)
    if options.variant == "paper":
        greedy = table.greedy
        known = (block.first >= 0) & (greedy.first >= 0)
        return about_first(answered(known, value), greedy, about="greedy", failures=failures)
    return about_first(value, block, about="own", failures=failures)


@register(
    "confidence stated together with the answer",
    needs=("verb",),
    about="own",
    reference=_TIAN,
)
def verb(table: DrawTable, options: Options) -> Scored:
    """Stated confidence of the answer in the same text.

    The ``paper`` variant keeps the number but grades the greedy answer of another prompt, as
    the published MACE numbers do: the two answers are often different ones.
    """
    return _own_answer(table, "verb", options)


@register(
    "largest confidence in a stated list of answers, about that listed answer",
    needs=("verb_topk",),
    about="own",
    reference=_XIONG,
)
def verb_topk(table: DrawTable, options: Options) -> Scored:
    """Largest stated confidence among the listed answers (the first among equals).

    The ``paper`` variant grades the greedy answer of another prompt instead.
    """
    return _own_answer(table, "verb_topk", options)


@register(
    "mean confidence stated by the samples that give the most frequent answer",
    needs=("verb_samples", "verb_clusters"),
    about="modal",
    frequency=True,
    reference="Sem-ECE, verbalised confidence over a pool",
)
def verb_mean(table: DrawTable, options: Options) -> Scored:
    """Mean stated confidence of the modal answer over repeated texts.

    The ``paper`` variant takes the mean over all texts, whichever answer they give.
    """
    block = table.block("verb_samples")
    stated, failures = _stated(block, options)
    classes = block.classes
    modal = classes.modal
    ours = np.ones(len(block), dtype=bool)
    if options.variant == "default" and len(block):
        ours = classes.group == modal[block.unit]
    ours &= ~np.isnan(stated)
    total = sum_by(block.unit, np.where(ours, stated, 0.0), len(table))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total / sum_by(block.unit, ours, len(table))
    scored = about_modal(value, block)
    return Scored(scored.value, block, scored.row, scored.correct, scored.about, failures=failures)


def _weighted(table: DrawTable, purpose: str, options: Options) -> Scored:
    """Share of stated confidence that goes to one answer."""
    block = table.block(purpose)
    stated, failures = _stated(block, options)
    weight = np.where(np.isnan(stated), 0.0, stated)
    if options.variant == "paper":
        greedy = table.greedy
        value = agreement_with(block, greedy.first_class, weight)
        known = (greedy.first_class >= 0) & (block.count > 0)
        return about_first(answered(known, value), greedy, about="greedy", failures=failures)
    classes = block.classes
    mass = sum_by(classes.group, weight, classes.unit.size)
    best = first_argmax(mass, classes.unit, classes.answered & (mass > 0), len(table))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = gather(mass, best) / sum_by(block.unit, weight, len(table))
    rows = np.full(len(table), -1) if not len(block) else np.where(best >= 0, classes.row[best], -1)
    return Scored(value, block, rows, gather(classes.correct, best), "modal", failures=failures)


@register(
    "share of stated confidence that repeated texts give to their leading answer",
    needs=("verb_samples", "verb_clusters"),
    about="modal",
    frequency=True,
    reference=_XIONG,
)
def consistency_verb(table: DrawTable, options: Options) -> Scored:
    """Consistency weighted by stated confidence, about the answer with the largest weight.

    The ``paper`` variant is the weight of the greedy answer of another prompt.
    """
    return _weighted(table, "verb_samples", options)


@register(
    "share of stated confidence that repeated lists give to their leading entry",
    needs=("verb_topk_samples", "verb_topk_clusters"),
    about="modal",
    frequency=True,
    reference=_XIONG,
)
def consistency_verb_topk(table: DrawTable, options: Options) -> Scored:
    """Consistency of leading list entries, weighted by their stated confidence.

    The ``paper`` variant is the weight of the greedy answer of another prompt.
    """
    return _weighted(table, "verb_topk_samples", options)


def _asked(table: DrawTable, purpose: str, options: Options) -> Scored:
    block = table.block(purpose)
    stated, failures = _stated(block, options)
    value = answered(block.first >= 0, block.of_first(stated))
    return about_first(value, table.greedy, about="greedy", failures=failures)


@register(
    "confidence stated when asked again about the greedy answer",
    needs=("greedy", "self_ask"),
    about="greedy",
    reference=_TIAN,
)
def self_ask(table: DrawTable, options: Options) -> Scored:
    """Confidence stated in a second turn."""
    return _asked(table, "self_ask", options)


@register(
    "confidence stated when asked again, sampled answers shown as candidates",
    needs=("greedy", "self_ask_cand"),
    about="greedy",
    reference=_TIAN,
)
def self_ask_cand(table: DrawTable, options: Options) -> Scored:
    """Confidence stated in a second turn that shows candidates."""
    return _asked(table, "self_ask_cand", options)
