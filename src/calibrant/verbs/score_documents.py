"""Documents about scores: what all of them share, and that of an audit, block by block."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from msgspec import convert
from threadpoolctl import threadpool_limits

from calibrant.core.arrays import Stream, named_stream
from calibrant.core.document import plain
from calibrant.core.errors import InputError, UndefinedMetricWarning
from calibrant.core.hints import Hint
from calibrant.data.sources.objects import STDIN
from calibrant.data.sources.options import REPEATED, AuditOptions, AuditSource, SourceBlock
from calibrant.findings.claims import Claim
from calibrant.findings.claims.audit import audit_claims, calibration_word
from calibrant.findings.claims.data import (
    kept_shares,
    unequal_note,
    unequal_warnings,
    with_rows_kept,
)
from calibrant.findings.claims.dependence import (
    NOT_SEARCHED,
    dependence_entry,
    dependence_notes,
    dependence_warnings,
)
from calibrant.findings.claims.grades import grading_warnings, step_of_checks, take_checks
from calibrant.findings.claims.margins import missing_entry
from calibrant.findings.claims.next_step import step_of_audit
from calibrant.findings.claims.significance import adjust_p_values, classic_test
from calibrant.findings.documents.audits import AuditBlock, Coverage, SemanticEntry
from calibrant.findings.documents.entries import Part
from calibrant.findings.verification import verification_of
from calibrant.report.result import AuditResult, Result
from calibrant.verbs.dependent_rows import AuditedBlock, add_of_these

if TYPE_CHECKING:
    from calibrant.data import Scores
    from calibrant.metrics.blocks.row_block import RowBlock

R = TypeVar("R", bound=Result)


def with_rows(
    result: R,
    data: Any,
    table: Mapping[str, Any],
    wrong: int = 0,
    *,
    models: Any = None,
    methods: Any = None,
) -> R:
    """Return the result with a way to its rows, and those that are most confidently wrong.

    Parameters
    ----------
    result
        What a verb found.
    data, table
        What it was given, and how that was read.
    wrong
        How many of them to list in the document; none by default.
    models, methods
        Those of the table that were looked at; None stands for all.
    """
    if str(data) == STDIN:
        if wrong:
            rule = "standard input is read once, and rows are looked up afterwards"
            raise InputError(rule, hint=Hint("name a file, or leave out {wrong}"))
        return result
    result.rows_opener = partial(_opened, data, dict(table))
    if wrong:
        # Loaded here: most results are made without a look at single rows.
        from calibrant.data.sources.rows import RowQuery

        rows = result.rows_opener()
        names, modes = tuple(models or ()), tuple(methods or ())
        most = wrong * max(1, len(rows.methods))
        worst = rows.page(RowQuery(names, modes, grade="wrong", size=most)).rows
        # Each answer once, with the highest of its confidences.
        first = {(row["question_id"], row["model"]): row for row in reversed(worst)}
        listed = [row for row in worst if first[row["question_id"], row["model"]] is row][:wrong]
        result.to_dict()["wrong"] = [{n: row[n] for n in row if n != "place"} for row in listed]
    return result


def _opened(data: Any, table: Mapping[str, Any], *, whole: bool = True) -> Any:
    """Return the rows; None where they are too many for a page and not all are asked for."""
    from calibrant.verbs.opening.choose_source import is_large
    from calibrant.verbs.opening.open_rows import open_rows

    return open_rows(data, table) if whole or not is_large(data) else None


def scores_document(
    head: Mapping[str, Any],
    scores: Scores,
    results: Sequence[Part | Mapping[str, Any]],
    claims: Iterable[Claim],
) -> dict[str, Any]:
    """Return a document about scores: how they were read, what they cover, what is found and said.

    Of the claims about a model the first says on what share of its rows it rests.
    """
    # Loaded here: a streamed audit needs this file, and no library of tables.
    from calibrant.data.sources.coverage import row_coverage

    covered = row_coverage(scores)
    with_shares = with_rows_kept(claims, kept_shares(convert(covered["models"], list[Coverage])))
    return {
        **head,
        "reading": scores.reading.to_dict(),
        "dropped": dict(scores.dropped),
        "data": covered,
        "results": results,
        "claims": [claim.to_dict() for claim in with_shares],
    }


_CURVE_POINTS = 100
_HISTOGRAM_BINS = 20
_KEYS = ("model", "method", "group")
_NO_PROBABILITY = (
    "This score ranks answers but is no probability: recalibrate it before auditing it."
)


def audit_document(source: AuditSource, options: AuditOptions, margin: float) -> AuditResult:
    """Build the document of an audit from its opened input."""
    meanings: list[dict[str, object]] = []
    pooled: dict[str, object] = {}
    if source.draws is not None:
        # Loaded here, with the library for tables: most audits hold no draws.
        from calibrant.verbs.semantic import pooled_block, semantic_blocks

        meanings = semantic_blocks(source.draws, options, source.texts)
        pooled = {"sem_ece_pooled": plain(pooled_block(source.draws, options))}
    entries = _entries(source, options, margin)
    add_of_these(entries)
    multiplicity = adjust_p_values(entries)
    blocks = convert(entries, list[AuditBlock])
    data = source.coverage()
    data["warnings"][:0] = grading_warnings(blocks)
    searches = [(b.model, b.dependence) for b in blocks if b.dependence and not b.group]
    typed = bool(source.head.get("input"))
    data["warnings"] += [*dependence_warnings(searches, typed=typed), *unequal_warnings(blocks)]
    data["notes"] = dependence_notes([entry for _, entry in searches])
    if source.reading["way"] == "streamed" and not searches:
        data["notes"] = [NOT_SEARCHED]
    of_scores = audit_claims(blocks, margin, convert(data["models"], list[Coverage]))
    draws = bool(source.head.get("samples"))
    claims = _with_meanings(of_scores, meanings, blocks, margin, drawn=draws)
    # A table that is read in parts may name its questions.
    has_ids = "question_id" in source.reading.get("columns", {})
    next_step = step_of_checks(source.head, claims) or step_of_audit(
        source.head,
        claims,
        blocks,
        # Rows weigh unequally, and not only questions by their number of rows.
        weighted=any(b.effective_n is not None and b.questions == b.n for b in blocks),
        paired=bool(data.get("questions_shared_by_all", has_ids)),
    )
    head = {
        **source.head,
        "level": options.level,
        "bins": options.bins,
        "resamples": options.resamples,
        "recalibrated": options.recalibrate,
        "reading": source.reading,
        "data": data,
        "claims": [claim.to_dict() for claim in claims],
        "next": next_step,
        "multiplicity": multiplicity,
        "dropped": dict(source.dropped),
        "dropped_rows": dict(source.dropped_rows),
        "emptied_models": list(source.emptied),
    }
    about = _claims_by_entry(of_scores)
    results = [{**entry, "verdict": _verdict(entry, about[_place(entry)])} for entry in entries]
    return AuditResult.of_plain(
        {**plain(head), "results": results, "sem_ece": plain(meanings), **pooled}
    )


def _with_meanings(
    claims: list[Claim], meanings: Any, blocks: Sequence[AuditBlock], margin: float, *, drawn: bool
) -> list[Claim]:
    """Return the claims about scores and those about meanings, in their order.

    Whoever brings sampled answers asks about their meanings, before any score made of them.
    """
    if not meanings:
        return claims
    # Loaded here: most audits hold no draws.
    from calibrant.findings.claims.sem_ece import meaning_claims

    # Directions of the held-out share of the leading meaning are told as claims about meanings.
    directions = {"audit.over_confident", "audit.under_confident"} if drawn else ()
    tested = [c for c in claims if c.id in directions and c.subject["method"] == "sem2"]
    entries = convert(plain(meanings), list[SemanticEntry])
    of_meanings = meaning_claims(entries, blocks, margin, tested)
    remainder = [claim for claim in claims if claim not in tested]
    return [*of_meanings, *remainder] if drawn else [*remainder, *of_meanings]


def _entries(source: AuditSource, options: AuditOptions, margin: float) -> list[dict[str, object]]:
    mapper: Callable[..., Iterable[dict[str, object]]] = map
    if source.parallel:
        # Loaded here: only the blocks of a streamed table are worked on side by side.
        from calibrant.data.sources.engines import LocalEngine

        mapper = LocalEngine().map
    # One thread per block: the algebra library adds up in another order on another number of
    # threads, and the last digits must not depend on the machine. What is undefined is noted.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return list(mapper(_Work(options, margin).finished, source.blocks()))


class _Work(NamedTuple):
    """What becomes of blocks: their entries."""

    options: AuditOptions
    margin: float

    def finished(self, source: SourceBlock) -> dict[str, object]:
        """Return the entry of a block, with what its labels can show at all and its notes."""
        stream = source.stream(self.options.seed)
        audited = AuditedBlock.of_source(source, stream)
        entry = self.entry(source, audited, stream)
        if audited.block.probability:
            entry["verification"] = verification_of(audited.block, rng=stream)
        document: dict[str, object] = plain(entry | {"notes": _notes(audited, source)})
        return document

    def entry(self, source: SourceBlock, audited: AuditedBlock, stream: Stream) -> dict[str, Any]:
        """Return the metrics and the evidence of one block."""
        block, metrics = audited.block, audited.estimates()
        if source.accuracy is not None:
            metrics["accuracy"] = source.accuracy()
        entry: dict[str, Any] = {
            "model": source.keys["model"],
            "method": source.keys["method"],
            "group": source.group,
            "n": block.n,
            "questions": block.questions,
            "probability": block.probability,
            "metrics": metrics,
        }
        if self.options.named_metrics and block.probability:
            # Loaded here, and with a stream of its own: what was not asked for changes nothing.
            from calibrant.metrics.blocks.row_block import named_values

            rows, rng = cast("RowBlock", block), self.rng("named metrics", source)
            entry["named_metrics"] = named_values(rows, self.options.named_metrics, rng)
        if audited.dependence is not None:
            entry["dependence"] = dependence_entry(audited.dependence, audited.wider)
        if audited.plain.shares is not None:
            entry["effective_n"] = block.effective
        if block.errors:
            entry["sketch_error"] = block.errors
        if block.probability:
            plain, missing = audited.plain, None
            if plain.independent and plain.shares is None and source.missing is not None:
                gap = metrics["confidence_gap"]
                missing = missing_entry(plain.cell_error.sums, gap, source.missing)
            entry["calibration_test"] = classic_test(block)
            entry["significance"] = audited.tests(metrics, self.margin, missing)
            entry["of_these"] = audited.tests_of_these(self.margin, missing)
            if missing is not None:
                entry["missing"] = missing
            entry["reliability"] = {
                "bins": block.diagram(),
                "curve": block.reliability_curve(_CURVE_POINTS, stream).to_dict(),
                "histogram": block.histogram(_HISTOGRAM_BINS),
            }
            entry["thresholds"] = block.threshold_counts().to_dict()
        self.carry_grades(entry, source)
        return entry

    def carry_grades(self, entry: dict[str, Any], source: SourceBlock) -> None:
        """Say how sure the grades are where the program made them; checks enter the numbers."""
        graded = source.graded()
        if graded is None:
            return
        # Loaded here, and with a stream of its own: most outcomes come with the data.
        from calibrant.metrics.stats.graded_summary import grading_summary

        how = {"probability": entry["probability"], "level": self.options.level}
        entry["grading"] = grading_summary(graded, self.rng("grading", source), **how)
        if entry["grading"]["odds_factor"] is None:
            take_checks(entry, self.margin, self.options.level)

    def rng(self, name: str, source: SourceBlock) -> np.random.Generator:
        """Return a stream of its own for what is not part of every audit."""
        return named_stream(self.options.seed, name, *map(str, source.keys.values()))


def _notes(audited: AuditedBlock, source: SourceBlock) -> list[str]:
    block = audited.block
    notes = sorted(f"{name} is undefined: {reason}" for name, reason in block.undefined.items())
    if audited.plain.shares is not None:
        notes.append(unequal_note(block.effective, repeated=block.questions < block.n))
    if block is not audited.plain:
        notes.append(REPEATED)
    return [*notes, *source.notes]


def _verdict(entry: Mapping[str, object], claims: Sequence[Claim]) -> dict[str, str]:
    """Return the verdict of an entry: a word for programs, and its sentences."""
    word = calibration_word(claims) if entry["probability"] else "not-a-probability"
    texts = [claim.text for claim in claims] or [_NO_PROBABILITY]
    return {"calibration": word, "how": texts[0], "sure": " ".join(texts[1:])}


def _claims_by_entry(claims: Iterable[Claim]) -> defaultdict[Hashable, list[Claim]]:
    """Return the claims about each entry; those about several models are of none."""
    by_entry: defaultdict[Hashable, list[Claim]] = defaultdict(list)
    for claim in claims:
        if all(key in claim.subject for key in _KEYS):
            by_entry[_place(claim.subject)].append(claim)
    return by_entry


def _place(subject: Mapping[str, Any]) -> Hashable:
    """Return what tells an entry from all others."""
    model, method, group = (subject[key] for key in _KEYS)
    return model, method, None if group is None else frozenset(group.items())
