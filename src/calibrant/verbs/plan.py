"""`plan`: how many labels does a claim need, and what do these labels show?"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.naming import naming
from calibrant.inputs.provenance import document_head
from calibrant.inputs.settings import table_settings
from calibrant.metrics import confidence_gap
from calibrant.planning import Goal, leaderboard, plan_document, require_labels, verification_block
from calibrant.planning.plan import parse_stages
from calibrant.records import Scores, load_scores, source_name
from calibrant.report.result import Result
from calibrant.verbs.audit_block import block_tests
from calibrant.verbs.groups import scores_source
from calibrant.verbs.significance import correct_for_number

__all__ = ["plan"]

_LEAST_SHARE = 1e-9
# Bins of the ECE that the verification block speaks of.
_BINS = 15


def plan(
    scores: Any = None,
    *,
    precision: float | None = None,
    labels: int | None = None,
    error_rate: float | None = None,
    lipschitz: float | None = None,
    models: int = 1,
    groups: int = 1,
    smallest_share: float = 1.0,
    stages: str | Sequence[float] = (),
    preset: str | None = None,
    drift: float | None = None,
    per: str = "month",
    start: dt.date | str | None = None,
    rank: str | None = None,
    seed: int = 0,
    **columns: Any,
) -> Result:
    """Plan labels, in both directions.

    Parameters
    ----------
    scores
        A scores table: error rate and steepness are then measured, model by model, and the plan
        is made for the model that needs most labels.
    precision, labels
        Precision wanted, or labels at hand.
    error_rate, lipschitz
        eps and L, where they are not measured; L is 1 by default, as in published tables.
    models, groups, smallest_share, stages
        A comparison, groups that must each be verified, a pipeline (``"2,2"``).
    preset
        ``eu-ai-act``, ``nist-ai-rmf`` or ``fda-samd``.
    drift, per, start
        Drift of the ECE per unit of time, and the day of the verification: when it expires.
    rank
        Add a leaderboard with its ties: accuracy, brier or ece.
    seed
        The same seed gives the same bytes.
    columns
        Column names and rules of the table, see `calibrant.records.load_scores`.

    Returns
    -------
    Result
        Document ``calibrant.plan/1``.

    Examples
    --------
    >>> result = plan(precision=0.01, error_rate=0.05)
    >>> result["passive_labels"], result["active_labels"]
    (50000, 500)
    """
    stages = parse_stages(stages)
    if scores is None:
        _refuse_without_table({"rank": rank, **columns})
    _check_range("precision", precision, 1.0)
    for name, size in (("precision", precision), ("error_rate", error_rate), ("drift", drift)):
        # Below, the labels needed are more than a number can hold.
        if size is not None and 0 < size < _LEAST_SHARE:
            raise InputError(f"{name} is 0 or from {_LEAST_SHARE:g} on, got {size:g}")
    _check_range("drift", drift, 1e6)
    if not _LEAST_SHARE <= smallest_share <= 1:
        raise InputError(f"smallest_share is from {_LEAST_SHARE:g} to 1, got {smallest_share:g}")
    _check_range("the Lipschitz constant", lipschitz, 1e6)
    for stage in stages:
        _check_range("the steepness of --stages", None if stage == math.inf else stage, 1e6)
    source = source_name(scores) if isinstance(scores, str | Path) else None
    with naming(source):
        table = None if scores is None else load_scores(scores_source(scores), **columns)
        measured = [] if table is None else _measured(table, seed)
    if measured:
        found = max(measured, key=_need)["verification"]
        error_rate = found["error_rate"].value if error_rate is None else error_rate
        if lipschitz is None and np.isfinite(found["lipschitz"].value):
            lipschitz = found["lipschitz"].value
        if precision is None and labels is None and preset is None:
            labels = found["labels"]
    if error_rate is None and preset is None:
        raise InputError(
            "a plan needs the error rate of the model",
            hint="give --error-rate, a table to measure it on, or a --preset",
        )
    goal = Goal(
        error_rate=error_rate or 0.0,
        lipschitz=1.0 if lipschitz is None else lipschitz,
        precision=precision,
        labels=labels,
        models=models,
        groups=groups,
        smallest_share=smallest_share,
        stages=stages,
        drift=drift,
        per=per,
        start=_date(start),
    )
    settings = {**asdict(goal), "preset": preset, "rank": rank, **table_settings(columns)}
    head = document_head("plan", scores, seed=seed, settings=settings)
    document = {**head, **plan_document(goal, preset=preset)}
    document["dropped"] = {} if table is None else dict(table.dropped)
    document["assumed_lipschitz"] = lipschitz is None and not goal.stages
    document["measured"] = measured
    with naming(source):
        document["leaderboard"] = _leaderboard(table, rank, seed) if table and rank else None
    return Result(document)


def _refuse_without_table(options: dict[str, Any]) -> None:
    """Refuse options that would be passed over: they are about a table."""
    given = [name for name, value in options.items() if value not in (None, "error", "drop")]
    if given:
        raise InputError(
            f"--{given[0].replace('_', '-')} is about a table, and none is given, got "
            f"{options[given[0]]!r}",
            hint="give a table of scores, or leave the option out",
        )


def _check_range(name: str, value: float | None, most: float) -> None:
    """Refuse what is no size; what is too small is refused where it is used."""
    if value is not None and not value <= most:
        raise InputError(f"{name} is a number up to {most:g}, got {value:g}")


def _need(block: dict[str, Any]) -> float:
    """Return what the labels needed are proportional to: error rate times steepness."""
    found = block["verification"]
    steep = found["lipschitz"].value
    return float(found["error_rate"].value * (steep if np.isfinite(steep) else 1.0))


def _measured(table: Scores, seed: int) -> list[dict[str, Any]]:
    blocks = []
    for block in table.blocks():
        require_labels(block.correct, source=table.source)
        found = verification_block(
            block.confidence, block.correct, weights=block.weights, units=block.units, rng=seed
        )
        steep = found["lipschitz"].value
        need = found["error_rate"].value * (steep if np.isfinite(steep) else 1.0)
        gap = confidence_gap(
            block.confidence, block.correct, weights=block.weights, units=block.units
        )
        tests = block_tests(block, gap, _BINS)
        blocks.append(
            {
                **block.keys,
                "n": len(block.confidence),
                "probability": True,
                "verification": found,
                "need": need,
                "significance": tests["significance"],
            }
        )
    # The same tests, with the same correction, as in an audit of the table.
    correct_for_number(blocks)
    return blocks


def _leaderboard(table: Scores, metric: str, seed: int) -> dict[str, Any]:
    frame = table.frame
    methods = frame["method"].unique().to_list()
    if len(methods) > 1:
        raise InputError(
            f"a leaderboard compares one method, got {', '.join(map(str, sorted(methods)))}",
            hint="choose one with --confidence",
        )
    names = frame["model"].unique(maintain_order=True).to_list()
    counts = frame.group_by("question_id").len()
    common = counts.filter(counts["len"] == len(names))["question_id"]
    if common.is_empty():
        raise InputError("no question was answered by all models", source=table.source)
    part = frame.filter(frame["question_id"].is_in(common.implode())).sort("question_id")
    arrays = {
        str(name): (rows["confidence"].to_numpy(), rows["correct"].to_numpy())
        for name in names
        for rows in [part.filter(part["model"] == name)]
    }
    return leaderboard(arrays, metric=metric, seed=seed)


def _date(start: dt.date | str | None) -> dt.date | None:
    if start is None or isinstance(start, dt.date):
        return start
    try:
        return dt.date.fromisoformat(start)
    except ValueError:
        raise InputError(f"a date is written like 2026-01-31, got {start!r}") from None
