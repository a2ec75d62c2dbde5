"""Tables of an audit, and of the groups for which its confidences are wrong."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from calibrant.core.hints import Hint
from calibrant.findings.claims import count
from calibrant.findings.documents import groups
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import AuditFields, GroupsFields
from calibrant.metrics.blocks.families import Metric
from calibrant.metrics.registry import METRICS, audited
from calibrant.report import captions, cells
from calibrant.report.answers import graded_without, headline
from calibrant.report.captions import rows_left_out
from calibrant.report.cells import (
    Block,
    Columns,
    Paragraph,
    Table,
    claims_first,
    entry_name,
    table_of,
)

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
    several = any(entry.method for entry in entries)
    grouped = any(entry.group for entry in entries)
    subject = "model" + (" / method" if several else "") + (" / group" if grouped else "")
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


def _columns(metrics: Iterable[Metric]) -> dict[str, Callable[[AuditBlock], cells.Cell]]:
    def column(name: str) -> Callable[[AuditBlock], cells.Cell]:
        return lambda entry: cells.estimate_cell(entry.metrics[name])

    return {metric.title: column(metric.name) for metric in metrics}


def _calibration(
    document: AuditFields, subject: str, entries: Sequence[AuditBlock], method: str
) -> Table:
    without = any(map(graded_without, entries))
    graded: Columns = {"graded": lambda e: cells.number_cell(e.metrics["accuracy"].n)}
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
        note=f"{cells.share_cell(document.level)} intervals, {document.bins} bins, "
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
            "value": lambda e: cells.number_cell(e[2]["value"], missing="-"),
            "if calibrated": lambda e: cells.number_cell(e[2]["calibrated_mean"], missing="-"),
            "at most": lambda e: cells.number_cell(e[2]["calibrated_high"], missing="-"),
        },
        "Metrics asked for by name",
        name=NAMED_METRICS,
        requested=True,
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
            "ECE if calibrated": lambda e: cells.number_cell(e.calibration_test["expected_ece"]),
            "p": lambda e: cells.p_cell(e.calibration_test["p_value"]),
            **({"p corrected": _p_corrected} if several else {}),
        },
        "What these labels can show",
        name="verification",
        note=" ".join([_FLOORS, *undefined]),
    )


def _p_corrected(entry: AuditBlock) -> cells.Number:
    test = entry.significance["calibration"] if entry.significance else None
    return cells.p_cell(None if test is None else test["p_adjusted"])


def _named(places: Sequence[str]) -> str:
    display = dict.fromkeys(places)
    if len(display) <= _PLACES_NAMED:
        return ", ".join(display)
    return f"{next(iter(display))} and {len(display) - 1:,} more"


_ROWS = 15
_LOSSES = {
    "calibration_loss": "calibration: one recalibration mends it",
    "grouping_loss": "grouping: no recalibration mends it",
    "published_loss": "the same as published: counts a misfit of Platt scaling too",
    "rest": "rest: chance, and what was not caught",
    "brier": "Brier score",
}
_DECISIONS = {
    "saved": "saved by a corrected confidence",
    "calibration": "of which by one recalibration",
    "grouping": "of which by the columns",
    "today": "cost of today's decisions",
}


def groups_blocks(document: GroupsFields) -> Iterator[Block]:
    """Yield the claims, the groups, the parts of the error and the decisions of each model."""
    if document.trend:
        # Whoever asks for it is answered first.
        yield from (Paragraph(text, strong=True) for text in _trend_words(document.trend))
        yield _trend(document.trend)
    yield from claims_first(document)
    if document.across:
        yield _across(document.across)
    for entry in document.results:
        if entry.groups:
            yield _groups(entry, named=len(document.results) > 1)
        yield _losses(entry)
        yield _decision(entry.decision)
        if entry.differences:
            columns: Columns = {
                "groups": lambda e: f"{e.a} minus {e.b}",
                "difference at equal confidence, points": lambda e: cells.points_cell(e.gap),
                "adjusted p": "p_adjusted",
            }
            yield table_of(entry.differences, columns, "Named groups against each other")
    yield from rows_left_out(document)


def _across(rows: list[groups.GroupAcross]) -> Table:
    return table_of(
        rows[:_ROWS],
        {
            "group": "rule",
            "models": lambda e: cells.said_cell(len(e.models), f"{len(e.models)} of {e.of}"),
            "over-confident": "over_confident",
            "gap, points": lambda e: _points(e.mean_gap),
        },
        "Groups that stand out, over all models",
        note="Models for which the group stands out, and for how many of them as over-confident. "
        "Gap: says minus right, against other answers of equal confidence.",
        main=True,
    )


def _trend_words(trend: groups.Trend) -> Iterator[str]:
    """Answer: does the grouping loss fall with tuning, and with size?"""
    request = []
    if trend.tuned and trend.tuned.mean:
        pairs = len(trend.tuned.pairs)
        request.append(("Tuning", trend.tuned.mean, f"on average of {pairs} pairs"))
    for pair in trend.tuned.pairs if trend.tuned else ():
        if pair.exact is not None:
            name = f"{pair.tuned} instead of {pair.base}"
            request.append((name, pair.exact, "by Brier scores of one outcome"))
    if trend.size:
        models = trend.size.models
        request.append(("Twice the size", trend.size.per_doubling, f"over {models} models"))
    for what, change, over in request:
        value, low, high = change.value or 0.0, change.low or 0.0, change.high or 0.0
        if low <= 0 <= high:
            interval = f"by {value:+.4f} {over} (95 % interval {low:+.4f} to {high:+.4f})"
            yield f"{what}: undecided whether the grouping loss falls. It changes {interval}."
        else:
            least, most = sorted((abs(low), abs(high)))
            verb = "lowers" if value < 0 else "raises"
            interval = f"by {abs(value):.4f} {over} (95 % interval {least:.4f} to {most:.4f})"
            yield f"{what} {verb} the grouping loss {interval}."


def _trend(trend: groups.Trend) -> Table:
    """Return how the grouping loss changes with size and with tuning."""
    rows: list[tuple[cells.Cell, ...]] = []
    if size := trend.size:
        change = cells.estimate_cell(size.per_doubling, digits=4)
        p_value = "" if size.p_value is None else cells.number_cell(size.p_value)
        rows.append((f"size doubled ({count(size.models, 'model')})", change, "", p_value))
    if tuned := trend.tuned:
        for pair in tuned.pairs:
            reach = "" if pair.reach is None else f" ± {pair.reach:.4f}"
            exact = "" if pair.exact is None else _exact(pair.exact)
            statement = f"{pair.difference:+.4f}{reach}"
            rows.append((f"{pair.base} -> {pair.tuned}", statement, exact, ""))
        if tuned.mean:
            rows.append(("tuned, mean of pairs", cells.estimate_cell(tuned.mean, digits=4), "", ""))
    names = ("when", "grouping loss", "by Brier scores", "p")
    used = [place for place in range(len(names)) if any(row[place] != "" for row in rows)]
    return Table(
        tuple(names[place] for place in used),
        tuple(tuple(row[place] for place in used) for row in rows),
        "Grouping loss by size and tuning",
        note="Change of the loss; below 0: less is left to correct. Intervals of means are over "
        "models, of which there are few. p: sizes dealt anew to the models. By Brier scores: "
        "where both models were asked about one outcome, without a tree.",
        main=True,
    )


def _exact(result: EstimateEntry) -> str:
    reach = ((result.high or 0.0) - (result.low or 0.0)) / 2
    return f"{result.value or 0.0:+.4f} ± {reach:.4f}"


def _losses(entry: groups.GroupsEntry) -> Table:
    total = entry.brier.value
    losses = {name: getattr(entry, name) for name in _LOSSES}

    def share(name: str) -> cells.Number:
        value = losses[name].value
        return cells.share_cell(max(value, 0) / total if total and value is not None else None)

    word = "passed" if entry.copy_check.passed else "failed: read the grouping loss with care"
    return table_of(
        [name for name in _LOSSES if losses[name]],
        {
            "part": lambda name: _LOSSES[name],
            "Brier score": lambda name: cells.estimate_cell(losses[name], digits=4),
            "share": share,
        },
        "What the Brier score is made of",
        note=f"{count(entry.n, 'row')}. Grouping: from its 95 % lower bound to all that is left. "
        f"Copy check (the confidence as only column must show nothing): {word}.",
    )


def _groups(entry: groups.GroupsEntry, *, named: bool) -> Table:
    visible = entry.groups[:_ROWS]
    more = len(entry.groups) - len(visible) + entry.groups_not_shown
    note = f"{entry_name(entry)}. " if named else ""
    note += (
        "Gaps in points: says minus right; then at equal confidence, for flagged groups beyond "
        "those flagged above. Intervals hold for all "
        f"{count(entry.multiplicity.tested, 'group')} at once. A group is a place to look, not a "
        "cause."
    )
    if more > 0:
        note += f" {more} more in the JSON."
    echo: Columns = {"echo of": lambda e: e.echo_of or ""}
    return table_of(
        visible,
        {
            "group": "rule",
            "rows": "n",
            "says": lambda e: cells.share_cell(e.mean_confidence),
            "right": lambda e: cells.share_cell(e.rate),
            "gap": lambda e: _points(e.gap),
            "gap at equal confidence": lambda e: cells.points_cell(e.beyond),
            "flag": _mark,
            **(echo if any(group.echo_of for group in visible) else {}),
        },
        f"{entry_name(entry)}: groups",
        note=note,
        main=True,
    )


def _points(gap: float) -> cells.Number:
    return cells.Number(gap, unit="points", digits=1, signed=True)


def _mark(group: groups.GroupEntry) -> str:
    if group.flagged:
        return group.direction.removesuffix("-confident")
    return "echo" if group.echo_of else ""


def _decision(decision: groups.GroupDecision) -> Table:
    return table_of(
        _DECISIONS,
        {
            "per decision": lambda name: _DECISIONS[name],
            "cost": lambda name: cells.estimate_cell(getattr(decision, name), digits=4),
        },
        f"Decisions at {decision.threshold:.3g} "
        f"(optimal for these costs: {decision.optimal_threshold:.3g})",
        note="Savings: from a one-sided 95 % bound to the most that could be saved.",
    )
