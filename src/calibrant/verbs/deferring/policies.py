"""The policy that `cascade` saves, with its promise."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.registry import did_you_mean
from calibrant.epistemic.deferral.answers import EVERY_QUESTION, Answers
from calibrant.epistemic.deferral.choice import (
    FEWEST,
    ChosenPolicy,
    Target,
    choose_policy,
    given_tolerance,
)
from calibrant.epistemic.deferral.policy import AlwaysOne, MixedPolicy
from calibrant.epistemic.deferral.strategies import STRATEGIES, StrategyOptions
from calibrant.epistemic.guard import Profile
from calibrant.epistemic.selective.labels import enough_labels


def chosen_policy(
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
    if target.strategy is not None and target.strategy not in (*options.strategies, "single"):
        raise InputError(
            f"the strategy {target.strategy!r} is not among those compared",
            hint=did_you_mean(target.strategy, list(options.strategies)),
        )
    if len(answers) < FEWEST and not wanted and tolerance is None:
        why = "too few questions to choose a policy"
        return None, {"rule": None, "tolerance": None, "chosen": why, "promise": None}
    if tolerance is None:
        found = choose_policy(answers, options, target, seed=seed)
    else:
        found = given_tolerance(answers, options, tolerance, seed=seed)
    promise = _promise(found, target, float(answers.cost[:, -1].mean()))
    told = {
        "rule": found.strategy,
        "words": STRATEGIES.get(found.strategy, "always one model"),
        "tolerance": found.dials[0] if isinstance(found.dials[0], float) else None,
        "chosen": found.how,
        "single": found.policy.name if isinstance(found.policy, AlwaysOne) else None,
        "share_of_second": found.share,
        "promise": promise,
        "not_taken": found.reasons,
    }
    made = dt.datetime.now(dt.UTC).date().isoformat()
    return MixedPolicy(found.policy, found.dials, found.share, promise, made, len(answers)), told


def profile_of(answers: Answers) -> dict[str, Any]:
    """Return what a policy keeps of its questions: columns, categories known, how they spread."""
    frame = answers.features
    columns = [name for name in frame.columns if name not in EVERY_QUESTION]
    own = {name for table in answers.answer_features.values() for name in table.columns}
    known = enough_labels(frame.select(columns), None, strict=False)
    group = next(iter(known), None)
    said = pl.DataFrame({"confidence": answers.confidence[:, 0]}).fill_nan(None)
    numbers = [name for name in columns if frame.schema[name].is_numeric()]
    seen = said.hstack([frame[name] for name in (*numbers, *([group] if group else []))])
    return {
        "columns": [*columns, *sorted(own)],
        "known": known,
        "profile": Profile.of(seen.drop_nulls(), group),
    }


def _promise(found: ChosenPolicy, target: Target, largest: float) -> dict[str, Any]:
    cost = found.cost
    relative = Estimate(cost.value / largest, cost.low / largest, cost.high / largest, n=cost.n)
    guarantee = None
    if found.certified is not None:
        certified = found.certified > 0
        guarantee = {"margin": target.margin, "delta": target.delta, "certified": certified}
    return {
        "accuracy": found.accuracy,
        "cost": cost,
        "relative_cost": relative,
        "gain": found.gain,
        "budget": target.budget,
        "guarantee": guarantee,
    }
