"""Tables of an audit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibrant.core.hints import Hint
from calibrant.metrics.families import Metric
from calibrant.metrics.registry import METRICS, audited
from calibrant.report.answers import claims_of, graded_without, headline
from calibrant.report.blocks import Block, Columns, Paragraph, Table, table_of
from calibrant.report.cells import Cell, Number, estimate_cell, number_cell, p_cell, share_cell
from calibrant.report.tables.remarks import correction_sentence, rows_left_out
from calibrant.report.titles import named_table, without_one_method

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


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return what a person reads first: verdict, then numbers, then what the labels can show."""
    document = without_one_method(document, "results")
    results: Sequence[Mapping[str, Any]] = document["results"]
    tables = (
        (_calibration, [entry for entry in results if entry["probability"]]),
        (_scores, [entry for entry in results if entry["probability"]]),
        (_named_metrics, [entry for entry in results if entry.get("named_metrics")]),
        (_ranking, [entry for entry in results if not entry["probability"]]),
        (_verification, [entry for entry in results if entry.get("verification")]),
    )
    return [
        *_verdicts(document),
        *(made(document, entries) for made, entries in tables if entries),
        *_meanings(document),
        *_remarks(document),
    ]


def _meanings(document: Mapping[str, Any]) -> list[Block]:
    if not document.get("sem_ece"):
        return []
    # Loaded here: most audits hold no draws.
    from calibrant.report.tables.meanings import semantic_tables

    return semantic_tables(document["sem_ece"])


def _verdicts(document: Mapping[str, Any]) -> list[Paragraph]:
    """Return the most important claims, fewer where there are many."""
    many = len(document["results"]) > _MANY
    sentences = headline(claims_of(document), _SAID_OF_MANY if many else _SAID)
    return [Paragraph(text, strong=number == 0) for number, text in enumerate(sentences)]


def _place(entry: Mapping[str, Any]) -> str:
    group = entry.get("group") or {}
    names = [entry["model"], entry["method"], *(f"{key}={value}" for key, value in group.items())]
    return " / ".join(name for name in names if name)


def _main(*groups: str) -> list[Metric]:
    """Return the metrics of groups that a table without room for all of them shows."""
    every = [METRICS[name] for name in audited() if METRICS[name].main]
    return [metric for group in groups for metric in every if metric.group == group]


def _columns(*groups: str) -> dict[str, Callable[[Mapping[str, Any]], Cell]]:
    """Return a column for each metric of groups that a table without room for all of them has."""

    def column(name: str) -> Callable[[Mapping[str, Any]], Cell]:
        return lambda entry: estimate_cell(entry["metrics"][name])

    return {metric.title: column(metric.name) for metric in _main(*groups)}


def _calibration(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    without = any(map(graded_without, entries))
    graded: Columns = {"graded": lambda e: number_cell(e["metrics"]["accuracy"]["n"])}
    return table_of(
        entries,
        {
            _subject(document): _place,
            "verdict": lambda e: _WORDS.get(
                e["verdict"]["calibration"], e["verdict"]["calibration"]
            ),
            "n": "n",
            **(graded if without else {}),
            **_columns("share", "calibration"),
        },
        named_table("Audit", document),
        name="calibration",
        note=f"{share_cell(document['level'])} intervals, {document['bins']} bins, "
        f"seed {document['seed']}{'; accuracy: of all graded answers' if without else ''}",
        labels=2,
    )


def _scores(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    lower = [metric.title for metric in _main("score", "ranking") if metric.better == "low"]
    return table_of(
        entries,
        {_subject(document): _place, **_columns("score", "ranking")},
        "Scores and ranking",
        name="scores",
        note=f"{', '.join(lower[:-1])} and {lower[-1]}: lower is better. "
        "AUROC: higher is better, 0.5 is chance.",
    )


def _named_metrics(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    found = [
        {"place": _place(entry), "metric": name, **metric}
        for entry in entries
        for name, metric in entry["named_metrics"].items()
    ]
    return table_of(
        found,
        {
            _subject(document): "place",
            "metric": "metric",
            "value": lambda e: number_cell(e["value"], missing="-"),
            "if calibrated": lambda e: number_cell(e["calibrated_mean"], missing="-"),
            "at most": lambda e: number_cell(e["calibrated_high"], missing="-"),
        },
        "Metrics asked for by name",
        name=NAMED_METRICS,
        note="If calibrated: mean, and upper end, of what a calibrated model shows on these rows.",
        labels=2,
    )


def _ranking(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    shown = {metric.title for metric in _main("share", "ranking") if not metric.probability}
    metrics = {title: own for title, own in _columns("share", "ranking").items() if title in shown}
    return table_of(
        entries,
        {_subject(document): _place, "n": "n", **metrics},
        "Scores that are not probabilities",
        name="ranking",
        note=Hint(
            "They rank answers; a calibration error exists only after {recalibrate}."
        ).shell(),
    )


def _subject(document: Mapping[str, Any]) -> str:
    """Name what a row is about: the method is left out where there is only one."""
    several = any(entry["method"] for entry in document["results"])
    grouped = any(entry.get("group") for entry in document["results"])
    return "model" + (" / method" if several else "") + (" / group" if grouped else "")


def _verification(document: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Table:
    several = any((entry.get("significance") or {}).get("tests", 0) > 2 for entry in results)

    def checked(name: str) -> Callable[[Mapping[str, Any]], Cell]:
        return lambda entry: _cell(entry["verification"][name])

    return table_of(
        results,
        {
            _subject(document): _place,
            "error rate": checked("error_rate"),
            "L": checked("lipschitz"),
            "passive floor": checked("passive_floor"),
            "active floor": checked("active_floor"),
            "ECE if calibrated": lambda e: number_cell(e["calibration_test"]["expected_ece"]),
            "p": lambda e: p_cell(e["calibration_test"]["p_value"]),
            **({"p corrected": _p_corrected} if several else {}),
        },
        "What these labels can show",
        name="verification",
        note=" ".join([_FLOORS, *dict.fromkeys(_steepness_notes(results))]),
    )


def _p_corrected(entry: Mapping[str, Any]) -> Number:
    test = (entry.get("significance") or {}).get("calibration")
    return p_cell(None if test is None else test["p_adjusted"])


def _steepness_notes(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a constant L is undefined, once for each reason."""
    blocks = [entry["verification"] for entry in results]
    return [
        f"L is undefined where {block['lipschitz_note']}."
        for block in blocks
        if _cell(block["lipschitz"]).value is None and block.get("lipschitz_note")
    ]


def _cell(value: Any) -> Number:
    return estimate_cell(value) if isinstance(value, Mapping) else number_cell(value)


def _remarks(document: Mapping[str, Any]) -> list[Paragraph]:
    remarks = []
    rule = correction_sentence(document)
    if rule:
        remarks.append(Paragraph(rule))
    remarks.extend(rows_left_out(document))
    places: dict[str, list[str]] = {}
    for entry in document["results"]:
        for note in entry["notes"]:
            places.setdefault(note, []).append(_place(entry))
    remarks.extend(
        Paragraph(f"Note on {_named(where)}: {note}") for note, where in sorted(places.items())
    )
    return remarks


def _named(places: Sequence[str]) -> str:
    shown = dict.fromkeys(places)
    if len(shown) <= _PLACES_NAMED:
        return ", ".join(shown)
    return f"{next(iter(shown))} and {len(shown) - 1:,} more"
