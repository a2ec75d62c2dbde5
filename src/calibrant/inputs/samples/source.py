"""Sampled answers with references as the input of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from calibrant.claims.sem_ece import (
    judge_limit_warning,
    sample_warnings,
    several_right_warning,
)
from calibrant.inputs.audit_options import AuditOptions
from calibrant.inputs.audit_source import AuditSource
from calibrant.inputs.objects import as_table
from calibrant.inputs.opened.tables import OpenTables
from calibrant.inputs.provenance import document_head
from calibrant.inputs.row_source import row_source
from calibrant.inputs.samples.graded import GradedSamples, grade_samples
from calibrant.inputs.samples.grading import grading_of, grading_warnings
from calibrant.inputs.samples.judge import JudgeChoice, judged_options, ledger_beside
from calibrant.inputs.samples.read import SampleColumns, read_samples


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """How sampled answers are read and graded.

    Parameters
    ----------
    columns
        Columns of samples, references, questions and models where they are named.
    references
        File of references, where the data has none.
    judge
        Model that judges what rules leave open.
    """

    columns: SampleColumns
    references: Any = None
    judge: JudgeChoice | None = None


def sample_source(data: Any, options: AuditOptions, request: SampleRequest) -> AuditSource:
    """Read, cluster, grade and score sampled answers, and open them for an audit.

    Parameters
    ----------
    data
        Sampled answers in any shape that `read_samples` knows.
    options
        The options of `audit`.
    request
        Columns, references and judge.
    """
    given = as_table(data)
    samples = read_samples(given, request.columns, references=request.references)
    with judged_options(request.judge, ledger_beside(given)) as semantics:
        graded = grade_samples(samples, options=semantics, seed=options.seed)
    head = document_head("audit", given, seed=options.seed, settings=options.settings)
    return graded_source(graded, options, head)


def graded_source(
    graded: GradedSamples, options: AuditOptions, head: dict[str, Any]
) -> AuditSource:
    """Open graded samples for an audit."""
    own = replace(
        options,
        columns=dict.fromkeys(options.columns),
        graded=True,
        on_invalid=options.on_invalid or "drop",
    )
    source = row_source(OpenTables(graded.scores), own)
    told = {**graded.how, "semantics": dict(graded.semantics_document)}
    grading = grading_of(graded.draws, graded.semantics, graded.scores)
    return replace(
        source,
        head={**head, "samples": told},
        coverage=partial(_coverage, source, graded, grading_warnings(grading)),
        grading=grading,
        draws=graded.with_classes,
        texts=graded.texts,
    )


def _coverage(
    source: AuditSource, graded: GradedSamples, grading: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what the data covers, and which of its columns were guessed."""
    found = source.coverage()
    own = [
        *sample_warnings(graded.how),
        *judge_limit_warning(graded.semantics_document),
        *several_right_warning(*graded.several_right),
        *grading,
    ]
    return {**found, "warnings": [*own, *found["warnings"]]}
