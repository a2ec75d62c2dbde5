"""Tables of a comparison."""

from collections.abc import Callable, Iterator, Sequence

from calibrant.core.names import method_name
from calibrant.findings.claims import count
from calibrant.findings.documents import entries
from calibrant.findings.documents.fields import CompareFields
from calibrant.report import cells
from calibrant.report.answers import headline
from calibrant.report.captions import named_table, pairs_rule, rows_left_out
from calibrant.report.cells import Block, Columns, Paragraph, Table, table_of

_VIEWS = {"raw": "raw", "da": "DA", "ia": "IA", "ca": "CA"}
_FOOTINGS = {
    "raw": "as answered",
    "da": "by DA",
    "ia": "by IA",
    "ca": "by CA",
    "sda": "with right and wrong in equal shares",
    "os_weakest": "at the weaker accuracy",
    "os_strongest": "at the stronger accuracy",
}
_PAIRS_SHOWN = 40
_SENTENCES_SHOWN = 5


def blocks(document: CompareFields) -> Iterator[Block]:
    """Yield the verdicts, the league, the pairs and how often the order turns round."""
    methods = {entry.method for entry in document.results}
    # One method is named in the title.
    several = len(methods) > 1
    for number, text in enumerate(headline(document.claims or [], _SENTENCES_SHOWN)):
        yield Paragraph(text, strong=number == 0)
    if rule := pairs_rule(document.multiplicity):
        yield Paragraph(rule)
    leagues = document.league or []
    for league in leagues:
        yield _tiers(league, named=len(leagues) > 1)
    yield _league(document, "" if several else str(*methods))
    yield _pairs(document.pairs, several=several)
    for part in document.summaries or []:
        if part.summary.cases > 1:
            yield _turns(part.summary, _place(part.keys, several=several))
            yield _by_gap(part.summary)
    if document.self_preference:
        columns: Columns = {
            "judge": lambda e: _place(e, several=several) + e.judge,
            "own minus others": "bias",
            "on right answers": "on_right",
            "on wrong answers": "on_wrong",
        }
        title = "Self-preference: confidence in own answers minus others', at equal grade"
        yield table_of(document.self_preference, columns, title)
    yield from rows_left_out(document)
    # What could not be compared, one sentence per reason.
    places: dict[str, list[str]] = {}
    for entry in document.not_compared or []:
        names = (entry.model, entry.method, *(entry.group or {}).values())
        places.setdefault(entry.reason, []).append(" / ".join(filter(None, names)))
    for reason, by_name in places.items():
        yield Paragraph(f"Not compared: {', '.join(by_name)}, because {reason}.")


_Placed = entries.CompareEntry | entries.PairEntry | entries.SelfPreference | entries.Compared


def _place(entry: _Placed, *, several: bool) -> str:
    names = [entry.method if several else None, *(entry.group or {}).values()]
    place = " / ".join(filter(None, names))
    return f"{place}: " if place else ""


def _tiers(league: entries.League, *, named: bool) -> Table:
    return table_of(
        league.entries,
        {
            "model": "model",
            "tier": lambda e: cells.number_cell(e.tier, missing="none"),
            "rank": lambda e: cells.rank_cell(e.rank.low, e.rank.high) if e.rank else "",
            "score": "score",
            "right": lambda e: cells.share_cell(e.accuracy),
            "beats": lambda e: cells.number_cell(len(e.beats)),
            # A column without a word says nothing.
            **({"mind": _marks} if any(map(_marks, league.entries)) else {}),
        },
        f"Tiers{': ' + league.method if league.method else ''}",
        note=f"{'By ' + method_name(league.method) + '. ' if named else ''}Score: "
        "skill at equal accuracy on its own questions; a constant confidence has 0, a perfect one "
        "1. Tiers, ranks and 'beats' follow from the verdict 'better' on each pair.",
        main=True,
    )


def _marks(entry: entries.Standing) -> str:
    """Return why a score says little: constant or near-certain statements, missing ones."""
    marks = {
        "uninformative": entry.uninformative,
        "near-certain": entry.saturated,
        "too many without confidence": not entry.placed and not entry.uninformative,
    }
    return ", ".join(words for words, holds in marks.items() if holds)


def _league(document: CompareFields, method: str) -> Table:
    first = document.results[0].views
    views = [view for view in _VIEWS if getattr(first, view) != entries.CompareView()]
    ranking = sorted(
        document.results, key=lambda e: (str(e.method), str(e.group), e.views.raw.ece.number)
    )
    return table_of(
        ranking,
        {
            "model": lambda e: _place(e, several=not method) + e.model,
            "accuracy": "accuracy",
            **{f"ECE {_VIEWS[view]}": f"views.{view}.ece" for view in views},
            "tied with": lambda e: _tied_with(e, document.pairs),
        },
        named_table("Models", document, method),
        note="DA: reweighted to one accuracy, confidences unchanged. IA: questions on which all "
        "models share the outcome. CA: all models score the same answers. These views "
        "describe and decide nothing alone.",
    )


def _tied_with(entry: entries.CompareEntry, pairs: Sequence[entries.PairEntry]) -> cells.Number:
    """Return how many models are neither shown to be better nor worse calibrated than this one."""
    ties = [
        pair.tie
        for pair in pairs
        if (pair.method, pair.group) == (entry.method, entry.group)
        and entry.model in (pair.a, pair.b)
    ]
    return cells.said_cell(sum(ties), f"{sum(ties)} of {len(ties)}")


def _pairs(pairs: Sequence[entries.PairEntry], *, several: bool) -> Table:
    more = len(pairs) - _PAIRS_SHOWN
    note = (
        "A gap below zero prefers the first model; 'tie' where these labels cannot tell; 'alone' "
        "where they could if this were the only pair. Intervals are of each pair alone."
    )
    return table_of(
        pairs[:_PAIRS_SHOWN],
        {
            "pair": lambda e: _place(e, several=several) + f"{e.a} - {e.b}",
            "verdict": _verdict,
            "accuracy": "accuracy_gap",
            "raw ECE gap": lambda e: _gap(e, "raw"),
            "at equal accuracy": "gaps.sos.ece",
            "DA": lambda e: _gap(e, "da"),
            "IA": lambda e: _gap(e, "ia"),
            "turns round": "pattern",
            "floor": "floor",
            "kept by IA": lambda e: cells.share_cell(e.retention),
        },
        "Pairs",
        note=note + (f" {more} more pairs in the JSON." if more > 0 else ""),
    )


def _gap(pair: entries.PairEntry, view: str) -> cells.Number:
    mark = "tie" if pair.ties[view]["ece"] else "alone"
    visible = pair.better[view] is not None
    return cells.estimate_cell(getattr(pair.gaps, view).ece, mark="" if visible else mark)


def _verdict(pair: entries.PairEntry) -> str:
    """Return the verdict on a pair and whom or what it names."""
    if pair.depends_on:
        return f"depends: {pair.depends_on}"
    return f"{pair.winner} {pair.verdict}" if pair.winner else str(pair.verdict)


def _turns(summary: entries.Turns, where: str) -> Table:
    rows: list[tuple[cells.Cell, ...]] = [
        (
            f"turned round {_FOOTINGS[view]}",
            cells.estimate_cell(rate),
            cells.number_cell(summary.resolved_reversals.get(view), missing=""),
        )
        for view, rate in summary.rates.items()
    ]
    reversals = cells.number_cell(summary.verdicts["reversal"])
    rows.append(("looks better, is worse at equal accuracy", "", reversals))
    rows.append(("DA and IA agree", cells.estimate_cell(summary.agreement), ""))
    rows += [
        (f"correlation of accuracy gap and gap {_FOOTINGS[view]}", cells.estimate_cell(value), "")
        for view, value in summary.correlation.items()
    ]
    return Table(
        (f"{where}{count(summary.cases, 'pair')}", "share", "resolved"),
        tuple(rows),
        "How often the order turns round",
        "'resolved': both the raw and the aligned gap are shown, corrected for all pairs.",
    )


def _by_gap(summary: entries.Turns) -> Table:
    """Return how often the order turns, by the size of the accuracy gap."""

    def turned(view: str) -> Callable[[dict[str, entries.EstimateEntry]], cells.Cell]:
        return lambda row: cells.share_cell(row[view].value)

    return table_of(
        [row for row in summary.by_accuracy_gap if row["cases"]],
        {
            "accuracy gap, points": lambda e: f"{100 * e['low']:g} to {100 * e['high']:g}",
            "pairs": "cases",
            **{_FOOTINGS[view]: turned(view) for view in summary.rates},
        },
        "How often the order turns round, by the gap in accuracy",
    )
