"""The keys of every kind of document, as annotations: `report.result` makes results of them.

A key that may be missing is annotated with None.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from calibrant.core.document import kind_of
from calibrant.core.errors import SchemaError, did_you_mean
from calibrant.findings.documents import audits, decisions, entries, labels
from calibrant.findings.documents import groups as grouped
from calibrant.findings.documents import plans as planned

Entries = list[dict[str, Any]]
FIELDS: dict[str, type[Fields]] = {}
"""The keys of a document by its kind."""


class Fields(Mapping[str, Any]):
    """A document read by attribute, and like a dict; `FIELDS` lists the keys of every kind."""

    schema: str
    version: str

    def __init_subclass__(cls, kind: str = "") -> None:
        """List the keys of a kind of document."""
        if kind:
            FIELDS[kind] = cls

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.kind = kind_of(document)

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    if not TYPE_CHECKING:
        # Type checkers read the keys off the classes below: a slip is an error there.
        def __getattr__(self, name: str) -> Any:
            """Return the value of a key, as the class that the kind of document gives it."""
            if name.startswith("_"):
                raise AttributeError(name)
            known_values = fields_of(FIELDS.get(self.kind, Fields))
            if name not in self._document and name not in known_values:
                hint = did_you_mean(name, list({**self._document, **known_values}))
                raise AttributeError(f"a result of {self.kind} has no {name!r}; {hint}")
            value = self._document.get(name)
            if name in known_values and value is not None:
                value = _converted(name, value, known_values[name])
            self.__dict__[name] = value
            return value

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain data."""
        return self._document


def typed(document: Mapping[str, Any]) -> Any:
    """Return a document with the keys of its kind as attributes; it stays readable like a dict.

    Examples
    --------
    >>> typed({"schema": "calibrant.groups/1", "grouping_loss": {"value": 0.1}}).grouping_loss.value
    0.1
    """
    if isinstance(document, Fields):
        return document
    return FIELDS.get(kind_of(document), Fields)(dict(document))


@cache
def fields_of(kind: type[Fields]) -> dict[str, Any]:
    """Return the types of a document's keys, those of every document first."""
    matches: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Fields):
            matches |= typing.get_type_hints(base)
    return matches


def _converted(name: str, value: Any, as_class: Any) -> Any:
    try:
        return msgspec.convert(value, as_class)
    except msgspec.ValidationError as error:
        rule = f"the key {name!r} is not what its schema says: {error}"
        raise SchemaError(rule, hint="read it as plain data: result[key]") from None


class _Head(Fields):
    """The keys of every document that is made from data."""

    source: str | None
    input: list[entries.InputFile]
    seed: int | None
    settings: dict[str, Any] | None
    data: dict[str, Any] | None
    claims: list[entries.Claim] | None
    next: entries.NextStep | None


class AuditFields(_Head, kind="audit"):
    """Document ``calibrant.audit/1``."""

    bins: int
    level: float
    resamples: int
    dropped: dict[str, Any]
    results: list[audits.AuditEntry]
    sem_ece: list[audits.SemanticEntry] | None
    sem_ece_pooled: audits.PooledMeanings | None
    reading: dict[str, Any] | None
    multiplicity: entries.Multiplicity
    wrong: Entries | None

    @cached_property
    def blocks(self) -> list[audits.AuditBlock]:
        """The results with their metrics by name: the list of metrics may have grown."""
        return msgspec.convert(self["results"], list[audits.AuditBlock])


class AccuracyFields(_Head, kind="accuracy"):
    """Document ``calibrant.accuracy/1``: what grades alone say, where there is no confidence."""

    dropped: dict[str, Any]
    results: list[entries.AccuracyEntry]
    pairs: list[entries.AccuracyPair]


class CompareFields(_Head, kind="compare"):
    """Document ``calibrant.compare/1``."""

    bins: int
    level: float
    results: list[entries.CompareEntry]
    pairs: list[entries.PairEntry]
    not_compared: list[entries.DroppedBlock] | None
    dropped: dict[str, Any]
    multiplicity: entries.Multiplicity
    league: list[entries.League] | None
    summaries: list[entries.ComparedPart] | None
    self_preference: list[entries.SelfPreference] | None


class GroupsFields(_Head, kind="groups"):
    """Document ``calibrant.groups/1``: with one model and method its numbers stand at the top."""

    features: list[str]
    dropped: dict[str, Any]
    results: list[grouped.GroupsEntry]
    across: list[grouped.GroupAcross]
    trend: grouped.Trend | None
    grouping_loss: entries.EstimateEntry | None
    calibration_loss: entries.EstimateEntry | None
    groups: list[grouped.GroupEntry] | None
    wrong: Entries | None


class CascadeFields(_Head, kind="cascade"):
    """Document ``calibrant.cascade/1``."""

    decision: str
    dropped: dict[str, Any]
    results: list[decisions.CascadeEntry]


class DecideFields(_Head, kind="decide"):
    """Document ``calibrant.decide/1``."""

    dropped: dict[str, Any]
    results: list[decisions.DecideEntry]
    wrong: Entries | None


class MendFields(_Head, kind="mend"):
    """Document ``calibrant.mend/1``."""

    dropped: dict[str, Any]
    results: list[decisions.MendEntry]


class JudgeFields(_Head, kind="judge"):
    """Document ``calibrant.judge/1``."""

    dropped: dict[str, Any]
    results: list[labels.JudgeEntry]


class PlanFields(_Head, kind="plan"):
    """Document ``calibrant.plan/1``."""

    passive_labels: int | None
    active_labels: int | None
    results: list[planned.PlanEntry]
    rows: list[planned.PlanStep]
    curve: list[planned.PlanPoint] | None
    caveat: str
    assumed_lipschitz: bool
    measured: list[planned.MeasuredEntry] | None
    plans: list[planned.ClaimPlanEntry] | None
    theory: planned.TheoryEntry | None
    leaderboard: dict[str, Any] | None


class LabelFields(_Head, kind="label"):
    """Document ``calibrant.label/1``."""

    results: list[labels.LabelEntry]
    batch: labels.LabelBatch | None
    added: labels.LabelsAdded | None
    grader: labels.GraderEntry | None
    target: str | None
    dropped: dict[str, int] | None


class MonitorFields(_Head, kind="monitor"):
    """Document ``calibrant.monitor/2``."""

    results: list[labels.MonitorEntry]
    traffic: labels.Traffic | None
    dropped: dict[str, int]


class MultiAnswerFields(_Head, kind="multi_answer"):
    """Document ``calibrant.multi_answer/1``."""

    results: Entries
    mixes: list[list[int]]


class BenchFields(_Head, kind="bench"):
    """Document ``calibrant.bench/1``."""

    questions: int
    results: Entries


class BenchCheckFields(_Head, kind="bench_check"):
    """Document ``calibrant.bench_check/1``."""

    ok: bool


class ImportFields(_Head, kind="import_logs"):
    """Document ``calibrant.import_logs/1``."""

    results: list[entries.ImportedLog]
    scores: Entries
    notes: list[str]
    written: list[str]


class MethodsFields(_Head, kind="methods"):
    """Document ``calibrant.methods/1``."""

    methods: Entries
    needs: dict[str, str]
    results: Entries


class ModelsFields(_Head, kind="models"):
    """Document ``calibrant.models/1``."""

    folder: str
    results: Entries


class GradeFields(_Head, kind="grade"):
    """Document ``calibrant.grade/1``."""

    samples: dict[str, Any]
    semantics: dict[str, Any]
    results: Entries
    methods: Entries
    written: list[str]
    why: Entries | None


class RunFields(Fields, kind="run"):
    """Document ``calibrant.run/1``."""

    study: str
    models: Entries
    questions: int
    results: Entries
    findings: Entries | None


class ReportFields(_Head, kind="report"):
    """Document ``calibrant.report/1``."""

    written: list[str]
    documents: Entries


class DemoFields(Fields, kind="demo"):
    """Document ``calibrant.demo/1``."""

    study: str
    report: str
    findings: list[str]
    parts: dict[str, Any]
    seconds: float
    done: list[str]
    left_out: Entries
    next: list[str]


class InitFields(Fields, kind="init"):
    """Document ``calibrant.init/1``."""

    folder: str
    files: list[str]
    next: list[str]


class ServeFields(_Head, kind="serve"):
    """Document ``calibrant.serve/1``."""

    results: Entries


class AnalysisFields(_Head, kind="analysis"):
    """Document ``calibrant.analysis/1``: the parts of a study's report that were made."""

    done: list[str]
    left_out: Entries


class StudyFields(Fields, kind="study"):
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


class LeaderboardFields(_Part, kind="leaderboard"):
    """Document ``calibrant.leaderboard/1``, under ``leaderboard`` of a plan."""

    metric: str
    questions: int
    level: float
    results: list[planned.RankedModel]
    groups: list[list[str]]
    pairs: list[planned.RankedPair]
    instability: planned.Instability


class SemanticsFields(_Part, kind="semantics"):
    """Document ``calibrant.semantics/1``, under ``semantics`` of a study or of grades."""

    normalisation: list[str]
    clustering: str
    grading: str
    judge: str | None
    judge_calls: int
    joined_by: dict[str, int]
    graders: dict[str, int]
    reasons: dict[str, int]


class AgreementFields(_Part, kind="agreement"):
    """Document ``calibrant.agreement/1``: grades held against those of people."""

    n: int
    groups: int
    unlabelled: int
    attempted: float
    accuracy: entries.EstimateEntry
    kappa: entries.EstimateEntry
    precision: entries.EstimateEntry
    recall: entries.EstimateEntry
    confusion: dict[str, Any]
