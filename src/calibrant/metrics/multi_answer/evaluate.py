"""The evaluation as one document: by number of right answers, by mix, against a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.metrics.multi_answer.calibration import macro_ece
from calibrant.metrics.multi_answer.coverage import spearman
from calibrant.metrics.multi_answer.leaves import Leaf, leaves, mixes_of
from calibrant.metrics.multi_answer.macro import (
    Macro,
    difference,
    macro_auroc,
    macro_mean,
    macro_rate,
)
from calibrant.metrics.multi_answer.multiplicity import correct_comparisons
from calibrant.metrics.multi_answer.significance import compare_aurocs

__all__ = ["evaluate_multi_answer"]

Array = NDArray[Any]
_SHARE = (0.0, 1.0)
_COLUMNS = ("question_id", "model", "method", "confidence", "correct", "k", "domain")


@dataclass(frozen=True)
class _Rows:
    """The scores of one model and method as arrays."""

    question: Array
    confidence: Array
    correct: Array
    k: Array
    domain: Array
    subtype: Array | None

    @classmethod
    def of(cls, frame: pl.DataFrame) -> _Rows:
        subtype = frame["subtype"].fill_null("").to_numpy() if "subtype" in frame.columns else None
        return cls(
            question=frame["question_id"].to_numpy(),
            confidence=frame["confidence"].to_numpy().astype(np.float64),
            correct=frame["correct"].cast(pl.Float64).to_numpy(),
            k=frame["k"].to_numpy(),
            domain=frame["domain"].to_numpy(),
            subtype=subtype,
        )

    def take(self, rows: Array) -> _Rows:
        subtype = None if self.subtype is None else self.subtype[rows]
        return _Rows(
            self.question[rows],
            self.confidence[rows],
            self.correct[rows],
            self.k[rows],
            self.domain[rows],
            subtype,
        )

    def of_k(self, ks: Collection[int]) -> _Rows:
        return self.take(np.flatnonzero(np.isin(self.k, list(ks))))

    def leaves(self) -> list[Leaf]:
        return leaves(self.domain, self.subtype)

    def domains(self) -> list[Leaf]:
        """Whole domains: AUROC pools the kinds of Math, as the paper does (C.2)."""
        return leaves(self.domain, None)


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
    question, corrected by Holm's rule for the number of tests;
    and the rank correlation of confidence with knowledge coverage.

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
    results = []
    for by_model in frame.partition_by("model", maintain_order=True):
        model = str(by_model["model"][0])
        rows = {
            str(part["method"][0]): _Rows.of(part)
            for part in by_model.partition_by("method", maintain_order=True)
        }
        for name, found in rows.items():
            entry = _entry(found, ks, chosen, probability=name not in ranking_methods, level=level)
            tests = _tests(rows, name, reference, chosen, draws, items, level, (seed, model))
            known = None if coverage is None else coverage.filter(pl.col("model") == model)
            results.append(
                {
                    "model": model,
                    "method": name,
                    "probability": name not in ranking_methods,
                    "n": int(found.correct.size),
                    **entry,
                    "significance": tests,
                    "coverage_correlation": _correlation(found, known, level),
                    "coverage_correlation_by_k": [
                        {"k": k, "correlation": _correlation(found.of_k([k]), known, level)}
                        for k in ks
                    ],
                }
            )
    return {
        "schema": "calibrant.multi_answer/1",
        "k": ks,
        "mixes": chosen,
        "domains": sorted(set(frame["domain"].to_list())),
        "reference": reference,
        "test": {"draws": draws, "items": items, "two_sided": True},
        "multiplicity": correct_comparisons(
            test for entry in results for test in entry["significance"]
        ),
        "results": results,
        "coverage": _coverage_table(frame, coverage, level),
    }


def _entry(
    rows: _Rows,
    ks: Sequence[int],
    mixes: Sequence[Sequence[int]],
    *,
    probability: bool,
    level: float,
) -> dict[str, Any]:
    # A score that is no probability may have any size.
    bounds = _SHARE if probability else None
    return {
        "by_k": [_of_k(rows.of_k([k]), k, level, bounds) for k in ks],
        "change": _change(rows, ks, level, bounds),
        "mixes": [_of_mix(rows.of_k(mix), mix, probability, level) for mix in mixes],
    }


def _of_k(rows: _Rows, k: int, level: float, bounds: tuple[float, float] | None) -> dict[str, Any]:
    parts = rows.leaves()

    def confidence(some: Sequence[Leaf]) -> Macro:
        return macro_mean(rows.confidence, some, level=level, bounds=bounds)

    return {
        "k": k,
        "n": int(rows.correct.size),
        "accuracy": macro_rate(rows.correct, parts, level=level).estimate,
        "confidence": confidence(parts).estimate,
        "domains": _by_domain(
            parts,
            {
                "accuracy": lambda some: macro_rate(rows.correct, some, level=level),
                "confidence": confidence,
            },
        ),
    }


def _by_domain(
    parts: Sequence[Leaf], measures: Mapping[str, Callable[[Sequence[Leaf]], Macro]]
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
    rows: _Rows, ks: Sequence[int], level: float, bounds: tuple[float, float] | None
) -> dict[str, Any]:
    """Return how accuracy and confidence change from the fewest to the most right answers."""
    found: dict[str, Any] = {"from": ks[0], "to": ks[-1]}
    ends = [_of_k(rows.of_k([k]), k, level, bounds) for k in (ks[0], ks[-1])]
    for name in ("accuracy", "confidence"):
        few, many = (end[name] for end in ends)
        found[name] = difference(few, many) if min(end["n"] for end in ends) else None
    return found


def _of_mix(rows: _Rows, mix: Sequence[int], probability: bool, level: float) -> dict[str, Any]:
    parts = rows.domains()
    area = macro_auroc(rows.confidence, rows.correct, parts, level=level)
    entry: dict[str, Any] = {
        "mix": list(mix),
        "n": int(rows.correct.size),
        "auroc": area.estimate,
        "left_out": list(area.left_out),
        "auroc_math_by_kind": macro_auroc(
            rows.confidence, rows.correct, rows.leaves(), level=level
        ).estimate,
        "ece": None,
        "brier": None,
    }
    measures = {"auroc": lambda some: macro_auroc(rows.confidence, rows.correct, some, level=level)}
    if probability and rows.correct.size:
        squares = (rows.confidence - rows.correct) ** 2
        entry["brier"] = macro_mean(squares, parts, level=level, bounds=_SHARE).estimate
        entry["ece"] = macro_ece(rows.confidence, rows.correct, parts, level=level)
        measures["brier"] = lambda some: macro_mean(squares, some, level=level, bounds=_SHARE)
    entry["domains"] = _by_domain(parts, measures)
    return entry


def _tests(
    rows: Mapping[str, _Rows],
    name: str,
    reference: str,
    mixes: Sequence[Sequence[int]],
    draws: int,
    items: int,
    level: float,
    stream: tuple[int, str],
) -> list[dict[str, Any]]:
    """Test one method against the reference on the questions that both have scored."""
    if name == reference or reference not in rows:
        return []
    ours, theirs = rows[reference], rows[name]
    _, left, right = np.intersect1d(ours.question, theirs.question, return_indices=True)
    found = []
    for mix in mixes:
        kept = np.isin(ours.k[left], list(mix))
        a, b = ours.take(left[kept]), theirs.take(right[kept])
        if not a.correct.size:
            continue
        everything = [Leaf("all", None, np.arange(a.correct.size), 1.0)]
        tests = {}
        differ = int(np.count_nonzero(a.correct != b.correct))
        views = [("macro", a.domains(), a.correct), ("pooled", everything, a.correct)]
        views += [("own", a.domains(), b.correct)] if differ else []
        for kind, parts, outcome in views:
            # The draws depend on the mix only, so all methods meet the same questions.
            rng = named_stream(stream[0], "test", stream[1], kind, mix)
            tests[kind] = compare_aurocs(
                (a.confidence, outcome),
                (b.confidence, outcome),
                parts,
                draws=draws,
                items=items,
                level=level,
                rng=rng,
            )
        own = tests.get("own", tests["macro"])
        found.append(
            {
                "mix": list(mix),
                "n": int(a.correct.size),
                "items": tests["macro"].items,
                "not_shared": int(np.isin(ours.k, list(mix)).sum() - a.correct.size),
                "difference": tests["macro"].difference,
                "p": tests["macro"].p,
                "p_student": tests["macro"].p_student,
                "pooled_difference": tests["pooled"].difference,
                "pooled_p": tests["pooled"].p,
                "pooled_p_student": tests["pooled"].p_student,
                "outcome": f"the answer that {reference} is about",
                "outcomes_differ": differ,
                "own_difference": own.difference,
                "own_p": own.p,
            }
        )
    return found


def _correlation(rows: _Rows, coverage: pl.DataFrame | None, level: float) -> Estimate | None:
    if coverage is None:
        return None
    known = dict(zip(coverage["question_id"], coverage["coverage"], strict=True))
    both = [index for index, name in enumerate(rows.question.tolist()) if name in known]
    if not both:
        return Estimate(math.nan, math.nan, math.nan, n=0, level=level)
    values = [known[rows.question[index]] for index in both]
    return spearman(values, rows.confidence[both], level=level)


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
                "coverage": macro_mean(values, parts, level=level).estimate,
            }
        )
    return found
