"""What each verb returns, with the keys of its document as attributes."""

from __future__ import annotations

from calibrant.documents.fields import (
    AgreementFields,
    AnalysisFields,
    AuditFields,
    BenchCheckFields,
    BenchFields,
    CascadeFields,
    CompareFields,
    DecideFields,
    DemoFields,
    GradeFields,
    GroupsFields,
    ImportFields,
    InitFields,
    LabelFields,
    LeaderboardFields,
    MendFields,
    MethodsFields,
    ModelsFields,
    MonitorFields,
    MultiAnswerFields,
    PlanFields,
    ReportFields,
    RunFields,
    SemanticsFields,
    ServeFields,
    StudyFields,
)
from calibrant.report.result import Result, RowsBehind


class AuditResult(RowsBehind, AuditFields, kind="audit"):
    """What `audit` returns."""


class CompareResult(RowsBehind, CompareFields, kind="compare"):
    """What `compare` returns."""


class GroupsResult(RowsBehind, GroupsFields, kind="groups"):
    """What `groups` returns."""


class CascadeResult(Result, CascadeFields, kind="cascade"):
    """What `cascade` returns."""


class DecideResult(RowsBehind, DecideFields, kind="decide"):
    """What `decide` returns."""


class MendResult(Result, MendFields, kind="mend"):
    """What `mend` returns."""


class PlanResult(Result, PlanFields, kind="plan"):
    """What `plan` returns."""


class LabelResult(Result, LabelFields, kind="label"):
    """What `label_next`, `label_add` and `label_status` returns."""


class MonitorResult(Result, MonitorFields, kind="monitor"):
    """What `monitor` returns."""


class MultiAnswerResult(Result, MultiAnswerFields, kind="multi_answer"):
    """What `bench_evaluate` returns."""


class BenchResult(Result, BenchFields, kind="bench"):
    """What `bench_mace` returns."""


class BenchCheckResult(Result, BenchCheckFields, kind="bench_check"):
    """What `bench_check` returns."""


class ImportResult(Result, ImportFields, kind="import_logs"):
    """What `import_logs` returns."""


class MethodsResult(Result, MethodsFields, kind="methods"):
    """What `methods` returns."""


class ModelsResult(Result, ModelsFields, kind="models"):
    """What `models` returns."""


class GradeResult(Result, GradeFields, kind="grade"):
    """What `grade` returns."""


class RunResult(Result, RunFields, kind="run"):
    """What `run` returns."""


class ReportResult(Result, ReportFields, kind="report"):
    """What `report` returns."""


class DemoResult(Result, DemoFields, kind="demo"):
    """What `demo` returns."""


class InitResult(Result, InitFields, kind="init"):
    """What `init` returns."""


class ServeResult(Result, ServeFields, kind="serve"):
    """What `serve` returns."""


class AnalysisResult(Result, AnalysisFields, kind="analysis"):
    """Which parts of a study's report were made, and why others were not."""


class StudyResult(Result, StudyFields, kind="study"):
    """Where the answers of a study come from."""


class LeaderboardResult(Result, LeaderboardFields, kind="leaderboard"):
    """A ranking of models."""


class SemanticsResult(Result, SemanticsFields, kind="semantics"):
    """How answers were put together and graded."""


class AgreementResult(Result, AgreementFields, kind="agreement"):
    """How far grades agree with those of people."""
