"""Scores that a model states: confidence in words, and verdicts of itself or of others."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np

from calibrant.answers.confidence import method
from calibrant.answers.confidence.columns import (
    count_by,
    first_argmax,
    gather,
    mean_by,
    ratio,
    sum_by,
    weighted_mean,
)
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.frequency import greedy_agreement
from calibrant.answers.confidence.method import Options, Scored, about_greedy, register
from calibrant.core.arrays import Floats, Ints
from calibrant.core.names import catalogue


def _stated(block: DrawBlock, options: method.Options) -> tuple[Floats, Ints]:
    """Return stated confidences and the number of unreadable ones per unit."""
    missing = np.isnan(block.stated)
    failures = count_by(block.unit[missing], block.n_units)
    if options.impute is None:
        return block.stated, failures
    return np.where(missing, options.impute, block.stated), failures


def _once(table: DrawTable, options: method.Options, *, purpose: str) -> method.Scored:
    """Stated confidence of the answer in the same text, or of the greedy answer in a second turn.

    Of a list it is the largest one, about that entry. The ``paper`` variant of verb and verb_topk
    keeps the number but grades the greedy answer of another prompt, as the published MACE
    numbers do: the two answers are often different ones.
    """
    block = table.block(purpose)
    confidence, failures = _stated(block, options)
    value = block.of_first(confidence)
    if purpose.startswith("self_ask") or options.variant == "paper":
        return method.about_greedy(value, table, failures)
    return method.about_first(value, block, about="own", failures=failures)


for _purpose in ("verb", "verb_topk", "self_ask", "self_ask_cand"):
    method.register(partial(_once, purpose=_purpose), _purpose)


@method.register
def verb_mean(table: DrawTable, options: method.Options) -> method.Scored:
    """Mean stated confidence of the modal answer over repeated texts.

    The ``paper`` variant takes the mean over all texts, whichever answer they give.
    """
    block = table.block("verb_samples")
    confidence, failures = _stated(block, options)
    if options.variant == "default" and len(block):
        confidence = method.answered(
            block.classes.group == block.classes.modal[block.unit], confidence
        )
    scored = method.about_modal(mean_by(block.unit, confidence, len(table)), table, "verb_samples")
    return replace(scored, failures=failures)


def _weighted(table: DrawTable, options: method.Options, *, purpose: str) -> method.Scored:
    """Share of stated confidence that goes to the answer with the largest weight.

    The ``paper`` variant is the weight of the greedy answer of another prompt.
    """
    block = table.block(purpose)
    confidence, failures = _stated(block, options)
    weight = np.where(np.isnan(confidence), 0.0, confidence)
    if options.variant == "paper":
        return method.about_greedy(greedy_agreement(table, purpose, weight), table, failures)
    classes = block.classes
    mass = sum_by(classes.group, weight, classes.unit.size)
    best = first_argmax(mass, classes.unit, classes.answered & (mass > 0), len(table))
    value = ratio(gather(mass, best), sum_by(block.unit, weight, len(table)))
    grade = gather(classes.correct, best)
    return method.Scored(value, block, classes.draw_of(best), grade, "modal", failures=failures)


method.register(partial(_weighted, purpose="verb_samples"), "consistency_verb")
method.register(partial(_weighted, purpose="verb_topk_samples"), "consistency_verb_topk")


@method.register
def linguistic_confidence(table: DrawTable, _: method.Options) -> Floats:
    """Least certain of the words for certainty in the greedy answer's text; 0.9 without one.

    Undefined where fewer than one text in twenty has such a word: these answers do not hedge.
    """
    block = table.greedy
    texts = (block.answer if block.text is None else block.text).fill_null("").to_list()
    hedges = [(re.compile(rf"\b(?:{words})\b", re.I), v) for words, v in catalogue()["hedges"]]
    certainty = [min((v for h, v in hedges if h.search(text)), default=np.nan) for text in texts]
    value = block.of_first(np.array(certainty, dtype=np.float64))
    if not value.size or np.isnan(value).mean() > 0.95:
        return np.full(len(table), np.nan)
    return method.answered(block.first >= 0, np.nan_to_num(value, nan=0.9))


def _votes(table: DrawTable, options: Options, *, purpose: str) -> Scored:
    """Return the share of True among the verdicts that can be read."""
    block = table.block(purpose)
    missing = np.isnan(block.vote)
    vote = block.vote if options.impute is None else np.where(missing, options.impute, block.vote)
    value = mean_by(block.unit, vote, len(table))
    return about_greedy(value, table, failures=count_by(block.unit[missing], len(table)))


def _true_mass(table: DrawTable, options: Options, *, purpose: str) -> Floats:
    """Return the probability of the token True; what goes to other words counts against it.

    The ``paper`` variant is normalised over True and False, as the authors' code has it.
    """
    block = table.block(purpose)
    return _true_share(block) if options.variant == "paper" else block.of_first(block.true_mass)


def _true_share(block: DrawBlock) -> Floats:
    # All draws of a probe share the prompt.
    yes, no = block.of_first(block.true_mass), block.of_first(block.false_mass)
    return ratio(yes, yes + no)


register(partial(_votes, purpose="p_true"), "p_true_consistency")
register(partial(_votes, purpose="p_true_cand"), "p_true_consistency_cand")
register(partial(_true_mass, purpose="p_true"), "p_true_prob")
register(partial(_true_mass, purpose="p_true_cand"), "p_true_prob_cand")


@register
def p_true_ratio(table: DrawTable, _: Options) -> Floats:
    """Next-token probability of True among True and False only."""
    return _true_share(table.block("p_true"))


@register
def verified_mass(table: DrawTable, _: Options) -> Floats:
    """Sum over judged meanings of share times P(True), over the share that was judged.

    Several right answers are each called true and add up; several guesses are each called
    false. Consistency is low in both cases.
    """
    classes = table.samples.classes
    belief = verified_classes(table)
    share = np.where(np.isnan(belief), 0.0, classes.count.astype(np.float64))
    value = weighted_mean(classes.unit, np.nan_to_num(belief), share, len(table))
    return np.minimum(value, 1.0)


def verified_classes(table: DrawTable) -> Floats:
    """Return the mean P(True) of each drawn meaning; NaN where none of its texts was judged."""
    classes, block, samples = table.samples.classes, table.block("verified"), table.samples
    size = classes.unit.size
    if not len(block) or not len(samples):
        return np.full(size, np.nan)
    span = int(max(samples.class_id.max(), block.class_id.max())) + 2
    keys = samples.unit * span + samples.class_id + 1
    order = np.argsort(keys, kind="stable")
    target = block.unit * span + block.class_id + 1
    place = np.minimum(np.searchsorted(keys[order], target), order.size - 1)
    belief = block.verdict
    usable = (keys[order][place] == target) & ~np.isnan(belief)
    group = classes.group[order[place[usable]]]
    return mean_by(group, belief[usable], size)


@register
def panel_mean(table: DrawTable, _: Options) -> Floats:
    """Mean verdict of the other models."""
    block = table.block("panel")
    return mean_by(block.unit, block.verdict, len(table))


@register
def panel_vote(table: DrawTable, _: Options) -> Floats:
    """Share of judges with P(True) above one half; exactly one half counts half."""
    block = table.block("panel")
    belief = block.verdict
    vote = np.where(np.isnan(belief), np.nan, (belief > 0.5) + 0.5 * (belief == 0.5))
    return mean_by(block.unit, vote, len(table))


def panel_agreement(table: DrawTable) -> Floats:
    """Return per unit the share of pairs of judges with the same vote; NaN below two judges.

    Examples
    --------
    >>> from calibrant.answers.confidence import Greedy, Question, table_of
    >>> question = Question(greedy=Greedy(answer="Lima"), panel=[0.9, 0.8, 0.2])
    >>> panel_agreement(table_of([question])).round(3).tolist()
    [0.333]
    """
    block = table.block("panel")
    belief = block.verdict
    read = ~np.isnan(belief)
    judges = sum_by(block.unit, read, len(table))
    yes = sum_by(block.unit, read & (belief > 0.5), len(table))
    no = judges - yes
    return ratio(yes * (yes - 1) + no * (no - 1), judges * (judges - 1))


register(partial(_votes, purpose="selfcheck"), "selfcheck_judge")
