"""Confidence by number of right answers and on mixes of them, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import Paragraph, Table, estimate_cell, number_cell

__all__ = ["blocks"]

_ALPHA = 0.05


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the evaluation as neutral blocks."""
    found: list[Paragraph | Table] = []
    models = list(dict.fromkeys(entry["model"] for entry in document["results"]))
    for model in models:
        entries = [entry for entry in document["results"] if entry["model"] == model]
        found.append(Paragraph(_verdict(entries, document), strong=True))
        found.append(_by_k(model, entries, document["k"]))
        found.append(_mixes(model, entries, document))
    if document["coverage"]:
        found.append(_coverage(document))
    if document.get("tuning"):
        found.append(_tuning(document["tuning"]))
    if document.get("dropped"):
        reasons = ", ".join(f"{count} {reason}" for reason, count in document["dropped"].items())
        found.append(Paragraph(f"Rows left out: {reasons}"))
    return found


def _verdict(entries: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> str:
    """Return one sentence: which method ranks best on the widest mix, and is that sure?"""
    model, widest = entries[0]["model"], document["mixes"][-1]
    ranked = sorted(
        (entry for entry in entries if entry["mixes"][-1]["auroc"]["value"] is not None),
        key=lambda entry: -entry["mixes"][-1]["auroc"]["value"],
    )
    if not ranked:
        return f"{model}: no AUROC is defined on the mix {_mix(widest)}"
    best = ranked[0]
    text = (
        f"{model}: on the mix {_mix(widest)} {best['method']} ranks best "
        f"(AUROC {estimate_cell(best['mixes'][-1]['auroc'])})"
    )
    reference = document["reference"]
    tests = {e["method"]: e["significance"][-1] for e in entries if e["significance"]}
    if not tests:
        return text + "."
    worse = [m for m, t in tests.items() if _sure(t) and t["difference"]["value"] > 0]
    better = [m for m, t in tests.items() if _sure(t) and t["difference"]["value"] < 0]
    return (
        f"{text}. {reference} is surely better than {len(worse)} of {len(tests)} other methods"
        + (f", surely worse than {', '.join(better)}" if better else ", surely worse than none")
        + f" (p < {_ALPHA})."
    )


def _sure(test: Mapping[str, Any]) -> bool:
    return test["p"] is not None and test["p"] < _ALPHA


def _mix(mix: Sequence[int]) -> str:
    return f"[{','.join(str(k) for k in mix)}]"


def _by_k(model: str, entries: Sequence[Mapping[str, Any]], ks: Sequence[int]) -> Table:
    rows = []
    for entry in entries:
        for name in ("accuracy", "confidence"):
            values = [estimate_value(part[name]) for part in entry["by_k"]]
            change = estimate_cell(entry["change"][name], digits=2)
            label = entry["method"] if name == "accuracy" else ""
            rows.append((label, name, *values, change))
    last = f"change k={ks[0]} to {ks[-1]}"
    return Table(
        ("method", "mean", *(f"k={k}" for k in ks), last),
        tuple(rows),
        title=f"{model}: by number of right answers",
        note="unweighted mean over domains; accuracy is that of the answer each method is about",
        labels=2,
    )


def estimate_value(estimate: Mapping[str, Any] | None) -> str:
    """Return an estimate with half the width of its interval, for narrow tables."""
    if estimate is None or estimate["value"] is None:
        return "undefined"
    if estimate["low"] is None:
        return f"{estimate['value']:.3f}"
    return f"{estimate['value']:.3f} ±{(estimate['high'] - estimate['low']) / 2:.3f}"


def _mixes(model: str, entries: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> Table:
    rows = []
    for entry in entries:
        tests = {tuple(test["mix"]): test for test in entry["significance"]}
        cells = []
        for part in entry["mixes"]:
            test = tests.get(tuple(part["mix"]))
            mark = "†" if test is not None and test["p"] is not None and not _sure(test) else ""
            cells.append(estimate_value(part["auroc"]) + mark)
        ece = entry["mixes"][-1]["ece"]
        rows.append((entry["method"], *cells, estimate_value(ece) if ece else "no probability"))
    left_out = sorted({name for e in entries for part in e["mixes"] for name in part["left_out"]})
    note = f"† not surely different from {document['reference']} (p >= {_ALPHA})"
    if left_out:
        note += f"; without AUROC (all right or all wrong) in some mix: {', '.join(left_out)}"
    return Table(
        ("method", *(_mix(mix) for mix in document["mixes"]), "ECE, widest mix"),
        tuple(rows),
        title=f"{model}: AUROC on mixes",
        note=note,
    )


def _coverage(document: Mapping[str, Any]) -> Table:
    rows = [
        (str(entry["model"]), str(entry["k"]), estimate_cell(entry["coverage"], digits=2))
        for entry in document["coverage"]
    ]
    for entry in document["results"]:
        if entry["coverage_correlation"] is not None:
            cell = estimate_cell(entry["coverage_correlation"], digits=2)
            rows.append((entry["model"], f"Spearman with {entry['method']}", cell))
    rule = document.get("coverage_rule", {})
    return Table(
        ("model", "k", "known answers"),
        tuple(rows),
        title="Knowledge coverage",
        note=f"meanings with at least {rule.get('threshold')} of the mass ({rule.get('mass')})",
        labels=2,
    )


def _tuning(tuning: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for entry in tuning:
        widest = entry["mixes"][-1]
        rows.append(
            (
                entry["model"],
                entry["method"],
                number_cell(entry["threshold"], digits=2),
                estimate_value(entry["development"]),
                estimate_value(widest["tuned"]),
                estimate_value(widest["default"]),
                number_cell(entry["default"], digits=2),
            )
        )
    return Table(
        ("model", "method", "tuned", "development", "rest, tuned", "rest, default", "default"),
        tuple(rows),
        title="Thresholds tuned on a fifth of the questions (AUROC, widest mix)",
        labels=2,
    )
