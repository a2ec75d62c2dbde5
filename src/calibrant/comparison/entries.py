"""Entries of the comparison document: one per model, one per pair, and how often orders turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy import special

from calibrant.comparison import ece_interval
from calibrant.comparison.decision import blind_spots, exchangeability
from calibrant.comparison.evidence import (
    PAPER_VIEWS,
    Described,
    PairEvidence,
    design_effect,
    interval,
    mean_interval,
    normal_interval,
    rate_interval,
    squared_gap_z,
    without_ends,
)
from calibrant.comparison.footings import AlignedScores, SharedViews
from calibrant.comparison.league import corp_parts
from calibrant.comparison.pipeline import ComparisonOptions, PairViews
from calibrant.comparison.questions import CandidateTable, Resamples
from calibrant.comparison.reversal import FAIR, reversal_pattern, reverses
from calibrant.comparison.statements import MASS_BINS
from calibrant.comparison.survey import CELLS, AnswerCounts, cell_index, mass_bins
from calibrant.core.arrays import Estimate, Floats, Indices
from calibrant.findings.claims.compare import LEAST_QUESTIONS
from calibrant.findings.documents.entries import SharedAnswers
from calibrant.metrics.stats.binning import width_edges
from calibrant.metrics.stats.floors import passive_floor
from calibrant.metrics.stats.intervals import area_interval
from calibrant.metrics.stats.ranking import Ranked

SPREAD = "bootstrap-normal"
# Names of numbers that come from a test.
_TESTED = frozenset({"p_accuracy", "p_gap"})
_CURVE_TARGETS = np.linspace(0.05, 0.95, 19)


def result_entry(
    model: int,
    name: str,
    own: SharedViews,
    survey: AnswerCounts,
    judge: CandidateViews | None,
    level: float,
) -> dict[str, Any]:
    """Return what is known of one model on all its questions."""
    n = own.n
    number, total, squares = survey.moments[model]
    views = {view: _scores(own.paper[view], level) for view in ("raw", "da", "ia")}
    if judge is not None:
        views["ca"] = _scores(judge.scores, level)
    for view, place in (("os_weakest", own.shifted), ("os_strongest", own.strongest)):
        assert place is not None
        views[view] = {"ece": ece_interval.ece_estimate(place.table, n, level=level)}
    graded, right = survey.own_accuracy(model)
    of_right = of_said = 1.0
    if survey.clusters:
        of_right = design_effect(own.accuracy, right * (1 - right), n)
        spread = squares / number - (total / number) ** 2
        of_said = design_effect(own.lean + own.accuracy, spread, n)
    confidence, design = (survey.stated[model], survey.cells[model]), max(of_right, of_said)
    return {
        "model": name,
        "n": n,
        "accuracy": rate_interval(right, graded, level, of_right),
        "unstated": graded - n,
        "mean_confidence": mean_interval(round(number), total, squares, level, of_said),
        "views": views,
        # What does not depend on the other models' accuracy: direction, separation, parts.
        "companions": {
            "over_confidence": interval(own.lean, n, level=level),
            "auroc": _area(survey.cells[model], *confidence, level, design),
            "auroc_shared": _area(survey.shared[model], *confidence, level, design),
            "corp": corp_parts(survey, model, even=False),
        },
        "target_curve": {
            "target": _CURVE_TARGETS.tolist(),
            "ece": own.target_curve(_CURVE_TARGETS).tolist(),
        },
    }


def _scores(scores: AlignedScores, level: float) -> dict[str, Estimate]:
    assert scores.residuals is not None
    return {
        "brier": interval(scores.brier, scores.n, level=level),
        "ece": _of_enough(ece_interval.ece_estimate(scores.residuals, scores.n, level=level)),
    }


def _of_enough(estimate: Estimate) -> Estimate:
    """Return an estimate, without an interval where a view leaves too few questions for one."""
    return estimate if estimate.n >= LEAST_QUESTIONS else without_ends(estimate)


def _area(cells: Floats, stated: Floats, held_in: Floats, level: float, design: float) -> Estimate:
    """Return the area under the ROC curve from counts by confidence, with an interval."""
    wrong, right = cells
    used = (wrong + right) > 0
    n = round(float(right.sum() + wrong.sum()))
    if not right.sum() or not wrong.sum():
        return Estimate(math.nan, math.nan, math.nan, n, level, interval="none")
    confidence = stated[used] / held_in.sum(axis=0)[used]
    weight = (right + wrong)[used]
    ranking = Ranked.of(
        np.tile(confidence, 2),
        np.repeat([1.0, 0.0], confidence.size),
        np.concatenate([right[used], wrong[used]]),
        rows=False,
    )
    area, influence = ranking.measured("auroc")
    error = math.sqrt(influence.second_moment(ranking) * design) / weight.sum()
    outcomes = float(right.sum()) / design, float(wrong.sum()) / design
    low, high, how = area_interval(area, error, *outcomes, level)
    return Estimate(area, low, high, n, level, interval=how)


def pair_entry(
    pair: PairViews,
    models: Sequence[str],
    evidence: PairEvidence,
    described: Described,
    judges: tuple[CandidateViews | None, CandidateViews | None],
    survey: AnswerCounts,
    options: ComparisonOptions,
) -> dict[str, Any]:
    """Return what is known of one pair on the questions that both models have."""
    first, second, level = pair.first, pair.second, options["level"]
    sizes = {view: first.paper[view].n for view in PAPER_VIEWS}
    difference = {view: described[view] for view in PAPER_VIEWS}
    verdicts = {}
    if judges[0] is not None and judges[1] is not None:
        one, latter = judges[0].scores, judges[1].scores
        sizes["ca"] = one.n
        difference["ca"] = ece_interval.gaps_of(
            np.stack([one.brier - latter.brier, one.ece - latter.ece])
        )
        verdicts = {"judges": judges_entry((judges[0], judges[1]), level)}
    gaps = {
        view: {
            "brier": normal_interval(brier.value, brier.sd, sizes[view], level, SPREAD),
            "ece": _of_enough(ece.estimate(sizes[view], level=level)),
        }
        for view, (brier, ece) in difference.items()
    }
    # An undefined gap shows nothing either.
    ties = {
        view: {name: not (part.low > 0 or part.high < 0) for name, part in gap.items()}
        for view, gap in gaps.items()
    }
    values = {view: gap["ece"].value for view, gap in gaps.items()}
    fair = {name: evidence.gaps[key].estimate(first.n) for name, key in footing_names(pair).items()}
    gaps |= {name: {"ece": gap} for name, gap in fair.items() if name != "raw"}
    flipped = {view: (values["raw"], values[view]) for view in difference if view != "raw"}
    by_brier = {view: (gaps["raw"]["brier"].value, gaps[view]["brier"].value) for view in flipped}
    flipped |= {view: (fair["raw"].value, fair[view].value) for view in FAIR}
    agreed = float(survey.agreed[pair.a, pair.b])
    graded = survey.more_accurate(pair.a, pair.b)[0]
    weighted = min(first.effective, second.effective)
    wrong = 1 - float(first.accuracy[0] + second.accuracy[0]) / 2
    return {
        "a": models[pair.a],
        "b": models[pair.b],
        "n": first.n,
        "accuracy_gap": normal_interval(evidence.lead, evidence.lead_sd, graded, level),
        "p_accuracy": evidence.p_accuracy,
        "gaps": gaps,
        "errors": {"a": float(first.raw.error[0]), "b": float(second.raw.error[0])},
        "rms": {"a": first.raw.rms, "b": second.raw.rms},
        # The worst-case precision of these labels: it is shown, and decides nothing.
        "floor": passive_floor(error_rate=wrong, labels=first.n, lipschitz=options["lipschitz"]),
        "ties": ties,
        "p_value": {
            view: _p_value(ece, sizes[view], weighted if view == "da" else sizes[view])
            for view, (_, ece) in difference.items()
        },
        "reversal": {view: reverses(*sides) for view, sides in flipped.items()},
        "reversal_brier": {view: reverses(*sides) for view, sides in by_brier.items()},
        "pattern": reversal_pattern(values),
        "retention": agreed / first.n if first.n else math.nan,
        "target": first.target,
        "effective_size": {"a": first.effective, "b": second.effective},
        "evidence": _evidence_entry(pair, evidence, fair, survey),
        "shared": blind_spots(pair, described["halves"], level),
        "exchangeability": exchangeability(pair, models),
    } | verdicts


def _evidence_entry(
    pair: PairViews, evidence: PairEvidence, fair: dict[str, Estimate], survey: AnswerCounts
) -> dict[str, Any]:
    """Return what the verdict on a pair rests on; `fair` are its gaps by footing."""
    names = footing_names(pair)
    return {
        "level": ece_interval.VERDICT_LEVEL,
        "footings": {
            name: {"gap": gap, "p_gap": evidence.gaps[names[name]].p_value}
            for name, gap in fair.items()
        },
        "equivalence_bound": evidence.bound,
        "laws": {"wrong": evidence.laws_high[0], "right": evidence.laws_high[1]},
        "near_certain": evidence.clip,
        "unstated": (survey.missing(pair.a, pair.b)[0] + survey.missing(pair.b, pair.a)[0]) / 2,
        "at_least": abs(evidence.certain_part()),
    }


def footing_names(pair: PairViews) -> dict[str, str]:
    """Return the names of the footings in the document, and what the evidence calls them."""
    low, high = ("a", "b") if pair.first.accuracy[0] <= pair.second.accuracy[0] else ("b", "a")
    return {
        "raw": "raw",
        "os_weakest": f"os_{low}",
        "os_strongest": f"os_{high}",
        "os_weakest_near": f"os_{low}_near",
        "os_strongest_near": f"os_{high}_near",
        "sda": "sda",
        "sos": "sos",
    }


def untested_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a pair with too few questions in common: values, no interval, no test."""

    def bare(part: Any) -> Any:
        if isinstance(part, Estimate):
            return without_ends(part)
        if isinstance(part, dict):
            return {
                name: math.nan if name in _TESTED and value is not None else bare(value)
                for name, value in part.items()
            }
        if isinstance(part, SharedAnswers):
            return replace(part, a=bare(part.a), b=bare(part.b))
        return [bare(item) for item in part] if isinstance(part, list) else part

    stripped: dict[str, Any] = bare({**entry, "p_value": {}})
    ties = {view: dict.fromkeys(of, True) for view, of in entry["ties"].items()}
    p_values = dict.fromkeys(entry["p_value"], math.nan)
    unlike = [replace(row, p_value=None) for row in stripped["exchangeability"]]
    return {**stripped, "ties": ties, "p_value": p_values, "exchangeability": unlike}


def _p_value(gap: ece_interval.Gap, n: int, units: float) -> float:
    """Return the p-value of a view's ECE gap, from the questions that the view leaves."""
    return gap.student_p_value(units) if n >= LEAST_QUESTIONS else math.nan


def judges_entry(both: tuple[CandidateViews, CandidateViews], level: float) -> dict[str, Any]:
    """Return who judges the shared candidates better: both tests of the error must agree."""
    first, second = both
    n = first.scores.n
    gaps = first.statistics.error - second.statistics.error
    z = squared_gap_z(first.statistics, second.statistics)
    (difference,) = ece_interval.gaps_of(gaps[None])
    gap, p_gap = difference.estimate(n, level=level), difference.student_p_value(n)
    p_square = float(2 * special.ndtr(-abs(z)))
    side = (gap.low > 0) - (gap.high < 0)
    return {
        "gap": gap,
        "p_value": max(p_gap, p_square) if n >= LEAST_QUESTIONS else math.nan,
        "side": side if side * z > 0 else 0,
    }


class CandidateViews(Struct, frozen=True):
    """A judge on a pool of candidates: scores with equal-width bins, and statistics of the test."""

    scores: AlignedScores
    statistics: ece_interval.Residuals


def complete_questions(pool: CandidateTable, members: Sequence[int]) -> Indices:
    """Return the questions where each of these models scored the answer of each of them."""
    choice = np.asarray(members)
    judges = pool.confidence[choice[:, None], choice[None]]
    return np.flatnonzero(~np.isnan(judges).any(axis=(0, 1)))


def candidate_views(
    pool: CandidateTable, resamples: Resamples, judge: int, members: Sequence[int], *, bins: int
) -> CandidateViews | None:
    """Return a judge's scores on the answers of all members; None without a complete question.

    An answer that several members gave counts once.
    """
    rows = complete_questions(pool, members)
    if not rows.size:
        return None
    choice = np.asarray(members)[:, None]
    identity, grade = pool.identity[choice, rows], pool.correct[choice, rows]
    confidence = pool.confidence[judge][choice, rows]
    weight = 1.0 / (identity[:, None] == identity[None]).sum(axis=1)
    cell = cell_index(confidence.ravel())
    per_cell = np.bincount(cell, weight.ravel(), CELLS).astype(np.float64)
    mass = mass_bins(per_cell)[cell].reshape(confidence.shape)
    width = np.searchsorted(width_edges(bins)[1:-1], confidence, side="right")
    table = np.zeros((bins + 2 * MASS_BINS + 2, rows.size))
    column = np.arange(rows.size)
    for author in range(len(members)):
        w, residual = weight[author], weight[author] * (confidence[author] - grade[author])
        table[width[author], column] += residual
        table[bins + mass[author], column] += residual
        table[bins + MASS_BINS + mass[author], column] += w
        table[-2] += residual * (confidence[author] - grade[author])
        table[-1] += w
    sums = Resamples(resamples.counts[rows]).totals(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums[:-1] / sums[-1]
    residuals, share = shares[None, bins : bins + MASS_BINS], shares[None, bins + MASS_BINS : -1]
    data = residuals[..., :1], share[..., :1]
    return CandidateViews(
        AlignedScores(shares[-1], np.abs(shares[:bins]).sum(axis=0), rows.size, shares[:bins]),
        *ece_interval.residuals_of(data, (residuals, share)),
    )


def self_preference(
    pool: CandidateTable, models: Sequence[str], resamples: Resamples, *, level: float
) -> list[dict[str, Any]]:
    """Return how much more each judge trusts its own answers than the other judges would.

    Within a question, two different answers of the same grade are compared: the judge's own minus
    another model's, as this judge scores them, minus the same difference as the other judges
    score it. A judge that knows more scores right answers higher and wrong ones lower, whoever
    gave them, and shows no preference. With two judges only the sum of both preferences is seen.
    """
    rows = []
    for judge, name in enumerate(models):
        halves = []
        for grade in (1.0, 0.0):
            total, number = _preferences(pool, judge, grade)
            sums = resamples.totals(np.stack([total, number]))
            with np.errstate(divide="ignore", invalid="ignore"):
                halves.append((sums[0] / sums[1], int((number > 0).sum())))
        means = [mean for mean, size in halves if size]
        pair = np.mean(means, axis=0) if means else np.full(resamples.counts.shape[1], np.nan)
        right, wrong = (interval(mean, size, level=level) for mean, size in halves)
        size = halves[0][1] + halves[1][1]
        rows.append(
            {
                "judge": name,
                "bias": interval(pair, size, level=level),
                "on_right": right,
                "on_wrong": wrong,
                "judges": len(models),
            }
        )
    return rows


def _preferences(pool: CandidateTable, judge: int, grade: float) -> tuple[Floats, Floats]:
    """Return, per question, the summed preference over comparable answers and their number."""
    authors, size = pool.correct.shape
    total, number = np.zeros((2, size))
    for author in [item for item in range(authors) if item != judge]:
        alike = (pool.correct[judge] == grade) & (pool.correct[author] == grade)
        alike &= pool.identity[judge] != pool.identity[author]
        gaps = pool.confidence[:, judge] - pool.confidence[:, author]
        # Third judges have no stake in either answer; of two models the other author is all.
        third = [item for item in range(authors) if item not in (judge, author)] or [author]
        request = ~np.isnan(gaps[third])
        others = np.where(request, gaps[third], 0.0).sum(axis=0) / np.maximum(
            request.sum(axis=0), 1
        )
        usable = alike & request.any(axis=0) & ~np.isnan(gaps[judge])
        total += np.where(usable, gaps[judge] - others, 0.0)
        number += usable
    return total, number
