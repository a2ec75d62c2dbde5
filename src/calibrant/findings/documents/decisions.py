"""Entries of decisions, cascades and mended confidences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType, field

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.documents.entries import Part


class AskedGroup(Part, frozen=True, kw_only=True):
    """A group without enough labels, and the share of questions in it."""

    group: str
    n: int
    share: float


class AnsweredGroup(Part, frozen=True, kw_only=True):
    """What is known of one group at its threshold."""

    group: str
    n: int
    threshold: float | None
    answered: EstimateEntry
    error: EstimateEntry
    certified: bool


class DecidePromise(Part, frozen=True, kw_only=True):
    """Of which questions something is promised."""

    whose: str = field(name="for")
    group: str | None
    traffic_rows: int | None
    asked: list[AskedGroup]
    groups: list[AnsweredGroup]


class MoreLabels(Part, frozen=True, kw_only=True):
    """The share that so many labels would likely certify; None: any number."""

    labels: int | None
    share: float


class DecideCost(Part, frozen=True, kw_only=True):
    """Mean cost per question of the policy, of always answering, of always asking."""

    costs: dict[str, float] | None
    policy: EstimateEntry
    always_answer: EstimateEntry
    always_ask: float
    saved: EstimateEntry


class ThresholdPoint(Part, frozen=True, kw_only=True):
    """Share answered from a threshold on, and the error among it."""

    threshold: float
    share: float
    error: EstimateEntry


class UnitField(Part, frozen=True, kw_only=True):
    """Rows of one kind, of which each unit has one: a field of a form."""

    field: str
    n: int
    says: float
    right: EstimateEntry
    gap: float


class DecideUnit(Part, frozen=True, kw_only=True):
    """Rows that belong together, of which something is promised as a whole; `n` counts units.

    `left_out` units have a row without a confidence or an outcome; `rows_alone` is the share that
    would pass by the limit of single rows, `steps_saved` that of all steps of runs that stop.
    `fields` stand in order of their gap, the most over-confident first.
    """

    column: str
    score: str
    rows: int
    left_out: int
    rows_alone: float | None
    steps_saved: float | None
    fields: list[UnitField]


class DecideSets(Part, frozen=True, kw_only=True):
    """Sets of classes: how large they are on average, and how many have each size from 1 on."""

    classes: list[str]
    mean_size: float
    sizes: list[int]
    median_mass: float


class DecideTogether(Part, frozen=True, kw_only=True):
    """Rows that hang together: their clusters, and how many labels they are worth.

    `withheld` says why nothing is promised of others like them.
    """

    column: str
    clusters: int
    labels: float
    withheld: str | None = None


class DecideEntry(Part, frozen=True, kw_only=True):
    """Where one model and method may answer alone.

    `delta` is the chance that this promise fails, `among` how many of the document share a whole.
    """

    model: str
    method: str
    n: int
    rate: float
    max_error: float | None
    delta: float | None
    certified: bool
    score: str
    needs: list[str]
    threshold: float | None
    promise: DecidePromise
    answered: EstimateEntry
    error: EstimateEntry
    labels_needed: int | None
    more_labels: list[MoreLabels]
    cost: DecideCost | None
    curve: list[ThresholdPoint]
    path: str | None
    among: int = 1
    grading: dict[str, Any] | UnsetType = UNSET
    unit: DecideUnit | UnsetType = UNSET
    together: DecideTogether | UnsetType = UNSET
    sets: DecideSets | UnsetType = UNSET


class CascadeModel(Part, frozen=True, kw_only=True):
    """A model of a cascade."""

    model: str
    accuracy: EstimateEntry
    relative_cost: EstimateEntry
    mean_cost: float
    without_confidence: int


class CascadeColumns(Part, frozen=True, kw_only=True):
    """Columns known before any model is asked, and once it has answered."""

    question: list[str]
    answer: list[str]


class ChosenPoint(Part, frozen=True, kw_only=True):
    """A setting that was picked on one part of the questions, as measured on another."""

    accuracy: EstimateEntry
    gain: EstimateEntry
    relative_cost: EstimateEntry
    splits: int


class CurvePoint(Part, frozen=True, kw_only=True):
    """A setting of a strategy; `pareto`: no other point beats it."""

    dial: float
    relative_cost: EstimateEntry
    accuracy: EstimateEntry
    pareto: bool


class Strategy(Part, frozen=True, kw_only=True):
    """A strategy of asking several models."""

    name: str
    words: str
    area: EstimateEntry
    points: dict[str, ChosenPoint]
    curve: list[CurvePoint]


class Comparison(Part, frozen=True, kw_only=True):
    """By how much the first strategy is ahead of another."""

    a: str
    b: str
    area: EstimateEntry


class LearningPoint(Part, frozen=True, kw_only=True):
    """What each strategy reaches with so many labels."""

    labels: int
    areas: Mapping[str, EstimateEntry]


class CascadeVerdict(Part, frozen=True, kw_only=True):
    """Which strategy has the highest area, and what is shown of the first."""

    highest_area: str
    compared: str
    against: dict[str, str]
    beats_largest: bool
    beats_largest_at_half_cost: bool
    best_gain: EstimateEntry
    best_relative_cost: EstimateEntry


class Guarantee(Part, frozen=True, kw_only=True):
    """What is guaranteed against the largest model, and whether that passed."""

    margin: float
    delta: float
    certified: bool


class CascadePromise(Part, frozen=True, kw_only=True):
    """What a policy reaches on questions that it had not seen."""

    accuracy: EstimateEntry
    cost: EstimateEntry
    relative_cost: EstimateEntry
    gain: EstimateEntry
    budget: float | None
    guarantee: Guarantee | None


class CascadePolicy(Part, frozen=True, kw_only=True):
    """The policy that was chosen; without a promise there were too few questions."""

    rule: str | None
    words: str | UnsetType = UNSET
    tolerance: float | None
    chosen: str
    single: str | UnsetType | None = UNSET
    share_of_second: float | UnsetType = UNSET
    promise: CascadePromise | None
    not_taken: dict[str, str] | UnsetType = UNSET
    path: str | None


class CascadeEntry(Part, frozen=True, kw_only=True):
    """The strategies of asking several models."""

    n: int
    n_test: int
    splits: int
    models: list[CascadeModel]
    features: CascadeColumns
    strategies: list[Strategy]
    comparisons: list[Comparison]
    largest: str
    learning_curve: list[LearningPoint]
    verdict: CascadeVerdict
    policy: CascadePolicy
    measure: str


class MendEntry(Part, frozen=True, kw_only=True):
    """What the confidence of one model and method means."""

    model: str
    method: str
    n: int
    verdict: str
    rising: bool
    deviance: float
    map: MendCurve
    promise: MendPromise
    reference: list[float]
    columns: MendColumns | None
    offset: float
    fitted_on: dict[str, Any]
    table: list[MendMeaning]
    path: str | None


class MendCurve(Part, frozen=True, kw_only=True):
    """A map at its knots, in log odds."""

    knots: list[float]
    log_odds: list[float]
    low: list[float]
    high: list[float]


class MendColumns(Part, frozen=True, kw_only=True):
    """Other columns that a map reads, or why it does not."""

    names: list[str]
    verdict: str
    promise: MendPromise | None
    map: MendCurve | None
    score: dict[str, Any] | None


class MendPromise(Part, frozen=True, kw_only=True):
    """How far off a map is on average at most, and what it gains."""

    off_by: float | None
    certainty: float
    gain: float | None
    gain_low: float | None


class MendMeaning(Part, frozen=True, kw_only=True):
    """A stated value, and what it means."""

    says: float
    means: float
    low: float
    high: float
    n: int
    right: float
