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
    "TYPED",
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


class AuditResult(Result, AuditFields):
    """What `audit` returns."""


class CompareResult(Result, CompareFields):
    """What `compare` returns."""


class GroupsResult(Result, GroupsFields):
    """What `groups` returns."""


class CascadeResult(Result, CascadeFields):
    """What `cascade` returns."""


class DecideResult(Result, DecideFields):
    """What `decide` returns."""


class PlanResult(Result, PlanFields):
    """What `plan` returns."""


class LabelResult(Result, LabelFields):
    """What `label_next`, `label_add` and `label_status` returns."""


class MonitorResult(Result, MonitorFields):
    """What `monitor` returns."""


class MultiAnswerResult(Result, MultiAnswerFields):
    """What `bench_evaluate` returns."""


class BenchResult(Result, BenchFields):
    """What `bench_mace` returns."""


class BenchCheckResult(Result, BenchCheckFields):
    """What `bench_check` returns."""


class ImportResult(Result, ImportFields):
    """What `import_logs` returns."""


class MethodsResult(Result, MethodsFields):
    """What `methods` returns."""


class ModelsResult(Result, ModelsFields):
    """What `models` returns."""


class GradeResult(Result, GradeFields):
    """What `grade` returns."""


class RunResult(Result, RunFields):
    """What `run` returns."""


class ReportResult(Result, ReportFields):
    """What `report` returns."""


class DemoResult(Result, DemoFields):
    """What `demo` returns."""


TYPED: dict[str, type[Result]] = {
    "audit": AuditResult,
    "compare": CompareResult,
    "groups": GroupsResult,
    "cascade": CascadeResult,
    "decide": DecideResult,
    "plan": PlanResult,
    "label": LabelResult,
    "monitor": MonitorResult,
    "multi_answer": MultiAnswerResult,
    "bench": BenchResult,
    "bench_check": BenchCheckResult,
    "import_logs": ImportResult,
    "methods": MethodsResult,
    "models": ModelsResult,
    "grade": GradeResult,
    "run": RunResult,
    "report": ReportResult,
    "demo": DemoResult,
}
"""Classes of results by the kind of document."""
