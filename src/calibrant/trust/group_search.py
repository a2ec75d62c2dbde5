"""Which groups stand out beyond the overall error, with intervals that hold for all at once.

Every rule is compared with rows of equal confidence: group and outcome are both cleared of what
the confidence explains. The critical value comes from outcomes redrawn as if nothing but the
confidence mattered. The strongest group joins what is explained and the search goes on, so that
its echoes (parts of it, unions with it) do not appear again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from scipy.special import ndtr

from calibrant.core.arrays import Estimate, Floats, Mask
from calibrant.findings.documents.groups import Ends, GroupEntry
from calibrant.metrics.stats.intervals import normal_quantile, wilson_interval
from calibrant.trust.group_rules import Candidates, GroupRule
from calibrant.trust.near_confidence import ConfidenceCells, project, projector

_DRAWS = 499
_MOST_ROUNDS = 20
# Beyond this many rows the critical value comes from a sample: only the rules' overlap matters.
_ROWS_DRAWN = 50_000
_EDGE = 0.005
# A rule that the confidence explains almost wholly has too little left to be tested.
_LEAST_LEFT = 0.25
# Outcomes are redrawn from an estimated curve, not from the true one. Part of the level is kept
# for that: with four fifths of it up to 5.1 % of 1,000 small data sets were flagged at 5 %.
_SPENT = 0.7


class TestedGroup(Struct, frozen=True):
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

    rule: GroupRule
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


class Sums(Struct, frozen=True):
    """Per rule: over-confidence, its error, the spread of its sum, and whether it is tested."""

    gap: Floats
    error: Floats
    spread: Floats
    usable: Mask

    @property
    def statistic(self) -> Floats:
        """Gap over standard error; 0 where too little of the rule is left."""
        return np.where(self.usable, self.gap / self.error, 0.0)


class Redrawn(Struct, frozen=True):
    """The largest ratio of each redrawn data set, and what a ratio must exceed."""

    largest: Floats
    critical: float

    def finding(self, rule: GroupRule, at: int, sums: Sums) -> TestedGroup:
        """Return what the sums say of one candidate."""
        statistic = float(sums.statistic[at])
        above = int((self.largest >= abs(statistic)).sum())
        return TestedGroup(
            rule,
            at,
            float(sums.gap[at]) if sums.usable[at] else np.nan,
            float(sums.error[at]),
            statistic,
            self.critical,
            min(1.0, (1 + above) / (1 + len(self.largest)) / _SPENT),
        )


class Search(Struct, frozen=True):
    """What the search found.

    Parameters
    ----------
    selected
        Groups that stand out, strongest first, each beyond the ones before.
    stretches
        Places of candidates that would stand out but are stretches of the confidence.
    first
        All candidates in the first round.
    redrawn
        What data sets show where nothing but the confidence matters.
    """

    selected: tuple[TestedGroup, ...]
    stretches: tuple[int, ...]
    first: Sums
    redrawn: Redrawn


def search_groups(
    rules: Candidates,
    columns: Floats,
    correct: Floats,
    cells: ConfidenceCells,
    *,
    min_group: int,
    rng: np.random.Generator,
    alpha: float = 0.05,
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
    cells
        Rows of nearly equal confidence: within them a group must show as well.
    min_group
        Fewest rows of a group; a quarter of them must be left once confidence is accounted for.
    rng
        Draws the outcomes.
    alpha
        Chance that anything is flagged where nothing but the confidence matters.
    """
    basis = projector(columns)
    first = sums = _sums(rules, basis, correct, min_group)
    # Explaining a group takes a direction away, so this critical value serves later rounds too.
    redrawn = _redrawn(rules, basis, correct, first, rng, alpha)
    selected: list[TestedGroup] = []
    stretches: list[int] = []
    for _ in range(_MOST_ROUNDS if len(rules) else 0):
        place = int(np.argmax(np.abs(sums.statistic)))
        finding = redrawn.finding(rules.rule(place), place, sums)
        if not finding.stands_out:
            break
        column = rules.mask(place).astype(np.float64)
        within = cells.within(column, correct)
        if within.shows:
            selected.append(finding)
        elif within.is_stretch:
            stretches.append(place)
        beyond = column - project(basis, column)
        basis = np.column_stack([basis, beyond / np.linalg.norm(beyond)])
        sums = _sums(rules, basis, correct, min_group)
    return Search(tuple(selected), tuple(stretches), first, redrawn)


def judge_groups(
    rules: Sequence[GroupRule],
    masks: Sequence[Mask],
    columns: Floats,
    correct: Floats,
    *,
    rng: np.random.Generator,
    alpha: float = 0.05,
) -> list[TestedGroup]:
    """Judge groups that were named beforehand; the critical value holds for them alone.

    Parameters
    ----------
    rules, masks
        Who belongs to each group, and its rows.
    columns, correct, rng, alpha
        As for `search_groups`.
    """
    if not rules:
        return []
    position = np.arange(len(rules))
    names = Candidates((), np.array(masks), position, position, 0)
    basis = projector(columns)
    sums = _sums(names, basis, correct, 1)
    redrawn = _redrawn(names, basis, correct, sums, rng, alpha)
    return [redrawn.finding(rule, place, sums) for place, rule in enumerate(rules)]


def _sums(rules: Candidates, basis: Floats, correct: Floats, min_group: int) -> Sums:
    """Return gap and standard error of every rule, without ever forming its cleared column."""
    fitted = project(basis, correct)
    rate = np.clip(fitted, _EDGE, 1 - _EDGE)
    # The residuals have lost what the basis explains; their variance is that much larger.
    spread = rate * (1 - rate) * len(rate) / (len(rate) - basis.shape[1])
    weighted = basis * spread[:, None]
    inner = basis.T @ weighted
    width = basis.shape[1]
    table = np.column_stack([correct - fitted, spread, basis, weighted]).astype(np.float32)
    remaining, variance, score = (np.zeros(len(rules)) for _ in range(3))
    for part, block in rules.blocks():
        sums = (block @ table).astype(np.float64)
        share, mixed = sums[:, 2 : 2 + width], sums[:, 2 + width :]
        score[part] = sums[:, 0]
        remaining[part] = block.sum(axis=1) - (share**2).sum(axis=1)
        explained = np.einsum("ij,jk,ik->i", share, inner, share)
        variance[part] = sums[:, 1] - 2 * (share * mixed).sum(axis=1) + explained
    usable = (remaining > _LEAST_LEFT * min_group) & (variance > 1e-9)
    remaining = np.where(usable, remaining, 1.0)
    spread = np.sqrt(np.where(usable, variance, 1.0))
    return Sums(-score / remaining, spread / remaining, spread, usable)


def _redrawn(
    rules: Candidates,
    basis: Floats,
    correct: Floats,
    sums: Sums,
    rng: np.random.Generator,
    alpha: float,
) -> Redrawn:
    """Redraw outcomes; ratios exceed the critical value with p at most alpha, the data among."""
    if not len(rules) or not sums.usable.any():
        return Redrawn(np.empty(0), np.inf)
    rate = np.clip(project(basis, correct), _EDGE, 1 - _EDGE)
    n = len(rate)
    rows = None
    if n > _ROWS_DRAWN:
        rows = np.sort(rng.choice(n, _ROWS_DRAWN, replace=False))
        basis, rate = projector(basis[rows]), rate[rows]
    chance, plane = rate.astype(np.float32), basis.astype(np.float32)
    draws = (rng.random((_DRAWS, len(rate)), dtype=np.float32) < chance).astype(np.float32) - chance
    noise = draws - (draws @ plane) @ plane.T
    largest = np.zeros(_DRAWS)
    scale = np.sqrt(n / len(rate))
    for part, block in rules.blocks(rows):
        usable = sums.usable[part]
        # The sum over a rule divided by its own spread is its ratio; a sample has fewer rows.
        spread = (sums.spread[part] / scale).astype(np.float32)
        ratio = np.abs(noise @ block.T) / spread
        if usable.any():
            largest = np.maximum(largest, ratio[:, usable].max(axis=1))
    allowed = int(_SPENT * alpha * (_DRAWS + 1) + 1e-9)
    return Redrawn(largest, float(np.sort(largest)[-allowed]) if allowed else np.inf)


Group = GroupEntry


class SearchedGroup(Struct, frozen=True):
    """What the search says of a group, and its rows.

    `kind`: ``"found"`` (stands out beyond the overall error), ``"named"`` (written by the user) or
    ``"value"`` (one value or cut of one feature). `echo_of`: the flagged group that explains why
    this one looks unusual. `stretch`: it is a stretch of the confidence.
    """

    finding: TestedGroup
    kind: str
    mask: Mask
    flagged: bool
    echo_of: str | None = None
    stretch: bool = False


def describe(
    judged: SearchedGroup, confidence: Floats, correct: Floats, level: float
) -> GroupEntry:
    """Return a group with its plain numbers beside what the search says of it."""
    finding = judged.finding
    f, y = confidence[judged.mask], correct[judged.mask]
    n = len(f)
    rate = float(y.mean())
    low, high = wilson_interval(rate, n, level)
    gap = f - y
    reach = normal_quantile(level) * float(gap.std(ddof=1)) / n**0.5
    mean = float(gap.mean())
    beyond = Estimate(
        finding.gap, *finding.interval, n=n, level=level, interval="simultaneous over all rules"
    )
    return GroupEntry(
        rule=finding.rule.label,
        kind=judged.kind,
        n=n,
        mean_confidence=float(f.mean()),
        rate=rate,
        rate_interval=Ends(low=float(low), high=float(high)),
        gap=mean,
        gap_interval=Ends(low=mean - reach, high=mean + reach),
        gap_recalibrated=finding.gap,
        beyond=beyond,
        direction="over-confident" if finding.gap > 0 else "under-confident",
        p_value=finding.p_value,
        p_adjusted=finding.p_adjusted,
        flagged=judged.flagged,
        echo_of=judged.echo_of,
        stretch=judged.stretch,
    )
