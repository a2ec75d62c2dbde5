"""Score one question, or all questions of a study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.confidence.compact import DrawTable
from calibrant.answers.confidence.ensemble import load_ensemble
from calibrant.answers.confidence.frames import compact_table
from calibrant.answers.confidence.method import METHODS, NEEDS, Method, Options, Scored
from calibrant.answers.confidence.question import Question, table_of
from calibrant.core.arrays import Mask
from calibrant.core.errors import UnavailableError
from calibrant.core.names import PAPER
from calibrant.data.tables import with_question_columns


def methods() -> list[dict[str, object]]:
    """Return what every method declares, in the order of registration.

    Returns
    -------
    list of dict
        name, summary, needs, about, question_level, probability, low, high, direction,
        default_tau, reference.

    Examples
    --------
    >>> next(entry["needs"] for entry in methods() if entry["name"] == "consistency")
    ['samples', 'clusters']
    """
    return [METHODS[name].to_dict() for name in METHODS]


class Score(float):
    """A confidence: a number that knows its answer and that answer's grade.

    Attributes
    ----------
    answer
        The answer that it is about; None where the answer's text is not known.
    correct
        Grade of that very answer; None where it has none.
    about
        Which answer it is: modal, selected, greedy, own, first, option.
    probability
        Whether the number is meant as a chance of being right.
    """

    answer: str | None
    correct: bool | float | None
    about: str
    probability: bool

    def __new__(
        cls, value: float, *, answer: str | None, correct: bool | float | None,
        about: str, probability: bool,
    ) -> Score:  # fmt: skip
        """Make a float with the answer attached."""
        self = super().__new__(cls, value)
        self.answer, self.correct = answer, correct
        self.about, self.probability = about, probability
        return self


def score(method: str, question: Question, **options: Any) -> Score:
    """Score one question with one method.

    Parameters
    ----------
    method
        Name of the method, see :func:`methods`.
    question
        What was drawn for the question.
    **options
        Fields of :class:`Options`, such as ``tau=0.1``.

    Returns
    -------
    Score
        A float with ``answer``, ``correct``, ``about`` and ``probability``; NaN where the inputs
        are there but the score is undefined. ``correct`` is a share where several answers are
        meant (sem2).

    Raises
    ------
    UnavailableError
        An input of the method is missing.

    Examples
    --------
    >>> draws = ["rest"] * 12 + ["aspirin"] * 6 + ["tea"] * 2
    >>> question = Question(classes=draws, correct=[True] * 18 + [False] * 2)
    >>> confidence = score("consistency", question)
    >>> print(round(confidence, 3), confidence.answer, confidence.correct)
    0.6 rest True
    >>> print(round(score("sfca", question, tau=0.2), 3))
    0.9
    """
    choice, settings = METHODS[method], Options(**options)
    table = table_of([question])
    for need, present in units_with(table, choice, settings).items():
        if not present[0]:
            raise UnavailableError(f"{method} needs {NEEDS[need].meaning}: {NEEDS[need].missing}")
    scored = choice.scored(table, settings)
    grade = float(scored.correct[0])
    return Score(
        float(scored.value[0]),
        answer=_answers(scored, np.array([0]))[0],
        correct=None if np.isnan(grade) else grade if 0 < grade < 1 else bool(grade),
        about=scored.about,
        probability=choice.probability,
    )


@dataclass(frozen=True)
class ScoredTable:
    """Scores of a study, and what could not be scored and why. Unpacks to its first three fields.

    Parameters
    ----------
    scores
        question_id, model, method, answer, about, confidence, correct, probability. `correct` is
        the grade of `answer` (of sem2: the mean grade of the classes that its splits choose),
        null where it has none.
    availability
        Per model and method: available, scored, ungraded (scores without a grade), missing
        (questions without the inputs), undefined, reason.
    failures
        Per model and method: texts in which no confidence or vote could be read, and whether
        they were imputed.
    options
        The options used.
    """

    scores: pl.DataFrame
    availability: list[dict[str, Any]]
    failures: list[dict[str, object]]
    options: dict[str, object]

    def __iter__(self) -> Any:
        return iter((self.scores, self.availability, self.failures))


def score_table(
    draws: pl.DataFrame | DrawTable,
    semantics: pl.DataFrame | None = None,
    questions: pl.DataFrame | None = None,
    *,
    methods: Iterable[str] | None = None,
    similarities: pl.DataFrame | None = None,
    **options: Any,
) -> ScoredTable:
    """Score every question and model of a study with every method whose inputs are there.

    Parameters
    ----------
    draws, semantics, questions, similarities
        Tables, see :func:`compact_table`; or a compact table as `draws`.
    methods
        Names; None: all.
    **options
        Fields of :class:`Options`.

    Returns
    -------
    ScoredTable

    Examples
    --------
    >>> draws = pl.DataFrame({"question_id": ["q"] * 4, "model": ["m"] * 4, "draw": range(4),
    ...     "purpose": ["answer"] * 4, "text": ["Lima", "Lima", "Lima", "Quito"]})
    >>> classes = pl.DataFrame({"question_id": ["q"] * 4, "model": ["m"] * 4, "draw": range(4),
    ...     "class_id": [0, 0, 0, 1], "correct": [True, True, True, False]})
    >>> scores, available, failures = score_table(draws, classes, methods=["consistency", "verb"])
    >>> scores.select("answer", "confidence", "correct").row(0)
    ('Lima', 0.75, 1.0)
    >>> available[1]["reason"]
    "no texts with a stated confidence (purpose 'verb')"
    """
    settings = Options(**options)
    table = draws
    if not isinstance(table, DrawTable):
        table = compact_table(table, semantics, questions, similarities=similarities)
    result = ScoredTable(_EMPTY, [], [], asdict(settings))
    frames = [_EMPTY]
    for name in METHODS if methods is None else methods:
        method, scored = METHODS[name], None
        masks = units_with(table, method, settings)
        ready = np.logical_and.reduce(list(masks.values()))
        if ready.any():
            scored = method.scored(table, settings)
            scored = replace(scored, value=np.where(ready, scored.value, np.nan))
            frames.append(_frame(table, method, scored, settings))
            result.failures.extend(_failures(table, method, scored, ready, settings))
        result.availability.extend(_entries(table, method, masks, scored))
    scores = pl.concat(frames)
    # The plain columns of the questions are features and groups.
    own = (*scores.columns, "text", "references", "choices")
    kinds = {} if questions is None else questions.schema
    plain = [name for name, kind in kinds.items() if name not in own and not kind.is_nested()]
    if questions is not None and plain:
        scores = with_question_columns(scores, questions, plain)
    return replace(result, scores=scores)


def availability(table: DrawTable, **options: Any) -> list[dict[str, Any]]:
    """Return, per model and method, whether the inputs are there and what is missing."""
    settings = Options(**options)
    keys = ("model", "method", "available", "missing", "reason", "questions")
    return [
        {key: entry[key] for key in keys}
        for method in METHODS.values()
        for entry in _entries(table, method, units_with(table, method, settings), None)
    ]


_EMPTY = pl.DataFrame(
    schema={
        **dict.fromkeys(("question_id", "model", "method", "answer", "about"), pl.String),
        "confidence": pl.Float64,
        "correct": pl.Float64,
        "probability": pl.Boolean,
    }
)


def _frame(table: DrawTable, method: Method, scored: Scored, options: Options) -> pl.DataFrame:
    units = np.flatnonzero(~np.isnan(scored.value))
    label = f"{method.name}{PAPER}" if options.variant == "paper" else method.name
    return pl.DataFrame(
        {
            "question_id": table.question_id.gather(units),
            "model": table.model.gather(units),
            "method": pl.repeat(label, units.size, dtype=pl.String, eager=True),
            "answer": _answers(scored, units),
            "about": pl.repeat(scored.about, units.size, dtype=pl.String, eager=True),
            "confidence": scored.value[units],
            "correct": pl.Series(scored.correct[units], nan_to_null=True, dtype=pl.Float64),
            "probability": pl.repeat(method.probability, units.size, dtype=pl.Boolean, eager=True),
        }
    )


def _answers(scored: Scored, units: Any) -> pl.Series:
    if scored.answers is not None:
        return scored.answers.gather(units)
    rows = scored.row[units]
    if not len(scored.block):
        return pl.Series("answer", [None] * len(units), dtype=pl.String)
    texts = scored.block.answer.gather(np.where(rows >= 0, rows, 0))
    return pl.select(pl.when(pl.Series(rows >= 0)).then(texts)).to_series()


def _entries(
    table: DrawTable, method: Method, masks: dict[str, Mask], scored: Scored | None
) -> list[dict[str, Any]]:
    ready = np.logical_and.reduce(list(masks.values()))
    entries = []
    for model in table.model.unique(maintain_order=True):
        ours = (table.model == model).to_numpy()
        size, missing = int(ours.sum()), int((ours & ~ready).sum())
        values = np.isfinite(scored.value[ours]) if scored is not None else np.zeros(size)
        grades = scored.correct[ours] if scored is not None else np.zeros(size)
        absent = (NEEDS[need].missing for need, mask in masks.items() if not mask[ours].any())
        partial = "no question has all of its inputs" if missing == size else ""
        finished = int(np.sum(values))
        entries.append(
            {
                "model": model,
                "method": method.name,
                "available": missing < size,
                "questions": size,
                "scored": finished,
                "ungraded": int(np.sum(np.isnan(grades) & (values > 0))),
                "missing": missing,
                "undefined": size - missing - finished if scored is not None else 0,
                "reason": next(absent, partial),
                "note": _draws_note(table, method, ours),
            }
        )
    return entries


def _draws_note(table: DrawTable, method: Method, ours: Mask) -> str:
    """Warn where questions have different numbers of draws and the method sums over them."""
    if method.name != "sca":
        return ""
    counts = table.samples.known_count[ours & (table.samples.known_count > 0)]
    if not counts.size or counts.min() == counts.max():
        return ""
    return (
        f"questions have {counts.min()} to {counts.max()} draws with log-probs; "
        "masses are scaled to the usual number"
    )


def _failures(
    table: DrawTable, method: Method, scored: Scored, ready: Mask, options: Options
) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = []
    if scored.failures is None:
        return entries
    for model in table.model.unique(maintain_order=True):
        unread = scored.failures[(table.model == model).to_numpy() & ready]
        counts = {"unread": int(unread.sum()), "questions": int((unread > 0).sum())}
        entries.append({"model": model, "method": method.name, **counts, "imputed": options.impute})
    return entries


def needs_of(method: Method, options: Options) -> tuple[str, ...]:
    """Return the needs under these options, the answer that the score is paired with included."""
    extra: tuple[str, ...] = ()
    if method.question_level:
        extra = ("greedy",) if options.about == "greedy" else ("clusters",)
    if method.name == "ensemble" and options.ensemble is not None:
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
