"""`groups`: for whom is the confidence wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.naming import naming
from calibrant.core.rng import named_stream
from calibrant.core.verb import ADVANCED, Option, verb
from calibrant.epistemic.audit import GroupOptions, groups_entry
from calibrant.inputs.provenance import document_head
from calibrant.inputs.settings import table_settings
from calibrant.records import Block, Scores, Study, load_scores
from calibrant.report.result import Result
from calibrant.verbs._options import (
    ConfidenceColumn,
    CorrectColumn,
    CostMap,
    EmbedColumn,
    EmbedDimensions,
    Features,
    Level,
    MethodColumn,
    MinLeaf,
    ModelColumn,
    OnInvalid,
    QuestionColumn,
    Recalibration,
    Residuals,
    ScoresData,
    Seed,
)

__all__ = ["embedded", "groups", "refuse_outcome", "scores_source", "without_missing"]

_NAMES = ("grouping_loss", "calibration_loss", "epistemic_loss", "brier", "rest", "groups")


@verb(example="calibrant groups scores.csv --features domain,length --html groups.html")
def groups(
    data: ScoresData,
    *,
    features: Features,
    embed: EmbedColumn = None,
    embed_dimensions: EmbedDimensions = 8,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    models: Annotated[
        Sequence[str] | None,
        Option(
            "Look at these models only.",
            metavar="A,B,..",
            kind="names",
            formerly=("only_models",),
        ),
    ] = None,
    on_invalid: OnInvalid = "error",
    recalibration: Recalibration = "platt",
    residuals: Residuals = "tree",
    tree_splits: Annotated[
        str,
        Option(
            "How the tree looks for splits.",
            metavar="auto|histogram|exact",
            group=ADVANCED,
            choices=("auto", "histogram", "exact"),
            formerly=("splits",),
        ),
    ] = "auto",
    random_splits: Annotated[
        int,
        Option(
            "Random splits that are averaged.",
            metavar="N",
            group=ADVANCED,
            min=1,
            max=1_000,
            formerly=("repeats",),
        ),
    ] = 5,
    min_samples_leaf: MinLeaf = 15,
    max_groups: Annotated[
        int, Option("Leaves of the tree of groups.", metavar="N", min=2, max=1_000)
    ] = 12,
    max_conditions: Annotated[
        int, Option("Conditions of a rule, at most.", metavar="N", min=1, max=100)
    ] = 3,
    min_group: Annotated[
        int, Option("Rows that a group must have.", metavar="N", min=1, max=10**9)
    ] = 50,
    alpha: Annotated[
        float, Option("Level of the flags.", metavar="SHARE", above=0, below=1)
    ] = 0.05,
    control: Annotated[
        str,
        Option(
            "Control for the number of groups.",
            metavar="holm|bh",
            group=ADVANCED,
            choices=("holm", "bh"),
        ),
    ] = "holm",
    costs: CostMap = None,
    threshold: Annotated[
        float | None,
        Option(
            "Where the confidence decides; default: the optimum.",
            metavar="SHARE",
            above=0,
            below=1,
        ),
    ] = None,
    level: Level = 0.95,
    seed: Seed = 0,
) -> Result:
    """Find groups where a confidence is off, and measure its grouping loss.

    Parameters
    ----------
    data
        Path, study folder or dataframe with scores.
    features
        Columns that may describe a group.
    embed
        Column of texts whose embedding, reduced to `embed_dimensions` principal components,
        joins the features; needs the extra `local`.
    confidence, correct, model, method, question
        Column names, as for `audit`.
    models
        Keep these models only.
    on_invalid
        ``"error"``, or ``"drop"`` to leave out rows that break a rule or lack a feature.
    seed
        Seed of the splits.
    recalibration, residuals, tree_splits, random_splits, min_samples_leaf
        See `calibrant.epistemic.GroupingLoss`.
    max_groups, max_conditions, min_group, alpha, control
        See `calibrant.epistemic.ConfidenceGroups`.
    costs, threshold
        See `calibrant.epistemic.DecisionRisk`.
    level
        Coverage of the intervals.

    Returns
    -------
    Result
        A document ``calibrant.groups/1``: one entry per model and method in ``results``; with a
        single entry its numbers stand at the top as well.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> topic = rng.choice(["law", "maths"], size=3000)
    >>> right = rng.random(3000) < np.where(topic == "law", 0.5, 0.9)
    >>> table = {"confidence": np.full(3000, 0.7), "correct": right.astype(int), "topic": topic}
    >>> groups(table, features=["topic"])["groups"][0]["flagged"]
    True
    """
    chosen = GroupOptions(
        recalibration=recalibration,
        residuals=residuals,
        splits=tree_splits,
        repeats=random_splits,
        min_samples_leaf=min_samples_leaf,
        max_groups=max_groups,
        max_conditions=max_conditions,
        min_group=min_group,
        alpha=alpha,
        control=control,
        costs=costs,
        threshold=threshold,
        level=level,
        seed=seed,
    )
    if not features and embed is None:
        raise InputError(
            "at least one feature is needed", hint=Hint("name columns with {features}")
        )
    refuse_outcome(features, correct)
    kept = [name for name in (*features, embed) if name is not None]
    columns: dict[str, Any] = {"confidence": confidence, "correct": correct, "model": model}
    columns |= {"method": method, "question": question}
    rules = {"on_invalid": on_invalid}
    settings = {**_settings(chosen), "models": models, **table_settings(rules | columns)}
    head = document_head("groups", data, seed=seed, settings=settings)
    with naming(head["source"]):
        scores = load_scores(scores_source(data), **columns, on_invalid=on_invalid, features=kept)
        frame, dropped = without_missing(scores, kept, on_invalid)
    frame, names, embedder = embedded(frame, list(features), embed, embed_dimensions)
    with naming(head["source"]):
        blocks = _blocks(scores, frame, models)
    results = [_entry(block, names, chosen, head["source"]) for block in blocks]
    document: dict[str, Any] = {
        **head,
        "features": names,
        "embedding": embedder,
        "dropped": dropped,
        "results": results,
    }
    if len(results) == 1:
        document |= {name: results[0][name] for name in _NAMES}
    return Result(document)


def _settings(options: GroupOptions) -> dict[str, Any]:
    """Return the options as plain data; the seed stands beside them."""
    return {name: value for name, value in asdict(options).items() if name != "seed"}


def refuse_outcome(features: Sequence[str], correct: str | None) -> None:
    """Refuse the outcome as a feature: it would tell what is to be found out."""
    if (correct or "correct") in features:
        raise InputError(
            f"the outcome {correct or 'correct'!r} cannot be a feature: it is what a confidence "
            "is held against",
            hint=Hint("name columns with {features} that are known before the answer is graded"),
        )


def scores_source(data: Any) -> Any:
    """Return the scores table of a study, or the data itself."""
    if isinstance(data, Study):
        return data.read("scores")
    if isinstance(data, str | Path) and Study.is_study(data):
        return Study(data).read("scores")
    return data


def without_missing(
    scores: Scores, columns: Sequence[str], on_invalid: str
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the rows that have all features; missing ones are an error or are counted."""
    dropped = dict(scores.dropped)
    frame = scores.frame
    missing = pl.any_horizontal(
        *(_is_missing(name, frame.schema[name]) for name in columns), pl.lit(False)
    )
    bad = frame.select(missing.alias("bad"))["bad"]
    if bad.any():
        if on_invalid != "drop":
            name = next(
                n
                for n in columns
                if frame.select(_is_missing(n, frame.schema[n])).to_series().any()
            )
            raise InputError(
                f"the feature {name!r} is missing in {int(bad.sum())} of {frame.height} rows",
                source=scores.source,
                hint=Hint(
                    "fill it with a category of its own, or use {on_invalid} to leave such rows "
                    "out and have them counted",
                    on_invalid="drop",
                ),
            )
        dropped["feature_missing"] = int(bad.sum())
        frame = frame.filter(~bad)
    return frame, dropped


def _is_missing(name: str, dtype: pl.DataType) -> pl.Expr:
    missing = pl.col(name).is_null()
    missing = missing | ~pl.col(name).is_finite() if dtype.is_float() else missing
    return missing.alias(name)


def embedded(
    frame: pl.DataFrame, features: list[str], column: str | None, dimensions: int
) -> tuple[pl.DataFrame, list[str], dict[str, Any] | None]:
    """Add the principal components of a text column's embedding as features."""
    if column is None:
        return frame, features, None
    from sklearn.decomposition import PCA

    from calibrant.clients.embeddings import open_embedder

    texts = frame[column].cast(pl.String)
    distinct = texts.unique(maintain_order=True)
    embedder = open_embedder()
    vectors = np.asarray(embedder.embed(distinct.to_list()), dtype=np.float64)
    if dimensions < 1 or dimensions > min(vectors.shape):
        raise InputError(
            f"embed_dimensions must be between 1 and {min(vectors.shape)}, got {dimensions}"
        )
    reducer = PCA(n_components=dimensions, svd_solver="full")
    points = reducer.fit_transform(vectors)
    names = [f"{column}_{number + 1}" for number in range(dimensions)]
    table = pl.DataFrame({column: distinct, **dict(zip(names, points.T, strict=True))})
    joined = frame.with_columns(texts).join(table, on=column, how="left", maintain_order="left")
    about = {
        "column": column,
        "embedder": embedder.name,
        "dimensions": dimensions,
        "explained_variance": float(reducer.explained_variance_ratio_.sum()),
    }
    return joined, [*features, *names], about


def _blocks(scores: Scores, frame: pl.DataFrame, models: Sequence[str] | None) -> list[Block]:
    if models is not None:
        known = set(frame["model"].unique())
        unknown = [name for name in models if name not in known]
        if unknown:
            raise InputError(
                f"there is no model {unknown[0]!r}; known: {', '.join(sorted(known))}",
                source=scores.source,
            )
        frame = frame.filter(pl.col("model").is_in(list(models)))
    if frame.height == 0:
        raise InputError("no row is left", source=scores.source)
    return list(replace(scores, frame=frame).blocks())


def _entry(block: Block, features: list[str], options: GroupOptions, source: str) -> dict[str, Any]:
    stream = named_stream(options.seed, *block.keys.items())
    own = replace(options, seed=int(stream.integers(2**31)))
    try:
        entry = groups_entry(
            block.frame.select(features),
            block.confidence,
            block.correct,
            options=own,
            units=block.units,
        )
    except InputError as error:
        raise InputError(
            f"{error.rule} (model {block.keys['model']}, method {block.keys['method']})",
            source=source,
            row=error.row,
            hint=error.hint,
        ) from None
    return {**block.keys, **entry}
