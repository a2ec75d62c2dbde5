"""The document of an audit: one entry per block, then corrections, claims and the head."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from msgspec import convert
from threadpoolctl import threadpool_limits

from calibrant.claims.audit import audit_claims, calibration_word
from calibrant.claims.claim import Claim
from calibrant.claims.data import explained_warnings, unequal_note, unequal_warnings
from calibrant.claims.grades import grading_warnings, step_of_checks, take_checks
from calibrant.claims.missing import missing_entry
from calibrant.claims.next_step import step_of_audit
from calibrant.claims.significance import adjust_p_values, block_tests, classic_test
from calibrant.core.document import plain
from calibrant.core.errors import UndefinedMetricWarning
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.documents.audits import AuditBlock, Coverage, MissingEntry, SemanticEntry
from calibrant.inputs.audit_source import AuditOptions, AuditSource, SourceBlock
from calibrant.metrics.together import work_ahead
from calibrant.planning import verifications_of
from calibrant.report.typed import AuditResult
from calibrant.stats.common_draws import Stream, batches

if TYPE_CHECKING:
    from calibrant.metrics.cell_block import CellBlock
    from calibrant.metrics.row_block import RowBlock

_CURVE_POINTS = 100
_HISTOGRAM_BINS = 20
_KEYS = ("model", "method", "group")
# Blocks of few rows that are worked on together.
_HELD = 256
# A column explains errors where its p-value is so small and intervals get so much wider.
_EXPLAINED, _WIDER = 0.01, 1.2
_NO_PROBABILITY = (
    "This score ranks answers but is no probability: recalibrate it before auditing it."
)
# So many times as many of them take longer than other processes need to start.
_MANY = 4

Made: TypeAlias = Callable[[Sequence[SourceBlock]], list[dict[str, Any]]]


def audit_document(source: AuditSource, options: AuditOptions, margin: float) -> AuditResult:
    """Build the document of an audit from its opened input."""
    meanings = [] if source.draws is None else _meanings(source, options)
    entries = _entries(source, options, margin)
    multiplicity = adjust_p_values(entries)
    blocks = convert(entries, list[AuditBlock])
    data = source.coverage()
    data["warnings"][:0] = grading_warnings(blocks)
    data["warnings"] += [*explained_warnings(blocks), *unequal_warnings(blocks)]
    told = audit_claims(blocks, margin, convert(data["models"], list[Coverage]))
    # Whoever brings sampled answers asks about their meanings, before any score made of them.
    leading = meanings and source.head.get("samples")
    tested = [claim for claim in told if leading and _is_of_meanings(claim)]
    of_meanings = _meaning_claims(meanings, blocks, margin, tested)
    rest = [claim for claim in told if claim not in tested]
    claims = [*of_meanings, *rest] if leading else [*rest, *of_meanings]
    head = {
        **source.head,
        "level": options.level,
        "bins": options.bins,
        "resamples": options.resamples,
        "recalibrated": options.recalibrate,
        "reading": source.reading,
        "data": data,
        "claims": [claim.to_dict() for claim in claims],
        "next": step_of_checks(source.head, claims)
        or step_of_audit(
            source.head,
            claims,
            blocks,
            weighted=_weighted(blocks),
            paired=bool(data.get("questions_shared_by_all", _has_ids(source.reading))),
        ),
        "multiplicity": multiplicity,
        "dropped": dict(source.dropped),
        "dropped_rows": dict(source.dropped_rows),
        "emptied_models": list(source.emptied),
    }
    own = _claims_by_entry(told)
    results = [{**entry, "verdict": _verdict(entry, own[_place(entry)])} for entry in entries]
    document = {**plain(head), "results": results, "sem_ece": plain(meanings)}
    if source.draws is not None:
        from calibrant.verbs.semantic import pooled_block

        document["sem_ece_pooled"] = plain(pooled_block(source.draws, options))
    return AuditResult.of_plain(document)


def _meanings(source: AuditSource, options: AuditOptions) -> list[dict[str, Any]]:
    """Return the calibration over meanings, where the data holds draws with their classes."""
    # Loaded here, with the library for tables: most audits hold no draws.
    from calibrant.verbs.semantic import semantic_blocks

    return semantic_blocks(source.draws, options, source.texts)


def _is_of_meanings(claim: Claim) -> bool:
    """Return whether a claim is the direction of the held-out share of the leading meaning."""
    direction = claim.id in ("audit.over_confident", "audit.under_confident")
    return direction and claim.subject["method"] == "sem2"


def _meaning_claims(
    meanings: list[dict[str, Any]],
    told: Sequence[AuditBlock],
    margin: float,
    tested: Sequence[Claim],
) -> list[Claim]:
    if not meanings:
        return []
    # Loaded here: most audits hold no draws.
    from calibrant.claims.sem_ece import meaning_claims

    return meaning_claims(convert(plain(meanings), list[SemanticEntry]), told, margin, tested)


def _entries(source: AuditSource, options: AuditOptions, margin: float) -> list[dict[str, Any]]:
    made = partial(_made, options=options, margin=margin)
    with _quiet_and_steady():
        return list((_parallel if source.parallel else _in_turn)(made, source.blocks()))


@contextmanager
def _quiet_and_steady() -> Iterator[None]:
    # One thread per block: the algebra library adds up in another order on another number of
    # threads, and the last digits must not depend on the machine. What is undefined is noted.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        yield


def _parallel(made: Made, blocks: Iterable[SourceBlock]) -> Iterator[dict[str, Any]]:
    # Loaded here: only the blocks of a streamed table are worked on side by side.
    from calibrant.inputs.streams.engines import LocalEngine

    return LocalEngine().map(lambda block: made([block])[0], blocks)


def _in_turn(made: Made, blocks: Iterable[SourceBlock]) -> Iterator[dict[str, Any]]:
    for few, run in groupby(blocks, lambda block: block.few):
        if few:
            yield from chain.from_iterable(_few(made, list(run)))
            continue
        # Of blocks with many rows one is in memory at a time.
        for block in run:
            yield from made([block])


def _few(made: Made, blocks: Sequence[SourceBlock]) -> Iterator[list[dict[str, Any]]]:
    parts = list(batches(blocks, _HELD))
    if len(parts) < _MANY:
        yield from map(made, parts)
        return
    # Loaded here: hardly an audit holds so many models.
    from calibrant.inputs.streams.engines import ProcessEngine

    yield from ProcessEngine().map(partial(_made_elsewhere, made), parts)


def _made_elsewhere(made: Made, some: Sequence[SourceBlock]) -> list[dict[str, Any]]:
    with _quiet_and_steady():
        return made(some)


def _made(
    some: Sequence[SourceBlock], *, options: AuditOptions, margin: float
) -> list[dict[str, Any]]:
    """Return the entries of some blocks; those of few rows are worked on together."""
    streams = [found.stream(options.seed) for found in some]
    blocks = [found.made(stream) for found, stream in zip(some, streams, strict=True)]
    work_ahead(blocks, streams)
    entries = [_entry(*one, options, margin) for one in zip(some, blocks, streams, strict=True)]
    scored = [number for number, block in enumerate(blocks) if block.probability]
    verified = verifications_of([blocks[k] for k in scored], [streams[k] for k in scored])
    for number, found in zip(scored, verified, strict=True):
        entries[number]["verification"] = found
    return [
        plain(entry | {"notes": _notes(block, found)})
        for entry, block, found in zip(entries, blocks, some, strict=True)
    ]


def _entry(
    found: SourceBlock,
    block: RowBlock | CellBlock,
    stream: Stream,
    options: AuditOptions,
    margin: float,
) -> dict[str, Any]:
    """Return the metrics and the evidence of one block."""
    metrics = block.estimates()
    if found.accuracy is not None:
        metrics["accuracy"] = found.accuracy()
    entry: dict[str, Any] = {
        "model": found.keys["model"],
        "method": found.keys["method"],
        "group": found.group,
        "n": block.n,
        "questions": block.questions,
        "probability": block.probability,
        "metrics": metrics,
    }
    if options.named_metrics and block.probability:
        entry["named_metrics"] = _named_metrics(found, block, options)
    if block.shares is not None:
        entry["effective_n"] = block.effective
    if block.errors:
        entry["sketch_error"] = block.errors
    if block.probability:
        explained = _explained(found, block)
        if explained:
            entry["explained"] = explained
        lost = _missing(found, block, metrics)
        entry["calibration_test"] = classic_test(block)
        entry["significance"] = block_tests(block, metrics, margin, lost)
        if lost is not None:
            entry["missing"] = lost
        entry["reliability"] = _reliability(block, stream)
        entry["thresholds"] = block.threshold_counts().to_dict()
    _carry_grades(entry, found, options, margin)
    return entry


def _carry_grades(
    entry: dict[str, Any], found: SourceBlock, options: AuditOptions, margin: float
) -> None:
    """Say how sure the grades are where the program made them; checks enter the numbers."""
    graded = found.graded()
    if graded is None:
        return
    # Loaded here, and with a stream of its own: most outcomes come with the data.
    from calibrant.stats.graded.summary import grading_summary

    rng = named_stream(options.seed, "grading", *map(str, found.keys.values()))
    how = {"probability": entry["probability"], "level": options.level}
    entry["grading"] = grading_summary(graded, rng, **how)
    if entry["grading"]["odds_factor"] is None:
        take_checks(entry, margin, options.level)


def _explained(found: SourceBlock, block: RowBlock | CellBlock) -> dict[str, float]:
    """Return columns that explain part of the errors, and how much wider those make intervals."""
    if found.group is not None or not block.independent or block.shares is not None:
        return {}
    # Sums have no further columns.
    rows, columns = cast("RowBlock", block), found.others()
    effects = {name: rows.column_effect(codes) for name, codes in columns.items()}
    level = _EXPLAINED / max(len(columns), 1)
    return {name: wider for name, (p, wider) in effects.items() if p <= level and wider >= _WIDER}


def _missing(
    found: SourceBlock, block: RowBlock | CellBlock, metrics: Mapping[str, Estimate]
) -> MissingEntry | None:
    """Return what is known about graded answers without a confidence, where there are any."""
    if found.missing is None or not block.independent or block.shares is not None:
        return None
    return missing_entry(block.cell_error.sums, metrics["confidence_gap"], found.missing)


def _has_ids(reading: Mapping[str, Any]) -> bool:
    """Return whether a table that is read in parts names its questions."""
    return "question_id" in reading.get("columns", {})


def _weighted(entries: Iterable[AuditBlock]) -> bool:
    """Return whether rows weigh unequally, and not only questions by their number of rows."""
    return any(entry.effective_n is not None and entry.questions == entry.n for entry in entries)


def _notes(block: RowBlock | CellBlock, found: SourceBlock) -> list[str]:
    undefined = [f"{name} is undefined: {reason}" for name, reason in block.undefined.items()]
    few = []
    if block.shares is not None:
        few.append(unequal_note(block.effective, repeated=block.questions < block.n))
    return [*sorted(undefined), *few, *found.notes]


def _named_metrics(found: SourceBlock, block: Any, options: AuditOptions) -> dict[str, Any]:
    # Loaded here, and with a stream of its own: what was not asked for changes nothing.
    from calibrant.metrics.row_block import named_values

    stream = named_stream(options.seed, "named metrics", *map(str, found.keys.values()))
    return named_values(block, options.named_metrics, stream)


def _reliability(block: RowBlock | CellBlock, rng: Stream) -> dict[str, Any]:
    """Return what a reliability diagram shows."""
    return {
        "bins": block.diagram(),
        "curve": block.reliability_curve(_CURVE_POINTS, rng).to_dict(),
        "histogram": block.histogram(_HISTOGRAM_BINS),
    }


def _verdict(entry: Mapping[str, Any], own: Sequence[Claim]) -> dict[str, str]:
    """Return the verdict of an entry: a word for programs, and its sentences."""
    word = calibration_word(own) if entry["probability"] else "not-a-probability"
    texts = [claim.text for claim in own] or [_NO_PROBABILITY]
    return {"calibration": word, "how": texts[0], "sure": " ".join(texts[1:])}


def _claims_by_entry(claims: Iterable[Claim]) -> defaultdict[Hashable, list[Claim]]:
    """Return the claims about each entry; those about several models are of none."""
    found: defaultdict[Hashable, list[Claim]] = defaultdict(list)
    for claim in claims:
        if all(key in claim.subject for key in _KEYS):
            found[_place(claim.subject)].append(claim)
    return found


def _place(subject: Mapping[str, Any]) -> Hashable:
    """Return what tells an entry from all others."""
    model, method, group = (subject[key] for key in _KEYS)
    return model, method, None if group is None else frozenset(group.items())
