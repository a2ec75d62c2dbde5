"""Tables of `groups`."""

from collections.abc import Iterator

from calibrant.findings.claims.claim import count
from calibrant.findings.documents import groups
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import GroupsFields
from calibrant.report import cells
from calibrant.report.blocks import (
    Block,
    Columns,
    Paragraph,
    Table,
    claims_first,
    entry_name,
    table_of,
)
from calibrant.report.captions import rows_left_out

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


def blocks(document: GroupsFields) -> Iterator[Block]:
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
