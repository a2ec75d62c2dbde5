"""One model on the questions that it shares with another: every footing, in data and resamples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.comparison.odds import log_odds, shift_nodes
from calibrant.comparison.residuals import Residuals, residuals_of
from calibrant.comparison.sums import ModelSums
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError

TARGETS = ("weakest", "mean", "strongest")
# What only a model by itself has.
_NONE = np.empty(0)


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
class Footings:
    """What is seen of a model on the questions that it shares with a partner.

    `raw` is as answered, `shifted` at the partner's accuracy with the odds moved along, `near`
    (bins,) what near-certain statements add there if .995 and .999999 count as different, `mixed`
    the error at the partner's accuracy with statements as they are. `law` (2, steps, 1 + draws)
    integrates the distribution of confidence of wrong and of right answers over each step, on all
    questions of the model. `paper` holds the raw, instance- and distribution-aligned views
    of the literature at the accuracy `target`. `score` is the model's skill at even odds.
    `halves` (2, 1 + draws) is the mean confidence where both are wrong and where both are right,
    `halves_n` their number, `by_outcome` the mean confidence of wrong and of right answers.
    `gaps` (2, bins, 1 + resamples) are equal-width residuals of wrong and of right answers. On
    its own, a model is brought to the weakest (`shifted`) and the `strongest` of all.
    """

    n: int
    accuracy: Floats
    raw: Residuals
    shifted: Residuals
    near: Floats
    mixed: Floats
    law: npt.NDArray[np.float32]
    paper: dict[str, Scores]
    score: Floats
    halves_n: Floats
    halves: Floats
    by_outcome: Floats
    target: float
    effective: dict[str, float]
    sharing: list[dict[str, float]]
    histogram: Floats
    gaps: Floats
    strongest: Residuals | None = None

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


@dataclass(frozen=True, slots=True)
class _Kind:
    """What partners with the same questions share."""

    raw: Residuals
    paper: Scores
    gaps: Floats


def all_footings(
    sums: ModelSums, survey: Survey, model: int, *, target: str | float
) -> list[Footings]:
    """Return the footings of a model with every partner; partners with the same questions share."""
    kinds: dict[int, _Kind] = {}
    goals, law = survey.goals(model), _integrals(sums.law, survey.law_steps())
    served = shift_nodes(survey.shifts(model))
    found = []
    for partner in range(len(survey.moments)):
        number = int(sums.kind[partner])
        own = survey.accuracy(model, partner)
        if number not in kinds:
            total = sums.mass[number, 0].sum(axis=(0, 1))
            kinds[number] = _Kind(
                residuals_of(*_raw(sums, number)),
                aligned_scores(sums, partner, own, own),
                sums.width[number] / total,
            )
        kind = kinds[number]
        goal = survey.inside(goals[partner], model, partner)
        shifted = sums.at_shift(served, partner, number)
        moved, mixed, near = _at(sums, survey, model, partner, goal, shifted)
        if partner == model:
            everyone = np.stack([survey.accuracy(m, m) for m in range(len(survey.moments))])
            top = survey.inside(goals[-1], model, partner)
            highest = sums.at_shift(served, -1, number)
            strongest = residuals_of(*_at(sums, survey, model, partner, top, highest)[0])
        else:
            everyone, strongest = np.stack([own, survey.accuracy(partner, model)]), None
        chosen = common_accuracy(everyone, target)
        paper = {"raw": kind.paper, "da": aligned_scores(sums, partner, own, chosen)}
        paper["ia"] = shared_scores(sums, partner)
        if partner != model:
            paper = {view: scores.without_residuals() for view, scores in paper.items()}
        outcomes = sums.mass[number, 0, :, :, 0].sum(axis=1)
        both = sums.same[partner, :2].sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            halves = both[1] / both[0]
            by_outcome = _by_outcome(sums.mass[number]) if partner == model else _NONE
        found.append(
            Footings(
                survey.common(model, partner),
                own,
                kind.raw,
                residuals_of(*moved),
                near,
                mixed,
                law,
                paper,
                even_odds_score(sums, survey, model) if partner == model else _NONE,
                both[0, :, 0],
                halves,
                by_outcome,
                float(chosen[0]),
                {
                    "da": effective_size(outcomes, float(chosen[0])),
                    "os": effective_size(outcomes, float(goal[0])),
                },
                sharing_distances(sums.ranks[partner]),
                sums.histogram[partner],
                # Of pairs the residuals of the data alone are kept.
                kind.gaps if partner == model else kind.gaps[:, :, :1].copy(),
                strongest,
            )
        )
    return found


def _by_outcome(mass: Floats) -> Floats:
    """Return the mean confidence of wrong and of right answers."""
    number, said = mass.sum(axis=2)
    found: Floats = said / number
    return found


def _raw(sums: ModelSums, kind: int) -> tuple[Floats, Floats]:
    """Return residuals and shares of bins as answered."""
    (wrong, right), (low, high) = sums.mass[kind]
    total = (wrong + right).sum(axis=0)
    return (high - right + low) / total, (wrong + right) / total


def _at(
    sums: ModelSums,
    survey: Survey,
    model: int,
    partner: int,
    goal: Floats,
    shifted: Floats,
) -> tuple[tuple[Floats, Floats], Floats, Floats]:
    """Return what is seen at a common accuracy.

    Residuals and shares with the odds moved along, the error with statements as they are, and what
    near-certain statements add. Every resample has an accuracy of its own and so a shift of its
    own, to which the confidences are moved linearly.
    """
    own = survey.inside(survey.accuracy(model, partner), model, partner)
    (wrong, right), (low, high) = sums.mass[sums.kind[partner]]
    total = (wrong + right).sum(axis=(0))
    up, down = goal / own / total, (1 - goal) / (1 - own) / total
    shift = log_odds(goal) - log_odds(own)
    moved_low, moved_high = shifted[0] + shifted[1] * (shift - shift[0])
    shares = up * right + down * wrong
    residuals = up * (moved_high - right) + down * moved_low
    mixed = np.abs(up * (high - right) + down * low).sum(axis=0)
    near = down[0] * sums.near[partner, 0] + up[0] * sums.near[partner, 1]
    return (residuals, shares), mixed, near


def _integrals(law: Floats, steps: Floats) -> npt.NDArray[np.float32]:
    """Return the integral of the distribution function over every step, by outcome."""
    number, said = law
    below = np.cumsum(number, axis=1) - number
    width = np.diff(steps)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (below * width + number * steps[1:, None] - said) / number.sum(axis=1)[:, None]
    return np.asarray(share, dtype=np.float32)


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
    number, said, squares = sums.same[partner]
    total = number.sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = (said.sum(axis=0) - number[1]) / total
        # (c - 1)^2 = c^2 - 2 c + 1 on right answers.
        right = (number[1] - 2 * said[1]).sum(axis=0)
        brier = (squares.sum(axis=(0, 1)) + right) / total
    return Scores.of(brier, residuals, float(total[0]))


def even_odds_score(sums: ModelSums, survey: Survey, model: int) -> Floats:
    """Return 1 - Brier / 0.25 with confidences shifted to accuracy 0.5, in data and resamples.

    A constant confidence scores 0, whatever the accuracy; other models do not enter.
    """
    kind = sums.kind[model]
    accuracy = survey.accuracy(model, model)
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
