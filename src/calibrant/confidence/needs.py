"""Inputs that methods need: which units have them, and what to say where they are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import METHODS, Method, Options
from calibrant.core.arrays import Floats, Mask


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
        if block.columns is None:
            return np.zeros(len(table), dtype=bool)
        known = getattr(block.columns, f"rows_with_{kind}")(len(block))
        return block.complete(np.where(known | ~block.known, 1.0, np.nan)) & block.some(
            np.where(known, 1.0, np.nan)
        )

    return present


def _verified(table: DrawTable, _: Options) -> Mask:
    block = table.block("verified")
    known = np.where(np.isnan(verdicts(block)), np.nan, 1.0)
    return block.some(known)


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
    return block.complete(None if block.embedding is None else block.embedding.sum(axis=1))


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


NEEDS: dict[str, Need] = {
    need.name: need
    for need in (
        Need(
            "samples",
            "sampled answers",
            "no sampled answers (purpose 'answer', temperature above 0)",
            _drawn("samples"),
        ),
        Need(
            "clusters",
            "meanings of the sampled answers",
            "no meanings of the sampled answers (semantics table, class_id)",
            lambda table, _: _has_class(table.samples),
        ),
        Need(
            "token_logprobs",
            "token log-probs of the sampled answers (of at least half of them)",
            "no token log-probs of the sampled answers (the endpoint may not give them)",
            _sequence("samples"),
        ),
        Need(
            "token_texts",
            "texts of the tokens of the sampled answers",
            "no texts of the tokens (column 'token_texts' of draws)",
            _columns("samples", "text"),
        ),
        Need(
            "greedy_token_alternatives",
            "the most probable tokens at every place of the greedy answer",
            "no alternatives of every token (column 'token_alternatives' of draws)",
            _columns("greedy", "alternatives"),
        ),
        Need(
            "greedy_token_texts",
            "texts of the tokens of the greedy answer",
            "no texts of the tokens (column 'token_texts' of draws)",
            _columns("greedy", "text"),
        ),
        Need(
            "selfcheck_votes",
            "verdicts whether each sample supports the greedy answer",
            "no verdicts on the samples' support (purpose 'selfcheck')",
            _voted("selfcheck"),
        ),
        Need(
            "verified",
            "the model's own P(True) of the meanings that it drew",
            "no verdicts of the model on its own answers (candidate_pool, purpose 'p_true_pool')",
            _verified,
        ),
        Need(
            "panel",
            "verdicts of other models on the greedy answer",
            "no verdicts of other models (candidate_pool with two or more models)",
            lambda table, _: table.block("panel").some(verdicts(table.block("panel"))),
        ),
        Need(
            "ensemble",
            "a saved ensemble",
            "no saved ensemble (option 'ensemble' names its JSON file)",
            lambda table, options: np.full(len(table), options.ensemble is not None),
        ),
        Need("texts", "texts of the sampled answers", "no texts of the sampled answers", _texts),
        Need(
            "greedy",
            "the greedy answer",
            "no greedy answer (purpose 'greedy', or 'answer' at temperature 0)",
            _drawn("greedy"),
        ),
        Need(
            "greedy_token_logprobs",
            "token log-probs of the greedy answer",
            "no token log-probs of the greedy answer (the endpoint may not give them)",
            _sequence("greedy"),
        ),
        Need(
            "greedy_top_logprobs",
            "the most probable first tokens of the greedy answer",
            "no first_token_top_logprobs of the greedy answer",
            _listed,
        ),
        Need(
            "option_logprobs",
            "log-probs of all options of a choice question",
            "no choice question whose options are all among the listed first tokens",
            lambda table, _: ~np.isnan(table.greedy.of_first(table.greedy.option_share)),
        ),
        Need(
            "yes_no_logprobs",
            "first-token log-probs of yes and no to a yes/no question",
            "no yes/no question (kind 'binary') with yes among the listed first tokens",
            _masses("greedy"),
        ),
        Need(
            "verb",
            "a text that states its confidence",
            "no texts with a stated confidence (purpose 'verb')",
            _drawn("verb"),
        ),
        Need(
            "verb_samples",
            "repeated texts that state their confidence",
            "no repeated texts with a stated confidence (purpose 'verb', temperature above 0)",
            _drawn("verb_samples"),
        ),
        Need(
            "verb_clusters",
            "meanings of those texts' answers",
            "no meanings of the repeated 'verb' answers (semantics table)",
            lambda table, _: _has_class(table.block("verb_samples")),
        ),
        Need(
            "verb_topk",
            "a stated list of answers with confidences",
            "no stated lists of answers (purpose 'verb_topk')",
            _drawn("verb_topk"),
        ),
        Need(
            "verb_topk_samples",
            "repeated stated lists",
            "no repeated stated lists (purpose 'verb_topk', temperature above 0)",
            _drawn("verb_topk_samples"),
        ),
        Need(
            "verb_topk_clusters",
            "meanings of the lists' entries",
            "no meanings of the repeated 'verb_topk' entries (semantics table)",
            lambda table, _: _has_class(table.block("verb_topk_samples")),
        ),
        *(
            need
            for probe, shown in (("p_true", ""), ("p_true_cand", " with candidates shown"))
            for need in (
                Need(
                    f"{probe}_votes",
                    f"repeated True/False verdicts on the greedy answer{shown}",
                    f"no readable True/False verdicts{shown} (purpose '{probe}')",
                    _voted(probe),
                ),
                Need(
                    f"{probe}_logprobs",
                    f"first-token log-probs of that verdict{shown}",
                    f"no first_token_top_logprobs of the verdict{shown} (purpose '{probe}')",
                    _masses(probe),
                ),
            )
        ),
        Need(
            "self_ask",
            "a confidence asked for in a second turn",
            "no second-turn confidences (purpose 'self_ask')",
            _drawn("self_ask"),
        ),
        Need(
            "self_ask_cand",
            "the same with candidates shown",
            "no second-turn confidences with candidates (purpose 'self_ask_cand')",
            _drawn("self_ask_cand"),
        ),
        Need(
            "similarity",
            "similarities of the sampled answers (from classes, a matrix or embeddings)",
            "no similarities of the sampled answers (embeddings need 'embeddings = true' under "
            "[semantics])",
            _similar,
        ),
        Need(
            "embeddings",
            "an embedding of every sampled answer",
            "no embeddings of the sampled answers (column 'embedding' of draws)",
            _embedded,
        ),
    )
}


def verdicts(block: DrawBlock) -> Floats:
    """Return P(True) of each verdict: normalised over True and False, or the vote itself."""
    vote = np.full(len(block), np.nan) if block.vote is None else block.vote
    if block.true_mass is None or block.false_mass is None:
        return vote
    false = np.where(np.isnan(block.false_mass), 0.0, block.false_mass)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = block.true_mass / (block.true_mass + false)
    return np.where(np.isnan(ratio), vote, ratio)


def needs_of(method: Method, options: Options) -> tuple[str, ...]:
    """Return the needs under these options, the answer that the score is paired with included."""
    extra: tuple[str, ...] = ()
    if method.question_level:
        extra = ("greedy",) if options.about == "greedy" else ("clusters",)
    if method.name == "ensemble" and options.ensemble is not None:
        extra = _needs_of_parts(options)
    paper = options.variant == "paper"
    if paper and method.name in _GREEDY_IN_PAPER:
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
