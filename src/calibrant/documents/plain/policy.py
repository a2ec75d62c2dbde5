"""Documents that lead to a decision: groups, error limits, cascades, mended confidences."""

from typing import Any, TypedDict

from calibrant.documents.plain.audit import Grading
from calibrant.documents.plain.head import Document, Estimate


class GroupEntry(TypedDict, total=False):
    """A group of rows, described by a rule."""

    rule: str
    kind: str
    n: int
    mean_confidence: float
    rate: float
    gap: float
    beyond: Estimate
    direction: str
    p_value: float
    p_adjusted: float
    flagged: bool
    echo_of: str | None


class GroupDifference(TypedDict, total=False):
    """Two named groups, and how far their gaps are apart."""

    a: str
    b: str
    gap: Estimate
    p_adjusted: float


class DecisionRisk(TypedDict, total=False):
    """What decisions at a threshold cost, and what could be saved."""

    costs: Any
    optimal_threshold: float
    threshold: float
    total: Estimate
    calibration: Estimate
    grouping: Estimate
    saved: Estimate
    today: Estimate


class GroupTests(TypedDict, total=False):
    """How many groups were looked at."""

    tested: int
    critical: float | None


class GroupsEntry(TypedDict, total=False):
    """The groups of one model and method."""

    model: str
    method: str
    n: int
    mean_confidence: float
    rate: float
    grouping_loss: Estimate
    grouping_loss_at_least: float
    grouping_loss_p: float
    copy_check: Any
    calibration_loss: Estimate
    brier: Estimate
    rest: Estimate
    decision: DecisionRisk
    multiplicity: GroupTests
    groups: list[GroupEntry]
    groups_not_shown: int
    differences: list[GroupDifference]
    reliability: Any


class GroupsDocument(Document, total=False):
    """Document ``calibrant.groups/1``."""

    features: list[str]
    across: Any
    trend: Any


class Promised(TypedDict, total=False):
    """For whom an error limit is kept."""

    group: str | None
    asked: Any
    groups: Any


class DecidePoint(TypedDict):
    """Share and error of the answers at or above a threshold."""

    threshold: float
    share: float
    error: Estimate


class DecideEntry(TypedDict, total=False):
    """From which confidence on one model may answer alone."""

    model: str
    method: str
    n: int
    rate: float
    max_error: Any
    delta: float
    certified: bool
    score: str
    needs: list[str]
    threshold: float | None
    promise: Promised
    answered: Estimate
    error: Estimate
    labels_needed: int | None
    more_labels: Any
    cost: Any
    curve: list[DecidePoint]
    path: str | None
    grading: Grading


class CascadeModel(TypedDict, total=False):
    """A model of a cascade."""

    model: str
    accuracy: Estimate
    relative_cost: Estimate


class Guarantee(TypedDict):
    """How much worse than the largest model a policy is at most."""

    margin: float
    delta: float
    certified: bool


class CascadePromise(TypedDict, total=False):
    """What a policy reached on rows that did not choose it."""

    accuracy: Estimate
    cost: Estimate
    relative_cost: Estimate
    gain: Estimate
    budget: float | None
    guarantee: Guarantee | None


class CascadePolicy(TypedDict, total=False):
    """The policy that was chosen."""

    rule: str
    words: str
    tolerance: float | None
    chosen: str
    single: str | None
    promise: CascadePromise
    path: str | None


class CascadeEntry(TypedDict, total=False):
    """The strategies of asking several models."""

    n: int
    n_test: int
    splits: int
    models: list[CascadeModel]
    features: Any
    strategies: Any
    comparisons: Any
    largest: str
    verdict: Any
    policy: CascadePolicy


class MendPromise(TypedDict):
    """How far off a map is on average at most, and what it gains."""

    off_by: float | None
    gain: float
    gain_low: float | None


class MendColumns(TypedDict):
    """Other columns that a map reads, or why it does not."""

    names: list[str]
    verdict: str
    promise: MendPromise | None


class MendEntry(TypedDict, total=False):
    """What the confidence of one model and method means."""

    model: str
    method: str
    n: int
    verdict: str
    rising: bool
    map: Any
    promise: MendPromise
    columns: MendColumns | None
    table: Any
    path: str | None
