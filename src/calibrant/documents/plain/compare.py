"""A comparison: models, pairs and their verdicts, leagues and how often the order turns."""

from typing import Any, TypedDict

from calibrant.documents.plain.audit import Grading, Verification
from calibrant.documents.plain.head import Document, Ends, Estimate, Group


class Errors(TypedDict, total=False):
    """Errors under one way of matching outcomes, or their difference."""

    brier: Estimate
    ece: Estimate


class CompareEntry(TypedDict, total=False):
    """One model in a comparison."""

    model: str
    method: str
    group: Group
    n: int
    accuracy: Estimate
    unstated: int
    mean_confidence: Estimate
    views: dict[str, Errors]
    verification: Verification


class Footing(TypedDict, total=False):
    """The difference of errors on one footing."""

    gap: Estimate


class Evidence(TypedDict, total=False):
    """What the verdict on a pair rests on."""

    level: float
    footings: dict[str, Footing]
    unstated: float
    at_least: float


class Judges(TypedDict):
    """Two models that judge the same answers."""

    gap: Estimate
    shown: bool
    p_adjusted: float | None


class Pair(TypedDict, total=False):
    """Two models in a comparison."""

    a: str
    b: str
    method: str
    group: Group
    n: int
    accuracy_gap: Estimate
    p_accuracy_adjusted: float | None
    gaps: dict[str, Errors]
    errors: Any
    floor: float
    ties: dict[str, dict[str, bool]]
    reversal: dict[str, bool | None]
    pattern: str
    retention: float
    evidence: Evidence
    shared: Any
    verdict: str
    winner: str | None
    depends_on: str | None
    rests_on: str | None
    tie: bool
    not_shown_on: list[str]
    shown_if_alone: bool
    p_verdict_adjusted: float | None
    margin: float
    pairs: int
    better: dict[str, str | None]
    text: str
    grading: Grading | None
    judges: Judges | None


class LeagueEntry(TypedDict, total=False):
    """One model in a league."""

    model: str
    n: int
    score: Estimate
    accuracy: float
    uninformative: bool
    saturated: bool
    placed: bool
    tier: int | None
    rank: Ends | None
    beats: list[str]


class League(TypedDict, total=False):
    """The models of one method and group, in tiers."""

    method: str
    group: Group
    winner: str | None
    worse_than_constant: int
    verdicts: dict[str, int]
    entries: list[LeagueEntry]
    win_matrix: Any


class Summary(TypedDict, total=False):
    """How often the order turns round."""

    cases: int
    rates: dict[str, Estimate]
    agreement: Estimate
    resolved_reversals: dict[str, int]
    by_accuracy_gap: Any
    correlation: dict[str, Estimate]
    verdicts: dict[str, int]


class Place(TypedDict, total=False):
    """Method and group of a summary."""

    method: str
    group: Group


class SummaryEntry(TypedDict, total=False):
    """The summary of one method and group."""

    keys: Place
    summary: Summary


class SelfPreference(TypedDict, total=False):
    """How much more a judge trusts its own answers."""

    method: str
    group: Group
    judge: str
    bias: Estimate
    on_right: Estimate
    on_wrong: Estimate


class CompareDocument(Document, total=False):
    """Document ``calibrant.compare/1``."""

    bins: int
    level: float
    margin: float
    league: list[League]
    pairs: list[Pair]
    summaries: list[SummaryEntry]
    not_compared: Any
    self_preference: list[SelfPreference]
