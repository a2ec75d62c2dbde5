"""Inputs that methods need: which units have them, and what to say where they are missing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.method import METHODS, Method, Options
from calibrant.core.arrays import Mask
from calibrant.core.names import catalogue

Present: TypeAlias = Callable[[DrawTable, Options], Mask]


@dataclass(frozen=True, slots=True)
class Need:
    """One kind of input.

    Parameters
    ----------
    name
        As methods list it.
    meaning
        What it is.
    missing
        What to say where it is not there, with the way to get it.
    present
        Which units have it.
    """

    name: str
    meaning: str
    missing: str
    present: Present


def _has_class(block: DrawBlock) -> Mask:
    return block.some(np.where(block.class_id >= 0, 1.0, np.nan))


def _likely(block: DrawBlock) -> Mask:
    """Return units with log-probs of at least half of the draws: one gap drops no question."""
    return np.asarray((block.count > 0) & (2 * block.known_count >= block.count))


def _told(block: DrawBlock, known_values: Mask) -> Mask:
    """Return units whose draws with log-probs are all known in some way, and are some."""
    every = block.complete(np.where(known_values | ~block.known, 1.0, np.nan))
    return every & block.some(np.where(known_values, 1.0, np.nan))


def _with_texts(block: DrawBlock) -> Mask:
    return _told(block, block.columns.rows_with_text(len(block)))


def _with_alternatives(block: DrawBlock) -> Mask:
    return _told(block, block.columns.rows_with_alternatives(len(block)))


def _similar(table: DrawTable, options: Options) -> Mask:
    if options.similarity == "classes":
        return _has_class(table.samples)
    if options.similarity == "lexical":
        return _texts(table, options)
    if options.similarity == "embeddings":
        return _embedded(table, options)
    values = table.similarity or [None] * len(table)
    return np.array([matrix is not None for matrix in values], dtype=bool)


def _embedded(table: DrawTable, _: Options) -> Mask:
    block = table.samples
    if block.embedding is None:
        return np.zeros(len(table), dtype=bool)
    return block.complete(block.embedding.sum(axis=1))


def _listed(table: DrawTable, _: Options) -> Mask:
    block = table.greedy
    if block.top is None:
        return np.zeros(len(table), dtype=bool)
    return np.bincount(block.unit[block.top.row], minlength=len(table)) > 0


def _texts(table: DrawTable, _: Options) -> Mask:
    block = table.samples
    return block.count > 0 if block.string is not None else np.zeros(len(table), dtype=bool)


def _masses(name: str) -> Present:
    return lambda table, _: ~np.isnan(table.block(name).of_first(table.block(name).true_mass))


def _voted(table: DrawTable, options: Options, *, purpose: str) -> Mask:
    block = table.block(purpose)
    return (block.count > 0) if options.impute is not None else block.some(block.vote)


def _drawn(table: DrawTable, _: Options, *, purpose: str) -> Mask:
    return table.block(purpose).count > 0


# Needs without a rule of their own are draws of the purpose that they are named after.
_PRESENT: dict[str, Present] = {
    **{name: partial(_drawn, purpose=name) for name in catalogue()["needs"]},
    "clusters": lambda table, _: _has_class(table.samples),
    "token_logprobs": lambda table, _: _likely(table.samples),
    "token_texts": lambda table, _: _with_texts(table.samples),
    "greedy_token_alternatives": lambda table, _: _with_alternatives(table.greedy),
    "greedy_token_texts": lambda table, _: _with_texts(table.greedy),
    "selfcheck_votes": partial(_voted, purpose="selfcheck"),
    "verified": lambda table, _: table.block("verified").some(table.block("verified").verdict),
    "panel": lambda table, _: table.block("panel").some(table.block("panel").verdict),
    "ensemble": lambda table, options: np.full(len(table), options.ensemble is not None),
    "texts": _texts,
    "greedy_token_logprobs": lambda table, _: _likely(table.greedy),
    "greedy_alone": lambda table, _: ~np.isnan(table.greedy.of_first(table.greedy.alone_logprob)),
    "greedy_top_logprobs": _listed,
    "option_logprobs": lambda table, _: ~np.isnan(table.greedy.of_first(table.greedy.option_share)),
    "yes_no_logprobs": _masses("greedy"),
    "verb_clusters": lambda table, _: _has_class(table.block("verb_samples")),
    "verb_topk_clusters": lambda table, _: _has_class(table.block("verb_topk_samples")),
    "p_true_votes": partial(_voted, purpose="p_true"),
    "p_true_logprobs": _masses("p_true"),
    "p_true_cand_votes": partial(_voted, purpose="p_true_cand"),
    "p_true_cand_logprobs": _masses("p_true_cand"),
    "similarity": _similar,
    "embeddings": _embedded,
}


NEEDS = {
    name: Need(name, words["meaning"], words["missing"], _PRESENT[name])
    for name, words in catalogue()["needs"].items()
}


def needs_of(method: Method, options: Options) -> tuple[str, ...]:
    """Return the needs under these options, the answer that the score is paired with included."""
    extra: tuple[str, ...] = ()
    if method.question_level:
        extra = ("greedy",) if options.about == "greedy" else ("clusters",)
    if method.name == "ensemble" and options.ensemble is not None:
        # Loaded here: an ensemble is made of methods, which need what is said here.
        from calibrant.answers.confidence.ensemble import load_ensemble

        inner = replace(options, about="greedy", ensemble=None)
        parts = load_ensemble(options.ensemble).methods
        extra = tuple(need for name in parts for need in needs_of(METHODS[name], inner))
    if options.variant == "paper" and method.name in _GREEDY_IN_PAPER:
        extra = ("greedy",)
    return tuple(dict.fromkeys((*method.needs, *extra)))


_GREEDY_IN_PAPER = frozenset(
    {"consistency", "consistency_verb", "consistency_verb_topk", "verb", "verb_topk"}
)


def units_with(table: DrawTable, method: Method, options: Options) -> dict[str, Mask]:
    """Return, per need of the method, which units have it."""
    return {
        name: NEEDS[name].present(table, options).astype(bool) for name in needs_of(method, options)
    }
