"""One model on the questions that it shares with another: every footing, in data and resamples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from calibrant.comparison.ece_interval import Residuals, moved_errors, residuals_of
from calibrant.comparison.odds import log_odds, shift_nodes
from calibrant.comparison.sums import ModelSums
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats, Indices
from calibrant.core.errors import InputError

TARGETS = ("weakest", "mean", "strongest")
# Partners whose footings are worked out at a time: their sums then stay near the processor.
_PARTNERS = 4


@dataclass(frozen=True, slots=True)
class Scores:
    """Brier score and equal-width ECE in the data and in every resample, and rows behind them.

    `residuals` (bins, 1 + resamples) are kept where an interval of the ECE itself is wanted.
    """

    brier: Floats
    ece: Floats
    n: int
    residuals: Floats | None = None


def _nothing() -> Floats:
    """Return what a pair has of what belongs to a model by itself."""
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Footings:
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
    law: npt.NDArray[np.float32]
    paper: dict[str, Scores]
    halves_n: Floats
    halves: Floats
    target: float
    effective: float
    sharing: list[dict[str, float]]
    histogram: Floats
    score: Floats = field(default_factory=_nothing)
    by_outcome: Floats = field(default_factory=_nothing)
    gaps: Floats = field(default_factory=_nothing)
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
    """Return the accuracy that models (first axis) are brought to, in data and resamples."""
    if not isinstance(target, str):
        return np.full(accuracies.shape[1:], float(target))
    if target == "mean":
        return np.asarray(accuracies.mean(axis=0))
    return np.asarray(accuracies.min(axis=0) if target == "weakest" else accuracies.max(axis=0))


def all_footings(
    sums: ModelSums, survey: Survey, model: int, *, target: str | float
) -> list[Footings]:
    """Return the footings of a model with every partner; partners with the same questions share."""
    models = len(survey.moments)
    law = _integrals(sums.law, survey.law_steps())
    raw = residuals_of(*_raw(sums.mass))
    goals = _Goals(sums, survey, model)
    found: list[Footings] = []
    for start in range(0, models, _PARTNERS):
        partners = np.arange(start, min(start + _PARTNERS, models))
        residuals, shares, mixed, near = goals.at(partners)
        moved, own = residuals_of(residuals, shares), survey.accuracy(model, partners)
        chosen = common_accuracy(np.stack([own, survey.accuracy(partners, model)]), target)
        if model in partners:
            every = np.arange(models)
            chosen[model - start] = common_accuracy(survey.accuracy(every, every), target)
        papers = _papers(sums, partners, own, chosen, model)
        outcomes = sums.mass[sums.kind[partners], 0, :, :, 0].sum(axis=2)
        both = sums.same[partners, :2]
        with np.errstate(divide="ignore", invalid="ignore"):
            halves = sums.same[partners, 2:4] / both
        sharing = sharing_distances(sums.ranks[partners])
        for row, partner in enumerate(partners):
            shift, by = moved[row], near[row]
            found.append(
                Footings(
                    survey.common(model, int(partner)),
                    own[row].copy(),
                    raw[sums.kind[partner]],
                    shift,
                    by,
                    moved_errors(residuals[row], by[:, None]) if by.any() else shift.error,
                    mixed[row].copy(),
                    law,
                    papers[row],
                    both[row, :, 0],
                    halves[row],
                    float(chosen[row, 0]),
                    effective_size(outcomes[row], float(chosen[row, 0])),
                    sharing[row],
                    sums.histogram[partner],
                )
            )
    found[model] = _alone(found[model], goals)
    return found


def _alone(own: Footings, goals: _Goals) -> Footings:
    """Return what is seen of a model by itself."""
    sums, model = goals.sums, goals.model
    tables, shares = goals.at(np.array([model, len(goals.survey.moments)]))[:2]
    both = [
        replace(of, table=table)
        for of, table in zip(residuals_of(tables, shares), tables, strict=True)
    ]
    number, said = sums.mass[sums.kind[model]].sum(axis=2)
    return replace(
        own,
        shifted=both[0],
        strongest=both[1],
        score=even_odds_score(sums, goals.survey, model),
        by_outcome=np.divide(said, number, out=np.full_like(said, np.nan), where=number > 0),
        gaps=sums.width[sums.kind[model]] / number.sum(axis=0),
    )


def _raw(mass: Floats) -> tuple[Floats, Floats]:
    """Return residuals and shares of bins as answered, by kind of partner."""
    wrong, right, low, high = _parts(mass)
    total = (wrong + right).sum(axis=1, keepdims=True)
    return (high - right + low) / total, (wrong + right) / total


def _of_kind(sums: Floats, kind: Indices) -> Floats:
    """Return the sums of every partner; once where all have the same questions."""
    first, last = int(kind[0]), int(kind[-1])
    if (kind == first).all():
        return sums[first : first + 1]
    # Partners with questions of their own stand one after the other: no need to copy them.
    in_turn = bool((np.diff(kind) == 1).all())
    found: Floats = sums[first : last + 1] if in_turn else sums[kind]
    return found


def _parts(mass: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return number and confidence of wrong and of right answers, (kinds, bins, 1 + resamples)."""
    return mass[:, 0, 0], mass[:, 0, 1], mass[:, 1, 0], mass[:, 1, 1]


class _Goals:
    """One model, and the accuracies that it is brought to."""

    def __init__(self, sums: ModelSums, survey: Survey, model: int) -> None:
        self.sums, self.survey, self.model = sums, survey, model
        self.goals = survey.goals(model)
        self.served = shift_nodes(survey.shifts(model))

    def at(self, places: Indices) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what is seen at the accuracies of some partners, or at the strongest (the last).

        Residuals and shares with the odds moved along, the error with statements as they are, and
        what near-certain statements add. Every resample has an accuracy of its own and so a shift
        of its own, to which the confidences are moved linearly.
        """
        sums, survey, model = self.sums, self.survey, self.model
        partners = np.where(places < len(survey.moments), places, model)
        own = survey.inside(survey.accuracy(model, partners), model, partners)
        goal = survey.inside(self.goals[places], model, partners)
        wrong, right, low, high = _parts(_of_kind(sums.mass, sums.kind[partners]))
        total = (wrong + right).sum(axis=1)
        up, down = (goal / own / total)[:, None], ((1 - goal) / (1 - own) / total)[:, None]
        shift = log_odds(goal) - log_odds(own)
        said = sums.at_shifts(self.served, places, partners)
        # In place: the memory of a few partners stays near the processor.
        said[:, 1] *= (shift - shift[:, :1])[:, None, None]
        said[:, 0] += said[:, 1]
        residuals, of_wrong = said[:, 0, 1], said[:, 0, 0]
        residuals -= right
        residuals *= up
        of_wrong *= down
        residuals += of_wrong
        unmoved = high - right
        unmoved = np.multiply(unmoved, up, out=said[:, 1, 1])
        unmoved += np.multiply(low, down, out=said[:, 1, 0])
        mixed = np.abs(unmoved, out=unmoved).sum(axis=1)
        near = down[:, :, 0] * sums.near[partners, 0] + up[:, :, 0] * sums.near[partners, 1]
        return residuals, up * right + down * wrong, mixed, near


def _papers(
    sums: ModelSums, partners: Indices, own: Floats, chosen: Floats, model: int
) -> list[dict[str, Scores]]:
    """Return the views of the literature with every partner."""
    views = {
        "raw": aligned_scores(sums, partners, own, own),
        "da": aligned_scores(sums, partners, own, chosen),
        "ia": shared_scores(sums, partners),
    }
    errors = {view: np.abs(residuals).sum(axis=1) for view, (_, residuals, _) in views.items()}
    found: list[dict[str, Scores]] = []
    for row, alone in enumerate(partners == model):
        scores: dict[str, Scores] = {}
        for view, (brier, residuals, n) in views.items():
            # Copies: a view would keep the scores of all partners in memory.
            at = row % len(brier)
            kept = residuals[at].copy() if alone else None
            of = brier[at].copy(), errors[view][at].copy()
            scores[view] = Scores(*of, round(float(n[row % len(n)])), kept)
        found.append(scores)
    return found


def _integrals(law: Floats, steps: Floats) -> npt.NDArray[np.float32]:
    """Return the integral of the distribution function over every step, by outcome."""
    number, said = law
    below = np.cumsum(number, axis=1) - number
    width = np.diff(steps)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (below * width + number * steps[1:, None] - said) / number.sum(axis=1)[:, None]
    return np.asarray(share, dtype=np.float32)


def sharing_distances(ranks: Floats) -> list[list[dict[str, float]]]:
    """Return, for wrong and for right answers, how confidence differs with the partner's outcome.

    The largest distance between the distributions of confidence where the partner shares the
    outcome and where it does not, and how many answers are behind each.
    """
    sizes = ranks.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.cumsum(ranks, axis=2) / sizes[:, :, None]
    distance = np.abs(below[:, 1::2] - below[:, ::2]).max(axis=2)
    return [
        [
            {"shared": int(size[2 * z + 1]), "alone": int(size[2 * z]), "distance": float(apart[z])}
            for z in (0, 1)
        ]
        for size, apart in zip(sizes, distance, strict=True)
    ]


def aligned_scores(
    sums: ModelSums, partners: Indices, accuracy: Floats, goal: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return distribution-aligned Brier scores, residuals and numbers of rows, by partner.

    At the model's own accuracy they are the raw ones.
    """
    kind = sums.kind[partners]
    wrong, right = np.moveaxis(_of_kind(sums.width, kind), 1, 0)
    total = _of_kind(sums.mass, kind)[:, 0].sum(axis=(1, 2))
    square, spread = np.moveaxis(_of_kind(sums.totals, kind), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = down = 1 / total
        if goal is not accuracy:
            # A resample without right or without wrong answers has no such weights: NaN.
            up, down = goal / accuracy / total, (1 - goal) / (1 - accuracy) / total
        brier = up * square[:, 1] + down * square[:, 0] - spread.sum(axis=1) / total
        residuals = up[:, None] * right
        residuals += down[:, None] * wrong
        return brier, residuals, total[:, 0]


def shared_scores(sums: ModelSums, partners: Indices) -> tuple[Floats, Floats, Floats]:
    """Return the same on questions where both have the same outcome; NaN without any."""
    same = sums.same[partners]
    total = same[:, 0] + same[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = same[:, 5:] / total[:, None]
        # (c - 1)^2 = c^2 - 2 c + 1 on right answers.
        brier = (same[:, 4] + same[:, 1] - 2 * same[:, 3]) / total
    return brier, residuals, total[:, 0]


def even_odds_score(sums: ModelSums, survey: Survey, model: int) -> Floats:
    """Return 1 - Brier / 0.25 with confidences shifted to accuracy 0.5, in data and resamples.

    A constant confidence scores 0, whatever the accuracy; other models do not enter.
    """
    kind = sums.kind[model]
    accuracy = survey.accuracy(model, model)
    total = sums.mass[kind, 0].sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = log_odds(survey.accuracy(model, model)[:1]) - log_odds(accuracy)
        value, first, second = sums.league
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
