"""Entries of labels: what people make, what is watched, and what a judge is worth beside people."""

from __future__ import annotations

from typing import Any

from msgspec import field, structs

from calibrant.findings.documents.entries import UNDEFINED, EstimateEntry, Part


class Traffic(Part, frozen=True, kw_only=True):
    """What unlabelled rows show of a promise, and the next command."""

    outcome: str
    changes: list[dict[str, Any]]
    next: str | None = None


class WatchAlarm(Part, frozen=True, kw_only=True):
    """A change of calibration that was found."""

    when: str
    since: str | None
    bin: list[float] | None
    direction: str
    shift: float
    group: str | None
    group_shift: float | None
    since_batch: int
    p_value: float


class WatchedBatch(Part, frozen=True, kw_only=True):
    """A batch of a stream."""

    when: str
    n: int
    accuracy: EstimateEntry
    mean_confidence: EstimateEntry
    gap: EstimateEntry
    capital: float
    alarm: bool = False


class WatchExpiry(Part, frozen=True, kw_only=True):
    """How long a verification holds by the drift that was seen."""

    precision: float
    drift_per_day: float
    drift_source: str
    verified: str | None
    days: float
    date: str | None


class MixAlarm(Part, frozen=True, kw_only=True):
    """A change of the mix of groups."""

    when: str
    since: str
    group: str
    before: float
    now: float
    p_value: float


class MixEntry(Part, frozen=True, kw_only=True):
    """What a watch over the mix of groups found."""

    alarm: MixAlarm | None
    alarms: list[MixAlarm]
    p_value: float


class BrokenPromise(Part, frozen=True, kw_only=True):
    """Since when more answers are wrong than was promised."""

    when: str
    since: str
    error: float
    n: int
    p_value: float


class PromiseEntry(Part, frozen=True, kw_only=True):
    """A promise about errors, and whether it is kept."""

    max_error: float
    delta: float | None
    made: str
    given: int
    error: EstimateEntry | None
    evidence: float
    p_value: float
    broken: BrokenPromise | None


class WaitingEntry(Part, frozen=True, kw_only=True):
    """Labels that wait until their day is complete."""

    labels: int
    days: int
    until: str | None = None


class OrdinaryDaysEntry(Part, frozen=True, kw_only=True):
    """How far ordinary days differ: `spread` 1 is what their labels explain, `week` the gap."""

    days: int
    spread: float | None
    differ: bool
    wander: bool
    week: dict[str, float] | None


class MonitorEntry(Part, frozen=True, kw_only=True):
    """One model and method that is watched."""

    model: str
    method: str
    n: int
    batches: int
    reference: str
    alarm: WatchAlarm | None
    alarms: list[WatchAlarm]
    limit: float
    p_value: float
    drift_per_day: EstimateEntry | None
    expiry: WatchExpiry | None
    waiting: WaitingEntry
    history: list[WatchedBatch]
    ordinary_days: OrdinaryDaysEntry | None = None
    promise: PromiseEntry | None = None
    mix: MixEntry | None = None


class StopEntry(Part, frozen=True, kw_only=True):
    """May one stop labelling?"""

    stop: bool
    reason: str
    half_width: float
    interval: EstimateEntry
    bounds: EstimateEntry | None = None


class GapCell(Part, frozen=True, kw_only=True):
    """The gap of a cell of confidences; None without a label."""

    bin: tuple[float, float]
    share: float
    labels: int
    gap: float | None
    standard_error: float | None


class LabelLook(Part, frozen=True, kw_only=True):
    """What an earlier number of labels showed."""

    labels: int
    ece: EstimateEntry


class JudgedEntry(Part, frozen=True, kw_only=True):
    """A quantity by labels and a judge, and by each alone."""

    combined: EstimateEntry
    gold_only: EstimateEntry
    judge_only: float
    gold_saved: int


class JudgedStretch(Part, frozen=True, kw_only=True):
    """The gap in a stretch of the confidence."""

    low: float
    high: float
    gap: JudgedEntry


class Judged(Part, frozen=True, kw_only=True):
    """What a judge adds to the labels of people."""

    gold_labels: int
    judge_labels: int
    accuracy: JudgedEntry
    brier: JudgedEntry
    gap: JudgedEntry
    bins: list[JudgedStretch]


class LabelEntry(Part, frozen=True, kw_only=True):
    """One model and method of a pool; without a label it holds names and numbers alone."""

    model: str
    method: str
    n: int
    labelled: int
    mean_confidence: float
    accuracy: EstimateEntry = UNDEFINED
    ece: EstimateEntry = UNDEFINED
    claimed_accuracy: EstimateEntry = UNDEFINED
    stop: StopEntry | None = None
    gaps: list[GapCell] = field(default_factory=list)
    history: list[LabelLook] = field(default_factory=list)
    more_labels: int | None = None
    more_for_precision: int | None = None
    judge: Judged | None = None


class CheckedModel(Part, frozen=True, kw_only=True):
    """How good the grades of one model are, by those that people checked."""

    model: str
    answers: int
    doubtful: float
    checked: int
    wrong: int = 0
    error: EstimateEntry = UNDEFINED
    kappa: float | None = None


class GradeRule(Part, frozen=True, kw_only=True):
    """How often people found the grades of a rule wrong."""

    rule: str
    graded: str
    checked: int
    wrong: int


class GraderEntry(Part, frozen=True, kw_only=True):
    """What checks say about grades."""

    models: list[CheckedModel]
    rules: list[GradeRule]


class LabelBatch(Part, frozen=True, kw_only=True):
    """A batch that was written."""

    path: str
    number: int
    items: int
    design: str
    side: str | None


class LabelsAdded(Part, frozen=True, kw_only=True):
    """What became of a batch that came back."""

    labels: int
    left_empty: int
    written: str


class PeopleMean(Part, frozen=True, kw_only=True):
    """People's mean over all items, in people's units."""

    combined: EstimateEntry
    people_only: EstimateEntry
    judge_only: float | None
    lenience: EstimateEntry
    width_ratio: float
    labels_saved: int


class PeopleAgreement(Part, frozen=True, kw_only=True):
    """How far people agree with each other, and by how much the judge agrees less (below 0)."""

    count: int
    items: int
    order: EstimateEntry
    kappa: EstimateEntry | None
    order_difference: EstimateEntry
    kappa_difference: EstimateEntry | None


class ScoreMeaning(Part, frozen=True, kw_only=True):
    """A score of the judge, what people's mean is there, and labels nearest to it."""

    score: float
    value: float
    low: float
    high: float
    labels: int
    people: float | None


class JudgeBias(Part, frozen=True, kw_only=True):
    """A lean of the judge: by model, feature, length or position; `p` is not corrected."""

    kind: str
    name: str | None
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    method: str
    labels: int
    judge_share: float | None = None
    people_share: float | None = None
    flips: int | None = None


class JudgedModel(Part, frozen=True, kw_only=True):
    """People's mean for one model or group, with the judge's own."""

    name: str
    n: int
    labels: int
    combined: EstimateEntry
    judge_only: float
    strength: EstimateEntry | None
    people_only: float | None = None


class JudgedPair(Part, frozen=True, kw_only=True):
    """By how much people put the first model above the second."""

    a: str
    b: str
    difference: EstimateEntry
    win_rate: EstimateEntry | None
    strength: EstimateEntry | None
    p_adjusted: float | None

    def turned(self) -> JudgedPair:
        """Return the same with the second model first."""
        return structs.replace(self, a=self.b, b=self.a, difference=self.difference.turned())


class LabelsNeeded(Part, frozen=True, kw_only=True):
    """Labels in all until people's mean is known to within plus or minus `precision`."""

    precision: float
    labels: int


class Disagreement(Part, frozen=True, kw_only=True):
    """An item whose rating by people surprises most, given the judge's score."""

    row: int
    question: str | None
    model: str | None
    text: str | None
    judge: float
    people: float
    expected: float


class JudgeScale(Part, frozen=True, kw_only=True):
    """How the judge and people rate: `words` are the judge's, from the worst to the best."""

    kind: str
    judge: list[float]
    people: list[float]
    words: list[str]
    same: bool
    people_words: list[str] = field(default_factory=list)


class JudgeEntry(Part, frozen=True, kw_only=True):
    """One judge beside people."""

    judge: str
    n: int
    labels: int
    scale: JudgeScale
    people_mean: PeopleMean
    order: EstimateEntry
    kappa: EstimateEntry | None
    people: PeopleAgreement | None
    map: list[ScoreMeaning]
    bias: list[JudgeBias]
    models: list[JudgedModel]
    groups: list[JudgedModel]
    pairs: list[JudgedPair]
    labels_needed: LabelsNeeded | None
    disagreements: list[Disagreement]
    cost: float | None
    path: str | None
