"""Tables of a comparison."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import convert

from calibrant.core.method_words import method_name
from calibrant.documents.entries import Multiplicity
from calibrant.report import cells
from calibrant.report.answers import claims_of, headline
from calibrant.report.blocks import Block, Paragraph, Table, table_of
from calibrant.report.tables.remarks import pairs_rule, rows_left_out
from calibrant.report.titles import named_table

_VIEWS = ("raw", "da", "ia", "ca")
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


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the verdicts, the league, the pairs and how often the order turns round."""
    methods = {entry["method"] for entry in document["results"]}
    if one := methods.pop() if len(methods) == 1 else "":
        short = {
            name: [{**entry, "method": None} for entry in document[name]]
            for name in ("results", "pairs", "self_preference")
        }
        document = {**document, **short, "one_method": one}
    pairs = document["pairs"]
    parts: list[Block] = [
        Paragraph(text, strong=number == 0)
        for number, text in enumerate(headline(claims_of(document), _SENTENCES_SHOWN))
    ]
    if rule := pairs_rule(convert(document["multiplicity"], Multiplicity)):
        parts.append(Paragraph(rule))
    leagues = document.get("league") or ()
    parts.extend(_tiers(league, named=len(leagues) > 1) for league in leagues)
    parts.append(_league(document))
    parts.append(_pairs(pairs))
    for part in document["summaries"]:
        if part["summary"]["cases"] > 1:
            method = None if document.get("one_method") else part["keys"]["method"]
            where = _place({**part["keys"], "method": method})
            parts += [_turns(part, where), _by_gap(part)]
    if document["self_preference"]:
        parts.append(_self_preference(document["self_preference"]))
    parts.extend(rows_left_out(document))
    return [*parts, *_not_compared(document)]


def _not_compared(document: Mapping[str, Any]) -> list[Block]:
    """Return what could not be compared, one sentence per reason."""
    places: dict[str, list[str]] = {}
    for entry in document.get("not_compared", ()):
        model = [entry["model"]] if "model" in entry else []
        place = [*model, entry["method"], *(entry["group"] or {}).values()]
        places.setdefault(entry["reason"], []).append(" / ".join(place))
    return [
        Paragraph(f"Not compared: {', '.join(named)}, because {reason}.")
        for reason, named in places.items()
    ]


def _place(entry: Mapping[str, Any]) -> str:
    names = [entry["method"], *(entry.get("group") or {}).values()]
    shown = [name for name in names if name]
    return " / ".join(shown) + ": " if shown else ""


def _tiers(league: Mapping[str, Any], *, named: bool) -> Table:
    return table_of(
        league["entries"],
        {
            "model": "model",
            "tier": lambda e: cells.number_cell(e["tier"], missing="none"),
            "rank": lambda e: (
                cells.rank_cell(e["rank"]["low"], e["rank"]["high"]) if e["rank"] else ""
            ),
            "score": "score",
            "right": lambda e: cells.share_cell(e["accuracy"]),
            "beats": lambda e: cells.number_cell(len(e["beats"])),
            "mind": _marks,
        },
        f"Tiers{': ' + str(league['method']) if league['method'] else ''}",
        note=f"{'By ' + method_name(league['method']) + '. ' if named else ''}Score: "
        "skill at equal accuracy on its own questions; a constant confidence has 0, a perfect one "
        "1. Tiers, ranks and 'beats' follow from the verdict 'better' on each pair.",
        main=True,
    )


def _marks(entry: Mapping[str, Any]) -> str:
    """Return why a score says little: constant or near-certain statements, missing ones."""
    marks = {"uninformative": "uninformative", "saturated": "near-certain"}
    found = [words for name, words in marks.items() if entry[name]]
    missing = not entry["placed"] and not entry["uninformative"]
    return ", ".join([*found, "too many without confidence"] if missing else found)


def _league(document: Mapping[str, Any]) -> Table:
    views = [view for view in _VIEWS if view in document["results"][0]["views"]]
    ranked = sorted(
        document["results"],
        key=lambda entry: (
            str(entry["method"]),
            str(entry["group"]),
            entry["views"]["raw"]["ece"]["value"],
        ),
    )

    def error(view: str) -> Callable[[Mapping[str, Any]], cells.Cell]:
        return lambda entry: cells.estimate_cell(entry["views"][view]["ece"])

    return table_of(
        ranked,
        {
            "model": lambda e: _place(e) + e["model"],
            "accuracy": "accuracy",
            **{f"ECE {view if view == 'raw' else view.upper()}": error(view) for view in views},
            "tied with": lambda e: _tied_with(e, document["pairs"]),
        },
        named_table("Models", document, document.get("one_method") or ""),
        note="DA: reweighted to one accuracy, confidences unchanged. IA: questions on which all "
        "models share the outcome. CA: all models score the same answers. These views "
        "describe and decide nothing alone.",
    )


def _tied_with(entry: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> cells.Number:
    """Return how many models are neither shown to be better nor worse calibrated than this one."""
    ties, others = 0, 0
    for pair in pairs:
        same = (pair["method"], pair["group"]) == (entry["method"], entry["group"])
        if same and entry["model"] in (pair["a"], pair["b"]):
            others += 1
            ties += pair["tie"]
    return cells.said_cell(ties, f"{ties} of {others}")


def _pairs(pairs: Sequence[Mapping[str, Any]]) -> Table:
    more = len(pairs) - _PAIRS_SHOWN
    note = (
        "A gap below zero prefers the first model; 'tie' where these labels cannot tell; 'alone' "
        "where they could if this were the only pair. Intervals are of each pair alone."
    )
    return table_of(
        pairs[:_PAIRS_SHOWN],
        {
            "pair": lambda e: _place(e) + f"{e['a']} - {e['b']}",
            "verdict": _verdict,
            "accuracy": "accuracy_gap",
            "raw ECE gap": lambda e: _gap(e, "raw"),
            "at equal accuracy": lambda e: cells.estimate_cell(e["gaps"]["sos"]["ece"]),
            "DA": lambda e: _gap(e, "da"),
            "IA": lambda e: _gap(e, "ia"),
            "turns round": "pattern",
            "floor": "floor",
            "kept by IA": lambda e: cells.share_cell(e["retention"]),
        },
        "Pairs",
        note=note + (f" {more} more pairs in the JSON." if more > 0 else ""),
    )


def _gap(pair: Mapping[str, Any], view: str) -> cells.Number:
    mark = "tie" if pair["ties"][view]["ece"] else "alone"
    shown = pair["better"][view] is not None
    return cells.estimate_cell(pair["gaps"][view]["ece"], mark="" if shown else mark)


def _verdict(pair: Mapping[str, Any]) -> str:
    """Return the verdict on a pair and whom or what it names."""
    if pair["depends_on"]:
        return f"depends: {pair['depends_on']}"
    if pair["winner"]:
        return f"{pair['winner']} {pair['verdict']}"
    return str(pair["verdict"])


def _turns(part: Mapping[str, Any], where: str) -> Table:
    summary = part["summary"]
    rows: list[tuple[cells.Cell, ...]] = [
        (
            f"turned round {_FOOTINGS[view]}",
            cells.estimate_cell(rate),
            cells.number_cell(summary["resolved_reversals"].get(view), missing=""),
        )
        for view, rate in summary["rates"].items()
    ]
    reversals = cells.number_cell(summary["verdicts"]["reversal"])
    rows.append(("looks better, is worse at equal accuracy", "", reversals))
    rows.append(("DA and IA agree", cells.estimate_cell(summary["agreement"]), ""))
    rows.extend(
        (f"correlation of accuracy gap and gap {_FOOTINGS[view]}", cells.estimate_cell(value), "")
        for view, value in summary["correlation"].items()
    )
    return Table(
        (f"{where}{summary['cases']} pairs", "share", "resolved"),
        tuple(rows),
        title="How often the order turns round",
        note="'resolved': both the raw and the aligned gap are shown, corrected for all pairs.",
    )


def _by_gap(part: Mapping[str, Any]) -> Table:
    """Return how often the order turns, by the size of the accuracy gap."""

    def turned(view: str) -> Callable[[Mapping[str, Any]], cells.Cell]:
        return lambda row: cells.share_cell(row[view]["value"])

    summary = part["summary"]
    return table_of(
        [row for row in summary["by_accuracy_gap"] if row["cases"]],
        {
            "accuracy gap, points": lambda e: f"{100 * e['low']:g} to {100 * e['high']:g}",
            "pairs": "cases",
            **{_FOOTINGS[view]: turned(view) for view in summary["rates"]},
        },
        "How often the order turns round, by the gap in accuracy",
    )


def _self_preference(rows: Sequence[Mapping[str, Any]]) -> Table:
    return table_of(
        rows,
        {
            "judge": lambda e: _place(e) + e["judge"],
            "own minus others": "bias",
            "on right answers": "on_right",
            "on wrong answers": "on_wrong",
        },
        "Self-preference: confidence in own answers minus others', at equal grade",
    )
