"""One question in the compact form, built by hand from lists."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from calibrant.confidence.compact import NO_CLASS, DrawBlock, DrawTable, TopTokens
from calibrant.confidence.token_columns import tokens_from_lists
from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError


@dataclass(frozen=True)
class Draws:
    """Repeated texts of one purpose; lists of equal length, None inside where unknown.

    Parameters
    ----------
    classes
        Meaning of each answer: any hashable label, None for a text without an answer.
    correct
        Grade of each answer.
    answers
        The answers as text.
    token_logprobs
        Log-probs of the tokens of each text.
    stated
        Confidence stated in each text (for a list of answers: its leading entry).
    token_texts, token_alternatives
        Text of each token, and the most probable tokens at its place with their log-probs.
    end_logprobs
        Log-prob that each text ends where it does.
    """

    classes: Sequence[Hashable | None] | None = None
    correct: Sequence[bool | None] | None = None
    answers: Sequence[str | None] | None = None
    token_logprobs: Sequence[Sequence[float] | None] | None = None
    stated: Sequence[float | None] | None = None
    token_texts: Sequence[Sequence[str] | None] | None = None
    token_alternatives: Sequence[Sequence[Mapping[str, float]] | None] | None = None
    end_logprobs: Sequence[float | None] | None = None

    def __len__(self) -> int:
        lists = (self.classes, self.correct, self.answers, self.token_logprobs, self.stated)
        sizes = {len(values) for values in lists if values is not None}
        if len(sizes) > 1:
            raise InputError(f"lists about the same draws must be equally long, got {sizes}")
        return sizes.pop() if sizes else 0


@dataclass(frozen=True)
class Greedy:
    """The answer at temperature 0.

    `top_logprobs` maps the most probable first tokens to their log-probs; `options` maps the
    options of a choice question to theirs, and `option_correct` grades the best one. A yes/no
    question has the first-token probabilities of Yes and No.
    """

    answer: str | None = None
    label: Hashable | None = None
    correct: bool | None = None
    token_logprobs: Sequence[float] | None = None
    top_logprobs: Mapping[str, float] | None = None
    options: Mapping[str, float] | None = None
    option_correct: bool | None = None
    yes_probability: float | None = None
    no_probability: float | None = None
    token_texts: Sequence[str] | None = None
    token_alternatives: Sequence[Mapping[str, float]] | None = None


@dataclass(frozen=True)
class Probes:
    """Verdicts on the greedy answer: votes, and first-token probabilities of True and False."""

    votes: Sequence[bool | None] = ()
    true_probability: float | None = None
    false_probability: float | None = None


@dataclass(frozen=True)
class Question:
    """Everything that was drawn for one question from one model.

    Parameters
    ----------
    classes, correct, answers, token_logprobs
        The sampled answers, as in :class:`Draws`.
    greedy
        The answer at temperature 0.
    verb, verb_topk
        One text that states its own confidence (a list of answers is given by its leading
        entry).
    verb_samples, verb_topk_samples
        The same, drawn repeatedly.
    p_true, p_true_cand, self_ask, self_ask_cand
        Second turns about the greedy answer.
    embeddings
        One vector per sampled answer.
    similarity
        Matrix of similarities between the sampled answers, in [0, 1].
    token_texts, end_logprobs
        Texts of the sampled answers' tokens, and log-probs of their ends.
    verified
        The model's own P(True) of the meanings that it drew.
    panel
        P(True) of the greedy answer by other models.
    selfcheck
        Verdicts whether each sample supports the greedy answer.

    Examples
    --------
    >>> question = Question(classes=["aspirin"] * 18 + ["tea"] * 2)
    >>> len(question.samples)
    20
    """

    classes: Sequence[Hashable | None] | None = None
    correct: Sequence[bool | None] | None = None
    answers: Sequence[str | None] | None = None
    token_logprobs: Sequence[Sequence[float] | None] | None = None
    greedy: Greedy | None = None
    verb: Draws | None = None
    verb_samples: Draws | None = None
    verb_topk: Draws | None = None
    verb_topk_samples: Draws | None = None
    p_true: Probes | None = None
    p_true_cand: Probes | None = None
    self_ask: float | None = None
    self_ask_cand: float | None = None
    embeddings: Sequence[Sequence[float]] | None = None
    similarity: Sequence[Sequence[float]] | None = None
    token_texts: Sequence[Sequence[str] | None] | None = None
    end_logprobs: Sequence[float | None] | None = None
    verified: Mapping[Hashable, float] | None = None
    panel: Sequence[float] | None = None
    selfcheck: Sequence[bool | None] | None = None
    question_id: str = ""
    model: str = ""

    @property
    def samples(self) -> Draws:
        """The sampled answers."""
        return Draws(
            self.classes,
            self.correct,
            self.answers,
            self.token_logprobs,
            token_texts=self.token_texts,
            end_logprobs=self.end_logprobs,
        )


def table_of(questions: Iterable[Question]) -> DrawTable:
    """Put questions built by hand into one compact table."""
    rows = list(questions)
    builders: dict[str, _Builder] = {}

    def add(
        block: str,
        unit: int,
        draws: Draws | None,
        labels: dict[Hashable, int],
        greedy: Greedy | None = None,
    ) -> None:
        if draws is not None and len(draws):
            builders.setdefault(block, _Builder()).add(unit, draws, labels, greedy)

    for unit, question in enumerate(rows):
        labels: dict[Hashable, int] = {}
        add("samples", unit, question.samples, labels)
        for name in ("verb", "verb_samples", "verb_topk", "verb_topk_samples"):
            add(name, unit, getattr(question, name), labels)
        if question.greedy is not None:
            one = question.greedy
            draws = Draws(
                [one.label],
                [one.correct],
                [one.answer],
                [one.token_logprobs],
                token_texts=[one.token_texts],
                token_alternatives=[one.token_alternatives],
            )
            add("greedy", unit, draws, labels, one)
        for name in ("p_true", "p_true_cand"):
            _add_probes(builders, name, unit, getattr(question, name))
        _add_verdicts(builders, unit, question, labels)
        for name in ("self_ask", "self_ask_cand"):
            stated = getattr(question, name)
            if stated is not None:
                add(name, unit, Draws(stated=[stated]), labels)
    blocks = {name: builder.block(len(rows)) for name, builder in builders.items()}
    if "samples" in blocks:
        blocks["samples"] = _with_embeddings(blocks["samples"], rows)
    return DrawTable(
        question_id=pl.Series("question_id", [row.question_id for row in rows], dtype=pl.String),
        model=pl.Series("model", [row.model for row in rows], dtype=pl.String),
        blocks=blocks,
        similarity=_similarities(rows),
    )


@dataclass
class _Builder:
    """Columns of one block while they grow."""

    unit: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    correct: list[float] = field(default_factory=list)
    answer: list[str | None] = field(default_factory=list)
    tokens: list[Sequence[float] | None] = field(default_factory=list)
    stated: list[float] = field(default_factory=list)
    vote: list[float] = field(default_factory=list)
    masses: list[tuple[float, float]] = field(default_factory=list)
    greedy: list[Greedy | None] = field(default_factory=list)
    token_texts: list[Sequence[str] | None] = field(default_factory=list)
    alternatives: list[Sequence[Mapping[str, float]] | None] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    texts_given: bool = True

    def add(
        self, unit: int, draws: Draws, labels: dict[Hashable, int], greedy: Greedy | None = None
    ) -> None:
        size = len(draws)
        nothing: Sequence[None] = [None] * size
        self.unit += [unit] * size
        for label in draws.classes or nothing:
            self.labels.append(NO_CLASS if label is None else labels.setdefault(label, len(labels)))
        self.correct += [_number(value) for value in draws.correct or nothing]
        self.answer += list(draws.answers or [_text(label) for label in draws.classes or nothing])
        self.tokens += list(draws.token_logprobs or nothing)
        self.stated += [_number(value) for value in draws.stated or nothing]
        self.vote += [float("nan")] * size
        pair = (None, None) if greedy is None else (greedy.yes_probability, greedy.no_probability)
        self.masses += [(_number(pair[0]), _number(pair[1]))] * size
        self.greedy += [greedy] * size
        self.token_texts += list(draws.token_texts or nothing)
        self.alternatives += list(draws.token_alternatives or nothing)
        self.ends += [_number(value) for value in draws.end_logprobs or nothing]
        self.texts_given &= draws.answers is not None

    def block(self, n_units: int) -> DrawBlock:
        lengths = [len(tokens) if tokens else 0 for tokens in self.tokens]
        sums = [float(np.sum(tokens)) if tokens else float("nan") for tokens in self.tokens]
        least = [float(np.min(tokens)) if tokens else float("nan") for tokens in self.tokens]
        texts: dict[str | None, int] = {}
        best = [_best_option(one) for one in self.greedy]
        return DrawBlock(
            unit=np.array(self.unit, dtype=np.int64),
            n_units=n_units,
            class_id=np.array(self.labels, dtype=np.int64),
            correct=np.array(self.correct),
            answer=pl.Series("answer", self.answer, dtype=pl.String),
            string=np.array([texts.setdefault(answer, len(texts)) for answer in self.answer])
            if self.texts_given
            else None,
            logprob=np.array(sums),
            tokens=np.where(np.array(lengths) > 0, np.array(lengths, dtype=np.float64), np.nan),
            min_logprob=np.array(least),
            stated=np.array(self.stated),
            vote=np.array(self.vote),
            true_mass=np.array([pair[0] for pair in self.masses]),
            false_mass=np.array([pair[1] for pair in self.masses]),
            top=_top_tokens(self.greedy),
            end_logprob=np.array(self.ends),
            columns=tokens_from_lists(self.tokens, self.token_texts, self.alternatives),
            option=pl.Series("option", [name for name, _ in best], dtype=pl.String),
            option_share=np.array([share for _, share in best]),
            option_correct=np.array(
                [_number(None if one is None else one.option_correct) for one in self.greedy]
            ),
        )


def _add_probes(builders: dict[str, _Builder], name: str, unit: int, probes: Probes | None) -> None:
    if probes is None:
        return
    builder = builders.setdefault(name, _Builder())
    votes: Sequence[bool | None] = probes.votes or [None]
    builder.add(unit, Draws(classes=[None] * len(votes)), {})
    builder.vote[-len(votes) :] = [_number(vote) for vote in votes]
    pair = (_number(probes.true_probability), _number(probes.false_probability))
    builder.masses[-len(votes) :] = [pair] * len(votes)


def _add_verdicts(
    builders: dict[str, _Builder], unit: int, question: Question, labels: dict[Hashable, int]
) -> None:
    """Add verdicts on own meanings, by other models, and on the support by samples."""
    given: dict[str, tuple[Sequence[Hashable | None], Sequence[float | bool | None]]] = {}
    if question.verified:
        given["verified"] = (list(question.verified), list(question.verified.values()))
    if question.panel:
        given["panel"] = ([None] * len(question.panel), question.panel)
    if question.selfcheck:
        given["selfcheck"] = ([None] * len(question.selfcheck), question.selfcheck)
    for name, (classes, values) in given.items():
        builder = builders.setdefault(name, _Builder())
        builder.add(unit, Draws(classes=classes), labels)
        builder.vote[-len(values) :] = [_number(value) for value in values]


def _top_tokens(greedy: Sequence[Greedy | None]) -> TopTokens:
    rows: list[int] = []
    logprobs: list[float] = []
    names: list[str] = []
    for row, one in enumerate(greedy):
        for token, logprob in (one.top_logprobs or {}).items() if one is not None else ():
            rows.append(row)
            names.append(token)
            logprobs.append(logprob)
    return TopTokens(
        row=np.array(rows, dtype=np.int64),
        logprob=np.array(logprobs, dtype=np.float64),
        token=pl.Series("token", names, dtype=pl.String),
    )


def _best_option(one: Greedy | None) -> tuple[str | None, float]:
    if one is None or not one.options:
        return None, float("nan")
    masses = {name: float(np.exp(logprob)) for name, logprob in one.options.items()}
    best = max(masses, key=lambda name: masses[name])
    return best, masses[best] / sum(masses.values())


def _with_embeddings(block: DrawBlock, questions: Sequence[Question]) -> DrawBlock:
    sizes = {len(vector) for row in questions for vector in row.embeddings or ()}
    if not sizes:
        return block
    if len(sizes) > 1:
        raise InputError(f"all embeddings must have the same length, got lengths {sorted(sizes)}")
    matrix = np.full((len(block), sizes.pop()), np.nan)
    for unit, question in enumerate(questions):
        if question.embeddings is not None:
            rows = block.unit == unit
            given = np.asarray(question.embeddings, dtype=np.float64)
            if len(given) != rows.sum():
                raise InputError(
                    f"there must be one embedding per sampled answer: {int(rows.sum())}, "
                    f"got {len(given)}"
                )
            matrix[rows] = given
    return replace(block, embedding=matrix)


def _similarities(questions: Sequence[Question]) -> list[Floats | None] | None:
    if all(question.similarity is None for question in questions):
        return None
    return [
        None if question.similarity is None else np.asarray(question.similarity, dtype=np.float64)
        for question in questions
    ]


def _number(value: float | bool | None) -> float:
    return float("nan") if value is None else float(value)


def _text(label: Hashable | None) -> str | None:
    return None if label is None else str(label)
