"""Entries of groups: for whom a confidence is wrong, and what that costs."""

from msgspec import UNSET, UnsetType

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.documents.entries import Part


class Ends(Part, frozen=True, kw_only=True):
    """The ends of an interval."""

    low: float | None
    high: float | None


class GroupEntry(Part, frozen=True, kw_only=True):
    """A group of rows, described by a rule."""

    rule: str
    kind: str
    n: int
    mean_confidence: float
    rate: float
    rate_interval: Ends
    gap: float
    gap_interval: Ends
    gap_recalibrated: float
    beyond: EstimateEntry
    direction: str
    p_value: float
    p_adjusted: float
    flagged: bool
    echo_of: str | None
    stretch: bool = False
    cost: EstimateEntry | UnsetType = UNSET
    saved: EstimateEntry | UnsetType = UNSET


class GroupDifference(Part, frozen=True, kw_only=True):
    """Over-confidence of group `a` minus that of `b`; `raw`: of the plain gaps.

    Of a `stretch` the confidence tells the groups apart: nothing beyond it can be tested.
    """

    a: str
    b: str
    gap: EstimateEntry
    raw: float
    p_value: float
    p_adjusted: float
    stretch: bool = False


class CopyCheck(Part, frozen=True, kw_only=True):
    """What a copy of the confidence as only column shows: it must be nothing."""

    at_least: float
    passed: bool
    knots: int


class GroupDecision(Part, frozen=True, kw_only=True):
    """What decisions by this confidence cost, and what better ones would save."""

    costs: dict[str, float]
    optimal_threshold: float
    threshold: float
    total: EstimateEntry
    calibration: EstimateEntry
    grouping: EstimateEntry
    saved: EstimateEntry
    today: EstimateEntry
    changed: float


class RulesTested(Part, frozen=True, kw_only=True):
    """How many rules were looked at, and what a flag takes."""

    control: str
    alpha: float
    tested: int
    critical: float | None
    pairs_left_out: int
    rows_left_out: int
    min_group: int


class GroupShift(Part, frozen=True, kw_only=True):
    """How far a group lies off the recalibration of all rows."""

    rule: str
    n: int
    shift: float
    confidence_low: float
    confidence_high: float
    flagged: bool


class GroupReliability(Part, frozen=True, kw_only=True):
    """The recalibration of all rows, and the groups off it."""

    confidence: list[float]
    recalibrated: list[float]
    regions: list[GroupShift]


class GroupsEntry(Part, frozen=True, kw_only=True):
    """The groups of one model and method."""

    model: str
    method: str
    n: int
    n_evaluated: int
    mean_confidence: float
    rate: float
    overall_gap: EstimateEntry
    grouping_loss: EstimateEntry
    grouping_loss_at_least: float
    grouping_loss_p: float
    copy_check: CopyCheck
    calibration_loss: EstimateEntry
    epistemic_loss: EstimateEntry
    brier: EstimateEntry
    rest: EstimateEntry
    published_loss: EstimateEntry | UnsetType = UNSET
    decision: GroupDecision
    multiplicity: RulesTested
    groups: list[GroupEntry]
    groups_not_shown: int
    stretches: list[str]
    differences: list[GroupDifference]
    reliability: GroupReliability


class GroupAcross(Part, frozen=True, kw_only=True):
    """A rule, and the models for which it stands out."""

    rule: str
    models: list[str]
    of: int
    over_confident: int
    mean_gap: float


class SizeTrend(Part, frozen=True, kw_only=True):
    """How a loss changes when the size doubles."""

    models: int
    per_doubling: EstimateEntry
    p_value: float


class TunedPair(Part, frozen=True, kw_only=True):
    """What tuning does to the loss of one model.

    `reach`: half the width of an interval of `difference`, from those of both losses. `exact`: the
    difference by Brier scores, without any column; of models that were asked about one outcome.
    """

    base: str
    tuned: str
    difference: float
    reach: float | None = None
    exact: EstimateEntry | None = None


class TunedTrend(Part, frozen=True, kw_only=True):
    """What tuning does to a loss, and the mean where there are two pairs or more."""

    pairs: list[TunedPair]
    mean: EstimateEntry | None


class Trend(Part, frozen=True, kw_only=True):
    """How the loss of all models changes with their size and tuning."""

    of: str
    loss: dict[str, float]
    size: SizeTrend | None
    tuned: TunedTrend | None
