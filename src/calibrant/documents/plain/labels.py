"""Documents about labels: what they cost, who has them, and what changed since."""

from typing import Any, Literal, TypedDict

from calibrant.documents.plain.audit import Tests, Verification
from calibrant.documents.plain.head import Document, Estimate, Group


class Preset(TypedDict):
    """A benchmark and the labels that exist for it."""

    name: str
    title: str
    available: int
    gap: float | None


class DriftExpiry(TypedDict):
    """When a verification expires under a drift."""

    drift: float
    per: str
    half_life: float
    days: float
    date: str | None
    labels_per_unit: float | None


class PlanStep(TypedDict, total=False):
    """Labels for a precision, or the precision of labels, by what is checked."""

    step: str
    passive_labels: int | None
    active_labels: int | None
    detection_labels: int | None
    passive_precision: float | None
    active_precision: Any
    accuracy_floor: float | None


class PlanEntry(PlanStep, total=False):
    """The plan as a whole."""

    error_rate: float
    lipschitz: float | None
    precision: float | None
    labels: int | None
    expiry: DriftExpiry | None
    notes: list[str]
    preset: Preset


class ClaimPlan(TypedDict, total=False):
    """What labels of one confidence can show."""

    model: str
    method: str
    group: Group
    items: int
    needed: Any
    shows: Any


class MeasuredPlan(TypedDict, total=False):
    """What the labels of one confidence show already."""

    model: str
    method: str
    n: int
    probability: bool
    verification: Verification
    significance: Tests


class LeaderboardEntry(TypedDict, total=False):
    """A model and the ranks that the data leave open."""

    model: str
    rank: int
    rank_low: int
    rank_high: int
    group: int
    accuracy: Estimate
    brier: Estimate
    ece: Estimate


class RankedPair(TypedDict):
    """Two models of a leaderboard."""

    a: str
    b: str
    gap: Estimate
    tie: bool


class Leaderboard(TypedDict, total=False):
    """Document ``calibrant.leaderboard/1``."""

    metric: Literal["accuracy", "brier", "ece"]
    questions: int
    level: float
    results: list[LeaderboardEntry]
    groups: list[list[str]]
    pairs: list[RankedPair]
    instability: Any


class PlanDocument(Document, total=False):
    """Document ``calibrant.plan/1``."""

    passive_labels: int | None
    active_labels: int | None
    rows: list[PlanStep]
    curve: Any
    caveat: str
    assumed_lipschitz: bool
    measured: list[MeasuredPlan]
    leaderboard: Leaderboard | None
    plans: list[ClaimPlan]
    theory: Any


class Stop(TypedDict, total=False):
    """Whether labelling may stop."""

    stop: bool
    reason: str
    labels: int
    interval: Estimate
    half_width: float
    bounds: Any


class LabelEntry(TypedDict, total=False):
    """A pool of one model and method that is being labelled."""

    model: str
    method: str
    n: int
    labelled: int
    bins: int
    mean_confidence: float
    accuracy: Estimate
    gap: Estimate
    brier: Estimate
    ece: Estimate
    claimed_accuracy: Estimate
    gaps: Any
    stop: Stop
    history: Any
    more_labels: int | None
    more_for_precision: int | None


class LabelGoals(TypedDict, total=False):
    """What labelling is to reach."""

    precision: float | None
    threshold: float | None
    budget: int | None


class LabelDocument(Document, total=False):
    """Document ``calibrant.label/1``."""

    waves: Any
    batch: Any
    added: Any
    target: str
    grader: Any


class Alarm(TypedDict, total=False):
    """A change that was found."""

    when: str
    since: str
    bin: tuple[float, float] | None
    direction: str
    shift: float
    group: str | None
    group_shift: Any
    p_value: float


class BrokenPromise(TypedDict):
    """Since when an error limit is no longer kept."""

    when: str
    since: str
    error: float


class WatchedPromise(TypedDict, total=False):
    """An error limit that is watched."""

    broken: BrokenPromise | None
    error: Estimate | None
    p_value: float
    max_error: float
    given: int


class MixChange(TypedDict, total=False):
    """A change of who asks."""

    now: float
    before: float


class WatchedMix(TypedDict, total=False):
    """Who asks, and whether that has changed."""

    alarm: MixChange | None
    p_value: float


class Waiting(TypedDict, total=False):
    """Labels that wait until their day is complete."""

    labels: int
    days: int
    until: str | None


class Batch(TypedDict, total=False):
    """A batch of a watch."""

    when: str
    time: float | None
    n: int
    accuracy: Estimate
    mean_confidence: Estimate
    gap: Estimate
    capital: float
    alarm: bool


class MonitorEntry(TypedDict, total=False):
    """One model and method that is watched."""

    model: str
    method: str
    n: int
    batches: int
    alpha: float
    horizon: int
    reference: str
    alarm: Alarm | None
    alarms: list[Alarm]
    capital: float
    limit: float
    p_value: float
    drift_per_day: Estimate | None
    expiry: Any
    promise: WatchedPromise | None
    groups: Any
    mix: WatchedMix | None
    waiting: Waiting
    history: list[Batch]


class Announced(Alarm, total=False):
    """A batch that decides, with whose it is."""

    model: str
    method: str
    reference: str
    alarms: int
    promise: BrokenPromise | None


class TrafficChange(TypedDict):
    """A column of unlabelled traffic whose shares have changed."""

    column: str
    name: str | None
    before: float
    now: float
    p: float


class Traffic(TypedDict, total=False):
    """A look at unlabelled traffic."""

    rows: int
    outcome: str
    changes: list[TrafficChange]
    new_groups: dict[str, float]
    unchecked: list[str]
    next: str | None


class MonitorDocument(Document, total=False):
    """Document ``calibrant.monitor/2``."""

    traffic: Traffic
