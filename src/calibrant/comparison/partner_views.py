"""One model on the questions that it shares with another: every view, in data and resamples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.comparison.odds import TARGETS, ViewStatistics, log_odds, odds_view
from calibrant.comparison.odds import target_accuracies as targets
from calibrant.comparison.sums import ModelSums
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError

# The views that decide: confidences as stated, and shifted to three common accuracies.
ODDS_VIEWS = ("raw", *(f"os_{name}" for name in TARGETS))


@dataclass(frozen=True, slots=True)
class Scores:
    """Brier score and equal-width ECE in the data and in every resample, and rows behind them.

    `residuals` (bins, 1 + resamples) are kept where an interval of the ECE itself is wanted.
    """

    brier: Floats
    ece: Floats
    n: int
    residuals: Floats | None = None

    @classmethod
    def of(cls, brier: Floats, residuals: Floats, n: float) -> Scores:
        """Return the scores of the summed residuals of every bin."""
        return cls(brier, np.abs(residuals).sum(axis=0), round(n), residuals)

    def without_residuals(self) -> Scores:
        """Return the same with what a gap needs alone."""
        return replace(self, residuals=None)


@dataclass(frozen=True, slots=True)
class PartnerViews:
    """What the views show of a model on the questions that it shares with a partner.

    `odds` holds the four views that decide, `paper` the raw, instance- and distribution-aligned
    views of the literature at the accuracy `target`, `behaviour` the mean distribution-aligned
    ECE at the accuracies of the weaker and of the stronger model. `score` is the model's skill at
    even odds. `halves` (2, 1 + resamples) is the mean confidence where both are wrong and where
    both are right, `halves_n` their number, `by_outcome` the mean confidence of wrong and of
    right answers. `gaps` (2, bins, 1 + resamples) are equal-width residuals of wrong and of
    right answers.
    """

    n: int
    accuracy: Floats
    odds: dict[str, ViewStatistics]
    paper: dict[str, Scores]
    behaviour: Floats
    score: Floats
    halves_n: Floats
    halves: Floats
    by_outcome: Floats
    target: float
    effective: dict[str, float]
    sharing: list[dict[str, float]]
    histogram: Floats
    constant: float | None
    gaps: Floats

    @property
    def lean(self) -> Floats:
        """Mean confidence minus accuracy, in the data and in every resample."""
        total: Floats = self.gaps.sum(axis=(0, 1))
        return total

    def target_curve(self, targets: Floats) -> Floats:
        """Return the distribution-aligned ECE at every target accuracy, (targets,)."""
        accuracy = float(self.accuracy[0])
        wrong, right = self.gaps[:, :, 0, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = right * (targets / accuracy) + wrong * ((1 - targets) / (1 - accuracy))
        curve: Floats = np.abs(gaps).sum(axis=0)
        return curve


def known_target(target: str | float) -> str | float:
    """Return the target accuracy as given, or refuse it."""
    if isinstance(target, str) and target not in TARGETS:
        raise InputError(f"target is {', '.join(TARGETS)} or a number, got {target!r}")
    return target


def common_accuracy(accuracies: Floats, target: str | float) -> Floats:
    """Return the accuracy that models (rows) are brought to, in data and resamples."""
    if not isinstance(target, str):
        return np.full(accuracies.shape[1], float(target))
    if target == "mean":
        return np.asarray(accuracies.mean(axis=0))
    ends = accuracies.min(axis=0) if target == "weakest" else accuracies.max(axis=0)
    return np.asarray(ends)


def all_partner_views(
    sums: ModelSums, survey: Survey, model: int, *, target: str | float
) -> list[PartnerViews]:
    """Return the views of a model with every partner; partners with the same questions share."""
    raw: dict[int, tuple[ViewStatistics, Scores]] = {}
    found = []
    for partner in range(len(survey.moments)):
        kind = int(sums.kind[partner])
        if kind not in raw:
            own = survey.accuracy(model, partner)
            raw[kind] = (
                odds_view(sums.outcome_sums(partner, 0), own),
                aligned_scores(sums, partner, own, own),
            )
        found.append(_partner_views(sums, survey, model, partner, target, raw[kind]))
    return found


def _partner_views(
    sums: ModelSums,
    survey: Survey,
    model: int,
    partner: int,
    target: str | float,
    raw: tuple[ViewStatistics, Scores],
) -> PartnerViews:
    """Return every view of a model on the questions that it shares with `partner`.

    As its own partner a model is seen on all its questions: the targets are those of all models,
    and shared outcomes are those that all of them share.
    """
    own = survey.accuracy(model, partner)
    if partner == model:
        goals = survey.league_goals()
        everyone = np.stack([survey.accuracy(m, m) for m in range(len(survey.moments))])
    else:
        everyone = np.stack([own, survey.accuracy(partner, model)])
        goals = targets(*everyone)
    shifts, slots = survey.shifts(model, partner)
    odds = {"raw": raw[0]}
    for name, goal in goals.items():
        shifted = sums.outcome_sums(partner, slots[name])
        odds[f"os_{name}"] = odds_view(shifted, own, goal, shifts[name])
    chosen = common_accuracy(everyone, target)
    paper = {
        "raw": raw[1],
        "da": aligned_scores(sums, partner, own, chosen),
        "ia": shared_scores(sums, partner),
    }
    if partner != model:
        paper = {view: scores.without_residuals() for view, scores in paper.items()}
    ends = [
        aligned_scores(sums, partner, own, goals[name]).ece for name in ("weakest", "strongest")
    ]
    outcomes = sums.mass[sums.kind[partner], 0].sum(axis=1)[:, 0]
    said = sums.mass[sums.kind[partner], :2].sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        halves = sums.halves[partner, 3] / sums.halves[partner, 2]
        by_outcome = said[1] / said[0]
    return PartnerViews(
        survey.common(model, partner),
        own,
        odds,
        paper,
        (ends[0] + ends[1]) / 2,
        even_odds_score(sums, survey, model, partner),
        sums.halves[partner, 2, :, 0],
        halves,
        by_outcome,
        float(chosen[0]),
        {"da": effective_size(outcomes, float(chosen[0]))}
        | {f"os_{name}": effective_size(outcomes, float(goals[name][0])) for name in goals},
        sharing_distances(sums.ranks[partner]),
        sums.histogram[partner],
        survey.constant(model),
        _width_gaps(sums, partner, whole=partner == model),
    )


def _width_gaps(sums: ModelSums, partner: int, *, whole: bool) -> Floats:
    """Return residuals by outcome and bin; of pairs those of the data alone are kept."""
    kind = sums.kind[partner]
    total = sums.mass[kind, 0].sum(axis=(0, 1))
    gaps: Floats = sums.width[kind] / total
    return gaps if whole else gaps[:, :, :1].copy()


def sharing_distances(ranks: Floats) -> list[dict[str, float]]:
    """Return, for wrong and for right answers, how confidence differs with the partner's outcome.

    The largest distance between the distributions of confidence where the partner shares the
    outcome and where it does not, and how many answers are behind each.
    """
    found = []
    for alone, shared in (ranks[:2], ranks[2:]):
        sizes = shared.sum(), alone.sum()
        distance = float("nan")
        if sizes[0] and sizes[1]:
            steps = np.cumsum(shared) / sizes[0] - np.cumsum(alone) / sizes[1]
            distance = float(np.abs(steps).max())
        found.append({"shared": int(sizes[0]), "alone": int(sizes[1]), "distance": distance})
    return found


def aligned_scores(sums: ModelSums, partner: int, accuracy: Floats, goal: Floats) -> Scores:
    """Return the distribution-aligned scores; at the model's own accuracy they are the raw ones."""
    kind = sums.kind[partner]
    wrong, right = sums.width[kind]
    total = sums.mass[kind, 0].sum(axis=(0, 1))
    square, spread = sums.totals[kind, :2]
    with np.errstate(divide="ignore", invalid="ignore"):
        if goal is accuracy:
            up = down = 1 / total
        else:
            # A resample without right or without wrong answers has no such weights: NaN.
            up, down = goal / accuracy / total, (1 - goal) / (1 - accuracy) / total
        brier = up * square[1] + down * square[0] - spread.sum(axis=0) / total
        return Scores.of(brier, up * right + down * wrong, float(total[0]))


def shared_scores(sums: ModelSums, partner: int) -> Scores:
    """Return the scores on questions where both have the same outcome; NaN without any."""
    number, square = sums.halves[partner, :2].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Scores.of(square / number, sums.same[partner] / number, float(number[0]))


def even_odds_score(sums: ModelSums, survey: Survey, model: int, partner: int) -> Floats:
    """Return 1 - Brier / 0.25 with confidences shifted to accuracy 0.5, in data and resamples.

    A constant confidence scores 0, whatever the accuracy; other models do not enter.
    """
    kind = sums.kind[partner]
    accuracy = survey.accuracy(model, partner)
    total = sums.mass[kind, 0].sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = log_odds(survey.accuracy(model, model)[:1]) - log_odds(accuracy)
        value, first, second = sums.totals[kind, 2:]
        wrong, right = value + first * moved + second * moved**2
        brier = (right / accuracy + wrong / (1 - accuracy)) / (2 * total)
    score: Floats = 1 - brier / 0.25
    return np.where(np.isfinite(score), score, np.nan)


def effective_size(outcomes: Floats, target: float) -> float:
    """Return Kish's effective sample size of the weights that bring the accuracy to `target`.

    Parameters
    ----------
    outcomes
        Number of wrong and of right answers.

    Examples
    --------
    >>> effective_size(np.array([50.0, 50.0]), 0.5)
    100.0
    >>> round(effective_size(np.array([10.0, 90.0]), 0.5), 6)
    36.0
    """
    wrong, right = outcomes
    total = wrong + right
    if not wrong or not right or not 0 < target < 1:
        return float("nan")
    up, down = target * total / right, (1 - target) * total / wrong
    return float((right * up + wrong * down) ** 2 / (right * up**2 + wrong * down**2))
