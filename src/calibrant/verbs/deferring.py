"""Parts of decide and cascade: aligned answers, the traffic, the policy that is saved."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.features import vector_column
from calibrant.core.arrays import Estimate
from calibrant.core.document import plain
from calibrant.core.errors import InputError, did_you_mean, error_source, require_known
from calibrant.core.hints import Call, Hint
from calibrant.data import load_scores, source_name
from calibrant.data.sources.input import today
from calibrant.findings.documents.decisions import CascadePolicy, CascadePromise, Guarantee
from calibrant.trust.deferral.answers import EVERY_QUESTION, Answers, every_question
from calibrant.trust.deferral.choice import FEWEST, choose_policy, given_tolerance
from calibrant.trust.deferral.policy import AlwaysOne, MixedPolicy
from calibrant.trust.deferral.strategies import STRATEGIES, ChosenPolicy, StrategyOptions, Target
from calibrant.trust.selective.labels import enough_labels
from calibrant.trust.traffic_shift import ANSWER, Profile

_DEAREST = 1e15


def prices(
    price: Mapping[str, float] | Sequence[float] | None, models: Sequence[str]
) -> dict[str, float] | None:
    """Return the price of each model, from a list in the order of the models too."""
    if not isinstance(price, Sequence):
        return None if price is None else dict(price)
    if len(price) != len(models):
        values = ",".join(f"{value:g}" for value in price)
        rule = "{price} has {0} prices for {1} models, got {2}"
        raise InputError(Hint(rule, len(price), len(models), values))
    return dict(zip(models, map(float, price), strict=True))


def _refuse_unknown_prices(price: Mapping[str, float] | None, models: Sequence[str]) -> None:
    """Refuse the price of a model that is not in the table, and a table of one model."""
    if len(models) == 1:
        mode = "add the answers of a larger model; {call} says when to ask a person"
        hint = Hint(mode, call=Call("decide", "TABLE", max_error=0.1))
        raise InputError("the table has one model, a cascade takes two", hint=hint)
    unknown = [name for name in price or () if name not in models]
    if unknown:
        rule = Hint("{price} is that of a model, got {0}", repr(unknown[0]))
        raise InputError(rule, hint=did_you_mean(unknown[0], models))


def aligned_answers(
    frame: pl.DataFrame,
    models: Sequence[str],
    features: Sequence[str],
    price: Mapping[str, float] | None,
    cost: str | None,
    embed: str | None = None,
    on_invalid: str | None = None,
) -> tuple[Answers, dict[str, int]]:
    """Return the answers of `models` to the questions that all of them have.

    Parameters
    ----------
    frame
        One row per question and model.
    models
        Names, cheapest first.
    features
        Columns of the question, or of each model's answer.
    price, cost
        Price per model, and column of costs.
    embed
        Column whose embedding stands in the table too.
    on_invalid
        ``"drop"`` leaves out questions that a model did not answer.
    """
    in_table = frame["model"].unique().to_list()
    _refuse_unknown_prices(price, in_table)
    if len(set(models)) < max(2, len(models)):
        raise InputError(f"a cascade needs at least two models, each once, got {list(models)}")
    require_known(models, in_table, "there is no model {}")
    if price is None and cost is None:
        raise InputError("a cascade needs costs", hint=Hint("give {price} or {cost}, or both"))
    parts = [frame.filter(pl.col("model") == name) for name in models]
    shared = parts[0].select("question_id")
    for part in parts[1:]:
        shared = shared.join(part.select("question_id"), on="question_id", how="semi")
    total = frame.filter(pl.col("model").is_in(list(models)))["question_id"].n_unique()
    if shared.height < total and on_invalid == "error":
        rule = f"{total - shared.height} of {total} questions are not answered by all models"
        hint = Hint(
            "use {on_invalid} to leave them out and have them counted", on_invalid="missing"
        )
        raise InputError(rule, hint=hint)
    if shared.height == 0:
        hint = Hint("name the column that says which answers belong together with {question}")
        raise InputError("no question is answered by all models", hint=hint)
    shared = shared.sort("question_id")
    aligned = [shared.join(part, on="question_id", how="left") for part in parts]
    first = aligned[0]
    common = [
        name for name in features if all(first[name].equals(part[name]) for part in aligned[1:])
    ]
    own = [name for name in features if name not in common]
    known_before = first.select(common) if common else every_question(first.height)
    return Answers(
        tuple(models),
        known_before,
        np.stack([part["confidence"].cast(pl.Float64).to_numpy() for part in aligned], axis=1),
        np.stack([part["correct"].to_numpy() for part in aligned], axis=1),
        _costs(aligned, models, price, cost),
        {name: part.select(own) for name, part in zip(models, aligned, strict=True)} if own else {},
        None if embed is None else first[vector_column(embed)].to_numpy().astype(np.float64),
    ), {"question_not_shared": total - shared.height} if shared.height < total else {}


def _costs(
    aligned: list[pl.DataFrame],
    models: Sequence[str],
    price: Mapping[str, float] | None,
    cost: str | None,
) -> Any:
    columns = []
    if price is not None:
        require_known(models, price, "the price of the model {} is missing")
    for name, part in zip(models, aligned, strict=True):
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
        rule = f"models must be given cheapest first, their mean costs are {order}"
        raise InputError(rule, hint=Hint("change the order of {models} or the prices"))
    return matrix


def _amounts(column: pl.Series) -> Any:
    if not column.dtype.is_numeric():
        name, kind = repr(column.name), column.dtype
        raise InputError(Hint("the column for {cost} must hold numbers, {0} holds {1}", name, kind))
    return column.cast(pl.Float64).to_numpy()


def how_asked(data: Any, method: str) -> dict[str, Any]:
    """Return the method with its prompts and draws, or ``not_live``: why it cannot be asked live.

    Parameters
    ----------
    data
        What the verb was given.
    method
        The confidence method of the policy.
    """
    # Loaded only where a policy is saved: deciding on a table needs nothing that asks models.
    from calibrant.answers.confidence import METHODS
    from calibrant.models.study.prompts import study_recipe

    return study_recipe(data, method, METHODS[method].needs if method in METHODS else ())


def chosen_policy(
    answers: Answers,
    options: StrategyOptions,
    target: Target,
    tolerance: float | None,
    seed: int,
    save: str | Path | None,
) -> tuple[MixedPolicy | None, CascadePolicy]:
    """Choose the policy to save, and describe it with its promise.

    Too few questions for a choice are an error only where a policy is wanted.
    """
    if target.strategy is not None and target.strategy not in (*options.strategies, "single"):
        rule = f"the strategy {target.strategy!r} is not among those compared"
        raise InputError(rule, hint=did_you_mean(target.strategy, options.strategies))
    goal = save is not None or target != Target() or tolerance is not None
    if len(answers) < FEWEST and not goal:
        why = "too few questions to choose a policy"
        return None, CascadePolicy(rule=None, tolerance=None, chosen=why, promise=None, path=None)
    if tolerance is None:
        choice = choose_policy(answers, options, target, seed=seed)
    else:
        choice = given_tolerance(answers, options, tolerance, seed=seed, strategy=target.strategy)
    promise = _promise(choice, target, float(answers.cost[:, -1].mean()))
    dial, policy = choice.dials[0], choice.policy
    path = None if save is None else str(save)
    described = CascadePolicy(
        rule=choice.strategy,
        words=STRATEGIES.get(choice.strategy, "always one model"),
        tolerance=dial if isinstance(dial, float) else None,
        chosen=choice.how,
        single=policy.name if isinstance(policy, AlwaysOne) else None,
        share_of_second=choice.share,
        promise=promise,
        not_taken=choice.reasons,
        path=path,
    )
    stored = plain(promise)
    return MixedPolicy(policy, choice.dials, choice.share, stored, today(), len(answers)), described


def profile_of(answers: Answers) -> dict[str, Any]:
    """Return what a policy keeps of its questions: columns, categories known, how they spread."""
    frame = answers.features
    columns = [name for name in frame.columns if name not in EVERY_QUESTION]
    per_model = {name for table in answers.answer_features.values() for name in table.columns}
    categories = enough_labels(frame.select(columns), None, strict=False)
    group = next(iter(categories), None)
    confidence = pl.DataFrame({"confidence": answers.confidence[:, 0]}).fill_nan(None)
    numbers = [name for name in columns if frame.schema[name].is_numeric()]
    observed = confidence.hstack([frame[name] for name in (*numbers, *([group] if group else []))])
    profile = Profile.of(observed.drop_nulls(), group)
    return {"columns": [*columns, *sorted(per_model)], "known": categories, "profile": profile}


def _promise(choice: ChosenPolicy, target: Target, largest: float) -> CascadePromise:
    guarantee, cost = None, choice.cost
    if choice.certified is not None and target.margin is not None:
        certified = choice.certified > 0
        guarantee = Guarantee(margin=target.margin, delta=target.delta, certified=certified)
    relative = Estimate(cost.value / largest, cost.low / largest, cost.high / largest, cost.n)
    return CascadePromise(
        accuracy=choice.accuracy,
        cost=cost,
        relative_cost=relative,
        gain=choice.gain,
        budget=target.budget,
        guarantee=guarantee,
    )


def read_traffic(
    traffic: Any, table: Mapping[str, Any], columns: Sequence[str] | None
) -> pl.DataFrame:
    """Return rows with a confidence, labelled or not; `columns` are kept, None keeps all."""
    with error_source(source_name(traffic)):
        options = {**table, "cluster": None, "repeats": True}
        frame = load_scores(traffic, labels="optional", features=columns, **options).frame
        require_known(columns or (), frame.columns, "the traffic has no column {}")
        if not frame.height:
            raise InputError("the traffic holds no rows", hint=Hint("give recent rows"))
    return frame


def traffic_of(
    traffic: pl.DataFrame, keys: Mapping[str, str], features: Sequence[str], group: str | None
) -> pl.DataFrame:
    """Return the traffic of one model and method; without a column of them, all of it."""
    rows = traffic
    for column in ("model", "method"):
        if traffic[column].n_unique() > 1 or keys[column] in traffic[column]:
            rows = rows.filter(pl.col(column) == keys[column])
    if not rows.height:
        raise InputError(f"the traffic has no rows of {keys['model']} / {keys['method']}")
    answer = [ANSWER] if ANSWER in rows.columns else []
    names = ["confidence", *features, *([group] if group else []), *answer]
    return rows.select(list(dict.fromkeys(names)))
