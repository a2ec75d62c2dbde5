"""Inputs that methods need: which units have them, and what to say where they are missing."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import METHODS, Method, Options, catalogue
from calibrant.core.arrays import Mask


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
    present: Callable[[DrawTable, Options], Mask]


def _drawn(name: str) -> Callable[[DrawTable, Options], Mask]:
    return lambda table, _: table.block(name).count > 0


def _has_class(block: DrawBlock) -> Mask:
    known = np.where(block.class_id >= 0, 1.0, np.nan)
    return block.some(known)


def _sequence(name: str) -> Callable[[DrawTable, Options], Mask]:
    """Return units with log-probs of at least half of the draws: one gap drops no question."""

    def present(table: DrawTable, _: Options) -> Mask:
        block = table.block(name)
        enough: Mask = (block.count > 0) & (2 * block.known_count >= block.count)
        return enough

    return present


def _columns(name: str, kind: str) -> Callable[[DrawTable, Options], Mask]:
    """Return units whose draws all have token texts (or alternatives of every token)."""

    def present(table: DrawTable, _: Options) -> Mask:
        block = table.block(name)
        known = getattr(block.columns, f"rows_with_{kind}")(len(block))
        return block.complete(np.where(known | ~block.known, 1.0, np.nan)) & block.some(
            np.where(known, 1.0, np.nan)
        )

    return present


def _judged(name: str) -> Callable[[DrawTable, Options], Mask]:
    return lambda table, _: table.block(name).some(table.block(name).verdict)


def _similar(table: DrawTable, options: Options) -> Mask:
    if options.similarity == "classes":
        return _has_class(table.samples)
    if options.similarity == "lexical":
        return _texts(table, options)
    if options.similarity == "embeddings":
        return _embedded(table, options)
    given = table.similarity or [None] * len(table)
    return np.array([matrix is not None for matrix in given], dtype=bool)


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


def _masses(name: str) -> Callable[[DrawTable, Options], Mask]:
    return lambda table, _: ~np.isnan(table.block(name).of_first(table.block(name).true_mass))


def _voted(name: str) -> Callable[[DrawTable, Options], Mask]:
    def voted(table: DrawTable, options: Options) -> Mask:
        block = table.block(name)
        return (block.count > 0) if options.impute is not None else block.some(block.vote)

    return voted


_PRESENT: dict[str, Callable[[DrawTable, Options], Mask]] = {
    "clusters": lambda table, _: _has_class(table.samples),
    "token_logprobs": _sequence("samples"),
    "token_texts": _columns("samples", "text"),
    "greedy_token_alternatives": _columns("greedy", "alternatives"),
    "greedy_token_texts": _columns("greedy", "text"),
    "selfcheck_votes": _voted("selfcheck"),
    "verified": _judged("verified"),
    "panel": _judged("panel"),
    "ensemble": lambda table, options: np.full(len(table), options.ensemble is not None),
    "texts": _texts,
    "greedy_token_logprobs": _sequence("greedy"),
    "greedy_alone": lambda table, _: ~np.isnan(table.greedy.of_first(table.greedy.alone_logprob)),
    "greedy_top_logprobs": _listed,
    "option_logprobs": lambda table, _: ~np.isnan(table.greedy.of_first(table.greedy.option_share)),
    "yes_no_logprobs": _masses("greedy"),
    "verb_clusters": lambda table, _: _has_class(table.block("verb_samples")),
    "verb_topk_clusters": lambda table, _: _has_class(table.block("verb_topk_samples")),
    "p_true_votes": _voted("p_true"),
    "p_true_logprobs": _masses("p_true"),
    "p_true_cand_votes": _voted("p_true_cand"),
    "p_true_cand_logprobs": _masses("p_true_cand"),
    "similarity": _similar,
    "embeddings": _embedded,
}
# Other needs are draws of the purpose that they are named after.
NEEDS: dict[str, Need] = {
    name: Need(name, words["meaning"], words["missing"], _PRESENT.get(name) or _drawn(name))
    for name, words in catalogue()["needs"].items()
}


def needs_of(method: Method, options: Options) -> tuple[str, ...]:
    """Return the needs under these options, the answer that the score is paired with included."""
    extra: tuple[str, ...] = ()
    if method.question_level:
        extra = ("greedy",) if options.about == "greedy" else ("clusters",)
    if method.name == "ensemble" and options.ensemble is not None:
        extra = _needs_of_parts(options)
    if options.variant == "paper" and method.name in _GREEDY_IN_PAPER:
        extra = ("greedy",)
    return tuple(dict.fromkeys((*method.needs, *extra)))


def _needs_of_parts(options: Options) -> tuple[str, ...]:
    """Return what the methods of a saved ensemble need."""
    from calibrant.confidence.ensemble import load_ensemble

    inner = replace(options, about="greedy", ensemble=None)
    parts = load_ensemble(str(options.ensemble)).methods
    return tuple(need for name in parts for need in needs_of(METHODS[name], inner))


_GREEDY_IN_PAPER = frozenset(
    {"consistency", "consistency_verb", "consistency_verb_topk", "verb", "verb_topk"}
)


def units_with(table: DrawTable, method: Method, options: Options) -> dict[str, Mask]:
    """Return, per need of the method, which units have it."""
    return {
        name: NEEDS[name].present(table, options).astype(bool) for name in needs_of(method, options)
    }
