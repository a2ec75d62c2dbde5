"""The opened input of a comparison: what is compared with what, and where its questions are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import polars as pl
from msgspec import Struct, structs

from calibrant.comparison.compare import Pool, TableReader
from calibrant.comparison.pipeline import BlockReader, ComparisonOptions, Each
from calibrant.comparison.questions import QuestionBlock, align_models
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Call, Hint
from calibrant.core.names import ranking_methods
from calibrant.data import Scores, load_scores, source_name
from calibrant.data.sources.coverage import table_coverage
from calibrant.data.sources.draws import meaning_scores
from calibrant.data.sources.engines import engine_named
from calibrant.data.sources.input import Input
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.tables import collect, column_names, scan_table
from calibrant.findings.verification import VerificationBlock, verification_block

_CANDIDATE_COLUMNS = ("question_id", "judge", "author", "confidence")


def _scores(
    source: Input, request: ReadingOptions, by: Sequence[str]
) -> tuple[Any, ReadingOptions, dict[str, object]]:
    """Return the table that is compared, how it is read, and the rules that the document states.

    A whole record keeps its refusals. Draws become the scores of Sem1 and Sem2, whose columns have
    the names of the schema.
    """
    sample = source.holds_only_draws(request)
    record = source.whole_record or sample
    on_invalid = request.on_invalid or ("drop" if record else "missing")
    request = structs.replace(request, on_invalid=on_invalid, graded=record or request.graded)
    confidence = {**request.rules, "whole_record": True} if record else request.rules
    if not sample:
        return *source.compared(request), confidence
    draws = source.draws(request)
    table = None if draws is None else meaning_scores(draws, keep=by)
    return table, request.by_schema(), confidence


def _candidates(source: Any) -> pl.DataFrame:
    lazy = scan_table(source)
    present = column_names(lazy, source)
    missing = [name for name in _CANDIDATE_COLUMNS if name not in present]
    if missing:
        raise InputError(
            f"a candidates table needs the columns {', '.join(_CANDIDATE_COLUMNS)}; missing: "
            f"{', '.join(missing)}"
        )
    # Judges x authors x questions rows: texts are kept once each, as categories.
    texts = [name for name in ("question_id", "judge", "author", "answer") if name in present]
    names = pl.col(texts).cast(pl.String).cast(pl.Categorical)
    table = collect(lazy.with_columns(names, pl.col("confidence").cast(pl.Float64)), source)
    for name in ("question_id", "judge", "author"):
        if table[name].null_count():
            rule = f"a row of the candidates names no {name}"
            row = int(table[name].is_null().arg_true()[0]) + 1
            raise InputError(rule, row=row, hint="fill it in, or leave the row out")
    valid = table["confidence"].is_between(0, 1).fill_null(True)
    if not valid.all():
        row = int((~valid).arg_true()[0])
        reason = f"a candidate's confidence must lie in [0, 1], got {table['confidence'][row]}"
        raise InputError(reason, row=row + 1)
    _same_answers(table)
    return table


def _same_answers(table: pl.DataFrame) -> None:
    """Refuse a question where judges were shown different answers under one author's name."""
    if "answer" not in table.columns:
        return
    code = pl.col("answer").to_physical()
    # Methods have pools of their own, and may be about other answers.
    keys = ["question_id", "author", *(["method"] if "method" in table.columns else [])]
    answers = table.lazy().group_by(keys).agg(least=code.min(), most=code.max())
    odd = answers.filter(pl.col("least") != pl.col("most")).collect(engine="streaming")
    if odd.height:
        first = odd.sort(pl.col("question_id", "author").cast(pl.String)).row(0, named=True)
        raise InputError(
            f"question {first['question_id']!r} has different answers by {first['author']!r}: "
            "all judges must score the same answers",
            hint="score the candidates again, or leave such questions out",
        )


if TYPE_CHECKING:
    from calibrant.data.sources.drawn_labels import Grades
    from calibrant.metrics.stats.dependence import Dependence

NOT_A_PROBABILITY = "the score is no probability, and calibration is what is compared"
_RECALIBRATE = Hint(
    "recalibrate it: `{call}` audits it as a probability",
    call=Call("audit", "INPUT", recalibrate="platt"),
)


class ComparisonKey(Struct, frozen=True):
    """One comparison: a method, a group of its questions or all of them, and its models."""

    method: str
    group: tuple[str, str] | None
    models: tuple[str, ...] = ()

    @property
    def keys(self) -> dict[str, str | dict[str, str] | None]:
        """How the document names it."""
        return {"method": self.method, "group": dict([self.group]) if self.group else None}

    @property
    def place(self) -> str:
        """How messages name it."""
        return " / ".join([self.method, *(() if self.group is None else self.group[1:])])


class ComparisonRequest(Struct, frozen=True):
    """What is asked for: models, groups, how the table is read, and how it is compared.

    `settings` makes the settings of the document from the rules that the input goes by.
    """

    models: Sequence[str] | None
    by: tuple[str, ...]
    asked: ReadingOptions
    options: ComparisonOptions
    settings: Callable[[Mapping[str, object]], dict[str, object]]
    engine: str | None
    seed: int


def _graded_by_others(key: ComparisonKey, first: str, second: str) -> None:
    """Outcomes came with the data."""


class CompareSource(Struct):
    """What a comparison works on, in memory or in parts.

    `grading` says how far the grades leave a pair open, where the program made them itself;
    `searches` what was searched for questions on which models differ together.
    `verification` gives the block of one model of one comparison.
    """

    head: dict[str, Any]
    reading: dict[str, object]
    comparisons: Comparisons[Any, Any]
    read: BlockReader
    parts: int
    each: Each
    verification: Callable[[ComparisonKey, str], VerificationBlock]
    data: dict[str, Any]
    dropped: Mapping[str, int]
    emptied: Sequence[str]
    pools: dict[int, Pool] = {}
    grading: Callable[[ComparisonKey, str, str], dict[str, object] | None] = _graded_by_others
    searches: Sequence[tuple[ComparisonKey, Dependence]] = ()


def _one_sided(outcomes: Mapping[str, tuple[int, float]]) -> dict[str, str]:
    """Take out models that are never right or never wrong, where two others are left.

    Their accuracy cannot be matched to that of another; one such model must not keep all the
    others from being compared.

    Parameters
    ----------
    outcomes
        Answers and accuracy by model.

    Returns
    -------
    dict
        Why each of these models is taken out.
    """
    reasons = {
        name: f"it is {'always' if right else 'never'} right ({n:,} answers): models are "
        "compared at a common accuracy, which needs right and wrong answers of each"
        for name, (n, right) in outcomes.items()
        if right in (0.0, 1.0)
    }
    return reasons if len(outcomes) - len(reasons) >= 2 else {}


def table_source(opened: Input, candidates: Any, wanted: ComparisonRequest) -> CompareSource:
    """Return what was opened as comparisons in memory.

    Parameters
    ----------
    opened
        Tables, a study or logs.
    candidates
        As for `compare`.
    wanted
        What is asked for.
    """
    by, seed = wanted.by, wanted.seed
    table, reading, confidence = _scores(opened, wanted.asked, by)
    pool = opened.candidates() if candidates is None else candidates
    with error_source(source_name(pool)):
        pool = None if pool is None else _candidates(pool)
    head = opened.head("compare", seed=seed, settings=wanted.settings(confidence))
    with error_source(head["source"]):
        how: dict[str, Any] = {"features": by, "by": by, "non_probability": ranking_methods()}
        # Rows of any column may hang together.
        scores = load_scores(table, **structs.asdict(reading), **how, others=True)
        scores = replace(scores, drawn_from=opened.pool_rows)
    choice = scores.only(model=wanted.models)
    sorted_out = comparisons(_split(scores, by), wanted.models, _outcomes, align_models)
    searches = _clustered(scores, sorted_out, by)
    wholes = sorted_out.wholes
    streams = [partial(named_stream, seed, "compare", *key.keys.values()) for key in wholes]
    read = TableReader(list(wholes.values()), streams)
    source = CompareSource(
        head,
        {"way": "in memory", **scores.reading.to_dict()},
        sorted_out,
        read,
        1,
        engine_named(wanted.engine).map,
        partial(_verification, wholes, seed),
        table_coverage(choice, weighs_rows=False),
        opened.with_unreadable(scores).dropped,
        choice.emptied,
        searches=searches,
    )
    grades = opened.grades()
    if grades is not None:
        source.grading = partial(_pair_grading, grades, sorted_out.parts, seed)
    else:
        # For as long as models are compared, their rows are held for their grades alone.
        sorted_out.parts.clear()
    if pool is not None:
        by_method = "method" in pool.columns
        for number, key in enumerate(wholes):
            # A score of one method says nothing about another.
            rows = pool.filter(pl.col("method") == key.method) if by_method else pool
            if rows.height or not by_method:
                source.pools[number] = read.pool(number, rows, wanted.options["resamples"])
    return source


def _clustered(
    scores: Scores, sorted_out: Comparisons[pl.DataFrame, QuestionBlock], by: Sequence[str]
) -> list[tuple[ComparisonKey, Dependence]]:
    """Put questions on which models differ together into clusters, in place; say what was found."""
    # Loaded here: small tables are not searched.
    from calibrant.comparison.questions import question_clusters

    searches: list[tuple[ComparisonKey, Dependence]] = []
    clusters: dict[str, dict[str, int]] = {}
    for key, whole in sorted_out.wholes.items():
        rows = sorted_out.parts[key], whole.questions, whole.confidence, whole.correct
        alone = key.group is None and whole.cluster is None
        result = question_clusters(scores, *rows, skip=by) if alone else None
        codes = None if result is None else result.enough
        if codes is not None:
            pairs = zip(whole.questions.tolist(), codes.tolist(), strict=True)
            clusters[key.method] = dict(pairs)
        searches += [] if result is None else [(key, result)]
        if key.method in clusters:
            # A group of questions has the clusters of all.
            of_all = clusters[key.method]
            names = [of_all[name] for name in whole.questions.tolist()]
            cluster = np.unique(names, return_inverse=True)[1]
            sorted_out.wholes[key] = structs.replace(whole, cluster=cluster)
    return searches


Part = TypeVar("Part")
Whole = TypeVar("Whole", QuestionBlock, ComparisonKey)


class Comparisons(Struct, Generic[Part, Whole]):
    """Comparisons by their rows and questions, those that are refused, and models taken out.

    `refused` names comparisons that cannot be made, each with its error, `taken_out` models that
    are never right or never wrong, each with the reason.
    """

    parts: dict[ComparisonKey, Part] = {}
    wholes: dict[ComparisonKey, Whole] = {}
    refused: list[tuple[ComparisonKey, InputError]] = []
    taken_out: list[tuple[ComparisonKey, str, str]] = []


def comparisons(
    parts: Iterable[tuple[ComparisonKey, Part]],
    models: Sequence[str] | None,
    outcomes: Callable[[Part], Mapping[str, tuple[int, float]]],
    aligned: Callable[[Part, Sequence[str] | None], Whole],
) -> Comparisons[Part, Whole]:
    """Sort out which parts can be compared.

    `outcomes` gives the answers of each model of a part and the share of right ones, `aligned` its
    models side by side.
    """
    ranking = ranking_methods()
    sorted_out: Comparisons[Part, Whole] = Comparisons()
    for key, part in parts:
        if key.method in ranking:
            sorted_out.refused.append((key, InputError(NOT_A_PROBABILITY, hint=_RECALIBRATE)))
            continue
        target = models
        if models is None:
            by_model = outcomes(part)
            reasons = _one_sided(by_model)
            sorted_out.taken_out += [(key, name, reason) for name, reason in reasons.items()]
            target = [name for name in by_model if name not in reasons]
        try:
            whole = aligned(part, target)
        except InputError as error:
            sorted_out.refused.append((key, error))
            continue
        key = structs.replace(key, models=tuple(whole.models))
        sorted_out.parts[key], sorted_out.wholes[key] = part, whole
    return sorted_out


def _outcomes(frame: pl.DataFrame) -> dict[str, tuple[int, float]]:
    states = pl.col("confidence").cast(pl.Float64).is_not_nan().any()
    models = frame.group_by("model", maintain_order=True)
    ends = models.agg(pl.len(), pl.col("correct").mean(), states)
    # A model that never states a confidence has nothing to compare.
    return {str(name): (n, right) for name, n, right, statement in ends.iter_rows() if statement}


def _split(scores: Scores, by: Sequence[str]) -> Iterator[tuple[ComparisonKey, pl.DataFrame]]:
    """Yield a part per method, then per method and group; a grade without a confidence counts."""

    def split(frame: pl.DataFrame, column: str) -> Iterable[tuple[str, pl.DataFrame]]:
        names = frame.partition_by(column, as_dict=True, maintain_order=True)
        return ((str(name), part) for (name,), part in names.items())

    for method, frame in split(scores.graded, "method"):
        yield ComparisonKey(method, None), frame
        for column in by:
            for value, part in split(frame, column):
                yield ComparisonKey(method, (column, value)), part


def _pair_grading(
    grades: Grades,
    frames: Mapping[ComparisonKey, pl.DataFrame],
    seed: int,
    key: ComparisonKey,
    first: str,
    second: str,
) -> dict[str, object] | None:
    """Return how far grading error leaves two models open on the questions that both have."""
    # Loaded here: most outcomes come with the data.
    from calibrant.metrics.stats.graded_summary import difference_summary

    frame = frames[key]
    a, b = (frame.filter(pl.col("model") == name).sort("question_id") for name in (first, second))
    a, b = a.join(b, on="question_id", how="semi"), b.join(a, on="question_id", how="semi")
    checked = grades.of(a), grades.of(b)
    if checked[0] is None or checked[1] is None or a.height != b.height or not a.height:
        return None
    rng = named_stream(seed, "grading", *map(str, key.keys.values()), first, second)
    return difference_summary(checked[0], checked[1], rng)


def _verification(
    wholes: Mapping[ComparisonKey, QuestionBlock], seed: int, key: ComparisonKey, model: str
) -> VerificationBlock:
    whole = wholes[key]
    confidence, correct = (
        part[whole.models.index(model)] for part in (whole.confidence, whole.correct)
    )
    has = ~np.isnan(confidence + correct)
    stream = named_stream(seed, "compare", *key.keys.values(), "verification", model)
    return verification_block(confidence[has], correct[has], rng=stream)
