"""Confidence where several answers are right: per number of answers and on mixes."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from calibrant.bench.measures import macro, significance
from calibrant.bench.measures.between import between_models
from calibrant.bench.measures.leaves import Leaf, ScoreRows, leaves, mixes_of
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate

_SHARE = (0.0, 1.0)
_MANY = 6
_COLUMNS = ("question_id", "model", "method", "confidence", "correct", "k", "domain")


def evaluate_multi_answer(
    frame: pl.DataFrame,
    *,
    mixes: Sequence[Sequence[int]] | None = None,
    reference: str = "sca",
    ranking_methods: Collection[str] = (),
    coverage: pl.DataFrame | None = None,
    draws: int = 1_000,
    items: int = 1_000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the document ``calibrant.multi_answer/1``.

    Accuracy and mean confidence by number of right answers; AUROC and, for scores that are
    probabilities, ECE and Brier score on mixes of them, pooled within a domain, then the
    unweighted mean over domains (accuracy and confidence: Math over its kinds of numbers first);
    the paired bootstrap test of every method against `reference` on the same outcome per
    question, corrected by Holm's rule for the number of tests; the method with the largest AUROC
    against every other one; how differently models change with k, pair by pair; and the rank
    correlation of confidence with knowledge coverage.

    Parameters
    ----------
    frame
        Scores with columns question_id, model, method, confidence, correct, k, domain and,
        where known, subtype.
    mixes
        Numbers of right answers that are pooled; None: the smallest, the two smallest, and
        so on.
    reference
        Method that the others are tested against, per model.
    ranking_methods
        Methods whose score is not a probability.
    coverage
        Columns question_id, model, coverage (see `knowledge_coverage`).
    draws, items
        Of the test.
    level
        Coverage of the intervals.
    seed
        The same seed gives the same document.
    """
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(
            f"the evaluation by k needs the columns {', '.join(missing)}",
            hint="join the questions table (k, domain, subtype) to the scores by question_id",
        )
    ks = sorted(set(frame["k"].to_list()))
    chosen = [sorted(mix) for mix in mixes] if mixes is not None else mixes_of(ks)
    results: list[dict[str, Any]] = []
    every: dict[str, dict[str, ScoreRows]] = {}
    leading: list[dict[str, Any]] = []
    for by_model in frame.partition_by("model", maintain_order=True):
        model = str(by_model["model"][0])
        rows = {
            str(part["method"][0]): ScoreRows.of(part)
            for part in by_model.partition_by("method", maintain_order=True)
        }
        every[model] = rows
        known = None if coverage is None else coverage.filter(pl.col("model") == model)
        setting = significance.Setting(draws, items, level, seed, model)
        tests = significance.tests_against(rows, reference, chosen, setting)
        own = [
            {
                "model": model,
                "method": name,
                **_entry(found, ks, chosen, probability=name not in ranking_methods, level=level),
                "significance": tests[name],
                **_correlations(found, known, ks, level),
            }
            for name, found in rows.items()
        ]
        areas = {entry["method"]: entry["mixes"][-1]["auroc"].value for entry in own}
        first = significance.leading_method(rows, areas, chosen[-1], setting)
        leading += [] if first is None else [{"model": model, **first}]
        results += own
    return {
        "schema": "calibrant.multi_answer/1",
        "k": ks,
        "mixes": chosen,
        "domains": sorted(set(frame["domain"].to_list())),
        "reference": reference,
        "test": {"draws": draws, "items": items, "two_sided": True},
        "multiplicity": significance.correct_comparisons(
            test for entry in results for test in entry["significance"]
        ),
        "leading": leading,
        "between_models": between_models(every, coverage, _probabilities(results), ks, level),
        "results": results,
        "coverage": _coverage_table(frame, coverage, level),
    }


def _probabilities(results: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(entry["method"] for entry in results if entry["probability"]))


def _entry(
    rows: ScoreRows,
    ks: Sequence[int],
    mixes: Sequence[Sequence[int]],
    *,
    probability: bool,
    level: float,
) -> dict[str, Any]:
    # A score that is no probability may have any size.
    bounds = _SHARE if probability else None
    by_k = [_of_k(rows.of_k([k]), k, level, bounds) for k in ks]
    return {
        "probability": probability,
        "n": int(rows.correct.size),
        "by_k": by_k,
        "change": _change(rows, by_k, probability, level),
        "mixes": [_of_mix(rows.of_k(mix), mix, probability, level) for mix in mixes],
    }


def _of_k(
    rows: ScoreRows, k: int, level: float, bounds: tuple[float, float] | None
) -> dict[str, Any]:
    parts = rows.leaves()

    def confidence(some: Sequence[Leaf]) -> macro.Macro:
        return macro.macro_mean(rows.confidence, some, level=level, bounds=bounds)

    return {
        "k": k,
        "n": int(rows.correct.size),
        "accuracy": macro.macro_rate(rows.correct, parts, level=level).estimate,
        "confidence": confidence(parts).estimate,
        "domains": _by_domain(
            parts,
            {
                "accuracy": lambda some: macro.macro_rate(rows.correct, some, level=level),
                "confidence": confidence,
            },
        ),
    }


def _by_domain(
    parts: Sequence[Leaf], measures: Mapping[str, Callable[[Sequence[Leaf]], macro.Macro]]
) -> list[dict[str, Any]]:
    return [
        {"domain": domain}
        | {
            name: measure([leaf for leaf in parts if leaf.domain == domain]).estimate
            for name, measure in measures.items()
        }
        for domain in dict.fromkeys(leaf.domain for leaf in parts)
    ]


def _change(
    rows: ScoreRows, by_k: Sequence[Mapping[str, Any]], probability: bool, level: float
) -> dict[str, Any]:
    """Return how accuracy, confidence and their gap change from few right answers to many."""
    few, many = by_k[0], by_k[-1]
    found: dict[str, Any] = {"from": few["k"], "to": many["k"]}
    for name in ("accuracy", "confidence"):
        known = few["n"] and many["n"]
        found[name] = macro.difference(few[name], many[name]) if known else None
    # A score that is no probability has no gap.
    sides = [rows.of_k([end["k"]]) for end in (few, many)]
    tested = probability and len(by_k) > 1
    found["gap"] = gap_change(*sides, level=level) if tested else None
    return found


def _of_mix(rows: ScoreRows, mix: Sequence[int], probability: bool, level: float) -> dict[str, Any]:
    parts = rows.domains()
    area = macro.macro_auroc(rows.confidence, rows.correct, parts, level=level)
    entry: dict[str, Any] = {
        "mix": list(mix),
        "n": int(rows.correct.size),
        "auroc": area.estimate,
        "left_out": list(area.left_out),
        "auroc_math_by_kind": macro.macro_auroc(
            rows.confidence, rows.correct, rows.leaves(), level=level
        ).estimate,
        "ece": None,
        "brier": None,
    }
    measures = {
        "auroc": lambda some: macro.macro_auroc(rows.confidence, rows.correct, some, level=level)
    }
    if probability and rows.correct.size:
        squares = (rows.confidence - rows.correct) ** 2
        entry["brier"] = macro.macro_mean(squares, parts, level=level, bounds=_SHARE).estimate
        entry["ece"] = macro.macro_ece(rows.confidence, rows.correct, parts, level=level)
        measures["brier"] = lambda some: macro.macro_mean(squares, some, level=level, bounds=_SHARE)
    entry["domains"] = _by_domain(parts, measures)
    return entry


def _correlations(
    rows: ScoreRows, coverage: pl.DataFrame | None, ks: Sequence[int], level: float
) -> dict[str, Any]:
    return {
        "coverage_correlation": _correlation(rows, coverage, level),
        "coverage_correlation_by_k": [
            {"k": k, "correlation": _correlation(rows.of_k([k]), coverage, level)} for k in ks
        ],
    }


def _correlation(rows: ScoreRows, coverage: pl.DataFrame | None, level: float) -> Estimate | None:
    if coverage is None:
        return None
    known = dict(zip(coverage["question_id"], coverage["coverage"], strict=True))
    both = [index for index, name in enumerate(rows.question.tolist()) if name in known]
    if not both:
        return Estimate(math.nan, math.nan, math.nan, n=0, level=level)
    values = [known[rows.question[index]] for index in both]
    return macro.spearman(values, rows.confidence[both], level=level)


def _coverage_table(
    frame: pl.DataFrame, coverage: pl.DataFrame | None, level: float
) -> list[dict[str, Any]]:
    """Return the mean coverage by model and k, over domains like everything else."""
    if coverage is None:
        return []
    columns = [c for c in ("question_id", "model", "k", "domain", "subtype") if c in frame.columns]
    joined = frame.select(columns).unique().join(coverage, on=["question_id", "model"])
    found = []
    for part in joined.sort("model", "k", "question_id").partition_by(
        ["model", "k"], maintain_order=True
    ):
        subtype = part["subtype"].fill_null("").to_numpy() if "subtype" in columns else None
        parts = leaves(part["domain"].to_numpy(), subtype)
        values = part["coverage"].to_numpy().astype(np.float64)
        found.append(
            {
                "model": part["model"][0],
                "k": part["k"][0],
                "coverage": macro.macro_mean(values, parts, level=level).estimate,
                # Questions with 0, 1, .. known answers; the last number is six and more (Fig. 10).
                "questions": np.bincount(
                    np.minimum(values.astype(np.int64), _MANY), minlength=_MANY + 1
                ).tolist(),
            }
        )
    return found


def gap_change(few: ScoreRows, many: ScoreRows, *, level: float = 0.95) -> dict[str, Any] | None:
    """Return how the gap between confidence and accuracy changes from few right answers to many.

    Below 0, confidence falls behind accuracy: variety among right answers is taken for doubt.
    Parts (domains, kinds of Math) that one side lacks are left out. The standard error counts
    one right and one wrong answer more in every part, so that a part where no answer was wrong
    still has a spread; degrees of freedom follow Welch and Satterthwaite.

    Parameters
    ----------
    few, many
        Scores on questions with few and with many right answers.
    level
        Coverage of the interval.

    Examples
    --------
    >>> rows = [ScoreRows(np.arange(100), np.full(100, c), np.arange(100) % 10 < right,
    ...                   np.full(100, k), np.full(100, "a"), None)
    ...         for c, right, k in ((0.8, 5, 1), (0.7, 7, 6))]
    >>> found = gap_change(*rows)
    >>> round(found["value"].value, 3), found["p_value"] < 0.001
    (-0.3, True)
    """
    names = {leaf.name for leaf in few.leaves()} & {leaf.name for leaf in many.leaves()}
    sides = [_side(rows, names) for rows in (few, many)]
    if not names or any(side is None for side in sides):
        return None
    before, after = (side for side in sides if side is not None)
    value = after.mean - before.mean
    error = math.hypot(before.error, after.error)
    freedom = error**4 / sum(side.fourth for side in (before, after))
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    low, high = max(value - reach, -2.0), min(value + reach, 2.0)
    return {
        "value": Estimate(value, low, high, n=before.n + after.n, level=level, interval="student"),
        "error": error,
        "freedom": freedom,
        "p_value": float(2 * special.stdtr(freedom, -abs(value) / error)),
        "accuracy": after.accuracy - before.accuracy,
        "confidence": after.confidence - before.confidence,
    }


@dataclass(frozen=True, slots=True)
class _Side:
    mean: float
    error: float
    fourth: float
    accuracy: float
    confidence: float
    n: int


def _side(rows: ScoreRows, names: set[str]) -> _Side | None:
    parts = [leaf for leaf in rows.leaves() if leaf.name in names]
    total = sum(leaf.weight for leaf in parts)
    if not parts or any(leaf.rows.size < 2 for leaf in parts):
        return None
    weights = [leaf.weight / total for leaf in parts]
    confidence = _weighted(rows.confidence, parts, weights)
    accuracy = _weighted(rows.correct, parts, weights)
    variances = [
        _variance(rows.confidence[leaf.rows], rows.correct[leaf.rows]) / leaf.rows.size
        for leaf in parts
    ]
    squares = [weight**2 * variance for weight, variance in zip(weights, variances, strict=True)]
    fourth = sum(
        square**2 / (leaf.rows.size - 1) for square, leaf in zip(squares, parts, strict=True)
    )
    n = sum(leaf.rows.size for leaf in parts)
    error = math.sqrt(sum(squares))
    return _Side(confidence - accuracy, error, fourth, accuracy, confidence, n)


def _weighted(values: NDArray[Any], parts: Sequence[Leaf], weights: Sequence[float]) -> float:
    return float(
        sum(weight * values[leaf.rows].mean() for weight, leaf in zip(weights, parts, strict=True))
    )


def _variance(confidence: NDArray[Any], correct: NDArray[Any]) -> float:
    """Return the variance of confidence minus grade with one right and one wrong answer more."""
    mean = confidence.mean()
    return float(np.var(np.append(confidence - correct, (mean - 1.0, mean)), ddof=1))
