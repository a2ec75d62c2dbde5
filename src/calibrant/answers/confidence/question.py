"""One question in the compact form, built by hand from lists."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.confidence.columns import tokens_from_lists
from calibrant.answers.confidence.compact import NO_CLASS, DrawBlock, DrawTable, TopTokens
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
    question has the first-token probabilities of Yes and No. `alone_logprob` is the log-prob of the
    same text without the question.
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
    alone_logprob: float | None = None


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
    values = list(questions)
    rows: dict[str, list[_Row]] = defaultdict(list)
    for unit, question in enumerate(values):
        labels: dict[Hashable, int] = {}
        for name, draws, more in _blocks_of(question):
            rows[name] += _rows(unit, draws, labels, more)
    blocks = {name: _block(sample, len(values)) for name, sample in rows.items() if sample}
    if "samples" in blocks:
        blocks["samples"] = _with_embeddings(blocks["samples"], values)
    matrices = [
        None if row.similarity is None else np.array(row.similarity, float) for row in values
    ]
    return DrawTable(
        question_id=pl.Series("question_id", [row.question_id for row in values], dtype=pl.String),
        model=pl.Series("model", [row.model for row in values], dtype=pl.String),
        blocks=blocks,
        similarity=None if all(matrix is None for matrix in matrices) else matrices,
    )


_Row = dict[str, Any]


def _blocks_of(question: Question) -> Iterator[tuple[str, Draws, _Row]]:
    """Yield every block with its draws and what further columns hold: per draw, or for all."""
    yield "samples", question.samples, {}
    for name in ("verb", "verb_samples", "verb_topk", "verb_topk_samples"):
        yield name, getattr(question, name) or Draws(), {}
    if (one := question.greedy) is not None:
        draws = Draws(
            [one.label],
            [one.correct],
            [one.answer],
            [one.token_logprobs],
            token_texts=[one.token_texts],
            token_alternatives=[one.token_alternatives],
        )
        masses = {"true_mass": one.yes_probability, "false_mass": one.no_probability}
        yield "greedy", draws, masses | {"greedy": one, "alone_logprob": one.alone_logprob}
    for name in ("p_true", "p_true_cand"):
        probes = getattr(question, name)
        if probes is not None:
            votes = probes.votes or [None]
            masses = {"true_mass": probes.true_probability, "false_mass": probes.false_probability}
            yield name, Draws(classes=[None] * len(votes)), masses | {"vote": votes}
    if question.verified:
        votes = list(question.verified.values())
        yield "verified", Draws(classes=list(question.verified)), {"vote": votes}
    for name, votes in (("panel", question.panel), ("selfcheck", question.selfcheck)):
        if votes:
            yield name, Draws(classes=[None] * len(votes)), {"vote": votes}
    for name in ("self_ask", "self_ask_cand"):
        if (confidence := getattr(question, name)) is not None:
            yield name, Draws(stated=[confidence]), {}


def _rows(unit: int, draws: Draws, labels: dict[Hashable, int], more: _Row) -> Iterator[_Row]:
    lists = {item.name: getattr(draws, item.name) for item in fields(draws)}
    for place in range(len(draws)):
        row = {name: values[place] for name, values in lists.items() if values is not None}
        row |= {name: v[place] if isinstance(v, Sequence) else v for name, v in more.items()}
        label = row.get("classes")
        code = NO_CLASS if label is None else labels.setdefault(label, len(labels))
        text = row["answers"] if "answers" in row else None if label is None else str(label)
        yield row | {"unit": unit, "class_id": code, "answer": text}


def _block(rows: Sequence[_Row], n_units: int) -> DrawBlock:
    def column(name: str) -> list[Any]:
        return [row.get(name) for row in rows]

    def numbers(name: str) -> Floats:
        return np.array([np.nan if value is None else float(value) for value in column(name)])

    tokens = column("token_logprobs")
    texts: dict[str | None, int] = {}
    greedy: list[Greedy] = [item or Greedy() for item in column("greedy")]
    listed = [item.top_logprobs or {} for item in greedy]
    masses = [{n: np.exp(p) for n, p in (item.options or {}).items()} for item in greedy]
    best = [max(mass, key=mass.__getitem__, default=None) for mass in masses]
    shares = [max(mass.values()) / sum(mass.values()) if mass else np.nan for mass in masses]
    graded = [item.option_correct for item in greedy]
    return DrawBlock(
        unit=np.array(column("unit"), dtype=np.int64),
        n_units=n_units,
        class_id=np.array(column("class_id"), dtype=np.int64),
        answer=pl.Series("answer", column("answer"), dtype=pl.String),
        string=np.array([texts.setdefault(answer, len(texts)) for answer in column("answer")])
        if all("answers" in row for row in rows)
        else None,
        logprob=np.array([float(np.sum(item)) if item else np.nan for item in tokens]),
        tokens=np.array([float(len(item)) if item else np.nan for item in tokens]),
        min_logprob=np.array([float(np.min(item)) if item else np.nan for item in tokens]),
        top=TopTokens(
            np.repeat(np.arange(len(listed)), [len(item) for item in listed]),
            np.array([value for item in listed for value in item.values()], np.float64),
            pl.Series("token", list(chain.from_iterable(listed)), dtype=pl.String),
        ),
        end_logprob=numbers("end_logprobs"),
        alone_logprob=numbers("alone_logprob"),
        columns=tokens_from_lists(tokens, column("token_texts"), column("token_alternatives")),
        option=pl.Series("option", best, dtype=pl.String),
        option_share=np.array(shares),
        option_correct=np.array([np.nan if item is None else float(item) for item in graded]),
        correct=numbers("correct"),
        stated=numbers("stated"),
        vote=numbers("vote"),
        true_mass=numbers("true_mass"),
        false_mass=numbers("false_mass"),
    )


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
            values = np.asarray(question.embeddings, dtype=np.float64)
            if len(values) != rows.sum():
                raise InputError(
                    f"there must be one embedding per sampled answer: {int(rows.sum())}, "
                    f"got {len(values)}"
                )
            matrix[rows] = values
    return replace(block, embedding=matrix)
