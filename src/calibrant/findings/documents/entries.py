"""Parts that all documents share, and the entries of comparisons and accuracies."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, get_args

import msgspec

from calibrant.core.arrays import EstimateEntry as EstimateEntry
from calibrant.core.arrays import json_number

Count: TypeAlias = int | float
"""A number of rows; weights make it one with decimals."""
Keys = dict[str, str] | None
"""The group that an entry is about, by column; None for all rows."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document: its keys are attributes, further keys are passed over."""

    if not TYPE_CHECKING:
        # Sentences name the parts of what they are made of: ``{grading.doubtful}``.
        def __getitem__(self, name: str) -> Any:
            return getattr(self, name)


class DataWarning(TypedDict):
    """What is to be known about the data before any claim."""

    id: str
    subject: dict[str, Any]
    text: str


UNDEFINED = EstimateEntry()
"""What a metric is that this data, or this kind of score, does not have."""


Outcome: TypeAlias = Literal["shown", "equivalent", "undecided", "depends"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
_NUMBERS = ("value", "low", "high", "p_adjusted", "margin")


class Claim(msgspec.Struct, frozen=True):
    """A sentence about the data, with the test behind it; numbers are the quantity and its ends."""

    # A rule, what is claimed of whom, and the rows (or questions) behind it.
    id: str
    subject: Mapping[str, Any]
    outcome: Outcome
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None
    margin: float | None = None
    n: Count | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, keys in the order that the documents promise.

        Examples
        --------
        >>> claim = Claim("audit.over_confident", {"model": "a"}, "shown", "Over-confident.", 0.1)
        >>> claim.to_dict()["value"], claim.to_dict()["low"]
        (0.1, None)
        """
        return {
            "id": self.id,
            "subject": dict(self.subject),
            "outcome": self.outcome,
            **{name: json_number(getattr(self, name)) for name in _NUMBERS},
            "n": self.n,
            "text": self.text,
        }


class NextStep(Part, frozen=True, kw_only=True):
    """What to do next."""

    command: str
    why: str


class ImportedLog(Part, frozen=True, kw_only=True):
    """What was read of a log; `expected` is what it says of itself."""

    source: str
    kind: str
    models: list[str | None]
    tasks: list[str]
    questions: int
    draws: int
    scores: int
    expected: int | None
    expected_unit: str = ""
    ungraded: dict[str, int]
    unreadable: int
    problems: list[dict[str, str]]
    steps: int = 0


class InputFile(Part, frozen=True, kw_only=True):
    """A file that was read."""

    path: str
    bytes: int | None = None
    sha256: str | None = None
    rows: int | None = None


class Metrics(Part, frozen=True, kw_only=True):
    """The metrics of a block, as the list of metrics has them; named here for editors.

    Calibration metrics of a score that only ranks are undefined.
    """

    error: EstimateEntry = UNDEFINED
    ece: EstimateEntry = UNDEFINED
    ece_debiased: EstimateEntry = UNDEFINED
    smooth_ece: EstimateEntry = UNDEFINED
    brier: EstimateEntry = UNDEFINED
    log_loss: EstimateEntry = UNDEFINED
    auroc: EstimateEntry = UNDEFINED
    auprc: EstimateEntry = UNDEFINED
    aurc: EstimateEntry = UNDEFINED
    e_aurc: EstimateEntry = UNDEFINED
    accuracy: EstimateEntry = UNDEFINED
    mean_confidence: EstimateEntry = UNDEFINED
    over_confidence: EstimateEntry = UNDEFINED
    under_confidence: EstimateEntry = UNDEFINED
    mcb: EstimateEntry = UNDEFINED
    dsc: EstimateEntry = UNDEFINED
    unc: EstimateEntry = UNDEFINED
    confidence_gap: EstimateEntry = UNDEFINED


class Resolution(Part, frozen=True, kw_only=True):
    """How precisely these labels show the calibration error."""

    ece: EstimateEntry = UNDEFINED
    bins: int | None = None
    half_width: float | None = None
    if_calibrated: float | None = None


class Verification(Part, frozen=True, kw_only=True):
    """How precise these labels let you be."""

    labels: int
    error_rate: EstimateEntry
    lipschitz: EstimateEntry
    passive_floor: EstimateEntry
    active_floor: EstimateEntry
    accuracy_floor: EstimateEntry
    resolution: Resolution = Resolution()
    optimal_bins: int | None = None
    lipschitz_note: str | None = None


class Family(Part, frozen=True, kw_only=True):
    """How many tests share one level."""

    tests: int = 0
    confidences: int = 0
    pairs: int = 0


class Multiplicity(Part, frozen=True, kw_only=True):
    """How the number of tests was corrected for: whole models or methods, and groups."""

    control: str
    alpha: float
    whole: Family = Family()
    groups: Family = Family()


class DroppedBlock(Part, frozen=True, kw_only=True):
    """Something that was left out, and why."""

    reason: str
    method: str | None = None
    group: Keys = None
    model: str | None = None


class CompareView(Part, frozen=True, kw_only=True):
    """Errors under one way of matching outcomes."""

    brier: EstimateEntry = UNDEFINED
    ece: EstimateEntry = UNDEFINED


class CompareViews(Part, frozen=True, kw_only=True):
    """Raw, and instance-, distribution- and candidate-aligned."""

    raw: CompareView = CompareView()
    ia: CompareView = CompareView()
    da: CompareView = CompareView()
    ca: CompareView = CompareView()
    sda: CompareView = CompareView()
    sos: CompareView = CompareView()


class CompareEntry(Part, frozen=True, kw_only=True):
    """One model in a comparison."""

    model: str
    accuracy: EstimateEntry
    views: CompareViews
    method: str | None = None
    group: Keys = None
    n: int | None = None
    mean_confidence: EstimateEntry = UNDEFINED
    verification: Verification | None = None


class SharedAnswers(msgspec.Struct, frozen=True):
    """Each model's mean confidence, and how often it said what, where both have an outcome."""

    n: int = 0
    a: EstimateEntry | None = None
    histogram_a: list[int] = []
    b: EstimateEntry | None = None
    histogram_b: list[int] = []


class PairEntry(Part, frozen=True, kw_only=True):
    """Two models in a comparison."""

    a: str
    b: str
    gaps: CompareViews
    tie: bool
    method: str | None = None
    group: Keys = None
    n: int | None = None
    accuracy_gap: EstimateEntry = UNDEFINED
    reversal: dict[str, bool | None] = msgspec.field(default_factory=dict)
    retention: float | None = None
    verdict: str | None = None
    winner: str | None = None
    depends_on: str | None = None
    text: str | None = None
    pattern: str | None = None
    floor: float | None = None
    ties: dict[str, dict[str, bool | None]] = msgspec.field(default_factory=dict)
    better: dict[str, str | None] = msgspec.field(default_factory=dict)
    shared: dict[str, SharedAnswers] | None = None


class Rank(Part, frozen=True, kw_only=True):
    """The ranks that the data leave open."""

    low: int
    high: int


class Standing(Part, frozen=True, kw_only=True):
    """One model in a league."""

    model: str
    score: EstimateEntry
    accuracy: float | None
    uninformative: bool
    saturated: bool
    placed: bool
    beats: list[str]
    tier: int | None = None
    rank: Rank | None = None


class WinMatrix(Part, frozen=True, kw_only=True):
    """The verdict on each pair, of the model of a row against that of a column."""

    models: list[str]
    table: list[list[str | None]]


class League(Part, frozen=True, kw_only=True):
    """The order of the models by one confidence."""

    method: str
    entries: list[Standing]
    win_matrix: WinMatrix
    group: Keys = None


class SelfPreference(Part, frozen=True, kw_only=True):
    """How much more a model believes its own answers, at equal grade."""

    judge: str
    bias: EstimateEntry = UNDEFINED
    on_right: EstimateEntry = UNDEFINED
    on_wrong: EstimateEntry = UNDEFINED
    method: str | None = None
    group: Keys = None


class Turns(Part, frozen=True, kw_only=True):
    """How often the order of two models turns round at equal accuracy."""

    cases: int
    rates: dict[str, EstimateEntry] = msgspec.field(default_factory=dict)
    resolved_reversals: dict[str, int] = msgspec.field(default_factory=dict)
    verdicts: dict[str, int] = msgspec.field(default_factory=dict)
    agreement: EstimateEntry = UNDEFINED
    correlation: dict[str, EstimateEntry] = msgspec.field(default_factory=dict)
    by_accuracy_gap: list[dict[str, Count | EstimateEntry]] = msgspec.field(default_factory=list)


class Compared(Part, frozen=True, kw_only=True):
    """Which method and group was compared."""

    method: str | None = None
    group: Keys = None


class ComparedPart(Part, frozen=True, kw_only=True):
    """One method and group of a comparison."""

    keys: Compared
    summary: Turns


class AccuracyEntry(Part, frozen=True, kw_only=True):
    """How often one model, or one group of its answers, is right.

    `disagree` is the share of questions with several answers of which some are right and some
    wrong; None where no question has several.
    """

    model: str
    group: dict[str, str] | None
    n: int
    questions: int
    clusters: str | None
    accuracy: EstimateEntry
    disagree: EstimateEntry | None


class AccuracyPair(Part, frozen=True, kw_only=True):
    """By how much `a` is right more often than `b`, on the questions of both."""

    a: str
    b: str
    questions: int
    difference: EstimateEntry
    p: float
    p_adjusted: float
