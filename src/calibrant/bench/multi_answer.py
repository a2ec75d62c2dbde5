"""Confidence where several answers are right: by their number, on mixes, model against model."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from msgspec.structs import replace
from scipy import special

from calibrant.bench import macro, significance
from calibrant.bench.macro import Leaf, ScoreRows, leaves, mixes_of
from calibrant.core.arrays import Estimate, Floats
from calibrant.core.errors import InputError
from calibrant.metrics.stats.multiplicity import holm

_SHARE = (0.0, 1.0)
_MANY = 6
_COLUMNS = ("question_id", "model", "method", "confidence", "correct", "k", "domain")


def evaluate_multi_answer(
    frame: pl.DataFrame,
    *,
    mixes: Sequence[Sequence[int]] | None = None,
    reference: str = "sca",
    ranking_methods: Collection[str] = (),
    incomplete: Collection[tuple[str, str]] = (),
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
    incomplete
        Models and methods that lost too many rows: their numbers are about other questions, so
        they are compared with nothing, and no change with k is told of them.
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
    choice = [sorted(mix) for mix in mixes] if mixes is not None else mixes_of(ks)
    scores: dict[str, dict[str, ScoreRows]] = {}
    blocks = frame.partition_by("model", "method", maintain_order=True, as_dict=True)
    for (model, method), block in blocks.items():
        scores.setdefault(str(model), {})[str(method)] = ScoreRows.of(block)
    whole = {
        model: {name: rows for name, rows in own.items() if (model, name) not in incomplete}
        for model, own in scores.items()
    }
    settings = {name: significance.Setting(draws, items, level, seed, name) for name in scores}
    tests = {
        name: significance.tests_against(rows, reference, choice, settings[name])
        for name, rows in whole.items()
    }
    leading = [significance.leading_method(r, choice[-1], settings[n]) for n, r in whole.items()]
    methods = dict.fromkeys(method for by_method in scores.values() for method in by_method)
    probability = [method for method in methods if method not in ranking_methods]
    return {
        "schema": "calibrant.multi_answer/1",
        "k": ks,
        "mixes": choice,
        "domains": sorted(set(frame["domain"].to_list())),
        "reference": reference,
        "test": {"draws": draws, "items": items, "two_sided": True},
        "multiplicity": significance.correct_comparisons(
            test for by_method in tests.values() for group in by_method.values() for test in group
        ),
        "leading": list(filter(None, leading)),
        "between_models": between_models(whole, coverage, probability, ks, level),
        "results": [
            {
                "model": model,
                "method": method,
                "compared": (model, method) not in incomplete,
                **_entry(rows, ks, choice, method in probability, level),
                "significance": tests[model].get(method, []),
                **_correlations(rows, coverage, model, ks, level),
            }
            for model, by_method in scores.items()
            for method, rows in by_method.items()
        ],
        "coverage": _coverage_table(frame, coverage, level),
    }


def _entry(
    rows: ScoreRows, ks: Sequence[int], mixes: Sequence[list[int]], probability: bool, level: float
) -> dict[str, object]:
    # A score that is no probability may have any size, and no gap.
    bounds = _SHARE if probability else None

    def means(some: ScoreRows, parts: Sequence[Leaf]) -> dict[str, Estimate]:
        confidence = macro.macro_mean(some.confidence, parts, level=level, bounds=bounds)
        accuracy = macro.macro_rate(some.correct, parts, level=level)
        return {"accuracy": accuracy.estimate, "confidence": confidence.estimate}

    sides = [rows.of_k([k]) for k in ks]
    whole = [means(side, side.leaves()) for side in sides]
    changes = {
        name: macro.difference(first, whole[-1][name]) if sides[0].n and sides[-1].n else None
        for name, first in whole[0].items()
    }
    tested = probability and len(ks) > 1
    gap = gap_change(sides[0], sides[-1], level=level) if tested else None
    return {
        "probability": probability,
        "n": rows.n,
        "by_k": [
            {
                "k": k,
                "n": side.n,
                **estimates,
                "domains": [
                    {"domain": domain, **means(side, list(parts))}
                    for domain, parts in groupby(side.leaves(), lambda leaf: leaf.domain)
                ],
            }
            for k, side, estimates in zip(ks, sides, whole, strict=True)
        ],
        "change": {"from": ks[0], "to": ks[-1], **changes, "gap": gap},
        "mixes": [_of_mix(rows.of_k(mix), mix, probability, level) for mix in mixes],
    }


def _of_mix(
    rows: ScoreRows, mix: Sequence[int], probability: bool, level: float
) -> dict[str, object]:
    pair, squares = (rows.confidence, rows.correct), (rows.confidence - rows.correct) ** 2

    def area(parts: Sequence[Leaf]) -> Estimate:
        return macro.macro_auroc(*pair, parts, level=level).estimate

    def brier(parts: Sequence[Leaf]) -> Estimate:
        return macro.macro_mean(squares, parts, level=level, bounds=_SHARE).estimate

    parts, graded = rows.domains(), probability and rows.n > 0
    areas = [area([part]) for part in parts]
    return {
        "mix": list(mix),
        "n": rows.n,
        "auroc": area(parts),
        "left_out": [p.name for p, a in zip(parts, areas, strict=True) if math.isnan(a.value)],
        "auroc_math_by_kind": area(rows.leaves()),
        "ece": macro.macro_ece(*pair, parts, level=level) if graded else None,
        "brier": brier(parts) if graded else None,
        "domains": [
            {"domain": part.domain, "auroc": a, **({"brier": brier([part])} if graded else {})}
            for part, a in zip(parts, areas, strict=True)
        ],
    }


def _correlations(
    rows: ScoreRows, coverage: pl.DataFrame | None, model: str, ks: Sequence[int], level: float
) -> dict[str, object]:
    by_question = None if coverage is None else _answers_known(coverage, model)

    def correlation(some: ScoreRows) -> Estimate | None:
        if by_question is None:
            return None
        pair = [place for place, name in enumerate(some.question.tolist()) if name in by_question]
        values = [by_question[some.question[place]] for place in pair]
        return macro.spearman(values, some.confidence[pair], level=level)

    return {
        "coverage_correlation": correlation(rows),
        "coverage_correlation_by_k": [
            {"k": k, "correlation": correlation(rows.of_k([k]))} for k in ks
        ],
    }


def _coverage_table(
    frame: pl.DataFrame, coverage: pl.DataFrame | None, level: float
) -> list[dict[str, object]]:
    """Return the mean coverage by model and k, over domains like everything else."""
    if coverage is None:
        return []
    columns = [c for c in ("question_id", "model", "k", "domain", "subtype") if c in frame.columns]
    joined = frame.select(columns).unique().join(coverage, on=["question_id", "model"])
    ordered = joined.sort("model", "k", "question_id")
    by_k = ordered.partition_by("model", "k", maintain_order=True, as_dict=True)
    entries: list[dict[str, object]] = []
    for (model, k), part in by_k.items():
        subtype = part["subtype"].fill_null("").to_numpy() if "subtype" in columns else None
        parts = leaves(part["domain"].to_numpy(), subtype)
        values = part["coverage"].to_numpy().astype(np.float64)
        # Questions with 0, 1, .. known answers; the last number is six and more (Fig. 10).
        numbers = np.bincount(np.minimum(values.astype(np.int64), _MANY), minlength=_MANY + 1)
        mean = macro.macro_mean(values, parts, level=level).estimate
        entries.append({"model": model, "k": k, "coverage": mean, "questions": numbers.tolist()})
    return entries


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
    shared = {leaf.name for leaf in few.leaves()} & {leaf.name for leaf in many.leaves()}
    parts = [[leaf for leaf in rows.leaves() if leaf.name in shared] for rows in (few, many)]
    if not shared or any(leaf.rows.size < 2 for side in parts for leaf in side):
        return None
    before, after = map(_side, (few, many), parts)
    value = (after.confidence - after.accuracy) - (before.confidence - before.accuracy)
    error = math.hypot(math.sqrt(before.square), math.sqrt(after.square))
    freedom = error**4 / (before.fourth + after.fourth)
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


class _Side(NamedTuple):
    """Means at one end, the square of the error of their gap, and what its freedom is made of."""

    confidence: float
    accuracy: float
    square: float
    fourth: float
    n: int


def _side(rows: ScoreRows, parts: Sequence[Leaf]) -> _Side:
    total, n = sum(leaf.weight for leaf in parts), 0
    confidence = accuracy = squares = fourth = 0.0
    for leaf in parts:
        statement, right = rows.confidence[leaf.rows], rows.correct[leaf.rows]
        weight, mean = leaf.weight / total, statement.mean()
        # The variance of confidence minus grade with one right and one wrong answer more.
        variance = float(np.var(np.append(statement - right, (mean - 1.0, mean)), ddof=1))
        square = weight**2 * (variance / leaf.rows.size)
        confidence += float(weight * mean)
        accuracy += float(weight * right.mean())
        squares += square
        fourth += square**2 / (leaf.rows.size - 1)
        n += leaf.rows.size
    return _Side(confidence, accuracy, squares, fourth, n)


def between_models(
    rows: Mapping[str, Mapping[str, ScoreRows]],
    coverage: pl.DataFrame | None,
    probability: Sequence[str],
    ks: Sequence[int],
    level: float,
) -> list[dict[str, Any]]:
    """Return, per pair of models, how differently they change from few right answers to many.

    A change is the mean over domains at the largest number of right answers minus that at the
    smallest. Two models are compared question by question, on those that both have; p-values are
    Welch's, corrected by Holm's rule over all rows of this list.

    Parameters
    ----------
    rows
        Scores by model and method.
    coverage
        Columns question_id, model, coverage; None leaves known answers out.
    probability
        Methods whose score is a probability: only their confidences can be compared.
    ks
        Numbers of right answers.
    level
        Coverage of the intervals.
    """
    if len(ks) < 2:
        return []
    tested = [
        {"quantity": quantity, "method": method, "a": a, "b": b, **difference}
        for quantity, method, values in _quantities(rows, coverage, probability)
        for a, b in combinations(values, 2)
        if (difference := _difference(values[a], values[b], (ks[0], ks[-1]), level)) is not None
    ]
    for test, p in zip(tested, holm([test["p_value"] for test in tested]), strict=True):
        test["p_adjusted"] = float(p)
    return tested


def _quantities(
    rows: Mapping[str, Mapping[str, ScoreRows]],
    coverage: pl.DataFrame | None,
    probability: Sequence[str],
) -> Iterator[tuple[str, str | None, dict[str, ScoreRows]]]:
    """Yield what is compared, the confidence in an answer or the answers known: rows by model."""
    for method in probability:
        yield "confidence", method, {m: own[method] for m, own in rows.items() if method in own}
    if coverage is not None:
        counts = {}
        for model, by_method in rows.items():
            first = next(iter(by_method.values()))
            answers = _answers_known(coverage, model)
            values = np.array([answers.get(name, math.nan) for name in first.question.tolist()])
            counts[model] = replace(first, confidence=values).take(~np.isnan(values))
        yield "known answers", None, counts


def _answers_known(coverage: pl.DataFrame, model: str) -> dict[str, float]:
    part = coverage.filter(pl.col("model") == model)
    return dict(zip(part["question_id"], part["coverage"].cast(pl.Float64), strict=True))


def _difference(
    a: ScoreRows, b: ScoreRows, ends: tuple[int, int], level: float
) -> dict[str, Any] | None:
    first, second = a.shared(b)
    # A part with one question at either end shows no spread: it is left out.
    names = set.intersection(
        *({leaf.name for leaf in first.of_k([k]).leaves() if leaf.rows.size > 1} for k in ends)
    )
    changes, squares, fourth, n = [0.0, 0.0, 0.0], 0.0, 0.0, 0
    for k, sign in zip(ends, (-1.0, 1.0), strict=True):
        position = np.flatnonzero(first.k == k)
        a_rows, b_rows = first.take(position), second.take(position)
        parts = [leaf for leaf in a_rows.leaves() if leaf.name in names]
        if not parts:
            return None
        total = sum(leaf.weight for leaf in parts)
        for leaf in parts:
            values = (a_rows.confidence[leaf.rows], b_rows.confidence[leaf.rows])
            gap: Floats = values[0] - values[1]
            weight = leaf.weight / total
            for place, subset in enumerate((gap, *values)):
                changes[place] += sign * weight * float(subset.mean())
            square = weight**2 * float(gap.var(ddof=1)) / leaf.rows.size
            squares += square
            fourth += square**2 / (leaf.rows.size - 1)
            n += leaf.rows.size
    value, error = changes[0], math.sqrt(squares)
    if error == 0:
        return None
    freedom = squares**2 / fourth
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    estimate = Estimate(value, value - reach, value + reach, n=n, level=level, interval="student")
    p = float(2 * special.stdtr(freedom, -abs(value) / error))
    return {"difference": estimate, "change_a": changes[1], "change_b": changes[2], "p_value": p}
