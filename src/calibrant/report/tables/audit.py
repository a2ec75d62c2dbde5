"""Tables of an audit."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from calibrant.core.hints import Hint
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.fields import AuditFields
from calibrant.metrics.blocks.families import Metric
from calibrant.metrics.registry import METRICS, audited
from calibrant.report import captions
from calibrant.report.answers import graded_without, headline
from calibrant.report.blocks import Block, Columns, Paragraph, Table, table_of
from calibrant.report.cells import Cell, Number, estimate_cell, number_cell, p_cell, share_cell

NAMED_METRICS = "named metrics"
"""The name of the table of metrics that were asked for: the short view shows it too."""
OF_ENTRIES = frozenset({"calibration", "scores", "ranking", "verification"})
"""Names of tables with a row per audited confidence: a page has all of them in one of its own."""

_SAID, _SAID_OF_MANY, _MANY = 5, 3, 5
_PLACES_NAMED = 3
_FLOORS = "Floors are worst-case rates with constant 1; p tests 'perfectly calibrated'."
# With a space, so that narrow columns break between the words.
_WORDS = {
    "no-evidence": "undecided",
    "over-confident": "over confident",
    "under-confident": "under confident",
}


def blocks(document: AuditFields) -> Iterator[Block]:
    """Yield what a person reads first: verdict, then numbers, then what the labels can show."""
    entries, method = captions.without_one_method(document.blocks)
    subject = _subject(entries)
    # Fewer sentences where there are many confidences.
    most = _SAID_OF_MANY if len(document.blocks) > _MANY else _SAID
    for number, text in enumerate(headline(document.claims or [], most)):
        yield Paragraph(text, strong=number == 0)
    if proper := [entry for entry in entries if entry.probability]:
        yield _calibration(document, subject, proper, method)
        yield _scores(subject, proper)
    if any(entry.named_metrics for entry in entries):
        yield _named_metrics(subject, entries)
    if ranking := [entry for entry in entries if not entry.probability]:
        yield _ranking(subject, ranking)
    if verified := [entry for entry in entries if entry.verification]:
        yield _verification(subject, verified)
    if document.sem_ece:
        # Loaded here: most audits hold no draws.
        from calibrant.report.tables.meanings import semantic_tables

        yield from semantic_tables(document.sem_ece)
    if rule := captions.correction_sentence(document.multiplicity):
        yield Paragraph(rule)
    yield from captions.rows_left_out(document)
    places: dict[str, list[str]] = {}
    for entry in entries:
        for note in entry.notes:
            places.setdefault(note, []).append(_place(entry))
    for note, where in sorted(places.items()):
        yield Paragraph(f"Note on {_named(where)}: {note}")


def _place(entry: AuditBlock) -> str:
    groups = [f"{key}={value}" for key, value in (entry.group or {}).items()]
    return " / ".join(name for name in (entry.model, entry.method, *groups) if name)


def _main(*groups: str) -> list[Metric]:
    """Return the metrics of groups that a table without room for all of them shows."""
    every = [METRICS[name] for name in audited() if METRICS[name].main]
    return [metric for group in groups for metric in every if metric.group == group]


def _columns(metrics: Iterable[Metric]) -> dict[str, Callable[[AuditBlock], Cell]]:
    def column(name: str) -> Callable[[AuditBlock], Cell]:
        return lambda entry: estimate_cell(entry.metrics[name])

    return {metric.title: column(metric.name) for metric in metrics}


def _calibration(
    document: AuditFields, subject: str, entries: Sequence[AuditBlock], method: str
) -> Table:
    without = any(map(graded_without, entries))
    graded: Columns = {"graded": lambda e: number_cell(e.metrics["accuracy"].n)}
    return table_of(
        entries,
        {
            subject: _place,
            "verdict": lambda e: _WORDS.get(e.verdict.calibration, e.verdict.calibration),
            "n": "n",
            **(graded if without else {}),
            **_columns(_main("share", "calibration")),
        },
        captions.named_table("Audit", document, method),
        name="calibration",
        note=f"{share_cell(document.level)} intervals, {document.bins} bins, "
        f"seed {document.seed}{'; accuracy: of all graded answers' if without else ''}",
        labels=2,
    )


def _scores(subject: str, entries: Sequence[AuditBlock]) -> Table:
    metrics = _main("score", "ranking")
    *lower, last = (metric.title for metric in metrics if metric.better == "low")
    note = (
        f"{', '.join(lower)} and {last}: lower is better. AUROC: higher is better, 0.5 is chance."
    )
    columns = {subject: _place, **_columns(metrics)}
    return table_of(entries, columns, "Scores and ranking", name="scores", note=note)


def _named_metrics(subject: str, entries: Sequence[AuditBlock]) -> Table:
    rows = [
        (_place(entry), name, metric)
        for entry in entries
        for name, metric in entry.named_metrics.items()
    ]
    return table_of(
        rows,
        {
            subject: lambda e: e[0],
            "metric": lambda e: e[1],
            "value": lambda e: number_cell(e[2]["value"], missing="-"),
            "if calibrated": lambda e: number_cell(e[2]["calibrated_mean"], missing="-"),
            "at most": lambda e: number_cell(e[2]["calibrated_high"], missing="-"),
        },
        "Metrics asked for by name",
        name=NAMED_METRICS,
        note="If calibrated: mean, and upper end, of what a calibrated model shows on these rows.",
        labels=2,
    )


def _ranking(subject: str, entries: Sequence[AuditBlock]) -> Table:
    metrics = (metric for metric in _main("share", "ranking") if not metric.probability)
    note = Hint("They rank answers; a calibration error exists only after {recalibrate}.").shell()
    columns: Columns = {subject: _place, "n": "n", **_columns(metrics)}
    return table_of(
        entries, columns, "Scores that are not probabilities", name="ranking", note=note
    )


def _subject(entries: Sequence[AuditBlock]) -> str:
    """Name what a row is about: the method is left out where there is only one."""
    several = any(entry.method for entry in entries)
    grouped = any(entry.group for entry in entries)
    return "model" + (" / method" if several else "") + (" / group" if grouped else "")


def _verification(subject: str, results: Sequence[AuditBlock]) -> Table:
    several = any(entry.significance and entry.significance["tests"] > 2 for entry in results)
    checks = [entry.verification for entry in results if entry.verification]
    # Why a constant L is undefined, once for each reason.
    undefined = dict.fromkeys(
        f"L is undefined where {check.lipschitz_note}."
        for check in checks
        if check.lipschitz.value is None and check.lipschitz_note
    )
    return table_of(
        results,
        {
            subject: _place,
            "error rate": "verification.error_rate",
            "L": "verification.lipschitz",
            "passive floor": "verification.passive_floor",
            "active floor": "verification.active_floor",
            "ECE if calibrated": lambda e: number_cell(e.calibration_test["expected_ece"]),
            "p": lambda e: p_cell(e.calibration_test["p_value"]),
            **({"p corrected": _p_corrected} if several else {}),
        },
        "What these labels can show",
        name="verification",
        note=" ".join([_FLOORS, *undefined]),
    )


def _p_corrected(entry: AuditBlock) -> Number:
    test = entry.significance["calibration"] if entry.significance else None
    return p_cell(None if test is None else test["p_adjusted"])


def _named(places: Sequence[str]) -> str:
    display = dict.fromkeys(places)
    if len(display) <= _PLACES_NAMED:
        return ", ".join(display)
    return f"{next(iter(display))} and {len(display) - 1:,} more"
