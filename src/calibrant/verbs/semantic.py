"""The Sem-ECE part of an audit: from draws with a meaning and a grade."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Array, Floats, named_stream
from calibrant.core.errors import require_known
from calibrant.data.sources.draws import class_numbers
from calibrant.data.sources.engines import engine_named
from calibrant.data.sources.options import AuditOptions
from calibrant.findings.sem_ece import sem_ece_block
from calibrant.metrics import semantic
from calibrant.metrics.binned import reliability_bins
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.stats.splits import exact_cost

_ANSWERS_SHOWN = 5
# Multiplications up to which the law of all splits is worked out: a few seconds.
_AFFORDABLE = 5e9
_SPLITS = 200
# Columns of a second judge, by which the first one's errors are measured.
SECOND_CLASS, SECOND_GRADE = "second_class_id", "second_correct"


def semantic_blocks(
    draws: pl.DataFrame, options: AuditOptions, texts: pl.DataFrame | None = None
) -> list[dict[str, object]]:
    """Return a Sem-ECE block per model and group; an engine may share them out."""
    one = partial(_semantic_block, options=options)
    parts = list(_parts(draws, options.by))
    mapper = map if options.engine is None else engine_named(options.engine).map
    blocks = list(mapper(one, parts))
    if texts is not None:
        hardest = [row for block in blocks for row in block["hardest"]]
        ids = [str(row["question_id"]) for row in hardest]
        by_id = dict(texts.filter(pl.col("question_id").is_in(ids)).iter_rows())
        for row in hardest:
            row["text"] = by_id.get(str(row["question_id"]))
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


def _semantic_block(
    group_and_rows: tuple[dict[str, str] | None, pl.DataFrame], *, options: AuditOptions
) -> dict[str, Any]:
    group, rows = group_and_rows
    model = rows["model"][0]
    names = ("sem_ece", model) if group is None else ("sem_ece", model, *group.items())
    draws = _Draws(rows, options, named_stream(options.seed, *names))
    how = {"unlimited_draws": options.unlimited_draws, "label": options.label, **draws.how}
    block = sem_ece_block(*draws.columns, splits=_splits(*draws.columns), **how)
    _show_answers(block["hardest"], rows)
    more = {
        "ver": draws.stated(),
        "judging": draws.judging(block),
        "clustering_shift": draws.strict_shift(),
        "right_joined_shift": draws.joined_shift(),
    }
    return {"model": model, "group": group, **block, **more}


def _grades(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy()


def _splits(*columns: Array) -> Any:
    """All splits where their law can be worked out, so that no number depends on a seed."""
    pool = semantic.pool_draws(*columns)
    half = np.maximum(pool.size // 2, 1)
    return "exact" if exact_cost(pool.counts, half) <= _AFFORDABLE else _SPLITS


@dataclass
class _Draws:
    """Draws with a meaning and a grade, and how their numbers are made."""

    rows: pl.DataFrame
    options: AuditOptions
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.ids = self.rows["question_id"].to_numpy()
        self.meanings = (class_numbers(self.rows["class_id"]), _grades(self.rows["correct"]))
        self.columns = (self.ids, *self.meanings)
        options = self.options
        self.how: Any = {"bins": options.meaning_bins, "level": options.level, "rng": self.rng}
        self.how["resamples"] = options.resamples

    def stated(self) -> dict[str, object] | None:
        """Return Ver-ECE of confidences that the same draws state, with and without imputation."""
        rows = self.rows
        if "stated_confidence" not in rows.columns or rows["stated_confidence"].is_null().all():
            return None
        rows = rows.filter(pl.col("correct").is_not_null())
        ids, confidence = (rows[name].to_numpy() for name in ("question_id", "stated_confidence"))
        columns = (ids, confidence, _grades(rows["correct"]))
        left_out = semantic.ver_ece(*columns, impute=None, **self.how)
        imputed = semantic.ver_ece(*columns, impute=1.0, **self.how)
        return {
            "ece": left_out.ece,
            "ece_imputed": imputed.ece,
            "imputed": 1.0,
            "parse_failures": left_out.parse_failures,
            "questions_without": left_out.questions_without,
        }

    def judging(self, block: Mapping[str, Any]) -> dict[str, object] | None:
        """Return intervals that also cover errors of classes and grades by a second judge."""
        if not {SECOND_CLASS, SECOND_GRADE} <= set(self.rows.columns):
            return None
        second = (class_numbers(self.rows[SECOND_CLASS]), _grades(self.rows[SECOND_GRADE]))
        errors = semantic.judge_errors(self.ids, self.meanings, second)
        pool, how = semantic.pool_draws(*self.columns), {"bins": self.how["bins"], "rng": self.rng}
        verdicts = semantic.judged_intervals(pool, block["sem1"], block["sem2"], errors, **how)
        return {
            "sem1": verdicts.sem1,
            "sem2": verdicts.sem2,
            "shift": {"sem1": verdicts.shift1, "sem2": verdicts.shift2},
            "errors": {name: getattr(errors, name) for name in ("apart", "together", "grade")},
            "questions": errors.questions,
        }

    def strict_shift(self) -> dict[str, object] | None:
        """Return how far both errors move if only answers of the same letters are one meaning.

        That is the strictest way to put answers together: what clustering can matter at most on
        this side. None where the draws have no answers, or no class holds two wordings.
        """
        if "answer" not in self.rows.columns:
            return None
        wording = self.rows["answer"].cast(pl.String).str.strip_chars().str.to_lowercase()
        classes = self.rows["class_id"].cast(pl.String)
        return self._moved(pl.struct(classes, wording).rank("dense").cast(pl.Float64))

    def joined_shift(self) -> dict[str, object] | None:
        """Return how far both errors move if all answers graded right count as one meaning.

        A grader accepts 'Vivaldi' and 'Antonio Vivaldi' where the classes keep them apart. It is
        a bound and no better estimate: only right answers are put together, by their grade.
        """
        right = self.rows["correct"].cast(pl.Float64, strict=False) == 1
        classes = self.rows["class_id"].cast(pl.String).rank("dense").cast(pl.Float64)
        return self._moved(pl.when(right).then(0.0).otherwise(classes))

    def _moved(self, peer: pl.Expr) -> dict[str, object] | None:
        """Return both errors minus those with other classes; None where they are the same."""
        mask = pl.when(self.rows["class_id"].is_null()).then(None).otherwise(peer)
        classes = self.rows.select(mask.alias("other"))["other"].to_numpy()
        peers = (classes, self.meanings[1])
        shift = semantic.clustering_shift(
            self.ids, self.meanings, peers, splits=_SPLITS, **self.how
        )
        if shift.same_partition == 1:
            return None
        return {"sem1": shift.sem1, "sem2": shift.sem2, "same_partition": shift.same_partition}


def pooled_block(draws: pl.DataFrame, options: AuditOptions) -> dict[str, object] | None:
    """Return both calibration errors and their reliability over all models together.

    A question that several models answer counts once per model; intervals take its answers for
    one unit. None where there is one model.
    """
    models = draws["model"].n_unique()
    if models < 2:
        return None
    pairs = draws.select(pl.struct("question_id", "model").rank("dense")).to_series()
    rng = named_stream(options.seed, "sem_ece", "pooled")
    paired = _Draws(draws.with_columns(pairs.alias("question_id")), options, rng)
    pool = semantic.pool_draws(*paired.columns)
    splits = _splits(*paired.columns)
    scores = semantic.question_scores(pool, splits=splits, rng=rng, label=options.label)
    question = dict(zip(pairs.to_list(), draws["question_id"].to_list(), strict=True))
    units = np.array([question[pair] for pair in scores.ids.tolist()])
    stated_confidence = {"sem1": (scores.sem1, scores.label1), "sem2": (scores.sem2, scores.label2)}
    bins = options.meaning_bins
    how = {"names": ("ece",), "units": units, **paired.how}
    return {
        "models": models,
        "questions": int(scores.ids.size),
        "left_out": pool.left_out,
        "bins": bins,
        "reliability": {
            name: reliability_bins(*confidence, bins=bins).to_dict()
            for name, confidence in stated_confidence.items()
        },
        **{
            name: metric_estimates(*confidence, **how)["ece"]
            for name, confidence in stated_confidence.items()
        },
    }


def _show_answers(hardest: list[dict[str, Any]], draws: pl.DataFrame) -> None:
    """Put the most frequent answers beside each hard question, or the texts of their classes."""
    if "answer" not in draws.columns:
        if draws.schema["class_id"] != pl.String:
            return
        draws = draws.with_columns(answer=pl.col("class_id"))
    ids = [row["question_id"] for row in hardest]
    counts = (
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
        top = counts.filter(pl.col("question_id") == row["question_id"]).head(_ANSWERS_SHOWN)
        row["answers"] = top.select("answer", "draws", "correct").to_dicts()
