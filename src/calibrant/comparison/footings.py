"""One model on the questions that it shares with another: every footing, in data and resamples."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from calibrant.comparison.ece_interval import (
    Residuals,
    Singles,
    absolute_sums,
    joined,
    residuals_of,
)
from calibrant.comparison.statements import ShiftNodes, log_odds, shift_nodes
from calibrant.comparison.sums import ModelSums, WeightedSums
from calibrant.comparison.survey import AnswerCounts
from calibrant.core.arrays import Floats, Indices


def of_kind(sums: Floats, kind: Indices) -> Floats:
    """Return the sums of every partner; once where all have the same questions."""
    first, last = int(kind[0]), int(kind[-1])
    if (kind == first).all():
        return sums[first : first + 1]
    # Partners with questions of their own stand one after the other: no need to copy them.
    in_turn = bool((np.diff(kind) == 1).all())
    by_partner: Floats = sums[first : last + 1] if in_turn else sums[kind]
    return by_partner


class AlignedSums:
    """One model at the accuracies of its partners: in the data, or in all resamples.

    Parameters
    ----------
    sums, kind
        Its sums, and which common ones belong to each partner; last the model itself.
    goals
        (models + 1, 3, draws) what wrong and right answers weigh at each accuracy, and by how much
        more than in the data the log-odds move.
    weights
        (models, 2, draws) what they weigh in the distribution-aligned view.
    """

    def __init__(
        self, sums: WeightedSums, kind: Indices, served: ShiftNodes, goals: Floats, weights: Floats
    ) -> None:
        single = sums.nodes.dtype
        self.sums, self.kind, self.served = sums, kind, served
        self.goals, self.weights = goals.astype(single), weights.astype(single)
        self.total = sums.mass[:, 0].sum(axis=(1, 2))

    def raw(self) -> tuple[Floats, Floats]:
        """Return residuals and shares of bins as answered, by kind of partner."""
        (wrong, right), (low, high) = self.sums.mass.transpose(1, 2, 0, 3, 4)
        total = self.total[:, None]
        return (high - right + low) / total, (wrong + right) / total

    def moved(self, places: Indices) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what is seen at the accuracies of some partners, or at the strongest (the last).

        Residuals and shares with the odds moved along, the error with statements as they are, and
        the weights. Every resample has an accuracy of its own and so a shift of its own, to which
        the confidences are moved linearly.
        """
        kind = self.kind[places]
        number, confidence = np.moveaxis(of_kind(self.sums.mass, kind), 1, 0)
        weights = self.goals[places, :2] / of_kind(self.total, kind)[:, None]
        moved = self.sums.at_shifts(self.served, places, kind)
        # In place: the memory of a few partners stays near the processor.
        moved[:, 1] *= self.goals[places, 2, None, None]
        place = moved[:, 0]
        place += moved[:, 1]
        place[:, 1] -= number[:, 1]
        place *= weights[:, :, None]
        residuals = place[:, 0] + place[:, 1]
        still = np.multiply(confidence, weights[:, :, None], out=place)
        share = np.multiply(number, weights[:, :, None], out=moved[:, 1])
        unmoved = still[:, 0]
        unmoved += still[:, 1]
        unmoved -= share[:, 1]
        return residuals, share[:, 0] + share[:, 1], absolute_sums(unmoved), weights

    def aligned(self, partners: Indices) -> tuple[Floats, Floats]:
        """Return distribution-aligned Brier scores and residuals."""
        return self._scores(self.kind[partners], self.weights[partners])

    def as_answered(self, partners: Indices) -> tuple[Floats, Floats]:
        """Return raw Brier scores and residuals; once where all have the same questions."""
        return self._scores(self.kind[partners], np.ones((1, 2, 1), self.weights.dtype))

    def _scores(self, kind: Indices, weights: Floats) -> tuple[Floats, Floats]:
        total = of_kind(self.total, kind)
        square, spread = np.moveaxis(of_kind(self.sums.totals, kind), 1, 0)
        weights = weights / total[:, None]
        by_outcome = of_kind(self.sums.width, kind) * weights[:, :, None]
        brier = (weights * square).sum(axis=1) - spread.sum(axis=1) / total
        return brier, by_outcome[:, 0] + by_outcome[:, 1]

    def shared(self, partners: Indices) -> tuple[Floats, Floats]:
        """Return the same on questions where both have the same outcome; NaN without any."""
        equal = self.sums.same[partners]
        total = equal[:, 0] + equal[:, 1]
        # (c - 1)^2 = c^2 - 2 c + 1 on right answers.
        return (equal[:, 4] + equal[:, 1] - 2 * equal[:, 3]) / total, equal[:, 5:] / total[:, None]


TARGETS = ("weakest", "mean", "strongest")
# Partners whose footings are worked out at a time: their sums then stay near the processor.
_PARTNERS = 4


# Answers where the partner shares the outcome and where not, and how far their confidences differ.
Sharing: TypeAlias = tuple[tuple[int, int], float]


class AlignedScores(Struct, frozen=True):
    """Brier score and equal-width ECE in the data and in every resample, and rows behind them.

    `residuals` (bins, 1 + resamples) are kept where an interval of the ECE itself is wanted.
    """

    brier: Floats
    ece: Floats
    n: int
    residuals: Floats | None = None


class SharedViews(Struct, frozen=True):
    """What is seen of a model on the questions that it shares with a partner.

    `raw` is as answered, `shifted` at the partner's accuracy with the odds moved along, `near`
    (bins,) what near-certain statements add there if .995 and .999999 count as different and
    `near_error` the error with them, `mixed` the error at the partner's accuracy with statements
    as they are. `law` (2, steps, 1 + draws)
    integrates the distribution of confidence of wrong and of right answers over each step, on all
    questions of the model. `paper` holds the raw, instance- and distribution-aligned views
    of the literature at the accuracy `target`. `score` is the model's skill at even odds.
    `halves` (2, 1 + draws) is the mean confidence where both are wrong and where both are right,
    `halves_n` their number, `by_outcome` the mean confidence of wrong and of right answers.
    On its own, a model is brought to the weakest (`shifted`) and the `strongest` of all, and
    `gaps` (2, bins, 1 + resamples) are equal-width residuals of wrong and of right answers.
    """

    n: int
    accuracy: Floats
    raw: Residuals
    shifted: Residuals
    near: Floats
    near_error: Floats
    mixed: Floats
    law: Singles
    paper: dict[str, AlignedScores]
    halves_n: Floats
    halves: Floats
    target: float
    effective: float
    sharing: list[Sharing]
    histogram: Floats
    score: Floats = field(default_factory=lambda: np.empty(0))
    by_outcome: Floats = field(default_factory=lambda: np.empty(0))
    gaps: Floats = field(default_factory=lambda: np.empty(0))
    strongest: Residuals | None = None

    @property
    def lean(self) -> Floats:
        """Mean confidence minus accuracy, in the data and in every resample."""
        return np.asarray(self.gaps.sum(axis=(0, 1)))

    def target_curve(self, targets: Floats) -> Floats:
        """Return the distribution-aligned ECE at every target accuracy, (targets,)."""
        accuracy = float(self.accuracy[0])
        wrong, right = self.gaps[:, :, 0, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = right * (targets / accuracy) + wrong * ((1 - targets) / (1 - accuracy))
        return np.asarray(np.abs(gaps).sum(axis=0))


def common_accuracy(accuracies: Floats, target: str | float) -> Floats:
    """Return the accuracy that models (first axis) are brought to, in data and resamples."""
    if not isinstance(target, str):
        return np.full(accuracies.shape[1:], float(target))
    if target == "mean":
        return np.asarray(accuracies.mean(axis=0))
    return np.asarray(accuracies.min(axis=0) if target == "weakest" else accuracies.max(axis=0))


def all_footings(
    sums: ModelSums, survey: AnswerCounts, model: int, *, target: str | float
) -> list[SharedViews]:
    """Return the footings of a model with every partner; partners with the same questions share."""
    total = np.arange(len(survey.moments))
    accuracies = survey.accuracy(model, total)
    choice = common_accuracy(np.stack([accuracies, survey.accuracy(total, model)]), target)
    choice[model] = common_accuracy(survey.accuracy(total, total), target)
    goals = _Goals(sums, survey, model, accuracies, choice)
    raw = residuals_of(goals.data.raw(), goals.drawn.raw())
    law = goals.law(survey.law_steps())
    outcomes = sums.data.mass[sums.kind, 0, :, :, 0].sum(axis=2)
    pair = joined(sums.data.same[:, :2], sums.drawn.same[:, :2])
    with np.errstate(divide="ignore", invalid="ignore"):
        halves = joined(sums.data.same[:, 2:4], sums.drawn.same[:, 2:4]) / pair
    sharing = sharing_distances(sums.ranks)
    footings: list[SharedViews] = []
    for start in range(0, total.size, _PARTNERS):
        partners = total[start : start + _PARTNERS]
        observed = zip(partners, *goals.moved(partners), goals.papers(partners), strict=True)
        for partner, shift, key, near_error, mixed, paper in observed:
            footings.append(
                SharedViews(
                    int(survey.both[model, partner, 0]),
                    accuracies[partner],
                    raw[sums.kind[partner]],
                    shift,
                    key,
                    near_error,
                    mixed,
                    law,
                    paper,
                    pair[partner, :, 0],
                    halves[partner],
                    float(choice[partner, 0]),
                    effective_size(outcomes[partner], float(choice[partner, 0])),
                    sharing[partner],
                    sums.histogram[partner],
                )
            )
    footings[model] = _alone(footings[model], goals, survey)
    return footings


def _alone(footings: SharedViews, goals: _Goals, survey: AnswerCounts) -> SharedViews:
    """Return what is seen of a model by itself."""
    sums, model = goals.sums, goals.model
    kind = sums.kind[model]
    weakest, strongest = goals.alone()
    mass = joined(sums.data.mass[kind], sums.drawn.mass[kind])
    width = joined(sums.data.width[kind], sums.drawn.width[kind])
    number, confidence = mass.sum(axis=2)
    return replace(
        footings,
        shifted=weakest,
        strongest=strongest,
        score=even_odds_score(sums, survey, model),
        by_outcome=np.divide(
            confidence, number, out=np.full_like(confidence, np.nan), where=number > 0
        ),
        gaps=width / number.sum(axis=0),
    )


class _Goals:
    """One model, and the accuracies that it is brought to."""

    def __init__(
        self, sums: ModelSums, survey: AnswerCounts, model: int, accuracies: Floats, chosen: Floats
    ) -> None:
        self.sums, self.model = sums, model
        partners = np.append(np.arange(len(accuracies)), model)
        inside = survey.inside(accuracies[partners], model, partners)
        goal = survey.inside(survey.goals(model), model, partners)
        shift = log_odds(goal) - log_odds(inside)
        goals = (1 - goal) / (1 - inside), goal / inside, shift - shift[:, :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            # A resample without right or without wrong answers has no such weights: NaN.
            weights = np.stack([(1 - chosen) / (1 - accuracies), chosen / accuracies], axis=1)
        of = sums.kind[partners], shift_nodes(survey.shifts(model))
        table = np.stack(goals, axis=1)
        self.data = AlignedSums(sums.data, *of, table[:, :, :1], weights[:, :, :1])
        self.drawn = AlignedSums(sums.drawn, *of, table, weights)

    def law(self, steps: Floats) -> Singles:
        """Return the integrals of the laws of confidence."""
        pair = (_integrals(part.law, steps) for part in (self.sums.data, self.sums.drawn))
        return joined(*pair).astype(np.float32)

    def moved(
        self, partners: Indices
    ) -> tuple[list[Residuals], list[Floats], list[Floats], Floats]:
        """Return what is seen at the accuracies of some partners.

        With the odds moved along, what near-certain statements add and the error with them, and
        the error with statements as they are.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            data, draws = self.data.moved(partners), self.drawn.moved(partners)
        residuals = residuals_of(data[:2], draws[:2])
        near = (data[3] * self.sums.near[partners]).sum(axis=1)
        errors = [
            joined(absolute_sums(observed + key[:, None]), absolute_sums(draws + key[:, None]))
            if key.any()
            else part.error
            for part, key, observed, draws in zip(residuals, near, data[0], draws[0], strict=True)
        ]
        return residuals, list(near), errors, joined(data[2], draws[2])

    def alone(self) -> list[Residuals]:
        """Return the model at the weakest and at the strongest accuracy, with all resamples."""
        places = np.array([self.model, len(self.data.kind) - 1])
        data, draws = self.data.moved(places), self.drawn.moved(places)
        return [
            replace(part, drawn=table)
            for part, table in zip(residuals_of(data[:2], draws[:2]), draws[0], strict=True)
        ]

    @np.errstate(divide="ignore", invalid="ignore")
    def papers(self, partners: Indices) -> list[dict[str, AlignedScores]]:
        """Return the views of the literature with some partners."""
        views: list[dict[str, AlignedScores]] = [{} for _ in partners]
        outcomes = self.data.sums.same[partners, :2, 0].sum(axis=1)
        answers = of_kind(self.data.total, self.data.kind[partners])[:, 0]
        modes = ("raw", AlignedSums.as_answered, answers), ("da", AlignedSums.aligned, answers)
        for view, mode, n in (*modes, ("ia", AlignedSums.shared, outcomes)):
            (brier, observed), (briers, draws) = (
                mode(self.data, partners),
                mode(self.drawn, partners),
            )
            brier = joined(brier, briers)
            error = joined(absolute_sums(observed), absolute_sums(draws))
            for row, partner in enumerate(partners):
                place = row % len(brier)
                rows = joined(observed[place], draws[place]) if partner == self.model else None
                views[row][view] = AlignedScores(
                    brier[place], error[place], round(float(n[row % len(n)])), rows
                )
        return views


def _integrals(law: Floats, steps: Floats) -> Floats:
    """Return the integral of the distribution function over every step, by outcome."""
    number, confidence = law
    below = np.cumsum(number, axis=1) - number
    width = np.diff(steps)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (below * width + number * steps[1:, None] - confidence) / number.sum(axis=1)[
            :, None
        ]
    return np.asarray(share)


def sharing_distances(ranks: Floats) -> list[list[Sharing]]:
    """Return, for wrong and for right answers, how confidence differs with the partner's outcome.

    The largest distance between the distributions of confidence where the partner shares the
    outcome and where it does not, and how many answers are behind each.
    """
    sizes = ranks.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.cumsum(ranks, axis=2) / sizes[:, :, None]
    distance = np.abs(below[:, 1::2] - below[:, ::2]).max(axis=2)
    return [
        [((int(size[2 * z + 1]), int(size[2 * z])), float(difference[z])) for z in (0, 1)]
        for size, difference in zip(sizes, distance, strict=True)
    ]


def even_odds_score(sums: ModelSums, survey: AnswerCounts, model: int) -> Floats:
    """Return 1 - Brier / 0.25 with confidences shifted to accuracy 0.5, in data and resamples.

    A constant confidence scores 0, whatever the accuracy; other models do not enter.
    """
    kind = sums.kind[model]
    accuracy = survey.accuracy(model, model)
    total = joined(sums.data.mass[kind], sums.drawn.mass[kind])[0].sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = log_odds(survey.accuracy(model, model)[:1]) - log_odds(accuracy)
        value, first, second = joined(sums.data.league, sums.drawn.league)
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
