"""One model brought to the accuracies of its partners: sums weighted, odds moved along."""

from __future__ import annotations

import numpy as np

from calibrant.comparison.ece_interval import absolute_sums
from calibrant.comparison.odds import ShiftNodes
from calibrant.comparison.sums import WeightedSums
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
