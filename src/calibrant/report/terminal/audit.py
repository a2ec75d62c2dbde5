"""Tables of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import Paragraph, Table, estimate_cell, number_cell

__all__ = ["blocks"]

_CALIBRATION = (
    ("ece", "ECE"),
    ("ece_debiased", "ECE debiased"),
    ("smooth_ece", "smooth ECE"),
    ("brier", "Brier"),
    ("log_loss", "log loss"),
)
_RANKING = (("auroc", "AUROC"), ("aurc", "AURC"))
_SENTENCES_SHOWN = 3


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return what a person reads first: verdict, then numbers, then what the labels can show."""
    results: Sequence[Mapping[str, Any]] = document["results"]
    parts: list[Paragraph | Table] = []
    for entry in results[:_SENTENCES_SHOWN]:
        verdict = entry["verdict"]
        text = f"{_place(entry)}: {verdict['how']} {verdict['sure']} {verdict['next']}"
        parts.append(Paragraph(text, strong=len(results) == 1))
    if len(results) > _SENTENCES_SHOWN:
        parts.append(Paragraph(f"... and {len(results) - _SENTENCES_SHOWN} more below."))
    parts.append(_numbers(document))
    verified = [entry for entry in results if entry.get("verification")]
    if verified:
        parts.append(_verification(verified))
    parts.extend(_remarks(document))
    return parts


def _place(entry: Mapping[str, Any]) -> str:
    group = entry.get("group") or {}
    return " / ".join(
        [entry["model"], entry["method"], *(f"{key}={value}" for key, value in group.items())]
    )


def _numbers(document: Mapping[str, Any]) -> Table:
    columns = ("model / method", "n", "accuracy", "confidence", "verdict")
    rows = []
    for entry in document["results"]:
        metrics = entry["metrics"]
        rows.append(
            (
                _place(entry),
                f"{entry['n']:,}",
                estimate_cell(metrics.get("accuracy")),
                estimate_cell(metrics.get("mean_confidence")),
                entry["verdict"]["calibration"],
                *(
                    estimate_cell(metrics[name]) if name in metrics else "not a probability"
                    for name, _ in (*_CALIBRATION, *_RANKING)
                ),
            )
        )
    return Table(
        (*columns, *(title for _, title in (*_CALIBRATION, *_RANKING))),
        tuple(rows),
        title=f"Audit of {document['source']}",
        note=f"{document['level']:.0%} intervals, {document['bins']} bins, seed {document['seed']}",
    )


def _verification(results: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            _place(entry),
            _cell(entry["verification"]["error_rate"]),
            _cell(entry["verification"]["lipschitz"]),
            _cell(entry["verification"]["passive_floor"]),
            _cell(entry["verification"]["active_floor"]),
            number_cell(entry["calibration_test"]["expected_ece"]),
            number_cell(entry["calibration_test"]["p_value"]),
        )
        for entry in results
    )
    return Table(
        (
            "model / method",
            "error rate",
            "L",
            "passive floor",
            "active floor",
            "ECE if calibrated",
            "p",
        ),
        rows,
        title="What these labels can show",
        note="Floors are worst-case rates with constant 1; p tests 'perfectly calibrated'.",
    )


def _cell(value: Any) -> str:
    return estimate_cell(value) if isinstance(value, Mapping) else number_cell(value)


def _remarks(document: Mapping[str, Any]) -> list[Paragraph]:
    remarks = []
    if document["dropped"]:
        counts = ", ".join(f"{rule} {count:,}" for rule, count in document["dropped"].items())
        remarks.append(Paragraph(f"Rows left out: {counts}."))
    notes = sorted({note for entry in document["results"] for note in entry["notes"]})
    remarks.extend(Paragraph(f"Note: {note}") for note in notes)
    return remarks
