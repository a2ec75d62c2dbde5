"""What the labels of a table show already, and the order of its models."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import asdict

from calibrant.comparison.questions import align_models
from calibrant.core.arrays import as_generator, named_stream
from calibrant.core.errors import InputError, UndefinedMetricWarning, error_source
from calibrant.core.hints import Call, Hint
from calibrant.data import ScoreBlock, Scores, load_scores, source_name
from calibrant.data.formats import FEW_UNGRADED
from calibrant.data.sources.drawn_labels import block_of
from calibrant.data.sources.options import ReadingOptions
from calibrant.findings.claims.data import LEAST_ONE_SIDED, unranked_warning
from calibrant.findings.claims.labels import labelled_warning, no_error_warning
from calibrant.findings.claims.margins import ERROR_MARGIN
from calibrant.findings.claims.significance import adjust_p_values, block_tests
from calibrant.findings.documents.audits import Significance
from calibrant.findings.documents.entries import DataWarning
from calibrant.findings.verification import VerificationBlock, verification_block
from calibrant.labels import leaderboard, self_evaluation, temperature_error
from calibrant.labels.formulas import pipeline_lipschitz
from calibrant.labels.pool import OpenLabels
from calibrant.labels.published import PublishedScore, enough_bins
from calibrant.labels.ranking import subject_rankings
from calibrant.labels.theory import with_published_steepness
from calibrant.verbs.dependent_rows import DependentBlocks
from calibrant.verbs.opening.open_input import open_input

# Bins of the ECE that the verification block speaks of.
_BINS = 15


def _pool_and_labels(
    scores: Any, columns: dict[str, Any], keys: Sequence[str], whole_questions: bool
) -> tuple[Scores | None, Scores | None]:
    """Return the rows that are planned for, and those whose outcome is known; None without rows.

    They are the same table, unless people labelled a pool: then labels are drawn from all its
    rows, and known of some of them. Of `whole_questions` models can be compared.
    """
    if scores is None:
        return None, None
    source, options = open_input(scores), ReadingOptions(**columns)
    if isinstance(source, OpenLabels) and whole_questions:
        return _opened(source.given, options, keys), load_scores(source.compared(options)[0])
    if isinstance(source, OpenLabels):
        rows, how, features = source.audited(options, ())
        return _opened(source.given, options, keys), load_scores(
            rows, **asdict(how), features=features
        )
    table = _opened(*source.probabilities_table(options), keys)
    return table, table


def _opened(source: Any, request: ReadingOptions, keys: Sequence[str]) -> Scores:
    """Read a pool; a missing outcome column means that nothing is labelled yet."""
    return load_scores(source, labels="optional", by=keys, **asdict(request))


@dataclass(frozen=True)
class PlanTable:
    """What a plan knows of a table; without one nothing.

    Parameters
    ----------
    pool, labelled
        The rows that are planned for, and those whose outcome is known.
    graded
        The graded rows of each model, searched for such as hang together.
    measurements
        What is measured of each model. ``need`` is what the labels needed are proportional to:
        error rate times steepness.
    """

    pool: Scores | None
    labelled: Scores | None
    graded: DependentBlocks | None
    measurements: list[dict[str, Any]]

    @classmethod
    def of_scores(
        cls, scores: Any, columns: dict[str, Any], keys: Sequence[str], *,
        whole_questions: bool, seed: int, lipschitz_rule: str,
    ) -> PlanTable:  # fmt: skip
        """Open the table and measure its models."""
        pool, labelled = _pool_and_labels(
            scores, columns, keys=keys, whole_questions=whole_questions
        )
        if labelled is None:
            return cls(pool, None, None, [])
        graded = (block for block in labelled.blocks() if np.isfinite(block.correct).any())
        blocks = DependentBlocks.of_scores(
            labelled, [_graded(block, labelled.source) for block in graded]
        )
        measurements = [_measured(block, seed, lipschitz_rule) for block in blocks.blocks]
        # The same tests, with the same correction, as in an audit of the table.
        adjust_p_values(measurements)
        return cls(pool, labelled, blocks, measurements)

    @property
    def worst(self) -> VerificationBlock | None:
        """What labels show of the model that needs the most of them."""
        worst = max(self.measurements, key=lambda block: block["need"], default=None)
        return None if worst is None else worst["verification"]

    @property
    def noise(self) -> float | None:
        """What is left of the outcomes where the confidence is known: the mean square."""
        blocks = [] if self.graded is None else self.graded.blocks
        squares = [(block.confidence - block.correct) ** 2 for block in blocks]
        return float(np.mean(np.concatenate(squares))) if squares else None

    @property
    def dropped(self) -> dict[str, int]:
        """Rows left out by rule, those without an outcome in a graded table among them."""
        frame = None if self.labelled is None else self.labelled.frame
        graded = 0 if frame is None else int(frame["correct"].is_finite().sum())
        missing = 0 if frame is None else frame.height - graded
        dropped = {} if self.pool is None else dict(self.pool.dropped)
        return dropped | ({"correct_missing": missing} if graded and missing else {})

    def rates(self, published: Sequence[PublishedScore]) -> tuple[float | None, float | None]:
        """Return the error rate and the steepness that are taken where nobody gives them."""
        if self.worst is not None:
            rate, steep = self.worst.error_rate, self.worst.lipschitz.value
            # No error among few answers does not mean that there is none.
            return rate.value or rate.high, steep if np.isfinite(steep) else None
        if self.pool is not None:
            # Without outcomes the model's own word is the only guess at its error rate.
            return 1.0 - float(np.mean(self.pool.frame["confidence"].to_numpy())), None
        right = [score.accuracy for score in published]
        return (1.0 - sum(right) / len(right) if right else None), None

    def warnings(self, error_rate: float) -> Iterator[DataWarning]:
        """Yield that no row is left to label, and that no answer shows the error rate."""
        if self.pool is not None and self.labelled is not None:
            rows = self.pool.frame.height
            if self.labelled.frame["correct"].is_not_null().sum() == rows:
                yield labelled_warning(rows)
        rates = [block["verification"].error_rate for block in self.measurements]
        if error_rate in [rate.high for rate in rates] and not any(rate.value for rate in rates):
            yield no_error_warning(error_rate)

    def notes(self) -> list[str]:
        """Return what labels count as whose rows are right and wrong together."""
        worth = {(block["n"], int(block["verification"].labels)) for block in self.measurements}
        return [
            f"{rows:,} labels count as {labels:,}: rows of one unit are right and wrong together."
            for rows, labels in sorted(worth)[:1]
            if labels < rows
        ]


def _measured(block: ScoreBlock, seed: int, lipschitz_rule: str) -> dict[str, Any]:
    verification = verification_block(
        block.confidence, block.correct, weights=block.weights, units=block.units, rng=seed
    )
    if lipschitz_rule == "paper":
        rows = (block.confidence, block.correct)
        verification = with_published_steepness(verification, *rows)
    steep = verification.lipschitz.value
    return {
        **block.keys,
        "n": len(block.confidence),
        "probability": True,
        "verification": verification,
        "need": verification.error_rate.value * (steep if np.isfinite(steep) else 1.0),
        "significance": _tests(block, seed),
    }


def meaning_pairs(
    data: Any,
    drawn: dict[str, str | None],
    refused: dict[str, Any],
    columns: dict[str, Any],
    *,
    precision: float | None,
    power: float,
    seed: int,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what draws say of the goal, and the questions that tell two models apart."""
    if data is None:
        first = next(name for name, value in drawn.items() if value is not None)
        raise InputError(Hint("{" + first + "} is about draws in a table, and none is given"))
    names = {name: columns.get(name) for name in ("question", "model", "correct")}
    for name, value in {**refused, **columns}.items():
        if value and name not in names:
            rule = "{" + name + "} is about scores, and {samples} plans from draws"
            raise InputError(Hint(rule), hint=Hint("leave out {" + name + "}"))
    # Loaded here: most plans read no answers.
    from calibrant.answers.graded_samples import grade_samples
    from calibrant.answers.samples import SampleColumns, read_samples
    from calibrant.labels.claim_plan import meaning_plan

    with error_source(source_name(data) if isinstance(data, str | Path) else None):
        draws = grade_samples(
            read_samples(data, SampleColumns(**drawn, **names)), seed=seed
        ).with_classes
        pairs = meaning_plan(draws, power=power, difference=precision)
    grades = draws["correct"].drop_nulls().cast(pl.Float64)
    right = float(grades.sum()) / max(grades.len(), 1)
    return {"error_rate": 1.0 - right, "labels": draws["question_id"].n_unique()}, pairs


MEASURED = "measured"


def measured_pipeline(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the steepness of every stage as its log shows it, and what they allow the whole.

    ``bound`` is the steepness that stages so steep may add up to; ``whole`` is that of the last
    stage, whose outcome is the pipeline's.
    """
    if len(measured) < 2:
        rule = f"a pipeline has two stages or more; the table has {len(measured)} model"
        raise InputError(rule, hint="give one model per stage, in their order")
    for block in measured:
        if not np.isfinite(block["verification"]["lipschitz"].value):
            raise InputError(
                f"the steepness of the stage {block['model']!r} cannot be measured: too few of its "
                "confidences lie beside each other",
                hint=Hint("give it with {stages}, or more rows"),
            )
    steep = [block["verification"]["lipschitz"] for block in measured]
    stages = tuple(max(stage.value, 0.0) for stage in steep)
    return {
        "stages": stages,
        "names": [block["model"] for block in measured],
        "steepness": steep,
        "bound": pipeline_lipschitz(stages),
        "whole": steep[-1],
    }


def table_theory(rows: PlanTable, labels: int | None, seed: int) -> dict[str, Any]:
    """Return what the paper asks of a table: the rate of a temperature, and Figure 1.

    ``temperature``: how precisely the labels at hand show the error if only a temperature is off,
    per model. ``self_evaluation``: does confidence tell how wrong it is? Where three bins are
    filled.
    """
    theory: dict[str, Any] = {}
    if rows.pool is not None and labels is not None:
        theory["temperature"] = [
            {**block.keys, **temperature_error(block.confidence, labels=labels)}
            for block in rows.pool.blocks()
            if (np.abs(block.confidence - 0.5) > 1e-9).any()
        ]
    graded = [] if rows.labelled is None else rows.labelled.blocks()
    theory["self_evaluation"] = [
        {**block.keys, **self_evaluation(block.confidence, block.correct, bins=_BINS, rng=seed)}
        for block in graded
        if np.isfinite(block.correct).all() and enough_bins(block.confidence, _BINS)
    ]
    return {name: entries for name, entries in theory.items() if entries}


def _graded(block: ScoreBlock, source: str) -> ScoreBlock:
    """Return the rows that have an outcome; a few without one are left out, as an audit does."""
    graded = np.isfinite(block.correct)
    missing = int((~graded).sum())
    if missing > FEW_UNGRADED * graded.size:
        raise InputError(
            f"{missing:,} of {block.correct.size:,} rows have no outcome, and nobody knows how "
            "the others were chosen",
            source=source,
            hint=Hint(
                "label it with {0}, or plan from the confidences with {1}",
                Call("label serve", "TABLE"),
                Call("plan", "TABLE", claim="ece<0.05"),
            ),
        )
    if not missing:
        return block
    names = ("confidence", "correct", "weights", "units", "cluster")
    rows: dict[str, Any] = {name: getattr(block, name) for name in names}
    rows = {name: column if column is None else column[graded] for name, column in rows.items()}
    return replace(block, **rows, frame=block.frame.filter(graded))


def _tests(block: ScoreBlock, seed: int) -> Significance:
    rng = as_generator(seed)
    rows = block_of(block, probability=True, bins=_BINS, level=0.95, resamples=20, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return block_tests(rows, rows.estimates(("auroc", "confidence_gap")), ERROR_MARGIN)


def rankings(
    table: Scores | None, metric: str | None, keys: Sequence[str], seed: int, warnings: list[Any]
) -> dict[str, Any]:
    """Return the leaderboard and that of every subject; models without a rank are warned of."""
    parts: dict[str, Any] = {"leaderboard": None, "subjects": None}
    if table is None or metric is None:
        return parts
    ranking, never_right = rankable(table)
    warnings[:0] = never_right
    parts["leaderboard"] = ranked_models(ranking, metric, seed)
    if keys:
        parts["subjects"] = subject_rankings(ranking.frame, keys[0], seed=seed)
    return parts


def rankable(table: Scores) -> tuple[Scores, list[DataWarning]]:
    """Return the graded rows of models that are not never right, and what is said of the others.

    Their answers are empty, or were never graded as right: nothing that a ranking measures.
    They stay where fewer than two other models are left.
    """
    table = table.each(
        lambda rows: rows.filter(pl.col("correct").is_finite()) if len(rows) else rows
    )
    counts = table.graded.group_by("model", maintain_order=True).agg(
        pl.col("correct").count().alias("n"), pl.col("correct").max().alias("best")
    )
    never = counts.filter((pl.col("best") == 0) & (pl.col("n") >= LEAST_ONE_SIDED))
    if counts.height - never.height < 2:
        return table, []
    remaining = [name for name in counts["model"] if name not in set(never["model"])]
    notes = [unranked_warning(str(name), n) for name, n in never.select("model", "n").iter_rows()]
    return table.only(model=remaining), notes


def ranked_models(table: Scores, metric: str, seed: int) -> dict[str, Any]:
    """Return the leaderboard of a table with one method; accuracy needs no confidence."""
    frame = table.frame
    if metric == "accuracy":
        # It is about outcomes alone: a row without a confidence counts, and none is looked at.
        frame = table.graded.with_columns(confidence=pl.lit(0.0))
    methods = frame["method"].unique().to_list()
    if len(methods) > 1:
        rule = f"a leaderboard compares one method, got {', '.join(map(str, sorted(methods)))}"
        raise InputError(rule, hint=Hint("choose one with {confidence}"))
    whole = align_models(frame)
    columns = zip(whole.confidence, whole.correct, strict=True)
    rows = dict(zip(whole.models, columns, strict=True))
    # The resamples of a comparison of the same table.
    stream = partial(named_stream, seed, "compare", methods[0], None)
    return leaderboard(
        rows, metric=metric, resamples=1000, seed=seed, cluster=whole.cluster, stream=stream
    )
