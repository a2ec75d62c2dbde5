"""Entries of plans and leaderboards: what labels cost, and what they show."""

from calibrant.findings.documents.entries import UNDEFINED, EstimateEntry, Keys, Part, Verification


class PlanStep(Part, frozen=True, kw_only=True):
    """What a plan costs up to one of its steps, in the worst case."""

    step: str
    passive_labels: int | None
    active_labels: int | None
    detection_labels: int | None
    passive_precision: float | None
    active_precision: float | None
    accuracy_floor: float | None


class PlanPoint(Part, frozen=True, kw_only=True):
    """A point of the curve of a plan."""

    precision: float
    passive_labels: int | None
    active_labels: int


class PlanExpiry(Part, frozen=True, kw_only=True):
    """How long a verification holds where the gap drifts."""

    drift: float
    per: str
    half_life: float
    days: float
    date: str | None
    labels_per_unit: float | None


class PlanPreset(Part, frozen=True, kw_only=True):
    """What a framework asks for, beside the labels thought to exist."""

    name: str
    title: str
    available: int
    gap: float | None


class PlanEntry(Part, frozen=True, kw_only=True):
    """Labels for a precision, or the precision of labels."""

    error_rate: float
    lipschitz: float | None
    precision: float | None
    labels: int | None
    passive_labels: int | None
    active_labels: int | None
    passive_precision: float | None
    active_precision: float | None
    expiry: PlanExpiry | None
    notes: list[str]
    preset: PlanPreset | None = None


class PlanTests(Part, frozen=True, kw_only=True):
    """Tests of one model: of its calibration, and of its mean gap."""

    calibration: dict[str, float | None] | None
    gap: dict[str, float | None] | None
    tests: int


class MeasuredEntry(Part, frozen=True, kw_only=True):
    """What labels at hand show of one model and method."""

    model: str
    method: str
    verification: Verification
    significance: PlanTests


Numbers = dict[str, int | float]


class Dynamics(Part, frozen=True, kw_only=True):
    """Whether an improving deployed model stays verifiable.

    `critical_exponent`: decay of the error rate above which labels fall behind. `outcome`:
    ``from`` some `time` on, ``until`` it, ``always`` or ``never``.
    """

    critical_exponent: float
    outcome: str
    time: float | None


class PipelineEntry(Part, frozen=True, kw_only=True):
    """The steepness of the stages of a pipeline, and of the whole at most."""

    names: list[str]
    steepness: list[EstimateEntry]
    bound: float


class PublishedEntry(Part, frozen=True, kw_only=True):
    """Whether two published scores differ."""

    gap: EstimateEntry
    labels_needed: int | None
    outcome: str = "undecided"
    a: float | None = None
    b: float | None = None
    model_a: str | None = None
    model_b: str | None = None
    benchmark: str | None = None
    labels: int | None = None


class MeaningPlanEntry(Part, frozen=True, kw_only=True):
    """How many questions show that two models differ by meaning, by draws of each."""

    model_a: str
    model_b: str
    questions: int
    draws: int
    difference: EstimateEntry
    aim: float
    needed: list[dict[str, int | None]]


class TemperatureEntry(Part, frozen=True, kw_only=True):
    """How precisely labels show an error, if only a temperature is off."""

    model: str
    error: float


class SelfEvaluationEntry(Part, frozen=True, kw_only=True):
    """Whether a confidence tells how wrong it is."""

    model: str
    gap: dict[str, float | None]
    accuracy: dict[str, float | None]


class TheoryEntry(Part, frozen=True, kw_only=True):
    """What else was asked of the theory; None what was not."""

    horizon: Numbers | None = None
    scaling: Numbers | None = None
    dynamics: dict[str, Dynamics] | None = None
    transfer: Numbers | None = None
    effective_labels: float | None = None
    robustness_floor: Numbers | None = None
    published: PublishedEntry | None = None
    published_pairs: list[PublishedEntry] | None = None
    two_phase: Numbers | None = None
    rounds: int | None = None
    depth: Numbers | None = None
    grouping: Numbers | None = None
    meanings: list[MeaningPlanEntry] | None = None
    temperature: list[TemperatureEntry] | None = None
    self_evaluation: list[SelfEvaluationEntry] | None = None
    pipeline: PipelineEntry | None = None


class ClaimPlan(Part, frozen=True, kw_only=True):
    """Labels for a claim if the model truly has a certain calibration error.

    `one_look`: labels for one look; `all_looks`: the most labels for whoever looks all the time;
    `mean_used`: what they use on average, rounded. None where the pool is too small.
    """

    true_error: float
    one_look: int | None
    all_looks: int | None = None
    mean_used: int | None = None


class ClaimNeeds(Part, frozen=True, kw_only=True):
    """Labels that show a claim, for a calibrated model and for one with half its error."""

    threshold: float
    power: float
    calibrated: ClaimPlan
    half: ClaimPlan


class ClaimChance(Part, frozen=True, kw_only=True):
    """The chance that labels show a claim."""

    threshold: float
    calibrated: float
    half: float


class LabelsShow(Part, frozen=True, kw_only=True):
    """The smallest limits that a number of labels can show."""

    labels: int
    power: float
    calibrated: float | None
    half: float | None
    chance: ClaimChance | None


class ClaimPlanEntry(Part, frozen=True, kw_only=True):
    """What labels can show of one model and method, or of one group of it."""

    model: str
    method: str
    group: Keys
    items: int
    needed: ClaimNeeds | None
    shows: LabelsShow | None


class RankedModel(Part, frozen=True, kw_only=True):
    """A model of a leaderboard; its value stands under the name of the metric."""

    model: str
    rank: int
    rank_low: int
    rank_high: int
    group: int
    accuracy: EstimateEntry = UNDEFINED
    brier: EstimateEntry = UNDEFINED
    ece: EstimateEntry = UNDEFINED


class RankedPair(Part, frozen=True, kw_only=True):
    """Two models of a leaderboard, the better one first."""

    a: str
    b: str
    gap: EstimateEntry
    tie: bool


class Instability(Part, frozen=True, kw_only=True):
    """How often a smaller resample of the questions would have ranked otherwise."""

    share: float
    resamples: int
    any_change: float
    best_changes: float
    pairs_flipped: float
    models: dict[str, float]
