"""What each verb returns, with the keys of its document as attributes."""

from calibrant.findings.documents import fields
from calibrant.report.result import Result, RowsBehind


class AuditResult(RowsBehind, fields.AuditFields, kind="audit"):
    """What `audit` returns."""


class AccuracyResult(Result, fields.AccuracyFields, kind="accuracy"):
    """What `audit` and `compare` return of graded answers without a confidence."""


class CompareResult(RowsBehind, fields.CompareFields, kind="compare"):
    """What `compare` returns."""


class GroupsResult(RowsBehind, fields.GroupsFields, kind="groups"):
    """What `groups` returns."""


class CascadeResult(Result, fields.CascadeFields, kind="cascade"):
    """What `cascade` returns."""


class DecideResult(RowsBehind, fields.DecideFields, kind="decide"):
    """What `decide` returns."""


class MendResult(Result, fields.MendFields, kind="mend"):
    """What `mend` returns."""


class JudgeResult(Result, fields.JudgeFields, kind="judge"):
    """What `judge` returns."""


class PlanResult(Result, fields.PlanFields, kind="plan"):
    """What `plan` returns."""


class LabelResult(Result, fields.LabelFields, kind="label"):
    """What `label_next`, `label_add` and `label_status` returns."""


class MonitorResult(Result, fields.MonitorFields, kind="monitor"):
    """What `monitor` returns."""


class MultiAnswerResult(Result, fields.MultiAnswerFields, kind="multi_answer"):
    """What `bench_evaluate` returns."""


class BenchResult(Result, fields.BenchFields, kind="bench"):
    """What `bench_mace` returns."""


class BenchCheckResult(Result, fields.BenchCheckFields, kind="bench_check"):
    """What `bench_check` returns."""


class ImportResult(Result, fields.ImportFields, kind="import_logs"):
    """What `import_logs` returns."""


class MethodsResult(Result, fields.MethodsFields, kind="methods"):
    """What `methods` returns."""


class ModelsResult(Result, fields.ModelsFields, kind="models"):
    """What `models` returns."""


class GradeResult(Result, fields.GradeFields, kind="grade"):
    """What `grade` returns."""


class RunResult(Result, fields.RunFields, kind="run"):
    """What `run` returns."""


class ReportResult(Result, fields.ReportFields, kind="report"):
    """What `report` returns."""


class DemoResult(Result, fields.DemoFields, kind="demo"):
    """What `demo` returns."""


class InitResult(Result, fields.InitFields, kind="init"):
    """What `init` returns."""


class ServeResult(Result, fields.ServeFields, kind="serve"):
    """What `serve` returns."""


class AnalysisResult(Result, fields.AnalysisFields, kind="analysis"):
    """Which parts of a study's report were made, and why others were not."""


class StudyResult(Result, fields.StudyFields, kind="study"):
    """Where the answers of a study come from."""


class LeaderboardResult(Result, fields.LeaderboardFields, kind="leaderboard"):
    """A ranking of models."""


class SemanticsResult(Result, fields.SemanticsFields, kind="semantics"):
    """How answers were put together and graded."""


class AgreementResult(Result, fields.AgreementFields, kind="agreement"):
    """How far grades agree with those of people."""
