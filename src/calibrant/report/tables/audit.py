"""Tables of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.hints import Hint
from calibrant.metrics.metric import Metric
from calibrant.metrics.registry import METRICS, audited
from calibrant.report.answers import claims_of, graded_without, headline
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import Cell, Number, estimate_cell, number_cell, p_cell, share_cell
from calibrant.report.tables._semantic import semantic_tables
from calibrant.report.tables.remarks import correction_sentence, rows_left_out
from calibrant.report.titles import named_table

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


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return what a person reads first: verdict, then numbers, then what the labels can show."""
    document = _short_names(document)
    results: Sequence[Mapping[str, Any]] = document["results"]
    parts: list[Paragraph | Table] = []
    parts += _verdicts(document)
    calibrated = [entry for entry in results if entry["probability"]]
    ranking = [entry for entry in results if not entry["probability"]]
    if calibrated:
        parts += [_calibration(document, calibrated), _scores(document, calibrated)]
    named = [entry for entry in results if entry.get("named_metrics")]
    if named:
        parts.append(_named_metrics(document, named))
    if ranking:
        parts.append(_ranking(document, ranking))
    verified = [entry for entry in results if entry.get("verification")]
    if verified:
        parts.append(_verification(document, verified))
    if document.get("sem_ece"):
        parts.extend(semantic_tables(document["sem_ece"]))
    parts.extend(_remarks(document))
    return parts


def _verdicts(document: Mapping[str, Any]) -> list[Paragraph]:
    """Return the most important claims, fewer where there are many."""
    many = len(document["results"]) > _MANY
    sentences = headline(claims_of(document), _SAID_OF_MANY if many else _SAID)
    return [Paragraph(text, strong=number == 0) for number, text in enumerate(sentences)]


def _short_names(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave the method out of every row where there is only one."""
    names = {entry["method"] for entry in document["results"]}
    if len(names) != 1:
        return document
    entries = [{**entry, "method": None} for entry in document["results"]]
    return {**document, "results": entries, "one_method": names.pop()}


def _place(entry: Mapping[str, Any]) -> str:
    group = entry.get("group") or {}
    names = [entry["model"], entry["method"], *(f"{key}={value}" for key, value in group.items())]
    return " / ".join(name for name in names if name)


def _main(*groups: str) -> list[Metric]:
    """Return the metrics of groups that a table without room for all of them shows."""
    every = [METRICS[name] for name in audited() if METRICS[name].main]
    return [metric for group in groups for metric in every if metric.group == group]


def _calibration(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    shown = _main("share", "calibration")
    without = any(map(graded_without, entries))
    rows = tuple(
        (
            _place(entry),
            _WORDS.get(entry["verdict"]["calibration"], entry["verdict"]["calibration"]),
            number_cell(entry["n"]),
            *([number_cell(entry["metrics"]["accuracy"]["n"])] if without else []),
            *(_metric(entry, metric.name) for metric in shown),
        )
        for entry in entries
    )
    return Table(
        (
            _subject(document),
            "verdict",
            "n",
            *(["graded"] if without else []),
            *(metric.title for metric in shown),
        ),
        rows,
        title=named_table("Audit", document),
        name="calibration",
        note=f"{share_cell(document['level'])} intervals, {document['bins']} bins, "
        f"seed {document['seed']}{'; accuracy: of all graded answers' if without else ''}",
        labels=2,
    )


def _scores(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    shown = _main("score", "ranking")
    rows = tuple(
        (_place(entry), *(_metric(entry, metric.name) for metric in shown)) for entry in entries
    )
    *first, last = [metric.title for metric in shown if metric.better == "low"]
    return Table(
        (_subject(document), *(metric.title for metric in shown)),
        rows,
        title="Scores and ranking",
        name="scores",
        note=f"{', '.join(first)} and {last}: lower is better. "
        "AUROC: higher is better, 0.5 is chance.",
    )


def _named_metrics(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            _place(entry),
            name,
            *(
                number_cell(found[key], missing="-")
                for key in ("value", "calibrated_mean", "calibrated_high")
            ),
        )
        for entry in entries
        for name, found in entry["named_metrics"].items()
    )
    return Table(
        (_subject(document), "metric", "value", "if calibrated", "at most"),
        rows,
        title="Metrics asked for by name",
        name=NAMED_METRICS,
        note="If calibrated: mean, and upper end, of what a calibrated model shows on these rows.",
        labels=2,
    )


def _ranking(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Table:
    shown = [metric for metric in _main("share", "ranking") if not metric.probability]
    rows = tuple(
        (_place(entry), number_cell(entry["n"]), *(_metric(entry, one.name) for one in shown))
        for entry in entries
    )
    return Table(
        (_subject(document), "n", *(metric.title for metric in shown)),
        rows,
        title="Scores that are not probabilities",
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


def _metric(entry: Mapping[str, Any], name: str) -> Cell:
    if name not in entry["metrics"]:
        return "not a probability"
    return estimate_cell(entry["metrics"][name])


def _verification(document: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Table:
    several = any((entry.get("significance") or {}).get("tests", 0) > 2 for entry in results)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            _place(entry),
            _cell(entry["verification"]["error_rate"]),
            _cell(entry["verification"]["lipschitz"]),
            _cell(entry["verification"]["passive_floor"]),
            _cell(entry["verification"]["active_floor"]),
            number_cell(entry["calibration_test"]["expected_ece"]),
            *_p_values(entry, several=several),
        )
        for entry in results
    )
    return Table(
        (
            _subject(document),
            "error rate",
            "L",
            "passive floor",
            "active floor",
            "ECE if calibrated",
            *(("p", "p corrected") if several else ("p",)),
        ),
        rows,
        title="What these labels can show",
        name="verification",
        note=" ".join([_FLOORS, *dict.fromkeys(_steepness_notes(results))]),
    )


def _steepness_notes(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a constant L is undefined, once for each reason."""
    blocks = [entry["verification"] for entry in results]
    return [
        f"L is undefined where {block['lipschitz_note']}."
        for block in blocks
        if _cell(block["lipschitz"]).value is None and block.get("lipschitz_note")
    ]


def _p_values(entry: Mapping[str, Any], *, several: bool) -> tuple[Number, ...]:
    """Return p of perfect calibration, and its value corrected where there are several tests."""
    own = p_cell(entry["calibration_test"]["p_value"])
    if not several:
        return (own,)
    test = (entry.get("significance") or {}).get("calibration")
    return own, p_cell(None if test is None else test["p_adjusted"])


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
