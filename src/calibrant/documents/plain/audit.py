"""An audit: metrics, tests and reliability of each confidence, and calibration over meanings."""

from typing import Any, TypedDict

from calibrant.documents.plain.head import Document, Estimate, Group


class Test(TypedDict, total=False):
    """A test of one hypothesis; `p_rows` on rows with a confidence, `p_within` of the margin."""

    p_value: float
    p_adjusted: float
    p_rows: float
    p_within: float


class ErrorTest(Test, total=False):
    """The test that an error is below the margin, and the conditions that go with it."""

    upper: float
    at_best: float
    reachable: float
    accuracy_agrees: bool
    smooth: bool
    values: int
    slices: int
    tested: bool
    holds: bool


class MarginTests(TypedDict, total=False):
    """The tests that gap and error are below the margin."""

    gap: Test | None
    error: ErrorTest


class Tests(TypedDict, total=False):
    """The tests of one confidence; None where the data allow none."""

    calibration: Test | None
    gap: Test | None
    separation: Test | None
    within_margin: MarginTests
    tests: int


class ClassicTest(TypedDict):
    """What a calibrated model would show in bins of equal width."""

    expected_ece: float | None
    high_ece: float | None
    p_value: float | None
    simulations: int


class MissingView(TypedDict):
    """The mean gap under one assumption about answers without a confidence."""

    value: Any
    low: float
    high: float
    p_value: float


class MissingConfidences(TypedDict, total=False):
    """What answers without a confidence could change."""

    rows: int
    p_value: float
    share: float
    missing_accuracy: float
    with_confidence: MissingView
    reweighted: MissingView | None
    worst_case: MissingView


class Foretold(TypedDict):
    """What more checked grades would tell."""

    checks: int
    width: float


class Grading(TypedDict, total=False):
    """How far the errors of grades could move each number."""

    answers: int
    doubtful: float
    checked: int
    odds_factor: float | None
    accuracy: Any
    gap: Any
    error: Any
    auroc: Any
    foretold: Any
    as_graded: Any
    graders: Any


class Resolution(TypedDict, total=False):
    """How precisely these labels show the calibration error."""

    ece: Estimate
    bins: int
    half_width: float
    if_calibrated: float


class Verification(TypedDict, total=False):
    """How precise these labels let you be."""

    labels: int
    error_rate: Estimate
    lipschitz: Estimate
    lipschitz_note: str
    passive_floor: Estimate
    active_floor: Estimate
    accuracy_floor: Estimate
    resolution: Resolution
    verdict: str


class Bin(TypedDict, total=False):
    """A stated value or a slice of the scale."""

    lower: float
    upper: float
    n: float
    confidence: float
    rate: float
    low: float
    high: float
    band_low: float
    band_high: float
    without: list[float]


class Curve(TypedDict, total=False):
    """The curve of a reliability diagram."""

    confidence: list[float]
    rate: list[float]
    band_low: list[float]
    band_high: list[float]
    n: int
    level: float


class Reliability(TypedDict, total=False):
    """Bins and curve of a reliability diagram."""

    bins: list[Bin]
    curve: Curve | None
    histogram: list[int]


class Thresholds(TypedDict):
    """Answers given at or above each threshold, falling, and the wrong ones among them."""

    threshold: list[float]
    n: list[int]
    wrong: list[float]
    low: list[float]
    high: list[float]


class Verdict(TypedDict):
    """The verdict on one confidence."""

    calibration: str


class AuditEntry(TypedDict, total=False):
    """The audit of one model and method, or of one group of it."""

    model: str
    method: str
    group: Group
    n: int
    questions: int
    effective_n: float
    probability: bool
    metrics: dict[str, Estimate]
    named_metrics: Any
    calibration_test: ClassicTest
    significance: Tests
    reliability: Reliability
    thresholds: Thresholds
    verification: Verification
    notes: list[str]
    verdict: Verdict
    grading: Grading
    missing: MissingConfidences
    explained: dict[str, float]


class Floors(TypedDict, total=False):
    """The noise floors of both kinds of Sem-ECE."""

    sem1: Any
    sem2: Any
    questions: int
    several_right: int
    refused: str | None


class Leading(TypedDict):
    """The answer that leads the draws: what its share says, and how often it is right."""

    confidence: float
    accuracy: float
    gap: Estimate
    p_value: Any
    within: tuple[float, float]


class HardQuestion(TypedDict, total=False):
    """A question on which Sem1 and Sem2 differ most."""

    question_id: str
    text: str
    n: int
    classes: int
    sem1: float
    sem2: float
    gap: float
    margin: float
    correct: float
    regime: str
    answers: Any


class MeaningsEntry(TypedDict, total=False):
    """Calibration over meanings (Sem-ECE) of one model."""

    model: str
    group: Group
    questions: int
    draws: int
    left_out: dict[str, int]
    bins: int
    splits: str
    label: str
    accuracy: Estimate
    sem1: Estimate
    sem2: Estimate
    gap: Any
    predicted_gap: float
    bounds: Any
    boundaries: Any
    regime_plane: Any
    strata: Any
    reliability: Any
    convergence: Any
    hardest: list[HardQuestion]
    leading: Leading
    noise_floor: Floors
    judging: Any
    clustering_shift: Any
    right_joined_shift: Any


class AuditDocument(Document, total=False):
    """Document ``calibrant.audit/1``."""

    bins: int
    level: float
    resamples: int
    recalibrated: str | None
    sem_ece: list[MeaningsEntry]
    sem_ece_pooled: Any
    samples: Any
