"""Which groups stand out beyond the overall error, with intervals that hold for all at once.

Every rule is compared with rows of equal confidence: group and outcome are both cleared of what
the confidence explains. The critical value comes from outcomes redrawn as if nothing but the
confidence mattered. The strongest group joins what is explained and the search goes on, so that
its echoes (parts of it, unions with it) do not appear again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calibrant.core.arrays import Floats, Mask
from calibrant.epistemic.linear import project, projector
from calibrant.epistemic.segments.conditions import Candidates, Rule

_DRAWS = 499
_MOST_ROUNDS = 20
# Beyond this many rows the critical value comes from a sample: only the rules' overlap matters.
_ROWS_DRAWN = 50_000
_EDGE = 0.005
# A rule that the confidence explains almost wholly has too little left to be tested.
_LEAST_OWN = 0.25
# Outcomes are redrawn from an estimated curve, not from the true one. Part of the level is kept
# for that: with four fifths of it up to 5.1 % of 1,000 small data sets were flagged at 5 %.
_SPENT = 0.7


@dataclass(frozen=True, slots=True)
class Finding:
    """A group against rows of equal confidence; above 0 it is over-confident.

    Parameters
    ----------
    rule, position
        Who belongs to it, and its place among the candidates.
    gap, error
        Over-confidence beyond what rows of equal confidence show, and its standard error; NaN
        where the confidence alone decides who belongs to it.
    statistic
        Their ratio.
    critical
        What the ratio must exceed, for all rules at once.
    p_adjusted
        Share of redrawn data sets with any ratio this large, made larger for what redrawing
        from an estimated curve misses.
    """

    rule: Rule
    position: int
    gap: float
    error: float
    statistic: float
    critical: float
    p_adjusted: float

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the gap that holds for all rules at once."""
        reach = self.critical * self.error
        return self.gap - reach, self.gap + reach

    @property
    def p_value(self) -> float:
        """Two-sided p value of this group alone."""
        return float(2 * ndtr(-abs(self.statistic)))

    @property
    def stands_out(self) -> bool:
        """Whether the ratio exceeds the critical value."""
        return abs(self.statistic) > self.critical


@dataclass(frozen=True, slots=True)
class Search:
    """What the search found.

    Parameters
    ----------
    selected
        Groups that stand out, strongest first, each beyond the ones before.
    first
        All candidates in the first round.
    last
        All candidates once the selected groups are explained: what still stands out is none, and
        what stood out only in the first round is an echo.
    critical
        The critical value.
    """

    selected: tuple[Finding, ...]
    first: Sums
    last: Sums
    critical: float
    largest: Floats

    def finding(self, rules: Candidates, at: int) -> Finding:
        """Return one candidate as seen in the first round."""
        return _finding(rules.rule(at), at, self.first, self.critical, self.largest)


@dataclass(frozen=True, slots=True)
class Sums:
    """Per rule: over-confidence, its error, the spread of its sum, and whether it is tested."""

    gap: Floats
    error: Floats
    spread: Floats
    usable: Mask

    @property
    def statistic(self) -> Floats:
        """Gap over standard error; 0 where too little of the rule is left."""
        return np.where(self.usable, self.gap / self.error, 0.0)


def search_groups(
    rules: Candidates,
    columns: Floats,
    correct: Floats,
    *,
    min_group: int,
    rng: np.random.Generator,
    alpha: float = 0.05,
    draws: int = _DRAWS,
) -> Search:
    """Search all candidates.

    Parameters
    ----------
    rules
        The candidates.
    columns
        What the confidence explains, one row per answer (`ConfidenceBasis`).
    correct
        Outcome per row.
    min_group
        Fewest rows of a group; a quarter of them must be left once confidence is accounted for.
    rng
        Draws the outcomes.
    alpha
        Chance that anything is flagged where nothing but the confidence matters.
    draws
        Number of redrawn data sets.
    """
    basis = projector(columns)
    rate = _rates(basis, correct)
    first = sums = _sums(rules, basis, correct, rate, min_group)
    largest = _largest(rules, basis, rate, first, rng, draws)
    # Explaining a group takes a direction away, so this critical value serves later rounds too.
    critical = _critical(largest, alpha)
    selected: list[Finding] = []
    while len(selected) < _MOST_ROUNDS and len(rules):
        at = int(np.argmax(np.abs(sums.statistic)))
        found = _finding(rules.rule(at), at, sums, critical, largest)
        if not found.stands_out:
            break
        selected.append(found)
        basis = _extended(basis, rules.mask(at).astype(np.float64))
        sums = _sums(rules, basis, correct, _rates(basis, correct), min_group)
    return Search(tuple(selected), first, sums, critical, largest)


def judge_groups(
    rules: Sequence[Rule],
    masks: Sequence[Mask],
    columns: Floats,
    correct: Floats,
    *,
    rng: np.random.Generator,
    alpha: float = 0.05,
    draws: int = _DRAWS,
) -> list[Finding]:
    """Judge groups that were named beforehand; the critical value holds for them alone.

    Parameters
    ----------
    rules, masks
        Who belongs to each group, and its rows.
    columns, correct, rng, alpha, draws
        As for `search_groups`.
    """
    if not rules:
        return []
    at = np.arange(len(rules))
    named = Candidates((), np.array(masks), at, at, 0)
    basis = projector(columns)
    rate = _rates(basis, correct)
    sums = _sums(named, basis, correct, rate, 1)
    largest = _largest(named, basis, rate, sums, rng, draws)
    critical = _critical(largest, alpha)
    return [_finding(rule, place, sums, critical, largest) for place, rule in enumerate(rules)]


def _critical(largest: Floats, alpha: float) -> float:
    """Return the value that the draws exceed with p at most alpha, counting the data as a draw."""
    allowed = int(_SPENT * alpha * (len(largest) + 1) + 1e-9)
    return float(np.sort(largest)[-allowed]) if 0 < allowed <= len(largest) else np.inf


def _rates(basis: Floats, correct: Floats) -> Floats:
    return np.clip(project(basis, correct), _EDGE, 1 - _EDGE)


def _extended(basis: Floats, column: Floats) -> Floats:
    own = column - project(basis, column)
    return np.column_stack([basis, own / np.linalg.norm(own)])


def _sums(rules: Candidates, basis: Floats, correct: Floats, rate: Floats, min_group: int) -> Sums:
    """Return gap and standard error of every rule, without ever forming its cleared column."""
    residual = correct - project(basis, correct)
    # The residuals have lost what the basis explains; their variance is that much larger.
    spread = rate * (1 - rate) * len(rate) / (len(rate) - basis.shape[1])
    weighted = basis * spread[:, None]
    inner = basis.T @ weighted
    width = basis.shape[1]
    table = np.column_stack([residual, spread, basis, weighted]).astype(np.float32)
    own, variance, score = (np.zeros(len(rules)) for _ in range(3))
    for part, block in rules.blocks():
        sums = (block @ table).astype(np.float64)
        share, mixed = sums[:, 2 : 2 + width], sums[:, 2 + width :]
        score[part] = sums[:, 0]
        own[part] = block.sum(axis=1) - (share**2).sum(axis=1)
        explained = np.einsum("ij,jk,ik->i", share, inner, share)
        variance[part] = sums[:, 1] - 2 * (share * mixed).sum(axis=1) + explained
    usable = (own > _LEAST_OWN * min_group) & (variance > 1e-9)
    own = np.where(usable, own, 1.0)
    spread = np.sqrt(np.where(usable, variance, 1.0))
    return Sums(-score / own, spread / own, spread, usable)


def _largest(
    rules: Candidates,
    basis: Floats,
    rate: Floats,
    sums: Sums,
    rng: np.random.Generator,
    draws: int,
) -> Floats:
    """Return the largest ratio of each redrawn data set."""
    if not len(rules) or not sums.usable.any():
        return np.empty(0)
    n = len(rate)
    rows = None
    if n > _ROWS_DRAWN:
        rows = np.sort(rng.choice(n, _ROWS_DRAWN, replace=False))
        basis, rate = projector(basis[rows]), rate[rows]
    chance, plane = rate.astype(np.float32), basis.astype(np.float32)
    drawn = (rng.random((draws, len(rate)), dtype=np.float32) < chance).astype(np.float32) - chance
    noise = drawn - (drawn @ plane) @ plane.T
    largest = np.zeros(draws)
    scale = np.sqrt(n / len(rate))
    for part, block in rules.blocks(rows):
        usable = sums.usable[part]
        # The sum over a rule divided by its own spread is its ratio; a sample has fewer rows.
        spread = (sums.spread[part] / scale).astype(np.float32)
        ratio = np.abs(noise @ block.T) / spread
        if usable.any():
            largest = np.maximum(largest, ratio[:, usable].max(axis=1))
    return largest


def _finding(rule: Rule, at: int, sums: Sums, critical: float, largest: Floats) -> Finding:
    statistic = float(sums.statistic[at])
    above = int((largest >= abs(statistic)).sum())
    return Finding(
        rule,
        at,
        float(sums.gap[at]) if sums.usable[at] else np.nan,
        float(sums.error[at]),
        statistic,
        critical,
        min(1.0, (1 + above) / (1 + len(largest)) / _SPENT),
    )
