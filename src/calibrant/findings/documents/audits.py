"""Entries of an audit: a block per confidence, its tests and its diagram, and meanings."""

from typing import TypedDict

import msgspec

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.documents.entries import UNDEFINED, Count, Keys, Metrics, Part, Verification


class ReliabilityBin(Part, frozen=True, kw_only=True):
    """A stated value or a slice of the scale; `without`: values inside that stand alone."""

    confidence: float
    rate: float
    n: Count
    low: float | None = None
    high: float | None = None
    lower: float | None = None
    upper: float | None = None
    without: list[float] = msgspec.field(default_factory=list)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval of the rate: the whole scale where nothing is known."""
        return 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high


class ReliabilityBand(Part, frozen=True, kw_only=True):
    """Where a perfectly calibrated model would lie, along the scale."""

    confidence: list[float] = msgspec.field(default_factory=list)
    band_low: list[float | None] = msgspec.field(default_factory=list)
    band_high: list[float | None] = msgspec.field(default_factory=list)


class ReliabilityDiagram(Part, frozen=True, kw_only=True):
    """Bins and curve of a reliability diagram."""

    bins: list[ReliabilityBin]
    curve: ReliabilityBand | None = None
    histogram: list[Count] | None = None


class Thresholds(Part, frozen=True, kw_only=True):
    """Answers given at or above each threshold, falling, and the wrong ones among them."""

    threshold: list[float]
    n: list[Count]
    wrong: list[Count]
    low: list[float | None]
    high: list[float | None]


class Test(TypedDict, total=False):
    """A test of one confidence: by itself, and corrected for all of the document."""

    p_value: float
    p_adjusted: float
    p_within: float
    p_rows: float


class ErrorTest(Test, total=False):
    """Is the error within the margin: what was tested, where, and whether all conditions hold."""

    upper: float | None
    at_best: float | None
    reachable: float | None
    accuracy_agrees: bool
    smooth: bool
    values: int
    slices: int
    tested: bool
    holds: bool


class MarginTests(TypedDict):
    """Tests of whether gap and error are within the margin."""

    gap: Test | None
    error: ErrorTest


class Significance(TypedDict, total=False):
    """The tests behind the claims about one confidence."""

    calibration: Test | None
    gap: Test | None
    within_margin: MarginTests
    separation: Test | None
    tests: int


class View(TypedDict):
    """The mean gap under one assumption about the confidences that are missing."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float


class MissingEntry(TypedDict):
    """Graded answers without a confidence, and what they could change about the mean gap."""

    rows: int
    share: float
    missing_accuracy: float
    p_value: float
    with_confidence: View
    reweighted: View | None
    worst_case: View


class ClassicTest(TypedDict):
    """What a calibrated model would show in bins of equal width."""

    expected_ece: float | None
    high_ece: float | None
    p_value: float | None
    simulations: int


class Checks(Part, frozen=True, kw_only=True):
    """How many checked grades would tell a number to within half of a width."""

    checks: int
    width: float


class AsGraded(Part, frozen=True, kw_only=True):
    """What the grades alone would have shown."""

    decided: list[str] = msgspec.field(default_factory=list)


class Grading(Part, frozen=True, kw_only=True):
    """How sure grades are that the program made, and where they leave each number."""

    doubtful: float
    checked: int
    odds_factor: float | None = None
    accuracy: EstimateEntry | None = None
    gap: EstimateEntry | None = None
    error: EstimateEntry | None = None
    auroc: EstimateEntry | None = None
    foretold: Checks | None = None
    as_graded: AsGraded | None = None


class Verdict(Part, frozen=True, kw_only=True):
    """The verdict on an entry: a word for programs, and its sentences."""

    calibration: str
    how: str = ""
    sure: str = ""


class DependentGroupsEntry(Part, frozen=True, kw_only=True):
    """A grouping whose rows are right and wrong together, and by how much errors grow."""

    kind: str
    column: str | None
    words: str
    groups: int
    largest: float
    inflation: float
    p_value: float
    wider: float | None = None


class DependenceEntry(Part, frozen=True, kw_only=True):
    """What was searched for rows that hang together, by kind, and what was found.

    `of_these` has corrected p-values of what is said of these very groups alone; `looked_at` counts
    the rows of a table that was read in parts; `dominant` is a column of which one value has most
    rows.
    """

    searched: dict[str, int] = msgspec.field(default_factory=dict)
    groups: list[DependentGroupsEntry] = msgspec.field(default_factory=list)
    of_these: dict[str, float] = msgspec.field(default_factory=dict)
    looked_at: int | None = None
    dominant: DependentGroupsEntry | None = None


class AuditBlock(Part, frozen=True, kw_only=True):
    """The audit of one model and method, or of one group of it, with its metrics by name."""

    model: str
    method: str
    n: int
    metrics: dict[str, EstimateEntry]
    group: Keys = None
    questions: int = 0
    probability: bool = True
    effective_n: float | None = None
    dependence: DependenceEntry | None = None
    named_metrics: dict[str, dict[str, float | None]] = msgspec.field(default_factory=dict)
    calibration_test: ClassicTest | None = None
    significance: Significance | None = None
    missing: MissingEntry | None = None
    verification: Verification | None = None
    reliability: ReliabilityDiagram | None = None
    thresholds: Thresholds | None = None
    verdict: Verdict | None = None
    grading: Grading | None = None
    notes: list[str] = msgspec.field(default_factory=list)

    def metric(self, name: str) -> EstimateEntry:
        """Return a metric; one that the score does not have is undefined."""
        return self.metrics.get(name, UNDEFINED)


class AuditEntry(AuditBlock, frozen=True, kw_only=True):
    """The audit of one model and method, or of one group of it."""

    metrics: Metrics  # type: ignore[assignment]


class Coverage(Part, frozen=True, kw_only=True):
    """Which rows of a model and method there are, and how those that are not differ."""

    model: str
    method: str | None
    n: int = 0
    accuracy: float | None = None
    dropped: int = 0
    missing: int = 0
    expected: int = 0
    values: int | None = None
    answers_empty: int | None = None
    repeated_texts: int | None = None
    missing_accuracy: float | None = None
    kept_accuracy: float | None = None
    missing_p: float | None = None
    only_method: bool = True


class Leading(Part, frozen=True, kw_only=True):
    """The meaning that leads the draws: how much is said of it, and how often it is right."""

    gap: EstimateEntry
    confidence: float | None = None
    accuracy: float | None = None
    p_value: float | None = None
    within: list[float | None] = msgspec.field(default_factory=list)


class Floor(Part, frozen=True, kw_only=True):
    """The error that chance alone would show, and the p-value of more than that."""

    floor: float | None = None
    p: float = 1.0


class NoiseFloor(Part, frozen=True, kw_only=True):
    """Whether the errors are more than chance, or why that was not tested."""

    sem2: Floor | None = None
    refused: str | None = None


class PlaneCell(Part, frozen=True, kw_only=True):
    """Questions with so many meanings and such a margin."""

    classes: int
    margin: float
    n: int


class Stratum(Part, frozen=True, kw_only=True):
    """Questions of similar margin."""

    low: float
    high: float
    n: int
    sem1: float
    sem2: float
    ece_gap: EstimateEntry | None = None
    sem1_band: EstimateEntry | None = None
    sem2_band: EstimateEntry | None = None


class DrawsPoint(Part, frozen=True, kw_only=True):
    """Both errors with fewer draws."""

    n: int
    sem1: EstimateEntry
    sem2: EstimateEntry


class Convergence(Part, frozen=True, kw_only=True):
    """Both errors as draws are added."""

    points: list[DrawsPoint]


class DrawnAnswer(Part, frozen=True, kw_only=True):
    """An answer to a question, and how often it was drawn."""

    answer: str
    draws: int


class HardQuestion(Part, frozen=True, kw_only=True):
    """A question whose leading meaning is least settled."""

    question_id: str | int | float
    sem1: float | None
    sem2: float | None
    gap: float
    margin: float | None
    regime: str | None = None
    answers: list[DrawnAnswer] = msgspec.field(default_factory=list)
    text: str | None = None


class MeaningShift(Part, frozen=True, kw_only=True):
    """How far both errors move with other meanings or another judge."""

    sem1: EstimateEntry
    sem2: EstimateEntry
    questions: int = 0


class SemanticEntry(Part, frozen=True, kw_only=True):
    """Calibration over meanings (Sem-ECE) of one model."""

    model: str
    sem1: EstimateEntry = UNDEFINED
    sem2: EstimateEntry = UNDEFINED
    questions: int = 0
    draws: int | None = None
    label: str = "split"
    accuracy: EstimateEntry = UNDEFINED
    group: Keys = None
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    gap: dict[str, EstimateEntry | None] = msgspec.field(default_factory=dict)
    predicted_gap: float | None = None
    bounds: dict[str, float | None] = msgspec.field(default_factory=dict)
    boundaries: dict[str, float] = msgspec.field(default_factory=dict)
    regime_plane: list[PlaneCell] | None = None
    strata: list[Stratum] = msgspec.field(default_factory=list)
    reliability: dict[str, list[ReliabilityBin]] | None = None
    convergence: Convergence | None = None
    hardest: list[HardQuestion] = msgspec.field(default_factory=list)
    leading: Leading | None = None
    noise_floor: NoiseFloor = NoiseFloor()
    judging: MeaningShift | None = None
    clustering_shift: MeaningShift | None = None
    right_joined_shift: MeaningShift | None = None

    @property
    def name(self) -> str:
        """The model and, where questions are grouped, the group."""
        groups = [f"{key} = {value}" for key, value in (self.group or {}).items()]
        return ", ".join([self.model, *groups])


class PooledMeanings(Part, frozen=True, kw_only=True):
    """Calibration over meanings of all models together."""

    models: int
    reliability: dict[str, list[ReliabilityBin]] | None = None
