"""What a confidence method declares: inputs, answer, range, reference; and who has the inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from calibrant.answers.confidence.columns import gather
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.errors import InputError, require_choice
from calibrant.core.names import Registry, catalogue

About: TypeAlias = Literal["modal", "selected", "greedy", "own", "first", "option"]


@dataclass(frozen=True, slots=True)
class Options:
    """Choices that change values; each one is written down with the scores.

    Parameters
    ----------
    variant
        ``"default"`` pairs every confidence with the grade of its own answer. ``"paper"`` does
        what the authors' published numbers did, where that differs (see the method).
    about
        Answer that question-level scores (entropies, aggregated mass, graph scores) are about:
        the ``"modal"`` class of the samples or the ``"greedy"`` answer.
    tau
        Threshold of sca, sca_distinct, snca and sfca; None: each method's own default.
    impute
        Confidence given to texts in which none could be read; None: they are left out. Either
        way they are counted.
    block
        Draws of the selection block of sem2; None: half of the pool.
    splits
        Random splits of sem2; None: the exact law where that is affordable, else 200.
    similarity
        What scores of similarity compare: equal ``"classes"``, a given ``"matrix"`` (made
        symmetric where it is not), ``"embeddings"`` (cosine; negative cosines count as 0) or
        ``"lexical"`` (ROUGE-L of the texts).
    ensemble
        JSON file of a saved ensemble, for the method ``ensemble``.
    seed
        Seed of random splits.
    """

    variant: Literal["default", "paper"] = "default"
    about: Literal["modal", "greedy"] = "modal"
    tau: float | None = None
    impute: float | None = None
    block: int | None = None
    splits: int | None = None
    similarity: Literal["classes", "matrix", "embeddings", "lexical"] = "classes"
    ensemble: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_choice("variant", self.variant, ("default", "paper"))
        require_choice("about", self.about, ("modal", "greedy"))
        modes = ("classes", "matrix", "embeddings", "lexical")
        require_choice("similarity", self.similarity, modes)
        if self.impute is not None and not 0.0 <= self.impute <= 1.0:
            raise InputError(f"impute must lie in [0, 1], got {self.impute}")
        if self.tau is not None and not self.tau >= 0.0:
            raise InputError(f"tau must not be negative, got {self.tau}")
        if self.block is not None and self.block < 1:
            raise InputError(f"block must be at least 1, got {self.block}")


@dataclass(frozen=True)
class Scored:
    """Values of one method on all units, and the answers that they are about.

    Parameters
    ----------
    value
        Score per unit; NaN where it is undefined.
    block, row
        The draw that is the answer: row of `block`, -1 for none.
    correct
        Grade of that answer; the mean grade where several answers are meant (sem2).
    about
        Which answer it is.
    answers
        Text of the answers where they are not draws of `block` (options of a choice question).
    failures
        Texts in which no confidence or vote could be read, per unit.
    """

    value: Floats
    block: DrawBlock
    row: Ints
    correct: Floats
    about: str
    answers: pl.Series | None = None
    failures: Ints | None = None


MethodFunction: TypeAlias = Callable[[DrawTable, Options], Scored | Floats]


@dataclass(frozen=True, slots=True)
class Method:
    """A confidence method and what it promises.

    Parameters
    ----------
    name, summary, reference
        What it is called, what it is in one line, where it comes from.
    needs
        Inputs that must be there; a unit that lacks one gets no score.
    about
        The answer that the score is about: the ``modal`` class of the samples, the class
        ``selected`` on a part of them, the ``greedy`` answer, the text's ``own`` answer, the
        ``first`` sample, the best ``option``.
    probability
        Whether the value is meant as the chance of being right. Calibration metrics refuse the
        others until they are recalibrated.
    low, high
        Range; every score is higher for more confidence.
    question_level
        Whether the score describes the question rather than one answer, so that the option
        ``about`` decides which answer it is paired with.
    frequency
        Whether it depends on shares of draws only, so that a set of draws given twice scores
        the same.
    order_free
        Whether the order of the draws is irrelevant (ties between classes aside).
    default_tau
        Default threshold, for methods that have one.
    cost
        What it takes beyond the one answer: ``1 call``, ``n samples``, ``1 extra call`` and so on.
    """

    name: str
    summary: str
    needs: tuple[str, ...]
    about: About
    reference: str
    function: MethodFunction
    probability: bool = True
    low: float = 0.0
    high: float = 1.0
    question_level: bool = False
    frequency: bool = False
    order_free: bool = True
    default_tau: float | None = None
    cost: str = ""

    def scored(self, table: DrawTable, options: Options) -> Scored:
        """Return the scores of all units, each paired with the answer that it is about.

        A function that returns bare values leaves the pairing to what the method declares.
        """
        value = self.function(table, options)
        if isinstance(value, Scored):
            return value
        about = options.about if self.question_level else self.about
        return about_greedy(value, table) if about == "greedy" else about_modal(value, table)

    def to_dict(self) -> dict[str, object]:
        """Return the declaration as plain data; an unbounded end of the range is None."""
        # What it costs in calls follows from the last of its needs that costs any.
        last_first = reversed(catalogue()["needs"].items())
        costs = (x["cost"] for name, x in last_first if name in self.needs and "cost" in x)
        return {
            "name": self.name,
            "summary": self.summary,
            "needs": list(self.needs),
            "about": self.about,
            "question_level": self.question_level,
            "probability": self.probability,
            "low": self.low if np.isfinite(self.low) else None,
            "high": self.high if np.isfinite(self.high) else None,
            "direction": "higher is surer",
            "default_tau": self.default_tau,
            "reference": self.reference,
            "cost": self.cost or next(costs, "1 call"),
        }


METHODS: Registry[Method] = Registry("confidence method")


def register(function: MethodFunction, name: str | None = None) -> MethodFunction:
    """Register a function under its own name (or another) with what the catalogue declares."""
    name = name or function.__name__
    facts = catalogue()["methods"][name]
    METHODS.add(name, Method(name, **{**facts, "needs": tuple(facts["needs"])}, function=function))
    return function


def threshold(name: str, options: Options) -> float:
    """Return tau: the one asked for, or the method's default."""
    return options.tau if options.tau is not None else METHODS[name].default_tau or 0.0


def about_modal(value: Floats, table: DrawTable, purpose: str = "samples") -> Scored:
    """Pair values with the most frequent class of a block."""
    block = table.block(purpose)
    classes, modal = block.classes, block.classes.modal
    grade = gather(classes.correct, modal)
    return Scored(answered(modal >= 0, value), block, classes.draw_of(modal), grade, "modal")


def about_first(
    value: Floats, block: DrawBlock, *, about: str, failures: Ints | None = None
) -> Scored:
    """Pair values with the first (or only) draw of a block."""
    grade = block.of_first(block.correct)
    value = answered(block.first >= 0, value)
    return Scored(value, block, block.first, grade, about, failures=failures)


def about_greedy(value: Floats, table: DrawTable, failures: Ints | None = None) -> Scored:
    """Pair values with the greedy answer."""
    return about_first(value, table.greedy, about="greedy", failures=failures)


def answered(mask: Mask, value: Floats) -> Floats:
    """Return `value` with NaN where `mask` does not hold."""
    return np.where(mask, value, np.nan)


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


def _told(block: DrawBlock, what: str) -> Mask:
    """Return units whose draws with log-probs all have texts, or alternatives, and are some."""
    mask = block.columns.rows_with_all(what, len(block))
    every = block.complete(np.where(mask | ~block.known, 1.0, np.nan))
    return every & block.some(np.where(mask, 1.0, np.nan))


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
    "token_texts": lambda table, _: _told(table.samples, "text"),
    "greedy_token_alternatives": lambda table, _: _told(table.greedy, "alternative"),
    "greedy_token_texts": lambda table, _: _told(table.greedy, "text"),
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
