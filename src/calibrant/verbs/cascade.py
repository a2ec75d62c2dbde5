"""`cascade`: when to defer to a larger model, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean
from calibrant.epistemic.answers import Answers
from calibrant.epistemic.cascade import Cascade
from calibrant.epistemic.decision import CostMatrix
from calibrant.epistemic.residuals import RESIDUAL_MODELS
from calibrant.epistemic.strategies import STRATEGIES, StrategyOptions
from calibrant.epistemic.tournament import SplitPlan, tournament
from calibrant.inputs.engines import engine_named
from calibrant.inputs.provenance import document_head
from calibrant.inputs.settings import table_settings
from calibrant.metrics import calibrator_from_dict
from calibrant.records import load_scores
from calibrant.report.result import Result
from calibrant.verbs.groups import embedded, refuse_outcome, scores_source, without_missing

__all__ = ["aligned_answers", "cascade"]

_DEAREST = 1e15


def cascade(
    data: Any,
    *,
    models: Sequence[str],
    features: Sequence[str] = (),
    embed: str | None = None,
    embed_dimensions: int = 8,
    price: Mapping[str, float] | None = None,
    cost: str | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    only_method: str | None = None,
    on_invalid: str = "error",
    splits: int = 20,
    tolerance: float | None = None,
    save: str | Path | None = None,
    engine: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Result:
    """Compare strategies of asking several models, and save the fitted risk cascade.

    Parameters
    ----------
    data
        Path, study folder or dataframe with one row per question and model.
    models
        Names, cheapest first.
    features
        Columns that the policies may use. A column that differs between the models of one
        question is known only once that model has answered, and no router sees it.
    embed, embed_dimensions
        As for `groups`.
    price, cost
        Price per model, a column of costs, or both: price times column.
    confidence, correct, model, method, question
        Column names, as for `audit`.
    only_method
        The method to use where the table has several.
    on_invalid
        ``"error"``, or ``"drop"``: questions without an outcome for every model are left out.
    splits
        Random splits that are averaged.
    tolerance
        Estimated risk up to which the saved policy gives an answer instead of asking the next
        model; at least 0. None takes the setting that matched the largest
        model's accuracy at the lowest cost, or else the best one.
    save
        Where to write the risk cascade, fitted on all questions.
    engine
        Where the splits run: ``local`` (threads), ``ray`` or ``ray://HOST:PORT``; None runs them
        one after the other. The document is the same.
    seed
        Seed of the splits.
    **options
        Fields of `StrategyOptions`: decision, costs, threshold, recalibration, residuals,
        min_samples_leaf, max_depth, neighbours, strategies.

    Returns
    -------
    Result
        A document ``calibrant.cascade/1`` with one entry in ``results``.
    """
    chosen = _options(options)
    _check_tolerance(tolerance)
    refuse_outcome(features, correct)
    kept = [name for name in dict.fromkeys([*features, embed, cost]) if name is not None]
    columns: dict[str, Any] = {"confidence": confidence, "correct": correct, "model": model}
    columns |= {"method": method, "question": question}
    scores = load_scores(scores_source(data), **columns, on_invalid=on_invalid, features=kept)
    frame, dropped = without_missing(scores, kept, on_invalid)
    frame = _one_method(frame, only_method)
    frame, names, embedder = embedded(frame, list(features), embed, embed_dimensions)
    answers, left_out = aligned_answers(
        frame, models=models, features=names, price=price, cost=cost, on_invalid=on_invalid
    )
    if embed is not None:
        near = tuple(name for name in names if name not in features)
        chosen = StrategyOptions(**{**_fields(chosen), "neighbour_columns": near})
        if "router_knn" not in chosen.strategies and "strategies" not in options:
            added = (*chosen.strategies, "router_knn")
            chosen = StrategyOptions(**{**_fields(chosen), "strategies": added})
    mapper = map if engine is None else engine_named(engine).map
    entry = tournament(answers, chosen, SplitPlan(splits=splits, seed=seed), mapper=mapper)
    entry["policy"] = _policy(answers, chosen, entry, tolerance, save, seed)
    settings = _settings(chosen, splits) | {
        "models": list(models),
        "features": list(features),
        "price": None if price is None else dict(price),
        "cost": cost,
        "only_method": only_method,
        "tolerance": tolerance,
        **table_settings({"on_invalid": on_invalid, **columns}),
    }
    document = {
        **document_head("cascade", data, seed=seed, settings=settings),
        "decision": chosen.decision,
        "embedding": embedder,
        "dropped": dropped | left_out,
        "results": [entry],
    }
    return Result(document)


def _check_tolerance(tolerance: float | None) -> None:
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise InputError(
            f"--tolerance is a finite number, at least 0, got {tolerance:g}",
            hint="answers are given up to this estimated risk, in the unit of --costs",
        )


def _settings(options: StrategyOptions, splits: int) -> dict[str, Any]:
    costs = None if options.costs is None else options.costs.to_dict()
    return {**_fields(options), "costs": costs, "random_splits": splits}


def _fields(options: StrategyOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in StrategyOptions.__dataclass_fields__}


def _options(options: Mapping[str, Any]) -> StrategyOptions:
    given = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(set(given) - set(StrategyOptions.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"there is no option {unknown[0]!r}",
            hint=did_you_mean(unknown[0], list(StrategyOptions.__dataclass_fields__)),
        )
    for name in given.get("strategies", ()):
        if name not in STRATEGIES:
            raise InputError(
                f"there is no strategy {name!r}", hint=did_you_mean(name, list(STRATEGIES))
            )
    # Strategies that need neither would pass over a name that does not exist.
    calibrator_from_dict({"calibrator": given.get("recalibration", "platt")})
    if given.get("residuals", "tree") not in RESIDUAL_MODELS:
        raise InputError(
            f"there is no residual model {given['residuals']!r}",
            hint=did_you_mean(given["residuals"], list(RESIDUAL_MODELS)),
        )
    if given.get("costs") is not None:
        given["costs"] = CostMatrix.of(given["costs"])
    return StrategyOptions(**given)


def _one_method(frame: pl.DataFrame, method: str | None) -> pl.DataFrame:
    known = sorted(frame["method"].unique().to_list())
    if method is None and len(known) > 1:
        raise InputError(
            f"the table has {len(known)} methods, a cascade needs one: {', '.join(known)}",
            hint="choose with --only-method",
        )
    if method is not None and method not in known:
        raise InputError(f"there is no method {method!r}", hint=did_you_mean(method, known))
    return frame if method is None else frame.filter(pl.col("method") == method)


def aligned_answers(
    frame: pl.DataFrame,
    *,
    models: Sequence[str],
    features: Sequence[str],
    price: Mapping[str, float] | None,
    cost: str | None,
    on_invalid: str = "error",
) -> tuple[Answers, dict[str, int]]:
    """Return the answers of `models` to the questions that all of them have."""
    known = frame["model"].unique().to_list()
    if len(set(models)) < max(2, len(models)):
        raise InputError(f"a cascade needs at least two models, each once, got {list(models)}")
    for name in models:
        if name not in known:
            raise InputError(f"there is no model {name!r}", hint=did_you_mean(name, known))
    if price is None and cost is None:
        raise InputError("a cascade needs costs", hint="give --price or --cost, or both")
    parts = [frame.filter(pl.col("model") == name) for name in models]
    shared = parts[0].select("question_id")
    for part in parts[1:]:
        shared = shared.join(part.select("question_id"), on="question_id", how="semi")
    asked = frame.filter(pl.col("model").is_in(list(models)))["question_id"].n_unique()
    if shared.height < asked and on_invalid != "drop":
        raise InputError(
            f"{asked - shared.height} of {asked} questions are not answered by all models",
            hint="use --on-invalid drop to leave them out and have them counted",
        )
    if shared.height == 0:
        raise InputError("no question is answered by all models", hint="check --question")
    shared = shared.sort("question_id")
    aligned = [shared.join(part, on="question_id", how="left") for part in parts]
    first = aligned[0]
    common = [
        name for name in features if all(first[name].equals(part[name]) for part in aligned[1:])
    ]
    own = [name for name in features if name not in common]
    if not common:
        raise InputError(
            "at least one feature must be known before any model is asked: the same for all models "
            f"of a question; given: {', '.join(features) or 'none'}",
            hint="name a column of the question with --features, or use --embed",
        )
    return Answers(
        tuple(models),
        first.select(common),
        np.stack([part["confidence"].cast(pl.Float64).to_numpy() for part in aligned], axis=1),
        np.stack([part["correct"].to_numpy() for part in aligned], axis=1),
        _costs(aligned, models, price, cost),
        {name: part.select(own) for name, part in zip(models, aligned, strict=True)} if own else {},
    ), {"question_not_shared": asked - shared.height} if shared.height < asked else {}


def _costs(
    aligned: list[pl.DataFrame],
    models: Sequence[str],
    price: Mapping[str, float] | None,
    cost: str | None,
) -> Any:
    columns = []
    for name, part in zip(models, aligned, strict=True):
        if price is not None and name not in price:
            raise InputError(
                f"the price of the model {name!r} is missing", hint=did_you_mean(name, list(price))
            )
        unit = 1.0 if price is None else float(price[name])
        per_query = np.ones(part.height) if cost is None else _amounts(part[cost])
        columns.append(unit * per_query)
    matrix = np.stack(columns, axis=1)
    if not ((matrix >= 0) & (matrix <= _DEAREST)).all():
        raise InputError(f"--price and --cost are numbers from 0 to {_DEAREST:g}")
    means = matrix.mean(axis=0)
    if means[-1] <= 0:
        raise InputError(f"the last model must cost more than 0, got {means[-1]}")
    if (np.diff(means) < 0).any():
        order = " -> ".join(f"{m} {c:.4g}" for m, c in zip(models, means, strict=True))
        raise InputError(
            f"models must be given cheapest first, their mean costs are {order}",
            hint="change the order of --models or the prices",
        )
    return matrix


def _amounts(column: pl.Series) -> Any:
    if not column.dtype.is_numeric():
        raise InputError(
            f"the column for --cost must hold numbers, {column.name!r} holds {column.dtype}"
        )
    return column.cast(pl.Float64).to_numpy()


def _policy(
    answers: Answers,
    options: StrategyOptions,
    entry: Mapping[str, Any],
    tolerance: float | None,
    save: str | Path | None,
    seed: int,
) -> dict[str, Any]:
    """Fit the risk cascade on all questions and save it where asked."""
    how = "given"
    if tolerance is None:
        curve = entry["strategies"][0]["curve"]
        largest = next(m for m in entry["models"] if m["model"] == entry["largest"])["accuracy"]
        enough = [point for point in curve if point["accuracy"].value >= largest.value]
        best = (
            min(enough, key=lambda point: point["relative_cost"].value)
            if enough
            else max(curve, key=lambda point: point["accuracy"].value)
        )
        how = (
            "cheapest setting as accurate as the largest model"
            if enough
            else "most accurate setting"
        )
        tolerance = float(best["dial"])
    if save is not None:
        policy = Cascade(
            answers.models,
            tolerance=tolerance,
            decision=options.decision,
            costs=options.costs,
            threshold=options.threshold,
            recalibration=options.recalibration,
            model=options.residuals,
            splits=options.splits,
            min_samples_leaf=options.min_samples_leaf,
            max_depth=options.max_depth,
            seed=seed,
        ).fit_answers(answers)
        policy.save(save)
    return {
        "rule": "risk",
        "tolerance": tolerance,
        "chosen": how,
        "path": None if save is None else str(save),
    }
