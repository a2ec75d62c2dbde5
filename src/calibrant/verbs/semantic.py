"""The Sem-ECE part of an audit: from draws with a meaning and a grade."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import require_known
from calibrant.core.rng import named_stream
from calibrant.inputs.audit_source import AuditOptions
from calibrant.inputs.draws import class_numbers
from calibrant.inputs.streams.engines import engine_named
from calibrant.metrics import semantic
from calibrant.metrics.binned import reliability_bins
from calibrant.metrics.estimates import metric_estimates
from calibrant.stats.splits import exact_cost

_ANSWERS_SHOWN = 5
# Multiplications up to which the law of all splits is worked out: a few seconds.
_AFFORDABLE = 5e9
_SPLITS = 200
# Columns of a second judge, by which the first one's errors are measured.
SECOND_CLASS, SECOND_GRADE = "second_class_id", "second_correct"


def _numbers(options: AuditOptions) -> dict[str, Any]:
    """Return how the numbers are made."""
    return {
        "bins": options.meaning_bins, "level": options.level, "resamples": options.resamples
    }  # fmt: skip


def semantic_blocks(
    draws: pl.DataFrame, options: AuditOptions, texts: pl.DataFrame | None = None
) -> list[dict[str, Any]]:
    """Return a Sem-ECE block per model and group; an engine may share them out."""
    one = partial(_semantic_block, options=options)
    parts = list(_parts(draws, options.by))
    mapper = map if options.engine is None else engine_named(options.engine).map
    blocks = list(mapper(one, parts))
    if texts is not None:
        _show_texts([row for block in blocks for row in block["hardest"]], texts)
    return blocks


def _parts(
    draws: pl.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, str] | None, pl.DataFrame]]:
    """Yield each model, then its groups."""
    require_known(by, draws.columns, "the draws have no column {} to make groups of")
    for part in draws.partition_by("model", maintain_order=True):
        yield None, part
        for name in by:
            for (value,), own in part.partition_by(name, as_dict=True, maintain_order=True).items():
                yield {name: str(value)}, own


def _show_texts(hardest: list[dict[str, Any]], texts: pl.DataFrame) -> None:
    ids = [str(row["question_id"]) for row in hardest]
    known = dict(texts.filter(pl.col("question_id").is_in(ids)).iter_rows())
    for row in hardest:
        row["text"] = known.get(str(row["question_id"]))


def _semantic_block(
    found: tuple[dict[str, str] | None, pl.DataFrame], *, options: AuditOptions
) -> dict[str, Any]:
    group, part = found
    model = part["model"][0]
    names = ("sem_ece", model) if group is None else ("sem_ece", model, *group.items())
    rng = named_stream(options.seed, *names)
    columns = (_ids(part), class_numbers(part["class_id"]), _grades(part["correct"]))
    block = semantic.sem_ece_block(
        *columns,
        splits=_splits(*columns),
        unlimited_draws=options.unlimited_draws,
        rng=rng,
        **_numbers(options),
    )
    _show_answers(block["hardest"], part)
    more = {
        "ver": _stated(part, options, rng),
        "judging": _judging(part, block, options, rng),
        "clustering_shift": _strict_shift(part, options, rng),
        "right_joined_shift": _joined_shift(part, options, rng),
    }
    return {"model": model, "group": group, **block, **more}


def _ids(part: pl.DataFrame) -> Array:
    return part["question_id"].to_numpy()


def _grades(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy()


def _splits(*columns: Array) -> Any:
    """All splits where their law can be worked out, so that no number depends on a seed."""
    pool = semantic.pool_draws(*columns)
    half = np.maximum(pool.size // 2, 1)
    return "exact" if exact_cost(pool.counts, half) <= _AFFORDABLE else _SPLITS


def _stated(
    part: pl.DataFrame, options: AuditOptions, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Return Ver-ECE of confidences that the same draws state, with and without imputation."""
    if "stated_confidence" not in part.columns or part["stated_confidence"].is_null().all():
        return None
    graded = part.filter(pl.col("correct").is_not_null())
    columns = (_ids(graded), graded["stated_confidence"].to_numpy(), _grades(graded["correct"]))
    found = {
        name: semantic.ver_ece(*columns, impute=impute, rng=rng, **_numbers(options))
        for name, impute in (("left_out", None), ("imputed", 1.0))
    }
    return {
        "ece": found["left_out"].ece,
        "ece_imputed": found["imputed"].ece,
        "imputed": 1.0,
        "parse_failures": found["left_out"].parse_failures,
        "questions_without": found["left_out"].questions_without,
    }


def _judging(
    part: pl.DataFrame, block: Mapping[str, Any], options: AuditOptions, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Return intervals that also cover errors of classes and grades, where a second judge is."""
    if SECOND_CLASS not in part.columns or SECOND_GRADE not in part.columns:
        return None
    first = (class_numbers(part["class_id"]), _grades(part["correct"]))
    second = (class_numbers(part[SECOND_CLASS]), _grades(part[SECOND_GRADE]))
    errors = semantic.judge_errors(_ids(part), first, second)
    pool = semantic.pool_draws(_ids(part), *first)
    judged = semantic.judged_intervals(
        pool, block["sem1"], block["sem2"], errors, bins=options.meaning_bins, rng=rng
    )
    return {
        "sem1": judged.sem1,
        "sem2": judged.sem2,
        "shift": {"sem1": judged.shift1, "sem2": judged.shift2},
        "errors": {name: getattr(errors, name) for name in ("apart", "together", "grade")},
        "questions": errors.questions,
    }


def _strict_shift(
    part: pl.DataFrame, options: AuditOptions, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Return how far both errors move if only answers of the same letters count as one meaning.

    That is the strictest way to put answers together: what clustering can matter at most on this
    side. None where the draws have no answers, or no class holds two wordings.
    """
    if "answer" not in part.columns:
        return None
    wording = part["answer"].cast(pl.String).str.strip_chars().str.to_lowercase()
    finer = pl.struct(part["class_id"].cast(pl.String), wording).rank("dense").cast(pl.Float64)
    return _moved(part, finer, options, rng)


def _joined_shift(
    part: pl.DataFrame, options: AuditOptions, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Return how far both errors move if all answers that are graded right count as one meaning.

    A grader accepts 'Vivaldi' and 'Antonio Vivaldi' where the classes keep them apart. It is a
    bound and no better estimate: only right answers are put together, by their grade.
    """
    right = part["correct"].cast(pl.Float64, strict=False) == 1
    own = part["class_id"].cast(pl.String).rank("dense").cast(pl.Float64)
    return _moved(part, pl.when(right).then(0.0).otherwise(own), options, rng)


def _moved(
    part: pl.DataFrame, other: pl.Expr | pl.Series, options: AuditOptions, rng: Any
) -> dict[str, Any] | None:
    """Return both errors minus those with other classes; None where the classes are the same."""
    kept = pl.when(part["class_id"].is_null()).then(None).otherwise(other)
    classes = part.select(kept.alias("other"))["other"].to_numpy()
    grades = _grades(part["correct"])
    found = semantic.clustering_shift(
        _ids(part),
        (class_numbers(part["class_id"]), grades),
        (classes, grades),
        splits=_SPLITS,
        rng=rng,
        **_numbers(options),
    )
    if found.same_partition == 1:
        return None
    return {"sem1": found.sem1, "sem2": found.sem2, "same_partition": found.same_partition}


def pooled_block(draws: pl.DataFrame, options: AuditOptions) -> dict[str, Any] | None:
    """Return both calibration errors and their reliability over all models together.

    A question that several models answer counts once per model; intervals take its answers for
    one unit. None where there is one model.
    """
    if draws["model"].n_unique() < 2:
        return None
    pairs = draws.select(pl.struct("question_id", "model").rank("dense")).to_series()
    columns = (pairs.to_numpy(), class_numbers(draws["class_id"]), _grades(draws["correct"]))
    pool = semantic.pool_draws(*columns)
    rng = named_stream(options.seed, "sem_ece", "pooled")
    scores = semantic.question_scores(pool, splits=_splits(*columns), rng=rng)
    question = dict(zip(pairs.to_list(), draws["question_id"].to_list(), strict=True))
    units = np.array([question[pair] for pair in scores.ids.tolist()])
    shared: dict[str, Any] = {"units": units, **_numbers(options)}
    found: dict[str, Any] = {
        "models": draws["model"].n_unique(),
        "questions": int(scores.ids.size),
        "left_out": pool.left_out,
        "bins": options.meaning_bins,
        "reliability": {},
    }
    for name, confidence, grade in (
        ("sem1", scores.sem1, scores.label1),
        ("sem2", scores.sem2, scores.label2),
    ):
        found[name] = metric_estimates(confidence, grade, names=("ece",), rng=rng, **shared)["ece"]
        bins = reliability_bins(confidence, grade, bins=options.meaning_bins)
        found["reliability"][name] = bins.to_dict()
    return found


def _show_answers(hardest: list[dict[str, Any]], draws: pl.DataFrame) -> None:
    """Put the most frequent answers beside each hard question, or the texts of their classes."""
    if "answer" not in draws.columns:
        if draws.schema["class_id"] != pl.String:
            return
        draws = draws.with_columns(answer=pl.col("class_id"))
    ids = [row["question_id"] for row in hardest]
    counted = (
        draws.filter(pl.col("question_id").is_in(ids) & pl.col("answer").is_not_null())
        .group_by("question_id", "class_id", maintain_order=True)
        .agg(
            pl.len().alias("draws"),
            pl.col("answer").mode().sort().first(),
            pl.col("correct").first(),
        )
        .sort("draws", descending=True, maintain_order=True)
    )
    for row in hardest:
        own = counted.filter(pl.col("question_id") == row["question_id"]).head(_ANSWERS_SHOWN)
        row["answers"] = own.select("answer", "draws", "correct").to_dicts()
