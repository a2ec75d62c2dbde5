"""The keys of every kind of document, as annotations: `report.typed` makes results of them.

A key that may be missing is annotated with None.
"""

from __future__ import annotations

from typing import Any

from calibrant.documents.entries import (
    AuditEntry,
    CascadeEntry,
    CompareEntry,
    GroupEntry,
    GroupsEntry,
    MendEntry,
    MonitorEntry,
    PairEntry,
    PlanEntry,
    SemanticEntry,
)
from calibrant.documents.parts import Claim, DroppedBlock, EstimateEntry, InputFile, NextStep

Entries = list[dict[str, Any]]


class Fields:
    """The keys that every document has."""

    schema: str
    version: str


class _Head(Fields):
    """The keys of every document that is made from data."""

    source: str | None
    input: list[InputFile]
    seed: int | None
    settings: dict[str, Any] | None
    data: dict[str, Any] | None
    claims: list[Claim] | None
    next: NextStep | None


class AuditFields(_Head):
    """Document ``calibrant.audit/1``."""

    bins: int
    level: float
    resamples: int
    dropped: dict[str, Any]
    results: list[AuditEntry]
    sem_ece: list[SemanticEntry] | None
    reading: dict[str, Any] | None
    wrong: Entries | None


class CompareFields(_Head):
    """Document ``calibrant.compare/1``."""

    bins: int
    level: float
    results: list[CompareEntry]
    pairs: list[PairEntry]
    not_compared: list[DroppedBlock] | None
    dropped: dict[str, Any]
    league: Entries | None
    summaries: Entries | None


class GroupsFields(_Head):
    """Document ``calibrant.groups/1``: with one model and method its numbers stand at the top."""

    features: list[str]
    dropped: dict[str, Any]
    results: list[GroupsEntry]
    grouping_loss: EstimateEntry | None
    calibration_loss: EstimateEntry | None
    groups: list[GroupEntry] | None
    wrong: Entries | None


class CascadeFields(_Head):
    """Document ``calibrant.cascade/1``."""

    decision: str
    dropped: dict[str, Any]
    results: list[CascadeEntry]


class DecideFields(_Head):
    """Document ``calibrant.decide/1``."""

    dropped: dict[str, Any]
    results: Entries
    wrong: Entries | None


class MendFields(_Head):
    """Document ``calibrant.mend/1``."""

    dropped: dict[str, Any]
    results: list[MendEntry]


class PlanFields(_Head):
    """Document ``calibrant.plan/1``."""

    passive_labels: int | None
    active_labels: int | None
    results: list[PlanEntry]
    measured: Entries
    leaderboard: dict[str, Any] | None


class LabelFields(_Head):
    """Document ``calibrant.label/1``."""

    results: Entries
    batch: dict[str, Any] | None
    added: dict[str, Any] | None
    dropped: dict[str, Any] | None


class MonitorFields(_Head):
    """Document ``calibrant.monitor/2``."""

    results: list[MonitorEntry]
    dropped: dict[str, Any]


class MultiAnswerFields(_Head):
    """Document ``calibrant.multi_answer/1``."""

    results: Entries
    mixes: list[list[int]]


class BenchFields(_Head):
    """Document ``calibrant.bench/1``."""

    questions: int
    results: Entries


class BenchCheckFields(_Head):
    """Document ``calibrant.bench_check/1``."""

    ok: bool


class ImportFields(_Head):
    """Document ``calibrant.import_logs/1``."""

    results: Entries
    scores: Entries
    notes: list[str]
    written: list[str]


class MethodsFields(_Head):
    """Document ``calibrant.methods/1``."""

    methods: Entries
    needs: dict[str, str]
    results: Entries


class ModelsFields(_Head):
    """Document ``calibrant.models/1``."""

    folder: str
    results: Entries


class GradeFields(_Head):
    """Document ``calibrant.grade/1``."""

    samples: dict[str, Any]
    semantics: dict[str, Any]
    results: Entries
    methods: Entries
    written: list[str]


class RunFields(Fields):
    """Document ``calibrant.run/1``."""

    study: str
    models: Entries
    questions: int
    results: Entries


class ReportFields(_Head):
    """Document ``calibrant.report/1``."""

    written: list[str]
    documents: Entries


class DemoFields(Fields):
    """Document ``calibrant.demo/1``."""

    study: str
    report: str
    findings: list[str]
    parts: dict[str, Any]
    seconds: float
    done: list[str]
    left_out: Entries
    next: list[str]


class InitFields(Fields):
    """Document ``calibrant.init/1``."""

    folder: str
    files: list[str]
    next: list[str]


class ServeFields(_Head):
    """Document ``calibrant.serve/1``."""

    results: Entries


class AnalysisFields(_Head):
    """Document ``calibrant.analysis/1``: the parts of a study's report that were made."""

    done: list[str]
    left_out: Entries


class StudyFields(Fields):
    """Document ``calibrant.study/1``: who was asked what, how often, and at what cost."""

    study: str
    name: str
    versions: dict[str, str]
    models: Entries
    prompts: Entries
    asked: Entries
    graders: dict[str, Any]
    results: Entries


class _Part(Fields):
    """A document that stands inside another, which says the version."""

    version: str | None  # type: ignore[assignment]


class LeaderboardFields(_Part):
    """Document ``calibrant.leaderboard/1``, under ``leaderboard`` of a plan."""

    metric: str
    questions: int
    level: float
    results: Entries
    groups: list[list[str]]
    pairs: Entries


class SemanticsFields(_Part):
    """Document ``calibrant.semantics/1``, under ``semantics`` of a study or of grades."""

    normalisation: list[str]
    clustering: str
    grading: str
    judge: str | None
    judge_calls: int
    joined_by: dict[str, int]
    graders: dict[str, int]
    reasons: dict[str, int]


class AgreementFields(_Part):
    """Document ``calibrant.agreement/1``: grades held against those of people."""

    n: int
    groups: int
    unlabelled: int
    attempted: float
    accuracy: EstimateEntry
    kappa: EstimateEntry
    precision: EstimateEntry
    recall: EstimateEntry
    confusion: dict[str, Any]


FIELDS: dict[str, type[Fields]] = {
    "audit": AuditFields,
    "compare": CompareFields,
    "groups": GroupsFields,
    "cascade": CascadeFields,
    "decide": DecideFields,
    "mend": MendFields,
    "plan": PlanFields,
    "label": LabelFields,
    "monitor": MonitorFields,
    "multi_answer": MultiAnswerFields,
    "bench": BenchFields,
    "bench_check": BenchCheckFields,
    "import_logs": ImportFields,
    "methods": MethodsFields,
    "models": ModelsFields,
    "grade": GradeFields,
    "run": RunFields,
    "report": ReportFields,
    "demo": DemoFields,
    "init": InitFields,
    "serve": ServeFields,
    "analysis": AnalysisFields,
    "study": StudyFields,
    "leaderboard": LeaderboardFields,
    "semantics": SemanticsFields,
    "agreement": AgreementFields,
}
"""The keys of a document by its kind."""
