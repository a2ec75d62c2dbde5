"""Scores that a model states in words, alone or as weights of repeated answers."""

import re
from dataclasses import replace
from functools import partial

import numpy as np

from calibrant.answers.confidence import method
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.frequency import greedy_agreement
from calibrant.answers.confidence.segments import (
    count_by,
    first_argmax,
    gather,
    mean_by,
    ratio,
    sum_by,
)
from calibrant.core.arrays import Floats, Ints
from calibrant.core.method_words import catalogue


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
