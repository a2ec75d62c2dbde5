"""Draws in columns: flat arrays with the unit (question and model) that each row belongs to."""

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import polars as pl

from calibrant.answers.confidence.columns import (
    TokenColumns,
    count_by,
    first_argmax,
    first_index,
    gather,
    no_tokens,
    ratio,
    sum_by,
)
from calibrant.core.arrays import Array, Floats, Ints, Mask
from calibrant.core.errors import InputError

NO_CLASS = -1


@dataclass(frozen=True)
class Classes:
    """The meanings drawn for each unit; classes of a unit are in the order first seen.

    Parameters
    ----------
    group
        Class of each draw, an index into the arrays below.
    unit, count
        Unit and number of draws of each class.
    answered
        False for the one class that gathers the draws without an answer (refusals, unparsed
        texts). It counts as a meaning, but it is never the answer that a score is about.
    row, correct
        The draw that stands for the class, and the grade of that very draw. The grade is the one
        that most draws of the class have (among equals the one seen first).
    mixed
        Classes whose draws do not all have the same grade.
    """

    group: Ints
    unit: Ints
    count: Ints
    answered: Mask
    row: Ints
    correct: Floats
    mixed: int
    n_units: int

    @cached_property
    def modal(self) -> Ints:
        """Index of each unit's most frequent answered class, the first seen among equals."""
        return first_argmax(self.count, self.unit, self.answered, self.n_units)

    @cached_property
    def total(self) -> Floats:
        """Draws per unit."""
        return sum_by(self.unit, self.count.astype(np.float64), self.n_units)

    @cached_property
    def local(self) -> Ints:
        """Position of each class among the classes of its unit."""
        starts = np.searchsorted(self.unit, np.arange(self.n_units))
        return np.arange(self.unit.size) - starts[self.unit]

    def draw_of(self, chosen: Ints) -> Ints:
        """Return the draw that stands for each of these classes, -1 for none."""
        return np.append(self.row, -1)[chosen]

    def table(self) -> tuple[Ints, Mask]:
        """Return (units, classes) counts, zero-padded, and which of them are answered."""
        return self.spread(self.count, 0), self.spread(self.answered, False)

    def spread(self, values: Array, empty: float) -> Array:
        """Return (units, classes) values of the classes, `empty` where a unit has no more."""
        width = int(self.local.max(initial=0)) + 1
        table = np.full((self.n_units, width), empty, dtype=values.dtype)
        table[self.unit, self.local] = values
        return table


@dataclass(frozen=True)
class TopTokens:
    """Most probable first tokens of each draw, flat."""

    row: Ints
    logprob: Floats
    token: pl.Series


def _unknown() -> Floats:
    """Return the default of a column of numbers: it becomes NaN for every draw."""
    return np.zeros(0)


@dataclass(frozen=True)
class DrawBlock:
    """Draws of one purpose, sorted by unit and then in the order drawn.

    Parameters
    ----------
    unit
        Unit of each draw, not decreasing.
    n_units
        Number of units of the table, with or without draws here.
    class_id
        Meaning of each draw, comparable between all blocks of a unit; -1: no answer.
    correct
        Grade 1.0 or 0.0, NaN where there is none.
    answer
        The answer as text.
    text
        The whole text; None where it is the answer.
    string
        Equal numbers for equal texts of a unit.
    logprob, tokens, min_logprob
        Log-probability of the whole text, its number of tokens, the smallest token log-prob.
    stated
        Confidence that the text states.
    vote
        1.0 for True, 0.0 for False.
    true_mass, false_mass
        First-token probability of saying True, and False.
    top
        Most probable first tokens.
    option, option_logprob
        Best option of a choice question, and the log of its share among all options.
    embedding
        (draws, dimensions) sentence embeddings.
    end_logprob
        Log-probability that the text ends where it does; NaN where it is not known. Without it
        the probability of a text is that of a prefix: it holds all its continuations.
    alone_logprob
        Log-probability of the same text without the question before it.
    columns
        Tokens with their texts and alternatives, where they were kept.
    """

    unit: Ints
    n_units: int
    class_id: Ints
    correct: Floats
    answer: pl.Series
    string: Ints | None = None
    text: pl.Series | None = None
    logprob: Floats = field(default_factory=_unknown)
    tokens: Floats = field(default_factory=_unknown)
    min_logprob: Floats = field(default_factory=_unknown)
    stated: Floats = field(default_factory=_unknown)
    vote: Floats = field(default_factory=_unknown)
    true_mass: Floats = field(default_factory=_unknown)
    false_mass: Floats = field(default_factory=_unknown)
    top: TopTokens | None = None
    option: pl.Series | None = None
    option_share: Floats = field(default_factory=_unknown)
    option_correct: Floats = field(default_factory=_unknown)
    embedding: Floats | None = None
    end_logprob: Floats = field(default_factory=_unknown)
    alone_logprob: Floats = field(default_factory=_unknown)
    columns: TokenColumns = field(default_factory=no_tokens)

    def __post_init__(self) -> None:
        if self.unit.size and (np.diff(self.unit) < 0).any():
            raise InputError("the draws of a block must be sorted by unit")
        for name in _NUMBERS:
            if not getattr(self, name).size:
                object.__setattr__(self, name, np.full(len(self), np.nan))

    def __len__(self) -> int:
        return int(self.unit.size)

    @cached_property
    def count(self) -> Ints:
        """Draws per unit."""
        return count_by(self.unit, self.n_units)

    @cached_property
    def first(self) -> Ints:
        """First draw of each unit, -1 for none."""
        return first_index(self.unit, np.ones(len(self), dtype=bool), self.n_units)

    def complete(self, values: Floats) -> Mask:
        """Return which units have draws, all of them with a value."""
        missing = sum_by(self.unit, np.isnan(values), self.n_units)
        return np.asarray((self.count > 0) & (missing == 0))

    def some(self, values: Floats) -> Mask:
        """Return which units have at least one draw with a value."""
        return sum_by(self.unit, ~np.isnan(values), self.n_units) > 0

    def of_first(self, values: Floats) -> Floats:
        """Return the value of each unit's first draw."""
        return gather(values, self.first)

    @cached_property
    def first_class(self) -> Ints:
        """Meaning of each unit's first draw, -1 for none."""
        return np.append(self.class_id, NO_CLASS)[self.first]

    @cached_property
    def probability(self) -> Floats:
        """Probability of each drawn text, its end included where that is known."""
        return np.exp(self.text_logprob)

    @property
    def per_token(self) -> Floats:
        """Mean log-probability of each drawn text's tokens."""
        return self.logprob / self.tokens

    @cached_property
    def verdict(self) -> Floats:
        """P(True) of each verdict: normalised over True and False, or the vote itself."""
        share = ratio(self.true_mass, self.true_mass + np.nan_to_num(self.false_mass))
        return np.where(np.isnan(share), self.vote, share)

    @cached_property
    def text_logprob(self) -> Floats:
        """Log-probability of each drawn text, its end included where that is known."""
        return np.asarray(self.logprob + np.nan_to_num(self.end_logprob, nan=0.0))

    @cached_property
    def known(self) -> Mask:
        """Whether a draw has a log-probability."""
        return ~np.isnan(self.text_logprob)

    @cached_property
    def known_count(self) -> Ints:
        """Draws with log-probs per unit."""
        return count_by(self.unit[self.known], self.n_units)

    @cached_property
    def classes(self) -> Classes:
        """The meanings of the draws."""
        span = int(self.class_id.max(initial=0)) + 2
        key = self.unit * span + (self.class_id + 1)
        _, start, inverse = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(start)  # by first draw, hence by unit and first seen
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        group = place[inverse.reshape(-1)]
        start = start[order]
        size = start.size
        right = sum_by(group, self.correct == 1.0, size)
        wrong = sum_by(group, self.correct == 0.0, size)
        graded = first_index(group, ~np.isnan(self.correct), size)
        grade = np.where(right > wrong, 1.0, np.where(right < wrong, 0.0, np.nan))
        tied = (right == wrong) & (right > 0)
        grade = np.where(tied, gather(self.correct, graded), grade)
        witness = first_index(group, self.correct == grade[group], size)
        return Classes(
            group=group,
            unit=self.unit[start],
            count=count_by(group, size),
            answered=self.class_id[start] != NO_CLASS,
            row=np.where(witness >= 0, witness, start),
            correct=grade,
            mixed=int(((right > 0) & (wrong > 0)).sum()),
            n_units=self.n_units,
        )

    @cached_property
    def distinct(self) -> Mask:
        """Whether a draw is the first one with its text in its unit."""
        if self.string is None:
            return np.ones(len(self), dtype=bool)
        key = self.unit * (int(self.string.max(initial=0)) + 2) + self.string + 1
        _, start = np.unique(key, return_index=True)
        first = np.zeros(len(self), dtype=bool)
        first[start] = True
        return first


_NUMBERS = tuple(one.name for one in fields(DrawBlock) if one.default_factory is _unknown)


def class_entropy(block: DrawBlock, mass: Floats | None = None) -> Floats:
    """Return the Shannon entropy (nats) of each unit's classes.

    Parameters
    ----------
    block
        Draws with meanings.
    mass
        Weight of each class; None: its number of draws.

    Returns
    -------
    array
        In [0, ln of the number of classes]; NaN for units without mass.
    """
    classes = block.classes
    weight = classes.count.astype(np.float64) if mass is None else mass
    total = sum_by(classes.unit, weight, block.n_units)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = weight / total[classes.unit]
        terms = np.where(share > 0, -share * np.log(share), 0.0)
    terms = np.where(np.isnan(share), np.nan, terms)
    entropy = sum_by(classes.unit, terms, block.n_units)
    return np.where(total > 0, np.maximum(entropy, 0.0), np.nan)


@dataclass(frozen=True)
class DrawTable:
    """All draws of many questions and models, one block per purpose.

    Parameters
    ----------
    question_id, model
        Key of each unit.
    blocks
        ``samples`` and ``greedy`` answers; ``verb``, ``verb_topk`` (one draw per unit) and
        ``verb_samples``, ``verb_topk_samples``; probes ``p_true``, ``p_true_cand``, ``self_ask``,
        ``self_ask_cand``, ``selfcheck`` about the greedy answer; ``verified`` (own verdicts on
        own meanings) and ``panel`` (verdicts of other models on the greedy answer).
    similarity
        One (draws, draws) matrix of similarities in [0, 1] per unit, or None.
    """

    question_id: pl.Series
    model: pl.Series
    blocks: dict[str, DrawBlock]
    similarity: list[Floats | None] | None = None
    notes: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.question_id)

    def block(self, name: str) -> DrawBlock:
        """Return a block, an empty one where nothing was drawn for that purpose."""
        block = self.blocks.get(name)
        if block is not None:
            return block
        none = np.zeros(0, dtype=np.int64)
        answer = pl.Series("answer", [], dtype=pl.String)
        return DrawBlock(none, len(self), none, correct=np.zeros(0), answer=answer)

    @property
    def samples(self) -> DrawBlock:
        """Sampled answers."""
        return self.block("samples")

    @property
    def greedy(self) -> DrawBlock:
        """Greedy answers, at most one per unit."""
        return self.block("greedy")
