"""What each verb returns, with the keys of its document as attributes."""

from __future__ import annotations

from calibrant.documents.fields import (
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
    LabelFields,
    MethodsFields,
    ModelsFields,
    MonitorFields,
    MultiAnswerFields,
    PlanFields,
    ReportFields,
    RunFields,
)
from calibrant.report.result import Result

__all__ = [
    "AuditResult",
    "BenchCheckResult",
    "BenchResult",
    "CascadeResult",
    "CompareResult",
    "DecideResult",
    "DemoResult",
    "GradeResult",
    "GroupsResult",
    "ImportResult",
    "LabelResult",
    "MethodsResult",
    "ModelsResult",
    "MonitorResult",
    "MultiAnswerResult",
    "PlanResult",
    "ReportResult",
    "RunResult",
]


class AuditResult(Result, AuditFields, kind="audit"):
    """What `audit` returns."""


class CompareResult(Result, CompareFields, kind="compare"):
    """What `compare` returns."""


class GroupsResult(Result, GroupsFields, kind="groups"):
    """What `groups` returns."""


class CascadeResult(Result, CascadeFields, kind="cascade"):
    """What `cascade` returns."""


class DecideResult(Result, DecideFields, kind="decide"):
    """What `decide` returns."""


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
