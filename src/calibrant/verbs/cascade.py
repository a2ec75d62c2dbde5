"""`cascade`: when to ask a larger model or a person, and what it costs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from calibrant.claims.cascade import cascade_claims
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.hints import Hint
from calibrant.core.output import writing
from calibrant.core.registry import did_you_mean
from calibrant.core.verb import ADVANCED, OUTPUT, Option, verb
from calibrant.epistemic.deferral.answers import Answers
from calibrant.epistemic.deferral.cascade import Cascade
from calibrant.epistemic.deferral.choice import FEWEST, Target, choose_policy
from calibrant.epistemic.deferral.policy import MixedPolicy
from calibrant.epistemic.deferral.strategies import STRATEGIES, StrategyOptions
from calibrant.epistemic.deferral.tournament import SplitPlan, tournament
from calibrant.epistemic.loss.decision import CostMatrix
from calibrant.epistemic.trees.residuals import RESIDUAL_MODELS
from calibrant.inputs.features import embedded, refuse_outcome, scores_source, without_missing
from calibrant.inputs.provenance import document_head
from calibrant.inputs.settings import table_settings
from calibrant.inputs.streams.engines import engine_named
from calibrant.metrics import calibrator_from_dict
from calibrant.records import load_scores
from calibrant.report.typed import CascadeResult
from calibrant.verbs._options import (
    ConfidenceColumn,
    CorrectColumn,
    CostMap,
    EmbedColumn,
    EmbedDimensions,
    Engine,
    MethodColumn,
    MinLeaf,
    ModelColumn,
    OnInvalid,
    QuestionColumn,
    Recalibration,
    Residuals,
    ScoresData,
    Seed,
    TreeSplits,
)

__all__ = ["aligned_answers", "cascade"]

_DEAREST = 1e15
_PRICES_WRITTEN = "1,8,70 or small=1,large=70"


@verb(
    example="calibrant cascade scores.csv --models small,large --price 1,8 --features domain",
)
def cascade(
    data: ScoresData,
    *,
    models: Annotated[
        Sequence[str], Option("Models, cheapest first.", metavar="A,B,..", kind="names")
    ],
    features: Annotated[
        Sequence[str],
        Option("Columns that the policies may use.", metavar="A,B,..", kind="names"),
    ] = (),
    embed: EmbedColumn = None,
    embed_dimensions: EmbedDimensions = 8,
    price: Annotated[
        Mapping[str, float] | Sequence[float] | None,
        Option(
            "Price per call, or per unit of the column of costs.",
            metavar="1,8,70",
            kind="map or numbers",
            example=_PRICES_WRITTEN,
        ),
    ] = None,
    cost: Annotated[str | None, Option("Column of costs or token counts.", metavar="COL")] = None,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    only_method: Annotated[
        str | None, Option("Method to use where there are several.", metavar="NAME")
    ] = None,
    on_invalid: OnInvalid = "error",
    decision: Annotated[
        str,
        Option(
            "What the outcome is: the grade of each model's own answer, or the class itself.",
            metavar="answer|class",
            choices=("answer", "class"),
        ),
    ] = "answer",
    costs: CostMap = None,
    threshold: Annotated[
        float | None,
        Option("Where a confidence decides 1 (class only).", metavar="SHARE", above=0, below=1),
    ] = None,
    recalibration: Recalibration = "platt",
    residuals: Residuals = "tree",
    tree_splits: TreeSplits = "auto",
    min_samples_leaf: MinLeaf = 15,
    max_depth: Annotated[
        int | None, Option("Depth of the trees.", metavar="N", group=ADVANCED, min=1, max=100)
    ] = None,
    neighbours: Annotated[
        int,
        Option("Neighbours of router_knn.", metavar="N", group=ADVANCED, min=1, max=10**6),
    ] = 40,
    strategies: Annotated[
        Sequence[str] | None,
        Option(
            "Ways to decide, compared: value, risk, risk_shrunk, risk_boosting, calibration, "
            "confidence, router, router_knn.",
            metavar="A,B,..",
            kind="names",
        ),
    ] = None,
    random_splits: Annotated[
        int,
        Option(
            "Random splits that are averaged.",
            metavar="N",
            group=ADVANCED,
            min=1,
            max=10_000,
            formerly=("splits",),
        ),
    ] = 20,
    budget: Annotated[
        float | None,
        Option(
            "Mean cost per question, as a share of what the largest model costs.",
            metavar="SHARE",
            above=0,
            max=1e6,
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        Option("Accuracy to reach at the lowest cost.", metavar="SHARE", above=0, below=1),
    ] = None,
    guarantee: Annotated[
        float | None,
        Option(
            "Promise an accuracy of at least the largest model's minus this.",
            metavar="SHARE",
            above=0,
            below=1,
        ),
    ] = None,
    delta: Annotated[
        float,
        Option("Largest chance that the promise fails.", metavar="SHARE", above=0, below=1),
    ] = 0.1,
    strategy: Annotated[
        str | None,
        Option("Save this strategy instead of the best one.", metavar="NAME", group=ADVANCED),
    ] = None,
    tolerance: Annotated[
        float | None,
        Option("Risk that a saved risk cascade tolerates.", metavar="RISK", min=0, max=1e15),
    ] = None,
    save: Annotated[
        str | Path | None,
        Option("Write the policy as JSON.", metavar="PATH", group=OUTPUT, place="write"),
    ] = None,
    engine: Engine = None,
    seed: Seed = 0,
) -> CascadeResult:
    """Compare strategies of asking several models, and save the best policy.

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
        Price per model (by name, or in the order of `models`), a column of costs, or both: price
        times column.
    confidence, correct, model, method, question
        Column names, as for `audit`.
    only_method
        The method to use where the table has several.
    on_invalid
        ``"error"``, or ``"drop"``: questions without an outcome for every model are left out.
    decision, costs, threshold, recalibration, residuals, tree_splits
        See `calibrant.epistemic.Cascade`.
    min_samples_leaf, max_depth, neighbours
        Of the trees, and of the router that looks at neighbours.
    strategies
        Strategies to compare.
    random_splits
        Random splits that are averaged.
    budget, accuracy
        What the policy is to reach: a mean cost, as a share of what the largest model costs, or
        an accuracy at the lowest cost. Without either: the largest model's accuracy. Two
        neighbouring settings are mixed by a hash of the question to hit it.
    guarantee, delta
        Promise that the accuracy is at least the largest model's minus `guarantee`, with
        probability 1 - `delta`; with a budget the cost is promised too. 30 % of the questions are
        kept apart for it.
    strategy
        Strategy to save. It is refused where another one on the same page is clearly better.
    tolerance
        Estimated risk up to which a risk cascade gives an answer instead of asking the next
        model; at least 0. It is then the policy that is saved.
    save
        Where to write the policy, fitted on all questions; `calibrant.load_policy` reads it.
    engine
        Where the splits run: ``local`` (threads), ``ray`` or ``ray://HOST:PORT``; None runs them
        one after the other. The document is the same.
    seed
        Seed of the splits.

    Returns
    -------
    CascadeResult
        A document ``calibrant.cascade/1`` with one entry in ``results``.
    """
    options = {
        "decision": decision,
        "costs": costs,
        "threshold": threshold,
        "recalibration": recalibration,
        "residuals": residuals,
        "splits": tree_splits,
        "min_samples_leaf": min_samples_leaf,
        "max_depth": max_depth,
        "neighbours": neighbours,
        "strategies": None if strategies is None else tuple(strategies),
    }
    chosen = _options(options)
    price = _prices(price, models)
    refuse_outcome(features, correct)
    kept = [name for name in dict.fromkeys([*features, embed, cost]) if name is not None]
    columns: dict[str, Any] = {"confidence": confidence, "correct": correct, "model": model}
    columns |= {"method": method, "question": question}
    scores = load_scores(scores_source(data), **columns, on_invalid=on_invalid, features=kept)
    frame, dropped = without_missing(scores, kept, on_invalid)
    frame = _one_method(frame, only_method)
    frame, names, embedder = embedded(frame, list(features), embed, embed_dimensions)
    _refuse_unknown_prices(price, frame["model"].unique().to_list())
    answers, left_out = aligned_answers(
        frame, models=models, features=names, price=price, cost=cost, on_invalid=on_invalid
    )
    if embed is not None:
        near = tuple(name for name in names if name not in features)
        chosen = StrategyOptions(**{**_fields(chosen), "neighbour_columns": near})
        if "router_knn" not in chosen.strategies and strategies is None:
            added = (*chosen.strategies, "router_knn")
            chosen = StrategyOptions(**{**_fields(chosen), "strategies": added})
    mapper = map if engine is None else engine_named(engine).map
    entry = tournament(answers, chosen, SplitPlan(splits=random_splits, seed=seed), mapper=mapper)
    target = Target(budget, accuracy, guarantee, delta, strategy)
    head = document_head("cascade", data, seed=seed)
    wanted = save is not None or target != Target()
    policy, entry["policy"] = _policy(answers, chosen, target, tolerance, seed, wanted=wanted)
    entry["policy"]["path"] = None if save is None else str(save)
    entry["measure"] = "worth" if chosen.costs is not None else "accuracy"
    if save is not None and policy is not None:
        origin = {name: head[name] for name in ("source", "input", "version")}
        with writing(save):
            replace(policy, fitted_on=origin, embedding=embedder).save(save)
    settings = _settings(chosen, random_splits) | {
        "models": list(models),
        "features": list(features),
        "price": None if price is None else dict(price),
        "cost": cost,
        "only_method": only_method,
        "tolerance": tolerance,
        "budget": budget,
        "accuracy": accuracy,
        "guarantee": guarantee,
        "delta": delta,
        "strategy": strategy,
        **table_settings({"on_invalid": on_invalid, **columns}),
    }
    document = {
        **document_head("cascade", data, seed=seed, settings=settings),
        "decision": chosen.decision,
        "embedding": embedder,
        "dropped": dropped | left_out,
        "results": [entry],
        "claims": [claim.to_dict() for claim in cascade_claims(plain(entry))],
    }
    return CascadeResult(document)


def _prices(
    price: Mapping[str, float] | Sequence[float] | None, models: Sequence[str]
) -> dict[str, float] | None:
    """Return the price of each model, from a list in the order of the models too."""
    if price is None:
        return None
    if not isinstance(price, Mapping):
        if len(price) != len(models):
            raise InputError(
                Hint(
                    "{price} has {0} prices for {1} models, got {2}",
                    len(price),
                    len(models),
                    ",".join(f"{value:g}" for value in price),
                )
            )
        return dict(zip(models, map(float, price), strict=True))
    return dict(price)


def _refuse_unknown_prices(price: Mapping[str, float] | None, known: Sequence[str]) -> None:
    unknown = [name for name in price or () if name not in known]
    if unknown:
        raise InputError(
            Hint("{price} is that of a model, got {0}", repr(unknown[0])),
            hint=did_you_mean(unknown[0], list(known)),
        )


def _settings(options: StrategyOptions, splits: int) -> dict[str, Any]:
    costs = None if options.costs is None else options.costs.to_dict()
    return {**_fields(options), "costs": costs, "random_splits": splits}


def _fields(options: StrategyOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in StrategyOptions.__dataclass_fields__}


def _options(options: Mapping[str, Any]) -> StrategyOptions:
    given = {name: value for name, value in options.items() if value is not None}
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
            hint=Hint("choose with {only_method}"),
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
        raise InputError("a cascade needs costs", hint=Hint("give {price} or {cost}, or both"))
    parts = [frame.filter(pl.col("model") == name) for name in models]
    shared = parts[0].select("question_id")
    for part in parts[1:]:
        shared = shared.join(part.select("question_id"), on="question_id", how="semi")
    asked = frame.filter(pl.col("model").is_in(list(models)))["question_id"].n_unique()
    if shared.height < asked and on_invalid != "drop":
        raise InputError(
            f"{asked - shared.height} of {asked} questions are not answered by all models",
            hint=Hint(
                "use {on_invalid} to leave them out and have them counted", on_invalid="drop"
            ),
        )
    if shared.height == 0:
        raise InputError("no question is answered by all models", hint=Hint("check {question}"))
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
            hint=Hint("name a column of the question with {features}, or use {embed}"),
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
        raise InputError(Hint("{price} and {cost} are numbers from 0 to {0}", f"{_DEAREST:g}"))
    means = matrix.mean(axis=0)
    if means[-1] <= 0:
        raise InputError(f"the last model must cost more than 0, got {means[-1]}")
    if (np.diff(means) < 0).any():
        order = " -> ".join(f"{m} {c:.4g}" for m, c in zip(models, means, strict=True))
        raise InputError(
            f"models must be given cheapest first, their mean costs are {order}",
            hint=Hint("change the order of {models} or the prices"),
        )
    return matrix


def _amounts(column: pl.Series) -> Any:
    if not column.dtype.is_numeric():
        raise InputError(
            Hint(
                "the column for {cost} must hold numbers, {0} holds {1}",
                repr(column.name),
                column.dtype,
            )
        )
    return column.cast(pl.Float64).to_numpy()


def _policy(
    answers: Answers,
    options: StrategyOptions,
    target: Target,
    tolerance: float | None,
    seed: int,
    *,
    wanted: bool,
) -> tuple[MixedPolicy | None, dict[str, Any]]:
    """Choose the policy to save, and describe it with its promise.

    Too few questions for a choice are an error only where a policy is wanted.
    """
    made = dt.datetime.now(dt.UTC).date().isoformat()
    if tolerance is not None:
        policy = _risk_cascade(answers, options, tolerance, seed)
        told = {"rule": "risk", "tolerance": tolerance, "chosen": "given", "promise": None}
        mixed = MixedPolicy(policy, (tolerance, tolerance), 0.0, {}, made, len(answers))
        return mixed, told
    if target.strategy is not None and target.strategy not in (*options.strategies, "single"):
        raise InputError(
            f"the strategy {target.strategy!r} is not among those compared",
            hint=did_you_mean(target.strategy, list(options.strategies)),
        )
    if len(answers) < FEWEST and not wanted:
        why = "too few questions to choose a policy"
        return None, {"rule": None, "tolerance": None, "chosen": why, "promise": None}
    found = choose_policy(answers, options, target, seed=seed)
    largest = float(answers.cost[:, -1].mean())
    cost = found.cost
    relative = Estimate(cost.value / largest, cost.low / largest, cost.high / largest, n=cost.n)
    promise = {
        "accuracy": found.accuracy,
        "cost": cost,
        "relative_cost": relative,
        "gain": found.gain,
        "budget": target.budget,
        "guarantee": None
        if found.certified is None
        else {"margin": target.margin, "delta": target.delta, "certified": found.certified > 0},
    }
    told = {
        "rule": found.strategy,
        "words": STRATEGIES.get(found.strategy, "always one model"),
        "tolerance": found.dials[0] if isinstance(found.dials[0], float) else None,
        "chosen": found.how,
        "share_of_second": found.share,
        "promise": promise,
        "not_taken": found.reasons,
    }
    n = len(answers)
    return MixedPolicy(found.policy, found.dials, found.share, promise, made, n), told


def _risk_cascade(
    answers: Answers, options: StrategyOptions, tolerance: float, seed: int
) -> Cascade:
    return Cascade(
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
        unseen="calibration",
        seed=seed,
    ).fit_answers(answers)
